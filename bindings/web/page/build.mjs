/* build.mjs - joins the page, its modules and the library into one file:
 *     node build.mjs perhaps.wasm perhaps.html
 *     node build.mjs --hash
 *
 * Modules are joined as text, in the order in which they need one another; those of the binding
 * in a function of their own, which returns what perhaps.mjs exports.  So of imports there are
 * two forms, { names } and * as perhaps, and a name stands once in all modules of the page. */
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const folder = dirname(fileURLToPath(import.meta.url)), binding = resolve(folder, '..');
const IMPORT = /^import\s+(?:\{[^}]*\}|\* as \w+)\s+from\s+'(\.[^']+)';[^\n]*\n/gm;
const PASSED_ON = /^export\s+\{([^}]*)\}(?:\s+from\s+'(\.[^']+)')?;[^\n]*\n/gm;
const DECLARED = /^export\s+((?:async\s+)?(?:function\*?|class|const|let)\s+(\w+))/gm;

/* Appends the modules that a file needs, and then the file. */
function collect(path, found) {
  const text = readFileSync(path, 'utf8');
  const sources = [...[...text.matchAll(IMPORT)].map(([, from]) => from), ...[...text.matchAll(PASSED_ON)].map(([, , from]) => from)];
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

/* What a module exports. */
function exportsOf(path) {
  const text = readFileSync(path, 'utf8');
  return [...[...text.matchAll(DECLARED)].map(([, , name]) => name),
          ...[...text.matchAll(PASSED_ON)].flatMap(([, names]) => names.split(',').map((name) => name.trim()).filter(Boolean))];
}

/* A name that two modules declare is an error here, and not in the browser first. */
function checked(text) {
  new Function(`async () => {${text.replaceAll('import.meta', 'null')}}`);
  return text;
}

function script() {
  const entry = join(binding, 'perhaps.mjs');
  const library = collect(entry, []), page = collect(join(folder, 'main.mjs'), []).filter((path) => !library.includes(path));
  return checked(`const perhaps = (() => {\n${library.map(bare).join('\n')}\nreturn { ${exportsOf(entry).join(', ')} };\n})();\n\n${page.map(bare).join('\n')}`);
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
const connects = () => (exportsOf(join(binding, 'perhaps.mjs')).includes('remote') ? 'https: http:' : "'none'");

function page(wasm) {
  const fill = { SOURCES: sourcesHash(), CONNECT: connects(), NBYTES: wasm.length,
                 LIBRARY: gzipSync(wasm, { level: 9 }).toString('base64').replace(/(.{120})/g, '$1\n'), SCRIPT: script() };
  if (/<\/script/i.test(fill.SCRIPT))
    throw new Error('a module has the end of a script in it');
  return readFileSync(join(folder, 'page.html'), 'utf8').replace(/@([A-Z]+)@/g, (whole, name) => fill[name] ?? whole);
}

const [from, to] = process.argv.slice(2);
if (from === '--hash')
  console.log(sourcesHash());
else
  writeFileSync(to, page(readFileSync(from)));
