"""The CF commands as clients know them: every reply in both protocols, every error."""
import re

import pytest

from contract import (ARITY, CAPACITY_MOST, EXISTS, MB, NOT_FOUND, STRANGE_ITEMS, WORDS, WRONGTYPE,
                      all_refused, bytes_of, dump, of_family, refuses, renamed,
                      wrong_counts)
from servers import Error, Map, Simple, show

RESERVE_RANGE = f"-Capacity must be in the range [2 * BUCKETSIZE, {CAPACITY_MOST}]"
INSERT_RANGE = f"-Capacity must be in the range [cf-bucket-size * 2, {CAPACITY_MOST}]"
BUCKET_RANGE = "-BUCKETSIZE: value must be in the range [1, 255]"
ITERATIONS_RANGE = "-MAXITERATIONS: value must be in the range [1, 65535]"
EXPANSION_RANGE = "-EXPANSION: value must be in the range [0, 32768]"
UNKNOWN = "-Unknown argument received"
FULL = "-Filter is full"


def make_others(talk):
    """Keys of all types: f and full are cuckoo filters, b is a Bloom filter, s is a string."""
    for command in ("CF.RESERVE f 100", "CF.ADD f there", "BF.ADD b there", "SET s there",
                    "CF.RESERVE full 4 EXPANSION 0"):
        talk.ok(command)
    talk.get(["CF.INSERT", "full", "ITEMS", *range(1000)])


# ---- Errors ---------------------------------------------------------------------------------

REFUSED = [
    ("CF.RESERVE n x", "-Bad capacity"),
    ("CF.RESERVE n 1.5", "-Bad capacity"),
    ("CF.RESERVE n 9223372036854775808", "-Bad capacity"),
    ("CF.RESERVE n 0", RESERVE_RANGE),
    ("CF.RESERVE n 3", RESERVE_RANGE),
    ("CF.RESERVE n -1", RESERVE_RANGE),
    ("CF.RESERVE n 11 BUCKETSIZE 6", RESERVE_RANGE),
    (f"CF.RESERVE n {CAPACITY_MOST + 1}", RESERVE_RANGE),
    ("CF.RESERVE n 9223372036854775807", RESERVE_RANGE),
    ("CF.RESERVE n 100 BUCKETSIZE x", "-Couldn't parse BUCKETSIZE"),
    ("CF.RESERVE n 100 BUCKETSIZE 0", BUCKET_RANGE),
    ("CF.RESERVE n 1000 BUCKETSIZE 256", BUCKET_RANGE),
    ("CF.RESERVE n 100 BUCKETSIZE -1", BUCKET_RANGE),
    ("CF.RESERVE n 100 MAXITERATIONS x", "-Couldn't parse MAXITERATIONS"),
    ("CF.RESERVE n 100 MAXITERATIONS 0", ITERATIONS_RANGE),
    ("CF.RESERVE n 100 MAXITERATIONS 65536", ITERATIONS_RANGE),
    ("CF.RESERVE n 100 EXPANSION x", "-Couldn't parse EXPANSION"),
    ("CF.RESERVE n 100 EXPANSION -1", EXPANSION_RANGE),
    ("CF.RESERVE n 100 EXPANSION 32769", EXPANSION_RANGE),
    ("CF.RESERVE n 100 EXPANSION", ARITY),
    ("CF.RESERVE n 100 BUCKETSIZE 4 EXPANSION", ARITY),
    ("CF.RESERVE n 100 BUCKETSIZE", ARITY),
    ("CF.RESERVE f 100", EXISTS),
    ("CF.RESERVE s 100", WRONGTYPE),
    ("CF.RESERVE b 100", WRONGTYPE),
    ("CF.ADD s a", WRONGTYPE),
    ("CF.ADD b a", WRONGTYPE),
    ("CF.ADD full new", FULL),
    ("CF.ADDNX s a", WRONGTYPE),
    ("CF.ADDNX b a", WRONGTYPE),
    ("CF.ADDNX full new", FULL),
    ("CF.INSERT s ITEMS a", WRONGTYPE),
    ("CF.INSERT b NOCREATE ITEMS a", WRONGTYPE),
    ("CF.INSERT n NOCREATE ITEMS a", NOT_FOUND),
    ("CF.INSERT n CAPACITY x ITEMS a", "-Bad capacity"),
    ("CF.INSERT n CAPACITY ITEMS a", "-Bad capacity"),
    ("CF.INSERT n CAPACITY 3 ITEMS a", INSERT_RANGE),
    ("CF.INSERT n CAPACITY 0 ITEMS a", INSERT_RANGE),
    (f"CF.INSERT n CAPACITY {CAPACITY_MOST + 1} ITEMS a", INSERT_RANGE),
    ("CF.INSERT n WHAT ITEMS a", UNKNOWN),
    ("CF.INSERT n C 100 ITEMS a", UNKNOWN),
    ("CF.INSERT n ITEM a b", UNKNOWN),
    ("CF.INSERT n NOCREATE CAPACITY", ARITY),
    ("CF.INSERT n NOCREATE ITEMS", ARITY),
    ("CF.INSERT n CAPACITY 100", ARITY),
    ("CF.INSERTNX s ITEMS a", WRONGTYPE),
    ("CF.INSERTNX n NOCREATE ITEMS a", NOT_FOUND),
    ("CF.INSERTNX n CAPACITY x ITEMS a", "-Bad capacity"),
    ("CF.INSERTNX n CAPACITY 3 ITEMS a", INSERT_RANGE),
    ("CF.INSERTNX n WHAT ITEMS a", UNKNOWN),
    ("CF.INSERTNX n NOCREATE ITEMS", ARITY),
    ("CF.DEL n a", "-Not found"),
    ("CF.DEL s a", "-Not found"),
    ("CF.DEL b there", "-Not found"),
    ("CF.COMPACT n", "-Cuckoo filter was not found"),
    ("CF.COMPACT s", "-Cuckoo filter was not found"),
    ("CF.COMPACT b", "-Cuckoo filter was not found"),
    ("CF.INFO n", NOT_FOUND),
    ("CF.INFO s", WRONGTYPE),
    ("CF.INFO b", WRONGTYPE),
    ("CF.INFO f SIZE", ARITY),
    ("CF.INFO n ALL", NOT_FOUND),
    ("CF.DEBUG n", NOT_FOUND),
    ("CF.SCANDUMP n 0", NOT_FOUND),
    ("CF.SCANDUMP f x", "-Invalid position"),
    ("CF.SCANDUMP f -1", "-Invalid position"),
    ("CF.SCANDUMP n x", "-Invalid position"),
    ("CF.SCANDUMP s -1", "-Invalid position"),
    ("CF.LOADCHUNK n x data", "-Invalid position"),
    ("CF.LOADCHUNK n 0 data", "-Invalid position"),
    ("CF.LOADCHUNK n 2 data", NOT_FOUND),
    ("CF.LOADCHUNK n -1 data", NOT_FOUND),
    ("CF.LOADCHUNK n 1 data", "-Invalid header"),
    ("CF.LOADCHUNK f 1 data", EXISTS),
    ("CF.LOADCHUNK f 2 data", "-Couldn't load chunk!"),
    ("CF.LOADCHUNK f -1 data", "-Couldn't load chunk!"),
    ("CF.LOADCHUNK s 1 data", WRONGTYPE),
]


