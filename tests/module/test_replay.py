"""What a master did, and what an AOF or an RDB holds, is done as it stands: neither memory nor
limits nor settings of the place refuse it."""
import contextlib
import os

import pytest
import zoo
from world import AOF, Refused, Server, caught_up, replicas, replicate

NO_MEMORY = 'Insufficient memory'
# 24 and 31 MB, on a machine that has 16: more than what is looked at is refused to clients
BIG = {'bf': ('BF.RESERVE', 'bf', '0.001', 10_000_000),
       'bf_nonscaling': ('BF.RESERVE', 'bf_nonscaling', '0.001', 15_000_000, 'NONSCALING'),
       'cf': ('CF.RESERVE', 'cf', 14_000_000)}
LIMIT = ['--maxmemory', '12mb']


@contextlib.contextmanager
def small_machine():
    """Servers that are started here believe that the machine has so little memory."""
    os.environ['PERHAPS_TEST_RAM_MIB'] = '16'
    try:
        yield
    finally:
        del os.environ['PERHAPS_TEST_RAM_MIB']


@contextlib.contextmanager
def pair(*config, arguments=()):
    """A master, and a replica of it on a small machine."""
    with Server() as master, small_machine(), \
            Server(*config, arguments=arguments) as replica:
        replicate(replica, master)
        yield master, replica


def make_big(client):
    for name, command in BIG.items():
        client.call(*command)
        client.call(name[:2].upper() + '.ADD', name, 'first')


def digests(server):
    return {key: server.call('DEBUG', 'DIGEST-VALUE', key) for key in sorted(server.call('KEYS', '*'))}


def is_there(server):
    assert [server.call(name[:2].upper() + '.EXISTS', name, 'first') for name in BIG] == [1, 1, 1]


# ---- Memory ---------------------------------------------------------------------------------

def test_a_client_is_refused():
    """What the other tests rely on: for its clients the small machine is small."""
    with small_machine(), Server() as server:
        for command in BIG.values():
            with pytest.raises(Refused, match=NO_MEMORY):
                server.call(*command)
        assert server.call('DBSIZE') == 0


def test_replica_on_a_small_machine():
    with pair() as (master, replica):
        make_big(master.client)
        caught_up(replica, master)
        assert digests(replica) == digests(master)
        is_there(replica)


def test_growth_on_a_replica():
    """A filter that grows by a layer which a client of the replica could not get."""
    with pair(*LIMIT) as (master, replica):
        master.call('BF.RESERVE', 'f', '0.001', 20000, 'EXPANSION', 700)
        items = zoo.items('item', 30000)
        for batch in zoo.batches(items):
            master.call('BF.MADD', 'f', *batch)
        assert master.call('BF.INFO', 'f', 'SIZE')[0] > 20 << 20
        caught_up(replica, master)
        made = zoo.Filter('bf', 'f')
        made.items = items
        made.check(replica.client)
        replica.call('REPLICAOF', 'NO', 'ONE')
        made.check(replica.client)
        with pytest.raises(Refused):
            replica.call(*BIG['bf'])


def test_copies_and_chunks_on_a_replica():
    with pair(*LIMIT) as (master, replica):
        make_big(master.client)
        for name in BIG:
            family = name[:2].upper()
            master.call('COPY', name, 'copy ' + name)
            master.call('RESTORE', 'restored ' + name, 0, master.call('DUMP', name))
            zoo.loadchunks(master.client, family, 'loaded ' + name,
                           zoo.scandump(master.client, family, name))
        caught_up(replica, master)
        assert len(digests(master)) == 4 * len(BIG)
        assert digests(replica) == digests(master)


def test_union_and_shrink_on_a_replica():
    """Commands that open several keys, and those that make a filter anew."""
    with pair(*LIMIT) as (master, replica):
        master.call('BF.RESERVE', 'one', '0.001', 10_000_000)
        master.call('COPY', 'one', 'other')
        for key in 'one', 'other':
            master.call('BF.ADD', key, 'in ' + key)
        master.call('BF.MERGE', 'both', 'one', 'other')
        master.call('BF.MERGE', 'one', 'other')
        master.call('BF.RESERVE', 'wide', '0.0001', 30_000_000, 'NONSCALING')
        master.call('BF.ADD', 'wide', 'x')
        master.call('BF.SHRINK', 'wide')
        caught_up(replica, master)
        assert digests(replica) == digests(master)
        for key in 'one', 'both':
            assert replica.call('BF.MEXISTS', key, 'in one', 'in other') == [1, 1]


def test_full_resync_to_a_small_machine():
    with Server() as master, small_machine(), Server(*LIMIT) as replica:
        make_big(master.client)
        replicate(replica, master)
        assert digests(replica) == digests(master)


@pytest.mark.parametrize('saved', ['commands', 'chunks', 'preamble', 'rdb'])
def test_starts_from_its_own_files(saved):
    """A server that has less memory after a restart, or another limit, has what it had."""
    config = [] if saved == 'rdb' else \
        [*AOF, '--aof-use-rdb-preamble', 'yes' if saved == 'preamble' else 'no']
    with Server(*config) as server:
        make_big(server.client)
        if saved in ('chunks', 'preamble'):
            zoo.rewrite(server)
        for name in BIG:
            server.call(name[:2].upper() + '.ADD', name, 'later')
        before = digests(server)
        with small_machine():
            server.config += LIMIT
            server.restart(save=saved == 'rdb')
        assert digests(server) == before
        is_there(server)
        with pytest.raises(Refused):
            server.call(*BIG['bf'][:1], 'other', *BIG['bf'][2:])


# ---- Settings and limits --------------------------------------------------------------------

