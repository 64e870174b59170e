"""Many keys: arrays by the buffer protocol, Arrow's data, and what can be iterated over."""
import array
import gc
import sys
import tracemalloc

import numpy
import perhaps
import pytest
from arrow import Column, Columns
from support import SEED, made_by, raised


def filled(keys):
    f = made_by(capacity=20000)
    f.add_many(keys)
    return f


def holds_exactly(keys, items):
    """Whether these many keys are the same as those items, one by one."""
    f = made_by(*items, capacity=20000)
    strangers = [f'stranger {i}' for i in range(100)]
    return (filled(keys) == f and f.contains_many(keys).tolist() == [True] * len(items) and
            not any(filled(keys).contains_many(strangers)))


# ---- Numbers --------------------------------------------------------------------------------

TYPES = ['i1', 'u1', 'i2', 'u2', 'i4', 'u4', 'i8', 'u8', 'q', 'Q', 'l', 'L']


@pytest.mark.parametrize('dtype', TYPES)
def test_numbers_of_every_type(dtype):
    info = numpy.iinfo(numpy.dtype(dtype))
    items = [info.min, info.max, 0, 1, 42, info.max - 1]
    assert holds_exactly(numpy.array(items, dtype), items)
    many = numpy.random.default_rng(SEED).integers(info.min, info.max, 10000, dtype)
    f = filled(many)
    assert all(int(k) in f for k in many[::17])
    assert all(f.contains_many(many)) and all(f.contains_many(many.tolist()))
    empty = numpy.array([], dtype)
    assert filled(empty) == made_by(capacity=20000) and f.contains_many(empty).tolist() == []


@pytest.mark.parametrize('letter', 'bBhHiIlLqQ')
def test_numbers_of_pythons_array(letter):
    items = [0, 1, 100] if letter.isupper() else [0, 1, -1, 100, -100]
    assert holds_exactly(array.array(letter, items), items)
    assert holds_exactly(memoryview(array.array(letter, items)), items)


def test_bytes_as_numbers():
    assert holds_exactly(memoryview(bytes(15) + b'\x80').cast('n'), [0, -2**63])
    assert holds_exactly(memoryview(bytes(15) + b'\x80').cast('N'), [0, 2**63])
    assert holds_exactly(memoryview(b'\x05\xff'), [5, 255])
    for one in (b'abc', 'abc', bytearray(b'abc')):
        for call in (made_by().add_many, made_by().contains_many, made_by().update):
            assert 'one key' in str(raised(TypeError, call, one))


def test_what_does_not_lie_in_a_row():
    a = numpy.arange(1000, dtype='i8')
    assert holds_exactly(a[::3], list(range(0, 1000, 3)))
    assert holds_exactly(a[::-1], list(range(999, -1, -1)))
    assert holds_exactly(a.astype('u2')[5::7], list(range(5, 1000, 7)))
    assert holds_exactly(numpy.broadcast_to(numpy.int64(5), 1), [5])
    table = a.reshape(20, 50)
    assert holds_exactly(table, list(range(1000)))
    assert holds_exactly(table[:, 3], list(range(3, 1000, 50)))
    assert holds_exactly(table[3:5], list(range(150, 250)))
    for bad in (table[:, ::2], table.T, numpy.asfortranarray(table)):
        assert 'ascontiguousarray' in str(raised(BufferError, made_by().add_many, bad))
    a.flags.writeable = False
    assert filled(a[:10]) == made_by(*range(10), capacity=20000)


@pytest.mark.parametrize('bad, text', [
    (numpy.array([1.0]), 'fractions'), (numpy.array([1.0], 'f4'), 'fractions'),
    (numpy.array([1], 'f2'), 'fractions'), (numpy.array([True]), 'True and False'),
    (numpy.array([1j]), 'format'), (numpy.zeros(2, [('a', 'i4')]), 'format'),
    (numpy.array(['2020-01-01'], 'M8[D]'), 'datetime64'), (numpy.array(5), 'one number'),
    (array.array('d', [1]), 'fractions'), (5, 'anything iterable, and not'), (None, 'anything iterable, and not'),
    (memoryview(b'abc').cast('c'), 'format')])
