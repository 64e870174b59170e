/* options.mjs - an object of options as those of the library, on its desk.
 *
 * Each option has a row in a table, with the function that reads it.  What several of them say
 * together is looked at when all are read. */
import { core, loaded } from './core.mjs';

const CAN = { removable: 1, count: 2, grow: 4, static: 8, forget: 64, threads: 128 };
const CAPACITY_MAX = 2 ** 48;

export function typeError(name, what, value) {
  const is = value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value;
  return new TypeError(`${name} is ${what}, and not ${is}`);
}

export function whole(value, name, least, most) {
  if (typeof value !== 'number' && typeof value !== 'bigint')
    throw typeError(name, 'a whole number', value);
  if (typeof value === 'number' && !Number.isSafeInteger(value))
    throw new RangeError(`${name} is ${value}, and has to be a whole number`);
  if (value < least || value > most)
    throw new RangeError(`${name} is ${value}, and has to be from ${least} to ${most}`);
  return value;
}

function oneOf(value, name, names) {
  if (!names.includes(value))
    throw new RangeError(`${name} '${value}' is none of '${names.join("', '")}'`);
  return names.indexOf(value);
}

const flag = (value, name) => {
  if (typeof value !== 'boolean')
    throw typeError(name, 'true or false', value);
  return value;
};

const UNITS = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 };

/* A window of so many keys is a number; one of time a text. */
function takeWindow(value, wishes) {
  wishes.needs |= CAN.forget;
  if (typeof value !== 'string') {
    wishes.windowKeys = whole(value, 'window', 1, CAPACITY_MAX);
    return;
  }
  const [, number, unit] = /^([0-9.]+)(ms|s|m|h|d|w)$/.exec(value) ?? [];
  const time = Math.floor(Number(number) * UNITS[unit]);
  if (!(time >= 1 && time < 1e18))
    throw new RangeError("window is a number of keys, or a time such as '90s', '15m', '24h' or '7d'");
  wishes.windowTime = time;
}

function takeSecret(value, wishes) {
  if (value === false)
    return;
  if (value !== true && !(value instanceof Uint8Array))
    throw typeError('secret', 'true, or a Uint8Array of 16 bytes', value);
  if (value !== true && value.length !== 16)
    throw new RangeError(`secret has ${value.length} bytes, and needs 16`);
  wishes.sip = true;
  if (value !== true) {
    wishes.hasSecret = 1;
    wishes.secret = value;
  }
}

function takeNote(value, wishes) {
  const most = 95;
  if (typeof value !== 'string')
    throw typeError('note', 'a string', value);
  const note = new TextEncoder().encode(value);
  if (note.length > most || note.some((byte) => byte < 32 || byte === 127))
    throw new RangeError(`note has up to ${most} bytes, and no control characters`);
  wishes.note = note;
  wishes.hasNote = 1;
}

function takeIntegers(value, wishes) {
  const most = 2n ** 64n - 1n;
  if (typeof value !== 'object' || value === null)
    throw typeError('integers', 'a range such as { low: 0, high: 999 }', value);
  wishes.low = whole(value.low, 'integers.low', 0, most);
  wishes.high = whole(value.high, 'integers.high', 1, most);
}

function takeFpr(value, wishes) {
  if (typeof value !== 'number')
    throw typeError('fpr', 'a number such as 0.001', value);
  if (!(value >= 1e-15 && value < 1))
    throw new RangeError(`fpr is ${value}, and has to be from 1e-15 to below 1`);
  wishes.fpr = value;
}

const TAKE = {
  capacity: (v, w) => { w.capacity = whole(v, 'capacity', 0, CAPACITY_MAX); },
  fpr: takeFpr,
  removable: (v, w) => { w.needs |= flag(v, 'removable') ? CAN.removable : 0; },
  grow: (v, w) => { w.grow = flag(v, 'grow'); },
  window: takeWindow,
  secret: takeSecret,
  count: (v, w) => { w.counts = flag(v, 'count'); },
  kind: (v, w) => { w.kind = 1 + oneOf(v, 'kind', core.kinds.map((kind) => kind.name)); },
  base: (v, w) => { w.base = 1 + oneOf(v, 'base', core.kinds.map((kind) => kind.name)); },
  seed: (v, w) => { w.seed = whole(v, 'seed', 1, 2n ** 64n - 1n); },
  hash: (v, w) => { w.hash = oneOf(v, 'hash', core.hashes); },
  prefer: (v, w) => { w.preference = oneOf(v, 'prefer', ['balanced', 'fast', 'compact']); },
  note: takeNote,
  integers: takeIntegers,
  together: (v, w) => { w.together = flag(v, 'together') ? 1 : 0; },
  static: (v, w) => { w.needs |= flag(v, 'static') ? CAN.static : 0; },
  threads: (v, w) => { w.needs |= flag(v, 'threads') ? CAN.threads : 0; },
  others: (v, w) => { w.others = whole(v, 'others', 0, CAPACITY_MAX); },
  valueBits: (v, w) => { w.valueBits = whole(v, 'valueBits', 0, 16); },
  memory: (v, w) => { w.memory = whole(v, 'memory', 0, Number.MAX_SAFE_INTEGER); },
};

/* The options that all take, and those that only some do. */
const EXTRA = { static: ['plan'], threads: ['plan'], others: ['plan', 'Builder'],
                valueBits: ['plan', 'Builder'], memory: ['Builder'] };

const kindNumber = (name) => 1 + core.kinds.findIndex((kind) => kind.name === name);

/* The kind that takes any number of copies of a key, where no kind is named. */
function countBy(wishes) {
  const counting = kindNumber('counting'), chain = kindNumber('chain');
  wishes.needs |= CAN.count;
  if (wishes.base || (wishes.kind && wishes.kind !== chain))
    return;
  if (wishes.needs & CAN.forget) {
    wishes.base = counting;
  } else if (wishes.needs & CAN.grow) {
    wishes.base = counting;
    wishes.kind = chain;
  } else {
    wishes.kind = counting;
  }
}

/* Windows say themselves how many keys they remember; one of time begins with so many, and
 * grows. */
function complete(wishes, asker) {
  const begin = 10_000;
  if (!wishes.capacity)
    wishes.capacity = wishes.windowKeys ||
                      (wishes.windowTime || wishes.needs & CAN.grow ? begin : 0);
  if (!wishes.capacity && !wishes.high && asker !== 'Builder')
    throw new TypeError(`${asker} needs capacity, how many keys it is for, or grow: true`);
  if (wishes.fpr === undefined && !wishes.high)
    throw new TypeError(`${asker} needs fpr, the false-positive rate not to exceed, such as fpr: 0.001`);
  if (wishes.sip)
    wishes.hash = core.hashes.indexOf('sip');
  return { ...wishes, fpr: wishes.fpr ?? 0 };
}

/* Puts options on the desk. */
export function takeOptions(options, asker) {
  const wishes = { needs: asker === 'Builder' ? CAN.static : 0 };
  loaded();
  if (typeof options !== 'object' || options === null)
    throw typeError('options', 'an object such as { capacity: 1000, fpr: 0.01 }', options);
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(TAKE, name) || (EXTRA[name] && !EXTRA[name].includes(asker)))
      throw new TypeError(`${asker} has no option '${name}'`);
    if (value !== undefined && value !== null)
      TAKE[name](value, wishes);
  }
  if (wishes.grow && !wishes.windowTime)
    wishes.needs |= CAN.grow;
  if (wishes.counts)
    countBy(wishes);
  core.putOptions(complete(wishes, asker));
  return wishes;
}
