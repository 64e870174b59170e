"""Replicas have the same filters, byte by byte, and only what changed something goes to them."""
import time

import pytest
import zoo
from world import Client, Refused, Server, caught_up, replicas, replicate, wait_for

# A replica whose own settings would make other filters.
OTHER_SETTINGS = ['bf-error-rate', '0.2', 'bf-initial-size', '7', 'bf-expansion-factor', '4',
                  'cf-bucket-size', '8', 'cf-initial-size', '99', 'cf-expansion-factor', '3',
                  'cf-max-iterations', '77']


class Stream:
    """Gets what a master sends to its replicas."""

    def __init__(self, server):
        self.server, self.link, self.marks = server, Client(server.port), 0
        self.link.socket.sendall(b'SYNC\r\n')
        line = b''
        while not line.startswith(b'$'):
            line = self.link.read_line().lstrip(b'\n')
        self.link.read_bytes(int(line[1:]))
        self.commands()

    def commands(self):
        """Returns the commands since the last call."""
        self.marks += 1
        self.server.call('SET', 'mark', self.marks)
        commands = []
        while True:
            command = self.read()
            if command[:2] == [b'SET', b'mark']:
                return commands
            if command[0].upper() not in (b'PING', b'SELECT', b'REPLCONF'):
                commands.append(command)

    def read(self):
        while self.link.bytes[self.link.at:self.link.at + 1] == b'\n':
            self.link.at += 1
        return self.link.read()


@pytest.fixture(scope='module')
def pair():
    with replicas(1, arguments=OTHER_SETTINGS) as servers:
        yield servers


@pytest.fixture
def master(pair):
    pair[0].call('FLUSHALL')
    caught_up(pair[1], pair[0])
    return pair[0]


@pytest.fixture
def replica(pair, master):
    return pair[1]


# ---- The same on both -----------------------------------------------------------------------

@pytest.mark.parametrize('kind', zoo.KINDS)
def test_by_commands(master, replica, kind):
    made = zoo.Filter(kind).make(master.client)
    caught_up(replica, master)
    zoo.same(master.client, [made], replica.client)


def test_full_resync():
    with Server() as master, Server() as replica:
        filters = zoo.make_all(master.client)
        replicate(replica, master)
        zoo.same(master.client, filters, replica.client)
        for made in filters:
            if made.kind not in zoo.FIXED:
                made.add(master.client, zoo.items('later', 2000))
            if made.family == 'CF':
                made.remove(master.client, 50)
        caught_up(replica, master)
        zoo.same(master.client, filters, replica.client)


def test_partial_resync(master, replica):
    filters = zoo.make_all(master.client, [kind for kind in zoo.KINDS if kind not in zoo.FIXED])
    caught_up(replica, master)
    full = master.client.info('stats')['sync_full']
    for i in range(3):
        master.call('CLIENT', 'KILL', 'TYPE', 'replica')
        for made in filters:
            made.add(master.client, zoo.items('round %d' % i, 200))
        caught_up(replica, master)
    stats = master.client.info('stats')
    assert stats['sync_full'] == full and int(stats['sync_partial_ok']) >= 1
    zoo.same(master.client, filters, replica.client)


def test_created_by_an_add(master, replica):
    for n in (1, 500):
        items = zoo.items('item', n)
        master.call('BF.ADD', 'bf add', items[0])
        master.call('BF.MADD', 'bf madd', *items)
        master.call('BF.INSERT', 'bf insert', 'ERROR', '0.002', 'CAPACITY', 50, 'ITEMS', *items)
        master.call('CF.ADD', 'cf add', items[0])
        master.call('CF.ADDNX', 'cf addnx', items[0])
        master.call('CF.INSERT', 'cf insert', 'CAPACITY', 3000, 'ITEMS', *items)
        master.call('CF.INSERTNX', 'cf insertnx', 'ITEMS', *items)
        caught_up(replica, master)
        keys = master.call('KEYS', '?f *')
        assert len(keys) == 7
        for key in keys:
            assert master.call('DUMP', key) == replica.call('DUMP', key), key


