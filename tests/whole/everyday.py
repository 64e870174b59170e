#!/usr/bin/env python3
"""Everyday uses with fresh seeds, beside an exact count: everyday.py [SECONDS [NAME...]]

    threads   keys and repeats, added by the default number of threads
    growing   a set that grows, to which keys come again and again
    copies    --removable and --count: copies of keys go in, and out again
    windows   dedup with a window, which turns over whatever its base and rate are
    numbers   what 'info' and 'add' say after shrink and merge: keys, and room that is there
    python    Filter: repeats, threads, len()
    module    BF.* and CF.*, if a server is there
    servers   a filter on one server or on three masters: processes that add and dedup, and die
    losses    partitions that vanish while keys are added and asked for
    tests     the tests of rooms, copies, counts and sets

N different keys fit into a filter for N, whoever adds them, how often and in which order; each is
found; and the number that is told is true.  Runs take turns for SECONDS (600) and are counted; a
wrong one is shown, with the command that draws the same again; but filters choose their own
seeds, and threads their own order.
"""
import collections
import contextlib
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('PERHAPS_BUILD', os.path.join(TREE, 'build'))
PERHAPS = os.path.join(BUILD, 'bin', 'perhaps')
sys.path[:0] = [os.path.join(BUILD, 'lib', 'python'), os.path.join(TREE, 'tests', 'module')]
RATES = [0.5, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6, 1e-9]
DEVIATIONS = 7  # of what is told, as perhaps.h states


class Wrong(Exception):
    """Something was refused, lost or told that must not be."""


