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


def owners(masters, slot):
    """Returns the ports of those that the masters take for the owner of a slot."""
    ports = set()
    for master in masters:
        for first, last, (_, port, *_), *_ in master.call('CLUSTER', 'SLOTS'):
            if first <= slot <= last:
                ports.add(port)
    return ports


def owner(masters, slot):
    """Returns the master that serves a slot, when all agree."""
    wait_for(lambda: len(owners(masters, slot)) == 1)
    port = owners(masters, slot).pop()
    return next(master for master in masters if master.port == port)


def move(masters, slot, to):
    """Moves a slot and its keys, as redis-cli --cluster reshard does."""
    source = owner(masters, slot)
    if source is to:
        return
    there, here = to.call('CLUSTER', 'MYID'), source.call('CLUSTER', 'MYID')
    to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', here)
    source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', there)
    while keys := source.call('CLUSTER', 'GETKEYSINSLOT', slot, 10):
        source.call('MIGRATE', '127.0.0.1', to.port, '', 0, 60000, 'KEYS', *keys)
    for node in [to, source, *masters]:
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
        self.client.call(*command, *items)
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
        move(masters, random.choice(slots), random.choice(masters))
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
    mine = '{%s}' % next(str(i) for i in range(SLOTS)
                         if owner(masters, client.call('CLUSTER', 'KEYSLOT', str(i)))
                         is servers[0])
    filters = [zoo.Filter(kind, mine + kind).make(client) for kind in zoo.KINDS]
    before = zoo.likenesses(client, filters)
    slot = client.call('CLUSTER', 'KEYSLOT', mine)
    for to in (masters[1], masters[2], masters[0]):
        move(masters, slot, to)
        zoo.check_all(to.client, filters, before)


def test_replicas_have_it_all(servers):
    """A replica answers questions after READONLY, and redirects without it."""
    masters, replicas = servers[:3], servers[3:]
    key = next(str(i) for i in range(SLOTS)
               if owner(masters, masters[1].call('CLUSTER', 'KEYSLOT', str(i))) is masters[1])
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
