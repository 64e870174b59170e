"""An adversary who knows all code but no secret: crafted items are items like any others."""
import itertools
import math
import os
import subprocess

import foreign
import pytest
import zoo
from fixtures import client, server  # noqa: F401
from world import TREE, draw

CRAFTED = os.environ.get('PERHAPS_CRAFTED', str(TREE / 'build/tests/module_crafted'))
SIGMAS = 6.5  # by chance less than once in 10^9 runs, also where the mean is small: see at_most()


def crafted(*words):
    """Returns items that meet in one place of a filter without a secret."""
    done = subprocess.run([CRAFTED, *map(str, words)], check=True, capture_output=True)
    return done.stdout.split()


def at_most(n, rate):
    """Returns how many of n trials may succeed, at this rate."""
    mean = n * rate
    return int(mean + SIGMAS * math.sqrt(mean) + 20)


def told(client, key, family):
    reply = client.call(family + '.INFO', key, 'ALL')
    return dict(zip(reply[::2], reply[1::2]))


# ---- MurmurHash64A --------------------------------------------------------------------------

def targets(n):
    random = draw('targets')
    return [b'%016x' % random.getrandbits(64) for _ in range(n)]


def test_twins_deceive_the_public_hash(client):
    """What the tests below rely on: RedisBloom's own filters cannot tell twins apart."""
    model = foreign.Bloom(5000, 0.001)
    items = targets(500)
    for item in items:
        model.add(item)
    client.call('RESTORE', 'k', 0, foreign.restore_payload(model))
    assert client.call('BF.MEXISTS', 'k', *map(foreign.twin, items)) == [1] * 500


@pytest.mark.parametrize('reserve, rate', [
    (('BF.RESERVE', 'k', '0.01', 4000), 0.01),
    (('BF.RESERVE', 'k', '0.01', 4000, 'NONSCALING'), 0.01),
    (('BF.RESERVE', 'k', '0.01', 100), 0.01),
    (('BF.RESERVE', 'k', '0.01', 1000, 'WINDOW', '1h'), 0.01),
    (('CF.RESERVE', 'k', 4000), 0.0025),
    (None, 0.0025)])
def test_twins(client, reserve, rate):
    """The twin of an item is no false positive, and CF.DEL of it removes nothing, but by
    chance."""
    made = zoo.Filter(reserve[0][:2].lower() if reserve else 'cf', 'k')
    if reserve:
        client.call(*reserve)
    items = targets(4000)
    made.add(client, items)
    twins = [foreign.twin(item) for item in items]
    assert sum(made.answers(client, twins)) <= at_most(len(twins), rate)
    if made.family == 'CF':
        removed = sum(client.pipe([('CF.DEL', 'k', twin) for twin in twins]))
        assert removed <= at_most(len(twins), rate)
        denied = made.answers(client, items).count(0)
        assert denied <= removed


def equals(n):
    """Returns n items that MurmurHash64A hashes to the same value, whatever the seed."""
    pairs = [(block, foreign.twin(block)) for block in targets(max(1, n - 1).bit_length())]
    return [b''.join(choice) for choice in itertools.islice(itertools.product(*pairs), n)]


def test_equals_do_not_fill_a_filter(client):
    """1000 items of one MurmurHash64A in filters of 1000: neither refused nor a reason to grow."""
    items = equals(1000)
    assert len({foreign.murmur64a(item, 7) for item in items}) == 1
    client.call('CF.RESERVE', 'k', 1000, 'EXPANSION', 0)
    assert client.call('CF.INSERT', 'k', 'ITEMS', *items) == [1] * 1000
    client.call('CF.RESERVE', 'chain', 1000)
    assert client.call('CF.INSERT', 'chain', 'ITEMS', *items) == [1] * 1000
    assert told(client, 'chain', 'CF')[b'Number of filters'] == 1
    counts = client.pipe([('CF.COUNT', 'k', item) for item in items])
    assert min(counts) >= 1 and sum(counts) - 1000 <= at_most(1000, 0.01)


# ---- Our own hash without its secret --------------------------------------------------------