def test_refused(talk):
    make_others(talk)
    all_refused(talk, REFUSED)
    for words in ("WHAT 1", "EXPANSIONS 1", "E 1"):
        assert isinstance(talk.get("CF.RESERVE n 100 " + words), Error)
    talk.says("EXISTS n", ":0")


def test_ends_of_the_rates(talk2):
    """An option of ours, which takes the same numbers as that of BF.RESERVE."""
    text = "-ERROR: value must be in the range (0.000000, 1.000000)"
    for value in "0", "1", "-1", "inf", "-inf", "32768":
        refuses(talk2, f"CF.RESERVE n 100 ERROR {value}", text)
    for value in "nan", "abc", "1e400":
        refuses(talk2, f"CF.RESERVE n 100 ERROR {value}", "-Couldn't parse ERROR")


@pytest.mark.parametrize("name", of_family("CF"))
def test_arity(talk2, name):
    talk2.ok("CF.ADD k a")
    for command in wrong_counts(name):
        refuses(talk2, command, ARITY)


def test_chunks_that_no_dump_has(talk):
    talk.ok("CF.ADD f a")
    before = talk.digest()
    for position in -1, 0, 1, 2, 100, 1 << 40, -(1 << 63), (1 << 63) - 1:
        for data in b"", b"junk", b"\0" * 1000:
            assert isinstance(talk.get(["CF.LOADCHUNK", "f", position, data]), Error)
            assert isinstance(talk.get(["CF.LOADCHUNK", "n", position, data]), Error)
    assert talk.digest() == before


# ---- Options --------------------------------------------------------------------------------


