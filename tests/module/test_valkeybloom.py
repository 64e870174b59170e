"""valkey-bloom's own filters, made here by hand or by the crate that it is built on: they answer
as a model of the formats says, and go back in the same form."""
import pathlib
import struct

import foreign
import pytest
import valkeybloom
import zoo
from fixtures import client, server  # noqa: F401
from test_redisbloom import ABSENT, same_answers, words
from world import AOF, Refused, Server, caught_up, encode, replicate

MODELS = {
    'usual': (lambda: valkeybloom.Bloom(), 90),
    'grown': (lambda: valkeybloom.Bloom(50, 0.01), 900),
    'by three': (lambda: valkeybloom.Bloom(30, 0.05, 3, 0.85), 700),
    'by one': (lambda: valkeybloom.Bloom(200, 0.001, 1), 900),
    'nonscaling': (lambda: valkeybloom.Bloom(500, 0.01, 0), 450),
    'public seed': (lambda: valkeybloom.Bloom(100, 0.01, seed=valkeybloom.FIXED_SEED), 300),
    'tiny': (lambda: valkeybloom.Bloom(1, 0.9), 3),
    'empty': (lambda: valkeybloom.Bloom(1000, 0.01), 0),
}


@pytest.fixture(params=MODELS)
def made(request):
    """A model with items in it, and these."""
    make, n = MODELS[request.param]
    model, items = make(), words(n)
    for item in items:
        model.add(item)
    return model, items


def restore(client, key, model):
    client.call('RESTORE', key, 0, foreign.restore_payload(model))


def goes_back(client, key, model):
    """What is saved of it is what valkey-bloom would save."""
    client.call('CONFIG', 'SET', 'rdbcompression', 'no')
    body = foreign.restore_payload(model)[:-10]  # without the server's version and checksum
    assert client.call('DUMP', key)[:-10] == body


def check(client, key, model, items):
    same_answers(client, key, model, items + ABSENT[:1000])
    assert client.call('BF.CARD', key) == model.size
    goes_back(client, key, model)


# ---- From there, and back -------------------------------------------------------------------

@pytest.mark.parametrize('one', valkeybloom.golden(), ids=lambda one: one.name)
def test_what_the_crate_made(client, one):
    """The same bits, from a seed and the same items."""
    client.call(*valkeybloom.Bloom.insert(one.model, 'f'))
    answers = [client.ask('BF.ADD', 'f', item) for item in one.items]
    assert ''.join(map(str, answers)) == one.answers
    for item in one.items:
        one.model.add(item)
    goes_back(client, 'f', one.model)


def test_restored(client, made):
    model, items = made
    restore(client, 'f', model)
    check(client, 'f', model, items)


def test_bf_load(client, made):
    model, items = made
    assert client.call('BF.LOAD', 'f', model.dump()) == b'OK'
    check(client, 'f', model, items)
    with pytest.raises(Refused, match='^BUSYKEY Target key name already exists.$'):
        client.call('BF.LOAD', 'f', model.dump())


def test_made_by_insert(client, made):
    """As a master with valkey-bloom sends it: without items, and with some."""
    model, items = made
    empty = valkeybloom.Bloom(model.layers[0].capacity, model.rate, model.expansion,
                              model.tightening, model.seed)
    assert client.call(*empty.insert('f')) == []
    assert client.call(*empty.insert('f')) == []  # it is there
    check(client, 'f', empty, [])
    some = items[:5]
    if not some:
        return
    answers = [empty.add(item) for item in some]
    assert client.call(*empty.insert('g'), 'ITEMS', *some) == answers
    assert client.call(*empty.insert('f'), 'ITEMS', *some) == answers
    for key in 'fg':
        check(client, key, empty, some)


def test_adds_and_grows(client, made):
    """Items go where the model puts them."""
    model, items = made
    restore(client, 'f', model)
    more = words(150 if model.expansion else 20, 10000)
    expected = [model.add(item) for item in more]
    assert client.call('BF.MADD', 'f', *more[:70]) == expected[:70]
    assert [client.call('BF.ADD', 'f', item) for item in more[70:]] == expected[70:]
    check(client, 'f', model, items + more)


def test_full(client):
    model = valkeybloom.Bloom(20, 0.001, 0)
    client.call(*model.insert('f'), 'ITEMS', *words(20))
    with pytest.raises(Refused, match='^ERR non scaling filter is full$'):
        client.call('BF.ADD', 'f', 'one more')


def test_chunks(client, made):
    model, items = made
    restore(client, 'f', model)
    pieces = zoo.scandump(client, 'BF', 'f')
    assert pieces == foreign.chunks(model)
    zoo.loadchunks(client, 'BF', 'g', pieces)
    check(client, 'g', model, items)


