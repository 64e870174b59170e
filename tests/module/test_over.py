"""What goes over what clients know: large capacities, windows, SHRINK, MERGE, more of INFO."""
import re
import time

import pytest

from contract import CAPACITY_MOST, NOT_FOUND, WRONGTYPE, refuses
from servers import Error, Server, rng, show, until

NO_MEMORY = "-ERR Insufficient memory to create filter"
DIFFER = ("-ERR filters differ in size or secret: merge only copies of one filter (COPY it before "
          "items are added)")
BREAKS = "-ERR the union would break the error rate"
COPIES = "-ERR no room for one more copy of this item, of which 8 are the most"


def items(n, name="items"):
    base = rng(name).getrandbits(40)
    return [b"%014x" % (base + i) for i in range(n)]


def number(value):
    """A double as it came, in either protocol."""
    return float(value)


# ---- Large ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [
    f"BF.RESERVE f .01 {CAPACITY_MOST}", f"BF.RESERVE f .01 {CAPACITY_MOST} NONSCALING",
    f"BF.RESERVE f .000001 {CAPACITY_MOST} EXPANSION 32768", f"CF.RESERVE f {CAPACITY_MOST}",
    f"CF.RESERVE f {CAPACITY_MOST} EXPANSION 0",
    f"CF.RESERVE f {CAPACITY_MOST // 2 + 1} EXPANSION 2",
    f"BF.RESERVE f .01 {CAPACITY_MOST // 4} WINDOW 1h",
])
def test_more_than_the_machine_has(talk, command):
    """A server with less than a terabyte refuses at once, and lives."""
    refuses(talk, command, NO_MEMORY)
    talk.says("PING", "+PONG")
    talk.says("BF.ADD f a", "#t")


def test_add_to_a_filter_that_does_not_fit(talk):
    capacity = CAPACITY_MOST
    refuses(talk, f"BF.INSERT f CAPACITY {capacity} ITEMS a", NO_MEMORY)
    refuses(talk, f"CF.INSERT f CAPACITY {capacity} ITEMS a", NO_MEMORY)


def test_more_than_the_old_limit_in_small():
    """2^31 items at a poor rate take some 400 MB, which the kernel does not give until written."""
    with Server() as server:
        talk = server.talk()
        talk.says("BF.RESERVE f .5 2147483648 NONSCALING", "+OK")
        assert talk.info("f")["Capacity"] >= 1 << 31
        talk.says("BF.MADD f a b", "[:1, :1]")
        talk.says("BF.MEXISTS f a b", "[:1, :1]")
        talk.ok("DEL f")


def test_maxmemory(clean):
    talk = clean.talk()
    talk.ok("CONFIG SET maxmemory 64mb")
    refuses(talk, "BF.RESERVE f .01 100000000", NO_MEMORY)
    refuses(talk, "CF.RESERVE f 100000000", NO_MEMORY)
    talk.says("BF.RESERVE f .01 1000000", "+OK")
    talk.ok("CONFIG SET maxmemory 0")


def test_growth_that_maxmemory_forbids(clean):
    """An add that needs a layer for which there is no room is refused and changes nothing."""
    talk = clean.talk()
    talk.ok("BF.RESERVE f .01 20000 EXPANSION 8000")  # the second layer would take 300 MB
    talk.ok("CONFIG SET maxmemory 100mb")
    reply = talk.get(["BF.MADD", "f", *range(30000)])
    assert show(reply[-1]) == "-ERR problem inserting into filter"
    added = sum(reply[:-1])
    assert added >= 20000
    assert talk.ok("BF.CARD f") == added
    assert talk.ok(["BF.MEXISTS", "f", *range(len(reply) - 1)]) == [1] * (len(reply) - 1)
    refuses(talk, "BF.ADD f new", "-ERR problem inserting into filter")
    assert talk.info("f")["Number of filters"] == 1
    talk.ok("CONFIG SET maxmemory 0")