def test_pairs_of_buckets(client):
    """Without a secret, the ninth of these items would be refused."""
    client.call('CF.RESERVE', 'k', 2000, 'EXPANSION', 0)
    nbuckets = told(client, 'k', 'CF')[b'Number of buckets']
    items = crafted('pair', nbuckets, 16, 300)
    assert client.call('CF.INSERT', 'k', 'ITEMS', *items) == [1] * 300
    rest = zoo.items('item', 1700)
    assert client.call('CF.INSERT', 'k', 'ITEMS', *rest) == [1] * 1700
    client.call('CF.RESERVE', 'chain', 2000)
    client.call('CF.INSERT', 'chain', 'ITEMS', *items, *rest)
    assert told(client, 'chain', 'CF')[b'Number of filters'] == 1


def test_segments(client):
    """Without a secret, these items would split one segment again and again."""
    items = crafted('segment', 8, 10000)
    random = zoo.Filter('cf', 'random')
    random.add(client, zoo.items('item', 10000))
    made = zoo.Filter('cf', 'crafted')
    made.add(client, items)
    made.check(client)
    sizes = [told(client, key, 'CF')[b'Size'] for key in ('random', 'crafted')]
    assert sizes[1] <= 1.5 * sizes[0]


@pytest.mark.parametrize('rate', ['0.01', '0.0001'])
def test_positives_elsewhere(client, rate):
    """False positives of a filter of the same items without a secret are none of ours."""
    items = crafted('positives', rate, 10000, 2000)
    client.call('BF.RESERVE', 'k', rate, 10000)
    made = zoo.Filter('bf', 'k')
    made.add(client, zoo.items('item', 10000))
    assert sum(made.answers(client, items)) <= at_most(2000, float(rate))


# ---- Secrets --------------------------------------------------------------------------------

def test_each_filter_has_its_own_secret(client):
    """The false positives of one filter are not those of another with the same items."""
    for key in ('a', 'b'):
        client.call('BF.RESERVE', key, '0.05', 2000, 'NONSCALING')
        zoo.Filter('bf', key).add(client, zoo.items('item', 2000))
    asked = zoo.items('absent', 20000)
    first = zoo.Filter('bf', 'a').answers(client, asked)
    positives = [item for item, answer in zip(asked, first) if answer]
    assert len(positives) >= 50
    again = zoo.Filter('bf', 'b').answers(client, positives)
    assert sum(again) <= at_most(len(positives), 0.05)


def test_secrets_are_not_told(client):
    """No question shows a secret; DUMP and SCANDUMP do, since a copy needs it."""
    client.call('BF.RESERVE', 'k', '0.01', 100)
    client.call('CF.RESERVE', 'c', 100)
    client.call('CF.ADD', 'c', 'x')
    for key, family in (('k', 'BF'), ('c', 'CF')):
        secret = client.call(family + '.SCANDUMP', key, 0)[1][96:112]
        assert len(set(secret)) > 4
        shown = [client.call(family + '.INFO', key, 'ALL'), client.call(family + '.DEBUG', key),
                 client.call('INFO', 'everything'), client.call('OBJECT', 'ENCODING', key)]
        assert secret.hex() not in repr(shown) and repr(secret)[2:-1] not in repr(shown)


# ---- Deletes --------------------------------------------------------------------------------

@pytest.mark.parametrize('reserve, rate', [(None, 0.0025), (20000, 0.0025)])
def test_deletes_of_absent_items(client, reserve, rate, n=100_000):
    """Remove no more than the rate explains, and no item is denied that was not removed so."""
    if reserve:
        client.call('CF.RESERVE', 'k', reserve)
    made = zoo.Filter('cf', 'k')
    made.add(client, zoo.items('item', 20000))
    random, removed = draw('deletes'), 0
    for _ in range(0, n, 1000):
        removed += sum(client.pipe([('CF.DEL', 'k', random.randbytes(12)) for _ in range(1000)]))
    assert removed <= at_most(n, rate)
    assert made.answers(client, made.items).count(0) <= removed
    assert told(client, 'k', 'CF')[b'Number of items deleted'] == removed
