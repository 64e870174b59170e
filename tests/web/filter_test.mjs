/* Filters of all kinds beside an exact count, and what their methods promise. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { perhaps, random, refuses } from './support.mjs';

const { Builder, Filter, PerhapsError, build, kinds, plan } = perhaps;
await perhaps.load();

/* How to make a filter of each kind, for 'capacity' keys. */
const makers = {
  blocked: (capacity) => Filter.create({ kind: 'blocked', capacity, fpr: 0.01, seed: 3 }),
  strided: (capacity) => Filter.create({ kind: 'strided', capacity, fpr: 0.01, seed: 3, removable: true }),
  cuckoo: (capacity) => Filter.create({ kind: 'cuckoo', capacity, fpr: 0.01, seed: 3, removable: true }),
  bloom: (capacity) => Filter.create({ kind: 'bloom', capacity, fpr: 0.01, seed: 3 }),
  elastic: () => Filter.create({ kind: 'elastic', capacity: 1000, fpr: 0.01, seed: 3, removable: true }),
  chain: () => Filter.create({ kind: 'chain', capacity: 1000, fpr: 0.01, seed: 3 }),
  counting: (capacity) => Filter.create({ kind: 'counting', capacity, fpr: 0.01, seed: 3, count: true }),
  window: (capacity) => Filter.create({ kind: 'window', window: capacity, fpr: 0.01, seed: 3 }),
  bitmap: (capacity) => Filter.create({ kind: 'bitmap', integers: { low: 0, high: 4 * capacity } }),
  ribbon: null,
  against: null,
};

const range = (from, n) => Array.from({ length: n }, (_, i) => from + i);
const allFound = (filter, keys) => filter.hasMany(keys).every((answer) => answer === 1);

/* Seven standard deviations above 1 %, of so many questions. */
function expectRate(filter, absent, fpr = 0.01) {
  const wrong = filter.hasMany(absent).reduce((sum, answer) => sum + answer, 0);
  const most = absent.length * fpr + 7 * Math.sqrt(absent.length * fpr);
  assert.ok(wrong <= most, `${wrong} of ${absent.length}`);
}

test('there is a test for each kind', () => {
  assert.deepEqual(kinds().map((kind) => kind.name).sort(), Object.keys(makers).sort());
});

test('each kind finds all keys, keeps its rate, and is the same when it was read again', () => {
  const n = 20_000;
  for (const [name, make] of Object.entries(makers)) {
    const filter = make ? make(n) : build(range(0, n), { kind: name, fpr: 0.01, seed: 3 });
    if (make)
      filter.addMany(range(0, n));
    assert.ok(allFound(filter, range(0, n)), name);
    expectRate(filter, range(n, 2 * n));
    const stats = filter.stats();
    assert.equal(stats.kind, name);
    assert.equal(filter.kind, name);
    assert.equal(filter.fpr, stats.fpr);
    assert.ok(stats.fprNow <= 0.01 && stats.load <= 1 && filter.predictFpr(n) <= 0.0101, name);
    if (name !== 'window')
      assert.ok(Math.abs(stats.keysDifferent - n) < 600, `${name}: ${stats.keysDifferent}`);
    const bytes = filter.toBytes(), again = Filter.fromBytes(bytes);
    assert.ok(again.equals(filter) && filter.copy().equals(filter));
    assert.deepEqual(again.toBytes(), bytes);
    assert.deepEqual(again.digest(), filter.digest());
    again.free();
    filter.free();
  }
});

/* What a filter shall answer: keys that are in are found, and counts are never too small. */
class Model {
  #counts = new Map();

  constructor(filter, isSet, forgets) {
    Object.assign(this, { filter, isSet, forgets });
  }

  add(key) {
    this.filter.add(key);
    this.#counts.set(key, this.isSet ? 1 : (this.#counts.get(key) ?? 0) + 1);
  }

  copies(key) {
    return this.isSet ? 0 : this.#counts.get(key) ?? 0;
  }

  addNew(key) {
    const was = this.filter.has(key);
    assert.equal(this.filter.addNew(key), !was);
    this.#counts.set(key, 1);
  }

  remove(key) {
    const count = this.#counts.get(key) ?? 0;
    if (!count)
      return; // nobody knows which key's entry it would take
    this.filter.remove(key);
    this.#counts.set(key, count - 1);
  }