def test_multi_and_scripts(master, replica):
    master.client.pipe([('MULTI',), ('BF.ADD', 'a', 'x'), ('CF.ADD', 'b', 'x'),
                        ('BF.RESERVE', 'w', '0.01', 100, 'WINDOW', '1h'), ('BF.ADD', 'w', 'x'),
                        ('BF.MADD', 'a', 'x', 'y'), ('CF.DEL', 'b', 'x'), ('EXEC',)])
    script = """
        redis.call('BF.MADD', KEYS[1], 'x', 'y', 'z')
        redis.call('CF.INSERT', KEYS[2], 'ITEMS', 'x', 'x', 'y')
        redis.call('CF.DEL', KEYS[2], 'y')
        redis.call('BF.RESERVE', KEYS[3], '0.01', 100, 'WINDOW', '1h')
        return redis.call('BF.ADD', KEYS[3], 'x')"""
    assert master.call('EVAL', script, 3, 'c', 'd', 'v') == 1
    caught_up(replica, master)
    for key in ['a', 'b', 'w', 'c', 'd', 'v']:
        assert master.call('DUMP', key) == replica.call('DUMP', key) is not None, key


def test_a_script_that_fails(master, replica):
    """What it did before it failed stays, on both."""
    script = "redis.call('BF.ADD', KEYS[1], 'x') return redis.call('BF.RESERVE', KEYS[1], 9, 9)"
    with pytest.raises(Refused):
        master.call('EVAL', script, 1, 'k')
    assert master.call('BF.EXISTS', 'k', 'x') == 1
    caught_up(replica, master)
    assert master.call('DUMP', 'k') == replica.call('DUMP', 'k')


def test_window_passes(master, replica):
    """Both forget the same items although their clocks are asked at different moments."""
    master.call('BF.RESERVE', 'w', '0.001', 1000, 'WINDOW', '400ms')
    made = zoo.Filter('bf', 'w')
    until = time.monotonic() + 1.5
    n = 0
    while time.monotonic() < until:
        master.call('BF.MADD', 'w', *zoo.items('item', 50, n))
        n += 50
        time.sleep(0.02)
    caught_up(replica, master)
    assert master.call('DUMP', 'w') == replica.call('DUMP', 'w')
    wait_for(lambda: sum(made.answers(replica.client, zoo.items('item', n))) == 0)
    master.call('BF.ADD', 'w', 'again')
    caught_up(replica, master)
    assert master.call('DUMP', 'w') == replica.call('DUMP', 'w')


def test_window_of_a_wrong_clock(tmp_path, monkeypatch):
    """A clock that was years ahead once, and a time that somebody names: told, and brought back."""
    clock = tmp_path / 'clock'
    clock.write_text('0')
    monkeypatch.setenv('PERHAPS_TEST_CLOCK', str(clock))
    with replicas(1) as (master, replica):
        def set_clock(seconds):
            """Servers that reckon the time themselves take a moment until they look again."""
            clock.write_text(str(seconds))
            wait_for(lambda: abs(int(master.call('TIME')[0]) - time.time() - seconds) < 60)
        now = int(time.time() * 1000)
        master.call('BF.RESERVE', 'w', '0.001', 1000, 'WINDOW', '1h')
        master.call('BF.ADD', 'w', 'x')
        with pytest.raises(Refused, match="further ahead of the server's clock"):
            master.call('PERHAPS.ADVANCE', 'w', now + 2 * 3600 * 1000)
        assert master.call('BF.EXISTS', 'w', 'x') == 1
        set_clock(10 * 365 * 86400)
        master.call('BF.ADD', 'w', 'y')
        set_clock(0)
        master.call('BF.ADD', 'w', 'z')
        master.call('BF.ADD', 'w', 'y')
        assert master.log().count("the newest time of the window 'w' is ") == 1
        set_clock(2 * 86400)
        assert master.call('BF.ADD', 'w', 'z') == 0  # it forgets nothing
        set_clock(0)
        master.call('PERHAPS.ADVANCE', 'w', now)
        assert master.call('BF.ADD', 'w', 'z') == 0
        caught_up(replica, master)
        assert master.call('DUMP', 'w') == replica.call('DUMP', 'w')
        set_clock(2 * 86400)
        assert master.call('BF.ADD', 'w', 'z') == 1
        caught_up(replica, master)
        assert master.call('DUMP', 'w') == replica.call('DUMP', 'w')