def test_what_has_no_keys(bad, text):
    f = made_by()
    for call in (f.add_many, f.contains_many, f.add_new_many):
        assert text in str(raised(TypeError, call, bad))
    assert len(f) == 0


def test_the_other_byte_order():
    other = '>' if sys.byteorder == 'little' else '<'
    for dtype in ('i8', 'u2', 'U3'):
        bad = numpy.array([1, 2]).astype(other + dtype)
        assert 'byte order' in str(raised(ValueError, made_by().add_many, bad))
    assert holds_exactly(numpy.array([1, 2], other + 'u1'), [1, 2])
    assert holds_exactly(numpy.array([1, 2], '<i4'), [1, 2])


# ---- Text ------------------------------------------------------------------------------------

def test_numpys_bytes_lose_zeros_at_their_ends():
    items = [b'', b'a', b'abc', b'a\0b', b'abcdefgh']
    assert holds_exactly(numpy.array(items), items)
    assert numpy.array([b'a\0'])[0] == b'a'  # as numpy itself does
    assert holds_exactly(numpy.array([b'a\0', b'\0\0']), [b'a', b''])
    assert holds_exactly(numpy.array(items * 5)[::5], [items[i * 5 % 5] for i in range(5)])


def test_numpys_text():
    items = ['', 'a', 'äöü', '日本語', '\U0001f34e!', 'a\0b', 'x' * 30]
    assert holds_exactly(numpy.array(items), items)
    long = ['y' * 30000, 'z']
    assert holds_exactly(numpy.array(long), long)
    many = numpy.array([f'nümber {i}' for i in range(5000)])
    assert filled(many) == filled(many.tolist())
    assert filled(many[::2]) == filled(many.tolist()[::2])
    assert 'surrogate' in str(raised(ValueError, made_by().add_many, numpy.array(['a', 'x\ud800'])))


def test_arrays_of_objects():
    items = ['a', 5, b'c', 'ä']
    assert holds_exactly(numpy.array(items, object), items)
    raised(TypeError, made_by().add_many, numpy.array(['a', None], object))


# ---- Anything that can be iterated over ----------------------------------------------------------

def test_iterables():
    items = [str(i) if i % 2 else i for i in range(5000)]
    f = filled(items)
    for keys in (tuple(items), iter(items), (i for i in items), dict.fromkeys(items)):
        assert filled(keys) == f
    assert filled([]) == filled(()) == filled(iter(())) == made_by(capacity=20000)
    assert filled({'a', 1}) == made_by('a', 1, capacity=20000)
    assert f.contains_many(iter(items)).count(True) == 5000


def test_an_iterator_that_fails():
    def keys(good):
        yield from range(good)
        raise ZeroDivisionError
    f = made_by(capacity=20000)
    raised(ZeroDivisionError, f.add_many, keys(5000))
    assert len(f) == 4096  # whole batches
    raised(ZeroDivisionError, f.contains_many, keys(5000))
    raised(TypeError, made_by().add_many, [1, 2, None])


