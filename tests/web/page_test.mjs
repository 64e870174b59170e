/* page_test.mjs - the page without a browser: that doc/perhaps.html is of these sources, what its
 * stories say of the filters in them, and the bodies that it reads out of files. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';
import { deflateRawSync, gzipSync } from 'node:zlib';
import { filesOf, folder, root } from './support.mjs';

const place = join(root, 'bindings/web/page');
const get = (name) => import(pathToFileURL(join(place, name)));

const perhaps = await get('../perhaps.mjs');
await perhaps.load(readFileSync(join(folder, 'perhaps.wasm')));
const { anatomy, bitsOf, bodiesOf, bytesChanged } = await get('body.mjs');

test('doc/perhaps.html is made of these sources', () => {
  const page = readFileSync(join(root, 'doc/perhaps.html'), 'utf8');
  const hash = execFileSync(process.execPath, [join(place, 'build.mjs'), '--hash'], { encoding: 'utf8' }).trim();
  assert.ok(page.includes(`<meta name="sources" content="${hash}">`),
            'make it anew, and commit it: cmake --build build --target perhaps_page');
  assert.ok(page.length <= 350_000, `${page.length} bytes`);
});

test('the page asks for nothing from anywhere', () => {
  const page = readFileSync(join(folder, 'perhaps.html'), 'utf8').replace(/<script type="application[^]*?<\/script>/, '');
  assert.doesNotMatch(page, /\b(?:src|srcset|action)\s*=|@import|url\(\s*['"]?http/);
  for (const [, href] of page.matchAll(/\bhref="([^"]*)"/g))
    assert.match(href, /^(#|data:)/);
});

test('inflate() unpacks what gzip packed', async () => {
  const { inflate } = await get('inflate.mjs');
  const wasm = readFileSync(join(folder, 'perhaps.wasm'));
  const noise = Uint8Array.from({ length: 1000 }, (_, i) => Math.imul(i, 2654435761) >>> 24);
  for (const bytes of [wasm, noise, new Uint8Array(70000), new Uint8Array([7])])
    for (const level of [0, 1, 9])
      assert.deepEqual(inflate(gzipSync(bytes, { level }), bytes.length), new Uint8Array(bytes));
  assert.throws(() => inflate(Buffer.concat([Buffer.alloc(10), deflateRawSync(wasm).subarray(0, 1000), Buffer.alloc(9, 255)]), wasm.length));
});

/* ---- Bodies ---------------------------------------------------------------------------------- */

test('bodies of all golden files have the sizes that the library says', () => {
  const files = [...filesOf(join(root, 'tests/golden'), '.perhaps'), ...filesOf(join(root, 'tests/golden/small'), '.perhaps')];
  assert.ok(files.length > 20);
  for (const path of files) {
    const bytes = readFileSync(path);
    let filter;
    try {
      filter = perhaps.Filter.fromBytes(bytes);
    } catch (error) {
      assert.ok(['SECRET', 'UNSUPPORTED', 'VERSION'].includes(error.code), `${path}: ${error.message}`);
      continue;
    }
    const { stats, parts, bodies } = anatomy(filter);
    if (parts.some((part) => part.parts > 0)) {
      assert.ok(bodies.length === 1 && bodies[0].length % 64 === 0 && bodies[0].length >= stats.bodyNbytes, path);
      continue;
    }
    assert.equal(bodies.length, parts.length + 1, path);
    assert.equal(parts.length, stats.parts);
    parts.forEach((part, i) => assert.equal(bodies[i + 1].length, part.bodyNbytes, path));
    if (parts.length === 0 && stats.kind !== 'elastic') // which in memory has directories, too
      assert.equal(bodies[0].length, stats.bodyNbytes, path);
    assert.deepEqual(bodiesOf(bytes, parts.map((part) => part.bodyNbytes)).map((body) => body.length), bodies.map((body) => body.length), path);
  }
});

/* ---- Stories --------------------------------------------------------------------------------- */

