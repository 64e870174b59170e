"""Filters in a cluster: they move between nodes with their slots while clients add and ask."""
import threading

import pytest
import zoo
from world import SLOTS, ClusterClient, Refused, cluster, draw, wait_for

KEYS = 12


@pytest.fixture(scope='module')
def servers():
    with cluster() as nodes:
        yield nodes


def view(server):
    """Returns which slots each master has and its epoch, as a server sees it."""
    lines = [line.split() for line in server.call('CLUSTER', 'NODES').decode().splitlines()]
    return {words[1].split('@')[0]: (int(words[6]), [word for word in words[8:] if word[0] != '['])
            for words in lines if 'master' in words[2]}


def are_settled(servers):
    """Whether all servers see the same, and no epoch twice.  Otherwise the next move could meet
    news of the last one, and a slot would have two owners for a moment, and lose its keys."""
    views = [view(server) for server in servers]
    epochs = [epoch for epoch, _ in views[0].values()]
    return all(one == views[0] for one in views) and len(set(epochs)) == len(epochs)


def owner(servers, slot):
    """Returns the master that serves a slot, when all agree."""
    wait_for(lambda: are_settled(servers))
    for port, (_, ranges) in view(servers[0]).items():
        for first, _, last in (word.partition('-') for word in ranges):
            if int(first) <= slot <= int(last or first):
                return next(one for one in servers if port.endswith(':%d' % one.port))
    raise AssertionError('nobody serves slot %d' % slot)


def tag(servers, name):
    """Returns the beginning of keys, {name 17}, that all lie in a slot of the first server."""
    names = ('%s %d' % (name, i) for i in range(SLOTS))
    return '{%s}' % next(one for one in names
                         if owner(servers, servers[0].call('CLUSTER', 'KEYSLOT', one))
                         is servers[0])


def move(servers, slot, to):
    """Moves a slot and its keys, as redis-cli --cluster reshard does."""
    source = owner(servers, slot)
    if source is to:
        return
    there, here = to.call('CLUSTER', 'MYID'), source.call('CLUSTER', 'MYID')
    to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', here)
    source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', there)
    while keys := source.call('CLUSTER', 'GETKEYSINSLOT', slot, 10):
        source.call('MIGRATE', '127.0.0.1', to.port, '', 0, 60000, 'KEYS', *keys)
    for node in [to, source, *servers[:3]]:
        node.call('CLUSTER', 'SETSLOT', slot, 'NODE', there)


class Worker:
    """Adds to filters and asks for what was added before, in a thread."""

    def __init__(self, servers, keys):
        self.client, self.keys = ClusterClient(servers), keys
        self.added = {key: [] for key in keys}
        self.denied, self.stopping, self.error = [], False, None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            while not self.stopping:
                for key in self.keys:
                    self.step(key)
        except Exception as error:  # told by end()
            self.error = error

    def step(self, key):
        added, family = self.added[key], 'CF' if key.startswith('cf') else 'BF'
        items = zoo.items(key, 5, len(added))
        command = ('BF.MADD', key) if family == 'BF' else ('CF.INSERT', key, 'ITEMS')
        reply = self.client.call(*command, *items)
        assert isinstance(reply, list) and set(reply) <= {0, 1}, (key, len(added), reply)
        added += items
        asked = added[-40:] + added[:10]
        answers = self.client.call(family + '.MEXISTS', key, *asked)
        self.denied += [item for item, answer in zip(asked, answers) if not answer]

    def end(self):
        self.stopping = True
        self.thread.join()
        if self.error:
            raise self.error
        return self.added


