"""What the server writes around the bytes of a module: DUMP's payload, and its checksum."""
import struct

# ---- The checksum ---------------------------------------------------------------------------

POLYNOMIAL = 0x95ac9329ac4bc9b5  # of Jones, reflected


def table():
    entries = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
        entries.append(value)
    return entries


TABLE = table()


def crc64(data, crc=0):
    for byte in data:
        crc = TABLE[crc & 255 ^ byte] ^ crc >> 8
    return crc


assert crc64(b'123456789') == 0xe9c6d914c4b8d9ca


def seal(body):
    """Returns a payload of RESTORE: these bytes, the version, and the checksum."""
    body = bytes(body)
    return body + struct.pack('<Q', crc64(body))


# ---- The value of a module ------------------------------------------------------------------

MODULE_2 = 7  # the type of a value, in an RDB
VERSION = struct.pack('<H', 10)
END, SIGNED, UNSIGNED, FLOAT, DOUBLE, STRING = range(6)
LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'


def type_number(name, encoding):
    """Returns the number of a data type: 9 letters of 6 bits, and 10 bits of the encoding."""
    number = 0
    for letter in name:
        number = number << 6 | LETTERS.index(letter)
    return number << 10 | encoding


def encode_length(n):
    if n < 1 << 6:
        return bytes([n])
    if n < 1 << 14:
        return bytes([0x40 | n >> 8, n & 255])
    if n < 1 << 32:
        return b'\x80' + struct.pack('>I', n)
    return b'\x81' + struct.pack('>Q', n)


def decode_length(data, at):
    """Returns the length and where it ends; or None and the kind of a packed string."""
    kind = data[at] >> 6
    if kind == 0:
        return data[at] & 63, at + 1
    if kind == 1:
        return (data[at] & 63) << 8 | data[at + 1], at + 2
    if data[at] == 0x80:
        return struct.unpack_from('>I', data, at + 1)[0], at + 5
    if data[at] == 0x81:
        return struct.unpack_from('>Q', data, at + 1)[0], at + 9
    raise ValueError('a packed string: start the server with rdbcompression no')


def encode_fields(fields):
    """Returns numbers, floats and bytes as a module saves them."""
    out = []
    for field in fields:
        if isinstance(field, int):
            out.append(bytes([UNSIGNED]) + encode_length(field))
        elif isinstance(field, float):
            out.append(bytes([DOUBLE]) + struct.pack('<d', field))
        else:
            out.append(bytes([STRING]) + encode_length(len(field)) + bytes(field))
    return b''.join(out)


def decode_fields(data, at):
    """Returns the fields from 'at' on, and where they end."""
    fields = []
    while data[at] != END:
        kind, at = data[at], at + 1
        if kind == UNSIGNED:
            value, at = decode_length(data, at)
        elif kind == DOUBLE:
            value, at = struct.unpack_from('<d', data, at)[0], at + 8
        elif kind == STRING:
            n, at = decode_length(data, at)
            value, at = bytes(data[at:at + n]), at + n
        else:
            raise ValueError('field of kind %d' % kind)
        fields.append(value)
    return fields, at + 1


def payload(name, encoding, fields, version=VERSION):
    """Returns what RESTORE takes for a value of this data type."""
    number = type_number(name, encoding)
    body = bytes([MODULE_2]) + encode_length(number) + encode_fields(fields) + bytes([END])
    return seal(body + version)


def take_apart(dumped):
    """Returns (the type's number, fields, version) of what DUMP gave."""
    assert dumped[0] == MODULE_2
    number, at = decode_length(dumped, 1)
    fields, at = decode_fields(dumped, at)
    return number, fields, dumped[at:at + 2]


def put_together(number, fields, version=VERSION):
    body = bytes([MODULE_2]) + encode_length(number) + encode_fields(fields) + bytes([END])
    return seal(body + version)