def test_an_iterator_that_uses_the_filter():
    f = made_by(capacity=20000)

    def keys():
        for i in range(3000):
            assert (i in f) == (i < i // 1024 * 1024)  # what whole batches have brought
            f.add(f'beside {i}')
            yield i
            f.contains_many([i])
    f.update(keys())
    assert len(f) == 6000


class Liar:
    def __len__(self):
        return 2**60

    def __iter__(self):
        return iter(['a', 'b'])


def test_lengths_that_are_not_true():
    f = made_by('a')
    assert f.contains_many(Liar()).tolist() == [True, False]
    f = perhaps.build(Liar(), 1e-6, against=Liar())
    assert 'a' in f and len(f) == 2


def test_a_list_that_changes_while_it_is_read():
    items = [f'item {i}' for i in range(3000)]

    def shrinking():
        for i in range(3000):
            yield items[i]
            items[i] = None
    f = filled(shrinking())
    assert f == filled([f'item {i}' for i in range(3000)])


# ---- Results ------------------------------------------------------------------------------------

def test_results():
    f = made_by('a', 'b')
    r = f.contains_many(['a', 'x', 'b'])
    assert list(r) == r.tolist() == [True, False, True] and len(r) == 3
    assert r[0] is True and r[1] is False and r[-1] is True
    raised(IndexError, lambda: r[3])
    raised(IndexError, lambda: r[-4])
    assert r.count(True) == 2 and r.count(False) == 1 and r.count('x') == 0 and r.count(1) == 2
    assert r == [True, False, True] and r != [True] and r == f.contains_many(['a', 'x', 'b'])
    assert repr(r) == 'perhaps.Array([True, False, True])' and sum(r) == 2 and any(r)
    assert repr(f.contains_many(['x'] * 12)).endswith('and 2 more)')
    raised(TypeError, hash, r)
    assert r != 5


def test_results_become_arrays_without_a_copy():
    f = made_by(*range(10), removable=True, count=True)
    for r, dtype in [(f.contains_many(range(20)), bool), (f.count_many(range(20)), numpy.uint64),
                     (f.contains_many([]), bool),
                     (perhaps.build([1], 0.01, values=[3]).get_many([1]), numpy.uint32)]:
        a = numpy.asarray(r)
        assert a.dtype == dtype and a.tolist() == r.tolist() and not a.flags.owndata
        if len(r):
            a[0] = 0
            assert r[0] == 0
        view = memoryview(r)
        assert view.c_contiguous and view.shape == (len(r),) and view.nbytes == a.nbytes
        assert bytes(r) == a.tobytes()
    a = numpy.asarray(f.contains_many(range(20)))
    gc.collect()
    assert a[:10].all()
    assert numpy.arange(20)[a].tolist()[:10] == list(range(10))
    assert f.contains_many(f.count_many([1, 2])).tolist() == [True, True]  # are keys, too


def test_new_keys_of_many():
    f = made_by('a')
    r = f.add_new_many(['a', 'b', 'b', 'c'])
    assert r.tolist() == [False, True, False, True] and len(f) == 3
    r = f.add_new_many(numpy.array([5, 6, 5], 'i2'))
    assert r.tolist() == [True, True, False]


def test_a_filter_that_gets_full():
    f = perhaps.Filter(1000, 0.001, seed=SEED)
    error = raised(perhaps.FullError, f.add_many, numpy.arange(10**5))
    assert error.done >= 1000 and f'{error.done} keys' in str(error)
    assert all(f.contains_many(numpy.arange(error.done)))
    f = perhaps.Filter(6000, 0.001, seed=SEED)
    error = raised(perhaps.FullError, f.add_many, numpy.arange(10**5, dtype='u2'))
    assert error.done >= 6000 and all(f.contains_many(numpy.arange(error.done)))


# ---- Arrow ----------------------------------------------------------------------------------------

TEXTS = ['', 'a', 'äöü', 'hello world', 'exactly 12 b', 'a long string that lies elsewhere',
         'and another long string', 'x\0y']


@pytest.mark.parametrize('form', ['u', 'U', 'z', 'Z', 'vu', 'vz'])
def test_arrow_strings(form):
    column = Column(form, TEXTS)
    assert holds_exactly(column, TEXTS)
    assert column.released == 3 * 2  # of three batches, the schema and the array
    for first, end in [(1, 5), (7, 8), (3, 3), (0, 1)]:
        assert holds_exactly(Column(form, TEXTS, first, end), TEXTS[first:end])
    many = [f'text number {i}' for i in range(3000)]
    assert filled(Column(form, many)) == filled(many)


@pytest.mark.parametrize('form', 'cCsSiIlL')
def test_arrow_numbers(form):
    items = [0, 1, 100, 127] if form.isupper() else [0, 1, -1, 100, -128]
    assert holds_exactly(Column(form, items), items)
    assert holds_exactly(Column(form, items, 1, 3), items[1:3])


def test_arrow_fixed_width():
    items = [b'abcd', b'\0\0\0\0', b'ab\0\0']
    assert holds_exactly(Column('w:4', items), items)
    assert holds_exactly(Column('w:4', items, 1), items[1:])


def test_arrow_nulls():
    items = ['a', 'b', None, 'd', None] * 4
    for form in ('u', 'U', 'vu'):
        column = Column(form, items)
        error = raised(ValueError, made_by().add_many, column)
        assert 'item 2 is null' in str(error) and column.released == 2
    error = raised(ValueError, made_by().contains_many, Column('u', items, 3))
    assert 'item 1 is null' in str(error)
    assert holds_exactly(Column('u', items, 5, 7), ['a', 'b'])
    assert 'item 1' in str(raised(ValueError, made_by().add_many, Column('i', [1, None, 3])))


@pytest.mark.parametrize('form', ['g', 'b', 'tdD', '+s', '+l', 'd:19,10', 'tsu:UTC', ''])
def test_arrow_types_that_have_no_keys(form):
    column = Column(form, [], 0, 0)
    error = raised(TypeError, made_by().add_many, column)
    assert f"'{form}'" in str(error) and column.released == 2


def test_arrow_dictionaries():
    assert 'decode' in str(raised(TypeError, made_by().add_many, Column('i', [1], dictionary=True)))


def test_arrow_streams():
    parts = [Column('u', TEXTS), Column('u', []), Column('u', ['more', 'and more'])]
    for column in parts[1:]:
        column.counter = parts[0].counter
    stream = Columns(*parts)
    f = made_by(capacity=20000)
    f.add_many(stream)
    assert f == made_by(*TEXTS, 'more', 'and more', capacity=20000)
    assert stream.released == 1 and parts[0].released == 1 + 3  # the schema and three arrays
    assert f.contains_many(Columns(Column('u', ['a', 'b']), Column('u', ['more']))).tolist() == [
        True, False, True]


def test_arrow_streams_that_fail():
    f = made_by()
    stream = Columns(Column('u', ['a']), error=5)
    assert 'the disk is gone' in str(raised(OSError, f.add_many, stream))
    assert stream.released == 1 and 'a' in f
    stream = Columns(Column('u', ['a', 'b']), Column('u', ['c', None]))
    assert 'item 3 is null' in str(raised(ValueError, f.add_many, stream))
    assert stream.released == 1


class Strange:
    def __init__(self, gives):
        self.gives = gives

    def __arrow_c_array__(self, requested_schema=None):
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives


def test_strange_producers():
    for gives in (None, (1,), (1, 2), [1, 2], (Column('u', []).__arrow_c_array__()[1],) * 2):
        raised((TypeError, ValueError), made_by().add_many, Strange(gives))
    raised(ZeroDivisionError, made_by().add_many, Strange(ZeroDivisionError()))
    both = Column('u', ['a']).__arrow_c_array__()
    f = made_by()
    f.add_many(Strange(both))
    f.add_many(Strange(both))  # who releases the capsules is their owner
    assert 'a' in f


# ---- Nothing leaks -----------------------------------------------------------------------------------

def test_nothing_leaks():
    f = made_by(capacity=20000)
    many = [f'word {i}' for i in range(2000)] + [10**12 + i for i in range(100)]
    table = numpy.arange(2000, dtype='i4').reshape(40, 50)
    texts = numpy.array(['a', 'bc'])
    bad = [1, 2, None]

    def use():
        for keys in (many, table, texts, iter(many), table[:, 1]):
            f.add_many(keys)
            f.contains_many(keys)
        for keys in (bad, table[:, ::2], texts.astype('>U2'), [2.5], 'x', 5):
            raised((TypeError, ValueError, BufferError), f.add_many, keys)
    use()
    watched = [many, many[0], many[-1], table, texts, bad, f]
    before = [sys.getrefcount(thing) for thing in watched]
    tracemalloc.start()
    use()
    gc.collect()
    start = tracemalloc.get_traced_memory()[0]
    for _ in range(50):
        use()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - start
    tracemalloc.stop()
    after = [sys.getrefcount(thing) for thing in watched]
    assert after == before
    assert grown < 50000