def test_headers_of_pieces_do_not_count(client):
    """The first piece tells how a filter is, and headers of blocks that tell otherwise change
    nothing."""
    model = valkeybloom.Bloom(100, 0.01)
    for item in words(50):
        model.add(item)
    (at, header), (end, data) = foreign.chunks(model)
    wrong = struct.pack('<BQI', 1, 5, 99) + bytes(32) + data[45:]
    zoo.loadchunks(client, 'BF', 'f', [(at, header), (end, wrong)])
    check(client, 'f', model, words(50))


def test_copied(client, made):
    model, items = made
    restore(client, 'f', model)
    client.call('COPY', 'f', 'g')
    client.call('DEL', 'f')
    check(client, 'g', model, items)
    assert client.call('MEMORY', 'USAGE', 'g') >= sum(map(len, model.bodies()))


# ---- What it tells --------------------------------------------------------------------------

def test_told(client):
    model = valkeybloom.Bloom(100, 0.01, 3)
    for item in words(250):
        model.add(item)
    restore(client, 'f', model)
    told = client.call('BF.INFO', 'f', 'ALL')
    told = dict(zip(told[::2], told[1::2]))
    assert told[b'Capacity'] == 400 and told[b'Number of filters'] == 2
    assert told[b'Number of items inserted'] == model.size and told[b'Expansion rate'] == 3
    assert float(told[b'Error rate asked']) == 0.01
    assert 0 < float(told[b'Error rate now']) < 0.02
    assert told[b'Hash'] == b'siphash 1-3 (its own seed)'
    lines = [line.decode() for line in client.call('BF.DEBUG', 'f')]
    for line, layer, rate in zip(lines[1:], model.layers, ('0.01', '0.005')):
        assert line == 'bytes:%d bits:%d hashes:%d hashwidth:64 capacity:%d size:%d ratio:%s' % (
            len(layer.bytes), 8 * len(layer.bytes), layer.hashes, layer.capacity, layer.items, rate)


def test_public_seed_is_told(client):
    restore(client, 'f', valkeybloom.Bloom(seed=valkeybloom.FIXED_SEED))
    assert b'public seed' in client.call('BF.INFO', 'f', 'ALL')[-1]


def test_it_stays_as_it_is(client):
    restore(client, 'f', valkeybloom.Bloom())
    with pytest.raises(Refused, match='stay as they are'):
        client.call('BF.SHRINK', 'f')


# ---- What survives --------------------------------------------------------------------------

@pytest.mark.parametrize('saved', ['rdb', 'commands', 'rewritten'])
def test_survives(saved):
    config = [] if saved == 'rdb' else [*AOF, '--aof-use-rdb-preamble', 'no']
    models = {}
    with Server(*config) as server, Server() as replica:
        replicate(replica, server)
        for name, (make, n) in MODELS.items():
            model = models[name] = make()
            server.call(*model.insert(name))
            items = words(n)
            for at in range(0, n, 100):
                server.call('BF.MADD', name, *items[at:at + 100])
            for item in items:
                model.add(item)
            server.call('BF.LOAD', 'loaded ' + name, model.dump())
            server.call('BF.ADD', 'loaded ' + name, items[0] if items else 'x')
        if saved == 'rewritten':
            zoo.rewrite(server)
        server.restart(save=saved == 'rdb')
        caught_up(replica, server)
        for name, model in models.items():
            for one in server, replica:
                check(one.client, name, model, words(MODELS[name][1]))
            assert server.call('DUMP', 'loaded ' + name) == replica.call('DUMP', 'loaded ' + name)


def from_there(model, key, items):
    """The AOF of a server with valkey-bloom, which writes adds as clients sent them: with options
    that do not count for a filter that is there, also such as ours cannot have."""
    options = [(), ('EXPANSION', 100000), ('CAPACITY', 1 << 50), ('TIGHTENING', '0.3'),
               ('VALIDATESCALETO', 1 << 50), ('NONSCALING',), ('ERROR', '0.3')]
    commands = [('SELECT', 0), model.insert(key)]
    for i, item in enumerate(items):
        commands.append(('BF.INSERT', key, *options[i % len(options)], 'ITEMS', item))
    return b''.join(map(encode, commands))


@pytest.mark.parametrize('arguments', [(), ('bf-expansion-factor', 0)])
def test_aof_from_there(arguments):
    """No item is left out; what is behind them would be denied."""
    model, items = valkeybloom.Bloom(20, 0.01), words(100)
    server = Server(*AOF, arguments=arguments)
    try:
        folder = pathlib.Path(server.folder, 'appendonlydir')
        folder.mkdir()
        folder.joinpath('appendonly.aof.manifest').write_text('file one.aof seq 1 type i\n')
        folder.joinpath('one.aof').write_bytes(from_there(model, 'f', items))
        server.start()
        for item in items:
            model.add(item)
        check(server.client, 'f', model, items)
    finally:
        server.remove()


