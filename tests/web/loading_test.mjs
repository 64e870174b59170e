/* Loading: from a server, as a browser does; what fails can be tried again. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';

import { folder, perhaps, refuses } from './support.mjs';

const { Filter, kinds, load, plan } = perhaps;
const wasm = readFileSync(join(folder, 'perhaps.wasm'));

test('nothing is done before the library is loaded', () => {
  const calls = [() => Filter.create({ capacity: 10, fpr: 0.1 }), () => Filter.fromBytes(wasm), kinds,
                 () => plan({ capacity: 10, fpr: 0.1 }), () => new perhaps.Builder({ fpr: 0.1 })];
  for (const call of calls)
    refuses('NOT_LOADED', call);
});

test('it is loaded once, and what fails can be tried again', async () => {
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/perhaps.wasm' ? 200 : 404);
    response.end(wasm);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const at = `http://127.0.0.1:${server.address().port}`;
  await assert.rejects(load(new Uint8Array(100)), WebAssembly.CompileError);
  await assert.rejects(load(`${at}/none`), /404/);
  refuses('NOT_LOADED', kinds);
  await Promise.all([load(`${at}/perhaps.wasm`), load(new URL(`${at}/perhaps.wasm`))]);
  server.close();
  const filter = Filter.create({ capacity: 10, fpr: 0.1 });
  await load(new WebAssembly.Module(wasm));
  filter.add('apple');
  assert.ok(filter.has('apple') && filter.union(Filter.create({ like: filter })).has('apple'));
});
