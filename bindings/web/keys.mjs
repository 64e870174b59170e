/* keys.mjs - values of JavaScript as keys: the bytes that the library hashes.
 *
 * A string is its UTF-8; a Uint8Array its bytes; an integer, of type number or bigint, is 8
 * bytes, little-endian, in two's complement.  In a bitmap, whose keys are integers, it is that
 * integer.  Nothing else is a key.  If the note of the filter says that case was ignored, the
 * letters A to Z of all but integers are made small. */
import { BATCH_AT, BATCH_NBYTES, KEYS_MOST, KEY_AT, KEY_NBYTES, OFFSETS_AT } from './core.mjs';
import { typeError, whole } from './options.mjs';

/* How keys become bytes: web_form(). */
export const PLAIN = 0, INTEGERS = 1, FOLDED = 2;

const NUMBER_NBYTES = 20; // of the longest integer in decimal digits, with its sign
const INTEGER_NBYTES = 8;
const SHORT = 16; // up to so many characters a loop is faster than TextEncoder

const encoder = new TextEncoder();

function refuse(key) {
  const is = key === null ? 'null' : key?.constructor?.name ?? typeof key;
  throw new TypeError(`a key is a string, Uint8Array, number or bigint, and not ${is}: ` +
                      'make one of these of it first');
}

/* ---- One key, written to 'at' -------------------------------------------------------------- */

/* These return the end of what they wrote, for which there has to be room. */
function writeText(core, text, at) {
  const { bytes } = core, n = text.length;
  if (n <= SHORT) {
    let i = 0;
    for (let c; i < n && (c = text.charCodeAt(i)) < 128; i++)
      bytes[at + i] = c;
    if (i === n)
      return at + n;
  }
  const room = at === core.at + KEY_AT ? core.keyRoom : bytes.subarray(at, at + 3 * n);
  const { written } = encoder.encodeInto(text, room);
  if (written !== n && /\p{Surrogate}/u.test(text))
    throw new TypeError('a text as a key has half a surrogate pair, which has no UTF-8');
  return at + written;
}

/* Numbers of 64 bits are written as two halves. */
function writeNumber(core, number, at) {
  const half = 2 ** 32, low = number | 0, small = low === number;
  if (!small && !Number.isSafeInteger(number))
    throw new TypeError(`a number as a key is an integer of at most 53 bits, and not ${number}: ` +
                        'make a string or bigint of it first');
  core.view.setInt32(at, low, true);
  core.view.setInt32(at + 4, small ? low >> 31 : Math.floor(number / half), true);
  return at + INTEGER_NBYTES;
}

function checkBigint(number) {
  if (number < -(2n ** 63n) || number >= 2n ** 64n)
    throw new RangeError('a bigint as a key has 64 bits, from -2n**63n to 2n**64n - 1n: ' +
                         'use its text for larger ones');
}

function writeBigint(core, number, at) {
  checkBigint(number);
  core.view.setBigUint64(at, BigInt.asUintN(64, number), true);
  return at + INTEGER_NBYTES;
}

/* Integers of a bitmap are decimal text. */
function writeDigits(core, number, at) {
  if (typeof number === 'number' && !Number.isSafeInteger(number))
    return writeNumber(core, number, at);
  checkBigint(number);
  return writeText(core, String(number), at);
}

function fold(core, from, end) {
  const { bytes } = core, A = 65, Z = 90, small = 32;
  for (let i = from; i < end; i++)
    if (bytes[i] >= A && bytes[i] <= Z)
      bytes[i] += small;
}

const asBytes = (key) => key instanceof ArrayBuffer ? new Uint8Array(key) : key;

