/* stories_slots.mjs - filters of fingerprints: a cuckoo's moves, segments that split; and a chain
 * that grows a layer.  Where slots, segments and layers lie in a body: doc/FORMAT.md. */
import * as perhaps from '../perhaps.mjs';
import { anatomy, bitsOf, slotsOf } from './body.mjs';
import { cellGroup, isNarrow, picture, shape, wholeText } from './draw.mjs';

/* ---- A cuckoo's moves ------------------------------------------------------------------------ */

const BUCKET_SLOTS = 4, SLOT = 10, BUCKET_WIDTH = 2 * SLOT + 5, BUCKET_HEIGHT = 2 * SLOT + 7;

const across = () => (isNarrow() ? 4 : 6);

/* The slots of all buckets. */
function fingerprints({ body, stats: { geometry } }) {
  return [...slotsOf(body, geometry.fingerprint_bits, geometry.nbuckets * BUCKET_SLOTS)];
}

/* Where a slot is drawn: four of a bucket in a square. */
function placeOf(slot) {
  const bucket = Math.floor(slot / BUCKET_SLOTS), i = slot % BUCKET_SLOTS;
  return { x: bucket % across() * BUCKET_WIDTH + i % 2 * SLOT + 1,
           y: Math.floor(bucket / across()) * BUCKET_HEIGHT + Math.floor(i / 2) * SLOT + 1 };
}

/* What moved, by comparing the slots.  The path ends in the slot that was free, and leads back from
 * there: what is in a slot now came from the one that had it before. */
export function movesOf(before, now) {
  const left = now.map((_, slot) => slot).filter((slot) => now[slot] !== before[slot]);
  const changed = [...left], moves = [];
  let to = left.find((slot) => before[slot] === 0);
  while (to !== undefined) {
    left.splice(left.indexOf(to), 1);
    const from = left.find((slot) => before[slot] === now[to]);
    if (from !== undefined)
      moves.push({ from, to });
    to = from;
  }
  return { changed, moves };
}

/* From the middle of a slot to its rim, in a direction. */
function towards(x, y, toX, toY) {
  const far = Math.max(Math.abs(toX - x), Math.abs(toY - y)) || 1, rim = SLOT * 0.42;
  return `${(x + (toX - x) / far * rim).toFixed(1)} ${(y + (toY - y) / far * rim).toFixed(1)}`;
}

function arrow({ from, to }) {
  const a = placeOf(from), b = placeOf(to), half = SLOT / 2;
  const x1 = a.x + half, y1 = a.y + half, x2 = b.x + half, y2 = b.y + half;
  const length = Math.hypot(x2 - x1, y2 - y1) || 1, bend = Math.min(length / 4, 12);
  const cx = (x1 + x2) / 2 - (y2 - y1) / length * bend, cy = (y1 + y2) / 2 + (x2 - x1) / length * bend;
  const begin = towards(x1, y1, cx, cy), end = towards(x2, y2, cx, cy);
  return shape('path', { class: 'arrow', d: `M${begin}Q${cx.toFixed(1)} ${cy.toFixed(1)} ${end}`, 'marker-end': 'url(#tip)' });
}

const tip = () => shape('defs', {}, shape('marker',
  { id: 'tip', viewBox: '0 0 6 6', refX: 4.5, refY: 3, markerWidth: 5, markerHeight: 5, orient: 'auto' },
  shape('path', { class: 'tip', d: 'M0 0L6 3L0 6z' })));

function drawSlot(value, slot, fresh) {
  const { x, y } = placeOf(slot);
  return [shape('rect', { class: `slot${value ? ' set' : ''}${fresh ? ' fresh' : ''}`,
                          x: x + 0.4, y: y + 0.4, width: SLOT - 0.8, height: SLOT - 0.8, rx: 1.4 }),
          value ? shape('text', { class: `slot-text${fresh ? ' fresh' : ''}`,
                                  x: x + SLOT / 2, y: y + SLOT / 2 + 1.6, 'text-anchor': 'middle' },
                        value.toString(16).padStart(2, '0')) : null];
}