def test_growth_of_a_cuckoo_filter_that_maxmemory_forbids(clean):
    talk = clean.talk()
    talk.ok("CF.RESERVE f 20000 EXPANSION 8000")
    talk.ok("CONFIG SET maxmemory 100mb")
    answers = talk.get(["CF.INSERT", "f", "ITEMS", *range(30000)])
    assert set(answers) == {1, -1} and answers[:20000] == [1] * 20000
    refuses(talk, "CF.ADD f new", "-ERR Insufficient memory")
    there = talk.ok(["CF.MEXISTS", "f", *range(30000)])
    assert all(found or added == -1 for found, added in zip(there, answers))
    assert talk.info("f", "CF")["Number of filters"] == 1
    talk.ok("CONFIG SET maxmemory 0")


@pytest.mark.parametrize("rate", [".3", ".5", ".9", ".999999", "1e-9"])
def test_extreme_rates(talk2, rate):
    """A filter keeps what was asked, or more."""
    talk2.ok(f"BF.RESERVE f {rate} 1000")
    inside = items(3000)
    talk2.answers(["BF.MADD", "f"], inside)
    assert talk2.answers(["BF.MEXISTS", "f"], inside) == "1" * 3000
    wrong = talk2.answers(["BF.MEXISTS", "f"], items(10000, "outside")).count("1")
    mean = 10000 * float(rate)
    assert wrong <= mean + 6.5 * mean ** .5
    assert number(talk2.info("f")["Error rate asked"]) <= float(rate) * 1.0001


def test_a_rate_that_no_filter_has(talk):
    refuses(talk, "BF.RESERVE f 1e-300 100", "-ERR could not create filter")
    refuses(talk, "BF.INSERT f ERROR 1e-300 ITEMS a", "-ERR could not create filter")
    refuses(talk, "CF.RESERVE f 100 ERROR 1e-300", "-ERR could not create filter")


# ---- Windows --------------------------------------------------------------------------------


@pytest.mark.parametrize("duration, ms", [
    ("500ms", 500), ("90", 90_000), ("90s", 90_000), ("15m", 900_000), ("24h", 86_400_000),
    ("7d", 604_800_000), ("7D", 604_800_000), ("1MS", 1),
])
def test_durations(talk, duration, ms):
    talk.says(f"BF.RESERVE f .01 1000 WINDOW {duration}", "+OK")
    assert talk.info("f")["Window"] == ms
    talk.says("BF.ADD f a", "#t")


@pytest.mark.parametrize("words", ["WINDOW", "WINDOW 0", "WINDOW 0s", "WINDOW -1", "WINDOW x",
                                   "WINDOW s", "WINDOW 1.5s", "WINDOW 1w", "WINDOW 1 s",
                                   "WINDOW 99999999999999999999", "WINDOW 1s NONSCALING"])
def test_bad_windows(talk, words):
    before = talk.digest()
    assert isinstance(talk.get("BF.RESERVE f .01 1000 " + words), Error)
    assert talk.digest() == before


def test_window_in_any_order(talk2):
    talk2.says("BF.RESERVE a .01 1000 WINDOW 1h EXPANSION 4", "+OK")
    talk2.says("BF.RESERVE b .01 1000 expansion 4 window 1h", "+OK")
    a, b = talk2.info("a"), talk2.info("b")
    assert a == b and a["Window"] == 3_600_000


def test_window_forgets(talk):
    """What was added is there for the window, and some time later it is not."""
    talk.ok("BF.RESERVE f .0001 1000 WINDOW 600ms")
    begin = time.monotonic()
    talk.says("BF.MADD f a b", "[#t, #t]")
    answer = show(talk.get("BF.MEXISTS f a b"))
    if time.monotonic() - begin < 0.6:
        assert answer == talk.said("[#t, #t]")
    until(lambda: show(talk.get("BF.MEXISTS f a b")) == talk.said("[#f, #f]"))
    assert time.monotonic() - begin > 0.55
    talk.says("BF.ADD f a", "#t")


def test_questions_do_not_change_a_window(talk2):
    talk2.ok("BF.RESERVE f .0001 1000 WINDOW 50ms")
    talk2.ok("BF.ADD f a")
    before = talk2.digest()
    until(lambda: talk2.ok("BF.EXISTS f a") == 0)
    talk2.ok("BF.INFO f")
    assert talk2.digest() == before


