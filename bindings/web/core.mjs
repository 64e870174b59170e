/* core.mjs - the library as an instance of WebAssembly, its errors, and how it is loaded.
 *
 * Each instance, a Core, has a memory of its own.  Keys are copied once, to a place in it that
 * both sides know, the desk (perhaps_web.c).  No code of the caller's runs between that and the
 * call that reads them. */

/* ---- Errors -------------------------------------------------------------------------------- */

/* By the numbers of enum perhaps_error. */
const CODES = ['OK', 'ARGUMENT', 'UNSUPPORTED', 'MEMORY', 'FULL', 'COPIES', 'NOT_FOUND', 'READ_ONLY',
               'MISMATCH', 'SECRET', 'IO', 'FORMAT', 'VERSION', 'DAMAGED', 'LIMIT', 'LAYERS', 'VALUES',
               'JOURNAL', 'AHEAD', 'SET'];

/* What the library cannot do.  'code' names the error; of a call with many keys 'done' tells how
 * many were dealt with before it. */
export class PerhapsError extends Error {
  constructor(code, message) {
    super(message);
    this.name = 'PerhapsError';
    this.code = code;
    this.done = 0;
  }
}

const brokenError = () => new PerhapsError(
  'BROKEN', 'this instance of the library ended by a fault: call load() once more, and make new filters');

/* ---- The desk ------------------------------------------------------------------------------ */

/* Where things lie on it, and how much room there is: struct desk of perhaps_web.c. */
export const KEY_AT = 256, OFFSETS_AT = 4352, ANSWERS_AT = 37248, BATCH_AT = 70016;
const OPTIONS_AT = 0, TEXT_AT = 332160, MADE_AT = 336256, DONE_AT = 336260;
export const KEY_NBYTES = 4096, BATCH_NBYTES = 1 << 18, KEYS_MOST = 8192;
const OPTIONS_NBYTES = 256;

const OPTIONS = ['capacity', 'fpr', 'needs', 'preference', 'kind', 'base', 'hash', 'seed', 'hasSecret',
                 'hasNote', 'together', 'windowKeys', 'windowTime', 'low', 'high', 'others', 'valueBits', 'memory'];

const decoder = new TextDecoder();

/* One instance of the library. */
class Core {
  #memory;
  #random;
  #source = null; // what is read or written by the call that is running, and how far it is
  #at = 0;

  static async make(module) {
    const core = new Core();
    core.#random = globalThis.crypto ?? (await import('node:crypto')).webcrypto; // of Node 18
    const { exports } = await WebAssembly.instantiate(module, core.#imports(module));
    core.#begin(exports);
    return core;
  }

  #imports(module) {
    const imports = { perhaps: {
      entropy: (to, nbytes) => this.#entropy(to >>> 0, nbytes >>> 0),
      take: (to, nbytes) => this.#take(to >>> 0, nbytes >>> 0),
      give: (from, nbytes) => this.#give(from >>> 0, nbytes >>> 0),
    } };
    /* What else the C library may want is refused: there is no system here. */
    const NOSYS = 52;
    for (const { module: place, name } of WebAssembly.Module.imports(module))
      if (place !== 'perhaps')
        (imports[place] ??= {})[name] = () => NOSYS;
    return imports;
  }

