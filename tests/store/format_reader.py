"""A second reader of filter files, written after doc/FORMAT.md alone, in 230 lines of code: without
blank lines, comments and docstrings."""
import re
from bisect import bisect
from struct import iter_unpack, unpack_from

from xxhash import xxh3_64_digest, xxh3_64_intdigest, xxh3_128_intdigest

M = (1 << 64) - 1
GOLDEN, PI, E = 0x9e3779b97f4a7c15, 0x243f6a8885a308d3, 0xb7e151628aed2a6b
ROOTS = [int(p ** 0.5 % 1 * 2 ** 32) | 1 for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)]
BASES = [int((2 ** (i / 16) - 1) * 2 ** 32) for i in range(16)]

def need(fact, what):
    if not fact:
        raise ValueError(what)

def up(n, multiple):
    return -(-n // multiple) * multiple

def scale(x, n):
    return x * n >> 64

def bits(body, at, n):
    """The n bits from bit 'at' on, lowest first."""
    return int.from_bytes(body[at >> 3:(at + n + 7) >> 3], "little") >> (at & 7) & (1 << n) - 1

# ---- Kinds: how often a key is perhaps in the filter s --------------------------------------------

def cells(s, place, mark):
    """The words of a key in lines, and the 32 bits that choose in each."""
    band_lines, bands, n, together = s.fields[:4]
    block = scale(place, band_lines)
    for band in range(bands):
        line = block * bands + band if together else band * band_lines + scale(place, band_lines)
        a, first, t = mark >> 32, mark >> 28 & 15, mark >> 25 & 7
        for i in range(n):
            yield line * 16 + (first + i * (2 * t + 1)) % 16, a * ROOTS[i] & 0xffffffff
        place, mark = place * GOLDEN & M, mark * PI & M

def blocked(s, place, mark):
    return all(bits(s.body, 32 * word + (x >> 27), 1) for word, x in cells(s, place, mark))

def counting(s, place, mark):
    return min(bits(s.body, 32 * word + 4 * (x >> 29), 4) for word, x in cells(s, place, mark))

def bloom(s, place, mark):
    nbits, key_bits = s.fields[:2]
    places = [place]
    while len(places) < key_bits:
        places.append((places[-1] * GOLDEN + mark) & M)
    return all(bits(s.body, scale(x, nbits), 1) for x in places)

def pair(fingerprint, first, n):
    """The two of n buckets or places that a fingerprint has, of which the first is known."""
    x = fingerprint * GOLDEN & M
    return first, (2 * scale((x ^ x >> 32) * PI & M, n // 2) + 1 - first) % n

def slots(s, at, w, nbuckets, bucket, fingerprint):
    """The slots of the two buckets of a fingerprint, in a table that begins at byte 'at'."""
    buckets = pair(fingerprint, bucket, nbuckets)
    return [bits(s.body, 8 * at + (4 * b + j) * w, w) for b in buckets for j in range(4)]

def cuckoo(s, place, mark):
    nbuckets, w = s.fields[:2]
    fingerprint = 1 + scale(mark, (1 << w) - 1)
    return slots(s, 0, w, nbuckets, scale(place, nbuckets), fingerprint).count(fingerprint)

def strided(s, place, mark):
    nplaces, w = s.fields[0] - 3, s.fields[1]
    f = 1 + scale(mark, (1 << w - 1) - 1)
    strides, places = (0, 1 + ((f & 255) * 3 >> 8)), pair(f, scale(place, nplaces), nplaces)
    return any(bits(s.body, (p + strides[i]) * w, w) == 2 * f + i for p in places for i in (0, 1))

def elastic_nbytes(s):
    w, _, nsegments = s.fields[:3]
    s.bases, mark = [], 0  # of each base the segments: first mark, number, depth
    for number, depth in enumerate(s.body[64:64 + nsegments]):
        s.bases += [] if mark else [[]]
        need(depth < 32 and mark % (1 << 64 - depth) == 0, "depth")
        s.bases[-1].append((mark, number, depth))
        mark = mark + (1 << 64 - depth) & M
    fit = all(1 << depth <= 16 * len(base) for base in s.bases for _, _, depth in base)
    need(len(s.bases) == 16 and mark == 0 and fit, "segments")
    return up(64 + nsegments, 4096) + 256 * w * nsegments + 64

def elastic(s, place, mark):
    w, _, nsegments = s.fields[:3]
    base = s.bases[bisect(BASES, place >> 32) - 1]
    _, number, depth = base[bisect(base, (mark, nsegments)) - 1]
    tail, f = place >> 9 & 63, w - 6
    q = tail << f | (mark << depth & M) >> 65 - f << 1 | 1
    entries = slots(s, up(64 + nsegments, 4096) + 256 * w * number, w, 512, place & 511, tail)
    return sum(e != 0 and e ^ q < 2 * (e & -e) for e in entries)

def ribbon_nbytes(s):
    r, v, _, last, *more = s.fields
    more = more[:more.index(0)]
    need(v < r and not any(s.fields[4 + len(more):]), "layers")
    s.layers = more + [last]
    s.thresholds = sum(s.layers) * r // 8
    return up(s.thresholds + sum(up(n, 512) // 512 for n in more) + 8 * r + 64, 64)

def column(s, n, at, block, bit):
    """This bit of 64 slots in a row, of a layer of n slots that begins at byte 'at'."""
    r, stripe = s.fields[0], next(x for x in (1024, 128, 64) if n % x == 0)
    first, group = 64 * block // stripe * stripe, bit // 8 * 8
    at += (first * r + stripe * group + (64 * block - first) * min(8, r - group)) // 8
    return bits(s.body, 8 * at + 64 * (bit - group), 64)

def ribbon(s, place, mark):
    """0, or 1 + the value."""
    (r, v, salt), at, thresholds = s.fields[:3], 0, s.thresholds
    for n in s.layers[:-1]:
        slot = scale(place, n)
        if slot % 128 >= (0, 20, 44, 128)[bits(s.body, 8 * thresholds + slot // 128 * 2, 2)]:
            break
        place, at, thresholds = place * GOLDEN & M, at + n * r // 8, thresholds + up(n, 512) // 512
    else:
        n, x = s.layers[-1], place + salt * PI & M
        x = ((x ^ x >> 32) * PI ^ mark) & M
        x = (x ^ x >> 29) * GOLDEN & M
        place = x ^ x >> 32
        mark = (place ^ place >> 31) * PI & M
        slot = scale(place, n - 63)
    row, f = 0, r - v
    for bit in range(r):
        two = column(s, n, at, slot // 64, bit) | column(s, n, at, slot // 64 + 1, bit) << 64
        row |= ((two >> slot % 64 & (mark | 1)).bit_count() & 1) << bit
    return row % (1 << f) == (mark * PI & M) >> 64 - f and 1 + (row >> f)

def against(s, place, mark):
    (n, code), group = s.fields[3:5], mark & 0xffffffff
    if not code:
        return s.parts[0].found(place, mark) and s.parts[1].found(place * PI & M, mark * PI & M)
    numbers = unpack_from(f"<{n}I", s.body, 64)
    i = bisect(numbers, group) - 1
    if i >= 0 and numbers[i] == group:
        code = s.body[64 + 4 * n + i]
    x = (place * GOLDEN ^ mark) & M
    x = (x ^ x >> 32) * PI & M
    mark = x ^ x >> 29
    first = code > 3 and code < 2 * len(s.parts) + 2 and s.parts[code // 2 - 2].found(place, mark)
    if code == 3 or first:
        return s.parts[-1].found(place * PI & M, mark * PI & M)
    return code % 2 if code > 3 else code == 2

ANY, SOME = range(1 << 64), range(1, 1 << 64)
LINES = [SOME, range(1, 9), range(1, 17)]
KINDS = {  # what the fields may be, the size of the body, how often a key is found
    1: (LINES + [range(2)], lambda s: 64 * s.fields[0] * s.fields[1], blocked),
    2: ([SOME, range(1, 65)], lambda s: up(s.fields[0], 512) // 8, bloom),
    3: ([range(2, 1 << 64, 2), range(4, 33)], lambda s: up(s.fields[0] * s.fields[1] // 2 + 8, 64), cuckoo),
    4: (LINES, lambda s: 64 * s.fields[0] * s.fields[1] + 64, counting),
    5: ([range(12, 33), range((1 << 48) + 1), SOME], elastic_nbytes, elastic),
    6: ([range(1, 32769), ANY, range(1, 4)], lambda s: 64,
        lambda s, place, mark: sum(part.found(place, mark) for part in s.parts)),
    7: ([range(2, 65), ANY, ANY, ANY], lambda s: 64,
        lambda s, place, mark: any(part.found(place, mark) for part in s.parts)),
    8: ([range(1, 33), range(17), ANY, range(64, 1 << 64, 64)] + 6 * [range(0, 1 << 64, 128)],
        ribbon_nbytes, ribbon),
    10: ([ANY, SOME], lambda s: up(s.capacity, 512) // 8,
         lambda s, place, _: s.fields[0] <= place <= s.fields[1] and bits(s.body, place - s.fields[0], 1)),
    11: ([range(8, 9), ANY, range(33), range(1 << 32), range(256)],
         lambda s: up(64 + 5 * s.fields[3], 64), against),
    12: ([range(5, 1 << 48, 2), range(9, 33)], lambda s: up((s.fields[0] // 8 + 1) * s.fields[1] + 8, 64), strided),
}

FIELDS = {1: 4, 2: 2, 3: 2, 4: 3, 5: 3, 6: 3, 7: 4, 8: 10, 10: 2, 11: 3, 12: 2}  # how many a small file has

# ---- The file -------------------------------------------------------------------------------------

class Section:
    """A filter whose body begins at an offset of the data.  Its size may follow from the fields."""
    def __init__(self, data, kind, parent, capacity, fpr, offset, nbytes, fields):
        self.kind, self.parent, self.capacity, self.offset = kind, parent, capacity, offset
        self.fields, self.parts = tuple(fields), []
        need(self.kind in KINDS and 1 <= capacity <= 1 << 48, "kind or capacity")
        self.body = data[offset:]
        nbytes = KINDS[kind][1](self) if nbytes is None else nbytes
        self.end = self.offset + nbytes
        self.body = data[self.offset:self.end]
        need(1e-15 <= fpr < 1 or self.kind == 10 and fpr == 0, "rate")
        need(self.kind != 10 or capacity == self.fields[1] - self.fields[0] + 1, "range")
        need(self.kind != 1 or self.fields[3] < self.fields[1], "together")
        need(self.kind != 11 or self.fields[4] or not self.fields[3], "groups")
        ranges, nbytes_of, found = KINDS[self.kind]
        need(all(x in may for x, may in zip(self.fields, ranges + 12 * [range(1)])), "fields")
        need(nbytes == nbytes_of(self) == len(self.body), "size of the body")
        self.found = lambda place, mark: found(self, place, mark)

def siphash(key, secret):
    """SipHash-2-4 with 128 bits of output, as two integers."""
    v = [a ^ b for a, b in zip(2 * unpack_from("<QQ", secret), (
        0x736f6d6570736575, 0x646f72616e646f83, 0x6c7967656e657261, 0x7465646279746573))]
    out, words = [], iter_unpack("<Q", key + bytes(7 - len(key) % 8) + bytes([len(key) & 255]))
    for at, x, rounds, behind in [(3, word, 2, word) for word, in words] + [(2, 0xee, 4, 0), (1, 0xdd, 4, 0)]:
        v[at] ^= x
        for a, b, left, turn in rounds * ((0, 1, 13, 32), (2, 3, 16, 0), (0, 3, 21, 0), (2, 1, 17, 32)):
            v[a] = v[a] + v[b] & M
            v[b] = (v[b] << left | v[b] >> 64 - left) & M ^ v[a]
            v[a] = (v[a] << turn | v[a] >> 64 - turn) & M
        v[0] ^= behind
        out.append(v[0] ^ v[1] ^ v[2] ^ v[3])
    return out[-2:]

def hash_of(key, number, seed, secret):
    """Place and mark of a key; the place -1 if it is no integer, but should be."""
    if number == 7:
        place, mark = hash_of(key, 0, seed, secret)
        return place, mark << 32 & M | xxh3_64_intdigest(key[:seed & 255], seed) >> 32
    if number == 0:
        return divmod(xxh3_128_intdigest(key, seed), 1 << 64)[::-1]
    if number in (1, 2):
        return siphash(key, secret) if number == 1 else unpack_from("<QQ", key)
    if number == 6:
        return int(key) if re.fullmatch(rb"\+?(0|[1-9][0-9]*)", key) else -1, 0
    place = {4: xxh3_64_intdigest(key, seed), 5: int.from_bytes(key[:8], "little")}[number]
    return place, place * E & M

def header_sum(data, nbytes):
    counters = bytes(24) if data[16] & 1 else data[144:168]
    return xxh3_64_intdigest(data[:32] + bytes(8) + data[40:144] + counters + data[168:nbytes])

def read_large(data):
    """The hash, its seed and check value, the note, and the sections."""
    nbytes, features, size, checksum, n, hash_number, seed, check, first, table, *zeros = \
        unpack_from("<IQQQIIQQQQ5Q", data, 12)
    need(1 <= n <= 8192, "sections")
    note = zeros.pop(2)
    need(note < 96 and first == nbytes == up(120 + 160 * n + note, 4096) <= size == len(data), "sizes")
    need(checksum == header_sum(data, nbytes), "checksum of the header")
    need(not any(zeros) and not any(data[120 + 160 * n + note:nbytes]), "reserved")
    sections, end = [], nbytes
    for at in range(120, 120 + 160 * n, 160):
        *numbers, _, _, _, offset, body_nbytes = unpack_from("<IIQdQQQQQ", data, at)
        need(offset == up(end, 4096), "offset of a body")
        sections.append(Section(data, *numbers, offset, body_nbytes, unpack_from("<12Q", data, at + 64)))
        end = sections[-1].end
    sums = [xxh3_64_digest(data[at:end][:65536], i)[::-1] for i, at in enumerate(range(nbytes, end, 65536))]
    sums.append(xxh3_64_digest(b"".join(sums), len(sums))[::-1])
    need(table == end and size == end + 8 * len(sums), "table")
    need(features & 1 or data[end:] == b"".join(sums), "checksums")
    return hash_number, seed, check, data[120 + 160 * n:][:note], sections

def small_sum(data, nbytes):
    rest = 0 if data[16] & 1 else xxh3_64_intdigest(data[nbytes:])
    return xxh3_64_intdigest(data[:24], xxh3_64_intdigest(data[32:nbytes], rest))

class Unpacked:
    """What is in a packed header, taken from it one after the other."""
    def __init__(self, data, at):
        self.data, self.at = data, at

    def bytes(self, n):
        self.at += n
        need(self.at <= len(self.data), "end of the header")
        return self.data[self.at - n:self.at]

    def number(self):
        n = shift = 0
        while not shift or byte > 127:
            byte, = self.bytes(1)
            n, shift = n | (byte & 127) << shift, shift + 7
        need(n <= M and (byte or shift == 7), "packed number")
        return n

    def word(self, form="<Q"):
        return unpack_from(form, self.bytes(8))[0]

def read_small(data):
    """The same of a small file."""
    nbytes, size, features, checksum = unpack_from("<HHQQ", data, 12)
    need(nbytes % 64 == 0 < nbytes < size == len(data), "sizes")
    need(checksum == small_sum(data, nbytes), "checksum")
    head, sections, end = Unpacked(data[:nbytes], 32), [], nbytes
    n, hash_number = head.number(), head.number()
    need(1 <= n < 2731, "sections")
    seed = head.word() if hash_number in (0, 4, 7) else 0
    check = head.word() if hash_number in (1, 3) else None
    note = head.bytes(min(head.number(), 96))
    for i in range(n):
        kind, parent = head.number(), head.number() if i else 0xffffffff
        need(kind in FIELDS, "kind")
        capacity, fpr, fields = head.number(), head.word("<d"), [head.number() for _ in range(FIELDS[kind])]
        sections.append(Section(data, kind, parent, capacity, fpr, end, None, fields + [0] * (12 - len(fields))))
        end = sections[-1].end
    need(nbytes == up(head.at, 64) and not any(data[head.at:nbytes]), "end of the header")
    need(size == end + 24 * n, "size of the file")
    return hash_number, seed, check, note, sections

def read(data, secret=None):
    """The function that tells how often a key is perhaps in the file of these bytes."""
    need(len(data) >= 32 and data[:8] == b"\x89perh\r\n\x1a", "magic")
    version, features = unpack_from("<I4xQ", data, 8)
    live, is_set, small = features & 1, features & 4, features & 16
    need(version == 1 and features & ~16 in (0, 1, 4, 8, 9, 12) and (small or len(data) >= 4096), "version")
    hash_number, seed, check, note, sections = read_small(data) if small else read_large(data)
    need(hash_number in (0, 1, 2, 4, 5, 6, 7), "hash")
    need(len(note) < 96 and all(31 < c != 127 for c in note), "note")
    for i, s in enumerate(sections):
        if i > 0:
            need(s.parent == 0 or s.parent < i and sections[s.parent].parent == 0, "parent")
            sections[s.parent].parts.append(s)
    for s in sections:  # which field tells the kind of its parts, and how many it may have
        field, may = {6: (1, range(1, 65)), 7: (1, s.fields[:1]), 11: (0, range(1, 65) if s.fields[4] else [2])}.get(s.kind, (0, [0]))
        need(len(s.parts) in may and all(part.kind == s.fields[field] for part in s.parts), "parts")
    need(not live or len(sections) == 1 and s.kind in (1, 2, 10), "live")
    stored = sections[1 if sections[0].kind == 6 else 0].kind
    need(not is_set or stored in (3, 4, 5, 12), "a set, but not of a kind that stores copies")
    need(sections[0].parent == 0xffffffff and (sections[0].kind == 10) == (hash_number == 6), "first")
    need(hash_number != 7 or sections[0].kind == 11, "groups")
    own = max(0, hash_of(b"perhaps, or not.", hash_number, seed, secret)[0])
    need(check in (None, own), "check value")
    return lambda key: int(sections[0].found(*hash_of(key, hash_number, seed, secret)))
