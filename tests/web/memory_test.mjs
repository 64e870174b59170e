/* Memory that ends: an exception, and all is as it was.  The library is loaded with a memory of
 * 32 MiB in place of 4 GiB. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { attempt, folder, perhaps, refuses } from './support.mjs';

const { Builder, Filter, build } = perhaps;
const PAGES = 512;

/* Reads a number of WebAssembly.  Returns it, and where the next byte is. */
function number(bytes, at) {
  let value = 0, shift = 0;
  for (;; shift += 7) {
    value += (bytes[at] & 127) * 2 ** shift;
    if (bytes[at++] < 128)
      return [value, at];
  }
}

/* Sets the limit of the memory, which stands in section 5. */
function withLimit(wasm, pages) {
  const bytes = Uint8Array.from(wasm), memories = 5, begin = 8;
  for (let at = begin, id, nbytes; at < bytes.length; at += nbytes) {
    id = bytes[at];
    [nbytes, at] = number(bytes, at + 1);
    if (id !== memories)
      continue;
    const [, max] = number(bytes, at + 2), [, end] = number(bytes, max);
    assert.equal(bytes[at], 1);
    assert.equal(bytes[at + 1], 1); // there is a limit
    for (let i = max; i < end; i++, pages = Math.floor(pages / 128))
      bytes[i] = pages % 128 + (i + 1 < end ? 128 : 0);
    return bytes;
  }
  assert.fail('there is no memory');
}

await perhaps.load(withLimit(readFileSync(join(folder, 'perhaps.wasm')), PAGES));

/* Takes all that is left of the memory.  Returns the filters that have it. */
function exhaust(least = 1000) {
  const held = [];
  for (let capacity = 2e7; capacity >= least;) {
    const filter = attempt(() => Filter.create({ capacity: Math.floor(capacity), fpr: 0.01 }));
    if (filter === 'MEMORY')
      capacity /= 2;
    else
      held.push(filter);
  }
  return held;
}

const free = (held) => held.forEach((filter) => filter.free());
const ids = (n, from = 0) => Uint32Array.from({ length: n }, (_, i) => from + i);

test('what has no room is refused, and what was freed is there again', () => {
  for (let pass = 0; pass < 20; pass++) {
    const held = exhaust();
    assert.ok(held.length >= 2);
    free(held);
  }
  Filter.create({ capacity: 15e6, fpr: 0.01 }).free();
});

test('filters that nobody uses any more are freed', async () => {
  const gone = globalThis.gc;
  for (let i = 0; gone && i < 20; i++) {
    Filter.create({ capacity: 1e7, fpr: 0.01 });
    for (let turn = 0; turn < 3; turn++) {
      gone();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
});

test('each call works or is refused when memory ends, and the filter stays as it was', () => {
  const makers = [{ kind: 'chain', capacity: 1000 }, { kind: 'elastic', capacity: 1000 },
                  { kind: 'window', window: 5000 },
                  { kind: 'blocked', capacity: 50_000 }, { kind: 'cuckoo', capacity: 50_000, removable: true },
                  { kind: 'counting', capacity: 50_000, count: true }];
  for (const options of makers) {
    const filter = Filter.create({ fpr: 0.01, seed: 5, ...options });
    const held = exhaust();
    let done = 20_000;
    const refused = attempt(() => filter.addMany(ids(50_000)));
    if (refused) {
      assert.equal(refused, 'MEMORY', options.kind);
      assert.throws(() => filter.addMany(ids(50_000)), (error) => {
        done = error.done;
        return true;
      });
    }
    if (options.kind !== 'window')
      assert.ok(filter.hasMany(ids(done)).every((answer) => answer === 1), options.kind);
    const before = filter.digest();
    for (const call of [() => filter.copy(), () => filter.shrink(0.3), () => Filter.create({ like: filter })]) {
      const made = attempt(call);
      if (typeof made !== 'string')
        held.push(made);
    }
    const twin = attempt(() => Filter.create({ like: held[0] }));
    attempt(() => filter.merge(filter.copy()));
    assert.deepEqual(filter.digest(), before);
    free(held);
    if (typeof twin !== 'string')
      twin.free();
    assert.ok(Filter.fromBytes(filter.toBytes()).equals(filter));
    filter.free();
  }
});

test('bytes and long keys that have no room are refused', () => {
  const bytes = Filter.create({ capacity: 1e6, fpr: 0.01, seed: 1 }).toBytes();
  const small = Filter.create({ capacity: 100, fpr: 0.01 });
  const held = exhaust();
  refuses('MEMORY', () => Filter.fromBytes(bytes));
  refuses('MEMORY', () => small.add('x'.repeat(2e6)));
  refuses('MEMORY', () => small.addMany(['y', 'x'.repeat(2e6)]));
  assert.ok(small.has('y'));
  free(held);
  small.add('x'.repeat(2e6));
  assert.ok(small.has('x'.repeat(2e6)) && Filter.fromBytes(bytes).kind === 'blocked');
});

test('a builder that has no room is refused, and frees all', () => {
  for (let pass = 0; pass < 3; pass++) {
    const builder = new Builder({ fpr: 0.01, kind: 'ribbon' });
    const refused = attempt(() => {
      for (let i = 0; i < 60; i++)
        builder.addMany(ids(100_000, i * 100_000));
      return builder.finish();
    });
    assert.ok(['MEMORY', 'FULL'].includes(refused), `${refused}`);
    builder.free();
  }
  const filter = build(ids(100_000), { fpr: 0.01 });
  assert.ok(filter.hasMany(ids(100_000)).every((answer) => answer === 1));
});
