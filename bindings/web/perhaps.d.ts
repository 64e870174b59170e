/* Types of perhaps.mjs. */

/** A string is its UTF-8; bytes are themselves; an integer, from -2^63 to 2^64 - 1, is 8 bytes. */
export type Key = string | Uint8Array | ArrayBuffer | number | bigint;

/** Typed arrays have integers for keys; a Uint8Array has keys of `keyBytes` bytes each. */
export type Keys = Iterable<Key> | Uint8Array;

export interface Many {
  /** The keys lie in a Uint8Array, one after the other, of so many bytes each. */
  keyBytes?: number;
}

export type KindName = 'blocked' | 'strided' | 'cuckoo' | 'bloom' | 'elastic' | 'chain' | 'counting'
  | 'window' | 'ribbon' | 'against' | 'bitmap';
export type HashName = 'xxh3' | 'xxh3-64' | 'sip' | 'none' | 'none-64' | 'integer';
export type ErrorCode = 'ARGUMENT' | 'UNSUPPORTED' | 'MEMORY' | 'FULL' | 'COPIES' | 'NOT_FOUND'
  | 'READ_ONLY' | 'MISMATCH' | 'SECRET' | 'IO' | 'FORMAT' | 'VERSION' | 'DAMAGED' | 'LIMIT' | 'LAYERS'
  | 'VALUES' | 'JOURNAL' | 'AHEAD' | 'SET' | 'NOT_LOADED' | 'FREED' | 'BROKEN' | 'CHANGED' | 'UNKNOWN';

export class PerhapsError extends Error {
  code: ErrorCode;
  /** Of a call with many keys: how many were dealt with before. */
  done: number;
}

/** Loads the library: perhaps-simd.wasm or perhaps.wasm beside the module; or its bytes, its URL, or a module. */
export function load(source?: string | URL | BufferSource | WebAssembly.Module): Promise<void>;
export function version(): string;

export interface Kind {
  name: KindName;
  summary: string;
  removable: boolean;
  count: boolean;
  grow: boolean;
  static: boolean;
  merge: boolean;
  window: boolean;
}
export function kinds(): Kind[];

export interface Options {
  /** For how many keys. */
  capacity?: number | bigint;
  /** The false-positive rate not to exceed. */
  fpr?: number;
  removable?: boolean;
  count?: boolean;
  grow?: boolean;
  /** So many keys, or a time such as '24h'. */
  window?: number | string;
  /** A keyed hash: 16 bytes, or true for random ones. */
  secret?: boolean | Uint8Array;
  kind?: KindName;
  base?: KindName;
  seed?: number | bigint;
  hash?: HashName;
  prefer?: 'balanced' | 'fast' | 'compact';
  /** A bit for each integer from low to high. */
  integers?: { low: number | bigint, high: number | bigint };
  together?: boolean;
  /** What was done to keys: up to 95 bytes, which go into every file. */
  note?: string;
}

export interface BuilderOptions extends Options {
  others?: number | bigint;
  valueBits?: number;
  /** How many bytes the keys may take meanwhile: 2^30. */
  memory?: number;
}

export interface PlanOptions extends Options {
  others?: number | bigint;
  valueBits?: number;
  static?: boolean;
  /** Several threads add at once, where there are threads. */
  threads?: boolean;
}

export interface Plan {
  kind: KindName;
  base: KindName | null;
  capacity: number;
  fpr: number;
  fprPredicted: number;
  /** `fpr` is kept up to this number of keys; null: always. */
  fprUntil: number | null;
  bodyNbytes: number;
  bitsPerKey: number;
  why: string;
  geometry: Record<string, number>;
}
export function plan(options: PlanOptions): Plan;

export interface Stats {
  kind: KindName;
  base: KindName | null;
  capacity: number;
  keys: number;
  keysDifferent: number;
  keysEstimated: boolean;
  fpr: number;
  fprPredicted: number;
  fprNow: number;
  load: number;
  bodyNbytes: number;
  memoryNbytes: number;
  bitsPerKey: number;
  parts: number;
  hash: HashName | 'xxh3-grouped' | 'custom';
  /** Which instructions are used. */
  cpu: 'scalar' | 'simd128';
  stale: number;
  failedAdds: number;
  unmatchedRemovals: number;
  removes: boolean;
  counts: boolean;
  geometry: Record<string, number>;
}

export class Filter {
  private constructor();
  static create(options: Options | { like: Filter }): Filter;
  static fromBytes(bytes: Uint8Array | ArrayBuffer, options?: { secret?: Uint8Array }): Filter;
  toBytes(): Uint8Array;

  add(key: Key): void;
  /** Whether the key was new. */
  addNew(key: Key): boolean;
  has(key: Key): boolean;
  remove(key: Key): void;
  count(key: Key): number;
  get(key: Key): number | undefined;

  addMany(keys: Keys, how?: Many): void;
  addNewMany(keys: Keys, how?: Many): Uint8Array;
  /** 1 for each key that is perhaps there, 0 for one that certainly is not. */
  hasMany(keys: Keys, how?: Many): Uint8Array;
  removeMany(keys: Keys, how?: Many): Uint8Array;
  countMany(keys: Keys, how?: Many): Uint32Array;
  /** -1 for a key that is certainly not there. */
  getMany(keys: Keys, how?: Many): Int32Array;

  stats(): Stats;
  /** Of each part, the oldest first: layers of a chain, generations of a window. */
  parts(): Stats[];
  /** The 16 bytes that this filter knows a key by: its place and its mark. */
  hash(key: Key): Uint8Array;
  readonly keys: number;
  readonly kind: KindName;
  readonly fpr: number;
  readonly note: string;
  predictFpr(keys: number | bigint): number;
  clear(): void;
  copy(): Filter;
  shrink(fpr?: number): Filter;
  digest(): Uint8Array;

  merge(other: Filter): this;
  intersect(other: Filter): this;
  union(other: Filter): Filter;
  intersection(other: Filter): Filter;
  equals(other: Filter): boolean;

  /** Milliseconds, of a window of time. */
  advance(now?: number): void;
  setBack(now?: number): void;
  rotate(): void;

  free(): void;
}

export class Builder {
  constructor(options: BuilderOptions);
  add(key: Key): void;
  addMany(keys: Keys, how?: Many & { values?: Iterable<number> }): void;
  addOthers(keys: Keys, how?: Many): void;
  readonly keys: number;
  finish(): Filter;
  free(): void;
}

export function build(keys: Keys, options: BuilderOptions & Many & {
  against?: Keys, values?: Iterable<number>,
}): Filter;

export interface RemoteOptions {
  /** What fetches: globalThis.fetch. */
  fetch?: typeof fetch;
  headers?: HeadersInit;
  /** Fetches pages of 64 KiB, and compares them with their checksums. */
  check?: boolean;
  /** How many requests at once: 6. */
  connections?: number;
  secret?: Uint8Array;
}

/** A filter file on a web server, asked by ranges of its bytes. */
export interface Remote {
  has(key: Key): Promise<boolean>;
  hasMany(keys: Keys, how?: Many): Promise<Uint8Array>;
  /** What the header tells; `load` is 0, and `fprNow` predicted. */
  stats(): Stats;
  readonly keys: number;
  readonly kind: KindName;
  readonly note: string;
  /** The size of the file. */
  readonly nbytes: number;
  close(): void;
}

export function remote(url: string | URL, options?: RemoteOptions): Promise<Remote>;
