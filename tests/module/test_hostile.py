"""Whatever an enemy sends: the server lives, answers, and keeps what it has."""
import struct

import pytest
import rdb
import zoo
from hostile import (NUMBERS, SMALL, change, change_bytes, change_number, make_small, rdb_file)
from world import Ended, Refused, Server, draw, wait_for

MIB = 1 << 20


@pytest.fixture(scope='module')
def server():
    with Server('--rdbcompression', 'no', '--maxmemory', '1gb') as one:
        yield one


@pytest.fixture
def client(server):
    server.call('FLUSHALL')
    return server.client


class Witness:
    """A filter that was there before, and must stay as it is."""

    def __init__(self, client):
        self.client = client
        self.made = zoo.make_all(client, ['bf_scaling', 'cf_reserved'])
        self.before = zoo.likenesses(client, self.made)

    def check(self):
        assert self.client.call('PING') == b'PONG'
        zoo.check_all(self.client, self.made, self.before)


def use(client, key):
    """Uses a key in all ways.  What was added to it is in it."""
    family = 'CF' if 'CF' in client.call('TYPE', key).decode() else 'BF'
    words = zoo.items('used', 30)
    commands = [(family + '.EXISTS', key, 'item 1'), (family + '.INFO', key),
                (family + '.INFO', key, 'ALL'),
                (family + '.DEBUG', key), ('MEMORY', 'USAGE', key),
                ('DEBUG', 'DIGEST-VALUE', key), (family + '.SCANDUMP', key, 0),
                (family + '.SCANDUMP', key, 1), ('COPY', key, 'copy', 'REPLACE')]
    if family == 'BF':
        commands += [('BF.CARD', key), ('BF.MADD', key, *words), ('BF.MEXISTS', key, *words),
                     ('BF.SHRINK', 'copy'), ('BF.MEXISTS', 'copy', *words),
                     ('BF.MERGE', 'copy', key)]
        added, asked = 9, 10
    else:
        commands += [('CF.COUNT', key, 'item 1'), ('CF.DEL', key, 'item 1'),
                     ('CF.INSERT', key, 'ITEMS', *words), ('CF.MEXISTS', key, *words),
                     ('CF.COMPACT', key), ('CF.MEXISTS', key, *words),
                     ('CF.ADDNX', 'copy', 'x')]
        added, asked = 10, 11
    replies = client.pipe(commands)
    if isinstance(replies[added], list) and isinstance(replies[asked], list):
        for was_added, is_there in zip(replies[added], replies[asked]):
            assert is_there == 1 or was_added not in (0, 1), 'a false negative'
    client.call('DUMP', key)


def restore_changed(client, random, n):
    """Restores n changed dumps of each kind; returns how many the server took."""
    taken = 0
    for kind in SMALL:
        dumped = make_small(client, kind)
        for _ in range(n):
            payload = change(random, dumped)
            reply = client.ask('RESTORE', 'small', 0, payload, 'REPLACE')
            if not isinstance(reply, Refused):
                taken += 1
                if client.call('TYPE', 'small') not in (b'string', b'none'):
                    use(client, 'small')
    return taken


def test_restore(client, n=190):
    witness = Witness(client)
    taken = restore_changed(client, draw('restore'), n)
    assert taken > n // 10  # the changes get past the first checks
    witness.check()


