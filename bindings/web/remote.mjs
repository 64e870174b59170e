/* remote.mjs - a filter file on a web server, asked without loading it.
 *
 *     const far = await remote('https://host/names.perhaps');
 *     await far.has('ada');
 *
 * The library tells which ranges of the file it needs (perhaps_remote.h); here each is one
 * fetch() with Range, some at once.  All answers must be of one file: of one size, and with one
 * ETag or Last-Modified. */
import { ANSWERS_AT, BATCH_AT, BATCH_NBYTES, Held, KEY_AT, OFFSETS_AT, PerhapsError, loaded }
  from './core.mjs';
import { checkKeys, eachBatch } from './keys.mjs';
import { typeError, whole } from './options.mjs';

const CONNECTIONS = 6, CONNECTIONS_MOST = 32;
const CHANGED = 'the file was changed meanwhile: open it again';

/* ---- One range ----------------------------------------------------------------------------- */

const io = (url, text, cause) => Object.assign(new PerhapsError('IO', `${url}: ${text}`), { cause });

function statusText(status) {
  if (status === 200)
    return 'the server sends whole files, not ranges of them (Range): load it, and use Filter.fromBytes()';
  if (status === 404 || status === 410)
    return `the server does not have it (status ${status})`;
  if (status === 401 || status === 403)
    return `the server refuses it (status ${status})`;
  if (status === 416)
    return 'the file is empty, or was made shorter meanwhile (status 416)';
  return `the server answered with status ${status}`;
}

/* Returns what an answer with status 206 says of the file, or throws. */
function saidBy(url, response) {
  const range = response.headers.get('Content-Range');
  if (range === null)
    throw io(url, 'the answer has no Content-Range; of another origin the server has to show it: ' +
                  'Access-Control-Expose-Headers: Content-Range, ETag');
  const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(range)?.map(Number) ?? [];
  const tag = response.headers.get('ETag') ?? response.headers.get('Last-Modified') ?? '';
  return { first, last, total, tag };
}

/* ---- Batches of keys ----------------------------------------------------------------------- */

/* Copies all keys, batch by batch: while bytes are on their way, the desk is used by others. */
function copied(its, keys, keyBytes, form) {
  const batches = [];
  eachBatch(its, keys, keyBytes, form, (at, keyNbytes, offsetsAt, count) => {
    const offsets = offsetsAt
      ? new Uint32Array(its.bytes.buffer, offsetsAt, count + 1).slice() : null;
    const nbytes = offsets ? offsets[count] : keyNbytes * count;
    batches.push({ bytes: its.bytes.slice(at, at + nbytes), keyNbytes, offsets, count });
  });
  return batches;
}

/* Calls with a batch in memory. */
function withBatch(its, batch, call) {
  const long = batch.bytes.length > BATCH_NBYTES;
  const at = long ? allocate(its, batch.bytes.length) : its.at + BATCH_AT;
  its.bytes.set(batch.bytes, at);
  if (batch.offsets)
    new Uint32Array(its.bytes.buffer, its.at + OFFSETS_AT, batch.count + 1).set(batch.offsets);
  try {
    return call(at, batch.keyNbytes, batch.offsets ? its.at + OFFSETS_AT : 0, batch.count);
  } finally {
    if (long)
      its.release(at);
  }
}

function allocate(its, nbytes) {
  const MEMORY = -3, at = its.allocate(nbytes) >>> 0;
  if (!at)
    throw its.error(MEMORY);
  return at;
}

/* ---- The file ------------------------------------------------------------------------------- */

const MAKER = Symbol('a remote filter is made by await remote(url)');

class Remote {
  #held;
  #url;
  #how;
  #file = null; // what the first answer said
  #last = Promise.resolve(); // the question before
  #form = 0;

  constructor(maker, its, at, url, how) {
    if (maker !== MAKER)
      throw new TypeError(MAKER.description);
    this.#held = new Held(its, at, 'remote_free');
    this.#url = url;
    this.#how = how;
  }

  /* Opens the file: for remote() below. */
  async open() {
    await this.#bring();
    this.#form = this.#held.core.remote_form(this.#held.at);
    return this;
  }

  /* ---- Ranges ---- */

  async #get(at, nbytes) {
    const headers = { ...this.#how.headers, Range: `bytes=${at}-${at + nbytes - 1}` };
    try {
      return await this.#how.fetch(this.#url, { headers });
    } catch (error) {
      const text = error?.cause?.message ?? error?.message ?? String(error);
      throw io(this.#url, `cannot be fetched: ${text} (of another origin the server has to ` +
                          'allow it: Access-Control-Allow-Origin)', error);
    }
  }