function drawBuckets(before, now) {
  const is = fingerprints(now), { changed, moves: found } = movesOf(fingerprints(before), is);
  const height = Math.ceil(is.length / BUCKET_SLOTS / across()) * BUCKET_HEIGHT - 5;
  const buckets = is.filter((_, i) => i % BUCKET_SLOTS === 0).map((_, i) => placeOf(i * BUCKET_SLOTS));
  const words = `${is.filter(Boolean).length} of ${is.length} slots hold a fingerprint; ${found.length} moved`;
  const side = 2 * SLOT + 1.4;
  return picture(across() * BUCKET_WIDTH - 3, height, words, 640, tip(),
    ...buckets.map(({ x, y }) => shape('rect', { class: 'bucket', x: x - 0.7, y: y - 0.7, width: side, height: side, rx: 2 })),
    ...is.flatMap((value, slot) => drawSlot(value, slot, changed.includes(slot))), ...found.map(arrow));
}

const MOVES_STEPS = 72;

const cuckooStep = (i) => (filter) => {
  const key = `key ${i + 1}`, before = fingerprints(anatomy(filter));
  try {
    filter.add(key);
    const now = fingerprints(anatomy(filter)), n = movesOf(before, now).moves.length;
    const moved = n === 0 ? '' : n === 1 ? ', and one entry moved' : `, and ${n} entries moved`;
    return { text: `“${key}” is added${moved}: ${filter.keys} of ${now.length} slots are taken.` };
  } catch (error) {
    return { text: `“${key}” finds no room by any path, and is refused: ${error.code}. Nothing has moved.`, tone: 'false' };
  }
};

export const moves = {
  id: 'cuckoo',
  title: 'A cuckoo’s path',
  sentences: [
    'A cuckoo filter stores a fingerprint of each key in one of two buckets of four slots; the second ' +
      'bucket follows from the first and the fingerprint, so an entry can move although its key is ' +
      'forgotten.',
    'If both buckets are full, entries are thrown out along a path, each to its other bucket, until one ' +
      'finds a free slot: arrows show which.',
    'The whole path is found before anything is written, so the add that fails at the end changes ' +
      'nothing, and loses no other key.'],
  start: 'An empty filter of buckets with four slots of 8 bits, from which keys can be removed.',
  make: () => perhaps.Filter.create({ kind: 'cuckoo', capacity: 32, fpr: 0.05, removable: true, seed: 42 }),
  steps: Array.from({ length: MOVES_STEPS }, (_, i) => cuckooStep(i)),
  draw: drawBuckets,
};

/* ---- Segments that split ---------------------------------------------------------------------- */

const SEGMENT_SLOTS = 2048, BASES = 16, DEPTHS_AT = 64, PAGE = 4096, KEYS_A_STEP = 1000, SPLIT_STEPS = 44;

/* The segments: of which base, where in it, how wide, how full. */
function segmentsOf({ body, stats: { geometry } }) {
  const { segments: n, slot_bits: width } = geometry;
  const from = Math.ceil((DEPTHS_AT + n) / PAGE) * PAGE, nbytes = SEGMENT_SLOTS * width / 8, segments = [];
  for (let i = 0, base = 0, x = 0; i < n; i++) {
    const share = 2 ** -body[DEPTHS_AT + i];
    const slots = slotsOf(body, width, SEGMENT_SLOTS, from + i * nbytes);
    segments.push({ base, x, share, fill: slots.reduce((sum, slot) => sum + (slot !== 0), 0) / SEGMENT_SLOTS });
    x += share;
    if (x >= 1) {
      base++;
      x = 0;
    }
  }
  return segments;
}

const isSame = (a) => (b) => a.base === b.base && a.x === b.x && a.share === b.share;
const isNew = (segment, before) => !before.some(isSame(segment));

function drawSegment({ base, x, share, fill }, fresh) {
  const WIDE = 96, HIGH = 6.4, STEP = 8.4, LABEL_WIDE = 9, y = base * STEP, left = x * WIDE, wide = share * WIDE;
  return [shape('rect', { class: 'well', x: left + 0.3, y, width: wide - 0.6, height: HIGH, rx: 0.8 }),
          shape('rect', { class: `fill${fresh ? ' fresh' : ''}`, x: left + 0.3, y, width: (wide - 0.6) * fill, height: HIGH, rx: 0.8 }),
          shape('text', { class: `fill-text${fill * wide > LABEL_WIDE ? ' on' : ''}${fresh ? ' fresh' : ''}`,
                          x: left + 2, y: y + 4.5 }, `${Math.round(fill * 100)} %`)];
}