def perhaps(*words, lines=None, answers=False):
    """Runs the command line; returns what it printed if asked, and else its summary."""
    text = None if lines is None else ''.join('%s\n' % line for line in lines)
    run = subprocess.run([PERHAPS, *map(str, words)], input=text, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if run.returncode:
        raise Wrong('%s: %d: %s' % (' '.join(map(str, words)), run.returncode, run.stderr))
    return run.stdout if answers else run.stderr


def is_so(condition, text, *values):
    if not condition:
        raise Wrong(text % values)


def draw_size(rng, most=200_000):
    """Returns a size from 10 on; small ones are as likely as large ones."""
    return int(10 * (most / 10) ** rng.random())


def draw_keys(rng, n):
    """Returns different keys."""
    first, step = rng.randrange(10 ** 9), rng.randrange(1, 1000)
    return ['k%d' % (first + i * step) for i in range(n)]


def repeated(rng, keys):
    """Returns the keys in an order in which they come again: near, far, all at once or never."""
    way = rng.randrange(4)
    if way == 0:
        return keys
    if way == 1:
        block = rng.randrange(1, 20_000)
        return [key for i in range(0, len(keys), block) for key in 2 * keys[i:i + block]]
    if way == 2:
        return [key for key in keys for _ in range(rng.randrange(1, 4))]
    return keys + rng.sample(keys, len(keys))


def expect_number(path, keys, extra=0):
    """The number of keys is true within the error that perhaps.h states."""
    info = json.loads(perhaps('info', '--json', path, answers=True))
    rate = min(info['fpr_now'], 0.99)
    error = 1 + DEVIATIONS * (math.sqrt(keys * rate + 1) / (1 - rate) + math.sqrt(keys) / 2)
    error += 0.01 * keys if info['body_bytes'] > 1 << 20 else 0
    is_so(keys - error <= info['keys_different'] <= keys + extra + error,
          '%s tells %d keys of %d', path, info['keys_different'], keys)
    is_so(info['fpr_now'] <= info['fpr_asked'], '%s: rate %g', path, info['fpr_now'])
    return info


def expect_found(path, keys):
    found = perhaps('query', path, lines=keys, answers=True).splitlines()
    is_so(found == list(keys), '%d of %d keys are found', len(found), len(keys))


# ---- The command line -----------------------------------------------------------------------

def threads(rng):
    keys = draw_keys(rng, draw_size(rng))
    kind = rng.choice(['blocked', 'bloom', 'counting', 'cuckoo', 'elastic', 'auto'])
    how = [] if kind == 'auto' else ['--kind', kind]
    if kind == 'elastic':
        how.append('--grow')
    if rng.randrange(4) == 0:
        how.append('--live')
    perhaps('create', '-q', 'f', '-n', len(keys), '-p', rng.choice(RATES[:7]), *how)
    jobs = rng.choice([[], ['-j', rng.randrange(1, 9)]])
    for _ in range(rng.randrange(1, 3)):
        perhaps('add', '-q', 'f', *jobs, lines=repeated(rng, keys))
    expect_number('f', len(keys))
    expect_found('f', keys)


def growing(rng):
    keys = draw_keys(rng, draw_size(rng, 50_000))
    perhaps('create', '-q', 'f', '--grow', *rng.choice([[], ['-n', 100]]),
            *rng.choice([[], ['--live']]), '-p', rng.choice(RATES[1:7]))
    perhaps('add', '-q', 'f', lines=1000 * ['one'])
    perhaps('add', '-q', 'f', lines=repeated(rng, keys))
    perhaps('add', '-q', 'f', lines=keys)
    expect_number('f', len(keys) + 1)
    expect_found('f', keys)


def copies(rng):
    """Four copies of each key are as good as sure where a filter grows; build makes room."""
    keys = draw_keys(rng, draw_size(rng, 50_000))
    each, grows = rng.randrange(1, 5), rng.randrange(2)
    lines = each * keys
    if rng.randrange(2):
        rng.shuffle(lines)
    if grows:
        perhaps('create', '-q', 'f', '--grow', rng.choice(['--removable', '--count']),
                '-p', rng.choice(RATES[3:]))
        perhaps('add', '-q', 'f', lines=lines)
    else:
        perhaps('build', '-q', '-o', 'f', '--removable', lines=lines)
    expect_found('f', keys)
    perhaps('remove', '-q', 'f', lines=(each - 1) * keys)
    expect_found('f', keys)
    expect_number('f', len(keys))


def windows(rng):
    base = rng.choice(['blocked', 'counting', 'cuckoo', 'bloom'])
    window, generations = draw_size(rng, 20_000) + 20, rng.randrange(2, 17)
    lines = draw_keys(rng, window * 4)
    printed = perhaps('dedup', '--window', '%d-keys' % window, '--kind',
                      'window:generations=%s,base=%s' % (generations, base), '-p', rng.choice(RATES[:7]), lines=lines, answers=True)
    is_so(set(printed.splitlines()) <= set(lines), 'dedup prints what did not come')


def numbers(rng):
    n, factor = draw_size(rng, 50_000), rng.randrange(2, 20)
    kind = rng.choice(['blocked', 'bloom', 'counting'])
    keys = draw_keys(rng, 3 * n)
    here, other, more = keys[:n], keys[n:2 * n], keys[2 * n:]
    made = ['-q', '-n', n * factor, '-p', rng.choice(RATES[:6]), '--kind', kind, '--seed', 1]
    perhaps('build', '-o', 'f', *made, lines=here)
    expect_number('f', n)
    if rng.randrange(2):
        perhaps('build', '-o', 'g', *made, lines=other)
        perhaps('merge', '-q', '-o', 'f', 'f', 'g')
        here += other
        expect_number('f', len(here))
    run = subprocess.run([PERHAPS, 'shrink', '-q', 'f', '-o', 's'], stderr=subprocess.PIPE,
                         text=True, check=False)
    is_so(not run.returncode or 'smaller' in run.stderr, 'shrink: %s', run.stderr)
    path = 's' if not run.returncode else 'f'
    expect_found(path, here)
    info = expect_number(path, len(here))
    room = max(0, min(info['capacity'] - info['keys_different'], len(more)))
    perhaps('add', '-q', path, lines=more[:room])
    expect_number(path, len(here) + room)
    expect_found(path, here + more[:room])


# ---- Python ---------------------------------------------------------------------------------

def python(rng):
    import perhaps as library
    keys = draw_keys(rng, draw_size(rng))
    grows = bool(rng.randrange(2))
    filter_ = library.Filter(100 if grows else len(keys), rng.choice(RATES[1:7]), grow=grows)
    parts = [keys] * 4 if rng.randrange(2) else [keys[i::4] * 2 for i in range(4)]
    failed = []

    def add(part):
        try:
            filter_.update(part)
        except library.Error as error:
            failed.append(error)
    crew = [threading.Thread(target=add, args=(part,)) for part in parts]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    is_so(not failed, 'update() of %d keys: %s', len(keys), failed)
    for _ in range(20):
        filter_.add(keys[0])
    is_so(all(key in filter_ for key in keys), 'a key is not found')
    filter_.save('p')
    expect_number('p', len(keys))


# ---- Servers ----------------------------------------------------------------------------------

RUNNING = contextlib.ExitStack()
SERVERS = {}


def server(kind):
    """Returns servers, which are started once: 'one', 'module' for one with the module, or
    'masters' for three of a cluster with the module and their replicas."""
    import world
    if kind not in SERVERS:
        SERVERS[kind] = (RUNNING.enter_context(world.cluster()) if kind == 'masters' else
                         [RUNNING.enter_context(world.Server(module=kind == 'module'))])
    for one in SERVERS[kind][:3]:
        one.call('FLUSHALL')
    return SERVERS[kind]


def file_of(lines):
    file = tempfile.TemporaryFile('w+')
    file.writelines('%s\n' % line for line in lines)
    file.flush()
    file.seek(0)
    return file


def start(*words, lines):
    """Starts the command line with lines, or with a file of such; returns the process, and the
    file that it prints to."""
    source = lines if hasattr(lines, 'seek') else file_of(lines)
    output = tempfile.TemporaryFile('w+')
    return subprocess.Popen([PERHAPS, *map(str, words)], stdin=source, stdout=output,
                            stderr=subprocess.PIPE, text=True), output


def ended(process, what):
    """Waits for a process that must succeed."""
    message = process.communicate()[1]
    is_so(not process.returncode, '%s: %d: %s', what, process.returncode, message)


def expect_each_once(outputs, keys):
    """Each key was printed by one process, once."""
    printed = collections.Counter()
    for output in outputs:
        output.seek(0)
        printed.update(output.read().split())
    is_so(printed == collections.Counter(keys), 'dedup: %d lines, %d of %d keys',
          printed.total(), len(printed), len(keys))


def servers(rng):
    at = server(rng.choice(['one', 'module', 'masters']))
    path = 'redis://127.0.0.1:%d/f' % at[0].port
    keys = draw_keys(rng, draw_size(rng, 50_000))
    n, grows, rate = len(keys), rng.randrange(2), rng.choice(RATES[1:])
    prints = rate < 1e-6 and rng.randrange(2)
    verb = ['dedup', '-q', '--state', path] if prints else ['add', '-q', path]
    perhaps('create', '-q', path, '-p', rate,
            *(['--grow', '-n', max(1, n // rng.choice([1, 3, 10]))] if grows else ['-n', n]))
    kills = not prints and rng.randrange(4) == 0
    if kills:
        killed = start(*verb, lines=keys)[0]
        time.sleep(0.05 * rng.random())
        killed.kill()
        killed.communicate()
    count, apart = rng.randrange(1, 5), rng.randrange(2)
    parts = [keys[i::count] if apart else rng.sample(keys, n) for i in range(count)]
    jobs = rng.choice([[], ['-j', rng.randrange(1, 4)]])
    running = [start(*verb, *jobs, lines=repeated(rng, part)) for part in parts]
    for process, _ in running:
        ended(process, ' '.join(verb))
    if prints:
        expect_each_once([output for _, output in running], keys)
    expect_found(path, keys)
    info = json.loads(perhaps('info', '--json', path, answers=True))
    # after a kill the bits may have been counted, which tells of some keys less
    least = n * (1 - 1.1 * rate - 0.005 * kills) - DEVIATIONS * math.sqrt(n * rate + 1)
    sure = info['keys'] - info['keys_reserved']
    is_so(least <= info['keys'] and sure <= n * (1.003 if grows else 1) + 1,
          '%d keys of %d at %g, %d reserved, %d processes, %s', info['keys'], n, rate,
          info['keys_reserved'], count, 'one was killed' if kills else 'none was killed')
    is_so(info['fpr_now'] <= info['fpr_asked'] * 1.01, 'rate %g', info['fpr_now'])


def losses(rng):
    """A key that was added is never printed as one that is certainly absent."""
    at = server(rng.choice(['one', 'module', 'masters']))
    path = 'redis://127.0.0.1:%d/f' % at[0].port
    keys = draw_keys(rng, rng.randrange(60_000, 300_000))  # many, so that asking takes a while
    n = len(keys) // 2
    perhaps('create', '-q', path, '-n', len(keys), '-p', rng.choice(RATES[3:7]))
    perhaps('add', '-q', path, lines=keys[:n])
    files = [file_of((1_000_000 // n + 1) * rng.sample(keys[:n], n)) for _ in range(2)]
    running = [start('query', '-v', path, lines=file) for file in files]
    running.append(start('add', '-q', path, lines=keys[n:]))
    time.sleep(0.25 * rng.random())
    victim, way = at[rng.randrange(min(3, len(at)))], rng.randrange(3)
    there = [key for key in victim.call('KEYS', 'perhaps:{f/*') if key]
    if way == 0 or not there:
        victim.call('FLUSHALL')
    else:
        for key in rng.sample(there, 1 if way == 1 else (len(there) + 1) // 2):
            victim.ask('DEL', key)
    added = set(keys[:n])
    for process, output in running:
        process.communicate()
        output.seek(0)
        wrong = added.intersection(output.read().split())
        is_so(not wrong, '%d keys that were added are printed as absent', len(wrong))


# ---- The module -----------------------------------------------------------------------------

def module(rng):
    client = server('module')[0].client
    n, each = draw_size(rng, 20_000), rng.randrange(1, 5)
    keys = draw_keys(rng, n)
    batches = [keys[i:i + 500] for i in range(0, n, 500)]
    client.call('BF.RESERVE', 'b', rng.choice(RATES[2:7]), n, 'NONSCALING')
    for batch in 3 * batches:
        replies = client.call('BF.MADD', 'b', *batch)
        is_so(all(isinstance(reply, int) for reply in replies), 'BF.MADD: %s', replies[-1])
    if rng.randrange(2):
        client.call('CF.RESERVE', 'c', n * rng.randrange(1, 5))
    for batch in each * batches:
        for reply in client.pipe([('CF.ADD', 'c', key) for key in batch]):
            is_so(reply == 1, 'CF.ADD of %d items, %d times: %s', n, each, reply)
    for batch in batches:
        is_so(0 not in client.call('BF.MEXISTS', 'b', *batch), 'an item is lost')
        is_so(0 not in client.call('CF.MEXISTS', 'c', *batch), 'an item is lost')
    for batch in each * batches:
        for reply in client.pipe([('CF.DEL', 'c', key) for key in batch]):
            is_so(reply == 1, 'CF.DEL: %s', reply)


# ---- C --------------------------------------------------------------------------------------

TESTS = ['room', 'copies', 'counts', 'sets', 'window', 'shrink']


def tests(rng):
    name = rng.choice(TESTS)
    seed = rng.getrandbits(60)
    run = subprocess.run([os.path.join(BUILD, 'tests', name + '_test')], text=True,
                         env={**os.environ, 'PERHAPS_TEST_SEED': str(seed)}, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    is_so(not run.returncode, 'PERHAPS_TEST_SEED=%d %s_test: %s', seed, name, run.stdout[-3000:])


# ---- Turns ----------------------------------------------------------------------------------

USES = [threads, growing, copies, windows, numbers, python, servers, losses, module, tests]
SERVED = [servers, losses, module]


def available():
    """Returns the uses for which all is there."""
    uses = list(USES)
    if not any(map(shutil.which, ('redis-server', 'valkey-server'))):
        uses = [use for use in uses if use not in SERVED]
        print('no server is installed: servers, losses and module are left out')
    if not os.path.isdir(os.path.join(BUILD, 'lib', 'python')):
        uses.remove(python)
        print('the Python module is not built: python is left out')
    if shutil.which('valkey-server') and not shutil.which('redis-server'):
        os.environ.setdefault('PERHAPS_SERVER', 'valkey-server')
    return uses


def one_run(use, seed):
    """Makes one run in a folder of its own; returns what was wrong."""
    home = os.getcwd()
    with tempfile.TemporaryDirectory(prefix='perhaps-') as folder:
        os.chdir(folder)
        try:
            use(random.Random('%s %d' % (use.__name__, seed)))
        except Exception as wrong:  # what no use expects is wrong, too
            return str(wrong) if isinstance(wrong, Wrong) else repr(wrong)
        finally:
            os.chdir(home)
    return None


def main(seconds=600, *names):
    unknown = set(names) - {use.__name__ for use in USES}
    if unknown:
        sys.exit('everyday: no use is called %s; see --help' % sorted(unknown)[0])
    uses = [use for use in available() if not names or use.__name__ in names]
    given = os.environ.get('PERHAPS_TEST_SEED', 'fresh')
    seed = random.SystemRandom().getrandbits(40) if given == 'fresh' else int(given)
    os.environ['PERHAPS_TEST_SEED'] = '1'  # of what a server draws
    runs, wrong = collections.Counter(), collections.Counter()
    print('everyday uses for %d s, from seed %d on' % (seconds, seed), flush=True)
    begun = told = time.monotonic()
    try:
        while time.monotonic() < begun + seconds:
            use = min(uses, key=lambda use: runs[use.__name__])
            runs[use.__name__] += 1
            error = one_run(use, seed)
            if error:
                wrong[use.__name__] += 1
                print('WRONG: %s: %s\n    again: PERHAPS_TEST_SEED=%d ./dev stress everyday 1 %s' %
                      (use.__name__, error, seed, use.__name__), flush=True)
            seed += 1
            if time.monotonic() > told + 60:
                told = time.monotonic()
                print('%d s: %d runs, %d wrong' %
                      (told - begun, runs.total(), wrong.total()), flush=True)
    except KeyboardInterrupt:
        print('stopped')
    finally:
        RUNNING.close()
    for name in runs:
        print('%-8s %6d runs, %d wrong' % (name, runs[name], wrong[name]))
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    if sys.argv[1:2] in (['--help'], ['-h']):
        print(__doc__)
    else:
        main(*map(float, sys.argv[1:2]), *sys.argv[2:])
