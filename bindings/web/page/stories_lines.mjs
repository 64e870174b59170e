/* stories_lines.mjs - filters of bits: Bloom's, and one line a key.
 *
 * Which bits a key has is found by the library alone: they are the body of a filter like this
 * one, with the same seed, in which there is that key and nothing else. */
import * as perhaps from '../perhaps.mjs';
import { anatomy, bitsOf } from './body.mjs';
import { cellGroup, picture, shape } from './draw.mjs';

export const WORDS = ['apple', 'pear', 'plum', 'quince', 'fig', 'olive', 'almond', 'cherry', 'peach', 'grape',
  'lemon', 'lime', 'orange', 'mango', 'papaya', 'guava', 'date', 'walnut', 'hazel', 'pecan', 'cashew', 'melon',
  'banana', 'kiwi', 'medlar', 'sloe', 'damson', 'apricot', 'nectarine', 'pomelo', 'lychee', 'loquat', 'currant',
  'bilberry', 'cranberry', 'mulberry', 'elder', 'rowan', 'juniper', 'chestnut'];
const STRANGERS = ['hammer', 'saw', 'chisel', 'plane', 'file', 'anvil', 'tongs', 'drill', 'screw', 'nail', 'rasp',
  'vice', 'level', 'square', 'awl', 'mallet', 'wrench', 'pliers', 'clamp', 'gauge', 'trowel', 'shovel', 'rake',
  'hoe', 'axe', 'adze', 'wedge', 'lever', 'pulley', 'winch', 'crank', 'gear', 'spring', 'bolt', 'washer', 'rivet'];

/* The bits of a key in a filter such as this one. */
function bitsOfKey(filter, key) {
  const alone = perhaps.Filter.create({ like: filter });
  alone.add(key);
  const { body } = anatomy(alone);
  alone.free();
  return bitsOf(body);
}

const addStep = (word) => (filter) => {
  const is = bitsOfKey(filter, word), had = new Set(bitsOf(anatomy(filter).body));
  const fresh = is.filter((bit) => !had.has(bit)).length;
  filter.add(word);
  return { text: `“${word}” is added: ${fresh} of its ${is.length} bits were clear, and are set now.`, asked: is };
};

const askStep = (word, isIn) => (filter) => {
  const asked = bitsOfKey(filter, word), set = new Set(bitsOf(anatomy(filter).body));
  const clear = asked.filter((bit) => !set.has(bit)).length;
  if (!filter.has(word))
    return { text: `Is “${word}” in? ${clear} of its ${asked.length} bits ${clear === 1 ? 'is' : 'are'} clear: certainly not.`,
             asked, tone: 'no' };
  return isIn ? { text: `Is “${word}” in? All its bits are set: perhaps. It is.`, asked, tone: 'yes' }
              : { text: `Is “${word}” in? All its bits are set: perhaps. But it was never added: a false positive.`,
                  asked, tone: 'false' };
};

/* ---- Bits ----------------------------------------------------------------------------------- */

const BITS_ACROSS = 32;

function drawBits(before, now) {
  const n = now.stats.geometry.nbits, set = bitsOf(now.body, n), had = new Set(bitsOf(before.body, n));
  const fresh = set.filter((bit) => !had.has(bit));
  return picture(BITS_ACROSS, Math.ceil(n / BITS_ACROSS), `${set.length} of ${n} bits are set`, 640,
                 cellGroup(n, BITS_ACROSS, { set, fresh, asked: now.told.asked }));
}

/* Strangers that are asked, up to one that is "perhaps" there: found by asking the library. */
function strangersUpToFalse(make, most) {
  const filter = make(), chosen = [];
  filter.addMany(WORDS);
  for (const word of STRANGERS) {
    const isFalse = filter.has(word);
    if (isFalse || chosen.length < most - 1)
      chosen.push(word);
    if (isFalse)
      break;
  }
  filter.free();
  return chosen;
}

const makeBits = () => perhaps.Filter.create({ kind: 'bloom', capacity: 60, fpr: 0.05, seed: 5 });

export const bits = {
  id: 'bits',
  title: 'A false answer',
  sentences: [
    'A Bloom filter is an array of bits, all clear at first; a key is hashed to a few of them, and adding ' +
      'it sets these.',
    'To ask is to look at the same bits: if one of them is clear, the key was certainly never added.',
    'If all are set they may have been set by others, so the answer is only “perhaps”; go to the end to ' +
      'meet a word that was never added, and all of whose bits are set.'],
  start: 'An empty filter of 512 bits, for 60 keys at 5 %.',
  make: makeBits,
  get steps() {
    return this.made ??= [...WORDS.map(addStep), askStep('quince', true),
                          ...strangersUpToFalse(makeBits, 8).map((word) => askStep(word, false))];
  },
  draw: drawBits,
};

/* ---- One line ------------------------------------------------------------------------------- */

const LINE_NBITS = 512, GAP = 1.2;

/* Of each line its bits, and whether the key of this step has it. */
function drawLines(before, now) {
  const n = now.body.length * 8 / LINE_NBITS, rows = LINE_NBITS / BITS_ACROSS;
  const groups = [], height = n * rows + (n - 1) * GAP;
  for (let i = 0; i < n; i++) {
    const within = (all) => all.filter((bit) => Math.floor(bit / LINE_NBITS) === i).map((bit) => bit % LINE_NBITS);
    const set = within(bitsOf(now.body)), had = new Set(within(bitsOf(before.body)));
    const asked = within(now.told.asked ?? []), y = i * (rows + GAP);
    groups.push(cellGroup(LINE_NBITS, BITS_ACROSS, { set, fresh: set.filter((bit) => !had.has(bit)), asked }, y));
    if (asked.length)
      groups.push(shape('rect', { class: 'frame', x: 0.02, y: y - 0.15, width: BITS_ACROSS - 0.04, height: rows + 0.3, rx: 0.3 }));
  }
  const which = (now.told.asked ?? []).map((bit) => Math.floor(bit / LINE_NBITS) + 1)[0];
  return picture(BITS_ACROSS, height + 0.4, `${n} lines of 512 bits${which ? `; the key is in line ${which}` : ''}`, 560,
                 shape('g', { transform: 'translate(0 .2)' }, ...groups));
}

const makeLines = () => perhaps.Filter.create({ kind: 'blocked', capacity: 60, fpr: 0.02, seed: 5 });

export const line = {
  id: 'line',
  title: 'One line a key',
  sentences: [
    'Memory comes in lines of 64 bytes, and to fetch one takes far longer than to look at all its 512 bits.',
    'So the kind “blocked” first chooses a line for a key, and then all the bits of the key within it: ' +
      'one access a question at the usual rates, however large the filter is.',
    'Some lines get more keys than others, which costs a little memory: it is planned so that even this ' +
      'very filter, not only the average one, keeps its rate.'],
  start: 'An empty filter of two lines, for 60 keys at 2 %.',
  make: makeLines,
  get steps() {
    return this.made ??= [...WORDS.slice(0, 32).map(addStep), askStep('almond', true),
                          ...STRANGERS.slice(0, 6).map((word) => askStep(word, false))];
  },
  draw: drawLines,
};