  #know(said, at, nbytes) {
    const end = Math.min(at + nbytes, said.total);
    if (!(said.first === at && said.last + 1 === end))
      throw io(this.#url, 'the server sent another range than it was asked for (Content-Range)');
    if (this.#file && (this.#file.total !== said.total || this.#file.tag !== said.tag))
      throw new PerhapsError('CHANGED', `${this.#url}: ${CHANGED}`);
    this.#file ??= said;
    return end - at;
  }

  /* Returns the bytes of a range; fewer, if the file ends before. */
  async #range(at, nbytes) {
    const response = await this.#get(at, nbytes);
    if (response.status !== 206) {
      response.body?.cancel().catch(() => {});
      throw io(this.#url, statusText(response.status));
    }
    const length = this.#know(saidBy(this.#url, response), at, nbytes);
    let bytes;
    try {
      bytes = new Uint8Array(await response.arrayBuffer());
    } catch (error) {
      throw io(this.#url, 'the answer was cut short', error);
    }
    if (bytes.length !== length)
      throw io(this.#url, `the answer has ${bytes.length} bytes, and not ${length}`);
    return bytes;
  }

  #take(number, bytes) {
    const its = this.#held.core, room = allocate(its, bytes.length || 1);
    try {
      its.bytes.set(bytes, room);
      its.check(its.remote_take(this.#held.at, number, room, bytes.length));
    } finally {
      its.release(room);
    }
  }

  async #fetchRange(number) {
    const its = this.#held.core;
    its.remote_range(this.#held.at, number);
    const at = its.view.getFloat64(its.at, true), nbytes = its.view.getFloat64(its.at + 8, true);
    const bytes = await this.#range(at, nbytes);
    its.check(its.remote_size(this.#held.at, this.#file.total));
    this.#take(number, bytes);
  }

  /* Brings the ranges of a round, some at once.  The first answer tells which file it is. */
  async #round(count) {
    let next = 0;
    const work = async () => {
      while (next < count)
        await this.#fetchRange(next++);
    };
    const many = this.#file ? Math.min(count, this.#how.connections) : 1;
    const ends = await Promise.allSettled(Array.from({ length: many }, work));
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed)
      throw failed.reason;
  }

  async #bring() {
    const its = this.#held.core;
    for (let count; (count = its.remote_needs(this.#held.at)) > 0;) {
      await this.#round(count);
      its.check(its.remote_next(this.#held.at));
    }
  }

  /* ---- Questions ---- */

  /* Questions are asked one after the other, also after one that failed. */
  #after(call) {
    const mine = this.#last.then(call);
    this.#last = mine.catch(() => {});
    return mine;
  }

  /* A batch may be too much for one question. */
  async #askBatch(batch, answers, before) {
    const its = this.#held.core;
    for (let first = 0, asked; first < batch.count; first += asked) {
      its.check(withBatch(its, batch, (bytes, keyNbytes, offsets, count) =>
        its.remote_ask(this.#held.at, bytes, keyNbytes, offsets, count, first)));
      asked = its.done();
      await this.#bring();
      its.check(its.remote_answers(this.#held.at));
      const from = its.at + ANSWERS_AT;
      answers.set(its.bytes.subarray(from, from + asked), before + first);
    }
  }

  /* Returns a Uint8Array with a 1 for each key that is perhaps there. */
  async hasMany(keys, { keyBytes } = {}) {
    checkKeys(keys, keyBytes);
    const batches = copied(this.#held.core, keys, keyBytes, this.#form);
    const answers = new Uint8Array(batches.reduce((sum, batch) => sum + batch.count, 0));
    return this.#after(async () => {
      let done = 0;
      for (const batch of batches) {
        await this.#askBatch(batch, answers, done);
        done += batch.count;
      }
      return answers;
    });
  }

  async has(key) {
    return (await this.hasMany([key]))[0] === 1;
  }

  /* ---- What it is ---- */

  /* What the header of the file tells: nothing is measured. */
  stats() {
    const its = this.#held.core;
    its.check(its.remote_stats(this.#held.at));
    return JSON.parse(its.deskText());
  }

  get keys() {
    return this.stats().keys;
  }

  get kind() {
    return this.stats().kind;
  }

  get note() {
    return this.#held.core.text(this.#held.core.remote_note(this.#held.at));
  }

  /* The size of the file, in bytes. */
  get nbytes() {
    return this.#file.total;
  }

  /* Releases its memory.  A question that is on its way fails. */
  close() {
    this.#held.free();
  }
}

if (Symbol.dispose)
  Object.defineProperty(Remote.prototype, Symbol.dispose, { value: Remote.prototype.close });

/* Opens a filter file on a web server by its header. */
export async function remote(url, { fetch = globalThis.fetch, headers = {}, check = false, secret,
                                    connections = CONNECTIONS } = {}) {
  const its = loaded();
  if (typeof url !== 'string' && !(url instanceof URL))
    throw typeError('url', 'a string or URL', url);
  if (typeof fetch !== 'function')
    throw typeError('fetch', 'a function such as globalThis.fetch', fetch);
  whole(connections, 'connections', 1, CONNECTIONS_MOST);
  if (secret !== undefined && !(secret instanceof Uint8Array && secret.length === 16))
    throw typeError('secret', 'a Uint8Array of 16 bytes', secret);
  if (secret)
    its.bytes.set(secret, its.at + KEY_AT);
  const at = its.made(its.remote_new(check ? 1 : 0, secret ? 1 : 0));
  const how = { fetch: (...given) => fetch(...given), headers: Object.fromEntries(new Headers(headers)),
                connections: Number(connections) };
  const made = new Remote(MAKER, its, at, String(url), how);
  try {
    return await made.open();
  } catch (error) {
    made.close();
    throw error;
  }
}
