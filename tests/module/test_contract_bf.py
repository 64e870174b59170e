"""The BF commands as clients know them: every reply in both protocols, every error."""
import re

import pytest

from contract import (ARITY, CAPACITY_MOST, EXISTS, MB, NOT_FOUND, STRANGE_ITEMS, WORDS, WRONGTYPE,
                      all_refused, bytes_of, dump, of_family, refuses, renamed,
                      wrong_counts)
from servers import Error, Map, Null, Simple, show

RATE_RANGE = "-ERR error rate must be in the range (0.000000, 1.000000)"
CAPACITY_RANGE = f"-ERR capacity must be in the range [1, {CAPACITY_MOST}]"
EXPANSION_RANGE = "-ERR expansion must be in the range [0, 32768]"
CANNOT_EXPAND = "-Nonscaling filters cannot expand"
UNKNOWN = "-Unknown argument received"
FULL = "-ERR non scaling filter is full"


def make_others(talk):
    """Keys of all types: f and full are Bloom filters, c is a cuckoo filter, s is a string."""
    for command in ("BF.RESERVE f .001 100", "BF.ADD f there", "CF.ADD c there", "SET s there",
                    "BF.RESERVE full .01 1 NONSCALING"):
        talk.ok(command)
    talk.ok(["BF.MADD", "full", *range(100)])


# ---- Errors ---------------------------------------------------------------------------------

