/* Which bytes a value is, in calls with one key and with many. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { perhaps, random } from './support.mjs';

const { Filter } = perhaps;
await perhaps.load();

const make = () => Filter.create({ capacity: 20_000, fpr: 1e-9, seed: 9 });
const utf8 = (text) => new TextEncoder().encode(text);

/* An integer as a key, after bindings/README.md. */
function integerBytes(value) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt.asUintN(64, BigInt(value)), true);
  return bytes;
}

const texts = ['', 'a', 'apple', 'x'.repeat(96), 'x'.repeat(97), 'ä', 'naïve', 'πλάτων', '日本語', '😀',
               'a\0b', '\0', `${'y'.repeat(95)}é`, 'z'.repeat(5000), 'ü'.repeat(5000), '😀'.repeat(400_000), '42'];
const integers = [0, -0, 1, -1, 42, 255, 256, -256, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), 2 ** 32 - 1, 2 ** 32,
                  2 ** 32 + 1, -(2 ** 32), -(2 ** 32) - 1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER,
                  0n, -1n, 42n,
                  2n ** 63n - 1n, -(2n ** 63n), 2n ** 63n, 2n ** 64n - 1n];

/* Each value is the same key as these bytes: alone, in an array, from an iterator, and packed. */
function expectKey(value, bytes) {
  const added = [(f) => f.add(value), (f) => f.addMany([value]), (f) => f.addMany(new Set([value])),
                 (f) => f.addMany(['other', value, 'more']), (f) => f.add(bytes), (f) => f.addMany([bytes])];
  if (bytes.length > 0 && bytes.length < 2 ** 18)
    added.push((f) => f.addMany(bytes, { keyBytes: bytes.length }));
  for (const add of added) {
    const filter = make();
    add(filter);
    assert.ok(filter.has(value) && filter.has(bytes), `${String(value).slice(0, 30)} by ${add}`);
    assert.deepEqual([...filter.hasMany([bytes, value, 'absent'])], [1, 1, 0]);
    filter.free();
  }
}

test('a text is its UTF-8', () => {
  for (const text of texts)
    expectKey(text, utf8(text));
});

test('an integer is 8 bytes, little-endian, in two\'s complement', () => {
  for (const integer of integers)
    expectKey(integer, integerBytes(integer));
});

test('bytes are themselves, wherever they lie', () => {
  const bytes = Uint8Array.from([1, 2, 3, 4, 5, 6]);
  expectKey(bytes.subarray(2, 5), Uint8Array.from([3, 4, 5]));
  expectKey(Buffer.from('apple'), utf8('apple'));
  expectKey(bytes.buffer, bytes);
  expectKey(new Uint8Array(0), utf8(''));
  expectKey(new Uint8Array(300_000).fill(7), new Uint8Array(300_000).fill(7));
});

test('integers and their text are different keys, but in a bitmap', () => {
  const filter = make();
  filter.add('42');
  assert.ok(!filter.has(42) && !filter.has(42n));
  const bitmap = Filter.create({ integers: { low: 10, high: 2n ** 20n } });
  bitmap.addMany([42, 43n, '44']);
  bitmap.addMany(Int32Array.of(45, 46));
  bitmap.addMany(BigUint64Array.of(47n, 48n));
  for (let i = 42; i <= 48; i++)
    assert.ok(bitmap.has(i) && bitmap.has(BigInt(i)) && bitmap.has(String(i)));
  assert.ok(!bitmap.has(41) && !bitmap.has(2 ** 32) && !bitmap.has(-42) && !bitmap.has(5) && !bitmap.has('042'));
  assert.throws(() => bitmap.add(5), { code: 'ARGUMENT' });
  assert.throws(() => bitmap.add(-42), { code: 'ARGUMENT' });
  assert.throws(() => bitmap.add(42.5), TypeError);
  assert.equal(bitmap.keys, 7);
  const far = Filter.create({ integers: { low: 2n ** 63n, high: 2n ** 64n - 1n - 2n ** 62n + 5n - 2n ** 62n } });
  far.addMany([2n ** 63n, 2n ** 63n + 4n]);
  assert.deepEqual([...far.hasMany([2n ** 63n, '9223372036854775808', 2n ** 63n + 1n, -(2n ** 63n)])], [1, 1, 0, 0]);
});

