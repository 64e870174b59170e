"""Servers with the module, and a small client, for the tests of what filters survive.

Servers listen on 127.0.0.1 only, on free ports, keep their files in a folder of their own, and
end with the program that started them, however it ends.
"""
import contextlib
import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from servers import AT_ONCE, MODULE, PROGRAM, TREE, environment, seed, until

SETTINGS = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--daemonize', 'no',
            '--enable-debug-command', 'local', '--crash-memcheck-enabled', 'no',
            '--set-proc-title', 'no', '--repl-diskless-sync-delay', '0',
            '--repl-diskless-load', 'disabled',
            *(word for name, value in AT_ONCE.items() for word in ('--' + name, value))]
PATIENCE_S = 120  # for what takes a moment; only a failing test waits so long
# always: with everysec a server that is killed while the disk is slow may lose its last commands
AOF = ['--appendonly', 'yes', '--appendfsync', 'always', '--auto-aof-rewrite-percentage', '0']


def draw(name):
    """Returns a source of random numbers for one test."""
    return random.Random('%s %d' % (name, seed()))


def wait_for(what):
    """Waits until what() is true, and returns it."""
    return until(what, PATIENCE_S)


# ---- A client -------------------------------------------------------------------------------

class Refused(Exception):
    """An error reply."""


def encode(words):
    """Returns a command as the bytes of the protocol."""
    parts = [b'*%d\r\n' % len(words)]
    for word in words:
        if not isinstance(word, (bytes, bytearray)):
            word = str(word).encode()
        parts.append(b'$%d\r\n%b\r\n' % (len(word), word))
    return b''.join(parts)


class Client:
    """A connection that speaks RESP2."""

    def __init__(self, port):
        self.socket = socket.create_connection(('127.0.0.1', port), timeout=PATIENCE_S)
        self.bytes = bytearray()
        self.at = 0

    def close(self):
        self.socket.close()

    def call(self, *words):
        """Sends a command and returns the reply; raises Refused for an error."""
        reply = self.ask(*words)
        if isinstance(reply, Refused):
            raise reply
        return reply

    def ask(self, *words):
        """Sends a command and returns the reply, which may be a Refused."""
        self.socket.sendall(encode(words))
        return self.read()

    def pipe(self, commands):
        """Sends commands at once and returns their replies."""
        commands = list(commands)
        self.socket.sendall(b''.join(map(encode, commands)))
        return [self.read() for _ in commands]

    def info(self, section='everything'):
        lines = self.call('INFO', section).decode().splitlines()
        return dict(line.split(':', 1) for line in lines if ':' in line)

    def read(self):
        """Reads one reply."""
        line = self.read_line()
        kind, rest = line[:1], line[1:]
        if kind == b'+':
            return rest
        if kind == b'-':
            return Refused(rest.decode())
        if kind == b':':
            return int(rest)
        if kind == b'$':
            return None if rest == b'-1' else self.read_bytes(int(rest), 2)
        if kind == b'*':
            return None if rest == b'-1' else self.read_array(int(rest))
        raise AssertionError('not a reply: %r' % line)

    def read_array(self, n):
        return self.read_digits(n) or [self.read() for _ in range(n)]

    def read_digits(self, n):
        """Reads an array of numbers of one digit at once, which is 20 times as fast."""
        if n < 8:
            return None
        while len(self.bytes) - self.at < 4 * n and self.bytes[self.at:self.at + 1] == b':':
            if self.bytes[self.at + 2:self.at + 3] not in (b'', b'\r'):
                return None
            self.fill()
        part = bytes(self.bytes[self.at:self.at + 4 * n])
        if part[::4] != b':' * n or part[2::4] != b'\r' * n:
            return None
        self.at += 4 * n
        return [digit - 48 for digit in part[1::4]]

    def read_line(self):
        while True:
            end = self.bytes.find(b'\r\n', self.at)
            if end >= 0:
                line = bytes(self.bytes[self.at:end])
                self.at = end + 2
                return line
            self.fill()

    def read_bytes(self, n, behind=0):
        while len(self.bytes) - self.at < n + behind:
            self.fill()
        part = bytes(self.bytes[self.at:self.at + n])
        self.at += n + behind
        return part

    def fill(self):
        if self.at > 1 << 16:
            del self.bytes[:self.at]
            self.at = 0
        more = self.socket.recv(1 << 20)
        if not more:
            raise ConnectionError('the server has closed the connection')
        self.bytes += more


# ---- A server -------------------------------------------------------------------------------

class Ended(Exception):
    """A server ended while it started; the text is its log."""


def lines(words):
    """Returns '--name', 'value', ... as redis.conf has it."""
    text = ''
    for word in words:
        text += '\n' + word[2:] if word.startswith('--') else ' "%s"' % word
    return text + '\n'


