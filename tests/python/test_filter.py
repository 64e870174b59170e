"""Filters: one key at a time, and as a whole."""
import copy
import datetime
import io
import operator
import sys
import time

import perhaps
import pytest
from support import SEED, made_by, raised


def test_add_and_ask():
    f = perhaps.Filter(1000, 1e-9)
    assert not f and len(f) == 0
    assert f.add('apple') is None
    assert 'apple' in f and 'stone' not in f
    assert f and len(f) == 1
    assert f.add_new('pear') is True and f.add_new('pear') is False
    assert len(f) == 2
    assert f.fpr == 1e-9 and f.secret is None
    assert repr(f) == f'<perhaps.Filter {f.kind}: 2 of 1000 keys, fpr 1e-09>'


def test_the_rate_is_kept():
    f = perhaps.Filter(20000, 0.01, seed=SEED)
    f.update(range(20000))
    assert all(f.contains_many(range(20000)))
    wrong = f.contains_many(range(10**6, 10**6 + 200000)).count(True)
    assert 200 < wrong < 2500  # 2000 in expectation at most
    assert f.stats().fpr_now <= 0.0101 and f.predict_fpr(1) < f.predict_fpr(20000) <= 0.01


def test_a_full_filter():
    f = perhaps.Filter(10, 0.01)
    error = raised(perhaps.FullError, f.update, map(str, range(10000)))
    assert 'full' in str(error) and error.done >= 10
    assert len(f) >= 10 and isinstance(error, perhaps.Error)
    assert all(str(i) in f for i in range(error.done))
    raised(perhaps.FullError, [f.add(str(i)) for i in range(10)] and f.update, range(100, 10000))
    assert f.stats().failed_adds >= 2


def test_removal():
    f = perhaps.Filter(100, 1e-6, removable=True, kind='cuckoo', seed=42)
    f.update('abc' for _ in range(3))
    assert f.count('abc') == 3 and f.count('abd') == 0
    f.remove('abc')
    assert f.count('abc') == 2
    error = raised(perhaps.NotFoundError, f.remove, 'abd')
    assert isinstance(error, KeyError) and str(error) == 'the key to remove is not there'
    assert f.remove_many(['abc', 'abd', 'abc']).tolist() == [True, False, True]
    assert 'abc' not in f and len(f) == 0
    raised(perhaps.UnsupportedError, perhaps.Filter(100, 0.01).remove, 'abc')
    error = raised(perhaps.CopiesError, f.update, ['abc'] * 100)
    assert isinstance(error, perhaps.FullError) and error.done == 8


@pytest.mark.parametrize('options', [
    {'grow': True}, {'kind': 'cuckoo'}, {'kind': 'strided'}, {'kind': 'counting'}, {'kind': 'elastic'},
    {'kind': 'chain', 'base': 'cuckoo'}, {'kind': 'chain', 'base': 'strided'}, {'kind': 'cuckoo', 'shared': True},
])
def test_sets(options):
    """Without removable= and count= a key that comes again changes nothing."""
    f = perhaps.Filter(1000, .01, **options)
    for _ in range(1000):
        f.add('x')
    assert len(f) == 1
    f.update(['x'] * 1000)
    assert not f.add_new('x') and len(f) == 1
    assert not f.stats().removes and not f.stats().counts
    for call in (f.remove, f.count):
        assert isinstance(raised(perhaps.SetError, call, 'x'), perhaps.UnsupportedError)
    g = perhaps.Filter.from_bytes(bytes(f))
    for same in g, f.copy(), perhaps.Filter(like=f):
        same.update(['x'] * 1000)
        assert len(same) == 1
    kept = perhaps.Filter(1000, 1e-4, removable=True)
    assert kept.stats().removes