def test_slots_move_under_load(servers):
    masters, random = servers[:3], draw('slots')
    keys = ['%s %d' % (family, i) for i in range(KEYS // 2) for family in ('bf', 'cf')]
    slots = [masters[0].call('CLUSTER', 'KEYSLOT', key) for key in keys]
    client = ClusterClient(servers)
    client.call('BF.RESERVE', 'bf 0', '0.001', 100, 'WINDOW', '24h')
    client.call('CF.RESERVE', 'cf 0', 500, 'EXPANSION', 2)
    workers = [Worker(servers, keys[:KEYS // 2]), Worker(servers, keys[KEYS // 2:])]
    moves = 0
    while moves < 200 or any(len(items) < 100 for one in workers for items in one.added.values()):
        move(servers, random.choice(slots), random.choice(masters))
        moves += 1
        if not all(one.thread.is_alive() for one in workers):
            break  # end() tells why
    added = {}
    for worker in workers:
        added.update(worker.end())
        assert worker.denied == []
    for key, items in added.items():
        command = 'CF.MEXISTS' if key.startswith('cf') else 'BF.MEXISTS'
        assert client.call(command, key, *items) == [1] * len(items), key


def test_moved_filters_are_the_same(servers):
    """All kinds go to each master in turn and come back as they were."""
    masters, client = servers[:3], servers[0].client
    mine = tag(servers, 'moved')
    filters = [zoo.Filter(kind, mine + kind).make(client) for kind in zoo.KINDS]
    before = zoo.likenesses(client, filters)
    slot = client.call('CLUSTER', 'KEYSLOT', mine)
    for to in (masters[1], masters[2], masters[0]):
        move(servers, slot, to)
        zoo.check_all(to.client, filters, before)


# ---- Atomic migration, of Valkey 9 -----------------------------------------------------------

def migrate(servers, slot, to):
    """Moves a slot at once, while its commands are still served."""
    source = owner(servers, slot)
    source.call('CLUSTER', 'MIGRATESLOTS', 'SLOTSRANGE', slot, slot, 'NODE',
                to.call('CLUSTER', 'MYID'))

    def is_done():
        for one in source.call('CLUSTER', 'GETSLOTMIGRATIONS'):
            told = dict(zip(one[::2], one[1::2]))
            assert told[b'state'] not in (b'failed', b'cancelled'), told
            if told[b'state'] != b'success':
                return False
        return True
    wait_for(is_done)
    wait_for(lambda: owner(servers, slot) is to)


def is_atomic(servers):
    reply = servers[0].ask('CLUSTER', 'GETSLOTMIGRATIONS')
    if isinstance(reply, Refused):
        pytest.skip('this server has no atomic migration of slots')


def test_atomic_migration(servers):
    """Filters of all forms, whole and half loaded, are the same on the node that gets them, and
    on its replica."""
    is_atomic(servers)
    masters, client = servers[:3], servers[0].client
    mine = tag(servers, 'atomic')
    filters = [zoo.Filter(kind, mine + kind).make(client) for kind in zoo.KINDS]
    for kind in ('bf_scaling', 'cf_unreserved', 'bf_foreign', 'bf_valkey', 'cf_foreign'):
        family = kind[:2].upper()
        chunks = zoo.scandump(client, family, mine + kind)
        zoo.loadchunks(client, family, mine + 'half ' + kind, chunks[:1])
    keys = client.call('KEYS', mine + '*')
    before = zoo.likenesses(client, filters)
    dumps = {key: client.call('DUMP', key) for key in keys}
    slot = client.call('CLUSTER', 'KEYSLOT', mine)
    for at in (1, 2, 0):
        migrate(servers, slot, masters[at])
        zoo.check_all(masters[at].client, filters, before)
        assert {key: masters[at].call('DUMP', key) for key in keys} == dumps
        assert masters[at].call('WAIT', 1, 60000) == 1
        link = servers[3 + at].connect()
        link.call('READONLY')
        assert {key: link.call('DUMP', key) for key in keys} == dumps
        link.close()


def test_atomic_migration_under_load(servers):
    is_atomic(servers)
    masters, random = servers[:3], draw('atomic')
    keys = ['%s load %d' % (family, i) for i in range(3) for family in ('bf', 'cf')]
    slots = [masters[0].call('CLUSTER', 'KEYSLOT', key) for key in keys]
    client = ClusterClient(servers)
    client.call('BF.RESERVE', keys[0], '0.001', 100, 'WINDOW', '24h')
    workers = [Worker(servers, keys[:3]), Worker(servers, keys[3:])]
    for _ in range(20):
        slot = random.choice(slots)
        source = owner(servers, slot)
        migrate(servers, slot, random.choice([one for one in masters if one is not source]))
        if not all(one.thread.is_alive() for one in workers):
            break  # end() tells why
    for worker in workers:
        for key, items in worker.end().items():
            command = 'CF.MEXISTS' if key.startswith('cf') else 'BF.MEXISTS'
            assert client.call(command, key, *items) == [1] * len(items), key
        assert worker.denied == []


# ---- Replicas --------------------------------------------------------------------------------

def test_replicas_have_it_all(servers):
    """A replica answers questions after READONLY, and redirects without it."""
    masters, replicas = servers[:3], servers[3:]
    key = next(str(i) for i in range(SLOTS)
               if owner(servers, masters[1].call('CLUSTER', 'KEYSLOT', str(i))) is masters[1])
    masters[1].call('BF.MADD', key, *zoo.items('item', 500))
    assert masters[1].call('WAIT', 1, 60000) == 1
    link = replicas[1].connect()
    with pytest.raises(Refused, match='MOVED'):
        link.call('BF.EXISTS', key, 'item 1')
    link.call('READONLY')
    assert link.call('BF.MEXISTS', key, *zoo.items('item', 500)) == [1] * 500
    with pytest.raises(Refused, match='MOVED'):
        link.call('BF.ADD', key, 'x')
    link.close()


def test_merge_of_other_slots(servers):
    """A command of several keys takes keys of one slot."""
    with pytest.raises(Refused, match='CROSSSLOT'):
        servers[0].call('BF.MERGE', '{1}a', '{2}b')
