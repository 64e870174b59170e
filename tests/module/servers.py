"""Servers with the module, and clients that see each byte of a reply.

A server listens on 127.0.0.1 only, on a free port, keeps its files in a temporary folder, and ends
with the process that started it, however that ends.

The environment tells what to start:
    PERHAPS_MODULE   the module (default: build/lib/perhaps.so)
    PERHAPS_SERVER   the server (default: redis-server, or else valkey-server)
    PERHAPS_PRELOAD  libraries that are loaded into the server first.  tests/support/entropy_preload.c
                     makes filters draw the same secrets in every run, so that no test fails by
                     chance; PERHAPS_TEST_SEED chooses others, "fresh" at random
"""
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
MODULE = os.environ.get("PERHAPS_MODULE", str(TREE / "build" / "lib" / "perhaps.so"))
PROGRAM = os.environ.get("PERHAPS_SERVER") or shutil.which("redis-server") or "valkey-server"
ENOUGH_S = 60  # to wait for what comes at once, if the machine is not very busy


def seed():
    given = os.environ.get("PERHAPS_TEST_SEED", "1")
    if given == "fresh":
        given = str(random.SystemRandom().getrandbits(60))
        os.environ["PERHAPS_TEST_SEED"] = given
        print("PERHAPS_TEST_SEED=" + given)
    return int(given, 0)


def rng(name):
    """Random numbers that depend on the seed and on a name only."""
    return random.Random(f"{seed()} {name}")


def until(is_so, seconds=ENOUGH_S):
    """Asks until the answer is yes, and returns it."""
    end = time.monotonic() + seconds
    while True:
        answer = is_so()
        if answer:
            return answer
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


# ---- Servers --------------------------------------------------------------------------------


def version():
    """What runs: its name in small letters, and its version as numbers."""
    told = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    name, numbers = re.search(r"(?:(\w+) )?[Ss]erver v=([\d.]+)", told).groups()
    return (name or "valkey").lower(), tuple(map(int, numbers.split(".")))  # 7.2 has no name


NAME, VERSION = version()
# Valkey frees in the background what DEL and FLUSHALL remove: what is told would change later.
AT_ONCE = {"lazyfree-lazy-user-del": "no", "lazyfree-lazy-user-flush": "no",
           "lazyfree-lazy-server-del": "no", "lazyfree-lazy-expire": "no"}
# Redis 8 calls a module's settings as the module does; others put the module's name before.
PREFIX = "" if NAME == "redis" and VERSION >= (8,) else "bf."


def as_named_here(text):
    """Settings in a command or a configuration, "bf.bf-error-rate", as this server calls them."""
    return re.sub(r"\bbf\.(?=[bc]f-)", PREFIX, text)


def settings(talk):
    """The settings of the module, by the names that they have in most servers."""
    told = Map(talk.ok(f"CONFIG GET {PREFIX}bf-* {PREFIX}cf-*")).dict()
    return {"bf." + name.decode().removeprefix("bf."): value.decode()
            for name, value in told.items()}

class NoStart(Exception):
    """A server ended at once; the text is its log."""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def environment():
    seed()
    preload = os.environ.get("PERHAPS_PRELOAD", "")
    leaks = {"ASAN_OPTIONS": "detect_leaks=0"}  # of the server, which does not release all
    return {**os.environ, **({"LD_PRELOAD": preload} if preload else {}), **leaks}


class Server:
    """Server("maxmemory 10mb", module="bf-initial-size 1000"): words as in redis.conf."""

    def __init__(self, *config, module=""):
        self.config = list(config)
        self.module = module
        self.folder = tempfile.mkdtemp(prefix="perhaps-")
        self.log = pathlib.Path(self.folder) / "log"
        self.process = None
        self.talks = []
        self.start()

    def words(self):
        module = [f"loadmodule {MODULE} {self.module}"] if self.module is not None else []
        return ["bind 127.0.0.1", f"port {self.port}", f"dir {self.folder}", 'save ""',
                f"logfile {self.log}", "enable-debug-command local", "set-proc-title no",
                *map(" ".join, AT_ONCE.items()),
                *module, *map(as_named_here, self.config)]

    def start(self):
        for _ in range(5):  # the port may be taken between free_port() and now
            self.port = free_port()
            if self.start_once():
                return
            if "Address already in use" not in self.text():
                break
        raise NoStart(self.text())

    def start_once(self):
        self.log.write_text("")
        # the configuration comes from standard input: so the command line, from which
        # entropy_preload.c draws, is the same in every run
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", PROGRAM, "-"], stdin=subprocess.PIPE,
            stdout=open(self.folder + "/out", "w"), stderr=subprocess.STDOUT, env=environment())
        self.process.stdin.write("\n".join(self.words()).encode())
        self.process.stdin.close()
        until(lambda: "Ready to accept" in self.text() or self.process.poll() is not None)
        return self.process.poll() is None

    def text(self):
        """What it wrote to its log, and else."""
        return self.log.read_text(errors="replace") + \
            pathlib.Path(self.folder, "out").read_text(errors="replace")

    def talk(self, protocol=2):
        self.talks.append(Talk(self.port, protocol))
        return self.talks[-1]

    def stop(self, signal_=signal.SIGKILL):
        for talk in self.talks:
            talk.close()
        self.talks = []
        if self.process:
            self.process.send_signal(signal_)
            self.process.wait(ENOUGH_S)
        self.process = None

    def restart(self, signal_=signal.SIGTERM):
        self.stop(signal_)
        self.start()

    def is_well(self):
        """Tells whether it runs, and has met no fault of memory (sanitizers say so)."""
        return self.process.poll() is None and \
            not re.search("BUG REPORT|ERROR: .*Sanitizer|runtime error", self.text())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        well = self.process is None or self.is_well()
        text = self.text()
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert well, text[-10000:]