def test_counting():
    f = perhaps.Filter(1000, 1e-9, count=True, seed=42)
    f.update(['many'] * 12 + ['one'])
    assert f.kind == 'counting'
    assert f.count_many(['many', 'one', 'none']).tolist() == [12, 1, 0]
    grows = perhaps.Filter(100, 1e-9, count=True, grow=True)
    grows.update(range(1000))
    assert grows.stats().base == 'counting' and grows.count(5) == 1


def test_growing():
    f = perhaps.Filter(grow=True, fpr=0.001)
    f.update(range(50000))
    assert all(f.contains_many(range(50000))) and len(f) > 49000


def test_window_of_keys():
    f = perhaps.Filter(fpr=0.0001, window=100, seed=42)  # by which 5 is forgotten
    f.update(range(10000))
    assert all(f.contains_many(range(9900, 10000))) and 5 not in f
    before = len(f)
    for _ in range(10):
        f.rotate()
    assert before >= 100 and len(f) == 0
    raised(perhaps.UnsupportedError, f.advance)


@pytest.mark.parametrize('window', ['60s', '1m', datetime.timedelta(minutes=1)])
def test_window_of_time(window):
    f = perhaps.Filter(100, 0.0001, window=window)
    f.advance(1000)
    f.add('early')
    f.advance(1059.5)
    f.add('late')
    assert 'early' in f and 'late' in f
    f.advance(1080.5)
    assert 'early' not in f and 'late' in f
    raised(perhaps.UnsupportedError, perhaps.Filter(100, 0.01).advance, 5)
    raised(ValueError, f.advance, -1)
    raised(ValueError, f.advance, time.time() + 100)
    f.advance(time.time() + 50)
    f.add('ahead')
    f.set_back()
    assert 'ahead' in f
    f.advance(time.time() + 59)
    assert 'ahead' in f
    raised(TypeError, f.advance, 'noon')


def test_secret():
    f = perhaps.Filter(100, 1e-9, secret=True)
    g = perhaps.Filter(100, 1e-9, secret=f.secret)
    assert len(f.secret) == 16 and f.stats().hash == 'sip'
    f.add('x')
    g.add('x')
    assert f == g and f != perhaps.Filter(100, 1e-9, secret=True)
    again = perhaps.Filter.from_bytes(bytes(f), f.secret)
    assert 'x' in again and again.secret == f.secret
    raised(perhaps.SecretError, perhaps.Filter.from_bytes, bytes(f))
    raised(perhaps.SecretError, perhaps.Filter.from_bytes, bytes(f), b'0123456789abcdef')
    raised(ValueError, perhaps.Filter, 100, 0.01, secret=b'short')
    raised(TypeError, perhaps.Filter, 100, 0.01, secret='0123456789abcdef')


def test_union():
    f, g = made_by('a', 'b', capacity=100), made_by('b', 'c', capacity=100)
    both = f | g
    assert all(k in both for k in 'abc') and len(both) == 3
    assert 'c' not in f and 'a' not in g
    same = f
    f |= g
    assert same is f and f == both
    f |= f
    assert f == both
    raised(perhaps.MismatchError, lambda: f | made_by('a', capacity=200))
    raised(ValueError, lambda: f | made_by('a', capacity=100, seed=SEED + 1))
    raised(TypeError, lambda: f | {'a'})
    raised(TypeError, lambda: {'a'} | f)


def test_intersection():
    f, g = made_by('a', 'b', capacity=100), made_by('b', 'c', capacity=100)
    both = f & g
    assert 'b' in both and 'a' not in both and 'c' not in both
    assert 'a' in f and 'c' in g
    same = f
    f &= g
    assert same is f and f == both
    f &= f
    assert f == both
    raised(TypeError, lambda: f & {'a'})
    raised(TypeError, lambda: {'a'} & f)
    grows = perhaps.Filter(grow=True, fpr=0.01, seed=SEED)
    raised(perhaps.UnsupportedError, lambda: grows & grows.copy())


