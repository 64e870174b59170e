"""Pickles, and filters in other processes."""
import multiprocessing
import pickle
import subprocess
import sys

import perhaps
import pytest
from support import SEED, made_by, raised


@pytest.mark.parametrize('options', [{'kind': kind} for kind in (
    'blocked', 'cuckoo', 'bloom', 'counting', 'elastic', 'chain')] + [
    {'window': 500}, {'window': '1h'}, {'shared': True}, {'count': True, 'grow': True}])
def test_every_kind(options):
    f = perhaps.Filter(1000, 0.001, seed=SEED, **options)
    f.update(range(600))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        g = pickle.loads(pickle.dumps(f, protocol))
        assert g == f and bytes(g) == bytes(f) and len(g) == len(f)
        assert all(g.contains_many(range(500, 600)))
        g.add('more')
        assert 'more' in g and not g.stats().shared


def test_kinds_that_are_built_once():
    for f in (perhaps.build(range(1000), 0.001), perhaps.build(range(100), 0.01, kind='ribbon'),
              perhaps.build(range(100), 0.5, against=range(100, 200)),
              perhaps.Filter(integers=range(100, 200))):
        assert pickle.loads(pickle.dumps(f)) == f


def test_among_other_things():
    f = made_by('a')
    g, h = pickle.loads(pickle.dumps({'x': [f, f]}))['x']
    assert g is h and g == f


def test_a_secret_is_not_pickled():
    f = perhaps.Filter(100, 0.01, secret=True)
    error = raised(perhaps.SecretError, pickle.dumps, f)
    assert 'from_bytes' in str(error)
    assert f.secret not in bytes(f)


def test_results_and_statistics():
    f = made_by('a')
    assert pickle.loads(pickle.dumps(f.stats())) == f.stats()
    assert pickle.loads(pickle.dumps(f.contains_many(['a', 'b']).tolist())) == [True, False]


def holds(f, keys):
    return f.contains_many(keys).tolist(), f


@pytest.mark.parametrize('method', ['spawn', 'forkserver', 'fork'])
def test_pools_of_processes(method):
    f = made_by('a', 'b')
    with multiprocessing.get_context(method).Pool(2) as pool:
        for answers, g in pool.starmap(holds, [(f, ['a', 'x']), (f, ['y', 'b'])]):
            assert answers.count(True) == 1 and g == f


def test_hashes_are_the_same_in_every_process():
    """What Python calls a hash is another one in each."""
    code = ('import perhaps, sys; f = perhaps.Filter(100, 0.01, seed=7);'
            'f.update(["a", b"b", 3]); sys.stdout.write(f.digest().hex())')
    digests = {subprocess.run([sys.executable, '-c', code], capture_output=True, check=True,
                              text=True).stdout for _ in range(2)}
    f = perhaps.Filter(100, 0.01, seed=7)
    f.update(['a', b'b', 3])
    assert digests == {f.digest().hex()}