def test_window_renews(talk2):
    """An item that is added again and again is never forgotten."""
    talk2.ok("BF.RESERVE f .0001 1000 WINDOW 1s")
    talk2.says("BF.ADD f a", ":1")
    end = time.monotonic() + 1.6
    last = time.monotonic()
    while time.monotonic() < end:
        now = talk2.ok("BF.ADD f a")
        pause, last = time.monotonic() - last, time.monotonic()
        assert now == 0 or pause > 0.9
        time.sleep(0.05)
    until(lambda: talk2.ok("BF.EXISTS f a") == 0)


def test_window_keeps_its_time():
    """The time of a window goes on while the server is down."""
    with Server() as server:
        talk = server.talk()
        talk.ok("BF.RESERVE short .0001 1000 WINDOW 100ms")
        talk.ok("BF.RESERVE long .0001 1000 WINDOW 1h")
        talk.ok("BF.ADD short a")
        talk.ok("BF.ADD long a")
        talk.ok("SAVE")
        server.restart()
        talk = server.talk()
        talk.says("BF.EXISTS long a", ":1")
        until(lambda: talk.ok("BF.EXISTS short a") == 0)


def test_window_in_a_transaction(talk2):
    talk2.ok("BF.RESERVE f .0001 1000 WINDOW 1h")
    talk2.ok("MULTI")
    talk2.ok("BF.ADD f a")
    talk2.ok("BF.EXISTS f a")
    talk2.says("EXEC", "[:1, :1]")


# ---- Shrink ---------------------------------------------------------------------------------


@pytest.mark.parametrize("options", ["", "NONSCALING"])
def test_shrink(talk2, options):
    """A filter of a million with a thousand items becomes much smaller, and keeps its rate."""
    talk2.ok("BF.RESERVE f .01 1000000 " + options)
    inside = items(1000)
    talk2.ok(["BF.MADD", "f", *inside])
    before = talk2.info("f")
    freed = talk2.ok("BF.SHRINK f")
    after = talk2.info("f")
    assert freed > before["Size"] // 2
    assert after["Size"] == before["Size"] - freed
    assert after["Number of items inserted"] == before["Number of items inserted"]
    assert "1" * 1000 == talk2.answers(["BF.MEXISTS", "f"], inside)
    wrong = talk2.answers(["BF.MEXISTS", "f"], items(100000, "outside")).count("1")
    assert wrong <= 1000 + 6.5 * 1000 ** .5
    digest = talk2.digest()
    talk2.says("BF.SHRINK f", ":0")
    assert talk2.digest() == digest


def test_shrink_to_a_rate(talk2):
    talk2.ok("BF.RESERVE f .0001 100000")
    inside = items(100000)
    talk2.answers(["BF.MADD", "f"], inside)
    size = talk2.info("f")["Size"]
    freed = talk2.ok("BF.SHRINK f ERROR .1")
    assert freed > size // 4
    assert "1" * 100000 == talk2.answers(["BF.MEXISTS", "f"], inside)
    wrong = talk2.answers(["BF.MEXISTS", "f"], items(100000, "outside")).count("1")
    assert wrong <= 10000 + 6.5 * 10000 ** .5


def test_shrunk_filters_go_on(talk2):
    talk2.ok("BF.RESERVE f .01 100000")
    talk2.answers(["BF.MADD", "f"], items(1000))
    talk2.ok("BF.SHRINK f")
    more = items(20000, "more")
    talk2.answers(["BF.MADD", "f"], more)
    assert "1" * 20000 == talk2.answers(["BF.MEXISTS", "f"], more)
    wrong = talk2.answers(["BF.MEXISTS", "f"], items(100000, "outside")).count("1")
    assert wrong <= 1000 + 6.5 * 1000 ** .5


def test_shrink_is_refused(talk):
    talk.ok("BF.ADD f a")
    talk.ok("CF.ADD c a")
    talk.ok("SET s x")
    refuses(talk, "BF.SHRINK n", NOT_FOUND)
    refuses(talk, "BF.SHRINK s", WRONGTYPE)
    refuses(talk, "BF.SHRINK c", WRONGTYPE)
    for words in "ERROR x", "ERROR 0", "ERROR 1", "ERROR -1", "WHAT .1", "ERROR nan":
        before = talk.digest()
        assert isinstance(talk.get("BF.SHRINK f " + words), Error), words
        assert talk.digest() == before
    talk.ok("BF.RESERVE full .01 1000 NONSCALING")
    talk.get(["BF.MADD", "full", *range(2000)])
    refuses(talk, "BF.SHRINK full", ":0")
    refuses(talk, "BF.SHRINK full ERROR .000001", ":0")  # at a stricter rate it is not smaller