REFUSED = [
    ("BF.RESERVE n x 100", "-ERR bad error rate"),
    ("BF.RESERVE n .01x 100", "-ERR bad error rate"),
    ("BF.RESERVE n 0 100", RATE_RANGE),
    ("BF.RESERVE n 1 100", RATE_RANGE),
    ("BF.RESERVE n 1e300 100", RATE_RANGE),
    ("BF.RESERVE n -.01 100", RATE_RANGE),
    ("BF.RESERVE n .01 x", "-ERR bad capacity"),
    ("BF.RESERVE n .01 1.5", "-ERR bad capacity"),
    ("BF.RESERVE n .01 9223372036854775808", "-ERR bad capacity"),
    ("BF.RESERVE n .01 0", CAPACITY_RANGE),
    ("BF.RESERVE n .01 -1", CAPACITY_RANGE),
    (f"BF.RESERVE n .01 {CAPACITY_MOST + 1}", CAPACITY_RANGE),
    ("BF.RESERVE n .01 9223372036854775807", CAPACITY_RANGE),
    ("BF.RESERVE n .01 100 EXPANSION", "-ERR no expansion"),
    ("BF.RESERVE n .01 100 NONSCALING EXPANSION", "-ERR no expansion"),
    ("BF.RESERVE n .01 100 EXPANSION x", "-ERR bad expansion"),
    ("BF.RESERVE n .01 100 EXPANSION NONSCALING", "-ERR bad expansion"),
    ("BF.RESERVE n .01 100 EXPANSION -1", EXPANSION_RANGE),
    ("BF.RESERVE n .01 100 EXPANSION 32769", EXPANSION_RANGE),
    ("BF.RESERVE n .01 100 EXPANSION 9223372036854775807", EXPANSION_RANGE),
    ("BF.RESERVE n .01 100 EXPANSION 2 NONSCALING", CANNOT_EXPAND),
    ("BF.RESERVE n .01 100 nonscaling expansion 2", CANNOT_EXPAND),
    ("BF.RESERVE f .01 100", EXISTS),
    ("BF.RESERVE f .001 100", EXISTS),
    ("BF.RESERVE s .01 100", WRONGTYPE),
    ("BF.RESERVE c .01 100", WRONGTYPE),
    ("BF.ADD s a", WRONGTYPE),
    ("BF.ADD c a", WRONGTYPE),
    ("BF.ADD full new", FULL),
    ("BF.MADD s a b", WRONGTYPE),
    ("BF.MADD c a b", WRONGTYPE),
    ("BF.INSERT s ITEMS a", WRONGTYPE),
    ("BF.INSERT c NOCREATE ITEMS a", WRONGTYPE),
    ("BF.INSERT n NOCREATE ITEMS a", NOT_FOUND),
    ("BF.INSERT n NOCREATE CAPACITY 10 ERROR .1 ITEMS a", NOT_FOUND),
    ("BF.INSERT n CAPACITY x ITEMS a", "-Bad capacity"),
    ("BF.INSERT n CAPACITY 0 ITEMS a", "-Bad capacity"),
    ("BF.INSERT n CAPACITY -5 ITEMS a", "-Bad capacity"),
    (f"BF.INSERT n CAPACITY {CAPACITY_MOST + 1} ITEMS a", "-Bad capacity"),
    ("BF.INSERT n CAPACITY ITEMS a", "-Bad capacity"),
    ("BF.INSERT n ERROR x ITEMS a", "-Bad error rate"),
    ("BF.INSERT n ERROR 0 ITEMS a", "-Bad error rate"),
    ("BF.INSERT n ERROR 1 ITEMS a", "-Bad error rate"),
    ("BF.INSERT n ERROR ITEMS a", "-Bad error rate"),
    ("BF.INSERT n EXPANSION x ITEMS a", "-Bad expansion"),
    ("BF.INSERT n EXPANSION -1 ITEMS a", "-Bad expansion"),
    ("BF.INSERT n EXPANSION 32769 ITEMS a", "-Bad expansion"),
    ("BF.INSERT n WHAT ITEMS a", UNKNOWN),
    ("BF.INSERT n CAPACITYS 10 ITEMS a", UNKNOWN),
    ("BF.INSERT n C 10 ITEMS a", UNKNOWN),
    ("BF.INSERT n NON ITEMS a", UNKNOWN),
    ("BF.INSERT n ITEM a b", UNKNOWN),
    ("BF.INSERT f WHAT ITEMS a", UNKNOWN),
    ("BF.INSERT n CAPACITY 10", ARITY),
    ("BF.INSERT n NOCREATE ITEMS", ARITY),
    ("BF.INSERT n CAPACITY 10 ITEMS", ARITY),
    ("BF.INSERT f NOCREATE NONSCALING", ARITY),
    ("BF.INSERT n CAPACITY 10 ERROR", ARITY),
    ("BF.INSERT n NOCREATE EXPANSION", ARITY),
    ("BF.INSERT n NOCREATE CAPACITY", ARITY),
    ("BF.INFO n", NOT_FOUND),
    ("BF.INFO s", WRONGTYPE),
    ("BF.INFO c", WRONGTYPE),
    ("BF.INFO n CAPACITY", NOT_FOUND),
    ("BF.INFO f WHAT", "-Invalid information value"),
    ("BF.INFO f CAPACITYS", "-Invalid information value"),
    ("BF.INFO f CAP", "-Invalid information value"),
    ("BF.INFO f ALL SIZE", ARITY),
    ("BF.INFO n ALL", NOT_FOUND),
    ("BF.INFO f CAPACITY SIZE", ARITY),
    ("BF.CARD s", WRONGTYPE),
    ("BF.CARD c", WRONGTYPE),
    ("BF.DEBUG n", NOT_FOUND),
    ("BF.DEBUG s", WRONGTYPE),
    ("BF.SCANDUMP n 0", NOT_FOUND),
    ("BF.SCANDUMP s 0", WRONGTYPE),
    ("BF.SCANDUMP f x", "-Second argument must be numeric"),
    ("BF.SCANDUMP f 1.5", "-Second argument must be numeric"),
    ("BF.LOADCHUNK n x data", "-ERR Second argument must be numeric"),
    ("BF.LOADCHUNK n 2 data", NOT_FOUND),
    ("BF.LOADCHUNK n 1 data", "-ERR received bad data"),
    ("BF.LOADCHUNK s 1 data", WRONGTYPE),
    ("BF.LOADCHUNK c 2 data", WRONGTYPE),
]


def test_refused(talk):
    make_others(talk)
    all_refused(talk, REFUSED)
    talk.says("EXISTS n", ":0")


@pytest.mark.parametrize("order", ["NONSCALING EXPANSION {}", "EXPANSION {} NONSCALING"])
def test_expansions_beside_nonscaling(talk2, order):
    """Any but 0 are refused for that, also those out of their range."""
    for value in "1.5", "x", "inf", 1 << 63:
        refuses(talk2, f"BF.RESERVE n .01 100 {order.format(value)}", "-ERR bad expansion")
    for value in 1, 32768, 32769, -1, 1 << 32:
        refuses(talk2, f"BF.RESERVE n .01 100 {order.format(value)}", CANNOT_EXPAND)
    talk2.says(f"BF.RESERVE n .01 100 {order.format(0)}", "+OK")


