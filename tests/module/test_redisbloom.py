"""RedisBloom's own filters, made here by hand: they answer as a model of the formats says, and
go back in the same form."""
import struct

import foreign
import pytest
import rdb
import zoo
from fixtures import client, server  # noqa: F401
from world import AOF, Refused, Server, draw

ABSENT = [b'absent %d' % i for i in range(3000)]


def words(n, first=0):
    return [b'item %d' % i for i in range(first, first + n)]


def bloom_models():
    return {
        'usual': (foreign.Bloom(), 90),
        'grown': (foreign.Bloom(100, 0.01), 5000),
        'by three': (foreign.Bloom(64, 0.05, growth=3), 2000),
        'by one': (foreign.Bloom(500, 0.001, growth=1), 3000),
        'nonscaling': (foreign.Bloom(1000, 0.01, nonscaling=True), 900),
        'tiny': (foreign.Bloom(1, 0.5), 3),
        'empty': (foreign.Bloom(1000, 0.01), 0),
    }


def cuckoo_models():
    return {
        'usual': (foreign.Cuckoo(), 400),
        'several': (foreign.Cuckoo(64, 2, 1), 500),
        'by two': (foreign.Cuckoo(16, 4, 2), 900),
        'bucket of one': (foreign.Cuckoo(256, 1, 1), 200),
        'bucket of 255': (foreign.Cuckoo(2, 255, 1), 300),
        'fixed': (foreign.Cuckoo(512, 2, 0), 300),
    }


def made(models, name):
    """Returns the model with its items in it, and those that it took."""
    model, n = models[name]
    taken = [word for word in words(n) if model.add(word) or model.contains(word)]
    return model, taken


def family_of(model):
    return 'CF' if isinstance(model, foreign.Cuckoo) else 'BF'


def load(client, key, model):
    zoo.loadchunks(client, family_of(model), key, foreign.chunks(model))


def restore(client, key, model):
    client.call('RESTORE', key, 0, foreign.restore_payload(model))


def dumped(client, key, model):
    """Returns what RedisBloom would make of the chunks that we give."""
    chunks = zoo.scandump(client, family_of(model), key)
    position = 1
    for at, (told, data) in enumerate(chunks):
        position += len(data) if at else 0
        assert told == position and len(data) <= foreign.CHUNK_NBYTES
    assert chunks[0][0] == 1
    return type(model).from_dump(chunks[0][1], b''.join(data for _, data in chunks[1:]))


def same_answers(client, key, model, asked):
    command = family_of(model) + '.MEXISTS'
    replies = client.pipe([(command, key, *asked[at:at + 500])
                           for at in range(0, len(asked), 500)])
    answers = [answer for reply in replies for answer in reply]
    expected = [int(model.contains(word)) for word in asked]
    wrong = [word for word, a, b in zip(asked, answers, expected) if a != b]
    assert not wrong, (len(wrong), wrong[:5])


WAYS = pytest.mark.parametrize('way', [load, restore])


@WAYS
@pytest.mark.parametrize('name', list(bloom_models()))
def test_bloom(client, name, way):
    model, items = made(bloom_models(), name)
    way(client, 'k', model)
    same_answers(client, 'k', model, items + ABSENT)
    assert dumped(client, 'k', model).header() == model.header()
    assert dumped(client, 'k', model).bodies() == model.bodies()
    assert client.call('BF.CARD', 'k') == model.size


@pytest.mark.parametrize('name', [name for name in bloom_models() if name != 'nonscaling'])
def test_bloom_takes_adds(client, name):
    """Adds answer as the model does, new links are those that RedisBloom would make."""
    model, items = made(bloom_models(), name)
    restore(client, 'k', model)
    more = words(2500, 100000)
    for at in range(0, len(more), 500):
        batch = more[at:at + 500]
        assert client.call('BF.MADD', 'k', *batch) == [model.add(word) for word in batch]
    same_answers(client, 'k', model, items + more + ABSENT)
    assert dumped(client, 'k', model).header() == model.header()
    assert dumped(client, 'k', model).bodies() == model.bodies()


def test_bloom_full(client):
    model, items = made(bloom_models(), 'nonscaling')
    restore(client, 'k', model)
    with pytest.raises(Refused, match='non scaling filter is full'):
        for word in words(300, 100000):
            client.call('BF.ADD', 'k', word)
    assert client.call('BF.CARD', 'k') == 1000
    assert client.call('BF.MEXISTS', 'k', *items[:500]) == [1] * 500


@WAYS
@pytest.mark.parametrize('name', list(cuckoo_models()))
def test_cuckoo(client, name, way):
    model, items = made(cuckoo_models(), name)
    way(client, 'k', model)
    same_answers(client, 'k', model, items + ABSENT)
    counts = client.pipe([('CF.COUNT', 'k', word) for word in (items + ABSENT)[:1500]])
    assert counts == [model.count(word) for word in (items + ABSENT)[:1500]]
    assert dumped(client, 'k', model).header() == model.header()
    assert dumped(client, 'k', model).bodies() == model.bodies()