def test_chain_of_replicas():
    with replicas(1) as (master, middle), Server(arguments=OTHER_SETTINGS) as last:
        before = zoo.make_all(master.client, zoo.OWN[::2])
        caught_up(middle, master)
        replicate(last, middle)
        after = zoo.make_all(master.client, zoo.OWN[1::2])
        caught_up(middle, master)
        caught_up(last, middle)
        for other in (middle, last):
            zoo.same(master.client, before + after, other.client)


def test_promoted():
    with replicas(1, arguments=OTHER_SETTINGS) as (master, replica):
        filters = zoo.make_all(master.client)
        caught_up(replica, master)
        before = zoo.likenesses(master.client, filters)
        master.kill()
        replica.call('REPLICAOF', 'NO', 'ONE')
        zoo.check_all(replica.client, filters, before)
        for made in filters:
            if made.kind not in zoo.FIXED:
                made.add(replica.client, zoo.items('later', 1000))
        zoo.check_all(replica.client, filters)
        master.start()
        replicate(master, replica)
        zoo.same(replica.client, filters, master.client)


def test_expired(master, replica):
    filters = zoo.make_all(master.client, ['bf_default', 'cf_unreserved'])
    for made in filters:
        master.call('PEXPIRE', made.key, 100)
    caught_up(replica, master)
    for server in (replica, master):
        wait_for(lambda: all(server.call(made.family + '.EXISTS', made.key, made.items[0]) == 0
                             for made in filters))
    wait_for(lambda: replica.call('DBSIZE') == 0)
    again = zoo.make_all(master.client, ['bf_default', 'cf_unreserved'])
    caught_up(replica, master)
    zoo.same(master.client, again, replica.client)


def test_half_loaded(master, replica):
    made = zoo.Filter('bf_grown').make(master.client)
    position, data = zoo.scandump(master.client, 'BF', made.key)[1]
    header = master.call('BF.SCANDUMP', made.key, 0)[1]
    middle = len(data) // 2
    master.call('BF.LOADCHUNK', 'half', 1, header)
    master.call('BF.LOADCHUNK', 'half', position - len(data) + middle, data[:middle])
    caught_up(replica, master)
    with Server() as late:
        replicate(late, master)
        for one in (replica, late):
            with pytest.raises(Refused, match='not complete'):
                one.call('BF.EXISTS', 'half', 'x')
        master.call('BF.LOADCHUNK', 'half', position, data[middle:])
        for one in (replica, late):
            caught_up(one, master)
            assert one.call('DUMP', 'half') == master.call('DUMP', 'half')
            assert one.call('BF.MEXISTS', 'half', *made.items[:100]) == [1] * 100


def test_questions_change_nothing(master, replica):
    filters = zoo.make_all(master.client)
    caught_up(replica, master)
    before = replica.call('DEBUG', 'DIGEST')
    for made in filters:
        item = made.items[0] if made.items else 'x'
        questions = ['EXISTS', 'MEXISTS', 'INFO', 'DEBUG', 'SCANDUMP', 'CARD', 'COUNT']
        for name in questions:
            if (name, made.family) in (('CARD', 'CF'), ('COUNT', 'BF')):
                continue
            words = {'INFO': [], 'DEBUG': [], 'CARD': [], 'SCANDUMP': ['0']}.get(name, [item])
            replica.call('%s.%s' % (made.family, name), made.key, *words)
        changes = {'BF': [('BF.ADD', 'x'), ('BF.MADD', 'x'), ('BF.SHRINK',)],
                   'CF': [('CF.ADD', 'x'), ('CF.DEL', 'x'), ('CF.COMPACT',)]}[made.family]
        for name, *words in changes:
            with pytest.raises(Refused, match='READONLY'):
                replica.call(name, made.key, *words)
    assert replica.call('DEBUG', 'DIGEST') == before
    zoo.same(master.client, filters, replica.client)