test('typed arrays have integers for keys', () => {
  for (const Type of [Int8Array, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array,
                      BigUint64Array, Float64Array, Uint8ClampedArray]) {
    const isBig = Type.name.startsWith('Big'), least = /^(Int|BigInt|Float)/.test(Type.name) ? -100 : 0;
    const array = Type.from({ length: 100 - least }, (_, i) => isBig ? BigInt(i + least) : i + least);
    const filter = make();
    filter.addMany(array);
    assert.ok(filter.hasMany(array).every((answer) => answer === 1), Type.name);
    for (const value of array)
      assert.ok(filter.has(value) && filter.has(integerBytes(value)), `${Type.name} ${value}`);
    assert.equal(filter.keys, array.length);
    assert.ok(!filter.has(100) && !filter.has(-101) && !filter.has(156));
    assert.ok(filter.hasMany(array.subarray(3, 50)).every((answer) => answer === 1));
  }
});

test('what is no key is refused, and nothing is added of it', () => {
  const filter = make();
  for (const value of [1.5, NaN, Infinity, 2 ** 53, null, undefined, true, false, {}, [], ['a'], new Date(),
                       Symbol('s'), () => 1, new Float32Array(2), new Uint16Array(2), new DataView(new ArrayBuffer(2))])
    for (const call of ['add', 'has', 'addNew', 'remove', 'count', 'get'])
      assert.throws(() => filter[call](value), TypeError, `${call} ${String(value)}`);
  for (const text of ['\ud800', 'a\udc00', '\udc00\ud800', `${'x'.repeat(30)}\ud83d`, 'ä\ud800ä'])
    for (const call of ['add', 'has', 'addMany', 'hasMany'])
      assert.throws(() => filter[call](call.endsWith('Many') ? [text, 'a'] : text), TypeError);
  for (const value of [2n ** 64n, -(2n ** 63n) - 1n])
    assert.throws(() => filter.add(value), RangeError);
  for (const list of [[undefined], ['a', null], [1, 2.5], [, 1], [true]])
    assert.throws(() => filter.addMany(list), TypeError);
  assert.equal(filter.keys, 0);
});

test('what are no keys is refused', () => {
  const filter = make();
  for (const keys of ['apple', new Uint8Array(8), 5, null, undefined, {}, true, new ArrayBuffer(8)])
    for (const call of ['addMany', 'hasMany', 'addNewMany', 'removeMany', 'countMany', 'getMany'])
      assert.throws(() => filter[call](keys), TypeError);
  assert.throws(() => filter.addMany(['a'], { keyBytes: 1 }), TypeError);
  for (const keyBytes of [0, -1, 3, 1.5, 2 ** 30])
    assert.throws(() => filter.addMany(new Uint8Array(8), { keyBytes }), RangeError);
  assert.throws(() => filter.addMany(new Uint8Array(8), { keyBytes: '8' }), TypeError);
  for (const keys of [[], new Set(), new Uint32Array(0), new BigUint64Array(0)])
    assert.equal(filter.hasMany(keys).length, 0);
  assert.equal(filter.hasMany(new Uint8Array(0), { keyBytes: 8 }).length, 0);
});

test('many keys are each asked as alone, of any lengths', () => {
  const next = random(1), list = [];
  for (let i = 0; i < 30_000; i++) {
    const n = Number(next() % 50n);
    const makers = [() => Number(next() % 100_000n), next, () => 'é'.repeat(n) + i, () => `text ${next()}`.slice(0, n),
                    () => Uint8Array.from({ length: n }, () => Number(next() & 255n))];
    list.push(makers[i % 100 < 50 ? 3 : Number(next() % 5n)]()); // runs of texts are joined
  }
  list[11_111] = 'long '.repeat(100_000);
  const filter = Filter.create({ capacity: 40_000, fpr: 0.01, seed: 2 }), twin = Filter.create({ like: filter });
  filter.addMany(list.filter((_, i) => i % 2));
  for (let i = 1; i < list.length; i += 2)
    twin.add(list[i]);
  assert.ok(filter.equals(twin));
  const answers = filter.hasMany(list);
  const iterated = filter.hasMany(list.values());
  list.forEach((key, i) => assert.equal(answers[i] === 1, filter.has(key)));
  assert.deepEqual(iterated, answers);
});

test('a caller may use the library while it is iterated over', () => {
  const filter = make(), other = make();
  other.addMany(Array.from({ length: 10_000 }, (_, i) => `key ${i}`));
  function* some() {
    for (let i = 0; i < 20_000; i++) {
      if (i % 1000 === 0)
        other.hasMany(['a', 'b', 'c']);
      if (other.has(`key ${i}`))
        yield `key ${i}`;
    }
  }
  filter.addMany(some());
  assert.ok(filter.equals(other));
  assert.throws(() => filter.addMany((function* () {
    yield 'one';
    throw new Error('mine');
  })()), /mine/);
  assert.ok(filter.has('key 1'));
});