function drawSegments(before, now) {
  const were = segmentsOf(before), are = segmentsOf(now);
  const words = `${are.length} segments, of which ${are.filter((s) => isNew(s, were)).length} come from a split`;
  return picture(96, BASES * 8.4 - 2, words, 640,
                 ...are.flatMap((segment) => drawSegment(segment, isNew(segment, were))));
}

const splitStep = (i) => (filter) => {
  const before = filter.stats().geometry.segments;
  filter.addMany(Uint32Array.from({ length: KEYS_A_STEP }, (_, key) => i * KEYS_A_STEP + key));
  const n = filter.stats().geometry.segments - before;
  const splits = n === 0 ? 'no segment splits' : n === 1 ? 'one segment splits in two' : `${n} segments split in two`;
  return { text: `A thousand keys more, ${wholeText(filter.keys)} now: ${splits}.`, tone: n ? 'yes' : '' };
};

export const splits = {
  id: 'split',
  title: 'A segment splits',
  sentences: [
    'An elastic filter consists of segments, each a small cuckoo filter of 2,048 slots; the hash of a key ' +
      'says in which of 16 rows, and where in its row, it belongs.',
    'When a segment is full it splits: one bit of each fingerprint, until then a spare, says into which ' +
      'half it goes.',
    'So the filter grows page by page, a question looks into one segment only, and the rows have ' +
      'different widths so that not all split at once.'],
  start: 'An empty filter for any number of keys at 1 %: 16 segments.',
  make: () => perhaps.Filter.create({ kind: 'elastic', capacity: 100, fpr: 0.01, grow: true, seed: 1 }),
  steps: Array.from({ length: SPLIT_STEPS }, (_, i) => splitStep(i)),
  draw: drawSegments,
};

/* ---- A chain that grows a layer ---------------------------------------------------------------- */

const LAYER_COLUMNS = 64, LAYER_STEPS = 120, LABEL = 4, LAYER_GAP = 1.6;

/* A layer is a part: its body comes behind that of the chain. */
function drawLayers(before, now) {
  const groups = [];
  let y = 0;
  now.parts.forEach((part, i) => {
    const body = now.bodies[i + 1], n = body.length * 8, set = bitsOf(body);
    const had = new Set(bitsOf(before.bodies[i + 1] ?? new Uint8Array()));
    groups.push(shape('text', { class: 'label', x: 0, y: y + LABEL - 1.2 }, `Layer ${i + 1}: ${part.keys} of ${part.capacity} keys`),
                cellGroup(n, LAYER_COLUMNS, { set, fresh: set.filter((bit) => !had.has(bit)) }, y + LABEL));
    y += LABEL + n / LAYER_COLUMNS + LAYER_GAP;
  });
  return picture(LAYER_COLUMNS, y - LAYER_GAP, `${now.parts.length} layers`, 640, ...groups);
}

const layerStep = (i) => (filter) => {
  const key = `key ${i + 1}`, before = filter.stats().parts;
  filter.add(key);
  const parts = filter.parts();
  return parts.length > before
    ? { text: `“${key}”: the newest layer is full, so a larger one for ${parts.at(-1).capacity} keys begins.`, tone: 'yes' }
    : { text: `“${key}” is added to layer ${parts.length}.` };
};

export const layers = {
  id: 'chain',
  title: 'A chain grows',
  sentences: [
    'A chain is a list of ordinary filters; keys go to the newest, and when that is full a layer for ' +
      'twice as many begins.',
    'A question asks the layers one after the other, and “certainly not” needs a no from all of them.',
    'Each layer is stricter than the one before, so that all of them together, however many there will ' +
      'be, keep the rate that was asked.'],
  start: 'A chain that begins with a layer for 16 keys, at 10 % for all layers together.',
  make: () => perhaps.Filter.create({ kind: 'chain', capacity: 16, fpr: 0.1, grow: true, seed: 1 }),
  steps: Array.from({ length: LAYER_STEPS }, (_, i) => layerStep(i)),
  draw: drawLayers,
};
