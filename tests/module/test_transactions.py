"""Filters among the other keys: transactions, scripts, expiry, names, events, tracking."""
import pytest

from servers import Error, Null, Push, Server, show, until

MAKE = ["BF.RESERVE f .001 100", "CF.RESERVE c 1000", "BF.MADD f a b", "CF.INSERT c ITEMS a b b"]


def make(talk):
    for command in MAKE:
        talk.ok(command)


# ---- Transactions ---------------------------------------------------------------------------


def test_multi(talk):
    talk.says("MULTI", "+OK")
    for command in "BF.ADD f a", "BF.MADD f a b", "BF.EXISTS f b", "CF.ADD c x", "CF.COUNT c x", \
            "BF.ADD c x", "BF.CARD f":
        talk.says(command, "+QUEUED")
    talk.says("EXEC", "[#t, [#f, #t], #t, #t, :1, -WRONGTYPE Operation against a key holding the "
                      "wrong kind of value, :2]")


def test_multi_with_an_unknown_command(talk2):
    talk2.ok("MULTI")
    talk2.ok("BF.ADD f a")
    assert isinstance(talk2.get("BF.NONE f a"), Error)
    assert isinstance(talk2.get("EXEC"), Error)
    talk2.says("EXISTS f", ":0")


@pytest.mark.parametrize("change, is_change", [
    ("BF.ADD f new", True), ("BF.MADD f new a", True), ("BF.INSERT f ITEMS new", True),
    ("CF.ADD c a", True), ("CF.DEL c a", True), ("CF.INSERTNX c ITEMS a new", True),
    ("DEL f", True),
    ("BF.ADD f a", False), ("BF.MADD f a b", False), ("BF.EXISTS f new", False),
    ("BF.INFO f", False), ("BF.SCANDUMP f 0", False), ("CF.ADDNX c a", False),
    ("CF.DEL c absent", False), ("CF.INSERTNX c ITEMS a b", False), ("CF.COUNT c a", False),
    ("CF.COMPACT c", False), ("BF.RESERVE f .01 100", False),
])
def test_watch(clean, change, is_change):
    one, other = clean.talk(), clean.talk()
    make(one)
    one.ok("WATCH f c")
    other.get(change)
    one.ok("MULTI")
    one.ok("PING")
    assert isinstance(one.get("EXEC"), Null) == is_change


# ---- Scripts --------------------------------------------------------------------------------

SCRIPT = """
redis.call('BF.RESERVE', KEYS[1], '0.01', '100')
local n = 0
for i = 1, 500 do
    n = n + redis.call('BF.ADD', KEYS[1], 'item' .. i)
    redis.call('BF.ADD', KEYS[1], 'item1')
    redis.call('CF.ADDNX', KEYS[2], 'item' .. (i % 50))
end
return {n, redis.call('BF.EXISTS', KEYS[1], 'item1'), redis.call('CF.COUNT', KEYS[2], 'item7'),
        redis.pcall('BF.RESERVE', KEYS[1], '0.01', '100')}
"""


def test_script(talk):
    reply = talk.get(["EVAL", SCRIPT, "2", "f", "c"])
    assert 490 <= reply[0] <= 500
    assert reply[1:3] == [1, 1]
    assert show(reply[3]) == "-ERR item exists"
    assert talk.ok("BF.CARD f") == reply[0]


def test_script_with_resp3(talk):
    script = "redis.setresp(3); return type(redis.call('BF.ADD', KEYS[1], 'a'))"
    talk.says(["EVAL", script, "1", "f"], "$boolean")
    script = ("redis.setresp(3); for name, value in pairs(redis.call('BF.INFO', KEYS[1])['map']) do"
              " if name['ok'] == 'Expansion rate' then return value end end")
    talk.says(["EVAL", script, "1", "f"], ":2")


def test_script_that_only_reads(talk):
    talk.ok("BF.ADD f a")
    talk.says(["EVAL_RO", "return redis.call('BF.EXISTS', KEYS[1], 'a')", "1", "f"], ":1")
    reply = talk.get(["EVAL_RO", "return redis.call('BF.ADD', KEYS[1], 'b')", "1", "f"])
    assert isinstance(reply, Error) and "read-only" in reply
    talk.says("BF.EXISTS f b", "#f")


def test_function(talk2):
    code = ("#!lua name=lib\nredis.register_function('seen', function(keys, args) return "
            "redis.call('BF.MADD', keys[1], unpack(args)) end)")
    talk2.ok(["FUNCTION", "LOAD", code])
    talk2.says("FCALL seen 1 f a b a", "[:1, :1, :0]")
    talk2.ok("FUNCTION FLUSH")