# ---- What is refused ------------------------------------------------------------------------

OPTIONS = [
    (['TIGHTENING', '.5'], 'TIGHTENING is of filters with a SEED'),
    (['SEED', 'short'], '^ERR invalid seed$'),
    (['SEED', valkeybloom.SEED + b'x'], '^ERR invalid seed$'),
    (['SEED', valkeybloom.SEED, 'TIGHTENING', 'x'], '^ERR bad tightening ratio$'),
    (['SEED', valkeybloom.SEED, 'TIGHTENING', '1'], '^ERR .0 < tightening ratio range < 1.$'),
    (['SEED', valkeybloom.SEED, 'TIGHTENING', '0'], '^ERR .0 < tightening ratio range < 1.$'),
    (['SEED', valkeybloom.SEED, 'EXPANSION', 1 << 32], '^Bad expansion$'),
    (['EXPANSION', 32769], '^Bad expansion$'),
    (['VALIDATESCALETO', 0], '^Bad capacity$'),
    (['VALIDATESCALETO', 'x'], '^Bad capacity$'),
    (['VALIDATESCALETO', 100, 'NONSCALING'], 'cannot use NONSCALING and VALIDATESCALETO'),
]


@pytest.mark.parametrize('options, error', OPTIONS)
def test_refused_options(client, options, error):
    with pytest.raises(Refused, match=error):
        client.call('BF.INSERT', 'f', *options, 'ITEMS', 'x')
    assert client.call('EXISTS', 'f') == 0


@pytest.mark.parametrize('option', ['CAPACITY', 'ERROR', 'EXPANSION', 'SEED', 'TIGHTENING',
                                    'VALIDATESCALETO', 'ITEMS'])
def test_option_without_value(client, option):
    """A seed, which allows that ITEMS is missing, allows no more than that."""
    with pytest.raises(Refused, match='wrong number of arguments'):
        client.call('BF.INSERT', 'f', 'SEED', valkeybloom.SEED, option)
    assert client.call('EXISTS', 'f') == 0


def test_accepted_options(client):
    assert client.call('BF.INSERT', 'f', 'VALIDATESCALETO', 1000000, 'ITEMS', 'x') == [1]
    assert client.call('BF.INSERT', 'g', 'SEED', valkeybloom.SEED, 'EXPANSION', (1 << 32) - 1,
                       'ITEMS', 'x') == [1]
    with pytest.raises(Refused, match='^ERR not found$'):
        client.call('BF.INSERT', 'h', 'NOCREATE', 'SEED', valkeybloom.SEED)
    client.call('SET', 's', 'text')
    for command in (valkeybloom.Bloom().insert('s'), ['BF.LOAD', 's', valkeybloom.Bloom().dump()]):
        with pytest.raises(Refused, match='^WRONGTYPE'):
            client.call(*command)


def broken(change):
    """The fields of an RDB, and the dump of BF.LOAD, of a model with a fault."""
    model = valkeybloom.Bloom(20, 0.05)
    for item in words(50):
        model.add(item)
    change(model)
    return model


def set_to(name, value, layer=None):
    def change(model):
        setattr(model if layer is None else model.layers[layer], name, value)
    return change


def test_layer_that_is_not_full(client):
    """An RDB has the items of the last layer only, so that no other may have less than its
    capacity."""
    model = broken(set_to('items', 19, 0))
    with pytest.raises(Refused, match='decoding failed'):
        client.call('BF.LOAD', 'f', model.dump())
    with pytest.raises(Refused):
        client.call('BF.LOADCHUNK', 'f', *foreign.chunks(model)[0])


def two_for(first, second):
    """Makes a full layer and an empty one, for any number of items, of the fewest bits."""
    def change(model):
        for layer, capacity in zip(model.layers, (first, second), strict=True):
            layer.capacity, layer.items, layer.hashes = capacity, 0, 1
            layer.bytes = bytearray(1)
        model.layers[0].items = first
    return change


FAULTS = {
    'no capacity': set_to('capacity', 0, 0),
    'a large capacity': set_to('capacity', (1 << 63) - 1, 1),
    'more items than capacity': set_to('items', 1000, -1),
    'no rate': set_to('rate', 0.0),
    'a rate of 1': set_to('rate', 1.0),
    'not a number': set_to('rate', float('nan')),
    'tightening 1': set_to('tightening', 1.0),
    'tightening nan': set_to('tightening', float('nan')),
    'no hashes': set_to('hashes', 0, 0),
    'other hashes': set_to('hashes', 2, 0),
    'many hashes': set_to('hashes', (1 << 32) - 1, 1),
    'no bits': set_to('bytes', bytearray(), 1),
    'another seed': set_to('seed', bytes(32), 1),
    'more capacity than 2^63': two_for(1 << 62, 1 << 62),
}