/* All states of a story, as the page makes them: each from the bytes of the one before. */
function play(story) {
  let filter = story.make();
  const states = [{ bytes: filter.toBytes(), ...anatomy(filter), told: {} }];
  for (const step of story.steps) {
    filter.free();
    filter = perhaps.Filter.fromBytes(states.at(-1).bytes);
    const told = step(filter);
    states.push({ bytes: filter.toBytes(), ...anatomy(filter), told });
  }
  filter.free();
  return states;
}

const changes = (states) => states.slice(1).map((state, i) =>
  state.bodies.reduce((sum, body, part) => sum + bytesChanged(states[i].bodies[part] ?? new Uint8Array(), body), 0));

test('bits: each key sets its bits, and the last stranger is a false positive', async () => {
  const { bits, WORDS } = await get('stories_lines.mjs'), states = play(bits);
  states.slice(1, WORDS.length + 1).forEach((state, i) => {
    const set = new Set(bitsOf(state.body)), had = new Set(bitsOf(states[i].body));
    assert.deepEqual(new Set([...had, ...state.told.asked]), set);
  });
  assert.ok(changes(states).slice(WORDS.length).every((n) => n === 0), 'to ask changes nothing');
  assert.equal(states.at(-1).told.tone, 'false');
  assert.equal(states.filter(({ told }) => told.tone === 'false').length, 1);
});

test('line: all bits of a key are in one line', async () => {
  const { line } = await get('stories_lines.mjs');
  for (const { told } of play(line).slice(1))
    assert.equal(new Set(told.asked.map((bit) => Math.floor(bit / 512))).size, 1);
});

test('cuckoo: entries move along a path, and the add that fails changes nothing', async () => {
  const { moves } = await get('stories_slots.mjs'), states = play(moves), all = changes(states);
  assert.ok(Math.max(...all) >= 5, 'a long path');
  assert.equal(all.at(-1), 0);
  assert.match(states.at(-1).told.text, /FULL/);
  assert.match(states.at(-2).told.text, /5 entries moved/);
  assert.ok(states.slice(0, -1).slice(1).every((state, i) => state.stats.keys === i + 1));
});

test('split: segments split, one by one and not all at once', async () => {
  const { splits } = await get('stories_slots.mjs'), states = play(splits);
  const n = states.map(({ stats }) => stats.geometry.segments);
  assert.equal(n[0], 16);
  assert.ok(n.at(-1) >= 28 && n.every((each, i) => i === 0 || each - n[i - 1] <= 4), n.join());
});

test('chain: a layer begins when the one before is full', async () => {
  const { layers } = await get('stories_slots.mjs'), states = play(layers);
  for (const { parts } of states)
    parts.slice(0, -1).forEach((part, i) => assert.ok(part.keys >= part.capacity - 1, `layer ${i}`));
  assert.equal(states.at(-1).parts.length, 4);
});

test('ribbon: the slots fulfil the equation of each key', async () => {
  const { KEYS, equationOf, equations, holds, solution } = await get('stories_built.mjs');
  const filter = equations.make(), { stats, body } = anatomy(filter), values = solution(body, stats.geometry);
  for (const key of KEYS)
    assert.ok(holds(equationOf(filter.hash(key), stats.geometry), values), key);
  for (let i = 0; i < 300; i++) {
    const key = `absent ${i}`;
    assert.equal(holds(equationOf(filter.hash(key), stats.geometry), values), filter.has(key), key);
  }
  play(equations).forEach(({ bytes }) => assert.deepEqual(bytes, filter.toBytes()));
});

/* ---- What people write ------------------------------------------------------------------------ */

test('numbers and rates as people write them', async () => {
  const { readCount, readRate } = await get('numbers.mjs');
  for (const [text, n] of [['1,000,000', 1e6], ['2.5M', 2.5e6], ['10k', 1e4], ['1e6', 1e6], ['7', 7], ['0', null], ['x', null], ['', null], ['1e13', null]])
    assert.equal(readCount(text), n, text);
  for (const [text, p] of [['0.1 %', 0.001], ['1%', 0.01], ['0.001', 0.001], ['1e-6', 1e-6], ['1/1000', 0.001], ['2', null], ['0', null], ['x', null]])
    assert.equal(readRate(text), p, text);
});