def test_rates_that_no_filter_keeps(talk2):
    for rate in "1e-14", "1e-300", "1e-320":
        refuses(talk2, f"BF.RESERVE n {rate} 100", "-ERR could not create filter")
        refuses(talk2, f"BF.INSERT n ERROR {rate} ITEMS a", "-ERR could not create filter")


@pytest.mark.parametrize("name", of_family("BF"))
def test_arity(talk2, name):
    talk2.ok("BF.ADD k a")
    for command in wrong_counts(name):
        refuses(talk2, command, ARITY)


def test_empty_data_is_no_chunk(talk):
    refuses(talk, ["BF.LOADCHUNK", "n", "1", ""], "-ERR received bad data")
    refuses(talk, ["BF.LOADCHUNK", "n", "0", ""], NOT_FOUND)


def test_chunks_that_no_dump_has(talk):
    talk.ok("BF.ADD f a")
    before = talk.digest()
    for position in 0, 1, 2, 100, 1 << 40, -1, -(1 << 63), (1 << 63) - 1:
        for data in b"", b"junk", b"\0" * 1000:
            reply = talk.get(["BF.LOADCHUNK", "f", position, data])
            assert isinstance(reply, Error) and reply.startswith("ERR "), (position, reply)
    assert talk.digest() == before


def test_positions_that_no_dump_has(talk):
    talk.ok("BF.ADD f a")
    for position in -1, 1 << 50, (1 << 63) - 1, -(1 << 63):
        reply = talk.get(["BF.SCANDUMP", "f", position])
        assert isinstance(reply, Error) or show(reply) in ("[:0, $]", "[:0, _]"), reply


# ---- Options --------------------------------------------------------------------------------


def expansion(talk, key):
    value = talk.info(key)["Expansion rate"]
    return None if isinstance(value, Null) else value


@pytest.mark.parametrize("options, rate", [
    ("", 2), ("EXPANSION 1", 1), ("expansion 32768", 32768), ("Expansion 3", 3),
    ("EXPANSION 0", None), ("NONSCALING", None), ("NonScaling", None),
    ("NONSCALING EXPANSION 0", None), ("EXPANSION 0 NONSCALING", None),
])
def test_reserve_options(talk2, options, rate):
    talk2.says("BF.RESERVE f .01 100 " + options, "+OK")
    assert expansion(talk2, "f") == rate
    assert talk2.info("f")["Capacity"] >= 100


def test_insert_options_in_any_order(talk):
    talk.says("BF.INSERT a CAPACITY 1000 ERROR .1 EXPANSION 4 ITEMS x y", "[#t, #t]")
    talk.says("BF.INSERT b expansion 4 error .1 capacity 1000 items x y", "[#t, #t]")
    talk.says("BF.INSERT c Error 1e-1 Expansion 4 Capacity 1000 Items x y", "[#t, #t]")
    infos = [talk.info(key) for key in "abc"]
    for info in infos:
        assert info["Expansion rate"] == 4
        assert [info[name] for name in ("Capacity", "Size")] == \
            [infos[0][name] for name in ("Capacity", "Size")]
    assert infos[0]["Capacity"] >= 1000


def test_insert_options_that_make_no_difference(talk):
    talk.ok("BF.RESERVE f .01 100")
    before = talk.info("f")["Size"]
    talk.says("BF.INSERT f NONSCALING CAPACITY 100000 ERROR .0001 ITEMS x", "[#t]")
    talk.says("BF.INSERT f NOCREATE ITEMS x z", "[#f, #t]")
    assert talk.info("f")["Size"] == before
    assert expansion(talk, "f") == 2


def test_insert_nonscaling_wins(talk2):
    talk2.says("BF.INSERT a NONSCALING ITEMS x", "[:1]")
    talk2.says("BF.INSERT b NONSCALING EXPANSION 2 ITEMS x", "[:1]")
    talk2.says("BF.INSERT c EXPANSION 2 NONSCALING ITEMS x", "[:1]")
    talk2.says("BF.INSERT d EXPANSION 0 ITEMS x", "[:1]")
    assert [expansion(talk2, key) for key in "abcd"] == [None] * 4


