"""Filters as RedisBloom makes them: models in Python, their dumps, and twins of items.

Written from the description of the formats, not from the module's code.
"""
import math
import struct

import rdb

MASK = (1 << 64) - 1
M = 0xc6a4a7935bd1e995
CHUNK_NBYTES = 16 << 20


def murmur64a(key, seed):
    h = seed ^ len(key) * M & MASK
    whole = len(key) & ~7
    for (k,) in struct.iter_unpack('<Q', key[:whole]):
        k = k * M & MASK
        k ^= k >> 47
        h = (h ^ k * M & MASK) * M & MASK
    if len(key) & 7:
        h = (h ^ int.from_bytes(key[whole:], 'little')) * M & MASK
    h ^= h >> 47
    h = h * M & MASK
    return h ^ h >> 47


def twin(item):
    """Returns another item of the same 16 bytes' length that MurmurHash64A hashes to the same
    value, whatever the seed: in both blocks the top bit is flipped of what goes into the hash,
    and the second takes back what the first did."""
    inverse = pow(M, -1, 1 << 64)
    blocks = []
    for (k,) in struct.iter_unpack('<Q', item[:16]):
        k = k * M & MASK
        k = (k ^ k >> 47) * M & MASK  # goes into the hash
        k = (k ^ 1 << 63) * inverse & MASK
        k ^= k >> 47
        blocks.append(k * inverse & MASK)
    return struct.pack('<2Q', *blocks) + item[16:]


assert murmur64a(b'foo', M) == 0x822b4f99b121f10d
assert murmur64a(b'foo', 0x822b4f99b121f10d) == 0x9d63d52a557f61c2
assert murmur64a(twin(b'sixteen bytes ok'), 42) == murmur64a(b'sixteen bytes ok', 42)


# ---- Bloom filters --------------------------------------------------------------------------

NOROUND, ENTRIES_ARE_BITS, FORCE64, NONSCALING = 1, 2, 4, 8
BLOOM_HEADER, BLOOM_LINK = '<QIII', '<QQQddIQB'  # 20 and 53 bytes


class Bits:
    """Bytes of which an item has the bits at its places."""

    def contains(self, item):
        return all(self.bytes[bit >> 3] >> (bit & 7) & 1 for bit in self.places(item))

    def add(self, item):
        for bit in self.places(item):
            self.bytes[bit >> 3] |= 1 << (bit & 7)
        self.items += 1