# ---- Merge ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", ["", "NONSCALING"])
def test_merge(talk2, options):
    talk2.ok("BF.RESERVE a .01 10000 " + options)
    talk2.ok("COPY a b")
    talk2.ok("COPY a c")
    parts = {key: items(2000, key) for key in "abc"}
    for key, part in parts.items():
        talk2.answers(["BF.MADD", key], part)
    talk2.says("BF.MERGE d a b c", "+OK")
    talk2.says("BF.MERGE a b", "+OK")
    for key, inside in ("d", "abc"), ("a", "ab"), ("b", "b"):
        for part in inside:
            assert "1" * 2000 == talk2.answers(["BF.MEXISTS", key], parts[part])
    assert talk2.answers(["BF.MEXISTS", "a"], parts["c"]).count("1") < 100
    told = talk2.ok("BF.CARD d")
    assert 5500 <= told <= 6500
    wrong = talk2.answers(["BF.MEXISTS", "d"], items(100000, "outside")).count("1")
    assert wrong <= 1000 + 6.5 * 1000 ** .5


def test_merge_with_itself(talk):
    talk.ok("BF.MADD a x y")
    talk.says("BF.MERGE a a", "+OK")
    talk.says("BF.MEXISTS a x y z", "[#t, #t, #f]")
    talk.says("BF.MERGE b a a", "+OK")
    talk.says("BF.MEXISTS b x y z", "[#t, #t, #f]")


def test_merge_keeps_the_time_to_live(talk2):
    talk2.ok("BF.ADD a x")
    talk2.ok("COPY a b")
    talk2.ok("EXPIRE a 10000")
    talk2.says("BF.MERGE a b", "+OK")
    assert talk2.ok("TTL a") > 0


def test_merge_is_refused(talk):
    talk.ok("BF.ADD a x")
    talk.ok("BF.ADD b y")
    talk.ok("CF.ADD c x")
    talk.ok("SET s x")
    talk.ok("BF.RESERVE d .01 10000")
    refuses(talk, "BF.MERGE a b", DIFFER)  # of another secret
    refuses(talk, "BF.MERGE a d", DIFFER)
    refuses(talk, "BF.MERGE n a b", DIFFER)
    refuses(talk, "BF.MERGE a n", NOT_FOUND)
    refuses(talk, "BF.MERGE a a n", NOT_FOUND)
    refuses(talk, "BF.MERGE a c", WRONGTYPE)
    refuses(talk, "BF.MERGE a a s", WRONGTYPE)
    refuses(talk, "BF.MERGE c a", WRONGTYPE)
    refuses(talk, "BF.MERGE s a", WRONGTYPE)


def test_merge_that_would_break_the_rate(talk2):
    talk2.ok("BF.RESERVE a .01 1000 NONSCALING")
    keys = "bcdefgh"
    for key in keys:
        talk2.ok(f"COPY a {key}")
    for key in keys:
        talk2.ok(["BF.MADD", key, *items(1000, key)])
    refuses(talk2, "BF.MERGE a " + " ".join(keys), BREAKS)
    refuses(talk2, "BF.MERGE n " + " ".join(keys), BREAKS)


# ---- Cuckoo filters -------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [".1", ".01", ".001", ".0001", ".000001"])
@pytest.mark.parametrize("expansion", [0, 1, 2])
def test_rate_of_a_cuckoo_filter(talk2, rate, expansion):
    talk2.says(f"CF.RESERVE f 10000 ERROR {rate} EXPANSION {expansion}", "+OK")
    info = talk2.info("f", "CF")
    assert number(info["Error rate asked"]) <= float(rate) * 1.0001
    inside = items(10000)
    assert talk2.answers(["CF.INSERT", "f", "ITEMS"], inside) == "1" * 10000
    assert talk2.answers(["CF.MEXISTS", "f"], inside) == "1" * 10000
    wrong = talk2.answers(["CF.MEXISTS", "f"], items(100000, "outside")).count("1")
    mean = 100000 * float(rate)
    assert wrong <= mean + 6.5 * mean ** .5 + 4


