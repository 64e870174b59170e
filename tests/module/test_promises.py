"""Rates, sizes and growth as they were promised, measured.

PERHAPS_TEST_ITEMS (default 2000000) is how many items an unreserved cuckoo filter gets; a run with
100000000 takes some minutes and 300 MB."""
import os

import pytest

from servers import rng

ITEMS = int(os.environ.get("PERHAPS_TEST_ITEMS", "2000000"))
STEP = 20000
SIGMA = 6.5  # one filter in 2.5e10 passes this by chance


class Items:
    """Any number of different items, of the same length, that depend on the seed."""

    def __init__(self, name):
        self.base = rng(name).getrandbits(50)

    def __call__(self, first, last):
        return [b"%016x" % (self.base + i) for i in range(first, last)]


INSIDE, OUTSIDE = Items("inside"), Items("outside")


def steps(first, last):
    for at in range(first, last, STEP):
        yield at, min(at + STEP, last)


def add(talk, before, first, last):
    """Adds items and returns how many were new."""
    return sum(talk.answers(before, INSIDE(*step)).count("1") for step in steps(first, last))


def all_are_there(talk, ask, key, n):
    return all("0" not in talk.answers([ask, key], INSIDE(*step)) for step in steps(0, n))


def keeps_rate(talk, ask, key, rate, n=200000):
    """Asks for n items that were not added.  Of as many as the rate allows, a filter may by
    chance find some more."""
    wrong = sum(talk.answers([ask, key], OUTSIDE(*step)).count("1") for step in steps(0, n))
    return wrong <= n * rate + SIGMA * (n * rate * (1 - rate)) ** .5


@pytest.mark.parametrize("rate", [.1, .01, .001])
@pytest.mark.parametrize("options", ["", "NONSCALING"])
def test_rate_at_capacity(talk2, rate, options):
    talk2.ok(f"BF.RESERVE f {rate} 100000 {options}")
    added = add(talk2, ["BF.MADD", "f"], 0, 100000)
    assert added >= 100000 * (1 - rate) - SIGMA * (100000 * rate) ** .5
    assert talk2.info("f")["Number of filters"] == 1
    assert all_are_there(talk2, "BF.MEXISTS", "f", 100000)
    assert keeps_rate(talk2, "BF.MEXISTS", "f", rate)


def grow(talk, n):
    """Adds n items, and returns the bits an item each time when the newest layer was full: just
    before a further one came."""
    bits, at = [], 0
    while at < n:
        info = talk.info("f")
        room = info["Capacity"] - info["Number of items inserted"]
        if room > 0:
            step = min(max(room - 50, 1), STEP, n - at)
            add(talk, ["BF.MADD", "f"], at, at + step)
            at += step
            continue
        full = 8 * info["Size"] / info["Number of items inserted"]
        while at < n and talk.info("f")["Number of filters"] == info["Number of filters"]:
            add(talk, ["BF.MADD", "f"], at, at + 1)
            at += 1
        bits.append((info["Number of items inserted"], full))
    return bits


def test_growth_from_the_default(talk2):
    """A filter that was made for 100 items, and gets 1000 times as many, keeps its rate and
    takes at most 17.5 bits an item when its newest layer is full."""
    talk2.ok("BF.ADD f first")
    bits = grow(talk2, 103000)
    print("bits an item when a layer is full:", bits)
    assert talk2.info("f")["Number of filters"] > 5
    assert all_are_there(talk2, "BF.MEXISTS", "f", 103000)
    talk2.says("BF.EXISTS f first", ":1")
    assert keeps_rate(talk2, "BF.MEXISTS", "f", .01)
    assert bits[-1][0] >= 100000 and bits[-1][1] <= 17.5


def test_rate_on_the_way(talk2):
    """The rate is kept at every size, not only at the end."""
    at = 0
    for n in 50, 100, 150, 200, 300, 400, 700, 1000, 2000, 5000, 10000, 20000:
        add(talk2, ["BF.MADD", "f"], at, n)
        at = n
        assert keeps_rate(talk2, "BF.MEXISTS", "f", .01, 50000), n