def test_restore_what_was_cut(client):
    for kind in SMALL:
        dumped = make_small(client, kind)[:-11]  # without the END, version and checksum
        for nbytes in [*range(1, 60), *range(60, len(dumped), 1 + len(dumped) // 40)]:
            with pytest.raises(Refused):
                client.call('RESTORE', 'cut', 0, rdb.seal(dumped[:nbytes] + rdb.VERSION))
            with pytest.raises(Refused):
                client.call('RESTORE', 'cut', 0, rdb.seal(dumped[:nbytes] + b'\0' + rdb.VERSION))
    assert client.call('EXISTS', 'cut') == 0


def own_header(fields, **numbers):
    """Returns fields of a dump of ours with other numbers in its header (module/own_bytes.c)."""
    places = {'expansion': ('<I', 12), 'capacity': ('<Q', 16), 'fpr': ('<d', 24),
              'reserved': ('<I', 32), 'bucket_size': ('<I', 36), 'iterations': ('<I', 40),
              'window_ms': ('<Q', 48), 'period_ms': ('<Q', 56), 'began_ms': ('<Q', 64),
              'items': ('<Q', 72), 'deleted': ('<Q', 80), 'nbytes': ('<Q', 88)}
    header = bytearray(fields[0])
    for name, number in numbers.items():
        letter, at = places[name]
        limit = 1 << 8 * struct.calcsize(letter)
        struct.pack_into(letter, header, at, number if letter == '<d' else number % limit)
    return [bytes(header), *fields[1:]]


STRANGE = [0, 1, 255, 2**31, 2**32 - 1, 2**41, 2**62, 2**63, 2**64 - 1]


def test_each_number_of_our_header(client):
    """All combinations of a field and a strange number."""
    for kind in SMALL:
        if 'foreign' in kind or 'valkey' in kind:
            continue
        number, fields, version = rdb.take_apart(make_small(client, kind))
        for name in ['expansion', 'capacity', 'fpr', 'reserved', 'bucket_size', 'iterations',
                     'window_ms', 'period_ms', 'began_ms', 'items', 'deleted', 'nbytes']:
            for value in STRANGE if name != 'fpr' else [0.0, -1.0, 1.0, 2.0, 1e308, 1e-300]:
                payload = rdb.put_together(number, own_header(fields, **{name: value}), version)
                reply = client.ask('RESTORE', 'small', 0, payload, 'REPLACE')
                if not isinstance(reply, Refused):
                    use(client, 'small')


def test_windows_without_periods(client):
    number, fields, version = rdb.take_apart(make_small(client, 'bf_window'))
    for window_ms in (0, 1, 4, 86400000, 2**63, 2**64 - 1):
        for period_ms in (0, 1, 2**63, 2**64 - 1):
            for began_ms in (0, 1, 2**63, 2**64 - 1):
                changed = own_header(fields, window_ms=window_ms, period_ms=period_ms,
                                     began_ms=began_ms)
                payload = rdb.put_together(number, changed, version)
                if not isinstance(client.ask('RESTORE', 'small', 0, payload, 'REPLACE'), Refused):
                    use(client, 'small')
                    client.ask('PERHAPS.ADVANCE', 'small', 2**63 - 1)
                    use(client, 'small')


# ---- Files ----------------------------------------------------------------------------------

def start_changed(random, dumps, n):
    """Starts n servers with changed RDB files; returns how many of them started."""
    started = 0
    for i in range(n):
        payload = change(random, dumps[i % len(dumps)], framed=True)
        server = Server('--dbfilename', 'changed.rdb', '--maxmemory', '1gb')
        try:
            with open(server.path('changed.rdb'), 'wb') as file:
                file.write(rdb_file(random, payload))
            server.start()
            assert server.call('PING') == b'PONG'
            if server.call('TYPE', 'small') not in (b'string', b'none'):
                use(server.client, 'small')
            started += 1
        except Ended:
            pass  # it said why, and ended
        finally:
            crash, code = server.crash(), server.process.poll()
            server.remove()
        assert not crash and (code is None or code >= 0), crash
    return started


def test_rdb_files(client, n=30):
    dumps = [make_small(client, kind) for kind in SMALL]
    start_changed(draw('files'), dumps, n)


# ---- Chunks ---------------------------------------------------------------------------------

def load_changed(client, random, n):
    """Loads n changed dumps of each kind, chunk by chunk."""
    for kind in SMALL:
        make_small(client, kind)
        family = kind[:2].upper()
        chunks = zoo.scandump(client, family, 'small')
        for _ in range(n):
            client.call('DEL', 'loaded')
            for position, data in chunks:
                if random.randrange(3) == 0:
                    data = change_bytes(random, data)
                if random.randrange(8) == 0:
                    position = change_number(random, position)
                if position >= 1 << 63:
                    position -= 1 << 64
                client.ask(family + '.LOADCHUNK', 'loaded', position, data)
            if client.call('EXISTS', 'loaded'):
                use(client, 'loaded')


def test_loadchunk(client, n=100):
    witness = Witness(client)
    load_changed(client, draw('chunks'), n)
    witness.check()


def test_loadchunk_of_the_other_family(client):
    for kind in SMALL:
        make_small(client, kind)
        family = kind[:2].upper()
        other = {'BF': 'CF', 'CF': 'BF'}[family]
        (position, header), *rest = zoo.scandump(client, family, 'small')
        with pytest.raises(Refused):
            client.call(other + '.LOADCHUNK', 'new', position, header)
        client.call(family + '.LOADCHUNK', 'new', position, header)
        for position, data in rest:
            with pytest.raises(Refused):
                client.call(other + '.LOADCHUNK', 'new', position, data)
        client.call('DEL', 'new')


def test_positions(client):
    for kind in SMALL:
        make_small(client, kind)
        family = kind[:2].upper()
        before = client.call('DEBUG', 'DIGEST-VALUE', 'small')
        for number in NUMBERS:
            number = number - (1 << 64) if number >= 1 << 63 else number
            client.ask(family + '.SCANDUMP', 'small', number)
            client.ask(family + '.LOADCHUNK', 'small', number, b'x' * 100)
            client.ask(family + '.LOADCHUNK', 'none', number, b'')
        assert client.call('DEBUG', 'DIGEST-VALUE', 'small') == before


# ---- Memory ---------------------------------------------------------------------------------

def test_maxmemory():
    """A full server refuses adds, answers questions, and forgets nothing."""
    with Server() as server:
        filters = [zoo.Filter('bf', 'b'), zoo.Filter('cf', 'c')]
        server.call('BF.RESERVE', 'b', '0.0001', 100)
        for made in filters:
            used = int(server.client.info('memory')['used_memory'])
            server.call('CONFIG', 'SET', 'maxmemory', used + 2 * MIB)
            refused, n = None, 0
            while not refused and n < 10_000_000:
                batch = zoo.items('item', 2000, n)
                n += len(batch)
                replies = server.client.pipe(
                    [('BF.MADD', 'b', *batch) if made.family == 'BF'
                     else ('CF.INSERT', 'c', 'ITEMS', *batch)])
                refused = any(isinstance(reply, Refused) or -1 in reply for reply in replies)
                if not refused:
                    made.items += batch
            assert refused
            made.check(server.client)
        assert server.call('PING') == b'PONG'
        for reserve in [('BF.RESERVE', 'x', '0.001', 2**30), ('CF.RESERVE', 'y', 2**30)]:
            with pytest.raises(Refused, match='OOM|nsufficient memory|could not create'):
                server.call(*reserve)
        server.call('CONFIG', 'SET', 'maxmemory', 0)
        server.restart(save=True)
        zoo.check_all(server.client, filters)


def test_more_than_the_machine_has(client):
    for reserve in [('BF.RESERVE', 'x', '0.0000001', 2**40), ('CF.RESERVE', 'y', 2**40),
                    ('BF.INSERT', 'z', 'CAPACITY', 2**40, 'ITEMS', 'x'),
                    ('CF.INSERT', 'w', 'CAPACITY', 2**40, 'ITEMS', 'x'),
                    ('BF.RESERVE', 'v', '0.0000001', 2**40, 'NONSCALING')]:
        reply = client.ask(*reserve)
        assert isinstance(reply, Refused) or client.call('MEMORY', 'USAGE', reserve[1]) < 64 * MIB
    assert client.call('PING') == b'PONG'


def test_replica_is_not_stopped_by_maxmemory():
    """A replica takes what its master took, whatever its own limit is."""
    with Server() as master, Server('--maxmemory', '20mb') as replica:
        replica.call('REPLICAOF', '127.0.0.1', master.port)
        wait_for(lambda: replica.client.info('replication')['master_link_status'] == 'up')
        master.call('BF.RESERVE', 'big', '0.001', 20_000_000)
        master.call('BF.MADD', 'big', *zoo.items('item', 100))
        assert master.call('WAIT', 1, 60000) == 1
        assert replica.call('BF.MEXISTS', 'big', *zoo.items('item', 100)) == [1] * 100
