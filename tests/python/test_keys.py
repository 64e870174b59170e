"""Which bytes a Python object is as a key."""
import enum
import sys
import tracemalloc

import numpy
import perhaps
import pytest
from support import made_by, raised, same_keys


@pytest.mark.parametrize('text', ['', 'apple', 'äöü', '日本語', '\U0001f34e', 'a\0b', 'x' * 100000])
def test_text_is_its_utf8(text):
    for other in (text.encode(), bytearray(text.encode()), memoryview(text.encode())):
        assert same_keys([text], [other])
        assert other in made_by(text)
        assert text in made_by(other)


@pytest.mark.parametrize('number', [0, 1, 42, 255, -1, -42, 2**31, -2**31, 2**63 - 1, -2**63, 2**63,
                                    2**64 - 1])
def test_an_int_is_eight_bytes(number):
    assert same_keys([number], [(number % 2**64).to_bytes(8, 'little')])
    assert number in made_by(number)


def test_ints_and_their_text_differ():
    assert '42' not in made_by(42)
    assert 42 not in made_by('42')
    assert same_keys([-1], [2**64 - 1])  # as the rule says


@pytest.mark.parametrize('number', [2**64, -2**63 - 1, 10**100, -10**100])
def test_ints_that_are_too_large(number):
    f = made_by()
    for call in (f.add, f.add_new, f.__contains__, lambda n: f.update([n])):
        assert '64 bits' in str(raised(OverflowError, call, number))
    assert len(f) == 0


@pytest.mark.parametrize('number', [numpy.int8(-5), numpy.uint8(200), numpy.int32(-7),
                                    numpy.uint64(2**63), numpy.int64(-1)])
def test_numbers_of_numpy_are_ints(number):
    assert same_keys([number], [int(number)])
    assert number in made_by(int(number))


def test_subclasses():
    class Text(str):
        pass

    class Bytes(bytes):
        pass

    class Colour(enum.IntEnum):
        RED = 3

    assert same_keys([Text('é'), Bytes(b'x'), Colour.RED, numpy.str_('s'), numpy.bytes_(b't')],
                     ['é', b'x', 3, 's', b't'])


class Indexed:
    def __index__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize('thing', [None, True, False, 1.5, (1,), [b'x'], {}, object(), 1j, {1},
                                   numpy.float64(2), numpy.bool_(True), numpy.array([1]),
                                   numpy.array(1), numpy.datetime64('2020-01-01'), range(3)])
def test_what_is_no_key(thing):
    f = made_by(removable=True)
    calls = (f.add, f.add_new, f.__contains__, f.remove, f.count, lambda k: f.update([k]),
             lambda k: f.contains_many(iter([1, k])), f.get)
    for call in calls:
        text = str(raised(TypeError, call, thing))
        assert type(thing).__name__ in text and 'str, bytes or int' in text
    assert len(f) == 0


def test_errors_of_an_index_come_through():
    raised(ZeroDivisionError, made_by().add, Indexed())


def test_half_a_surrogate_pair():
    raised(UnicodeEncodeError, made_by().add, '\ud800')
    raised(UnicodeEncodeError, made_by().__contains__, 'x\udfff')


def test_memoryviews():
    data = bytearray(b'0123456789')
    view = memoryview(data)
    assert same_keys([view[2:5]], [b'234'])
    raised(BufferError, made_by().add, view[::2])
    f = made_by(data, view)
    f.update([data, view])
    assert b'0123456789' in f
    view.release()
    data.extend(b'!')  # nobody holds it any more


def test_a_bytearray_in_a_batch_may_change_afterwards():
    word = bytearray(b'aaaa')

    def words():
        for letter in b'abcdefgh':
            word[:] = bytes([letter]) * 4
            yield word
    f = made_by()
    f.update(words())
    assert f == made_by(*[letter * 4 for letter in 'abcdefgh'])


def test_integers_of_a_bitmap():
    b = perhaps.Filter(integers=range(1000, 2**20))
    b.add(1005)
    b.add('70000')
    b.add_many(numpy.arange(2000, 2010, dtype='i4'))
    b.add_many([3000, '3001', b'3002'])
    assert 1005 in b and '1005' in b and 70000 in b and 3001 in b and b'2009' in b
    assert 5 not in b and -5 not in b and 'x' not in b and 2**64 - 1 not in b
    assert len(b) == 15
    many = b.contains_many(numpy.array([-1, 1005, 2000, 2010], dtype='i8'))
    assert many.tolist() == [False, True, True, False]
    for bad in (5, -5, 2**64 - 1, 'x', '01005'):
        raised(ValueError, b.add, bad)
        raised(ValueError, b.add_many, [bad])
    raised(ValueError, b.add_many, numpy.array([-1]))
    whole = perhaps.Filter(integers=range(2**64 - 100, 2**64))
    raised(ValueError, whole.add_many, numpy.array([-1]))  # which has the bits of 2**64 - 1
    whole.add_many(numpy.array([2**64 - 1], dtype='u8'))
    assert 2**64 - 1 in whole and whole.contains_many([-1]).tolist() == [False]


def test_hashes_of_the_callers_own():
    f = perhaps.Filter(100, 0.01, hash='none')
    f.add(b'0123456789abcdef')
    assert b'0123456789abcdef' in f and b'short' not in f
    raised(ValueError, f.add, b'short')
    assert raised(ValueError, f.add_many, [b'0123456789abcdeg', b'short']).done == 1


def test_nothing_leaks():
    f = made_by(removable=True, count=True)
    things = ['text', 'ünïcode', b'bytes', bytearray(b'array'), memoryview(b'view'), 12345678901, 2.5]

    def use():
        for thing in things:
            for call in (f.add, f.__contains__, f.add_new, f.count, f.remove):
                try:
                    call(thing)
                except (TypeError, perhaps.NotFoundError):
                    pass
    use()
    before = [sys.getrefcount(thing) for thing in things]
    for _ in range(100):
        use()
    assert [sys.getrefcount(thing) for thing in things] == before
    tracemalloc.start()
    use()
    start = tracemalloc.get_traced_memory()[0]
    for _ in range(1000):
        use()
    grown = tracemalloc.get_traced_memory()[0] - start
    tracemalloc.stop()
    assert grown < 10000
