/* Files on a web server: the same answers as the loaded files, and what servers do wrong. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, test } from 'node:test';

import { perhaps } from './support.mjs';

const { Filter, build, remote } = perhaps;
await perhaps.load();

/* ---- A server -------------------------------------------------------------------------------- */

const files = new Map();
const counts = { requests: 0, bytes: 0, running: 0, most: 0 };

/* What a server may do otherwise, by the first part of the path. */
const WAYS = {
  whole: (answer) => Object.assign(answer, { status: 200, range: null }),
  shift: (answer) => Object.assign(answer, { range: answer.range.replace(/bytes \d+/, 'bytes 7') }),
  hidden: (answer) => Object.assign(answer, { range: null }),
  changing: (answer) => Object.assign(answer, { tag: `"${counts.requests}"` }),
  untagged: (answer) => Object.assign(answer, { tag: null }),
  cut: (answer) => Object.assign(answer, { cut: true }),
  few: (answer) => Object.assign(answer, { body: answer.body.subarray(1) }),
};

function answerTo(file, wanted) {
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(wanted).map(Number);
  const body = file.subarray(from, to + 1);
  return { status: 206, body, tag: '"one"', range: `bytes ${from}-${from + body.length - 1}/${file.length}` };
}

function send(response, { status, body, tag, range, cut }) {
  const headers = { 'Content-Length': body.length };
  if (tag)
    headers.ETag = tag;
  if (range)
    headers['Content-Range'] = range;
  response.writeHead(status, headers);
  counts.bytes += body.length;
  counts.running--;
  if (cut)
    response.write(body.subarray(0, body.length / 2), () => response.destroy());
  else
    response.end(body);
}