def test_a_stricter_rate_takes_more_memory(talk2):
    for i, rate in enumerate((".1", ".001", ".000001")):
        talk2.ok(f"CF.RESERVE f{i} 100000 ERROR {rate}")
    sizes = [talk2.info(f"f{i}", "CF")["Size"] for i in range(3)]
    assert sizes[0] < sizes[1] < sizes[2]


@pytest.mark.parametrize("words", ["ERROR 0", "ERROR 1", "ERROR x", "ERROR -1", "ERROR nan"])
def test_bad_rates_of_a_cuckoo_filter(talk, words):
    assert isinstance(talk.get("CF.RESERVE f 1000 " + words), Error)
    talk.says("EXISTS f", ":0")


@pytest.mark.parametrize("make", ["", "CF.RESERVE f 1000", "CF.RESERVE f 1000 EXPANSION 0",
                                  "CF.RESERVE f 1000 EXPANSION 4"])
def test_ninth_copy(talk, make):
    if make:
        talk.ok(make)
    for _ in range(8):
        talk.says("CF.ADD f a", "#t")
    talk.says("CF.COUNT f a", ":8")
    size = talk.info("f", "CF")["Size"]
    for _ in range(125):
        refuses(talk, "CF.ADD f a", COPIES)
    assert talk.info("f", "CF")["Size"] == size
    talk.says("CF.ADD f b", "#t")
    failed = "#f" if talk.protocol == 3 else ":-1"
    talk.says("CF.INSERT f ITEMS a c a", f"[{failed}, #t, {failed}]")
    talk.says("CF.ADDNX f a", "#f")
    talk.says("CF.DEL f a", "#t")
    talk.says("CF.ADD f a", "#t")
    for _ in range(8):
        talk.says("CF.DEL f a", "#t")
    talk.says("CF.DEL f a", "#f")


def test_copies_take_no_room_of_others(talk2):
    """125 copies of one item fill its two buckets.  Of others only those are refused that want
    just these two: one in a thousand times as many."""
    talk2.ok("CF.RESERVE f 10000 EXPANSION 0")
    talk2.get(["CF.INSERT", "f", "ITEMS", *["same"] * 125])
    added = talk2.ok(["CF.INSERT", "f", "ITEMS", *items(9990)])
    assert added.count(1) >= 9990 - 5


# ---- What they tell -------------------------------------------------------------------------


def test_more_fields(talk):
    talk.ok("BF.RESERVE f .01 1000")
    talk.ok("BF.RESERVE w .01 1000 WINDOW 10s")
    talk.ok("CF.RESERVE c 1000")
    talk.ok("CF.ADD e a")
    for family, key in ("BF", "f"), ("BF", "w"), ("CF", "c"), ("CF", "e"):
        talk.ok([family + ".ADD", key, "b"])
        info = talk.info(key, family)
        for name in "Bits per item", "Error rate asked", "Error rate now":
            assert type(info[name]) is (float if talk.protocol == 3 else bytes)
        assert 0 <= number(info["Error rate now"]) <= number(info["Error rate asked"]) < 1
        assert number(info["Bits per item"]) > 1
        assert info["Hash"] == b"sip (secret)"
        assert ("Window" in info) == (key == "w")


def test_bits_per_item(talk2):
    talk2.ok("BF.RESERVE f .01 10000")
    talk2.answers(["BF.MADD", "f"], items(10000))
    info = talk2.info("f")
    told = 8 * info["Size"] / info["Number of items inserted"]
    assert abs(number(info["Bits per item"]) - told) < .01 * told


def test_rate_now(talk2):
    """The rate that INFO tells is the one that is measured."""
    talk2.ok("BF.RESERVE f .02 20000")
    talk2.answers(["BF.MADD", "f"], items(20000))
    told = number(talk2.info("f")["Error rate now"])
    wrong = talk2.answers(["BF.MEXISTS", "f"], items(100000, "outside")).count("1")
    assert .2 * told * 100000 < wrong < 1.5 * told * 100000 + 100