class Link(Bits):
    def __init__(self, entries, error):
        self.entries, self.error = entries, error
        self.bpe = -math.log(error) / 0.480453013918201
        self.hashes = math.ceil(0.693147180559945 * self.bpe)
        self.bits = -(-int(entries * self.bpe) // 64) * 64
        self.items = 0
        self.bytes = bytearray(self.bits // 8)

    def places(self, item):
        a = murmur64a(item, M)
        b = murmur64a(item, a)
        return [(a + i * b & MASK) % self.bits for i in range(self.hashes)]


class Bloom:
    """A chain of Bloom filters."""
    type_name, encoding = 'MBbloom--', 4

    def __init__(self, capacity=100, error=0.01, growth=2, nonscaling=False):
        self.growth, self.size = growth, 0
        self.options = NOROUND | FORCE64 | (NONSCALING if nonscaling else 0)
        self.links = [Link(capacity, error if nonscaling else error / 2)]

    def contains(self, item):
        return any(link.contains(item) for link in self.links)

    def add(self, item):
        if self.contains(item):
            return 0
        last = self.links[-1]
        if last.items >= last.entries:
            last = Link(last.entries * self.growth, last.error / 2)
            self.links.append(last)
        last.add(item)
        self.size += 1
        return 1

    def header(self):
        out = struct.pack(BLOOM_HEADER, self.size, len(self.links), self.options, self.growth)
        for link in self.links:
            out += struct.pack(BLOOM_LINK, len(link.bytes), link.bits, link.items, link.error,
                               link.bpe, link.hashes, link.entries, 0)
        return out

    def bodies(self):
        return [link.bytes for link in self.links]

    def fields(self):
        fields = [self.size, len(self.links), self.options, self.growth]
        for link in self.links:
            fields += [link.entries, link.error, link.hashes, link.bpe, link.bits, 0,
                       bytes(link.bytes), link.items]
        return fields

    @classmethod
    def from_dump(cls, header, body):
        """What RedisBloom would take from these chunks."""
        self = cls()
        self.size, n, self.options, self.growth = struct.unpack_from(BLOOM_HEADER, header)
        assert len(header) == 20 + 53 * n
        self.links, at = [], 0
        for nbytes, bits, items, error, bpe, hashes, entries, n2 in struct.iter_unpack(
                BLOOM_LINK, header[20:]):
            link = Link(entries, error)
            assert (link.bpe, link.hashes, link.bits, n2) == (bpe, hashes, bits, 0)
            assert nbytes == len(link.bytes)
            link.items, link.bytes = items, bytearray(body[at:at + nbytes])
            self.links.append(link)
            at += nbytes
        assert at == len(body)
        return self


# ---- Cuckoo filters -------------------------------------------------------------------------

CUCKOO_HEADER = '<QQQQHHH'


class Cuckoo:
    """Cuckoo filters of one byte a slot; items are put wherever there is room."""
    type_name, encoding = 'MBbloomCF', 4

    def __init__(self, buckets=512, bucket_size=2, expansion=1, iterations=20):
        self.buckets, self.bucket_size = buckets, bucket_size
        self.expansion, self.iterations = expansion, iterations
        self.items = self.deletes = 0
        self.filters = []
        self.grow()

    def buckets_of(self, j):
        return self.buckets * self.expansion ** j

    def grow(self):
        nslots = self.buckets_of(len(self.filters)) * self.bucket_size
        self.filters.append(bytearray(nslots))

    def slots(self, j, item):
        """Returns the fingerprint, and the slots of filter j in which it may lie."""
        h = murmur64a(item, 0)
        fp = h % 255 + 1
        n, size = self.buckets_of(j), self.bucket_size
        pair = {h % n, (h ^ fp * 0x5bd1e995) % n}
        return fp, [bucket * size + i for bucket in sorted(pair) for i in range(size)]

    def count(self, item):
        found = 0
        for j, slots in enumerate(self.filters):
            fp, places = self.slots(j, item)
            found += sum(slots[place] == fp for place in places)
        return found

    def contains(self, item):
        return self.count(item) > 0

    def add(self, item):
        for j, slots in enumerate(self.filters):
            fp, places = self.slots(j, item)
            for place in places:
                if not slots[place]:
                    slots[place] = fp
                    self.items += 1
                    return 1
        if not self.expansion:
            return 0
        self.grow()
        return self.add(item)

    def header(self):
        return struct.pack(CUCKOO_HEADER, self.items, self.buckets, self.deletes,
                           len(self.filters), self.bucket_size, self.iterations, self.expansion)

    def bodies(self):
        return self.filters

    def fields(self):
        fields = [len(self.filters), self.buckets, self.items, self.deletes, self.bucket_size,
                  self.iterations, self.expansion]
        for j, slots in enumerate(self.filters):
            fields += [self.buckets_of(j), bytes(slots)]
        return fields

    @classmethod
    def from_dump(cls, header, body):
        items, buckets, deletes, n, size, iterations, expansion = struct.unpack(
            CUCKOO_HEADER, header)
        self = cls(buckets, size, expansion, iterations)
        self.items, self.deletes, self.filters, at = items, deletes, [], 0
        for j in range(n):
            nslots = self.buckets_of(j) * size
            self.filters.append(bytearray(body[at:at + nslots]))
            at += nslots
        assert at == len(body)
        return self


# ---- Dumps ----------------------------------------------------------------------------------

def restore_payload(model):
    return rdb.payload(model.type_name, model.encoding, model.fields())


def chunks(model):
    """Returns what SCANDUMP gives: pairs of a position and data."""
    out, position = [(1, model.header())], 1
    for body in model.bodies():
        for at in range(0, len(body), CHUNK_NBYTES):
            data = bytes(body[at:at + CHUNK_NBYTES])
            position += len(data)
            out.append((position, data))
    return out


assert struct.calcsize(BLOOM_HEADER) == 20 and struct.calcsize(BLOOM_LINK) == 53
assert struct.calcsize(CUCKOO_HEADER) == 38
assert (Link(100, 0.005).bits, Link(100, 0.005).hashes) == (1152, 8)
assert Link(100, 0.005).places(b'foo') == [269, 847, 145, 723, 21, 599, 25, 475]
assert Cuckoo().slots(0, b'foo') == (217, [152, 153, 514, 515])
