"""What a filter is after it was saved, copied, dumped, rewritten and loaded: the same."""
import os
import threading
import time

import pytest
import zoo
from fixtures import client, server  # noqa: F401
from world import AOF, Client, Load, Refused, Server, caught_up, replicate, wait_for

MIB = 1 << 20


# ---- RDB ------------------------------------------------------------------------------------

def test_rdb():
    with Server() as server:
        filters = zoo.make_all(server.client)
        before = zoo.likenesses(server.client, filters)
        whole = server.call('DEBUG', 'DIGEST')
        server.restart(save=True)
        assert server.call('DEBUG', 'DIGEST') == whole
        zoo.check_all(server.client, filters, before)
        for made in filters:
            if made.kind not in zoo.FIXED:
                made.add(server.client, zoo.items('later', 300))
        before = zoo.likenesses(server.client, filters)
        server.call('DEBUG', 'RELOAD')
        zoo.check_all(server.client, filters, before)


def test_rdb_without_compression():
    with Server('--rdbcompression', 'no', '--rdbchecksum', 'no') as server:
        filters = zoo.make_all(server.client)
        before = zoo.likenesses(server.client, filters)
        server.restart(save=True)
        zoo.check_all(server.client, filters, before)


def test_bgsave_under_load():
    with Server() as server:
        server.call('BF.RESERVE', 'b', '0.000001', 1000)
        loads = [Load(server.port, words) for words in
                 [('BF.MADD', 'b'), ('CF.INSERT', 'c', 'ITEMS'), ('BF.MADD', 'default')]]
        for load in loads:
            load.wait_for(4000)
        there = {load.command[1]: list(load.acknowledged) for load in loads}
        server.call('BGSAVE')
        wait_for(lambda: server.client.info('persistence')['rdb_bgsave_in_progress'] == '0')
        assert server.client.info('persistence')['rdb_last_bgsave_status'] == 'ok'
        for load in loads:
            load.end()
        server.restart()
        for key, items in there.items():
            made = zoo.Filter('cf' if key == 'c' else 'bf', key)
            made.items = items
            made.check(server.client)


# ---- DUMP, RESTORE, COPY --------------------------------------------------------------------

def test_dump_restore(client):
    filters = zoo.make_all(client)
    for made in filters:
        dumped = client.call('DUMP', made.key)
        copy = zoo.Filter(made.kind, 'copy')
        copy.items, copy.removed = made.items, made.removed
        client.call('RESTORE', 'copy', 0, dumped, 'REPLACE')
        assert copy.likeness(client) == made.likeness(client), made.kind
        assert client.call('DUMP', 'copy') == dumped, made.kind
        with pytest.raises(Refused, match='BUSYKEY'):
            client.call('RESTORE', made.key, 0, dumped)


def test_restore_elsewhere(client):
    filters = zoo.make_all(client)
    with Server() as other:
        for made in filters:
            other.call('RESTORE', made.key, 0, client.call('DUMP', made.key))
        zoo.same(client, filters, other.client)


def test_copy(client):
    for made in zoo.make_all(client):
        before = made.likeness(client)
        copy = zoo.Filter(made.kind, 'copy')
        copy.items, copy.removed = made.items, made.removed
        assert client.call('COPY', made.key, 'copy', 'REPLACE') == 1
        assert copy.likeness(client) == before, made.kind
        client.pipe([(made.family + '.ADD', 'copy', item) for item in zoo.items('more', 300)])
        assert made.likeness(client) == before, made.kind  # they share nothing
        client.call('DEL', made.key)
        copy.check(client)


def test_digest_tells_filters_apart(client):
    for made in zoo.make_all(client):
        if made.kind in zoo.FIXED:
            continue
        before = client.call('DEBUG', 'DIGEST-VALUE', made.key)
        client.pipe([(made.family + '.ADD', made.key, item) for item in zoo.items('x', 50)])
        assert client.call('DEBUG', 'DIGEST-VALUE', made.key) != before, made.kind


# ---- AOF ------------------------------------------------------------------------------------

@pytest.mark.parametrize('preamble', ['yes', 'no'])
def test_aof(preamble):
    with Server(*AOF, '--aof-use-rdb-preamble', preamble) as server:
        filters = zoo.make_all(server.client)
        before = zoo.likenesses(server.client, filters)
        server.restart()  # from commands alone
        zoo.check_all(server.client, filters, before)
        zoo.rewrite(server)
        server.restart()  # from what the rewrite wrote
        zoo.check_all(server.client, filters, before)
        for made in filters:
            if made.kind not in zoo.FIXED:
                made.add(server.client, zoo.items('later', 300))
        before = zoo.likenesses(server.client, filters)
        server.restart()  # from both
        zoo.check_all(server.client, filters, before)


def aof_words(server):
    """Yields the commands in the files of the AOF as lists of the sizes of their words, the
    first one as it is."""
    folder = server.path('appendonlydir')
    for name in sorted(os.listdir(folder)):
        if not name.endswith('.aof'):
            continue
        with open(os.path.join(folder, name), 'rb') as file:
            while line := file.readline():
                if line[:1] == b'*':
                    yield read_words(file, int(line[1:]))