def test_no_command_shows_the_secret(talk2):
    """Two filters that differ in nothing but the secret tell the same."""
    for key in "fg":
        talk2.ok(f"BF.RESERVE {key} .01 100")
    for command in "BF.INFO {}", "BF.INFO {} ALL", "BF.DEBUG {}", "BF.CARD {}":
        assert talk2.get(command.format("f")) == talk2.get(command.format("g"))


def test_internal_commands(talk):
    secret = "00112233445566778899aabbccddeeff"
    for key in "fg":
        talk.says(f"PERHAPS.CREATE {key} BF {secret} 100 0.01 2 0 0 0 0", "+OK")
        talk.says(f"BF.MADD {key} a b", "[#t, #t]")
    assert talk.get("DEBUG DIGEST-VALUE f") == talk.get("DEBUG DIGEST-VALUE g")
    talk.says("BF.MERGE f g", "+OK")
    refuses(talk, f"PERHAPS.CREATE f BF {secret} 100 0.01 2 0 0 0 0", "-ERR item exists")
    for words in ("XX {s} 100 0.01 2 0 0 0 0", "BF {s}0 100 0.01 2 0 0 0 0",
                  "BF x 100 0.01 2 0 0 0 0", "BF {s} 0 0.01 2 0 0 0 0",
                  "BF {s} 100 nan 2 0 0 0 0", "BF {s} 100 -1 2 0 0 0 0",
                  "BF {s} 100 0 2 0 0 0 0", "BF {s} 100 1e300 2 0 0 0 0",
                  "BF {s} 100 0.01 -1 0 0 0 0", "BF {s} 100 0.01 2 2 0 0 0",
                  "BF {s} 100 0.01 2 0 -5 0 0", "CF {s} 100 -0.5 2 1 0 0 0",
                  "BF {s} 100 0.01 2 0 9223372036854775807 0 0", "CF {s} 100 0.01 1 1 99 2 20"):
        reply = talk.get("PERHAPS.CREATE n " + words.format(s=secret))
        # what makes a filter makes one that works
        if not isinstance(reply, Error):
            family = words[:2]
            talk.says(f"{family}.ADD n a", "#t")
            talk.says(f"{family}.EXISTS n a", "#t")
            talk.ok("DEL n")


def test_advance(talk2):
    talk2.ok("BF.RESERVE w .0001 1000 WINDOW 1h")
    talk2.ok("BF.ADD w a")
    talk2.says("PERHAPS.ADVANCE w 1", "+OK")  # the past: nothing is forgotten
    talk2.says("BF.EXISTS w a", ":1")
    now = int(talk2.ok("TIME")[0])
    talk2.says(f"PERHAPS.ADVANCE w {(now + 7200) * 1000}",
               "-ERR the time is further ahead of the server's clock than the window is long")
    talk2.says("BF.EXISTS w a", ":1")
    talk2.ok("BF.RESERVE v .0001 1000 WINDOW 400ms")
    talk2.ok("BF.ADD v a")
    now = talk2.ok("TIME")
    now = int(now[0]) * 1000 + int(now[1]) // 1000
    talk2.says(f"PERHAPS.ADVANCE v {now + 300}", "+OK")
    talk2.says(f"PERHAPS.ADVANCE v {now + 100}", "+OK")  # back again
    talk2.says("BF.EXISTS v a", ":1")
    time.sleep(.7)
    talk2.says("BF.EXISTS v a", ":0")
    talk2.says("BF.ADD v a", ":1")
    talk2.says("BF.EXISTS v a", ":1")
    for words in "n 5", "w x", "w 0", "w -1", "w 9223372036854775807":
        assert isinstance(talk2.get("PERHAPS.ADVANCE " + words), Error)
    talk2.ok("BF.ADD f a")
    talk2.says("PERHAPS.ADVANCE f 5", "+OK")


def test_secrets_are_not_in_the_slow_log(talk2):
    """Nor are they in what MONITOR and the slow log keep of a command of users."""
    talk2.ok("CONFIG SET slowlog-log-slower-than 0")
    talk2.ok("SLOWLOG RESET")
    talk2.ok("BF.ADD f a")
    text = show(talk2.ok("SLOWLOG GET 100"))
    talk2.ok("CONFIG SET slowlog-log-slower-than 10000")
    assert "PERHAPS.CREATE" not in text and not re.search("[0-9a-f]{32}", text)
