/* Both files, with vectors and without: the same answers, and the same bytes. */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { attempt, folder, packageIn, random, scratch } from './support.mjs';

/* A package has one instance, so each file has a copy of its own. */
async function variant(file) {
  const place = join(scratch, file);
  cpSync(folder, place, { recursive: true });
  const its = await packageIn(place);
  await its.load(file);
  return its;
}

const both = [await variant('perhaps.wasm'), await variant('perhaps-simd.wasm')];
const RATES = [0.3, 0.05, 0.01, 0.001, 1e-4, 1e-6, 1e-9];
const next = random(5);
const n = 2000;
const words = new BigUint64Array(2 * n).map(() => next());
const bytes = new Uint8Array(words.buffer), keys = bytes.subarray(0, 8 * n), how = { keyBytes: 8 };
const numbers = Array.from(words.subarray(0, n), (word) => String(word % 50_000n));

test('load() takes the file with vectors here', async () => {
  const { Filter, load } = await packageIn(folder);
  await load();
  assert.equal(Filter.create({ capacity: 10, fpr: 0.1 }).stats().cpu, 'simd128');
  const cpus = both.map((its) => its.Filter.create({ capacity: 10, fpr: 0.1 }).stats().cpu);
  assert.deepEqual(cpus, ['scalar', 'simd128']);
});

/* Has both do the same.  Returns what both return. */
function alike(what, call) {
  const [one, other] = both.map((its, i) => attempt(() => call(its, i)));
  assert.deepEqual(other, one, what);
  return one;
}

/* Asks, adds, counts and removes, in batches and one by one, and looks at the bytes. */
function compare(what, filters) {
  const each = (name, call) => alike(`${what}: ${name}`, (its, i) => call(filters[i], its));
  const state = (name) => each(name, (f) => [f.toBytes(), { ...f.stats(), cpu: '' }]);
  state('built');
  each('addMany', (f) => f.addMany(keys, how));
  state('added');
  each('addNewMany', (f) => f.addNewMany(bytes.subarray(4 * n, 12 * n), how));
  each('copies', (f) => {
    for (let i = 0; i < 17; i++)
      f.addMany(keys.subarray(0, 8 * i * i), how);
  });
  for (let i = 0; i < 100; i++)
    each('add', (f) => f.add(words[n + i]));
  state('more');
  for (const call of ['hasMany', 'countMany', 'getMany'])
    each(call, (f) => f[call](bytes, how));
  for (let i = 0; i < 2 * n; i += 37)
    for (const call of ['has', 'count', 'get', 'addNew'])
      each(call, (f) => f[call](words[i]));
  each('removeMany', (f) => f.removeMany(bytes.subarray(4 * n, 6 * n), how));
  for (let i = 0; i < 100; i++)
    each('remove', (f) => f.remove(words[i]));
  state('removed');
  each('shrink', (f) => f.shrink().toBytes());
  each('intersect', (f, { Filter }) => {
    const twin = Filter.create({ like: f });
    twin.addMany(keys.subarray(0, 8 * 1000), how);
    return twin.intersect(f).toBytes();
  });
  filters.forEach((f) => f.free?.());
}

for (const kind of both[0].kinds().filter((kind) => !kind.static && kind.name !== 'bitmap'))
  for (const fpr of RATES)
    for (const further of [{}, { count: true }, { removable: true }, { together: true }])
      test(`${kind.name} at ${fpr} ${Object.keys(further)}`, () => {
        const options = { capacity: 2 * n, fpr, kind: kind.name, seed: 3, ...further };
        const filters = [];
        const refused = alike('create', ({ Filter }, i) => {
          filters[i] = Filter.create(options);
          return null;
        });
        if (refused === null)
          compare(kind.name, filters);
      });

test('a bitmap', () => {
  const of = (its) => its.Filter.create({ integers: { low: 0, high: 49_999 } });
  alike('bitmap', (its) => {
    const bitmap = of(its);
    bitmap.addMany(numbers);
    return [bitmap.toBytes(), bitmap.hasMany(numbers.slice(0, 99))];
  });
});

test('what is built at once', () => {
  const values = Array.from({ length: n }, (_, i) => i % 32);
  for (const fpr of RATES)
    for (const more of [{}, { values }, { against: bytes.subarray(8 * n) }])
      alike(`build at ${fpr} ${Object.keys(more)}`, (its) => {
        const filter = its.build(keys, { fpr, seed: 3, ...how, ...more });
        return [filter.toBytes(), filter.hasMany(bytes, how), attempt(() => filter.getMany(bytes, how))];
      });
});