def test_effects_are_what_is_kept():
    """What scripts and transactions did is in the AOF, as it was."""
    with Server("appendonly yes", "aof-use-rdb-preamble no", "appendfsync no") as server:
        talk = server.talk()
        talk.ok(["EVAL", SCRIPT, "2", "f", "c"])
        talk.ok("MULTI")
        talk.many([["BF.MADD", "m", *range(i, i + 20)] for i in range(0, 1000, 10)])
        talk.many([["CF.DEL", "c", f"item{i}"] for i in range(40, 60)])
        talk.ok("EXEC")
        talk.ok("CONFIG SET bf.bf-initial-size 5000 bf.bf-error-rate .2")  # no matter afterwards
        before = talk.digest()
        talk.ok("DEBUG LOADAOF")
        assert talk.digest() == before
        assert talk.ok(["BF.MEXISTS", "m", *range(1000)]) == [1] * 1000


# ---- Keys -----------------------------------------------------------------------------------


def test_expiry(talk):
    make(talk)
    talk.says("PEXPIRE f 1", ":1")
    talk.says("EXPIRE c 1000", ":1")
    until(lambda: talk.ok("EXISTS f") == 0)
    talk.says("BF.EXISTS f a", "#f")
    talk.says("BF.CARD f", ":0")
    talk.ok("CF.ADD c z")
    assert 0 < talk.ok("TTL c") <= 1000  # an add keeps it
    talk.says("PERSIST c", ":1")
    talk.says("CF.EXISTS c a", "#t")


def test_rename(talk):
    make(talk)
    talk.ok("RENAME f g")
    talk.ok("RENAME c f")
    talk.says("BF.MEXISTS g a b z", "[#t, #t, #f]")
    talk.says("CF.COUNT f b", ":2")
    talk.says("BF.EXISTS f a", "#f")


@pytest.mark.parametrize("key, add, ask", [("f", "BF.ADD", "BF.EXISTS"),
                                           ("c", "CF.ADD", "CF.EXISTS")])
def test_copy(talk, key, add, ask):
    make(talk)
    talk.says(f"COPY {key} copy", ":1")
    assert talk.get(f"DEBUG DIGEST-VALUE {key}") == talk.get("DEBUG DIGEST-VALUE copy")
    talk.says(f"{add} copy z", "#t")
    talk.says(f"{ask} {key} z", "#f")
    talk.says(f"{add} {key} y", "#t")
    talk.says(f"{ask} copy y", "#f")
    talk.says(f"COPY {key} copy", ":0")
    talk.says(f"COPY {key} copy REPLACE", ":1")
    talk.says(f"{ask} copy y", "#t")
    talk.says(f"COPY {key} {key} DB 1", ":1")
    talk.ok("SELECT 1")
    talk.says(f"{ask} {key} y", "#t")


def test_move(talk2):
    make(talk2)
    talk2.says("MOVE f 1", ":1")
    talk2.says("BF.EXISTS f a", ":0")
    talk2.ok("SELECT 1")
    talk2.says("BF.EXISTS f a", ":1")
    talk2.ok("SWAPDB 0 1")
    talk2.says("CF.EXISTS c a", ":1")


def test_type(talk):
    make(talk)
    talk.says("TYPE f", "+perhapsBF")
    talk.says("TYPE c", "+perhapsCF")
    found = talk.ok("SCAN 0 TYPE perhapsBF COUNT 1000")
    assert found[1] == [b"f"]


def test_object(talk2):
    make(talk2)
    for key in "fc":
        talk2.says(f"OBJECT ENCODING {key}", "$raw")
        talk2.says(f"OBJECT REFCOUNT {key}", ":1")
        assert talk2.ok(f"OBJECT IDLETIME {key}") >= 0


def test_memory_usage(talk2):
    make(talk2)
    talk2.ok("BF.RESERVE big .01 1000000")
    for family, key in ("BF", "f"), ("CF", "c"), ("BF", "big"):
        size, usage = talk2.info(key, family)["Size"], talk2.ok(f"MEMORY USAGE {key}")
        assert size <= usage <= size + 1000
    assert talk2.ok("MEMORY USAGE big") >= 1000000


def test_delete(talk2):
    make(talk2)
    talk2.says("UNLINK f", ":1")
    talk2.says("DEL c", ":1")
    talk2.says("BF.EXISTS f a", ":0")
    talk2.says("CF.EXISTS c a", ":0")
    make(talk2)
    talk2.ok("FLUSHALL ASYNC")
    talk2.says("CF.EXISTS c a", ":0")


