"""Bytes that an enemy wrote, for RESTORE, LOADCHUNK and the RDB: dumps of true filters in which
something is changed, with checksums that are right again."""
import ctypes
import ctypes.util
import struct

import foreign
import rdb
import valkeybloom
import zoo

# Small ones of each kind: how each is made, and how many items it gets.
SMALL = {
    'bf_chain': ('BF.RESERVE KEY 0.01 20', 60),
    'bf_blocked': ('BF.RESERVE KEY 0.01 50 NONSCALING', 40),
    'bf_window': ('BF.RESERVE KEY 0.01 20 WINDOW 24h', 50),
    'cf_chain': ('CF.RESERVE KEY 40 EXPANSION 2', 90),
    'cf_cuckoo': ('CF.RESERVE KEY 60 EXPANSION 0', 50),
    'cf_elastic': ('', 60),
    'bf_foreign': (lambda: foreign.Bloom(30, 0.01), 100),
    'bf_valkey': (lambda: valkeybloom.Bloom(30, 0.01), 100),
    'cf_foreign': (lambda: foreign.Cuckoo(32, 2, 2), 100),
}


def make_small(client, kind):
    """Makes a filter and returns its dump."""
    recipe, n = SMALL[kind]
    made = zoo.Filter(kind, 'small')
    client.call('DEL', 'small')
    if callable(recipe):
        model = recipe()
        for item in zoo.items('item', n):
            model.add(item.encode())
        client.call('RESTORE', 'small', 0, foreign.restore_payload(model))
    else:
        if recipe:
            client.call(*recipe.replace('KEY', 'small').split())
        made.add(client, zoo.items('item', n))
    return client.call('DUMP', 'small')


# ---- Checksums of our files -----------------------------------------------------------------

PAGE = 65536
xxhash = ctypes.CDLL(ctypes.util.find_library('xxhash') or 'libxxhash.so.0')
xxhash.XXH3_64bits_withSeed.restype = ctypes.c_uint64
xxhash.XXH3_64bits_withSeed.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]


def checksum(data, seed=0):
    return struct.pack('<Q', xxhash.XXH3_64bits_withSeed(bytes(data), len(data), seed))


class Layout:
    """Where the checksums lie in a file of the library (doc/FORMAT.md)."""

    def __init__(self, file):
        self.header = struct.unpack_from('<I', file, 12)[0]
        self.table = struct.unpack_from('<Q', file, 72)[0]

    def repair(self, file):
        """Makes all checksums right; bytes behind the table stay."""
        file = bytearray(file)
        if len(file) < self.table + 16:
            return bytes(file)
        table = b''.join(checksum(file[at:min(at + PAGE, self.table)], i)
                         for i, at in enumerate(range(self.header, self.table, PAGE)))
        table += checksum(table, len(table) // 8)
        file[self.table:self.table + len(table)] = table
        file[32:40] = bytes(8)
        file[32:40] = checksum(file[:self.header])
        return bytes(file)


# ---- Changes --------------------------------------------------------------------------------

NUMBERS = [0, 1, 2, 3, 7, 63, 64, 255, 256, 4096, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32,
           2**40, 2**41, 2**48, 2**53, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, 5e-324, float('inf'), float('-inf'),
         float('nan'), 0.999999999, 1e-15]


def change_number(random, number):
    kind = random.randrange(4)
    if kind == 0:
        return random.choice(NUMBERS)
    if kind == 1:
        return (number + random.choice([-1, 1, 2, -2, 64, -64])) % 2**64
    if kind == 2:
        return number ^ 1 << random.randrange(64)
    return (number * random.choice([2, 3, 2**32, 2**60])) % 2**64


def change_bytes(random, data):
    """Changes a few bytes, or the length."""
    data = bytearray(data)
    kind = random.randrange(8)
    at = random.randrange(len(data)) if data else 0
    if not data:
        return bytes(random.randrange(40))
    if kind < 2:
        for _ in range(random.choice([1, 1, 2, 8])):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif kind < 4 and len(data) >= 8:
        nbytes, letter = random.choice([(4, '<I'), (8, '<Q')])
        at = random.randrange(0, len(data) - 7, 4)
        number = change_number(random, struct.unpack_from(letter, data, at)[0])
        struct.pack_into(letter, data, at, number % (1 << 8 * nbytes))
    elif kind == 4 and len(data) >= 8:
        struct.pack_into('<d', data, random.randrange(0, len(data) - 7, 4), random.choice(REALS))
    elif kind == 5:
        del data[at:at + random.choice([1, 8, 64, len(data)])]
    elif kind == 6:
        data[at:at] = random.randbytes(random.choice([1, 8, 64]))
    else:
        data[at:at + 16] = bytes([random.choice([0, 255])]) * 16
    return bytes(data)


def change_fields(random, fields):
    """Changes one or two fields, or leaves one out, doubles or exchanges them."""
    fields = list(fields)
    for _ in range(random.choice([1, 1, 2])):
        at, kind = random.randrange(len(fields)), random.randrange(16)
        field = fields[at]
        if kind == 0 and len(fields) > 1:
            del fields[at]
        elif kind == 1:
            fields.insert(at, field)
        elif kind == 2:
            other = random.randrange(len(fields))
            fields[at], fields[other] = fields[other], field
        elif isinstance(field, int):
            fields[at] = change_number(random, field)
        elif isinstance(field, float):
            fields[at] = random.choice(REALS)
        else:
            fields[at] = change_bytes(random, field)
    return fields


def change_own(random, fields):
    """Changes the file within a dump of ours, most often in its header, and repairs its
    checksums: so the change gets past them."""
    file = b''.join(fields[3:])
    layout = Layout(file)
    nheader = 120 + 160 * struct.unpack_from('<I', file, 40)[0]
    if random.randrange(3):
        file = change_bytes(random, file[8:nheader]).join([file[:8], file[nheader:]])
    else:
        file = file[:nheader] + change_bytes(random, file[nheader:])
    header = fields[0]
    if random.randrange(3) == 0:
        header = change_bytes(random, header)
    file = layout.repair(file)
    if random.randrange(2):
        header = header[:88] + struct.pack('<Q', len(file)) + header[96:]
    return [header, *fields[1:3], file]


def change(random, dumped, framed=False):
    """Returns a payload for RESTORE, with a right CRC, made of one that DUMP gave.  With 'framed'
    it is a sequence of fields; others can end a server by themselves, in an RDB."""
    kind = random.randrange(1 if framed else 0, 10)
    if kind == 0:
        return rdb.seal(change_bytes(random, dumped[:-8]))
    number, fields, version = rdb.take_apart(dumped)
    if kind == 1:
        number = change_number(random, number)
    elif kind < 6 and isinstance(fields[0], bytes) and fields[1] == 1:
        fields = change_own(random, fields)
    else:
        fields = change_fields(random, fields)
    return rdb.put_together(number, fields, version)


def rdb_file(random, payload):
    """Returns an RDB file with a key that has the value of this payload, and one behind it."""
    body = b'REDIS0010\xfe\x00'
    body += payload[:1] + rdb.encode_length(5) + b'small' + payload[1:-10]
    body += b'\x00\x04text\x05whole\xff'
    return rdb.seal(body)
