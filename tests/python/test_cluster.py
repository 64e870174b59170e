"""Filters on a server that the tests start."""
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time

import numpy
import perhaps
import pytest
from arrow import Column
from support import TREE, made_by, raised

SERVER = shutil.which('redis-server') or shutil.which('valkey-server')
if not SERVER:
    pytest.skip('there is no redis-server', allow_module_level=True)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def answers(port):
    with socket.socket() as s:
        return s.connect_ex(('127.0.0.1', port)) == 0


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    for _ in range(5):  # another program may take the port first
        port = free_port()
        process = subprocess.Popen([SERVER, '--port', str(port), '--bind', '127.0.0.1', '--save', '',
                                    '--dir', tmp_path_factory.mktemp('redis')],
                                   stdout=subprocess.DEVNULL)
        while process.poll() is None and not answers(port):
            time.sleep(0.05)
        if process.poll() is None:
            break
    yield f'redis://127.0.0.1:{port}'
    process.terminate()
    process.wait()


@pytest.fixture
def url(server, request):
    url = f'{server}/{request.node.name}'
    yield url
    try:
        perhaps.Cluster(url).delete()
    except perhaps.MissingError:
        pass


def test_the_same_methods(url):
    f = perhaps.Cluster(url)
    error = raised(perhaps.MissingError, f.add, 'a')
    assert url in str(error) and isinstance(error, perhaps.ClusterError)
    assert f.create(10000, 0.0001) is f
    assert 'a' not in f and f.add('a') is None and 'a' in f
    assert f.add_new('a') is False and f.add_new(b'b') is True and 'b' in f
    f.add_many(numpy.arange(1000))
    f.update(str(i) for i in range(2000))
    f.add_many(Column('u', ['x', 'y']))
    for keys in (numpy.arange(1000, dtype='i2'), [str(i) for i in range(2000)], ['x', 'y', 7]):
        assert all(f.contains_many(keys))
    assert f.contains_many([5000, 6000, 5]).tolist() == [False, False, True]
    assert f.add_new_many(['n', 'a', 'm']).tolist() == [True, False, True]
    assert abs(len(f) - 3006) < 10 and f and f.fpr == 0.0001
    stats = f.stats()
    assert stats.capacity == 10000 and stats.layers == 1 and stats.nodes == 1 and stats.kind
    assert repr(f) == f'<perhaps.Cluster {url}>'
    raised(perhaps.TakenError, perhaps.Cluster(url).create, 10, 0.1)


def test_many_clients(url):
    perhaps.Cluster(url).create(100000, 0.001, grow=True)
    wins = []

    def work():
        with perhaps.Cluster(url) as f:
            wins.append(f.add_new_many(numpy.arange(5000)).count(True))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 4900 < sum(wins) <= 5000


def test_one_handle_in_many_threads(url):
    f = perhaps.Cluster(url).create(10000, 0.001)

    def work(number):
        for i in range(50):
            f.add(number * 1000 + i)
            assert number * 1000 + i in f
        f.add_many(range(number * 1000, number * 1000 + 500))
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f.contains_many([n * 1000 + i for n in range(4) for i in range(500)]))


def test_case_that_was_ignored(url):
    cli = pathlib.Path(os.environ.get('PERHAPS_BUILD_DIR', TREE / 'build')) / 'bin/perhaps'
    if not cli.exists():
        pytest.skip('the command line is not built')
    env = {k: v for k, v in os.environ.items() if k != 'LD_PRELOAD'}
    subprocess.run([cli, 'create', '-q', '-n', '10000', '-p', '1e-6', '--ignore-case', url], env=env, check=True)
    subprocess.run([cli, 'add', '-q', url], env=env, check=True, input=b'Foo\nBAR\n')
    f = perhaps.Cluster(url)
    assert 'FOO' in f and b'bar' in f and 'FO' not in f
    assert all(f.contains_many(['foo', b'Bar'])) and all(f.contains_many(Column('u', ['fOO', 'BAR'])))
    f.add('New')
    f.add_many(['More', int.from_bytes(b'ABCDEFGH', 'little')])
    g = perhaps.Cluster(url)
    assert 'nEW' in g and 'MORE' in g and int.from_bytes(b'ABCDEFGH', 'little') in g
    assert int.from_bytes(b'abcdefgh', 'little') not in g


