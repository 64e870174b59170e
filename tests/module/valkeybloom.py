"""Bloom filters as valkey-bloom makes them: a model in Python, its dumps, and filters that the
crate made which it is built on (valkeybloom_golden.txt).

Written from the description of the formats, not from the module's code.
"""
import math
import pathlib
import struct

from foreign import Bits

MASK = (1 << 64) - 1
PRIME = (1 << 64) - 59
FIXED_SEED = bytes([89, 15, 245, 34, 234, 120, 17, 218, 167, 20, 216, 9, 59, 62, 123, 217, 29, 137,
                    138, 115, 62, 152, 136, 135, 48, 127, 151, 205, 40, 7, 51, 131])
SEED = bytes(range(100, 132))
CHUNK_NBYTES = 16 << 20


def siphash13(data, key):
    k0, k1 = struct.unpack('<2Q', key)
    v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d,
         k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573]

    def turn(x, bits):
        return (x << bits | x >> (64 - bits)) & MASK

    def rounds(n):
        for _ in range(n):
            v[0] = v[0] + v[1] & MASK
            v[1] = turn(v[1], 13) ^ v[0]
            v[0] = turn(v[0], 32)
            v[2] = v[2] + v[3] & MASK
            v[3] = turn(v[3], 16) ^ v[2]
            v[0] = v[0] + v[3] & MASK
            v[3] = turn(v[3], 21) ^ v[0]
            v[2] = v[2] + v[1] & MASK
            v[1] = turn(v[1], 17) ^ v[2]
            v[2] = turn(v[2], 32)
    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 255])
    for (word,) in struct.iter_unpack('<Q', padded):
        v[3] ^= word
        rounds(1)
        v[0] ^= word
    v[2] ^= 255
    rounds(3)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


class Layer(Bits):
    def __init__(self, capacity, rate, seed):
        self.capacity, self.seed, self.items = capacity, seed, 0
        nbytes = math.ceil(capacity * math.log(rate) / (-8 * math.log(2) ** 2))
        self.bytes = bytearray(nbytes)
        self.hashes = max(1, math.floor(8 * nbytes / capacity * math.log(2) + .5))

    def places(self, item):
        hashed = struct.pack('<Q', len(item)) + item
        a, b = siphash13(hashed, self.seed[:16]), siphash13(hashed, self.seed[16:])
        bits = 8 * len(self.bytes)
        return [(a if i == 0 else b if i == 1 else (a + i * b & MASK) % PRIME) % bits
                for i in range(self.hashes)]

    def block(self):
        return struct.pack('<BQI', 1, len(self.bytes), self.hashes) + self.seed + self.bytes


class Bloom:
    type_name, encoding = 'bloomfltr', 1

    def __init__(self, capacity=100, rate=0.01, expansion=2, tightening=0.5, seed=SEED):
        self.rate, self.expansion, self.tightening, self.seed = rate, expansion, tightening, seed
        self.layers = [Layer(capacity, rate, seed)]

    @property
    def size(self):
        return sum(layer.items for layer in self.layers)

    def contains(self, item):
        return any(layer.contains(item) for layer in self.layers)

    def add(self, item):
        if self.contains(item):
            return 0
        last = self.layers[-1]
        if last.items >= last.capacity:
            assert self.expansion
            last = Layer(last.capacity * self.expansion,
                         self.rate * self.tightening ** len(self.layers), self.seed)
            self.layers.append(last)
        last.add(item)
        return 1

    def is_random(self):
        return int(self.seed != FIXED_SEED)

    def fields(self):
        """What an RDB has."""
        fields = [len(self.layers), self.expansion, self.rate, self.tightening, self.is_random()]
        for layer in self.layers:
            fields += [bytes(layer.block()), layer.capacity]
        return fields + [self.layers[-1].items]

    def dump(self):
        """What BF.LOAD takes."""
        out = struct.pack('<BIddBQ', 1, self.expansion, self.rate, self.tightening,
                          self.is_random(), len(self.layers))
        for layer in self.layers:
            block = layer.block()
            out += struct.pack('<Q', len(block)) + block + struct.pack('<qq', layer.items,
                                                                       layer.capacity)
        return out

    def header(self):
        """What SCANDUMP gives first."""
        out = b'valkeyBF' + struct.pack('<IIIdd', 1, self.expansion, len(self.layers), self.rate,
                                        self.tightening) + self.seed
        for layer in self.layers:
            out += struct.pack('<QQQ', len(layer.block()), layer.capacity, layer.items)
        return out

    def bodies(self):
        return [layer.block() for layer in self.layers]

    def insert(self, key):
        """What makes an empty one, as a master with valkey-bloom sends it."""
        how = ['EXPANSION', self.expansion] if self.expansion else ['NONSCALING']
        return ['BF.INSERT', key, 'CAPACITY', self.layers[0].capacity, 'ERROR', repr(self.rate),
                'TIGHTENING', repr(self.tightening), 'SEED', self.seed, *how]


# ---- What the crate made --------------------------------------------------------------------

def golden_items(n):
    return [bytes((i * 31 + j * 7) % 256 for j in range(i % 23)) + str(i).encode()
            for i in range(n)]


class Golden:
    """A filter that the crate made, and what it answered."""

    def __init__(self, line):
        self.name, capacity, rate, tightening, expansion, seed, items, self.answers = line.split()
        self.model = Bloom(int(capacity), float(rate), int(expansion), float(tightening),
                           bytes.fromhex(seed))
        self.items = golden_items(int(items))
        self.layers = []

    def layer(self, line):
        items, capacity, block = line.split()
        self.layers.append((int(items), int(capacity), bytes.fromhex(block)))


def golden():
    out = []
    for line in pathlib.Path(__file__).with_name('valkeybloom_golden.txt').read_text().splitlines():
        if line.startswith('  '):
            out[-1].layer(line)
        elif not line.startswith('#'):
            out.append(Golden(line))
    return out


for one in golden():  # the model is right
    assert [one.model.add(item) for item in one.items] == [int(c) for c in one.answers], one.name
    assert [(layer.items, layer.capacity, bytes(layer.block())) for layer in one.model.layers] == \
        one.layers, one.name
