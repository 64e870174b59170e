// ioredis.js PORT - asks the module by ioredis, which has no typed calls for it, and prints one line
// for each answer.  It ends with status 1 at the first error.
const Redis = require('ioredis');

(async () => {
  const c = new Redis(Number(process.argv[2]), '127.0.0.1');
  const say = async (name, ...words) => console.log(name, JSON.stringify(await c.call(...words)));
  await say('bf.reserve', 'BF.RESERVE', 'b', '0.01', '100');
  await say('bf.add', 'BF.ADD', 'b', 'a');
  await say('bf.madd', 'BF.MADD', 'b', 'a', 'c');
  await say('bf.mexists', 'BF.MEXISTS', 'b', 'a', 'nobody');
  const info = await c.call('BF.INFO', 'b');
  console.log('bf.info', info.length, info[7]);
  const [[, added], [, copies]] = await c.pipeline().call('CF.ADD', 'c', 'a').call('CF.COUNT', 'c', 'a').exec();
  console.log('pipeline', added, copies);
  await c.quit();
})().catch((error) => {
  console.log('error:', error.message);
  process.exit(1);
});