const server = createServer((request, response) => {
  const [, way, name] = request.url.split('/');
  counts.requests++;
  counts.most = Math.max(counts.most, ++counts.running);
  if (way === 'moved') {
    counts.running--;
    response.writeHead(302, { Location: `/plain/${name}` }).end();
    return;
  }
  const file = files.get(name);
  const answer = file ? answerTo(file, request.headers.range)
                      : { status: 404, body: Buffer.from('no'), tag: null, range: null };
  if (request.headers.authorization === 'refuse')
    answer.status = 403;
  WAYS[way]?.(answer);
  setImmediate(send, response, answer);
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const base = `http://127.0.0.1:${server.address().port}`;
after(() => {
  server.close();
  server.closeAllConnections?.();
});

const text = (n) => `key ${n}`;
const texts = (n, from = 0) => Array.from({ length: n }, (_, i) => text(from + i));

function publish(name, filter) {
  files.set(name, Buffer.from(filter.toBytes()));
  return filter;
}

const KEYS = 60000;
const large = publish('large', Filter.create({ capacity: KEYS, fpr: 0.01, seed: 1 }));
large.addMany(texts(KEYS));
files.set('large', Buffer.from(large.toBytes()));

/* ---- Answers --------------------------------------------------------------------------------- */

async function same(name, filter, keys, options) {
  const far = await remote(`${base}/plain/${name}`, options);
  assert.deepEqual(await far.hasMany(keys), filter.hasMany(keys));
  for (const key of [...keys].slice(0, 5))
    assert.equal(await far.has(key), filter.has(key));
  far.close();
}

test('answers are those of the loaded file', async () => {
  const keys = texts(3000, KEYS - 1500);
  await same('large', large, keys);
  await same('large', large, keys, { check: true, connections: 2 });
  await same('large', large, ['x'.repeat(300000), '', 'key 5']);
});

test('of each kind', async () => {
  const listed = texts(KEYS), keys = texts(2000, KEYS - 1000);
  const made = {
    ribbon: build(listed, { fpr: 0.001 }),
    against: build(listed, { fpr: 0.001, against: texts(KEYS, 2 * KEYS) }),
    cuckoo: Filter.create({ capacity: KEYS, fpr: 0.001, removable: true, kind: 'cuckoo' }),
    counting: Filter.create({ capacity: KEYS, fpr: 0.001, kind: 'counting' }),
    bloom: Filter.create({ capacity: KEYS, fpr: 0.001, kind: 'bloom' }),
    strided: Filter.create({ capacity: KEYS, fpr: 0.001, kind: 'strided' }),
    chain: Filter.create({ capacity: 1000, fpr: 0.001, kind: 'chain', base: 'blocked' }),
    window: Filter.create({ fpr: 0.001, window: KEYS, base: 'blocked' }),
  };
  for (const [name, filter] of Object.entries(made)) {
    if (!['ribbon', 'against'].includes(name))
      filter.addMany(listed);
    publish(name, filter);
    await same(name, filter, keys);
    await same(name, filter, keys, { check: true });
  }
});

test('small files, integers, and typed arrays', async () => {
  const small = Filter.create({ capacity: 10, fpr: 0.01 });
  small.addMany([1, 2n, 'three']);
  publish('small', small);
  await same('small', small, [1, 2, 3, 'three']);
  const bits = Filter.create({ integers: { low: 5, high: 3_000_000 } });
  bits.addMany([5, 77, 2_999_999n]);
  publish('bits', bits);
  await same('bits', bits, [4, 5, 77n, '77', 2_999_999]);
  await same('large', large, Uint32Array.from([1, 2, 3]));
});

test('few bytes are read, and several at once', async () => {
  const before = { ...counts };
  const far = await remote(`${base}/plain/large`);
  await far.has('key 5');
  assert.equal(counts.bytes - before.bytes, 4096 + 64);
  assert.equal(counts.requests - before.requests, 2);
  const [a, b] = await Promise.all([far.has('key 5'), far.hasMany(texts(200))]);
  assert.ok(a && b.every((answer) => answer === 1));
  far.close();
});

test('facts of the header', async () => {
  const far = await remote(new URL(`${base}/moved/large`), { headers: { 'X-Test': '1' } });
  assert.equal(far.stats().kind, 'blocked');
  assert.equal(far.keys, large.keys);
  assert.equal(far.nbytes, files.get('large').length);
  assert.equal(far.note, '');
  far.close();
  assert.throws(() => far.stats(), { code: 'FREED' });
  await assert.rejects(far.has('x'), { code: 'FREED' });
});

/* ---- What goes wrong -------------------------------------------------------------------------- */

const fails = (path, code, message, options) =>
  assert.rejects(remote(`${base}/${path}`, options).then((far) => far.hasMany(texts(50))),
                 { name: 'PerhapsError', code, message });

test('servers that do something else', async () => {
  await fails('whole/large', 'IO', /sends whole files/);
  await fails('shift/large', 'IO', /another range/);
  await fails('hidden/large', 'IO', /Access-Control-Expose-Headers/);
  await fails('changing/large', 'CHANGED', /changed meanwhile/);
  await fails('cut/large', 'IO', /cut short/);
  await fails('few/large', 'IO', /bytes, and not/);
  await fails('plain/none', 'IO', /status 404/);
  await fails('plain/large', 'IO', /status 403/, { headers: { Authorization: 'refuse' } });
  await assert.rejects(remote('http://127.0.0.1:1/f'), { code: 'IO', message: /cannot be fetched/ });
  assert.equal((await (await remote(`${base}/untagged/large`)).hasMany(['key 1']))[0], 1);
});

test('files that are none, or damaged', async () => {
  const wrong = Buffer.from(files.get('large'));
  files.set('text', Buffer.from('no filter'.repeat(1000)));
  await fails('plain/text', 'FORMAT', /./);
  files.set('short', wrong.subarray(0, 50000));
  await fails('plain/short', 'DAMAGED', /./);
  wrong.fill(0xff, 5000);
  files.set('wrong', wrong);
  await fails('plain/wrong', 'DAMAGED', /./, { check: true });
  const grown = Filter.create({ fpr: 0.01, grow: true, kind: 'elastic' });
  grown.addMany(texts(KEYS));
  publish('elastic', grown);
  await fails('plain/elastic', 'UNSUPPORTED', /./);
});

test('a file that is changed while it is open', async () => {
  files.set('moving', files.get('large'));
  const far = await remote(`${base}/plain/moving`);
  files.set('moving', files.get('cuckoo'));
  await assert.rejects(far.has('key 1'), { code: 'CHANGED' });
  files.set('moving', files.get('large'));
  assert.equal(await far.has('key 1'), true);
  far.close();
});

test('wrong options', async () => {
  await assert.rejects(remote(5), TypeError);
  await assert.rejects(remote(base, { fetch: 5 }), TypeError);
  await assert.rejects(remote(base, { connections: 0 }), RangeError);
  await assert.rejects(remote(base, { secret: 'x' }), TypeError);
});