@pytest.mark.parametrize('fault', FAULTS)
def test_faults(client, fault):
    model = broken(FAULTS[fault])
    with pytest.raises(Refused):
        client.call('RESTORE', 'f', 0, foreign.restore_payload(model))
    with pytest.raises(Refused):
        client.call('BF.LOAD', 'f', model.dump())
    client.ask('BF.LOADCHUNK', 'f', *foreign.chunks(model)[0])
    assert client.ask('BF.EXISTS', 'f', 'x') == 0 or client.call('EXISTS', 'f')
    assert client.call('PING') == b'PONG'


def test_most_capacity(client):
    """The largest number that a reply can have."""
    model = broken(two_for(1 << 62, (1 << 62) - 1))
    client.call('RESTORE', 'restored', 0, foreign.restore_payload(model))
    client.call('BF.LOAD', 'loaded', model.dump())
    zoo.loadchunks(client, 'BF', 'chunks', foreign.chunks(model))
    for key in ('restored', 'loaded', 'chunks'):
        assert client.call('BF.INFO', key, 'CAPACITY') == [(1 << 63) - 1]


def test_more_bytes_than_can_be_counted(client):
    """The layers of a header have 2^64 bytes in all, which is 0 in 64 bits: none has come."""
    for n, nbytes in [(1 << 14, 1 << 50), (1 << 13, 1 << 50), ((1 << 15) + 1, 1 << 49)]:
        header = valkeybloom.Bloom().header()[:68]
        header = header[:16] + struct.pack('<I', n) + header[20:]
        header += n * struct.pack('<QQQ', nbytes, 1 << 44, 1 << 44)
        header = header[:-8] + bytes(8)  # all but the last layer are full
        with pytest.raises(Refused):
            client.call('BF.LOADCHUNK', 'f', 1, header)
        assert client.call('BF.EXISTS', 'f', 'x') == 0
    assert client.call('DBSIZE') == 0


def test_cut_dumps(client):
    """BF.LOAD takes no part of a dump, nor one with more behind it, nor another version."""
    model = broken(lambda model: None)
    dump = model.dump()
    for n in range(len(dump)):
        reply = client.ask('BF.LOAD', 'f', dump[:n])
        assert isinstance(reply, Refused) and 'decoding failed' in str(reply), n
    assert isinstance(client.ask('BF.LOAD', 'f', dump + b'\0'), Refused)
    for version in (0, 2, 255):
        with pytest.raises(Refused, match='Unsupported version'):
            client.call('BF.LOAD', 'f', bytes([version]) + dump[1:])
    assert client.call('DBSIZE') == 0
    assert client.call('BF.LOAD', 'f', dump) == b'OK'


def test_changed_dumps(client):
    """BF.LOAD refuses a dump with a changed byte, or makes a filter that works and can be saved."""
    dump, taken = broken(lambda model: None).dump(), 0
    for at in range(len(dump)):
        for value in {0, 255, dump[at] ^ 1, dump[at] ^ 128}:
            reply = client.ask('BF.LOAD', 'f', dump[:at] + bytes([value]) + dump[at + 1:])
            if isinstance(reply, Refused):
                continue
            taken += 1
            client.ask('BF.MADD', 'f', *words(5))
            assert client.call('BF.MEXISTS', 'f', 'absent')[0] in (0, 1)
            client.call('RESTORE', 'g', 0, client.call('DUMP', 'f'))
            assert client.call('DEBUG', 'DIGEST-VALUE', 'f') == \
                client.call('DEBUG', 'DIGEST-VALUE', 'g')
            client.call('DEL', 'f', 'g')
    assert taken  # bits may be others


def test_huge_numbers(client):
    """Numbers that need much memory are refused before it is taken."""
    used = int(client.info('memory')['used_memory'])
    model = valkeybloom.Bloom(20, 0.05)
    dump = model.dump()
    for at in (22, 30):  # the number of layers; the length of a block
        for n in (1 << 40, (1 << 64) - 1):
            reply = client.ask('BF.LOAD', 'f', dump[:at] + struct.pack('<Q', n) + dump[at + 8:])
            assert isinstance(reply, Refused), at
    fields = model.fields()
    for n in (1 << 40, (1 << 63) - 1):
        payload = foreign.rdb.payload('bloomfltr', 1, [n, *fields[1:]])
        assert isinstance(client.ask('RESTORE', 'f', 0, payload), Refused)
    for version in (0, 2):
        payload = foreign.rdb.payload('bloomfltr', version, fields)
        assert isinstance(client.ask('RESTORE', 'f', 0, payload), Refused)
    assert int(client.info('memory')['used_memory']) < used + (8 << 20)
