"""Producers of Arrow's C data interface, made by hand: there is no pyarrow in Debian.

Each counts how often what it gave was released: once is right.
"""
import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p, pointer


class Schema(Structure):
    pass


class Array(Structure):
    pass


class Stream(Structure):
    pass


Schema._fields_ = [
    ('format', c_char_p), ('name', c_char_p), ('metadata', c_char_p), ('flags', c_int64),
    ('n_children', c_int64), ('children', c_void_p), ('dictionary', c_void_p),
    ('release', CFUNCTYPE(None, POINTER(Schema))), ('private_data', c_void_p)]
Array._fields_ = [
    ('length', c_int64), ('null_count', c_int64), ('offset', c_int64), ('n_buffers', c_int64),
    ('n_children', c_int64), ('buffers', POINTER(c_void_p)), ('children', c_void_p),
    ('dictionary', c_void_p), ('release', CFUNCTYPE(None, POINTER(Array))),
    ('private_data', c_void_p)]
Stream._fields_ = [
    ('get_schema', CFUNCTYPE(c_int, POINTER(Stream), POINTER(Schema))),
    ('get_next', CFUNCTYPE(c_int, POINTER(Stream), POINTER(Array))),
    ('get_last_error', CFUNCTYPE(c_void_p, POINTER(Stream))),
    ('release', CFUNCTYPE(None, POINTER(Stream))), ('private_data', c_void_p)]

DESTRUCTOR = CFUNCTYPE(None, c_void_p)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [c_void_p, c_char_p, DESTRUCTOR]
capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(
    ('PyCapsule_GetPointer', ctypes.pythonapi))

kept = []  # what C still points to; a test is short


def keep(thing):
    kept.append(thing)
    return thing


class Counter:
    """Counts what was released."""

    def __init__(self):
        self.released = 0

    def releaser(self, kind):
        def release(thing):
            self.released += 1
            ctypes.memset(ctypes.addressof(thing.contents) + kind.release.offset, 0,
                          kind.release.size)
        return keep(dict(kind._fields_)['release'](release))


def capsule(thing, name, kind):
    """A capsule that releases the thing unless somebody has, as the interface wants it."""
    def destroy(_):
        if thing.release:
            thing.release(pointer(thing))
    keep(thing)
    return new_capsule(ctypes.addressof(thing), name, keep(DESTRUCTOR(destroy)))


def packed(items, form):
    """The buffers of strings: offsets and data."""
    offset = ctypes.c_int32 if form in ('u', 'z') else ctypes.c_int64
    offsets, data = [0], b''.join(items)
    for item in items:
        offsets.append(offsets[-1] + len(item))
    return [(offset * len(offsets))(*offsets), ctypes.create_string_buffer(data, len(data) or 1)]


def views(items):
    """The buffers of string views: those of 12 bytes lie in the view, longer ones in two heaps."""
    heaps, all_views = [b'', b'xx'], b''
    for number, item in enumerate(items):
        all_views += len(item).to_bytes(4, 'little')
        if len(item) <= 12:
            all_views += item.ljust(12, b'\0')
            continue
        heap = number % 2
        all_views += item[:4] + heap.to_bytes(4, 'little')
        all_views += len(heaps[heap]).to_bytes(4, 'little')
        heaps[heap] += item
    return [ctypes.create_string_buffer(b, len(b) or 1) for b in (all_views, *heaps)]


def as_bytes(item):
    return item.encode() if isinstance(item, str) else item


NUMBERS = {'c': ctypes.c_int8, 'C': ctypes.c_uint8, 's': ctypes.c_int16, 'S': ctypes.c_uint16,
           'i': ctypes.c_int32, 'I': ctypes.c_uint32, 'l': ctypes.c_int64, 'L': ctypes.c_uint64,
           'g': ctypes.c_double}


def buffers_of(form, items):
    if form in NUMBERS:
        return [(NUMBERS[form] * max(len(items), 1))(*[item or 0 for item in items])]
    items = [as_bytes(item) if item is not None else b'' for item in items]
    if form in ('vu', 'vz'):
        return views(items)
    if form.startswith('w:'):
        data = b''.join(items)
        return [ctypes.create_string_buffer(data, len(data) or 1)]
    return packed(items, form)


class Column:
    """An object with __arrow_c_array__: items first to end of all items."""

    def __init__(self, form, items, first=0, end=None, dictionary=False, counter=None):
        self.form, self.items, self.first = form, items, first
        self.end = len(items) if end is None else end
        self.dictionary = dictionary
        self.counter = counter or Counter()

    @property
    def released(self):
        return self.counter.released

    def schema(self):
        return Schema(format=keep(self.form.encode()), name=b'', flags=2,
                      dictionary=1 if self.dictionary else None,
                      release=self.counter.releaser(Schema))

    def array(self):
        nulls = [item is None for item in self.items]
        valid = bytearray(len(nulls) // 8 + 1)
        for i, null in enumerate(nulls):
            valid[i // 8] |= (not null) << i % 8
        valid = (ctypes.c_uint8 * len(valid))(*valid) if any(nulls) else None
        buffers = keep([valid, *buffers_of(self.form, self.items)])
        table = (c_void_p * len(buffers))(*[b if b is None else ctypes.addressof(b)
                                            for b in buffers])
        return Array(length=self.end - self.first, null_count=-1 if any(nulls) else 0,
                     offset=self.first, n_buffers=len(buffers), buffers=keep(table),
                     release=self.counter.releaser(Array))

    def __arrow_c_array__(self, requested_schema=None):
        return (capsule(self.schema(), b'arrow_schema', Schema),
                capsule(self.array(), b'arrow_array', Array))


class Columns:
    """An object with __arrow_c_stream__: several columns, and then the end, or an error."""

    def __init__(self, *columns, error=0):
        self.columns, self.error, self.given = columns, error, 0
        self.released = 0

    def __arrow_c_stream__(self, requested_schema=None):
        text = keep(ctypes.create_string_buffer(b'the disk is gone'))

        def get_schema(_, schema):
            ctypes.memmove(schema, keep(pointer(self.columns[0].schema())), ctypes.sizeof(Schema))
            return 0

        def get_next(_, array):
            if self.given == len(self.columns):
                ctypes.memset(array, 0, ctypes.sizeof(Array))
                return self.error
            column = keep(pointer(self.columns[self.given].array()))
            ctypes.memmove(array, column, ctypes.sizeof(Array))
            self.given += 1
            return 0

        def release(stream):
            self.released += 1
            ctypes.memset(ctypes.addressof(stream.contents) + Stream.release.offset, 0,
                          Stream.release.size)

        types = dict(Stream._fields_)
        stream = Stream(get_schema=keep(types['get_schema'](get_schema)),
                        get_next=keep(types['get_next'](get_next)),
                        get_last_error=keep(types['get_last_error'](
                            lambda _: ctypes.addressof(text))),
                        release=keep(types['release'](release)))
        return capsule(stream, b'arrow_array_stream', Stream)