@pytest.mark.parametrize('join', [operator.or_, operator.and_, operator.ior, operator.iand])
def test_what_differs(join):
    f = made_by('a', capacity=100, seed=5)
    before = f.copy()
    secret = perhaps.Filter(100, 1e-9, secret=bytes(16))
    for other, what in [
            (made_by(capacity=100, seed=7), 'seed 5 and 7'),
            (made_by(capacity=200, fpr=0.5, seed=5), 'capacity 100 and 200, fpr 1e-09 and 0.5'),
            (made_by(capacity=100, seed=5, kind='counting'), 'kind blocked and counting'),
            (secret, 'hash xxh3 and sip')]:
        error = raised(perhaps.MismatchError, join, f, other)
        assert str(error) == (f'the filters differ: {what}: make both with the same, or one as '
                              'Filter(like=other)'), error
    error = raised(perhaps.MismatchError, join, secret, perhaps.Filter(100, 1e-9, secret=b'x' * 16))
    assert 'differ: secret: make' in str(error)
    assert f == before


def test_a_filter_like_another():
    for options in ({}, {'kind': 'cuckoo'}, {'secret': True, 'hash': 'sip'},
                    {'grow': True, 'kind': 'chain'}):
        f = perhaps.Filter(100, 1e-6, **options)
        f.add('a')
        g = perhaps.Filter(like=f)
        assert len(g) == 0 and 'a' not in g and g.kind == f.kind and g.secret == f.secret
        g.add('b')
        assert 'a' in f | g and 'b' in f | g
    for bad in (None, 5, 'x'):
        assert 'like' in str(raised(TypeError, perhaps.Filter, like=bad))
    assert 'like' in str(raised(TypeError, perhaps.Filter, 100, like=f))
    raised(perhaps.UnsupportedError, perhaps.Filter, like=perhaps.build(['a'], 0.01))
    f.close()
    assert 'closed' in str(raised(ValueError, perhaps.Filter, like=f))


def test_equality():
    f = made_by('a')
    assert f == made_by('a') and not f != made_by('a') and f == f
    assert f != made_by('b') and f.digest() == made_by('a').digest() != made_by('b').digest()
    assert f != 'a' and f != None  # noqa: E711
    raised(TypeError, lambda: f < made_by('b'))
    raised(TypeError, hash, f)


@pytest.mark.parametrize('copier', [perhaps.Filter.copy, copy.copy, copy.deepcopy])
def test_copies(copier):
    f = made_by('a')
    g = copier(f)
    assert f == g
    g.add('b')
    assert 'b' not in f and f != g


def test_shrink_and_clear():
    f = perhaps.Filter(100000, 0.001, seed=SEED)
    f.update(range(1000))
    small = f.shrink()
    assert all(small.contains_many(range(1000)))
    assert small.stats().memory_nbytes < f.stats().memory_nbytes / 10
    assert f.shrink(0.01).fpr == 0.01
    f.clear()
    assert len(f) == 0 and 5 not in f
    raised(perhaps.UnsupportedError, perhaps.Filter(100, 0.01, removable=True).shrink)


def test_close():
    with perhaps.Filter(100, 0.01) as f:
        f.add('x')
    calls = (lambda: 'x' in f, lambda: f.add('x'), lambda: f.update(['x']), lambda: len(f),
             lambda: f.contains_many(['x']), f.stats, f.copy, lambda: f | made_by(), f.clear,
             lambda: made_by() | f, lambda: f == made_by(), lambda: bytes(f), lambda: f.fpr,
             lambda: f.save('nowhere'), lambda: f.__enter__(), lambda: f.secret, f.digest)
    for call in calls:
        assert 'closed' in str(raised(ValueError, call))
    assert 'closed' in repr(f)
    f.close()


