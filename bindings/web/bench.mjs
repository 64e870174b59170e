/* bench.mjs - nanoseconds a key: node bindings/web/bench.mjs [KEYS [RATE [FOLDER [FILE]]]], once
 * the project is built; FOLDER has the module (build/lib/web), and FILE is the WebAssembly in it,
 * perhaps-simd.wasm or perhaps.wasm, if not the one that load() chooses.  Other packages of npm stand beside
 * it where they can be required: bloom-filters, bloomfilter. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { resolve } from 'node:path';

const [count = '1e6', rate = '0.01', folder = 'build/lib/web', file] = process.argv.slice(2);
const n = Number(count), fpr = Number(rate), passes = 5;
const { load, Filter, build } = await import(pathToFileURL(resolve(folder, 'perhaps.mjs')));

/* Returns the best time of some passes over so many keys; each gets what prepare() returns. */
function best(prepare, pass, nkeys = n) {
  let least = Infinity;
  for (let i = 0; i < passes; i++) {
    const what = prepare();
    const from = process.hrtime.bigint();
    pass(what);
    least = Math.min(least, Number(process.hrtime.bigint() - from));
    what?.free?.();
  }
  return least / nkeys;
}

function tell(name, ...numbers) {
  console.log(name.padEnd(34), ...numbers.map((ns) => ns.toFixed(1).padStart(8)));
}

/* Keys that look random: the multiples of an odd number. */
const numbers = new BigUint64Array(2 * n).map((_, i) => BigInt(i) * 0x9E3779B97F4A7C15n);
const packed = new Uint8Array(numbers.buffer);
const mine = packed.subarray(0, 8 * n), others = packed.subarray(8 * n);
const keyOf = (i) => `https://example.com/page/${i}`;
const texts = Array.from({ length: n }, (_, i) => keyOf(i));
const absent = Array.from({ length: n }, (_, i) => keyOf(n + i));

const ints = Array.from({ length: n }, (_, i) => i * 1000), otherInts = ints.map((i) => i + 1);

const make = (kind) => Filter.create({ capacity: n, fpr, kind, seed: 1 });
const filled = (kind, keys, how) => {
  const filter = kind === 'ribbon' ? build(keys, { fpr, seed: 1, ...how }) : make(kind);
  if (kind !== 'ribbon')
    filter.addMany(keys, how);
  return filter;
};

function measureMany(kind, name, keys, no, how) {
  const add = best(() => make(kind), (filter) => filter.addMany(keys, how));
  const filter = filled(kind, keys, how);
  tell(`${kind}, ${name}`, add, best(() => null, () => filter.hasMany(keys, how)),
       best(() => null, () => filter.hasMany(no, how)));
  filter.free();
}

/* Some of the others take 20 microseconds a key, so they get few. */
function measureOne(name, make, add, has, nkeys = n, yes = texts, others = absent) {
  const some = yes.slice(0, nkeys), no = others.slice(0, nkeys);
  const filter = make();
  const adds = best(make, (fresh) => some.forEach((text) => add(fresh, text)), nkeys);
  some.forEach((text) => add(filter, text));
  tell(name, adds, best(() => null, () => some.forEach((text) => has(filter, text)), nkeys),
       best(() => null, () => no.forEach((text) => has(filter, text)), nkeys));
}

await load(file);
console.log(`${n} keys at ${fpr}, ${make('blocked').stats().cpu}, ns a key`.padEnd(34), '     add  present   absent');
for (const kind of ['blocked', 'bloom', 'cuckoo', 'elastic', 'counting']) {
  measureMany(kind, '8 bytes, many', mine, others, { keyBytes: 8 });
  measureMany(kind, 'texts, many', texts, absent);
}
const one = [() => make('blocked'), (f, key) => f.add(key), (f, key) => f.has(key)];
measureOne('blocked, texts, one by one', ...one);
measureOne('blocked, numbers, one by one', ...one, n, ints, otherInts);
tell('ribbon, 8 bytes, build()', best(() => null, () => filled('ribbon', mine, { keyBytes: 8 }).free()));

/* Which of them can be required: from here, or from the folder where one runs this. */
function peer(name) {
  try {
    return createRequire(resolve('package.json'))(name);
  } catch {
    return null;
  }
}

measureOne('Set of JavaScript', () => new Set(), (set, key) => set.add(key), (set, key) => set.has(key));
const few = Math.min(n, 20_000);
const filters = peer('bloom-filters');
if (filters)
  measureOne('npm bloom-filters', () => filters.BloomFilter.create(n, fpr), (f, key) => f.add(key),
             (f, key) => f.has(key), few);
const single = peer('bloomfilter');
if (single)
  measureOne('npm bloomfilter', () => single.BloomFilter.withTargetError(n, fpr), (f, key) => f.add(key),
             (f, key) => f.test(key));
