/* perhaps.mjs - is this key in the set?  "Certainly not" (false), or "perhaps" (true).
 *
 *     import { load, Filter } from 'perhaps';
 *     await load();
 *     const seen = Filter.create({ capacity: 1_000_000, fpr: 0.001 });
 *     seen.add('http://example.com/');
 *     seen.has('http://example.com/');    // true
 *
 * Integers and their text are different keys: 42 is not '42'.
 *
 * The library itself is WebAssembly, in the files perhaps-simd.wasm and, for engines without
 * vectors, perhaps.wasm; core.mjs loads one of them. */
import { ANSWERS_AT, Held, KEYS_MOST, KEY_AT, PerhapsError, core, load, loaded } from './core.mjs';
import { PLAIN, checkKeys, countOf, eachBatch, putKey, withKey } from './keys.mjs';
import { takeOptions, typeError, whole } from './options.mjs';

export { PerhapsError, load };
export { remote } from './remote.mjs';

export const version = () => loaded().text(core.version());

/* The kinds of filters, in order of preference, and what each can do. */
export const kinds = () => loaded().kinds.map((kind) => ({ ...kind }));

/* What a filter would be, without making it. */
export function plan(options) {
  takeOptions(options, 'plan');
  core.check(core.plan());
  return JSON.parse(core.deskText());
}

/* ---- Many keys ----------------------------------------------------------------------------- */

/* Answers for many keys, where it may not be known how many. */
class Answers {
  #items;
  #n = 0;

  constructor(Type, count) {
    this.#items = new Type(count ?? KEYS_MOST);
  }

  /* Takes those of a batch from the desk. */
  take(its, count) {
    const Type = this.#items.constructor, n = this.#n + count;
    if (n > this.#items.length) {
      const more = new Type(2 * n);
      more.set(this.#items);
      this.#items = more;
    }
    this.#items.set(new Type(its.bytes.buffer, its.at + ANSWERS_AT, count), this.#n);
    this.#n = n;
  }

  all() {
    return this.#n === this.#items.length ? this.#items : this.#items.slice(0, this.#n);
  }
}

/* An error in the midst of a batch tells how many keys were dealt with before. */
function fail(its, result, before) {
  const error = its.error(result);
  error.done = before + its.done();
  throw error;
}

/* ---- Filters -------------------------------------------------------------------------------- */

const MAKER = Symbol('a filter is made by Filter.create(), Filter.fromBytes() or build()');

/* Returns the filter that a call has made. */
const wrap = (its, result) => new Filter(MAKER, its, its.made(result));

export class Filter {
  #held;
  #form;

  constructor(maker, its, at) {
    if (maker !== MAKER)
      throw new TypeError(MAKER.description);
    this.#held = new Held(its, at, 'free');
    this.#form = its.form(at);
  }