# ---- What goes to replicas ------------------------------------------------------------------

@pytest.fixture
def stream(master):
    one = Stream(master)
    yield one
    one.link.close()


def test_nothing_changed_nothing_replicated(master, stream):
    for kind in zoo.KINDS:
        made = zoo.Filter(kind).make(master.client)
        stream.commands()
        key, some = made.key, made.items[:20] or ['x']
        questions = [(made.family + '.EXISTS', key, 'y'), (made.family + '.INFO', key)]
        if made.items and made.family == 'BF' and kind != 'bf_window':
            questions += [('BF.ADD', key, some[0]), ('BF.MADD', key, *some),
                          ('BF.INSERT', key, 'ITEMS', *some)]
        if made.items and made.family == 'CF':
            questions += [('CF.ADDNX', key, some[0]), ('CF.INSERTNX', key, 'ITEMS', *some)]
        if made.family == 'CF':
            absent = [item for item in zoo.items('never', 20)
                      if not master.call('CF.EXISTS', key, item)]
            questions += [('CF.DEL', key, item) for item in absent]
        replies = master.client.pipe(questions)
        assert not any(isinstance(reply, Refused) for reply in replies), replies
        assert stream.commands() == [], kind


def test_only_new_items_replicated(master, stream):
    master.call('BF.MADD', 'b', 'one', 'two')
    master.call('CF.INSERTNX', 'c', 'ITEMS', 'one', 'two')
    stream.commands()
    added = master.call('BF.MADD', 'b', 'one', 'three', 'two', 'three')
    added += master.call('CF.INSERTNX', 'c', 'ITEMS', 'two', 'three', 'one')
    master.call('CF.DEL', 'c', 'one')
    words = [word for command in stream.commands() for word in command]
    assert words.count(b'three') == sum(added)  # not 2, if one is a false positive
    assert b'two' not in words
    assert words.count(b'one') == 1  # of CF.DEL


def test_errors_are_not_replicated(master, stream):
    master.call('BF.RESERVE', 'full', '0.01', 10, 'NONSCALING')
    master.call('SET', 'text', 'x')
    while not isinstance(master.ask('BF.ADD', 'full', 'n%d' % stream.marks), Refused):
        stream.marks += 1
    stream.commands()
    for command in [('BF.ADD', 'full', 'one more'), ('BF.MADD', 'full', 'x1', 'x2'),
                    ('BF.ADD', 'text', 'x'), ('CF.ADD', 'full', 'x'), ('CF.DEL', 'none', 'x'),
                    ('BF.RESERVE', 'full', '0.01', 10), ('BF.RESERVE', 'new', '2', 10),
                    ('BF.INSERT', 'none', 'NOCREATE', 'ITEMS', 'x'),
                    ('BF.LOADCHUNK', 'full', 7, 'x'), ('CF.LOADCHUNK', 'none', 1, 'x')]:
        reply = master.ask(*command)
        if command[0] == 'BF.MADD':
            reply = reply[-1]
        assert isinstance(reply, Refused), command
    assert stream.commands() == []


def test_replication_needs_no_settings(master, stream):
    """Commands that make a filter tell all about it."""
    master.call('BF.ADD', 'b', 'x')
    master.call('CF.ADD', 'c', 'x')
    names = [command[0].upper() for command in stream.commands()]
    assert names.count(b'PERHAPS.CREATE') == 2, names