# ---- Clients --------------------------------------------------------------------------------


class Error(str):
    """An error that is the reply, or an element of it."""


class Simple(str):
    """+OK"""


class Null(str):
    """A null, as it came: _, $-1 or *-1."""


class Map(list):
    """Keys and values, in turn."""

    def dict(self):
        return dict(zip(self[::2], self[1::2]))


class Push(list):
    """What a server sends without being asked."""


def escaped(data):
    return data.decode("latin-1").encode("unicode_escape").decode()


def show(value):
    """A reply in one line: its elements as they come, #t :5 ,0.5 $bytes +OK -ERR ..., in brackets
    if it is an array, in braces if it is a map."""
    if isinstance(value, bool):
        return "#t" if value else "#f"
    if isinstance(value, Null):
        return str(value)
    if isinstance(value, (Error, Simple)):
        return ("-" if isinstance(value, Error) else "+") + value
    if isinstance(value, list):
        ends = "{}" if isinstance(value, Map) else "[]"
        return ends[0] + ", ".join(map(show, value)) + ends[1]
    return {int: ":%d", float: ",%r"}[type(value)] % value if isinstance(value, (int, float)) \
        else "$" + escaped(value)


def in_resp2(text):
    """The same reply in RESP2, of a text that says it in RESP3."""
    for new, old in ("#t", ":1"), ("#f", ":0"), ("{", "["), ("}", "]"):
        text = text.replace(new, old)
    return re.sub(r"(?<![^\[ ])_(?![^\],])", "$-1", text)


def as_bytes(word):
    return word if isinstance(word, bytes) else str(word).encode()


def encode(words):
    parts = [b"*%d\r\n" % len(words)]
    for word in map(as_bytes, words):
        parts += b"$%d\r\n" % len(word), word, b"\r\n"
    return b"".join(parts)


def words_of(command):
    """The words of a command: of a text with spaces between them, or of a list."""
    if isinstance(command, str):
        return as_named_here(command).split()
    if command[0] == "CONFIG":
        return [as_named_here(str(word)) for word in command]
    return list(command)


class Talk:
    """A connection that speaks RESP2 or RESP3."""

    def __init__(self, port, protocol=2):
        self.protocol = protocol
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=300)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb", 1 << 16)
        self.pushes = []
        if protocol == 3:
            self.get("HELLO 3")

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, command):
        self.socket.sendall(encode(words_of(command)))

    def read_one(self):
        line = self.file.readline()
        assert line.endswith(b"\r\n"), "the server has closed the connection"
        kind, rest = line[:1], line[1:-2]
        if kind == b":":
            return int(rest)
        if kind in b"#":
            return rest == b"t"
        if kind == b",":
            return float(rest)
        if kind == b"_" or rest == b"-1":
            return Null(line[:-2].decode())
        if kind in b"+-":
            return (Simple if kind == b"+" else Error)(rest.decode())
        if kind in b"$=":
            return self.file.read(int(rest) + 2)[:-2]
        kinds = {b"*": list, b"~": list, b"%": Map, b">": Push}
        times = 2 if kind == b"%" else 1
        return kinds[kind](self.read_one() for _ in range(times * int(rest)))

    def read(self):
        while True:
            value = self.read_one()
            if not isinstance(value, Push):
                return value
            self.pushes.append(value)

    def push(self):
        """The next thing that the server sends unasked."""
        if not self.pushes:
            self.pushes.append(self.read_one())
        return self.pushes.pop(0)

    def get(self, command):
        """The reply: int, bool, float, bytes, list, or one of the classes above."""
        self.send(command)
        return self.read()

    def many(self, commands):
        """The replies to commands that are sent at once."""
        commands = list(commands)
        self.socket.sendall(b"".join(encode(words_of(c)) for c in commands))
        return [self.read() for _ in commands]

    def ok(self, command):
        """The reply, which must be no error."""
        reply = self.get(command)
        assert not isinstance(reply, Error), f"{command}: {reply}"
        return reply

    def says(self, command, expected):
        """Asserts what the reply is, as show() writes it in RESP3."""
        got = show(self.get(command))
        assert got == self.said(expected), f"RESP{self.protocol}: {command}"

    def said(self, text):
        return text if self.protocol == 3 else in_resp2(text)

    def info(self, key, family="BF"):
        """All that BF.INFO or CF.INFO tell, by name."""
        return Map(self.ok([family + ".INFO", key, "ALL"])).dict()

    def digest(self):
        return self.ok("DEBUG DIGEST")

    def answers(self, before, items):
        """Sends one command with many items of the same length, reads an array of answers that
        are one digit each, and returns them as text, faster than get()."""
        length = len(items[0])
        head = b"\r\n$%d\r\n" % length
        self.socket.sendall(b"*%d\r\n" % (len(before) + len(items))
                            + encode(before).split(b"\r\n", 1)[1]
                            + (head + head.join(items) + b"\r\n")[2:])
        line = self.file.readline()
        assert line == b"*%d\r\n" % len(items), line
        text = self.file.read(4 * len(items)).decode()
        assert text.count("\r\n") == len(items), text[:1000]
        return text[1::4]
