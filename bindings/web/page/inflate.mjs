/* inflate.mjs - the library, packed in the page, as bytes.
 *
 * Browsers of the last years unpack by DecompressionStream.  For the others there is RFC 1951
 * here: slower, and 10 ms all the same. */

const LENGTHS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131,
                 163, 195, 227, 258];
const DISTANCES = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537,
                   2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577];
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const GZIP_HEADER = 10;

const lengthExtra = (i) => (i < 8 || i === 28 ? 0 : (i - 4) >> 2);
const distanceExtra = (i) => (i < 4 ? 0 : (i - 2) >> 1);

class Bits {
  constructor(bytes, at) {
    this.bytes = bytes;
    this.bit = at * 8;
  }

  take(n) {
    let value = 0;
    if (this.bit + n > 8 * this.bytes.length)
      throw new Error('the packed library is cut off');
    for (let i = 0; i < n; i++, this.bit++)
      value |= (this.bytes[this.bit >> 3] >> (this.bit & 7) & 1) << i;
    return value;
  }

  /* One symbol of a canonical code. */
  symbol(code) {
    let value = 0, first = 0, index = 0;
    for (let length = 1; length < code.counts.length; length++) {
      value |= this.take(1);
      const count = code.counts[length];
      if (value - count < first)
        return code.symbols[index + value - first];
      index += count;
      first = (first + count) << 1;
      value <<= 1;
    }
    throw new Error('the packed library is damaged');
  }
}

/* A code, from the lengths of its symbols. */
function codeOf(lengths) {
  const counts = new Array(16).fill(0), symbols = [];
  for (let length = 1; length < 16; length++)
    lengths.forEach((its, symbol) => {
      if (its === length) {
        counts[length]++;
        symbols.push(symbol);
      }
    });
  return { counts, symbols };
}

const fixedCodes = () => [
  codeOf(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))),
  codeOf(new Array(30).fill(5))];

function readCodes(bits) {
  const nlengths = bits.take(5) + 257, ndistances = bits.take(5) + 1, norder = bits.take(4) + 4;
  const own = new Array(19).fill(0), lengths = [];
  for (let i = 0; i < norder; i++)
    own[ORDER[i]] = bits.take(3);
  const code = codeOf(own);
  while (lengths.length < nlengths + ndistances) {
    const symbol = bits.symbol(code);
    if (symbol < 16)
      lengths.push(symbol);
    else if (symbol === 16)
      lengths.push(...new Array(3 + bits.take(2)).fill(lengths.at(-1)));
    else
      lengths.push(...new Array(symbol === 17 ? 3 + bits.take(3) : 11 + bits.take(7)).fill(0));
  }
  return [codeOf(lengths.slice(0, nlengths)), codeOf(lengths.slice(nlengths))];
}

/* Appends a block of symbols at 'at', and returns its end. */
function inflateBlock(bits, [literals, distances], out, at) {
  for (let symbol; (symbol = bits.symbol(literals)) !== 256;) {
    if (symbol < 256) {
      out[at++] = symbol;
      continue;
    }
    const length = LENGTHS[symbol - 257] + bits.take(lengthExtra(symbol - 257));
    const which = bits.symbol(distances);
    const distance = DISTANCES[which] + bits.take(distanceExtra(which));
    for (let i = 0; i < length; i++, at++)
      out[at] = out[at - distance];
  }
  return at;
}

function copyBlock(bits, out, at) {
  bits.bit = (bits.bit + 7) & ~7;
  const length = bits.take(16);
  bits.take(16);
  for (let i = 0; i < length; i++)
    out[at++] = bits.take(8);
  return at;
}

/* Unpacks what gzip made of 'nbytes' bytes, without a name in its header. */
export function inflate(packed, nbytes) {
  const bits = new Bits(packed, GZIP_HEADER), out = new Uint8Array(nbytes);
  for (let at = 0, last = 0; !last;) {
    last = bits.take(1);
    const form = bits.take(2);
    at = form === 0 ? copyBlock(bits, out, at)
                    : inflateBlock(bits, form === 1 ? fixedCodes() : readCodes(bits), out, at);
  }
  return out;
}

/* Unpacks base64 of what gzip made. */
export async function unpack(base64, nbytes) {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  if (!globalThis.DecompressionStream)
    return inflate(packed, nbytes);
  const stream = new DecompressionStream('gzip'), writer = stream.writable.getWriter();
  writer.write(packed);
  writer.close();
  return new Uint8Array(await new Response(stream.readable).arrayBuffer());
}