  expectAll(counts) {
    const there = [...this.#counts].filter(([, count]) => count > 0);
    const keys = there.map(([key]) => key);
    assert.ok(this.forgets || allFound(this.filter, keys));
    if (!counts)
      return;
    const told = this.filter.countMany(keys);
    there.forEach(([key, count], i) => {
      assert.ok(told[i] >= count, `${key}: ${told[i]} and ${count}`);
      assert.equal(this.filter.count(key), told[i]);
    });
  }
}

test('adds, removals and copies are those of an exact count', () => {
  for (const [name, make] of Object.entries(makers).filter(([, make]) => make)) {
    const next = random(name.length), filter = make(8000), { removes, counts } = filter.stats();
    const model = new Model(filter, name === 'bitmap' || !removes, name === 'window');
    for (let step = 0; step < 6000; step++) {
      const key = Number(next() % 2000n), what = next() % 8n;
      if (what < 3n && model.copies(key) < 2) // of so many there is always room
        model.add(key);
      else if (what === 3n && removes)
        model.remove(key);
      else if (what === 4n && !removes)
        model.addNew(key);
      if (step % 1000 === 999)
        model.expectAll(counts);
    }
    filter.free();
  }
});

test('what cannot be done is refused', () => {
  const set = makers.blocked(100), removable = makers.cuckoo(100);
  refuses('SET', () => Filter.create({ capacity: 100, fpr: 0.01, kind: 'cuckoo' }).remove('a'));
  refuses('UNSUPPORTED', () => set.remove('a'));
  refuses('UNSUPPORTED', () => set.get('a'));
  refuses('UNSUPPORTED', () => set.rotate());
  refuses('UNSUPPORTED', () => build(['a'], { fpr: 0.01 }).add('b'));
  refuses('UNSUPPORTED', () => Filter.create({ capacity: 100, fpr: 0.01, kind: 'bloom', removable: true }));
  refuses('NOT_FOUND', () => removable.remove('a'));
  assert.equal(removable.stats().unmatchedRemovals, 1);
  for (let i = 0; i < 8; i++)
    removable.add('a');
  refuses('COPIES', () => removable.add('a'));
  assert.equal(removable.count('a'), 8);
});

test('a full filter says so, and tells how many keys are in', () => {
  const filter = makers.blocked(1000);
  assert.throws(() => filter.addMany(range(0, 30_000)), (error) => {
    assert.ok(error instanceof PerhapsError && error instanceof Error);
    assert.equal(error.code, 'FULL');
    assert.ok(error.done >= 1000 && error.done < 1100, `${error.done}`);
    assert.ok(allFound(filter, range(0, error.done)));
    return true;
  });
  assert.ok(filter.stats().failedAdds > 0 && filter.stats().fprNow <= 0.01);
});

test('kinds that grow take any number of keys', () => {
  const filter = Filter.create({ grow: true, fpr: 0.01 });
  filter.addMany(range(0, 200_000));
  assert.ok(allFound(filter, range(0, 200_000)));
  expectRate(filter, range(1_000_000, 100_000));
  assert.ok(filter.stats().capacity < 200_000);
});

test('many keys answer in order', () => {
  const filter = makers.cuckoo(1000);
  assert.deepEqual([...filter.addNewMany(['a', 'b', 'a'])], [1, 1, 0]);
  assert.deepEqual([...filter.countMany(['a', 'c'])], [1, 0]);
  assert.deepEqual([...filter.removeMany(['a', 'c', 'b'])], [1, 0, 1]);
  assert.deepEqual([...filter.hasMany(['a', 'b'])], [0, 0]);
  assert.ok(filter.hasMany([]) instanceof Uint8Array && filter.countMany([]) instanceof Uint32Array);
});

test('unions and intersections have the keys that they should', () => {
  const one = makers.blocked(1000), other = Filter.create({ like: one });
  one.addMany(range(0, 300));
  other.addMany(range(200, 300));
  const both = one.union(other), common = one.intersection(other);
  assert.ok(allFound(both, range(0, 500)) && allFound(common, range(200, 100)));
  assert.ok(!one.hasMany(range(400, 100)).every((answer) => answer)); // is as it was
  assert.equal(one.merge(other), one);
  assert.ok(one.equals(both) && !one.equals(other));
  other.intersect(one);
  assert.ok(allFound(other, range(200, 300)));
  assert.throws(() => one.merge(Filter.create({ capacity: 500, fpr: 0.01, seed: 4 })), (error) => {
    assert.equal(error.code, 'MISMATCH');
    assert.match(error.message, /capacity 1000 and 500, seed 3 and 4/);
    return true;
  });
  for (const call of ['merge', 'union', 'equals', 'intersect'])
    assert.throws(() => one[call]('other'), TypeError);
});

test('a smaller filter, an empty one', () => {
  const filter = Filter.create({ capacity: 100_000, fpr: 0.01, kind: 'blocked' });
  filter.addMany(range(0, 1000));
  const small = filter.shrink();
  assert.ok(small.stats().bodyNbytes < filter.stats().bodyNbytes / 10 && allFound(small, range(0, 1000)));
  filter.clear();
  assert.equal(filter.keys, 0);
  assert.ok(!filter.has(5));
});

test('a window forgets', () => {
  const keys = Filter.create({ window: 1000, fpr: 0.001 });
  keys.addMany(range(0, 10_000));
  assert.ok(allFound(keys, range(9000, 1000)));
  expectRate(keys, range(0, 5000), 0.001);
  const time = Filter.create({ window: '1h', fpr: 0.001 });
  time.advance(0);
  time.add('apple');
  time.advance(3_600_000);
  assert.ok(time.has('apple'));
  time.advance(2 * 3_600_000);
  assert.ok(!time.has('apple'));
  time.setBack(0);
  time.advance();
  for (const window of ['', '1', 'h', '1.2.3h', '0s', '-1h', '1 h'])
    assert.throws(() => Filter.create({ window, fpr: 0.1 }), RangeError);
});

test('builders', () => {
  const builder = new Builder({ fpr: 0.001, kind: 'ribbon', valueBits: 8, seed: 1 });
  builder.addMany(range(0, 5000), { values: range(0, 5000).map((i) => i % 256) });
  assert.equal(builder.keys, 5000);
  const filter = builder.finish();
  refuses('FREED', () => builder.add('a'));
  assert.equal(filter.get(700), 700 % 256);
  assert.deepEqual([...filter.getMany([1, 255, 4999])], [1, 255, 4999 % 256]);
  assert.equal(build(['a'], { fpr: 0.001, values: [3], seed: 1 }).get('b'), undefined);
  assert.deepEqual([...build(['a'], { fpr: 0.001, values: [3], seed: 1 }).getMany(['a', 'b'])], [3, -1]);
  assert.throws(() => build(['a', 'b'], { fpr: 0.01, values: [1] }), RangeError);
  assert.throws(() => build(['a'], { fpr: 0.01, values: [2 ** 16] }), RangeError);
  refuses('VALUES', () => build(['a', 'a'], { fpr: 0.01, values: [1, 2] }));
  const sized = build(new Set(['a', 'b', 'c']), { fpr: 0.01, kind: 'blocked' });
  assert.ok(sized.stats().capacity >= 3 && allFound(sized, ['a', 'b', 'c']));
  const against = build(range(0, 1000), { fpr: 0.01, against: range(1000, 50_000) });
  assert.ok(allFound(against, range(0, 1000)));
  assert.ok(!against.hasMany(range(1000, 50_000)).some((answer) => answer));
  const one = new Builder({ fpr: 0.01 });
  one.add('apple');
  assert.ok(one.finish().has('apple'));
});

test('the same keys, options and seed make the same filter; and without a seed another', () => {
  const made = () => Filter.create({ capacity: 100, fpr: 0.01 });
  assert.notDeepEqual(made().digest(), made().digest());
  assert.deepEqual(makers.blocked(100).digest(), makers.blocked(100).digest());
  const seed = 2n ** 64n - 1n;
  assert.ok(Filter.create({ capacity: 10, fpr: 0.1, seed }).equals(Filter.create({ capacity: 10, fpr: 0.1, seed })));
});

test('options are checked', () => {
  const size = { capacity: 10, fpr: 0.1 };
  const wrong = [{}, { capacity: 10 }, { fpr: 0.1 }, { capacity: '10', fpr: 0.1 }, { capacity: 10, fpr: '0.1' },
                 { ...size, colour: 1 }, { ...size, removable: 1 }, { ...size, valueBits: 3 },
                 { ...size, static: true }, { ...size, toString: 1 }, { integers: 5 }, { like: 5 }];
  for (const options of wrong)
    assert.throws(() => Filter.create(options), TypeError, JSON.stringify(options));
  for (const options of [undefined, null, 5])
    assert.throws(() => Filter.create(options), TypeError);
  const range = [{ capacity: 1.5, fpr: 0.1 }, { capacity: -1, fpr: 0.1 }, { capacity: 2 ** 49, fpr: 0.1 },
                 { capacity: 10, fpr: 0 }, { capacity: 10, fpr: 1 }, { capacity: 10, fpr: NaN },
                 { ...size, kind: 'fuse' }, { ...size, seed: 0 }, { ...size, seed: 2n ** 64n },
                 { ...size, prefer: 'small' }, { ...size, note: 'a\nb' }, { ...size, note: 'ä'.repeat(48) },
                 { ...size, secret: new Uint8Array(5) }];
  for (const options of range)
    assert.throws(() => Filter.create(options), RangeError, `${Object.entries(options)}`);
  assert.throws(() => new Filter(), TypeError);
  assert.equal(Filter.create({ capacity: 10, fpr: 0.1, note: 'of fruit' }).note, 'of fruit');
});

test('a plan is that of the filter', () => {
  const options = { capacity: 12_345, fpr: 0.003 }, planned = plan(options), stats = Filter.create(options).stats();
  assert.equal(planned.bodyNbytes, stats.bodyNbytes);
  assert.equal(planned.kind, stats.kind);
  assert.ok(planned.why.length > 10 && planned.fprPredicted <= 0.003);
  assert.equal(plan({ capacity: 1000, fpr: 0.01, kind: 'chain' }).fprUntil, null);
  assert.equal(plan({ capacity: 1000, fpr: 0.01, static: true }).kind, 'ribbon');
  assert.equal(perhaps.version().split('.').length, 3);
});

test('a freed filter is gone', () => {
  const filter = makers.blocked(100);
  filter.free();
  filter.free();
  for (const call of ['add', 'has', 'hasMany', 'stats', 'toBytes', 'copy'])
    refuses('FREED', () => filter[call](['a']));
  if (Symbol.dispose)
    assert.equal(typeof filter[Symbol.dispose], 'function');
});
