"""Big filters: how much memory a replica needs to get one, how they are freed, what is told."""
import os
import threading
import time

import pytest
import zoo
from world import Refused, Server, replicate, wait_for

MIB = 1 << 20
SIZE_MIB = int(os.environ.get('PERHAPS_TEST_MIB', '256'))


def big_filter(client, key='big', mib=SIZE_MIB):
    """Makes a BF of about so many MiB, and returns it with a few items."""
    client.call('BF.RESERVE', key, '0.001', mib * 500_000)
    made = zoo.Filter('bf', key)
    made.add(client, zoo.items('item', 2000))
    return made


def size_of(client, key):
    return client.call('MEMORY', 'USAGE', key)


class Peak:
    """Looks at the memory of a server all the time, through /proc: it answers also while it
    loads."""

    def __init__(self, server):
        self.path = '/proc/%d/statm' % server.process.pid
        self.before = self.most = self.now()
        self.stopping = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def now(self):
        with open(self.path) as file:
            return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')

    def run(self):
        while not self.stopping:
            self.most = max(self.most, self.now())
            time.sleep(0.002)

    def end(self):
        """Returns by how many bytes the memory grew at most."""
        self.stopping = True
        self.thread.join()
        return self.most - self.before


@pytest.fixture(scope='module')
def server():
    with Server() as one:
        yield one


@pytest.fixture
def client(server):
    server.call('FLUSHALL', 'SYNC')
    wait_for(lambda: server.client.info('memory')['lazyfree_pending_objects'] == '0')
    return server.client


def test_full_resync():
    """A replica needs at most 64 MiB beyond the filter to get it."""
    with Server('--rdbcompression', 'no') as master, Server() as replica:
        made = big_filter(master.client)
        nbytes = size_of(master.client, 'big')
        assert nbytes >= SIZE_MIB * MIB * 9 // 10
        peak = Peak(replica)
        replicate(replica, master)
        assert peak.end() <= nbytes + 64 * MIB
        made.check(replica.client)
        digest = ('DEBUG', 'DIGEST-VALUE', 'big')
        assert master.call(*digest) == replica.call(*digest)


def most_memory(server):
    """Returns how much memory a server had at most, since it was started."""
    with open('/proc/%d/status' % server.process.pid) as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith('VmHWM'))


def test_save_and_load():
    """The same for a restart, and a save needs next to nothing."""
    with Server('--rdbcompression', 'no') as server:
        empty = most_memory(server)
        made = big_filter(server.client)
        nbytes = size_of(server.client, 'big')
        before = most_memory(server)
        server.call('SAVE')
        assert most_memory(server) <= max(before, empty + nbytes) + 64 * MIB
        server.restart()
        assert most_memory(server) <= empty + nbytes + 64 * MIB
        made.check(server.client)


def test_dump_and_load_by_chunks(client):
    """SCANDUMP takes a chunk at a time; the last LOADCHUNK does not need all twice."""
    big_filter(client, mib=128)
    nbytes = size_of(client, 'big')
    client.call('CONFIG', 'RESETSTAT')
    chunks = zoo.scandump(client, 'BF', 'big')
    assert int(client.info('memory')['used_memory_peak']) <= 2 * nbytes  # of earlier tests, too
    client.call('FLUSHALL', 'SYNC')
    client.call('CONFIG', 'RESETSTAT')
    zoo.loadchunks(client, 'BF', 'big', chunks)
    assert int(client.info('memory')['used_memory_peak']) <= 2 * nbytes + 64 * MIB
    assert size_of(client, 'big') == pytest.approx(nbytes, rel=0.01)


def test_unlink_frees_elsewhere(client):
    """Another thread frees big filters; small ones are freed at once."""
    big_filter(client, mib=64)
    big_filter(client, key='other', mib=64)
    freed = int(client.info('memory').get('lazyfreed_objects', 0))
    used = int(client.info('memory')['used_memory'])
    assert client.call('UNLINK', 'big') == 1
    wait_for(lambda: int(client.info('memory')['lazyfreed_objects']) > freed)
    wait_for(lambda: int(client.info('memory')['used_memory']) < used - 60 * MIB)
    client.call('FLUSHALL', 'ASYNC')
    wait_for(lambda: int(client.info('memory')['used_memory']) < used - 120 * MIB)


def test_memory_usage():
    """What MEMORY USAGE tells is what the module's memory grew by, without what the allocator
    rounds up; the server adds its key."""
    with Server() as server:
        for kind in zoo.OWN:
            zoo.Filter(kind, 'first').make(server.client)  # the module keeps a model of it
            before = int(server.client.info()['bf_bytes'])
            zoo.Filter(kind).make(server.client)
            grown = int(server.client.info()['bf_bytes']) - before
            told = size_of(server.client, kind)
            server.call('DEL', 'first')
            assert 0.75 * grown - 8192 <= told <= grown + 512, (kind, told, grown)


def test_memory_usage_of_large_filters(client):
    for reserve, least in [(('BF.RESERVE', 'k', '0.001', 30_000_000), 50 * MIB),
                           (('CF.RESERVE', 'k', 20_000_000), 35 * MIB)]:
        client.call('DEL', 'k')
        before = int(client.info('memory')['used_memory'])
        client.call(*reserve)
        grown = int(client.info('memory')['used_memory']) - before
        told = size_of(client, 'k')
        assert told <= grown <= 1.27 * told  # the allocator's sizes are a quarter apart
        assert grown >= least


def test_nothing_is_left(client):
    """Making and deleting filters of all kinds leaves no memory behind."""
    def used_after():
        for made in zoo.make_all(client):
            client.call('COPY', made.key, 'copy', 'REPLACE')
            client.call('RESTORE', 'again', 0, client.call('DUMP', made.key), 'REPLACE')
            chunks = zoo.scandump(client, made.family, made.key)
            client.call('DEL', 'loaded')
            zoo.loadchunks(client, made.family, 'loaded', chunks)
            client.call('DEL', 'loaded')
            zoo.loadchunks(client, made.family, 'loaded', chunks[:-1])
        client.call('FLUSHALL', 'SYNC')
        return int(client.info('memory')['used_memory'])
    used_after()
    first = used_after()
    for _ in range(2):
        last = used_after()
    assert last - first < 400_000


def test_active_defrag(client):
    """Blocks move while filters are in use, and nothing is lost."""
    try:
        client.call('CONFIG', 'SET', 'activedefrag', 'yes')
    except Refused:
        pytest.skip('this server was built without active defragmentation')
    try:
        for name, value in [('active-defrag-ignore-bytes', 1), ('active-defrag-cycle-max', 75),
                            ('active-defrag-threshold-lower', 1), ('hz', 100),
                            ('active-defrag-cycle-min', 50)]:
            client.call('CONFIG', 'SET', name, value)
        filters = zoo.make_all(client)
        many = [zoo.Filter('cf', 'c%d' % i) for i in range(1500)]
        for made in many:
            made.add(client, zoo.items(made.key, 30))
        for made in many[::2]:
            client.call('DEL', made.key)
        before = zoo.likenesses(client, filters)
        hits = int(client.info('stats')['active_defrag_hits'])
        wait_for(lambda: int(client.info('stats')['active_defrag_hits']) > hits + 100)
        zoo.check_all(client, filters, before)
        for made in many[1::2]:
            made.check(client)
            made.add(client, zoo.items('more', 30))
            made.check(client)
    finally:
        client.call('CONFIG', 'SET', 'activedefrag', 'no')