def test_limit_of_expansions():
    """cf-max-expansions counts where a client adds, and nowhere else."""
    with replicas(1, *AOF, arguments=['cf-max-expansions', '1']) as (master, replica):
        made = zoo.Filter('cf_foreign_by_two', 'f').make(master.client)
        made.add(master.client, zoo.items('more', 6000))
        assert dict(zip(*[iter(master.call('CF.INFO', 'f'))] * 2))[b'Number of filters'] > 3
        caught_up(replica, master)
        assert digests(replica) == digests(master)
        made.check(replica.client)
        replica.call('REPLICAOF', 'NO', 'ONE')
        zoo.rewritten(replica)
        replica.restart()
        made.check(replica.client)
        replies = replica.call('CF.INSERT', 'f', 'ITEMS', *zoo.items('now', 20000))
        assert -1 in replies


# ---- Filters that are not whole -------------------------------------------------------------

def halves(client, key):
    """All chunks of a filter, the last one in two."""
    made = zoo.Filter('bf_grown', key).make(client)
    chunks = zoo.scandump(client, 'BF', key)
    client.call('DEL', key)
    position, data = chunks.pop()
    middle = len(data) // 2
    return made, [*chunks, (position - len(data) + middle, data[:middle]),
                  (position, data[middle:])]


WRITES = [('BF.ADD', 'f', 'x'), ('BF.MADD', 'f', 'x', 'y'), ('BF.INSERT', 'f', 'ITEMS', 'x'),
          ('BF.RESERVE', 'f', '0.01', 100), ('BF.MERGE', 'f', 'other'), ('BF.SHRINK', 'f'),
          ('CF.ADD', 'f', 'x'), ('CF.INSERT', 'f', 'ITEMS', 'x')]


@pytest.mark.parametrize('wrong', ['damaged', 'memory'])
def test_no_filter_in_its_place(wrong):
    """Pieces of which no filter can be made leave one that answers an error, on all servers,
    and no command makes another filter in its place; the whole can be loaded again."""
    with Server(*AOF) as master, Server() as replica:
        replicate(replica, master)
        made, chunks = halves(master.client, 'f')
        bad = list(chunks)
        if wrong == 'damaged':
            bad[-2] = (bad[-2][0], bytes([bad[-2][1][0]]) + bytes(len(bad[-2][1]) - 1))
            zoo.loadchunks(master.client, 'BF', 'f', bad[:-1])
            with pytest.raises(Refused, match='load it again from its header'):
                master.call('BF.LOADCHUNK', 'f', *bad[-1])
        else:
            zoo.loadchunks(master.client, 'BF', 'f', bad[:-1])
        master.call('BF.RESERVE', 'other', '0.01', 100)
        caught_up(replica, master)
        for at in ('running', 'restarted'):
            for server in master, replica:
                reply = server.ask('BF.EXISTS', 'f', made.items[0])
                assert 'not complete' in str(reply), at
            for command in WRITES:
                assert isinstance(master.ask(*command), Refused), command
            assert 'not complete' in str(master.ask('BF.EXISTS', 'f', made.items[0]))
            if at == 'running':
                master.restart()
                caught_up(replica, master)
        zoo.loadchunks(master.client, 'BF', 'f', chunks)  # from its header
        caught_up(replica, master)
        made.check(master.client)
        made.check(replica.client)
        assert digests(master) == digests(replica)
        master.restart()
        made.check(master.client)


def test_memory_for_the_last_piece():
    """The pieces of a filter fit, and the filter beside them does not: nothing is denied."""
    with Server() as server:
        server.call(*BIG['bf'])
        server.call('BF.ADD', 'bf', 'first')
        chunks = zoo.scandump(server.client, 'BF', 'bf')
        server.call('DEL', 'bf')
        zoo.loadchunks(server.client, 'BF', 'bf', chunks[:-1])
        used = int(server.client.info('memory')['used_memory'])
        server.call('CONFIG', 'SET', 'maxmemory', used + (12 << 20))
        with pytest.raises(Refused, match=NO_MEMORY):
            server.call('BF.LOADCHUNK', 'bf', *chunks[-1])
        for command in ('BF.EXISTS', 'BF.ADD'):
            assert 'not complete' in str(server.ask(command, 'bf', 'first'))
        server.call('CONFIG', 'SET', 'maxmemory', 0)
        zoo.loadchunks(server.client, 'BF', 'bf', chunks)
        assert server.call('BF.EXISTS', 'bf', 'first') == 1


def test_limit_is_kept_before_it_is_taken():
    """A server with a limit refuses a filter that would break it before it takes the memory."""
    with Server('--maxmemory', '100mb') as server:
        for command in [('BF.RESERVE', 'f', '0.01', 1 << 30), ('BF.RESERVE', 'f', '1e-13', 1 << 25),
                        ('CF.RESERVE', 'f', 1 << 30), ('BF.RESERVE', 'f', '0.01', 1 << 40),
                        ('BF.INSERT', 'f', 'CAPACITY', 1 << 30, 'ITEMS', 'a'),
                        ('CF.INSERT', 'f', 'CAPACITY', 1 << 30, 'ITEMS', 'a'),
                        ('BF.RESERVE', 'f', '0.01', 1 << 30, 'WINDOW', '1h')]:
            reply = server.ask(*command)
            if command[0] == 'CF.INSERT' and not isinstance(reply, Refused):
                server.call('DEL', 'f')  # it begins small, and grows
                continue
            assert isinstance(reply, Refused), command
            assert NO_MEMORY in str(reply) or 'could not create' in str(reply), (command, reply)
        assert int(server.client.info('memory')['used_memory_peak']) < 30 << 20
        assert server.call('DBSIZE') == 0
        server.call('BF.RESERVE', 'f', '0.01', 10_000_000, 'EXPANSION', 1000)