def test_set_over_a_filter(talk):
    make(talk)
    talk.ok("SET f x")
    assert isinstance(talk.get("BF.ADD f a"), Error)
    assert isinstance(talk.get("GET c"), Error)
    assert isinstance(talk.get("APPEND c x"), Error)
    talk.says("CF.EXISTS c a", "#t")


def test_digest(talk2):
    make(talk2)
    first = talk2.digest()
    for command in "BF.ADD f a", "BF.EXISTS f a", "CF.ADDNX c a", "BF.INFO f", "CF.COMPACT c":
        talk2.get(command)
        assert talk2.digest() == first, command
    seen = [first]
    for command in "BF.ADD f new", "CF.ADD c new", "CF.DEL c new":
        talk2.ok(command)
        assert talk2.digest() not in seen, command
        seen.append(talk2.digest())


def test_each_filter_has_a_secret_of_its_own(talk2):
    for i in range(20):
        talk2.ok(f"BF.ADD {i} a")
    assert len({talk2.get(f"DEBUG DIGEST-VALUE {i}")[0] for i in range(20)}) == 20


# ---- Events ---------------------------------------------------------------------------------

EVENTS = [  # a command, and what listeners hear
    ("BF.RESERVE f .001 100", "bf.reserve"),
    ("BF.ADD f a", "bf.add"), ("BF.ADD f a", None), ("BF.EXISTS f a", None),
    ("BF.MADD f a b", "bf.madd"), ("BF.MADD f a b", None), ("BF.MEXISTS f a b", None),
    ("BF.INSERT f ITEMS c", "bf.insert"), ("BF.INSERT f ITEMS c", None), ("BF.INFO f", None),
    ("BF.RESERVE f .001 100", None), ("BF.CARD f", None), ("BF.DEBUG f", None),
    ("BF.SCANDUMP f 0", None),
    ("BF.ADD f2 a", "bf.add"), ("BF.MERGE f3 f2", "bf.merge"),
    ("CF.RESERVE c 1000", "cf.reserve"),
    ("CF.ADD c a", "cf.add"), ("CF.ADD c a", "cf.add"), ("CF.ADDNX c a", None),
    ("CF.ADDNX c b", "cf.addnx"), ("CF.INSERT c ITEMS d", "cf.insert"),
    ("CF.INSERTNX c ITEMS d", None), ("CF.INSERTNX c ITEMS d e", "cf.insertnx"),
    ("CF.DEL c a", "cf.del"), ("CF.DEL c absent", None), ("CF.COUNT c a", None),
    ("CF.EXISTS c a", None), ("CF.COMPACT c", None), ("BF.ADD c a", None),
]


def test_events(clean):
    talk, listener = clean.talk(), clean.talk()
    talk.ok("CONFIG SET notify-keyspace-events KEd")
    listener.ok("PSUBSCRIBE __keyevent@0__:*")
    expected = []
    for command, event in EVENTS:
        talk.get(command)
        if event:
            expected.append((event, command.split()[1]))
    talk.ok("PUBLISH __keyevent@0__:end end")
    heard = []
    while not heard or heard[-1][0] != "end":
        message = listener.read()
        heard.append((message[2].decode().split(":", 1)[1], message[3].decode()))
    talk.ok(["CONFIG", "SET", "notify-keyspace-events", ""])
    assert heard[:-1] == expected


# ---- Tracking -------------------------------------------------------------------------------


def invalidated(talk):
    """The keys of the next message that tells a client to forget some."""
    push = talk.push()
    assert isinstance(push, Push) and push[0] == b"invalidate"
    return push[1]


@pytest.mark.parametrize("ask, same, change", [
    ("BF.EXISTS f z", "BF.ADD f a", "BF.ADD f z"),
    ("BF.MEXISTS f z", "BF.MADD f a b", "BF.MADD f z"),
    ("BF.INFO f", "BF.INSERT f ITEMS a", "BF.INSERT f ITEMS z"),
    ("CF.EXISTS c z", "CF.DEL c absent", "CF.ADD c z"),
    ("CF.COUNT c z", "CF.ADDNX c a", "CF.DEL c b"),
])
def test_tracking(clean, ask, same, change):
    """A client that caches answers hears of changes, and only of these."""
    client, other = clean.talk(3), clean.talk()
    make(other)
    client.ok("CLIENT TRACKING ON")
    client.ok(ask)
    other.get(same)
    client.ok("PING")
    assert client.pushes == []
    other.ok(change)
    assert invalidated(client) == [ask.split()[1].encode()]