@pytest.mark.parametrize("options, told", [
    ("", {"Expansion rate": 1, "Max iterations": 20}),
    ("EXPANSION 4", {"Expansion rate": 4}),
    ("expansion 0", {"Expansion rate": 0}),
    ("MAXITERATIONS 65535 EXPANSION 2", {"Expansion rate": 2, "Max iterations": 65535}),
    ("Expansion 2 BucketSize 1 MaxIterations 5", {"Expansion rate": 2, "Max iterations": 5}),
])
def test_reserve_options(talk, options, told):
    talk.says("CF.RESERVE f 1000 " + options, "+OK")
    info = talk.info("f", "CF")
    assert {name: info[name] for name in told} == told
    assert info["Number of buckets"] * info["Bucket size"] >= 1000
    assert info["Number of filters"] == 1


def test_capacity_of_insert_is_held(talk2):
    talk2.says("CF.INSERT f CAPACITY 100000 ITEMS a", "[:1]")
    info = talk2.info("f", "CF")
    assert info["Number of buckets"] * info["Bucket size"] >= 100000
    talk2.says("CF.INSERT f capacity 1000 nocreate items b", "[:1]")
    assert talk2.info("f", "CF")["Size"] == info["Size"]


@pytest.mark.parametrize("word", WORDS)
def test_keys_and_items_that_are_words(talk, word):
    talk.says(f"CF.RESERVE {word} 1000", "+OK")
    talk.says(f"CF.ADD {word} {word}", "#t")
    talk.says(f"CF.ADDNX {word} {word}", "#f")
    talk.says(f"CF.COUNT {word} {word}", ":1")
    talk.says(f"CF.DEL {word} {word}", "#t")
    talk.ok(f"DEL {word}")
    talk.says(f"CF.INSERT {word} ITEMS {word} nocreate CAPACITY 1", "[#t, #t, #t, #t]")
    talk.says(f"CF.MEXISTS {word} {word} nocreate CAPACITY 1 ITEMSX", "[#t, #t, #t, #t, #f]")


# ---- Adds and questions ---------------------------------------------------------------------


def test_add(talk):
    talk.says("CF.ADD f a", "#t")
    talk.says("CF.ADD f a", "#t")
    talk.says("CF.ADDNX f a", "#f")
    talk.says("CF.ADDNX f b", "#t")
    talk.says("CF.COUNT f a", ":2")
    talk.says("CF.COUNT f b", ":1")
    talk.says("CF.COUNT f c", ":0")
    talk.says("CF.EXISTS f a", "#t")
    talk.says("CF.EXISTS f c", "#f")
    talk.says("CF.MEXISTS f c a c b", "[#f, #t, #f, #t]")
    assert talk.info("f", "CF")["Number of items inserted"] == 3


def test_insert(talk):
    talk.says("CF.INSERT f ITEMS a b a", "[#t, #t, #t]")
    talk.says("CF.COUNT f a", ":2")
    talk.says("CF.INSERTNX f ITEMS a c b c", "[:0, :1, :0, :0]")
    talk.says("CF.COUNT f c", ":1")
    talk.says("CF.INSERTNX g ITEMS a a", "[:1, :0]")


def test_delete(talk):
    talk.ok("CF.INSERT f ITEMS a b a")
    talk.says("CF.DEL f a", "#t")
    talk.says("CF.EXISTS f a", "#t")
    talk.says("CF.DEL f a", "#t")
    talk.says("CF.DEL f a", "#f")
    talk.says("CF.EXISTS f a", "#f")
    talk.says("CF.EXISTS f b", "#t")
    info = talk.info("f", "CF")
    assert info["Number of items inserted"] == 1
    assert info["Number of items deleted"] == 2


def test_compact(talk):
    talk.ok("CF.RESERVE f 100 EXPANSION 1")
    talk.ok(["CF.INSERT", "f", "ITEMS", *range(1000)])
    for i in range(0, 1000, 2):
        talk.says(f"CF.DEL f {i}", "#t")
    talk.says("CF.COMPACT f", "+OK")
    assert all(talk.ok(["CF.MEXISTS", "f", *range(1, 1000, 2)]))
    assert talk.info("f", "CF")["Number of items inserted"] == 500
    talk.ok("CF.ADD g a")
    talk.says("CF.COMPACT g", "+OK")
    talk.says("CF.EXISTS g a", "#t")