@pytest.mark.parametrize("expansion", [1, 3])
def test_growth_with_other_expansions(talk2, expansion):
    talk2.ok(f"BF.RESERVE f .01 5000 EXPANSION {expansion}")
    add(talk2, ["BF.MADD", "f"], 0, 100000)
    assert all_are_there(talk2, "BF.MEXISTS", "f", 100000)
    assert keeps_rate(talk2, "BF.MEXISTS", "f", .01, 100000)


@pytest.mark.parametrize("expansion", [0, 1, 2])
def test_reserved_cuckoo_filter_holds_its_capacity(talk2, expansion):
    talk2.ok(f"CF.RESERVE f 100000 EXPANSION {expansion}")
    size = talk2.info("f", "CF")["Size"]
    assert add(talk2, ["CF.INSERT", "f", "ITEMS"], 0, 100000) == 100000
    info = talk2.info("f", "CF")
    assert (info["Number of filters"], info["Size"]) == (1, size)
    assert all_are_there(talk2, "CF.MEXISTS", "f", 100000)
    assert keeps_rate(talk2, "CF.MEXISTS", "f", float(info["Error rate asked"]))
    assert 8 * size / 100000 <= 25


def test_reserved_cuckoo_filter_grows(talk2):
    talk2.ok("CF.RESERVE f 10000 EXPANSION 2")
    assert add(talk2, ["CF.INSERT", "f", "ITEMS"], 0, 200000) == 200000
    info = talk2.info("f", "CF")
    assert all_are_there(talk2, "CF.MEXISTS", "f", 200000)
    assert keeps_rate(talk2, "CF.MEXISTS", "f", float(info["Error rate asked"]))


def test_grown_cuckoo_filter_gives_all_back(talk2):
    """Each item is removed from whichever layer it is in, and no other one with it.  Where several
    layers seem to have it, its entry stays."""
    talk2.ok("CF.RESERVE f 1000 EXPANSION 2")
    assert add(talk2, ["CF.INSERT", "f", "ITEMS"], 0, 20000) == 20000
    removed = talk2.many(["CF.DEL", "f", item] for item in INSIDE(0, 10000))
    assert removed == [1] * 10000
    assert "0" not in talk2.answers(["CF.MEXISTS", "f"], INSIDE(10000, 20000))
    talk2.ok("CF.COMPACT f")
    assert "0" not in talk2.answers(["CF.MEXISTS", "f"], INSIDE(10000, 20000))
    removed = talk2.many(["CF.DEL", "f", item] for item in INSIDE(10000, 20000))
    assert removed == [1] * 10000
    assert talk2.info("f", "CF")["Number of items inserted"] == 0
    stale = talk2.answers(["CF.MEXISTS", "f"], INSIDE(0, 20000)).count("1")
    assert stale <= 24 + SIGMA * 24 ** .5  # as many as the rate, 0.12 %, explains


def test_unreserved_cuckoo_filter(talk2):
    talk2.ok("CF.ADD f first")
    add(talk2, ["CF.INSERT", "f", "ITEMS"], 0, ITEMS)
    info = talk2.info("f", "CF")
    assert info["Number of items inserted"] == ITEMS + 1
    bits = 8 * info["Size"] / ITEMS
    print(f"{bits:.2f} bits an item")
    assert bits <= 25
    assert keeps_rate(talk2, "CF.MEXISTS", "f", .0025)
    assert all_are_there(talk2, "CF.MEXISTS", "f", ITEMS)
    talk2.says("CF.EXISTS f first", ":1")


def test_deleted_items_make_room(talk2):
    """A reserved filter that is filled and emptied again does not grow."""
    talk2.ok("CF.RESERVE f 20000 EXPANSION 1")
    for _ in range(3):
        assert add(talk2, ["CF.INSERT", "f", "ITEMS"], 0, 20000) == 20000
        replies = talk2.many(["CF.DEL", "f", item] for item in INSIDE(0, 20000))
        assert replies == [1] * 20000
    info = talk2.info("f", "CF")
    assert (info["Number of filters"], info["Number of items inserted"]) == (1, 0)
    assert talk2.answers(["CF.MEXISTS", "f"], INSIDE(0, 20000)).count("1") == 0