  #begin(exports) {
    this.broken = false;
    this.at = 0;
    this.#memory = exports.memory;
    this.refresh();
    for (const [name, value] of Object.entries(exports))
      if (typeof value === 'function')
        this[name] = this.#guard(value);
    this.at = this.desk() >>> 0;
    this.refresh();
    this.kinds = this.#kinds();
    this.hashes = this.#hashes();
  }

  /* After a trap the memory may be half written, so nothing is called any more.  (Stacks that
   * overflow are RangeErrors.) */
  #break(cause) {
    this.broken = true;
    return Object.assign(brokenError(), { cause });
  }

  /* Most calls have few arguments, and are many.  All functions share these guards, so that no
   * engine inlines a function of WebAssembly into one: V8 11 (Node 20) does it where it can, saves
   * 30 ns a call, and crashes where a stack overflows in it. */
  #guard(call) {
    const few = 3;
    return call.length <= few ? this.#guardFew(call) : this.#guardMore(call);
  }

  #guardFew(call) {
    return (a, b, c) => {
      if (this.broken)
        throw brokenError();
      try {
        const result = call(a, b, c);
        if (this.bytes.length === 0)
          this.refresh();
        return result;
      } catch (error) {
        throw this.#break(error);
      }
    };
  }

  #guardMore(call) {
    return (a, b, c, d, e, f) => {
      if (this.broken)
        throw brokenError();
      try {
        const result = call(a, b, c, d, e, f);
        if (this.bytes.length === 0)
          this.refresh();
        return result;
      } catch (error) {
        throw this.#break(error);
      }
    };
  }

  /* Memory that has grown is another ArrayBuffer. */
  refresh() {
    this.bytes = new Uint8Array(this.#memory.buffer);
    this.view = new DataView(this.#memory.buffer);
    this.keyRoom = this.bytes.subarray(this.at + KEY_AT, this.at + KEY_AT + KEY_NBYTES);
  }

  #entropy(to, nbytes) {
    const IO = -10;
    try {
      this.#random.getRandomValues(new Uint8Array(this.#memory.buffer, to, nbytes));
      return 0;
    } catch {
      return IO;
    }
  }

  /* The library asks for no more bytes than there are, unless the caller took them away. */
  #take(to, nbytes) {
    const DAMAGED = -13;
    const piece = this.#source.subarray(this.#at, this.#at + nbytes);
    if (piece.length !== nbytes)
      return DAMAGED;
    new Uint8Array(this.#memory.buffer, to, nbytes).set(piece);
    this.#at += nbytes;
    return 0;
  }

  #give(from, nbytes) {
    this.#source.set(new Uint8Array(this.#memory.buffer, from, nbytes), this.#at);
    this.#at += nbytes;
    return 0;
  }

  /* Calls with 'bytes' to be read or written. */
  with(bytes, call) {
    this.#source = bytes;
    this.#at = 0;
    try {
      return call();
    } finally {
      this.#source = null;
    }
  }

  text(at) {
    const end = this.bytes.indexOf(0, at >>> 0);
    return decoder.decode(this.bytes.slice(at >>> 0, end));
  }

  deskText() {
    return this.text(this.at + TEXT_AT);
  }

  #kinds() {
    const kinds = [];
    while (this.kind(kinds.length))
      kinds.push(JSON.parse(this.deskText()));
    return kinds;
  }

  #hashes() {
    const names = [];
    for (let at; (at = this.hash_name(names.length)) !== 0;)
      names.push(this.text(at));
    return names;
  }

  error(number, text = this.text(this.strerror(number))) {
    return new PerhapsError(CODES[-number] ?? 'UNKNOWN', text);
  }

  /* Throws if the result of a call is an error; otherwise returns it. */
  check(result) {
    if (result < 0)
      throw this.error(result);
    return result;
  }

  /* Returns what a call has made. */
  made(result) {
    this.check(result);
    return this.view.getUint32(this.at + MADE_AT, true);
  }

  done() {
    return this.view.getUint32(this.at + DONE_AT, true);
  }

  putOptions(wishes) {
    const at = this.at + OPTIONS_AT;
    this.bytes.fill(0, at, at + OPTIONS_NBYTES);
    OPTIONS.forEach((name, i) => {
      if (name === 'fpr')
        this.view.setFloat64(at + 8 * i, wishes.fpr, true);
      else if (wishes[name])
        this.view.setBigUint64(at + 8 * i, BigInt(wishes[name]), true);
    });
    if (wishes.secret)
      this.bytes.set(wishes.secret, this.at + KEY_AT);
    if (wishes.note)
      this.bytes.set([...wishes.note, 0], this.at + TEXT_AT);
  }
}

/* ---- What lies in the memory of an instance ------------------------------------------------- */

/* Frees what nobody uses any more. */
const registry = new FinalizationRegistry(({ core: its, at, release }) => {
  if (!its.broken)
    its[release](at);
});

export class Held {
  #core;
  #at;
  #release;

  constructor(its, at, release) {
    this.#core = its;
    this.#at = at;
    this.#release = release;
    registry.register(this, { core: its, at, release }, this);
  }

  get core() {
    return this.#core;
  }

  get at() {
    if (!this.#at)
      throw new PerhapsError('FREED', 'this filter or builder was freed, or is finished');
    return this.#at;
  }

  free() {
    const at = this.#at;
    this.#at = 0;
    registry.unregister(this);
    if (at && !this.#core.broken)
      this.#core[this.#release](at);
  }
}

/* ---- Loading ------------------------------------------------------------------------------- */

export let core = null;
let loading = null;

async function fetchModule(url) {
  if (url.protocol === 'file:') {
    const { readFile } = await import('node:fs/promises');
    return WebAssembly.compile(await readFile(url));
  }
  const response = await fetch(url);
  if (!response.ok)
    throw new Error(`${url}: the server answers ${response.status}`);
  return WebAssembly.compile(await response.arrayBuffer());
}

/* A module of one function, with two instructions of SIMD128. */
const VECTORS = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8,
                              0, 65, 0, 253, 15, 253, 98, 11);

const usualUrl = () => WebAssembly.validate(VECTORS) ? new URL('perhaps-simd.wasm', import.meta.url)
                                                     : new URL('perhaps.wasm', import.meta.url);

async function moduleOf(source) {
  if (source === undefined)
    return fetchModule(usualUrl());
  if (typeof source === 'string' || source instanceof URL)
    return fetchModule(new URL(source, import.meta.url));
  return source instanceof WebAssembly.Module ? source : WebAssembly.compile(source);
}

/* Loads the library, once: the file perhaps-simd.wasm beside this one, or perhaps.wasm for an
 * engine without vectors; or 'source', its bytes, its URL or a WebAssembly.Module. */
export async function load(source) {
  if (core && !core.broken)
    return;
  loading ??= moduleOf(source).then(Core.make).then((made) => {
    core = made;
  }).finally(() => {
    loading = null;
  });
  await loading;
}

/* Returns the instance that new filters are made in. */
export function loaded() {
  if (!core)
    throw new PerhapsError('NOT_LOADED', 'the library is not loaded: await load() before');
  if (core.broken)
    throw brokenError();
  return core;
}