def test_arguments():
    for args, kwargs in [((0, 0.01), {}), ((1.5, 0.01), {}), ((10**100, 0.01), {}), ((-1, 0.01), {}), ((100, 0), {}),
                         ((100, 1.0), {}), ((100, float('nan')), {}), ((100, 0.01), {'kind': 'round'}),
                         ((100, 0.01), {'hash': 'md5'}), ((100, 0.01), {'prefer': 'cheap'}),
                         ((100, 0.01), {'window': 'soon'}), ((100, 0.01), {'window': 0}),
                         ((100, 0.01), {'window': '5'}), ((100, 0.01), {'window': '-5s'}),
                         ((100, 0.01), {'window': 'nans'}), ((100, 0.01), {'seed': 0}),
                         ((), {'integers': range(5, 5)}), ((), {'integers': range(0, 9, 2)})]:
        raised(ValueError, perhaps.Filter, *args, **kwargs)
    for args, kwargs in [((), {}), ((100,), {}), (('x', 0.01), {}), ((100, '0.01'), {}),
                         ((100, 0.01), {'colour': 'red'}), ((100, 0.01), {'kind': 5}),
                         ((100, 0.01), {'seed': 'x'})]:
        raised(TypeError, perhaps.Filter, *args, **kwargs)
    raised(perhaps.LimitError, perhaps.Filter, 2**47, 1e-15, kind='cuckoo')
    raised(perhaps.UnsupportedError, perhaps.Filter, 100, 0.01, removable=True, kind='bloom')
    raised(MemoryError, perhaps.Filter, 2**48, 1e-9, kind='blocked')


def test_every_kind():
    for kind in ('blocked', 'cuckoo', 'bloom', 'counting', 'elastic', 'chain'):
        f = perhaps.Filter(1000, 0.001, kind=kind, seed=SEED, shared=True)
        assert f.add_new_many(range(900)).count(True) > 850
        assert f.kind == kind and f.stats().shared and all(f.contains_many(range(900)))


def test_the_plan():
    plan = perhaps.plan(10**6, 0.001)
    assert plan.kind == 'blocked' and plan.capacity == 10**6 and plan.base is None
    assert plan.fpr_predicted <= plan.fpr == 0.001 and plan.why
    assert plan.body_nbytes == perhaps.Filter(10**6, 0.001).stats().memory_nbytes
    assert perhaps.plan(10**6, 0.001, static=True).bits_per_key < plan.bits_per_key
    assert perhaps.plan(10**6, 1e-7, removable=True).kind == 'strided'
    assert perhaps.plan(10**6, 1e-7, removable=True, shared=True).kind == 'cuckoo'
    against = perhaps.plan(10**6, 0.001, static=True, kind='against', others=10**7)
    assert against.kind == 'against' and 'no error' in against.why


