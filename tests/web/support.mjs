/* support.mjs - what the tests of the package for JavaScript share. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const root = resolve(fileURLToPath(import.meta.url), '../../..');
export const build = process.env.PERHAPS_BUILD_DIR ?? join(root, 'build');
export const folder = process.env.PERHAPS_WEB ?? join(build, 'lib/web');

/* Imports the package from a folder. */
export const packageIn = (place) => import(pathToFileURL(join(place, 'perhaps.mjs')));

/* PERHAPS_WASM names the file that load() loads, where it is not to choose. */
const own = await packageIn(folder);
export const perhaps = { ...own, load: (source = process.env.PERHAPS_WASM) => own.load(source) };

/* A folder of this process, gone at its end. */
export const scratch = mkdtempSync(join(tmpdir(), 'perhaps-web-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));

/* Calls what may be refused.  Returns what it returns, or the code of the error. */
export function attempt(call) {
  try {
    return call();
  } catch (error) {
    assert.equal(error.name, 'PerhapsError', error.stack);
    assert.notEqual(error.code, 'BROKEN', error.cause?.stack);
    return error.code;
  }
}

/* Runs the command line, with lines as its input.  Returns what it prints. */
export function cli(args, lines = []) {
  const input = lines.map((line) => `${line}\n`).join('');
  return execFileSync(join(build, 'bin/perhaps'), args, { input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'ignore'] });
}

/* Whether there is one. */
export const hasCli = (() => {
  try {
    cli(['--version']);
    return true;
  } catch {
    return false;
  }
})();

/* Returns the records of reference.c for these files, or for changed copies of each. */
export function* recordsOf(files, changes = 0) {
  const program = process.env.PERHAPS_REFERENCE ?? join(build, 'tests/web/web_reference');
  const bytes = execFileSync(program, [String(changes), ...files], { maxBuffer: 2 ** 30 });
  for (let at = 0; at < bytes.length;) {
    const nbytes = bytes.readUInt32LE(at), nwritten = bytes.readUInt32LE(at + 8);
    const file = bytes.subarray(at + 12, at + 12 + nbytes);
    at += 12 + nbytes + nwritten;
    yield { file, error: bytes.readInt32LE(at - nwritten - nbytes - 8), written: bytes.subarray(at - nwritten, at) };
  }
}

/* The files of a folder, with their paths. */
export function filesOf(place, end = '') {
  return readdirSync(place, { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(end))
    .map((entry) => join(place, entry.name)).sort();
}

/* Numbers that look random and are the same in every run. */
export function random(seed) {
  let state = BigInt(seed);
  return () => {
    state = BigInt.asUintN(64, state + 0x9E3779B97F4A7C15n);
    let z = state;
    z = BigInt.asUintN(64, (z ^ z >> 30n) * 0xBF58476D1CE4E5B9n);
    z = BigInt.asUintN(64, (z ^ z >> 27n) * 0x94D049BB133111EBn);
    return z ^ z >> 31n;
  };
}

/* Expects an error of the library with this code. */
export function refuses(code, call) {
  assert.throws(call, (error) => {
    assert.equal(error?.name, 'PerhapsError', `${error?.stack}`);
    assert.equal(error.code, code, error.message);
    assert.ok(error.message.length > 5);
    return true;
  });
}