def test_files(url, tmp_path):
    f = perhaps.Cluster(url).create(1000, 0.001)
    f.update(range(500))
    f.save(tmp_path / 'f')
    g = perhaps.open(tmp_path / 'f')
    assert all(g.contains_many(range(500))) and g.fpr == 0.001
    f.delete()
    raised(perhaps.MissingError, lambda: 5 in f)
    local = made_by(*range(100), kind='blocked', together=True)
    f.upload(local)
    assert all(f.contains_many(range(100))) and 'x' not in f
    f.delete()
    f.upload(bytes(local))
    assert 5 in f
    raised(perhaps.UnsupportedError, perhaps.Cluster(url + '2').upload, made_by(removable=True))
    raised(perhaps.FormatError, perhaps.Cluster(url + '2').upload, b'nothing')
    raised(OSError, f.save, tmp_path / 'no' / 'folder')


def test_secret(url):
    secret = bytes(range(16))
    perhaps.Cluster(url, secret=secret).create(100, 0.001).add('a')
    f = perhaps.Cluster(url, secret=secret)
    assert 'a' in f and f.stats().hash == 'sip'
    raised(perhaps.SecretError, lambda: 'a' in perhaps.Cluster(url))
    raised(ValueError, perhaps.Cluster, url, secret=b'short')


def test_errors(url):
    for bad in ('', 'http://x', 'redis://127.0.0.1:7000', url + '?colour=red'):
        raised(ValueError, perhaps.Cluster, bad)
    raised(TypeError, perhaps.Cluster)
    raised(TypeError, perhaps.Cluster, 5)
    raised(ValueError, perhaps.Cluster, url, timeout=-1)
    f = perhaps.Cluster(url).create(100, 0.001)
    error = raised(perhaps.FullError, f.add_many, range(10000))
    assert 50 <= error.done <= 100
    for call in (f.add, f.__contains__, f.add_new, lambda k: f.update([k])):
        raised(TypeError, call, None)
    raised(ValueError, f.add_many, numpy.array(['x\ud800']))
    raised(ValueError, f.create, 0, 0.1)
    f.close()
    f.close()
    for call in (lambda: 'a' in f, f.stats, lambda: len(f), f.delete):
        assert 'closed' in str(raised(ValueError, call))
    assert 'closed' in repr(f)


def test_a_server_that_is_not_there():
    f = perhaps.Cluster(f'redis://127.0.0.1:{free_port()}/x', patience=0.1)
    for call in (lambda: 'a' in f, lambda: f.add('a'), lambda: f.contains_many(['a'])):
        error = raised(perhaps.UnreachableError, call)
        assert isinstance(error, ConnectionError) and 'refused' in str(error)


def test_cluster_is_in_the_package():
    from perhaps import Cluster
    assert Cluster is perhaps.Cluster and 'redis://' in Cluster.__doc__


def test_a_partition_that_is_made_anew_too_short(server, url):
    """An open filter does not believe what an add has made that knew nothing of the loss."""
    redis = pytest.importorskip('redis').Redis.from_url(server)
    f = perhaps.Cluster(url).create(1000, 0.01, partitions=1)
    keys = [b'%d' % i for i in range(500)]
    f.add_many(keys)
    assert all(f.contains_many(keys))
    name = url.rsplit('/', 1)[1]
    partition = b'perhaps:{%s/0}:' % name.encode() + redis.hget('perhaps:{%s}' % name, 'id')
    redis.delete(partition)
    redis.setbit(partition, 3000, 1)
    for key in keys[:20]:
        raised(perhaps.LostError, lambda: key in f)
    raised(perhaps.LostError, f.contains_many, keys)
    raised(perhaps.LostError, f.add_many, keys)