@pytest.mark.parametrize("n", [1, 2, 16, 17, 127, 128, 129, 256, 257, 5000])
def test_many_items_at_once(talk, n):
    items = [f"item {i}" for i in range(n)]
    talk.says(["CF.INSERT", "f", "CAPACITY", 1000000, "ITEMS", *items], show([True] * n))
    answers = talk.get(["CF.INSERTNX", "f", "ITEMS", *items, "new"])
    assert [type(one) for one in answers] == [int] * (n + 1)
    assert answers == [0] * n + [1]
    talk.says(["CF.MEXISTS", "f", *items, "other"], show([True] * n + [False]))


def test_strange_items(talk):
    talk.ok("CF.RESERVE f 1000")
    for item in STRANGE_ITEMS:
        talk.says(["CF.EXISTS", "f", item], "#f")
        talk.says(["CF.ADD", "f", item], "#t")
        talk.says(["CF.EXISTS", "f", item], "#t")
        talk.says(["CF.COUNT", "f", item], ":1")
    talk.says(["CF.MEXISTS", "f", *STRANGE_ITEMS, b"\0\0\0"],
              show([True] * len(STRANGE_ITEMS) + [False]))
    for item in STRANGE_ITEMS:
        talk.says(["CF.DEL", "f", item], "#t")
        talk.says(["CF.EXISTS", "f", item], "#f")


def test_strange_keys(talk):
    for key in b"", b"\0\xff\r\n", b"k" * MB:
        talk.says(["CF.ADD", key, "a"], "#t")
        talk.says(["CF.EXISTS", key, "a"], "#t")
        talk.says(["CF.RESERVE", key, "100"], EXISTS)


def test_questions_to_what_is_no_filter(talk):
    make_others(talk)
    for key in "n", "s", "b":
        talk.says(f"CF.EXISTS {key} there", "#f")
        talk.says(f"CF.MEXISTS {key} there b", "[#f, #f]")
        talk.says(f"CF.COUNT {key} there", ":0")
    talk.says("EXISTS n", ":0")


def test_full(talk):
    talk.ok("CF.RESERVE f 100 EXPANSION 0")
    failed = False if talk.protocol == 3 else -1
    answers = talk.get(["CF.INSERT", "f", "ITEMS", *range(10000)])
    assert len(answers) == 10000
    added = [i for i in range(10000) if show(answers[i]) == talk.said("#t")]
    assert len(added) >= 100
    assert all(show(one) in (talk.said("#t"), show(failed)) for one in answers)
    assert talk.info("f", "CF")["Number of items inserted"] == len(added)
    assert all(talk.ok(["CF.MEXISTS", "f", *added]))
    refuses(talk, "CF.ADD f new", FULL)
    refuses(talk, "CF.ADDNX f new", FULL)
    answers = talk.get(["CF.INSERTNX", "f", "ITEMS", added[0], "new", added[1]])
    assert [type(one) for one in answers] == [int] * 3 and answers == [0, -1, 0]
    talk.says(f"CF.ADDNX f {added[0]}", "#f")
    talk.says(f"CF.DEL f {added[0]}", "#t")
    assert talk.info("f", "CF")["Number of filters"] == 1


def test_growth_has_no_end(talk2):
    """As many layers as there may be elsewhere, and more: nothing is refused."""
    talk2.ok("CONFIG SET bf.cf-max-expansions 2")
    talk2.ok("CF.RESERVE f 100 EXPANSION 1")
    assert talk2.ok(["CF.INSERT", "f", "ITEMS", *range(30000)]) == [1] * 30000
    assert talk2.ok(["CF.MEXISTS", "f", *range(30000)]) == [1] * 30000
    assert talk2.info("f", "CF")["Number of filters"] > 32


def test_growth(talk2):
    talk2.ok("CF.RESERVE f 100 EXPANSION 2")
    before = talk2.info("f", "CF")
    assert talk2.ok(["CF.INSERT", "f", "ITEMS", *range(2000)]) == [1] * 2000
    after = talk2.info("f", "CF")
    assert after["Number of filters"] > 1
    assert after["Size"] > before["Size"]
    assert after["Number of buckets"] * after["Bucket size"] >= 2000
    assert talk2.ok(["CF.MEXISTS", "f", *range(2000)]) == [1] * 2000


# ---- What they tell -------------------------------------------------------------------------

FIELDS = ["Size", "Number of buckets", "Number of filters", "Number of items inserted",
          "Number of items deleted", "Bucket size", "Expansion rate", "Max iterations"]