@pytest.mark.parametrize('name', list(cuckoo_models()))
def test_cuckoo_takes_adds(client, name):
    """After adds and deletes the dump, read as RedisBloom would, answers as we do."""
    model, items = made(cuckoo_models(), name)
    restore(client, 'k', model)
    removed, kept = items[:len(items) // 4], items[len(items) // 4:]
    assert client.pipe([('CF.DEL', 'k', word) for word in removed]) == [1] * len(removed)
    more, added = words(600, 100000), []
    for word in more:
        reply = client.ask('CF.ADD', 'k', word)
        if reply == 1:
            added.append(word)
        else:
            assert name == 'fixed' and 'full' in str(reply)
    assert len(added) > 300
    same_answers(client, 'k', model=(now := dumped(client, 'k', model)),
                 asked=kept + added + ABSENT)
    assert all(now.contains(word) for word in kept + added)
    assert now.items == len(kept) + len(added) and now.deletes == len(removed)
    client.call('CF.COMPACT', 'k')
    now = dumped(client, 'k', model)
    assert all(now.contains(word) for word in kept + added)
    same_answers(client, 'k', now, kept + added + ABSENT)


@pytest.mark.parametrize('encoding', [4, 3, 2, 1, 0])
def test_older_versions(client, encoding):
    """Are read if they can be; what is read is right."""
    model, items = made(bloom_models(), 'grown')
    fields = model.fields()
    if encoding < 4:
        del fields[3]  # growth, which was 2
    payload = rdb.payload('MBbloom--', encoding, fields)
    reply = client.ask('RESTORE', 'k', 0, payload)
    if not isinstance(reply, Refused):
        same_answers(client, 'k', model, items + ABSENT)
    else:
        assert encoding < 2


def test_newer_version(client):
    model, _ = made(bloom_models(), 'usual')
    for name, fields in [('MBbloom--', model.fields()),
                         ('MBbloomCF', cuckoo_models()['usual'][0].fields())]:
        with pytest.raises(Refused):
            client.call('RESTORE', 'k', 0, rdb.payload(name, 9, fields))


def test_large_chunks(client):
    """A link of more than 16 MiB goes in several chunks."""
    model = foreign.Bloom(15_000_000, 0.01, nonscaling=True)
    items = words(2000)
    for word in items:
        model.add(word)
    chunks = foreign.chunks(model)
    assert len(chunks) == 3
    zoo.loadchunks(client, 'BF', 'k', chunks[:2])
    with pytest.raises(Refused, match='not complete'):
        client.call('BF.EXISTS', 'k', items[0])
    zoo.loadchunks(client, 'BF', 'k', chunks[2:])
    same_answers(client, 'k', model, items + ABSENT)
    assert zoo.scandump(client, 'BF', 'k') == chunks


def test_survives():
    """A restart from an RDB, and from an AOF, as it was written and rewritten."""
    models = {}
    for name in bloom_models():
        models['bf ' + name] = made(bloom_models(), name)
    for name in cuckoo_models():
        models['cf ' + name] = made(cuckoo_models(), name)
    with Server(*AOF, '--aof-use-rdb-preamble', 'no', '--rdbcompression', 'no') as server:
        for key, (model, _) in models.items():
            load(server.client, key, model)
        for way in ['as it was written', 'BGREWRITEAOF']:
            if way == 'BGREWRITEAOF':
                zoo.rewrite(server)
            server.restart()
            for key, (model, items) in models.items():
                same_answers(server.client, key, model, items + ABSENT[:500])
                assert dumped(server.client, key, model).bodies() == model.bodies(), key
        server.call('DEBUG', 'RELOAD')
        for key, (model, items) in models.items():
            again = rdb.take_apart(server.call('DUMP', key))
            assert again[1] == model.fields(), key
            assert again[0] == rdb.type_number(model.type_name, 4)


def test_strange_headers(client):
    """Headers that no RedisBloom writes are refused, and nothing is left behind."""
    random = draw('headers')
    bloom, cuckoo = made(bloom_models(), 'usual')[0], made(cuckoo_models(), 'usual')[0]
    for bits in [0, 8 * len(bloom.links[0].bytes) + 1, 2**40, 2**63, 2**64 - 1]:
        fields = bloom.fields()
        fields[8] = bits
        with pytest.raises(Refused):
            client.call('RESTORE', 'k', 0, rdb.payload('MBbloom--', 4, fields))
    for place, number in [(0, 0), (0, 2**60), (1, 0), (1, 3), (1, 2**63), (1, 511), (4, 0),
                          (4, 2**16), (6, 2**40), (7, 513)]:
        fields = cuckoo.fields()
        fields[place] = number
        with pytest.raises(Refused):
            client.call('RESTORE', 'k', 0, rdb.payload('MBbloomCF', 4, fields))
            pytest.fail('field %d: %d' % (place, number))
    for n in [0, 19, 21, 20 + 52, 20 + 54, 37, 39]:
        for command in ('BF.LOADCHUNK', 'CF.LOADCHUNK'):
            with pytest.raises(Refused):
                client.call(command, 'k', 1, random.randbytes(n))
    assert client.call('EXISTS', 'k') == 0
    header = bytearray(cuckoo.header())
    for numbers in [(0, 0, 0, 1), (0, 2**63, 0, 1), (0, 2**62, 0, 4), (0, 512, 0, 0),
                    (0, 512, 0, 2**60)]:
        struct.pack_into('<4Q', header, 0, *numbers)
        with pytest.raises(Refused):
            client.call('CF.LOADCHUNK', 'k', 1, header)