def test_build():
    words = [f'word {i}' for i in range(3000)]
    f = perhaps.build(words, 0.001, seed=SEED)
    assert f.kind == 'ribbon' and all(f.contains_many(words)) and len(f) == 3000
    assert perhaps.build(iter(words[::-1]), 0.001, seed=SEED) == f
    raised(perhaps.UnsupportedError, f.add, 'x')
    others = [f'other {i}' for i in range(20000)]
    exact = perhaps.build(words, 0.001, against=others)
    assert all(exact.contains_many(words)) and not any(exact.contains_many(others))
    assert perhaps.build(words, 0.01, kind='ribbon').kind == 'ribbon'
    raised(TypeError, perhaps.build, 'words', 0.01)
    raised(ZeroDivisionError, perhaps.build, (1 // x for x in (1, 0)), 0.01)
    raised(ValueError, perhaps.build, words, 2)


def test_build_with_values():
    words = [f'word {i}' for i in range(500)]
    f = perhaps.build(words, 1e-6, values=range(500), seed=42)
    assert [f.get(word) for word in words] == list(range(500))
    assert f.get('stone') is None and f.get('stone', -1) == -1
    assert f.get_many(words[7:9] + ['stone']).tolist() == [7, 8, 0]
    raised(ValueError, perhaps.build, words, 0.01, values=[1, 2])
    raised(ValueError, perhaps.build, words[:1], 0.01, values=[1, 2])
    raised(perhaps.ValuesError, perhaps.build, ['a', 'a'], 0.01, values=[1, 2])
    raised(ValueError, perhaps.build, ['a'], 0.01, values=[2**20])
    raised(perhaps.UnsupportedError, perhaps.build(words, 0.01).get, 'x')


def test_build_to_a_file(tmp_path):
    f = perhaps.build(range(2000), 0.001, path=tmp_path / 'f.perhaps', memory=2**20)
    assert f.stats().mapped and all(f.contains_many(range(2000)))
    g = perhaps.build(['x'], 1e-9, path=tmp_path / 'g.perhaps', secret=b'0123456789abcdef')
    assert 'x' in g
    raised(FileNotFoundError, perhaps.build, range(10), 0.01, path=tmp_path / 'no' / 'f')
    raised(ValueError, perhaps.build, ['x'], 0.01, path=tmp_path / 'f', secret=True)
    assert 'x' in perhaps.build(['x'], 0.01, secret=True)


def test_build_of_other_kinds():
    for options in ({'removable': True}, {'count': True}, {'grow': True}, {'kind': 'bloom'}):
        f = perhaps.build(range(3000), 0.001, **options)
        assert all(f.contains_many(range(3000))) and f.stats().capacity >= 3000 - 30
    b = perhaps.build(range(100, 200), 0.01, integers=range(50, 500))
    assert b.kind == 'bitmap' and 150 in b and '150' in b and 99 not in b and len(b) == 100


def test_builder():
    b = perhaps.Builder(fpr=0.001)
    b.add_many(range(100))
    b.add_many(['x'])
    assert len(b) == 101
    assert 'x' in b.finish()
    for call in (b.finish, lambda: b.add_many([1]), lambda: len(b), lambda: b.add_others([1])):
        assert 'finished' in str(raised(ValueError, call))
    b = perhaps.Builder(fpr=0.001, removable=True)  # a kind that is not built once
    b.add_many(range(100))
    f = b.finish()
    f.remove(5)
    assert 6 in f
    b = perhaps.Builder(fpr=0.001)
    raised(perhaps.UnsupportedError, b.add_others, [1])


def test_types_cannot_be_changed():
    raised(TypeError, setattr, perhaps.Filter, 'add', None)
    raised(TypeError, perhaps.Array)
    raised(TypeError, lambda: type('Mine', (perhaps.Filter,), {}))
    raised(AttributeError, setattr, made_by(), 'fpr', 1)
    raised(AttributeError, getattr, perhaps, 'Colour')


def test_errors_are_a_tree():
    for name in ('UnsupportedError', 'FullError', 'CopiesError', 'NotFoundError', 'MismatchError',
                 'SecretError', 'FormatError', 'VersionError', 'DamagedError', 'LimitError',
                 'ReadOnlyError', 'ValuesError', 'ClusterError', 'TakenError'):
        error = getattr(perhaps, name)
        assert issubclass(error, perhaps.Error) and error.__doc__ and error.__module__ == 'perhaps'
        assert str(error('a text')) == 'a text'
    assert issubclass(perhaps.DamagedError, perhaps.FormatError)
    assert issubclass(perhaps.UnreachableError, ConnectionError)


def test_help():
    import pydoc
    text = pydoc.plain(pydoc.render_doc(perhaps.Filter))
    assert 'add_new(self, key, /)' in text and 'removable' in text
    assert isinstance(io.StringIO(text), io.StringIO) and perhaps.__version__.count('.') == 2


def test_types_are_kept_by_their_objects():
    before = sys.getrefcount(perhaps.Filter)
    for _ in range(100):
        f = perhaps.Filter(10, 0.01)
        assert f.contains_many([1]).tolist() == [False]
        for bad in ((0, 0), (10, 5)):
            raised(ValueError, perhaps.Filter, *bad)
    del f
    after = sys.getrefcount(perhaps.Filter)  # pytest holds what stands in an assert
    assert after == before