function writeKey(core, key, at, form) {
  if (typeof key === 'number')
    return form === INTEGERS ? writeDigits(core, key, at) : writeNumber(core, key, at);
  if (typeof key === 'bigint')
    return form === INTEGERS ? writeDigits(core, key, at) : writeBigint(core, key, at);
  let end;
  if (typeof key === 'string') {
    end = writeText(core, key, at);
  } else {
    core.bytes.set(asBytes(key), at);
    end = at + asBytes(key).length;
  }
  if (form === FOLDED)
    fold(core, at, end);
  return end;
}

/* Returns how many bytes a key may take, or throws for what is none. */
function roomFor(key) {
  if (typeof key === 'string')
    return 3 * key.length;
  if (typeof key === 'number' || typeof key === 'bigint')
    return NUMBER_NBYTES;
  if (key instanceof Uint8Array)
    return key.length;
  return key instanceof ArrayBuffer ? key.byteLength : refuse(key);
}

/* Returns memory for so many bytes, to be released. */
function allocate(core, nbytes) {
  const MEMORY = -3;
  const at = core.allocate(nbytes) >>> 0;
  if (!at)
    throw core.error(MEMORY);
  return at;
}

/* Writes a key to its place on the desk.  Returns how many bytes it has; or -1 if it has no room
 * there. */
export function putKey(core, key, form) {
  const at = core.at + KEY_AT;
  return roomFor(key) <= KEY_NBYTES ? writeKey(core, key, at, form) - at : -1;
}

/* Calls with the place of a key and the number of its bytes. */
export function withKey(core, key, form, call) {
  const room = roomFor(key);
  const at = allocate(core, room);
  try {
    return call(at, writeKey(core, key, at, form) - at);
  } finally {
    core.release(at);
  }
}

/* ---- Many keys ----------------------------------------------------------------------------- */

/* A batch on the desk is what visit(bytes, keyNbytes, offsets, count) gets, in the order in which
 * the library's calls take it. */

/* Keys of one length, one after the other. */
function eachPacked(core, packed, keyBytes, form, visit) {
  const most = Math.min(KEYS_MOST, Math.floor(BATCH_NBYTES / keyBytes));
  const at = core.at + BATCH_AT;
  for (let from = 0; from < packed.length; from += most * keyBytes) {
    const piece = packed.subarray(from, from + most * keyBytes);
    core.bytes.set(piece, at);
    if (form === FOLDED)
      fold(core, at, at + piece.length);
    visit(at, keyBytes, 0, piece.length / keyBytes);
  }
}

/* Integers of up to 32 bits become those of 64. */
function eachSmall(core, array, visit) {
  const at = core.at + BATCH_AT;
  for (let from = 0; from < array.length; from += KEYS_MOST) {
    const n = Math.min(KEYS_MOST, array.length - from);
    const halves = new Int32Array(core.bytes.buffer, at, 2 * n);
    for (let i = 0; i < n; i++) {
      const value = array[from + i];
      halves[2 * i] = value;
      halves[2 * i + 1] = value < 0 ? -1 : 0;
    }
    visit(at, INTEGER_NBYTES, 0, n);
  }
}

/* A key that has no room on the desk is a batch of its own. */
function visitLong(core, key, form, visit) {
  withKey(core, key, form, (at, nbytes) => visit(at, nbytes, 0, 1));
}

/* Texts of ASCII, as most are, are joined: TextEncoder writes them at once in a third of the
 * time.  Returns how many keys are on the desk; 0 if these are others, or few. */
function joinTexts(core, keys, from, most, offsets, form) {
  const few = 8, at = core.at + BATCH_AT;
  let n = 0, nbytes = 0;
  for (; n < most; offsets[++n] = nbytes) {
    const key = keys[from + n];
    if (typeof key !== 'string' || nbytes + key.length > BATCH_NBYTES)
      break;
    nbytes += key.length;
  }
  if (n < few)
    return 0;
  const text = keys.slice(from, from + n).join('');
  const { written } = encoder.encodeInto(text, core.bytes.subarray(at, at + BATCH_NBYTES));
  if (written !== nbytes || text.length !== nbytes)
    return 0;
  if (form === FOLDED)
    fold(core, at, at + nbytes);
  return n;
}