def test_the_last_of_two_options_counts(talk2):
    talk2.says("BF.INSERT f CAPACITY 10 CAPACITY 100000 ITEMS x", "[:1]")
    assert talk2.info("f")["Capacity"] >= 100000


@pytest.mark.parametrize("word", WORDS)
def test_keys_and_items_that_are_words(talk, word):
    talk.says(f"BF.RESERVE {word} .0001 100", "+OK")
    assert expansion(talk, word) == 2
    talk.says(f"BF.ADD {word} {word}", "#t")
    talk.says(f"BF.MADD {word} {word} NONSCALING expansion", "[#f, %s]" % ", ".join(
        "#f" if word == other else "#t" for other in ("NONSCALING", "expansion")))
    talk.ok(f"DEL {word}")
    talk.says(f"BF.INSERT {word} ERROR .0001 ITEMS {word} nocreate EXPANSION 0", "[%s, #t, #t, %s]"
              % ("#t", "#f" if word == "0" else "#t"))
    assert expansion(talk, word) == 2
    talk.says(f"BF.MEXISTS {word} {word} nocreate EXPANSION 0 ITEMSX", "[#t, #t, #t, #t, #f]")


# ---- Adds and questions ---------------------------------------------------------------------


def test_add(talk):
    talk.says("BF.ADD f a", "#t")
    talk.says("BF.ADD f a", "#f")
    talk.says("BF.EXISTS f a", "#t")
    talk.says("BF.EXISTS f b", "#f")
    talk.says("BF.CARD f", ":1")
    talk.says("BF.MEXISTS f b a b a", "[#f, #t, #f, #t]")


def test_add_makes_the_usual_filter(talk2):
    talk2.ok("BF.ADD f a")
    info = talk2.info("f")
    assert 100 <= info["Capacity"] < 300
    assert info["Expansion rate"] == 2
    assert info["Number of filters"] == 1
    assert abs(float(info["Error rate asked"]) - .01) < 1e-9


def test_repeated_items_in_one_command(talk):
    talk.says("BF.MADD f a a b a b", "[#t, #f, #t, #f, #f]")
    talk.says("BF.INSERT f ITEMS b c c", "[#f, #t, #f]")
    talk.says("BF.CARD f", ":3")


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 63, 64, 127, 128, 129, 255, 256, 257, 1000, 5000])
def test_many_items_at_once(talk, n):
    items = [f"item {i}" for i in range(n)]
    talk.ok("BF.RESERVE f .00001 10000")
    talk.says(["BF.MADD", "f", *items], show([True] * n))
    talk.says(["BF.MADD", "f", *items, "new"], show([False] * n + [True]))
    talk.says(["BF.MEXISTS", "f", *items, "other"], show([True] * n + [False]))
    talk.says(["BF.INSERT", "f", "NOCREATE", "ITEMS", *items, "new2"], show([False] * n + [True]))
    talk.says("BF.CARD f", f":{n + 2}")


def test_strange_items(talk):
    talk.ok("BF.RESERVE f .000001 100")
    for item in STRANGE_ITEMS:
        talk.says(["BF.EXISTS", "f", item], "#f")
        talk.says(["BF.ADD", "f", item], "#t")
        talk.says(["BF.ADD", "f", item], "#f")
        talk.says(["BF.EXISTS", "f", item], "#t")
    talk.says(["BF.MEXISTS", "f", *STRANGE_ITEMS, b"\0\0\0"],
              show([True] * len(STRANGE_ITEMS) + [False]))
    talk.says(["BF.MADD", "g", *STRANGE_ITEMS], show([True] * len(STRANGE_ITEMS)))


def test_strange_keys(talk):
    for key in b"", b"\0\xff\r\n", b"k" * MB:
        talk.says(["BF.ADD", key, "a"], "#t")
        talk.says(["BF.EXISTS", key, "a"], "#t")
        talk.says(["BF.CARD", key], ":1")
        talk.says(["BF.RESERVE", key, ".01", "100"], EXISTS)


def test_questions_to_what_is_no_filter(talk):
    make_others(talk)
    for key in "n", "s", "c":
        talk.says(f"BF.EXISTS {key} there", "#f")
        talk.says(f"BF.MEXISTS {key} there b", "[#f, #f]")
    talk.says("BF.CARD n", ":0")
    talk.says("EXISTS n", ":0")