def test_info(talk):
    talk.ok("CF.RESERVE f 1000 EXPANSION 3 MAXITERATIONS 7")
    talk.ok("CF.INSERT f ITEMS a b c")
    talk.ok("CF.DEL f b")
    reply = talk.get("CF.INFO f")
    assert isinstance(reply, Map) == (talk.protocol == 3)
    assert reply[::2] == FIELDS  # go-redis fails if there are others
    assert all(type(name) is Simple for name in reply[::2])
    assert all(type(value) is int for value in reply[1::2])
    values = dict(zip(FIELDS, reply[1::2]))
    assert values["Size"] > 0 and values["Number of buckets"] > 0
    assert [values[name] for name in FIELDS[2:5]] == [1, 2, 1]
    assert [values[name] for name in FIELDS[5:]] == [4, 3, 7]


def test_debug(talk):
    talk.ok("CF.RESERVE f 1000 EXPANSION 3 MAXITERATIONS 7")
    talk.ok("CF.INSERT f ITEMS a b c")
    talk.ok("CF.DEL f b")
    line = talk.get("CF.DEBUG f").decode()
    match = re.fullmatch(r"bktsize:(\d+) buckets:(\d+) items:2 deletes:1 filters:1 "
                         r"max_iterations:7 expansion:3", line)
    info = talk.info("f", "CF")
    assert [int(match[1]), int(match[2])] == [info["Bucket size"], info["Number of buckets"]]


# ---- Dumps ----------------------------------------------------------------------------------


def load(talk, key, pieces):
    for position, data in pieces:
        talk.says(["CF.LOADCHUNK", key, position, data], "+OK")


@pytest.mark.parametrize("make, n", [("", 1), ("", 5000), ("CF.RESERVE f 100 EXPANSION 0", 50),
                                     ("CF.RESERVE f 100", 1000), ("CF.RESERVE f 100000", 1)])
def test_dump(talk, make, n):
    if make:
        talk.ok(make)
    talk.ok(["CF.INSERT", "f", "ITEMS", *range(n)])
    pieces = dump(talk, "CF", "f")
    assert pieces[0][0] == 1 and pieces[0][1]
    load(talk, "g", pieces)
    assert talk.get("DEBUG DIGEST-VALUE f") == talk.get("DEBUG DIGEST-VALUE g")
    assert talk.info("f", "CF") == talk.info("g", "CF")
    assert bytes_of(dump(talk, "CF", "g")) == bytes_of(pieces)
    assert all(talk.ok(["CF.MEXISTS", "g", *range(n)]))
    talk.says("CF.DEL g 0", "#t")
    refuses(talk, ["CF.LOADCHUNK", "g", *pieces[0]], EXISTS)


def test_the_end_of_a_dump(talk):
    talk.ok("CF.ADD f a")
    position = dump(talk, "CF", "f")[-1][0]
    talk.says(f"CF.SCANDUMP f {position}", "[:0, _]")


def test_the_dump_of_an_empty_filter(talk):
    talk.ok("CF.RESERVE f 1000")
    talk.says("CF.SCANDUMP f 0", "[:0, _]")


def test_a_filter_that_is_half_loaded_answers_nothing(talk):
    talk.ok("CF.INSERT f ITEMS a b")
    load(talk, "g", dump(talk, "CF", "f")[:1])
    error = "-ERR the filter is not complete: load the rest of its chunks, or all from its header"
    for command in ("CF.EXISTS g a", "CF.MEXISTS g a b", "CF.COUNT g a", "CF.ADD g x",
                    "CF.ADDNX g x", "CF.INSERT g ITEMS x", "CF.DEL g a", "CF.INFO g",
                    "CF.COMPACT g", "CF.SCANDUMP g 0"):
        refuses(talk, command, error)


# ---- Names ----------------------------------------------------------------------------------


def test_the_case_of_names_does_not_matter(talk):
    talk.says("cf.reserve f 1000", "+OK")
    talk.says("Cf.AddNx f a", "#t")
    talk.says("cf.addnx f a", "#f")
    talk.says("cf.insertnx f items a b", "[:0, :1]")
    talk.says("cf.insert f items a", "[#t]")
    talk.says("cf.mexists f a c", "[#t, #f]")


def test_commands_by_other_names():
    names = {"CF.ADDNX": "plus", "CF.INSERTNX": "mm", "CF.INSERT": "cf.x", "CF.MEXISTS": "ask"}
    with renamed(names) as server:
        talk = server.talk()
        talk.says("plus f a", ":1")
        talk.says("plus f a", ":0")
        talk.says("mm f ITEMS a b", "[:0, :1]")
        talk.says("cf.x f ITEMS a", "[:1]")
        talk.says("ask f a c", "[:1, :0]")
