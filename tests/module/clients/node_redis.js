// node_redis.js PORT PROTOCOL - asks the module by node-redis's typed calls, and prints one line
// for each answer.  It ends with status 1 at the first error.
const redis = require('redis');

const say = (name, value) => console.log(name, JSON.stringify(value, (_, v) =>
  typeof v === 'bigint' ? Number(v) : v));
// A client to which bulk strings, such as the pieces of a dump, are bytes.
const ofBytes = (c) => c.withTypeMapping ? c.withTypeMapping({ [redis.RESP_TYPES.BLOB_STRING]: Buffer }) : c;
// A dump is bytes, for which version 4 is told with each command.
const asBytes = (c) => c.withTypeMapping ? [] : [redis.commandOptions({ returnBuffers: true })];

// Copies a filter piece by piece.
async function copy(c, family, from, to) {
  const commands = ofBytes(c)[family];
  let position = 0;
  for (;;) {
    const piece = await commands.scanDump(...asBytes(c), from, position);
    position = Number(piece.iterator);
    if (position === 0)
      return;
    await commands.loadChunk(to, position, piece.chunk);
  }
}

// Versions 4 and 5 take options of an insert, and tell of fields, in other letters.
const find = (info, ...names) => Number(info[names.find((name) => name in info)]);

async function bloom(c) {
  await c.bf.reserve('b', 0.01, 100);
  say('bf.add', Boolean(await c.bf.add('b', 'a')));
  say('bf.madd', (await c.bf.mAdd('b', ['a', 'c'])).map(Boolean));
  say('bf.exists', Boolean(await c.bf.exists('b', 'a')));
  say('bf.mexists', (await c.bf.mExists('b', ['a', 'nobody'])).map(Boolean));
  say('bf.card', Number(await c.bf.card('b')));
  say('bf.insert', (await c.bf.insert('i', ['a'], { CAPACITY: 50, ERROR: 0.1, EXPANSION: 4 })).map(Boolean));
  const info = await c.bf.info('i');
  say('bf.info', [find(info, 'Number of filters', 'numberOfFilters'),
    find(info, 'Number of items inserted', 'numberOfInsertedItems'), find(info, 'Expansion rate', 'expansionRate')]);
  await copy(c, 'bf', 'b', 'b2');
  say('bf.loadchunk', (await c.bf.mExists('b2', ['a', 'c', 'nobody'])).map(Boolean));
}

async function cuckoo(c) {
  await c.cf.reserve('c', 1000, { BUCKETSIZE: 2, MAXITERATIONS: 20, EXPANSION: 1 });
  say('cf.add', Boolean(await c.cf.add('c', 'a')));
  say('cf.addnx', Boolean(await c.cf.addNX('c', 'a')));
  say('cf.insert', (await c.cf.insert('c', ['a', 'd'])).map(Boolean));
  say('cf.insertnx', (await c.cf.insertNX('c', ['a', 'e'])).map(Number));
  say('cf.exists', Boolean(await c.cf.exists('c', 'd')));
  say('cf.count', Number(await c.cf.count('c', 'a')));
  say('cf.del', Boolean(await c.cf.del('c', 'd')));
  const info = await c.cf.info('c');
  say('cf.info', [find(info, 'Number of filters', 'numberOfFilters'),
    find(info, 'Number of items inserted', 'numberOfInsertedItems'),
    find(info, 'Number of items deleted', 'numberOfDeletedItems'), find(info, 'Expansion rate', 'expansionRate'),
    find(info, 'Max iterations', 'Max iteration', 'maxIteration')]);
  await copy(c, 'cf', 'c', 'c2');
  say('cf.loadchunk', Number(await c.cf.count('c2', 'a')));
}

(async () => {
  const protocol = Number(process.argv[3]);
  const c = redis.createClient({ url: `redis://127.0.0.1:${process.argv[2]}`, RESP: protocol });
  c.on('error', () => {});
  await c.connect();
  await bloom(c);
  await cuckoo(c);
  await c.quit();
})().catch((error) => {
  console.log('error:', error.message);
  process.exit(1);
});