def read_words(file, n):
    words = []
    for _ in range(n):
        nbytes = int(file.readline()[1:])
        word = file.read(nbytes + 2)
        words.append(nbytes if words else word[:-2])
    return words


def test_aof_in_pieces():
    """A rewrite writes no word of more than 16 MiB, so that any server reads it."""
    with Server(*AOF, '--aof-use-rdb-preamble', 'no') as server:
        server.call('BF.RESERVE', 'big', '0.001', 25_000_000)
        server.call('CF.RESERVE', 'wide', 12_000_000)
        made = [zoo.Filter('bf', 'big'), zoo.Filter('cf', 'wide')]
        for one in made:
            one.add(server.client, zoo.items('item', 5000))
        before = zoo.likenesses(server.client, made)
        zoo.rewrite(server)
        words = list(aof_words(server))
        assert max(max(sizes[1:], default=0) for sizes in words) <= 16 * MIB
        assert sum(sum(sizes[1:]) for sizes in words) > 50 * MIB
        assert sum(sizes[0].upper().endswith(b'LOADCHUNK') for sizes in words) >= 4
        server.restart()
        zoo.check_all(server.client, made, before)


# ---- SCANDUMP and LOADCHUNK -----------------------------------------------------------------

@pytest.mark.parametrize('kind', zoo.KINDS)
def test_scandump(client, kind):
    made = zoo.Filter(kind).make(client)
    chunks = zoo.scandump(client, made.family, made.key)
    assert bool(chunks) == (kind != 'cf_empty')  # has none, as in RedisBloom
    before = made.likeness(client)
    client.call('RENAME', made.key, 'was')
    if not chunks:
        return
    zoo.loadchunks(client, made.family, made.key, chunks)
    assert made.likeness(client) == before
    again = zoo.scandump(client, made.family, made.key)
    assert [data for _, data in again] == [data for _, data in chunks]


@pytest.mark.parametrize('family, capacity', [('BF', 1), ('BF', 10_000_000), ('BF', 30_000_000),
                                              ('CF', 4), ('CF', 20_000_000)])
def test_scandump_of_sizes(client, family, capacity):
    made = zoo.Filter(family.lower(), 'k')
    reserve = ('0.01', capacity) if family == 'BF' else (capacity,)
    client.call(family + '.RESERVE', 'k', *reserve)
    made.add(client, zoo.items('item', min(capacity, 3000)))
    chunks = zoo.scandump(client, family, 'k')
    assert max(len(data) for _, data in chunks) <= 16 * MIB
    before = made.likeness(client)
    client.call('DEL', 'k')
    zoo.loadchunks(client, family, 'k', chunks)
    assert made.likeness(client) == before


@pytest.mark.parametrize('kind', ['bf_scaling', 'cf_unreserved'])
def test_scandump_of_a_changing_filter(client, kind):
    """Chunks of different states make no filter that denies what was in it before the dump."""
    family = kind[:2].upper()
    made = zoo.Filter(kind)
    client.call(family + '.RESERVE', kind, *(['0.01'] if family == 'BF' else []), 20_000_000)
    made.add(client, zoo.items('item', 3000))
    chunks, position, n = [], 0, 0
    try:
        while True:
            position, data = client.call(family + '.SCANDUMP', kind, position)
            if not position:
                break
            chunks.append((position, data))
            client.call(family + '.ADD', kind, 'meanwhile %d' % n)
            n += 1
    except Refused:
        pass  # the dump has noticed
    copy = zoo.Filter(kind, 'copy')
    copy.items = made.items
    try:
        zoo.loadchunks(client, family, 'copy', chunks)
    except Refused:
        pass  # the load has noticed
    reply = client.ask(family + '.EXISTS', 'copy', 'item 1')
    if isinstance(reply, Refused):
        assert 'not complete' in str(reply)
    elif client.call('EXISTS', 'copy'):
        copy.check(client)


# ---- Filters of which not all chunks are there ----------------------------------------------

def half(client, kind, key):
    """Loads a filter but for its last chunk, and returns this."""
    made = zoo.Filter(kind).make(client)
    chunks = zoo.scandump(client, made.family, made.key)
    if len(chunks) == 2:  # all behind the header: in two pieces
        position, data = chunks.pop()
        middle = len(data) // 2
        chunks += [(position - len(data) + middle, data[:middle]), (position, data[middle:])]
    zoo.loadchunks(client, made.family, key, chunks[:-1])
    return made, chunks[-1]


def refuses_questions(client, family, key):
    questions = [(family + '.EXISTS', key, 'item 1'), (family + '.MEXISTS', key, 'a', 'item 1'),
                 (family + '.ADD', key, 'x')]
    if family == 'CF':
        questions += [('CF.COUNT', key, 'item 1'), ('CF.DEL', key, 'item 1')]
    else:
        questions += [('BF.MADD', key, 'x', 'y')]
    for question in questions:
        reply = client.ask(*question)
        assert isinstance(reply, Refused) and 'not complete' in str(reply), (question, reply)


