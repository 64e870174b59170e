/* body.mjs - the bodies in a filter's bytes, as doc/FORMAT.md lays them out.
 *
 * Nothing here computes what a filter does: it only reads what the library wrote. */

const SMALL = 16, SECTIONS_AT = 32, HEADER = 120, SECTION = 160, COUNTERS = 24;

const numberAt = (view, at) => Number(view.getBigUint64(at, true));

/* The bodies of a large file: each section tells where its own lies. */
function largeBodies(bytes, view) {
  const bodies = [];
  for (let i = 0; i < view.getUint32(40, true); i++) {
    const at = HEADER + SECTION * i, begin = numberAt(view, at + 48);
    bodies.push(bytes.subarray(begin, begin + numberAt(view, at + 56)));
  }
  return bodies;
}

/* Those of a small one follow one another; the first is what the parts leave. */
function smallBodies(bytes, view, partSizes) {
  const end = bytes.length - COUNTERS * (1 + partSizes.length);
  const parts = partSizes.reduce((sum, size) => sum + size, 0);
  const bodies = [];
  let at = view.getUint16(12, true);
  for (const size of [end - at - parts, ...partSizes]) {
    bodies.push(bytes.subarray(at, at + size));
    at += size;
  }
  return bodies;
}

const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
const isSmall = (view) => view.getUint32(16, true) & SMALL;

/* Returns the body of the filter, and those of its parts, the oldest first. */
export function bodiesOf(bytes, partSizes = []) {
  const view = viewOf(bytes);
  return isSmall(view) ? smallBodies(bytes, view, partSizes) : largeBodies(bytes, view);
}

/* All bodies as one: of a window whose parts are chains, and so have parts. */
export function wholeBody(bytes) {
  const view = viewOf(bytes);
  if (isSmall(view))
    return bytes.subarray(view.getUint16(12, true), bytes.length - COUNTERS * packedAt(bytes, SECTIONS_AT));
  return bytes.subarray(numberAt(view, 64), numberAt(view, 72));
}

/* An integer in bytes of seven bits. */
function packedAt(bytes, at) {
  let value = 0, shift = 0;
  for (; bytes[at] & 128; at++, shift += 7)
    value += (bytes[at] & 127) * 2 ** shift;
  return value + bytes[at] * 2 ** shift;
}

/* The bodies, and what the library says about them. */
export function anatomy(filter) {
  const stats = filter.stats(), parts = filter.parts(), bytes = filter.toBytes();
  const bodies = parts.some((part) => part.parts > 0) ? [wholeBody(bytes)]
                                                      : bodiesOf(bytes, parts.map((part) => part.bodyNbytes));
  return { stats, parts, bodies, body: bodies[0] };
}

/* ---- What is in a body --------------------------------------------------------------------- */

/* The numbers of the bits that are set, among the first so many. */
export function bitsOf(body, nbits = body.length * 8) {
  const bits = [];
  for (let i = 0; i < nbits; i++)
    if (body[i >> 3] >> (i & 7) & 1)
      bits.push(i);
  return bits;
}

/* So many numbers of 'width' bits, one after the other, lowest bit first; up to 32 bits each. */
export function slotsOf(body, width, count, fromByte = 0) {
  const slots = new Uint32Array(count);
  for (let i = 0, bit = fromByte * 8; i < count; i++, bit += width) {
    const at = bit >> 3;
    const low = (body[at] | body[at + 1] << 8 | body[at + 2] << 16) >>> 0;
    const all = low + (body[at + 3] ?? 0) * 2 ** 24 + (body[at + 4] ?? 0) * 2 ** 32;
    slots[i] = Math.floor(all / 2 ** (bit & 7)) % 2 ** width;
  }
  return slots;
}

/* How many bytes of two bodies differ; a body that grew differs in what is new. */
export function bytesChanged(before, now) {
  let n = Math.abs(now.length - before.length);
  for (let i = 0; i < Math.min(before.length, now.length); i++)
    n += before[i] !== now[i];
  return n;
}

/* The share of bits that are set in each of so many equal pieces. */
export function fillOf(body, pieces) {
  const share = new Float64Array(pieces);
  for (let piece = 0; piece < pieces; piece++) {
    const from = Math.floor(body.length * piece / pieces);
    const to = Math.max(from + 1, Math.floor(body.length * (piece + 1) / pieces));
    let ones = 0;
    for (let i = from; i < to; i++)
      for (let byte = body[i]; byte; byte &= byte - 1)
        ones++;
    share[piece] = ones / (8 * (to - from));
  }
  return share;
}