def test_full(talk):
    talk.ok("BF.RESERVE f .01 10 NONSCALING")
    reply = talk.get(["BF.MADD", "f", *range(1000)])
    assert show(reply[-1]) == FULL
    assert not any(isinstance(one, Error) for one in reply[:-1])
    added = sum(reply[:-1])
    assert 10 <= added < 1000 and len(reply) < 1001
    talk.says("BF.CARD f", f":{added}")
    refuses(talk, "BF.ADD f new", FULL)
    talk.says("BF.ADD f 0", "#f")  # that is there, and needs no room
    talk.says("BF.MADD f 0 new 1", f"[#f, {FULL}]")
    talk.says("BF.INSERT f ITEMS 0 1 new", f"[#f, #f, {FULL}]")
    talk.says("BF.EXISTS f 0", "#t")
    assert talk.info("f")["Number of filters"] == 1


def test_growth(talk2):
    talk2.ok("BF.RESERVE f .01 100 EXPANSION 1")
    before = talk2.info("f")
    talk2.ok(["BF.MADD", "f", *range(1000)])
    after = talk2.info("f")
    assert after["Number of filters"] > 3
    assert after["Capacity"] >= 1000 > before["Capacity"]
    assert after["Size"] > before["Size"]
    assert talk2.ok(["BF.MEXISTS", "f", *range(1000)]) == [1] * 1000


def test_growth_has_no_end(talk2):
    talk2.ok("BF.RESERVE f .01 10 EXPANSION 1")
    talk2.ok(["BF.MADD", "f", *range(30000)])
    assert talk2.ok(["BF.MEXISTS", "f", *range(30000)]) == [1] * 30000
    assert talk2.info("f")["Number of filters"] > 32


# ---- What they tell -------------------------------------------------------------------------

FIELDS = ["Capacity", "Size", "Number of filters", "Number of items inserted", "Expansion rate"]
FIELD_WORDS = ["CAPACITY", "SIZE", "FILTERS", "ITEMS", "EXPANSION"]


def test_info(talk):
    talk.ok("BF.RESERVE f .01 100 EXPANSION 3")
    talk.ok("BF.MADD f a b c c")
    reply = talk.get("BF.INFO f")
    assert isinstance(reply, Map) == (talk.protocol == 3)
    assert reply[::2] == FIELDS  # go-redis fails if there are others
    assert all(type(name) is Simple for name in reply[::2])
    assert all(type(value) is int for value in reply[1::2])
    values = dict(zip(FIELDS, reply[1::2]))
    assert values["Capacity"] >= 100 and values["Size"] > 0
    assert [values[name] for name in FIELDS[2:]] == [1, 3, 3]


def test_one_field_of_info(talk):
    talk.ok("BF.MADD f a b c")
    talk.ok("BF.RESERVE g .01 100 NONSCALING")
    for key in "fg":
        whole = talk.info(key)
        for name, word in zip(FIELDS, FIELD_WORDS):
            for way in word, word.lower(), word.title():
                value = show(whole[name])
                expected = "{+%s, %s}" % (name, value) if talk.protocol == 3 else f"[{value}]"
                assert show(talk.get(f"BF.INFO {key} {way}")) == expected


def test_the_rate_alone(talk):
    talk.ok("BF.RESERVE f .125 100")
    for word in "ERROR", "error":
        talk.says(f"BF.INFO f {word}",
                  "{+Error rate asked, ,0.125}" if talk.protocol == 3 else "[$0.125]")


def test_expansion_of_a_nonscaling_filter_is_null(talk):
    talk.ok("BF.RESERVE f .01 100 NONSCALING")
    talk.says("BF.INFO f EXPANSION", "{+Expansion rate, _}" if talk.protocol == 3 else "[_]")


def test_card(talk):
    talk.says("BF.CARD f", ":0")
    talk.ok("BF.RESERVE f .01 100")
    talk.says("BF.CARD f", ":0")
    talk.ok("BF.MADD f a b a")
    talk.says("BF.CARD f", ":2")
    assert talk.info("f")["Number of items inserted"] == 2


