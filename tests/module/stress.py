#!/usr/bin/env python3
"""Long runs of what the module must survive, with fresh seeds: stress.py [NAME...] [N]

    restore   N changed dumps for RESTORE (10000), then the same number of changed chunks
    files     N servers that start from changed RDB files (10000)
    resync    a full resync of N MiB (1024), and the memory that it takes
    items     N million items in a CF that was not reserved (100): rate and size
    kills     N kills of a server with an AOF while clients add (100)
    slots     N moves of slots in a cluster while clients add and ask (5000)
    tests     all tests of what filters survive, N times (5)

Without a name all of them run; N is then that of each.  PERHAPS_TEST_SEED=N repeats a run.
"""
import os
import subprocess
import sys
import time

os.environ.setdefault('PERHAPS_TEST_SEED', 'fresh')

import hostile
import test_cluster
import test_crash
import test_hostile
import world
import zoo


def restore(n=10000):
    """Changes dumps and chunks."""
    random = world.draw('stress restore')
    taken = 0
    with world.Server('--rdbcompression', 'no', '--maxmemory', '1gb') as server:
        witness = test_hostile.Witness(server.client)
        for done in range(0, n, 100 * len(hostile.SMALL)):
            taken += test_hostile.restore_changed(server.client, random, 100)
            test_hostile.load_changed(server.client, random, 100)
            witness.check()
    return '%d of %d dumps were taken' % (taken, done + 100 * len(hostile.SMALL))


def files(n=10000):
    random = world.draw('stress files')
    with world.Server('--rdbcompression', 'no') as server:
        dumps = [hostile.make_small(server.client, kind) for kind in hostile.SMALL]
    started = test_hostile.start_changed(random, dumps, n)
    return '%d of %d servers started' % (started, n)


def resync(mib=1024):
    os.environ['PERHAPS_TEST_MIB'] = str(mib)
    import test_memory
    test_memory.test_full_resync()
    test_memory.test_save_and_load()
    return '%d MiB' % mib


def items(millions=100):
    """Adds items to a filter that was not reserved; asks for as many, and for others."""
    step, many = 50_000, millions * 1_000_000
    with world.Server() as server:
        client = server.client
        for at in range(0, many, step):
            batch = [b'%d' % i for i in range(at, at + step)]
            reply = client.call('CF.INSERT', 'k', 'ITEMS', *batch)
            assert reply == [1] * step
        made = zoo.Filter('cf', 'k')
        for at in range(0, many, step * 7):
            assert made.answers(client, ['%d' % i for i in range(at, at + step)]) == [1] * step
        absent = 2_000_000
        positives = sum(sum(made.answers(client, ['absent %d' % i for i in range(at, at + step)]))
                        for at in range(0, absent, step))
        bits = 8 * client.call('MEMORY', 'USAGE', 'k') / many
        rate = positives / absent
        assert rate < 0.0025 and bits <= 25, (rate, bits)
        before = client.call('DEBUG', 'DIGEST-VALUE', 'k')
        server.restart(save=True)
        assert server.call('DEBUG', 'DIGEST-VALUE', 'k') == before
    return '%d million items: rate %.3f %%, %.1f bits an item' % (millions, 100 * rate, bits)


def kills(n=100):
    for i in range(n):
        test_crash.test_always('yes' if i % 2 else 'no')
        if i % 10 == 0:
            test_crash.test_everysec()
            test_crash.test_torn_end()
            test_crash.test_killed_while_saving()
    return '%d kills' % n


def slots(n=5000):
    with world.cluster() as servers:
        for _ in range(0, n, 200):
            test_cluster.test_slots_move_under_load(servers)
            for server in servers[:3]:
                server.call('FLUSHALL')
            os.environ['PERHAPS_TEST_SEED'] = str(world.seed() + 1)
    return '%d moves' % n


def tests(n=5):
    names = 'persistence replication crash cluster hostile redisbloom adversary memory'.split()
    paths = [str(world.TREE / 'tests/module' / ('test_%s.py' % name)) for name in names]
    for _ in range(n):
        os.environ['PERHAPS_TEST_SEED'] = str(world.seed() + 1)
        subprocess.run([sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', *paths],
                       check=True)
    return '%d times' % n


RUNS = [restore, files, resync, items, kills, slots, tests]


def main(words):
    numbers = [int(word) for word in words if word.isdigit()]
    names = [word for word in words if not word.isdigit()]
    chosen = [run for run in RUNS if not names or run.__name__ in names]
    if len(numbers) > 1 or not set(names) <= {run.__name__ for run in RUNS}:
        sys.exit(__doc__)
    world.seed()  # tells it
    for run in chosen:
        start = time.monotonic()
        told = run(*numbers)
        print('%s: %s; %.0f s' % (run.__name__, told, time.monotonic() - start), flush=True)


if __name__ == '__main__':
    main(sys.argv[1:])