/* Writes keys of any types, one after the other.  Returns how many had room. */
function writeKeys(core, keys, from, most, offsets, form) {
  const begin = core.at + BATCH_AT, limit = begin + BATCH_NBYTES;
  let at = begin, n = 0;
  for (; n < most; offsets[++n] = at - begin) {
    const key = keys[from + n];
    if (at + roomFor(key) > limit)
      break;
    at = writeKey(core, key, at, form);
  }
  return n;
}

/* Keys of an array-like, from number 'from' to before 'end', where batches end as they are
 * full. */
function eachListed(core, keys, from, end, form, visit) {
  while (from < end) {
    const offsets = new Uint32Array(core.bytes.buffer, core.at + OFFSETS_AT, KEYS_MOST + 1);
    const most = Math.min(end - from, KEYS_MOST);
    offsets[0] = 0;
    const n = joinTexts(core, keys, from, most, offsets, form) ||
              writeKeys(core, keys, from, most, offsets, form);
    if (n)
      visit(core.at + BATCH_AT, 0, core.at + OFFSETS_AT, n);
    else
      visitLong(core, keys[from], form, visit);
    from += n || 1;
  }
}

/* Whatever else can be iterated over is asked for some keys at a time: what it does meanwhile
 * does not meet a batch. */
function eachIterated(core, keys, form, visit) {
  const some = 4096;
  let list = [];
  const flush = () => {
    eachListed(core, list, 0, list.length, form, visit);
    list = [];
  };
  for (const key of keys)
    if (list.push(key) === some)
      flush();
  flush();
}

const isSmall = (keys) => keys instanceof Int32Array || keys instanceof Uint32Array ||
  keys instanceof Int16Array || keys instanceof Uint16Array || keys instanceof Int8Array;

const isWide = (keys) => keys instanceof BigUint64Array || keys instanceof BigInt64Array;

/* Returns how many keys there are, or undefined if only iterating tells. */
export function countOf(keys, keyBytes) {
  if (keyBytes !== undefined)
    return keys.length / keyBytes;
  return Array.isArray(keys) || ArrayBuffer.isView(keys) ? keys.length : undefined;
}

function checkPacked(keys, keyBytes) {
  if (!(keys instanceof Uint8Array))
    throw typeError('keys with keyBytes', 'a Uint8Array', keys);
  whole(keyBytes, 'keyBytes', 1, BATCH_NBYTES);
  if (keys.length % keyBytes)
    throw new RangeError(`${keys.length} bytes are no whole number of keys of ${keyBytes} bytes`);
}

/* Throws for what are no keys: before anything is done with them. */
export function checkKeys(keys, keyBytes) {
  if (keyBytes !== undefined)
    checkPacked(keys, keyBytes);
  else if (typeof keys === 'string' || keys instanceof Uint8Array)
    throw new TypeError('keys are many: a single string or Uint8Array is one key, unless keyBytes ' +
                        'tells how long the keys in it are');
  else if (typeof keys?.[Symbol.iterator] !== 'function')
    throw typeError('keys', 'an array, or anything iterable', keys);
}

/* Brings all keys to the desk, batch by batch. */
export function eachBatch(core, keys, keyBytes, form, visit) {
  if (keyBytes !== undefined)
    eachPacked(core, keys, keyBytes, form, visit);
  else if (isSmall(keys) && form !== INTEGERS)
    eachSmall(core, keys, visit);
  else if (isWide(keys) && form !== INTEGERS)
    eachPacked(core, new Uint8Array(keys.buffer, keys.byteOffset, keys.byteLength), INTEGER_NBYTES,
               PLAIN, visit);
  else if (Array.isArray(keys) || ArrayBuffer.isView(keys))
    eachListed(core, keys, 0, keys.length, form, visit);
  else
    eachIterated(core, keys, form, visit);
}