def test_debug(talk):
    talk.ok("BF.RESERVE f .01 10")
    talk.ok(["BF.MADD", "f", *range(1000)])
    first, *layers, ours = [line.decode() for line in talk.get("BF.DEBUG f")]
    assert first == "size:%d" % talk.ok("BF.CARD f")
    assert len(layers) == talk.info("f")["Number of filters"] > 1
    sizes = 0
    for line in layers:
        match = re.fullmatch(r"bytes:\d+ bits:\d+ hashes:\d+ hashwidth:64 capacity:\d+ size:(\d+) "
                             r"ratio:[\d.e-]+", line)
        sizes += int(match[1])
    assert first == f"size:{sizes}"
    assert re.fullmatch(r"bits_per_item:[\d.e-]+ error_rate:0.01 error_rate_now:[\d.e-]+ window_ms:0 "
                        r"hash:sip \(secret\)", ours)


# ---- Dumps ----------------------------------------------------------------------------------


def load(talk, key, pieces):
    for position, data in pieces:
        talk.says(["BF.LOADCHUNK", key, position, data], "+OK")


@pytest.mark.parametrize("options, n", [("", 0), ("", 50), ("", 5000), ("NONSCALING", 50),
                                        ("EXPANSION 1", 1000)])
def test_dump(talk, options, n):
    talk.ok("BF.RESERVE f .001 100 " + options)
    if n:
        talk.ok(["BF.MADD", "f", *range(n)])
    pieces = dump(talk, "BF", "f")
    assert pieces[0][0] == 1 and pieces[0][1]
    load(talk, "g", pieces)
    assert talk.get("DEBUG DIGEST-VALUE f") == talk.get("DEBUG DIGEST-VALUE g")
    assert talk.info("f") == talk.info("g")
    assert bytes_of(dump(talk, "BF", "g")) == bytes_of(pieces)
    if n:
        assert all(talk.ok(["BF.MEXISTS", "g", *range(n)]))


def test_the_end_of_a_dump(talk):
    talk.ok("BF.ADD f a")
    position = dump(talk, "BF", "f")[-1][0]
    talk.says(f"BF.SCANDUMP f {position}", "[:0, $]")


def test_a_filter_is_loaded_only_where_none_is(talk):
    talk.ok("BF.MADD f a b")
    talk.ok("BF.ADD g c")
    pieces = dump(talk, "BF", "f")
    for name in "g":
        before = talk.digest()
        assert isinstance(talk.get(["BF.LOADCHUNK", name, *pieces[0]]), Error)
        assert talk.digest() == before
    talk.ok("CF.ADD c c")
    refuses(talk, ["BF.LOADCHUNK", "c", *pieces[0]], WRONGTYPE)


def test_a_filter_that_is_half_loaded_answers_nothing(talk):
    talk.ok("BF.MADD f a b")
    load(talk, "g", dump(talk, "BF", "f")[:1])
    error = "-ERR the filter is not complete: load the rest of its chunks, or all from its header"
    for command in ("BF.EXISTS g a", "BF.MEXISTS g a b", "BF.ADD g x", "BF.MADD g x", "BF.CARD g",
                    "BF.INFO g", "BF.INSERT g ITEMS a", "BF.SCANDUMP g 0"):
        refuses(talk, command, error)
    talk.ok("DEL g")
    talk.says("BF.EXISTS g a", "#f")


# ---- Names ----------------------------------------------------------------------------------


def test_the_case_of_names_does_not_matter(talk):
    talk.says("bf.reserve f .01 100", "+OK")
    talk.says("Bf.Add f a", "#t")
    talk.says("bf.madd f a b", "[#f, #t]")
    talk.says("bf.mexists f a c", "[#t, #f]")
    talk.says("bf.insert f items c", "[#t]")


def test_commands_by_other_names():
    """A renamed command does the same; MADD and MEXISTS are not known by their letters."""
    names = {"BF.MADD": "plus", "BF.ADD": "m.one", "BF.MEXISTS": "ask", "BF.EXISTS": "mmm"}
    with renamed(names) as server:
        talk = server.talk()
        talk.says("plus f a b", "[:1, :1]")
        talk.says("m.one f a", ":0")
        talk.says("ask f a c", "[:1, :0]")
        talk.says("mmm f a", ":1")
        assert isinstance(talk.get("BF.ADD f a"), Error)
