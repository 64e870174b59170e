"""One filter of each kind that a key can hold, and what must be the same of it afterwards."""
import foreign
import valkeybloom
from world import wait_for

# How each is made, and how many items it gets.  KEY is the key.
RECIPES = {
    'bf_empty': ('BF.RESERVE KEY 0.01 1000', 0),
    'bf_default': ('', 250),
    'bf_scaling': ('BF.RESERVE KEY 0.01 1000', 700),
    'bf_grown': ('BF.RESERVE KEY 0.001 100', 9000),
    'bf_by_three': ('BF.RESERVE KEY 0.02 200 EXPANSION 3', 3000),
    'bf_nonscaling': ('BF.RESERVE KEY 0.001 4000 NONSCALING', 3500),
    'bf_window': ('BF.RESERVE KEY 0.01 500 WINDOW 24h', 1800),
    'cf_empty': ('CF.RESERVE KEY 1000', 0),
    'cf_reserved': ('CF.RESERVE KEY 5000', 4500),
    'cf_grown': ('CF.RESERVE KEY 400 EXPANSION 2', 4000),
    'cf_fixed': ('CF.RESERVE KEY 2000 EXPANSION 0', 1900),
    'cf_asked': ('CF.RESERVE KEY 2000 ERROR 0.0001', 1900),
    'cf_unreserved': ('', 9000),
}
FOREIGN = {
    'bf_foreign': lambda: foreign.Bloom(500, 0.01),
    'bf_foreign_nonscaling': lambda: foreign.Bloom(2000, 0.01, nonscaling=True),
    'bf_valkey': lambda: valkeybloom.Bloom(300, 0.01),
    'bf_valkey_nonscaling': lambda: valkeybloom.Bloom(2000, 0.01, 0),
    'cf_foreign': lambda: foreign.Cuckoo(512, 2, 1),
    'cf_foreign_by_two': lambda: foreign.Cuckoo(128, 4, 2),
}
KINDS = [*RECIPES, *FOREIGN]
OWN = list(RECIPES)
FIXED = ['bf_nonscaling', 'bf_foreign_nonscaling', 'bf_valkey_nonscaling', 'cf_fixed']  # may be full
BATCH = 500


def items(name, n, first=0):
    return ['%s %d' % (name, i) for i in range(first, first + n)]


def batches(words):
    return [words[at:at + BATCH] for at in range(0, len(words), BATCH)]


class Filter:
    """A filter behind a key, and what was added to it."""

    def __init__(self, kind, key=None):
        self.kind, self.key = kind, key or kind
        self.family = kind[:2].upper()
        self.items, self.removed = [], []

    def make(self, client):
        if self.kind in FOREIGN:
            return self.make_foreign(client)
        recipe, n = RECIPES[self.kind]
        if recipe:
            client.call(*[self.key if word == 'KEY' else word for word in recipe.split()])
        self.add(client, items('item', n))
        if self.family == 'CF':
            self.remove(client, n // 10)
        return self

    def make_foreign(self, client):
        model = FOREIGN[self.kind]()
        self.items = items('item', 1200)
        for item in self.items:
            model.add(item.encode())
        client.call('RESTORE', self.key, 0, foreign.restore_payload(model))
        return self

    def add(self, client, words):
        command = ('BF.MADD', self.key) if self.family == 'BF' else \
            ('CF.INSERT', self.key, 'ITEMS')
        for reply in client.pipe([(*command, *batch) for batch in batches(words)]):
            assert isinstance(reply, list) and set(reply) <= {0, 1}, reply
        self.items = self.items + list(words)

    def remove(self, client, n):
        replies = client.pipe([('CF.DEL', self.key, item) for item in self.items[:n]])
        assert replies == [1] * n
        self.removed, self.items = self.items[:n], self.items[n:]

    def answers(self, client, words):
        command = self.family + '.MEXISTS'
        replies = client.pipe([(command, self.key, *batch) for batch in batches(words)])
        return [answer for reply in replies for answer in reply]

    def check(self, client):
        """Nothing that is in it is denied."""
        answers = self.answers(client, self.items)
        denied = [item for item, answer in zip(self.items, answers) if answer != 1]
        assert not denied, (self.kind, len(denied), denied[:3])

    def likeness(self, client):
        """What a copy of it must have, too: also all its false positives."""
        return {
            'digest': client.call('DEBUG', 'DIGEST-VALUE', self.key),
            'counts': counts(client, self),
            'positives': self.answers(client, items('absent', 2000) + self.removed),
            'present': self.answers(client, self.items),
        }


def counts(client, made):
    """What INFO tells, but for sizes in memory and figures that follow from them."""
    told = client.call(made.family + '.INFO', made.key, 'ALL')
    pairs = dict(zip(told[::2], told[1::2]))
    return {name: value for name, value in pairs.items()
            if name not in (b'Size', b'Bits per item')}


def make_all(client, kinds=KINDS):
    return [Filter(kind).make(client) for kind in kinds]


def likenesses(client, filters):
    return {made.key: made.likeness(client) for made in filters}


def check_all(client, filters, before=None):
    for made in filters:
        made.check(client)
        if before:
            assert made.likeness(client) == before[made.key], made.kind


def same(client, filters, other):
    """Two servers have the same, byte by byte as far as DUMP tells."""
    for made in filters:
        assert made.likeness(client) == made.likeness(other), made.kind
        assert client.call('DUMP', made.key) == other.call('DUMP', made.key), made.kind


# ---- SCANDUMP and LOADCHUNK -----------------------------------------------------------------

def scandump(client, family, key):
    """Returns all chunks: pairs of the position for LOADCHUNK, and data."""
    chunks, position = [], 0
    while True:
        position, data = client.call(family + '.SCANDUMP', key, position)
        if position == 0:
            return chunks
        chunks.append((position, data))


def loadchunks(client, family, key, chunks):
    for position, data in chunks:
        assert client.call(family + '.LOADCHUNK', key, position, data) == b'OK'


# ---- AOF ------------------------------------------------------------------------------------

def rewritten(server):
    """Waits until no AOF is being written anew, as replicas do behind a full synchronization."""
    wait_for(lambda: server.client.info('persistence')['aof_rewrite_in_progress'] == '0'
             and server.client.info('persistence')['aof_rewrite_scheduled'] == '0')


def rewrite(server):
    server.call('BGREWRITEAOF')
    rewritten(server)
    assert server.client.info('persistence')['aof_last_bgrewrite_status'] == 'ok'
