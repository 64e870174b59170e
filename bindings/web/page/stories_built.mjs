/* stories_built.mjs - a ribbon: equations, one for each key, and the slots that solve them.
 *
 * The library solves them at once.  What is shown is its body, uncovered from the back, and each
 * key's equation as doc/FORMAT.md defines it, from the hash that the library has for the key. */
import * as perhaps from '../perhaps.mjs';
import { cellsPath, picture, range, shape } from './draw.mjs';

const NKEYS = 64, SPAN = 64, STEP_SLOTS = 8;
const GOLDEN = 0x9e3779b97f4a7c15n, PI = 0x243f6a8885a308d3n, LOW = 2n ** 64n - 1n;

export const KEYS = range(NKEYS).map((i) => `key ${i + 1}`);

const number = (bytes, at) => new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(at, true);

/* Where the equation of a key begins, which slots it has, and what their sum has to be. */
export function equationOf(hash, { salt, last_slots: nslots, row_bits: width }) {
  const mark0 = number(hash, 8);
  let x = (number(hash, 0) + BigInt(salt) * PI) & LOW;
  x = (((x ^ x >> 32n) * PI) & LOW) ^ mark0;
  x = ((x ^ x >> 29n) * GOLDEN) & LOW;
  const place = x ^ x >> 32n, mark = ((place ^ place >> 31n) * PI) & LOW;
  const start = Number(place * BigInt(nslots - SPAN + 1) >> 64n);
  const slots = range(SPAN).filter((i) => (mark | 1n) >> BigInt(i) & 1n).map((i) => start + i);
  return { start, slots, sum: Number((mark * PI & LOW) >> BigInt(64 - width)) };
}

/* The slots, whose bits lie in columns of 64. */
export function solution(body, { row_bits: width, last_slots: nslots }) {
  return range(nslots).map((slot) => {
    let value = 0;
    for (let j = 0; j < width; j++) {
      const bit = (Math.floor(slot / SPAN) * width + j) * SPAN + slot % SPAN;
      value |= (body[bit >> 3] >> (bit & 7) & 1) << j;
    }
    return value;
  });
}

/* Whether the slots fulfil it. */
export const holds = ({ slots, sum }, values) => slots.reduce((so, slot) => so ^ values[slot], 0) === sum;

/* The equations of all keys, in the order of their first slots: of the filter that was made. */
let ribbon = [];

function makeRibbon() {
  const filter = perhaps.build(KEYS, { kind: 'ribbon', fpr: 0.13, seed: 3 }), { geometry } = filter.stats();
  ribbon = KEYS.map((key) => equationOf(filter.hash(key), geometry)).sort((a, b) => a.start - b.start);
  return filter;
}

/* ---- Steps and picture ------------------------------------------------------------------------ */

/* So many slots stay covered. */
const uncoverStep = (covered) => () => {
  const all = ribbon, solved = all.filter(({ start }) => start >= covered).length;
  return { covered, text: covered === 0 ? `All slots are known, and all ${all.length} equations are fulfilled.`
    : `The slots from ${covered} on are known: they fulfil ${solved} of ${all.length} equations.`, tone: covered ? '' : 'yes' };
};

const askRibbon = (key, isIn) => (filter) => {
  const there = filter.has(key), asked = equationOf(filter.hash(key), filter.stats().geometry);
  const tone = there ? (isIn ? 'yes' : 'false') : 'no';
  const end = there ? (isIn ? 'fulfilled: perhaps. It is.' : 'fulfilled by chance: perhaps. A false positive.') : 'not fulfilled: certainly not.';
  return { covered: 0, asked, tone, text: `Is “${key}” in? Its equation is ${end}` };
};

function drawRibbon(before, now) {
  const { geometry } = now.stats, n = geometry.last_slots, covered = now.told.covered ?? n;
  const values = solution(now.body, geometry), all = ribbon, top = all.length + 3;
  const done = all.map((equation, row) => ({ ...equation, row, solved: equation.start >= covered }));
  const dots = (some) => cellsPath(some.flatMap(({ slots, row }) => slots.map((slot) => row * n + slot)), n, 0.1);
  const known = range(geometry.row_bits).flatMap((bit) => values.map((value, slot) => ({ value: value >> bit & 1, slot, bit })))
    .filter(({ slot }) => slot >= covered);
  const strip = (some) => shape('g', { transform: `translate(0 ${top}) scale(1 2)` }, shape('path', { ...some }));
  const cellsOf = (wanted) => cellsPath(known.filter(({ value }) => value === wanted).map(({ slot, bit }) => bit * n + slot), n, 0.1);
  return picture(n, top + 2 * geometry.row_bits + 4, describe(done, values, covered), 760,
    shape('rect', { class: 'cover', x: 0, y: top, width: covered, height: 2 * geometry.row_bits }),
    shape('path', { class: 'dot', d: dots(done.filter(({ solved }) => !solved)) }),
    shape('path', { class: 'dot solved', d: dots(done.filter(({ solved }) => solved)) }),
    strip({ class: 'cell', d: cellsOf(0) }), strip({ class: 'cell set', d: cellsOf(1) }),
    now.told.asked ? shape('path', { class: 'cell asked', d: cellsPath(now.told.asked.slots, n, 0.1, 0, top + 2 * geometry.row_bits + 1) }) : null);
}

function describe(done, values, covered) {
  const solved = done.filter((equation) => equation.solved), true_ = solved.filter((equation) => holds(equation, values));
  return `${values.length - covered} of ${values.length} slots are known; ${true_.length} of the ${solved.length} equations behind them hold`;
}

const COVERED = range(192 / STEP_SLOTS).map((i) => 192 - STEP_SLOTS * (i + 1));

export const equations = {
  id: 'ribbon',
  title: 'Equations solved',
  sentences: [
    'If all keys are known before, each becomes an equation: the sum (by exclusive or) of some slots out ' +
      'of 64 neighbours has to be the key’s fingerprint, here of 3 bits.',
    'Sorted by their first slot the equations form a ribbon, so they are solved from the back: a slot ' +
      'follows from those behind it.',
    'The slots are all that is stored, in a large filter hardly more than the least that is possible; a ' +
      'stranger’s equation is fulfilled only by chance, one time in eight.'],
  still: 'The library wrote the body once, from all keys.',
  start: `One equation for each of ${NKEYS} keys: a row whose dots are its slots. Below are the slots, still covered.`,
  make: makeRibbon,
  steps: [...COVERED.map(uncoverStep), askRibbon('key 7', true), ...range(6).map((i) => askRibbon(`stranger ${i + 1}`, false))],
  draw: drawRibbon,
};