class Server:
    """A server with the module in a folder of its own.  Use it by 'with'."""
    started = 0

    def __init__(self, *config, arguments=(), module=True):
        self.config = [str(word) for word in config]
        self.load = ['--loadmodule', MODULE, *map(str, arguments)] if module else []
        self.folder = tempfile.mkdtemp(prefix='perhaps-')
        self.port = self.process = self.client = None
        self.logs = 0
        Server.started += 1
        self.name = 'server%d' % Server.started

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.remove()
            raise

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                assert not self.crash(), self.crash()
        finally:
            self.remove()

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        """Starts it, or starts it again on its port; returns when it answers."""
        for _ in range(20):
            port = self.port or random.SystemRandom().randrange(10000, 22000)
            self.run(port)
            while 'Ready to accept connections' not in self.log():
                if self.process.poll() is not None:
                    break
                time.sleep(0.005)
            else:
                self.port = port
                self.client = Client(port)
                return self
            if 'ddress already in use' not in self.log() + self.read('out'):
                break
        raise Ended(self.log() + self.read('out'))

    def run(self, port):
        """The configuration comes from standard input.  The command line, from which
        entropy_preload.c draws secrets, is the same in every run, and of each server another."""
        self.logs += 1
        words = [*SETTINGS, '--port', str(port), '--dir', self.folder,
                 '--logfile', self.path('log%d' % self.logs), *self.config, *self.load]
        with open(self.path('out'), 'w') as out:
            self.process = subprocess.Popen(
                ['setpriv', '--pdeathsig', 'KILL', PROGRAM, '--syslog-ident', self.name, '-'],
                stdin=subprocess.PIPE, stdout=out, stderr=out, env=environment())
        self.process.stdin.write(lines(words).encode())
        self.process.stdin.close()

    def read(self, name):
        try:
            with open(self.path(name), errors='replace') as file:
                return file.read()
        except FileNotFoundError:
            return ''

    def log(self):
        """Returns the log since the last start."""
        return self.read('log%d' % self.logs)

    def crash(self):
        """Returns what tells of a fault since it was started first; else an empty text."""
        text = ''.join(self.read('log%d' % (i + 1)) for i in range(self.logs)) + self.read('out')
        for word in ('BUG REPORT', 'ASSERTION FAILED', 'ERROR: AddressSanitizer', 'runtime error'):
            if word in text:
                return text[text.index(word):][:6000]
        return ''

    def kill(self):
        """Ends it at once, as a loss of power does for a process."""
        if self.client:
            self.client.close()
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()

    def restart(self, save=False):
        """Ends it and starts it again; with 'save' it writes an RDB first."""
        if save:
            self.client.call('SAVE')
        self.kill()
        return self.start()

    def remove(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def connect(self):
        return Client(self.port)

    def call(self, *words):
        return self.client.call(*words)

    def ask(self, *words):
        return self.client.ask(*words)


def replicate(replica, master):
    """Makes one server the replica of another, and waits until it has its data."""
    replica.call('REPLICAOF', '127.0.0.1', master.port)
    caught_up(replica, master)


def caught_up(replica, master):
    """Waits until a replica has everything that the master has."""
    def has_all():
        there = replica.client.info('replication')
        here = master.client.info('replication')
        return (there.get('master_link_status') == 'up'
                and there['slave_repl_offset'] == here['master_repl_offset'])
    wait_for(has_all)


@contextlib.contextmanager
def replicas(n, *config, arguments=()):
    """A master and n replicas of it, whose config and arguments these are."""
    with contextlib.ExitStack() as stack:
        master = stack.enter_context(Server())
        others = [stack.enter_context(Server(*config, arguments=arguments)) for _ in range(n)]
        for other in others:
            replicate(other, master)
        yield [master, *others]


# ---- A cluster ------------------------------------------------------------------------------

SLOTS = 16384


@contextlib.contextmanager
def cluster(masters=3):
    """A cluster of as many masters, each with one replica; yields its servers, masters first."""
    config = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '60000',
              '--cluster-config-file', 'nodes.conf']
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server(*config)) for _ in range(2 * masters)]
        for i in range(masters):
            first, end = i * SLOTS // masters, (i + 1) * SLOTS // masters
            servers[i].call('CLUSTER', 'ADDSLOTSRANGE', first, end - 1)
            servers[i].call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
        for server in servers[1:]:
            server.call('CLUSTER', 'MEET', '127.0.0.1', servers[0].port)
        wait_for(lambda: all(server.call('CLUSTER', 'NODES').count(b'connected') == 2 * masters
                             for server in servers))
        for i in range(masters):
            servers[masters + i].call('CLUSTER', 'REPLICATE', servers[i].call('CLUSTER', 'MYID'))
        wait_for(lambda: all(b'cluster_state:ok' in server.call('CLUSTER', 'INFO')
                             for server in servers))
        yield servers


class ClusterClient:
    """Sends commands to the server that has the slot of their first key, as clients do."""

    def __init__(self, servers):
        self.links = {server.port: Client(server.port) for server in servers}
        self.port = servers[0].port

    def close(self):
        for link in self.links.values():
            link.close()

    def call(self, *words):
        for _ in range(10000):
            reply = self.links[self.port].ask(*words)
            if isinstance(reply, Refused) and str(reply).startswith('ASK '):
                reply = self.links[port_of(reply)].pipe([('ASKING',), words])[1]
            if not isinstance(reply, Refused):
                return reply
            if str(reply).startswith('MOVED '):
                self.port = port_of(reply)
            elif not str(reply).startswith(('ASK ', 'TRYAGAIN', 'CLUSTERDOWN')):
                raise reply
            time.sleep(0.001)
        raise AssertionError('redirected for ever')


def port_of(redirection):
    return int(str(redirection).rsplit(':', 1)[1])


# ---- Load -----------------------------------------------------------------------------------

class Load:
    """Adds items in a thread, over a connection of its own, until the server is gone."""

    def __init__(self, port, command, batch=20):
        self.link, self.command, self.batch = Client(port), command, batch
        self.acknowledged = []
        self.stopping = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        with contextlib.suppress(ConnectionError, OSError):
            while not self.stopping:
                n = len(self.acknowledged)
                items = ['load %d' % i for i in range(n, n + self.batch)]
                self.link.call(*self.command, *items)
                self.acknowledged += items

    def wait_for(self, n):
        wait_for(lambda: len(self.acknowledged) >= n or not self.thread.is_alive())

    def end(self):
        """Stops it and returns the items that the server has acknowledged."""
        self.stopping = True
        self.thread.join()
        self.link.close()
        return self.acknowledged
