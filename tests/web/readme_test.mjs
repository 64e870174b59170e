/* The examples of the README: "// -> VALUE" behind an expression says what it is, and
 * "// throws CODE" that it throws. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { perhaps, root } from './support.mjs';

const readme = readFileSync(join(root, 'bindings/web/README.md'), 'utf8');
const blocks = [...readme.matchAll(/```js\n([^]*?)```/g)].map(([, code]) => code);

function expectThrow(code, call) {
  assert.throws(call, { name: 'PerhapsError', code });
}

/* Makes a check of each line that promises something. */
function checked(line) {
  const [, value, promised] = /^(.*?);\s+\/\/ -> (.*)$/.exec(line) ?? [];
  const [, call, code] = /^(.*?);\s+\/\/ throws (\w+)$/.exec(line) ?? [];
  if (value)
    return `count(); assert.deepEqual(${value}, ${promised}, ${JSON.stringify(line)});`;
  return call ? `count(); expectThrow('${code}', () => ${call});` : line;
}

test('the examples of the README are right', async () => {
  let n = 0;
  const code = blocks.join('\n').split('\n').filter((line) => !line.startsWith('import ')).map(checked).join('\n');
  const AsyncFunction = (async () => {}).constructor;
  const names = Object.keys(perhaps);
  await new AsyncFunction('assert', 'expectThrow', 'count', ...names, code)(
    assert, expectThrow, () => n++, ...Object.values(perhaps));
  assert.ok(blocks.length >= 3 && n >= 12, `${blocks.length} and ${n}`);
});

test('the README names what there is', () => {
  const types = readFileSync(join(root, 'bindings/web/perhaps.d.ts'), 'utf8');
  for (const name of [...Object.getOwnPropertyNames(perhaps.Filter.prototype), ...Object.keys(perhaps)])
    assert.ok(name === 'constructor' || types.includes(name), `perhaps.d.ts lacks ${name}`);
  for (const [, method] of readme.matchAll(/`(\w+)\(\)`/g))
    assert.ok(method in perhaps || method in perhaps.Filter.prototype || method in perhaps.Builder.prototype, method);
});

test('the package says what it has', () => {
  const { version, files, exports } = JSON.parse(readFileSync(join(root, 'bindings/web/package.json')));
  const header = readFileSync(join(root, 'include/perhaps.h'), 'utf8');
  assert.ok(header.includes(`"${version}"`));
  assert.ok(files.includes(exports['.'].default.slice(2)));
});
