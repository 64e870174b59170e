/* Hostile bytes and sizes: an exception, and never a trap. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { attempt, filesOf, perhaps, recordsOf, refuses, root } from './support.mjs';

const { Filter } = perhaps;
await perhaps.load();
const codes = { [-3]: 'MEMORY', [-9]: 'SECRET', [-11]: 'FORMAT', [-12]: 'VERSION', [-13]: 'DAMAGED',
                [-2]: 'UNSUPPORTED', [-14]: 'LIMIT' };

const asked = ['0123456789abcdef', 'apple', 42, -1n, new Uint8Array(16), new Uint8Array(8), '7', ''];

/* Does to a filter whatever its bytes allow. */
function exercise(filter) {
  const stats = filter.stats();
  const copy = filter.copy();
  for (const key of asked) {
    attempt(() => filter.has(key));
    attempt(() => filter.count(key));
    attempt(() => filter.get(key));
    if (attempt(() => copy.add(key)) === undefined)
      assert.ok(copy.has(key));
    attempt(() => copy.addNew(key));
    attempt(() => copy.remove(key));
  }
  for (const call of ['hasMany', 'countMany', 'getMany'])
    attempt(() => filter[call](asked));
  for (const call of ['addMany', 'addNewMany', 'removeMany'])
    attempt(() => copy[call](asked));
  attempt(() => copy.advance(10));
  attempt(() => copy.rotate());
  attempt(() => copy.setBack(5));
  attempt(() => copy.merge(filter));
  attempt(() => copy.intersect(filter));
  attempt(() => filter.shrink().free());
  attempt(() => Filter.create({ like: filter }).free());
  assert.ok(Number.isFinite(filter.predictFpr(1000)));
  assert.ok(stats.memoryNbytes >= 0 && filter.digest().length === 16 && filter.note.length < 96);
  attempt(() => copy.clear());
  copy.free();
}

/* Reads what the C library has read, with the same result. */
function expectSame({ file, error, written }) {
  const filter = attempt(() => Filter.fromBytes(file));
  if (typeof filter === 'string') {
    assert.equal(filter, codes[error]);
    return false;
  }
  assert.equal(error, 0);
  assert.ok(written.equals(filter.toBytes()));
  exercise(filter);
  assert.ok(written.equals(filter.toBytes())); // whatever was asked
  filter.free();
  return true;
}

function expectAllSame(records) {
  const count = { opened: 0, refused: 0 };
  for (const record of records)
    count[expectSame(record) ? 'opened' : 'refused']++;
  return count;
}

test('the corpora of the fuzzers do here what they do in C', () => {
  const corpus = join(root, 'fuzz/corpus');
  const files = readdirSync(corpus).flatMap((name) => filesOf(join(corpus, name)));
  const { opened, refused } = expectAllSame(recordsOf(files));
  assert.ok(opened > 40 && refused > 500, `${opened} and ${refused}`);
});

test('so do golden files of which bytes were changed, with the right checksums', () => {
  const files = filesOf(join(root, 'tests/golden/small'), '.perhaps');
  const { opened, refused } = expectAllSame(recordsOf(files, 60));
  assert.ok(opened > 200 && refused > 50, `${opened} and ${refused}`);
});

test('what has no room in the memory is refused, and all goes on', () => {
  refuses('MEMORY', () => Filter.create({ capacity: 3e9, fpr: 0.01 }));
  refuses('MEMORY', () => Filter.create({ capacity: 2 ** 48, fpr: 1e-15 }));
  refuses('MEMORY', () => Filter.create({ capacity: 2 ** 40, fpr: 0.01, kind: 'bloom' }));
  refuses('MEMORY', () => Filter.create({ integers: { low: 0, high: 2 ** 47 } }));
  refuses('MEMORY', () => Filter.create({ capacity: 2 ** 33, fpr: 0.01, removable: true }));
  for (let bits = 36; bits <= 48; bits++)
    for (const kind of ['blocked', 'bloom', 'cuckoo', 'strided', 'elastic', 'chain', 'counting'])
      for (const fpr of [0.5, 1e-9]) {
        const filter = attempt(() => Filter.create({ capacity: 2 ** bits - 1, fpr, kind }));
        assert.ok(['MEMORY', 'LIMIT'].includes(filter), `${kind} ${bits} ${fpr}: ${filter}`);
      }
  const filter = Filter.create({ capacity: 1000, fpr: 0.01 });
  filter.add('apple');
  assert.ok(filter.has('apple'));
});

test('a stack that overflows leaves no broken filter in use', async () => {
  const filter = Filter.create({ capacity: 1000, fpr: 0.01 });
  const deep = () => {
    filter.addNew('apple');
    deep();
  };
  assert.throws(deep);
  let broken = false;
  try {
    filter.has('apple');
  } catch {
    broken = true;
  }
  if (broken) { // the stack ended in the library, or just before
    refuses('BROKEN', () => filter.has('apple'));
    refuses('BROKEN', () => Filter.create({ capacity: 1000, fpr: 0.01 }));
    filter.free();
    await perhaps.load();
  }
  const again = Filter.create({ capacity: 1000, fpr: 0.01 });
  again.add('apple');
  assert.ok(again.has('apple'));
});
