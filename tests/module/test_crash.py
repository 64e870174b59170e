"""Servers that are killed while clients add: what was acknowledged is there again."""
import os

import pytest
import zoo
from world import AOF, Load, Server, caught_up, draw

COMMANDS = {
    'chain': ('BF.MADD', 'chain'),
    'default': ('BF.INSERT', 'default', 'ITEMS'),
    'window': ('BF.MADD', 'window'),
    'elastic': ('CF.INSERT', 'elastic', 'ITEMS'),
    'reserved': ('CF.INSERT', 'reserved', 'ITEMS'),
}


def prepare(server):
    server.call('BF.RESERVE', 'chain', '0.000001', 500)
    server.call('BF.RESERVE', 'window', '0.000001', 1000, 'WINDOW', '24h')
    server.call('CF.RESERVE', 'reserved', 1000, 'EXPANSION', 2)


def answers(client, key, items):
    command = 'CF.MEXISTS' if key in ('elastic', 'reserved') else 'BF.MEXISTS'
    replies = client.pipe([(command, key, *batch) for batch in zoo.batches(items)])
    return [answer for reply in replies for answer in reply]


def run_and_kill(server, items, rewrite=False):
    """Adds items to all filters at once and kills the server.  Returns what was acknowledged."""
    loads = {key: Load(server.port, command) for key, command in COMMANDS.items()}
    for load in loads.values():
        load.wait_for(items // 2)
    if rewrite:
        server.call('BGREWRITEAOF')
    for load in loads.values():
        load.wait_for(items)
    server.kill()
    return {key: load.end() for key, load in loads.items()}


@pytest.mark.parametrize('preamble', ['yes', 'no'])
def test_always(preamble):
    """With appendfsync always every acknowledged add is there after a crash."""
    with Server(*AOF, '--appendfsync', 'always', '--aof-use-rdb-preamble', preamble) as server:
        prepare(server)
        acknowledged = run_and_kill(server, 1500, rewrite=True)
        server.start()
        for key, items in acknowledged.items():
            assert len(items) >= 1500
            assert answers(server.client, key, items) == [1] * len(items), key


def is_beginning(found):
    """Whether these answers are those of a filter that got a part of the items in their order:
    behind the first 'no' there are no others than false positives."""
    if 0 not in found:
        return True
    behind = found[found.index(0):]
    return sum(behind) <= 7 + len(behind) // 10


def test_everysec():
    """Loads again, and lost at most the end of what each client sent."""
    with Server(*AOF, '--appendfsync', 'everysec') as server:
        prepare(server)
        acknowledged = run_and_kill(server, 4000)
        server.start()
        for key, items in acknowledged.items():
            assert is_beginning(answers(server.client, key, items)), key


def test_torn_end():
    """An AOF that ends within a command."""
    random = draw('torn end')
    with Server(*AOF, '--aof-load-truncated', 'yes') as server:
        prepare(server)
        acknowledged = run_and_kill(server, 2000)
        folder = server.path('appendonlydir')
        path = max((os.path.join(folder, name) for name in os.listdir(folder)
                    if name.endswith('.incr.aof')), key=os.path.getsize)
        nbytes = os.path.getsize(path)
        for _ in range(8):
            nbytes -= random.randrange(1, nbytes // 10)
            os.truncate(path, nbytes)
            server.start()
            for key, items in acknowledged.items():
                if not server.call('EXISTS', key):
                    continue
                assert is_beginning(answers(server.client, key, items)), key
            server.kill()
            nbytes = os.path.getsize(path)  # the server has cut off half a command


def test_killed_while_saving():
    """The RDB before is whole."""
    with Server() as server:
        server.call('BF.RESERVE', 'big', '0.001', 20_000_000)
        made = zoo.Filter('bf', 'big')
        made.add(server.client, zoo.items('item', 3000))
        server.call('SAVE')
        made.add(server.client, zoo.items('later', 3000))
        server.call('BGSAVE')
        server.kill()
        server.start()
        made.items = zoo.items('item', 3000)
        made.check(server.client)


def test_replica_of_a_crashed_master():
    """A master that comes back with all its data is followed again, and both are the same."""
    with Server(*AOF, '--appendfsync', 'always') as master, Server() as replica:
        prepare(master)
        replica.call('REPLICAOF', '127.0.0.1', master.port)
        acknowledged = run_and_kill(master, 1000)
        master.start()
        caught_up(replica, master)
        for key, items in acknowledged.items():
            assert answers(replica.client, key, items) == [1] * len(items), key
            assert replica.call('DUMP', key) == master.call('DUMP', key), key