  /* Makes an empty filter; or with { like: filter } one that can be united with that. */
  static create(options) {
    const like = options?.like;
    if (like === undefined) {
      takeOptions(options, 'Filter.create');
      return wrap(core, core.create());
    }
    if (!(like instanceof Filter) || Object.keys(options).length > 1)
      throw new TypeError('like is a Filter, and stands alone');
    return wrap(like.#held.core, like.#held.core.create_like(like.#held.at));
  }

  /* Reads what toBytes(), the command line or another language wrote, and checks all of it. */
  static fromBytes(bytes, { secret } = {}) {
    const its = loaded();
    const source = bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : bytes;
    if (!(source instanceof Uint8Array))
      throw typeError('bytes', 'a Uint8Array or ArrayBuffer', bytes);
    if (secret !== undefined) {
      if (!(secret instanceof Uint8Array) || secret.length !== 16)
        throw typeError('secret', 'a Uint8Array of 16 bytes', secret);
      its.bytes.set(secret, its.at + KEY_AT);
    }
    return wrap(its, its.with(source, () => its.read(source.length, secret ? 1 : 0)));
  }

  toBytes() {
    const { core: its, at } = this.#held;
    const bytes = new Uint8Array(its.write_nbytes(at));
    its.check(its.with(bytes, () => its.write(at)));
    return bytes;
  }

  /* ---- One key ---- */

  /* What a call returns for a key.  A key without room on the desk takes a longer way. */
  #one(call, its, key) {
    const { at } = this.#held, nbytes = putKey(its, key, this.#form);
    return nbytes < 0 ? withKey(its, key, this.#form, (bytes, n) => call(at, bytes, n))
                      : call(at, its.at + KEY_AT, nbytes);
  }

  add(key) {
    const its = this.#held.core;
    its.check(this.#one(its.add, its, key));
  }

  /* Adds a key unless it is perhaps there already, and returns whether it was new. */
  addNew(key) {
    const its = this.#held.core;
    return its.check(this.#one(its.add_new, its, key)) === 1;
  }

  has(key) {
    const its = this.#held.core;
    return this.#one(its.has, its, key) === 1;
  }

  remove(key) {
    const its = this.#held.core;
    its.check(this.#one(its.remove, its, key));
  }

  count(key) {
    const its = this.#held.core;
    return its.check(this.#one(its.count, its, key));
  }

  /* Returns the value that was stored with a key; or undefined if it is certainly not there. */
  get(key) {
    const NOT_FOUND = -6, its = this.#held.core, value = this.#one(its.get, its, key);
    return value === NOT_FOUND ? undefined : its.check(value);
  }

  /* ---- Many keys ---- */

  /* Calls for each batch.  Returns the answers, if they have a type. */
  #many(call, keys, { keyBytes } = {}, Type = null) {
    const { core: its, at } = this.#held;
    checkKeys(keys, keyBytes);
    const answers = Type && new Answers(Type, countOf(keys, keyBytes));
    let done = 0;
    eachBatch(its, keys, keyBytes, this.#form, (bytes, keyNbytes, offsets, count) => {
      const result = its[call](at, bytes, keyNbytes, offsets, count);
      if (result < 0)
        fail(its, result, done);
      answers?.take(its, count);
      done += count;
    });
    return answers?.all();
  }

  addMany(keys, how) {
    this.#many('add_many', keys, how);
  }

  addNewMany(keys, how) {
    return this.#many('add_new_many', keys, how, Uint8Array);
  }

  hasMany(keys, how) {
    return this.#many('has_many', keys, how, Uint8Array);
  }

  removeMany(keys, how) {
    return this.#many('remove_many', keys, how, Uint8Array);
  }

  countMany(keys, how) {
    return this.#many('count_many', keys, how, Uint32Array);
  }

  /* Of a key that is certainly not there the value is -1. */
  getMany(keys, how) {
    return this.#many('get_many', keys, how, Int32Array);
  }

  /* ---- What it is ---- */

  stats() {
    this.#held.core.stats(this.#held.at);
    return JSON.parse(this.#held.core.deskText());
  }

  /* The same of each part, the oldest first: layers of a chain, generations of a window. */
  parts() {
    const { core: its, at } = this.#held, parts = [];
    while (its.part(at, parts.length))
      parts.push(JSON.parse(its.deskText()));
    return parts.reverse();
  }

  /* Returns the 16 bytes that this filter knows a key by: its place and its mark. */
  hash(key) {
    const its = this.#held.core;
    its.check(this.#one(its.hash, its, key));
    return its.bytes.slice(its.at + KEY_AT, its.at + KEY_AT + 16);
  }

  get keys() {
    return this.#held.core.keys(this.#held.at);
  }

  get kind() {
    return this.stats().kind;
  }

  /* What was done to keys before they came here, in the words of the command line. */
  get note() {
    return this.#held.core.text(this.#held.core.note(this.#held.at));
  }

  get fpr() {
    return this.stats().fpr;
  }

  /* The rate that the filter will have when it holds so many keys. */
  predictFpr(keys) {
    return this.#held.core.predict_fpr(this.#held.at, Number(whole(keys, 'keys', 0, 2 ** 48)));
  }

  clear() {
    this.#held.core.check(this.#held.core.clear(this.#held.at));
  }

  copy() {
    return wrap(this.#held.core, this.#held.core.clone(this.#held.at));
  }

  /* Returns a smaller filter of the same keys, with a rate of at most 'fpr'; 0: of this one. */
  shrink(fpr = 0) {
    if (typeof fpr !== 'number')
      throw typeError('fpr', 'a number such as 0.001', fpr);
    return wrap(this.#held.core, this.#held.core.shrink(this.#held.at, fpr));
  }

  /* Returns 16 bytes that are the same for filters that are equal, and otherwise differ. */
  digest() {
    const { core: its, at } = this.#held;
    its.digest(at);
    return its.bytes.slice(its.at + KEY_AT, its.at + KEY_AT + 16);
  }

  /* ---- Two filters ---- */

  #other(other) {
    if (!(other instanceof Filter))
      throw typeError('other', 'a Filter', other);
    if (other.#held.core !== this.#held.core)
      throw new TypeError('other is of another instance of the library: take its toBytes()');
    return other.#held.at;
  }

  #join(call, other) {
    const MISMATCH = -8, { core: its, at } = this.#held, its2 = this.#other(other);
    const result = its[call](at, its2);
    if (result === MISMATCH && its.difference(at, its2))
      throw its.error(result, `the filters differ: ${its.deskText()}: make both with the same, or one ` +
                              'as Filter.create({ like: other })');
    its.check(result);
    return this;
  }

  /* Adds the keys of 'other' to this filter. */
  merge(other) {
    return this.#join('merge', other);
  }

  /* Keeps the keys that 'other' has as well. */
  intersect(other) {
    return this.#join('intersect', other);
  }

  #joined(call, other) {
    this.#other(other);
    const copy = this.copy();
    try {
      return copy.#join(call, other);
    } catch (error) {
      copy.free();
      throw error;
    }
  }

  union(other) {
    return this.#joined('merge', other);
  }

  intersection(other) {
    return this.#joined('intersect', other);
  }

  equals(other) {
    const at = this.#other(other);
    return this.#held.core.equal(this.#held.at, at) === 1;
  }

  /* ---- Windows ---- */

  #time(call, now) {
    whole(now, 'now', 0, Number.MAX_SAFE_INTEGER);
    this.#held.core.check(this.#held.core[call](this.#held.at, Number(now)));
  }

  /* Tells a window the time, in milliseconds. */
  advance(now = Date.now()) {
    this.#time('advance', now);
  }

  setBack(now = Date.now()) {
    this.#time('set_back', now);
  }

  /* Begins a new generation of a window, and forgets the oldest. */
  rotate() {
    this.#held.core.check(this.#held.core.rotate(this.#held.at));
  }

  /* ---- The end ---- */

  /* Releases its memory now; otherwise that is done when nobody uses it any more. */
  free() {
    this.#held.free();
  }
}

/* ---- Filters of keys that are all known ------------------------------------------------------ */

/* A list of values, as numbers of 32 bits. */
function takeValues(values, valueBits) {
  const most = 2 ** valueBits - 1;
  return Uint32Array.from(values, (value) => Number(whole(value, 'an item of values', 0, most)));
}

export class Builder {
  #held;
  #form;
  #valueBits;

  constructor(options) {
    const memory = 2 ** 30;
    const wishes = takeOptions({ memory, ...options }, 'Builder');
    this.#form = wishes.high ? 1 : PLAIN;
    this.#valueBits = Number(wishes.valueBits ?? 0);
    this.#held = new Held(core, core.made(core.builder_create()), 'builder_free');
  }

  add(key) {
    this.addMany([key]);
  }

  /* Gives it keys, and a value for each if it has valueBits. */
  addMany(keys, { keyBytes, values } = {}) {
    const { core: its, at } = this.#held;
    checkKeys(keys, keyBytes);
    const all = values === undefined ? null : takeValues(values, this.#valueBits);
    let done = 0;
    if (all && all.length !== (countOf(keys, keyBytes) ?? (keys = [...keys]).length))
      throw new RangeError(`there are ${all.length} values, and another number of keys`);
    eachBatch(its, keys, keyBytes, this.#form, (bytes, keyNbytes, offsets, count) => {
      if (all)
        new Uint32Array(its.bytes.buffer, its.at + ANSWERS_AT, count).set(
          all.subarray(done, done + count));
      its.check(its.builder_add(at, bytes, keyNbytes, offsets, count, all ? 1 : 0));
      done += count;
    });
  }

  /* Gives it keys that are known not to be in: kind 'against'. */
  addOthers(keys, { keyBytes } = {}) {
    const { core: its, at } = this.#held;
    checkKeys(keys, keyBytes);
    eachBatch(its, keys, keyBytes, this.#form, (...batch) => {
      its.check(its.builder_add_others(at, ...batch));
    });
  }

  /* How many keys were given, repeated ones each time. */
  get keys() {
    return this.#held.core.builder_keys(this.#held.at);
  }

  /* Returns the filter, and ends the builder. */
  finish() {
    const { core: its, at } = this.#held;
    try {
      return wrap(its, its.builder_finish(at));
    } finally {
      this.free();
    }
  }

  free() {
    this.#held.free();
  }
}

/* For 'using', where there is that. */
if (Symbol.dispose)
  for (const type of [Filter, Builder])
    Object.defineProperty(type.prototype, Symbol.dispose, { value: type.prototype.free });

/* Returns the least number of bits that hold each of the values. */
function bitsOf(values) {
  const largest = values.reduce((most, value) => Math.max(most, value), 1);
  return Math.floor(Math.log2(largest)) + 1;
}

/* Returns a filter of all keys, which is smaller than one that keys are added to later.  With
 * 'against', keys that are known not to be among these, it makes no error on them.  With
 * 'values' it stores a number with each key: get(). */
export function build(keys, { against, values, keyBytes, ...options } = {}) {
  const wishes = { ...options };
  if (values !== undefined) {
    values = [...values];
    wishes.kind ??= 'ribbon';
    wishes.valueBits ??= Math.min(bitsOf(values), 16);
  }
  if (against !== undefined) {
    wishes.kind ??= 'against';
    wishes.others ??= countOf(against, keyBytes) ?? 0;
  }
  const builder = new Builder(wishes);
  try {
    builder.addMany(keys, { keyBytes, values });
    if (against !== undefined)
      builder.addOthers(against, { keyBytes });
    return builder.finish();
  } finally {
    builder.free();
  }
}
