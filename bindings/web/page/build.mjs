/* build.mjs - joins the page, its modules and the library into one file:
 *     node build.mjs perhaps.wasm perhaps.html
 *     node build.mjs --hash
 *
 * Modules are joined as text, in the order in which they need one another.  Each of the binding is
 * a function of its own, which returns what it exports.  Those of the page share one scope, in which
 * a name stands once.  Imports have two forms: { names }, and in the page * as perhaps. */
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';

const folder = dirname(fileURLToPath(import.meta.url)), binding = resolve(folder, '..');
const IMPORT = /^import\s+(\{[^}]*\}|\* as \w+)\s+from\s+'(\.[^']+)';[^\n]*\n/gm;
const PASSED_ON = /^export\s+\{([^}]*)\}(?:\s+from\s+'(\.[^']+)')?;[^\n]*\n/gm;
const DECLARED = /^export\s+((?:async\s+)?(?:function\*?|class|const|let)\s+(\w+))/gm;

/* Appends the modules that a file needs, and then the file. */
function collect(path, found) {
  const text = readFileSync(path, 'utf8');
  const sources = [...[...text.matchAll(IMPORT)].map(([, , from]) => from), ...[...text.matchAll(PASSED_ON)].map(([, , from]) => from)];
  for (const from of sources)
    if (from && !found.includes(resolve(dirname(path), from)))
      collect(resolve(dirname(path), from), found);
  if (!found.includes(path))
    found.push(path);
  return found;
}

/* The text of a module without its imports and exports. */
function bare(path) {
  const text = readFileSync(path, 'utf8').replace(IMPORT, '').replace(PASSED_ON, '').replace(DECLARED, '$1');
  const left = /^(?:import\b(?!\()|export\b).*/m.exec(text);
  if (left)
    throw new Error(`${path}: build.mjs does not know this form: ${left[0]}`);
  return `/* ======== ${basename(path)} ======== */\n${text}`;
}

/* ---- The modules of the binding ----------------------------------------------------------------- */

const exportsOf = async (path) => Object.keys(await import(pathToFileURL(path)));
const boxOf = (path) => `of_${basename(path, '.mjs')}`;

/* Variables that are exported stand outside of all modules, since who imports them sees them change. */
const variablesOf = (path) => [...readFileSync(path, 'utf8').matchAll(/^export let (\w+) = /gm)].map(([, name]) => name);

/* What a module takes from others: from their boxes. */
function taken(path, variables) {
  const text = readFileSync(path, 'utf8'), lines = [];
  for (const [, names, from] of [...text.matchAll(IMPORT), ...text.matchAll(PASSED_ON)].filter(([, , from]) => from)) {
    const fixed = names.replace(/[{}]/g, '').split(',').map((name) => name.trim()).filter((name) => name && !variables.includes(name));
    lines.push(`const { ${fixed.join(', ')} } = ${boxOf(from)};\n`);
  }
  return lines.join('');
}

async function boxed(path, variables) {
  const gives = (await exportsOf(path)).filter((name) => !variables.includes(name));
  const text = bare(path).replace(/^let (\w+) = /gm, (all, name) => (variables.includes(name) ? `${name} = ` : all));
  return `const ${boxOf(path)} = (() => {\n${taken(path, variables)}${text}\nreturn { ${gives.join(', ')} };\n})();\n`;
}

async function boxes(paths) {
  const variables = paths.flatMap(variablesOf);
  const texts = await Promise.all(paths.map((path) => boxed(path, variables)));
  return `${variables.map((name) => `let ${name};\n`).join('')}${texts.join('\n')}`;
}

/* ---- The page --------------------------------------------------------------------------------- */

/* A name that two modules declare is an error here, and not in the browser first. */
function checked(text) {
  new Function(`async () => {${text.replaceAll('import.meta', 'null')}}`);
  return text;
}

async function script() {
  const entry = join(binding, 'perhaps.mjs');
  const library = collect(entry, []), page = collect(join(folder, 'main.mjs'), []).filter((path) => !library.includes(path));
  return checked(`const perhaps = (() => {\n${await boxes(library)}\nreturn ${boxOf(entry)};\n})();\n\n${page.map(bare).join('\n')}`);
}

/* The sources that the page is made of: the compiler of the library may write other bytes. */
export function sourcesHash() {
  const hash = createHash('sha256');
  for (const place of [binding, folder])
    for (const name of readdirSync(place).filter((name) => /\.(mjs|html|c|h)$/.test(name) && name !== 'bench.mjs').sort())
      hash.update(`${name}\0`).update(readFileSync(join(place, name))).update('\0');
  return hash.digest('hex').slice(0, 32);
}

/* Nothing is asked for from anywhere; only a filter at an address needs the network. */
const connects = async () => ((await exportsOf(join(binding, 'perhaps.mjs'))).includes('remote') ? 'https: http:' : "'none'");

async function page(wasm) {
  const fill = { SOURCES: sourcesHash(), CONNECT: await connects(), NBYTES: wasm.length,
                 LIBRARY: gzipSync(wasm, { level: 9 }).toString('base64').replace(/(.{120})/g, '$1\n'), SCRIPT: await script() };
  if (/<\/script/i.test(fill.SCRIPT))
    throw new Error('a module has the end of a script in it');
  return readFileSync(join(folder, 'page.html'), 'utf8').replace(/@([A-Z]+)@/g, (whole, name) => fill[name] ?? whole);
}

const [from, to] = process.argv.slice(2);
if (from === '--hash')
  console.log(sourcesHash());
else
  writeFileSync(to, await page(readFileSync(from)));
