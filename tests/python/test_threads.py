"""Many threads, on filters that are shared and on others: nothing is lost, and nobody waits for
ever.  A thread that hangs lets the test fail by its time limit."""
import array
import concurrent.futures
import os
import random
import threading

import numpy
import perhaps
import pytest
from support import SEED, made_by, raised

THREADS = 4


def together(*functions):
    """Runs the functions at once, each in a thread, and returns what they return."""
    start = threading.Barrier(len(functions))

    def run(function):
        start.wait()
        return function()
    with concurrent.futures.ThreadPoolExecutor(len(functions)) as pool:
        return [job.result() for job in [pool.submit(run, function) for function in functions]]


@pytest.mark.parametrize('options', [{}, {'shared': True}, {'removable': True},
                                     {'removable': True, 'shared': True}, {'grow': True},
                                     {'grow': True, 'shared': True}])
def test_all_that_threads_add_is_found(options):
    each = 40000
    f = perhaps.Filter(THREADS * each, 0.0001, seed=SEED, **options)

    def work(number):
        keys = numpy.arange(number * each, (number + 1) * each)
        third = each // 3
        f.add_many(keys[:third])
        f.update(int(k) for k in keys[third:2 * third])
        for key in keys[2 * third:2 * third + 1000].tolist():
            f.add(key)
            assert key in f
        f.add_many(keys[2 * third + 1000:])
        assert all(f.contains_many(keys))
        assert len(f) > 0 and f.stats().keys > 0
    together(*[lambda i=i: work(i) for i in range(THREADS)])
    everything = numpy.arange(THREADS * each)
    assert all(f.contains_many(everything))
    if not options.get('shared'):
        assert len(f) == len(f.copy()) <= THREADS * each
        one = perhaps.Filter(THREADS * each, 0.0001, seed=SEED, **options)
        one.add_many(everything)
        if not options:
            assert f == one


def test_new_keys_are_new_once():
    f = perhaps.Filter(50000, 1e-9, seed=SEED)
    keys = list(range(20000))

    def work(seed):
        mine = keys[:]
        random.Random(seed).shuffle(mine)
        batch = f.add_new_many(numpy.array(mine[:15000]))
        return batch.count(True) + sum(f.add_new(key) for key in mine[15000:])
    assert sum(together(*[lambda i=i: work(SEED + i) for i in range(THREADS)])) == len(keys)


def test_readers_and_whole_filters_beside_a_writer():
    for shared in (False, True):
        f = perhaps.Filter(300000, 0.001, seed=SEED, shared=shared)
        f.add_many(numpy.arange(1000))
        done = threading.Event()

        def write():
            for i in range(30):
                f.add_many(numpy.arange(i * 10000, (i + 1) * 10000))
            done.set()

        def read():
            while not done.is_set():
                assert all(f.contains_many(numpy.arange(1000)))
                assert 5 in f

        def look():
            while not done.is_set():
                assert all(perhaps.Filter.from_bytes(bytes(f)).contains_many(range(1000)))
                assert all(f.copy().contains_many(range(1000)))
                assert f == f and f | f is not f
        together(write, read, read, look)
        assert all(f.contains_many(numpy.arange(300000)))


def test_two_filters_into_each_other():
    f, g = made_by(*range(100), capacity=100000), made_by(*range(100, 200), capacity=100000)
    more = [numpy.arange(1000, 1200), numpy.arange(2000, 2200)]

    def unite(a, b, keys):
        for key in keys:
            a |= b
            a.add(int(key))
            assert (a == b) in (True, False)
            b.add_many(keys[:1])
    together(lambda: unite(f, g, more[0]), lambda: unite(g, f, more[1]),
             lambda: unite(f, g, more[1]))
    f |= g
    for keys in (range(200), *more):
        assert all(f.contains_many(keys))


def test_a_filter_that_is_closed_meanwhile():
    for _ in range(20):
        f = made_by(capacity=100000)
        keys = numpy.arange(50000)

        def work():
            try:
                for _ in range(1000):
                    f.add_many(keys)
                    assert all(f.contains_many(keys))
                    assert 5 in f
            except ValueError as error:
                return str(error)
        texts = together(work, work, f.close)
        assert texts[:2] == ['this filter was closed'] * 2


def test_a_filter_that_nobody_holds_lives_as_long_as_its_batch():
    keys = [f'key {i}' for i in range(3000)]

    def batch():
        made = [made_by(capacity=5000)]

        def some():
            yield from keys[:2000]
            made.clear()  # the method that runs holds the filter now
            yield from keys[2000:]
        return made[0].add_new_many(some()).count(True)
    assert together(*[batch] * THREADS) == [3000] * THREADS


def test_an_array_cannot_move_while_it_is_read():
    numbers = array.array('q', range(300000))
    f = perhaps.Filter(300000, 0.01, seed=SEED)
    done = threading.Event()

    def read():
        for _ in range(30):
            f.add_many(numbers)
        done.set()

    def push():
        refused = 0
        while not done.is_set():
            try:
                numbers.append(5)  # may move all of them
                numbers.pop()
            except BufferError:
                refused += 1
        return refused
    together(read, push)
    assert all(f.contains_many(numbers))


def test_a_save_that_waits_gives_the_lock_of_python_away(tmp_path):
    """A pipe takes nothing until somebody reads, which is this thread."""
    pipe = tmp_path / 'pipe'
    os.mkfifo(pipe)
    f = made_by('apple', capacity=100000)
    saver = threading.Thread(target=f.save, args=(pipe,))
    saver.start()
    with open(pipe, 'rb') as file:
        assert 'apple' in f  # others may ask meanwhile
        assert f.contains_many(['apple']).tolist() == [True]
        data = file.read()
    saver.join()
    assert data == bytes(f)


def test_a_builder_of_many_threads():
    b = perhaps.Builder(fpr=0.001, seed=SEED)
    together(*[lambda i=i: b.add_many(range(i * 5000, (i + 1) * 5000)) for i in range(THREADS)])
    f = b.finish()
    assert f == perhaps.build(range(THREADS * 5000), 0.001, seed=SEED)
    b = perhaps.Builder(fpr=0.001)
    ends = together(*[lambda: finished(b)] * THREADS)
    assert sorted(ends) == [False] * (THREADS - 1) + [True]


def finished(builder):
    try:
        return bool(builder.finish() is not None)
    except ValueError:
        return False


def test_windows_in_threads():
    f = perhaps.Filter(1000, 0.001, window='1h')

    def work(number):
        for minute in range(100):
            f.advance(60 * minute)
            f.update(range(number * 100, (number + 1) * 100))
            f.rotate()
    together(*[lambda i=i: work(i) for i in range(THREADS)])
    raised(TypeError, f.add, None)