HALVES = [kind for kind in zoo.KINDS if kind in
          ('bf_scaling', 'bf_window', 'cf_unreserved', 'bf_foreign', 'bf_valkey', 'cf_foreign')]


@pytest.mark.parametrize('kind', HALVES)
def test_half_loaded(client, kind):
    made, last = half(client, kind, 'half')
    refuses_questions(client, made.family, 'half')
    client.call('RESTORE', 'restored', 0, client.call('DUMP', 'half'))
    client.call('DEBUG', 'RELOAD')
    client.ask('COPY', 'half', 'copied')  # may be refused
    for key in ['half', 'restored', *(['copied'] if client.call('EXISTS', 'copied') else [])]:
        refuses_questions(client, made.family, key)
        zoo.loadchunks(client, made.family, key, [last])
        copy = zoo.Filter(kind, key)
        copy.items, copy.removed = made.items, made.removed
        assert copy.likeness(client) == made.likeness(client), key


@pytest.mark.parametrize('preamble', ['yes', 'no', None])
def test_half_loaded_survives(preamble):
    """A restart, from an RDB (None) and from an AOF, as it was written and rewritten."""
    config = [] if preamble is None else [*AOF, '--aof-use-rdb-preamble', preamble]
    with Server(*config) as server:
        waiting = {kind: half(server.client, kind, 'half ' + kind) for kind in HALVES}
        server.restart(save=preamble is None)
        if preamble:
            zoo.rewrite(server)
            server.restart()
        for kind, (made, last) in waiting.items():
            refuses_questions(server.client, made.family, 'half ' + kind)
            zoo.loadchunks(server.client, made.family, 'half ' + kind, [last])
            copy = zoo.Filter(kind, 'half ' + kind)
            copy.items, copy.removed = made.items, made.removed
            assert copy.likeness(server.client) == made.likeness(server.client), kind


def test_chunks_again(client):
    """A client that got no reply to a LOADCHUNK sends it again."""
    made = zoo.Filter('bf_grown').make(client)
    chunks = zoo.scandump(client, 'BF', made.key)
    before = made.likeness(client)
    client.call('RENAME', made.key, 'was')
    client.call('BF.LOADCHUNK', made.key, *chunks[0])
    position, data = chunks[1]
    for _ in range(2):
        client.call('BF.LOADCHUNK', made.key, position - len(data) + 1000, data[:1000])
    client.call('BF.LOADCHUNK', made.key, position, data[1000:])
    assert made.likeness(client) == before


@pytest.mark.parametrize('kind', ['bf_grown', 'cf_reserved'])
def test_damaged_chunks(kind):
    """A dump of which a chunk is damaged is refused, on all servers alike; and a whole one can
    be loaded afterwards."""
    with Server(*AOF, '--aof-use-rdb-preamble', 'no') as master, Server() as replica:
        replicate(replica, master)
        made = zoo.Filter(kind).make(master.client)
        (first, header), (last, data) = zoo.scandump(master.client, made.family, made.key)
        middle = len(data) // 2
        damaged = bytearray(data)
        damaged[middle // 2] ^= 1
        load = (made.family + '.LOADCHUNK', 'again')
        master.call(*load, first, header)
        master.call(*load, last - len(data) + middle, damaged[:middle])
        with pytest.raises(Refused):
            master.call(*load, last, damaged[middle:])
        reply = master.ask(made.family + '.EXISTS', 'again', made.items[0])
        assert reply == 0 or 'not complete' in str(reply)
        assert (reply == 0) == (master.call('EXISTS', 'again') == 0)
        master.ask(*load, first, header)
        master.call(*load, last - len(data) + middle, data[:middle])
        master.call(*load, last, data[middle:])
        copy = zoo.Filter(kind, 'again')
        copy.items, copy.removed = made.items, made.removed
        before = made.likeness(master.client)
        assert copy.likeness(master.client) == before
        caught_up(replica, master)
        assert copy.likeness(replica.client) == before
        master.restart()
        assert copy.likeness(master.client) == before


def test_saves_while_chunks_are_loaded():
    """Saves at random moments of a load: what is saved answers nothing wrong."""
    with Server() as server:
        made = zoo.Filter('bf_grown').make(server.client)
        chunks = zoo.scandump(server.client, 'BF', made.key)
        stop = threading.Event()

        def load():
            link, n = Client(server.port), 0
            while not stop.is_set():
                n += 1
                link.call('DEL', 'again')
                zoo.loadchunks(link, 'BF', 'again', chunks)
        thread = threading.Thread(target=load)
        thread.start()
        for _ in range(20):
            server.call('SAVE')
            time.sleep(0.002)
        stop.set()
        thread.join()
        server.restart()
        made.check(server.client)
        reply = server.ask('BF.EXISTS', 'again', made.items[0])
        assert reply in (0, 1) or 'not complete' in str(reply)
        if server.call('EXISTS', 'again') and reply == 0:
            raise AssertionError('a half filter says no')
