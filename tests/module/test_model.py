"""Random commands, beside a plain model of what the filters must know.

PERHAPS_TEST_SEED chooses others; PERHAPS_TEST_STEPS (default 3000) tells how many."""
import os
from collections import Counter

from contract import dump
from servers import Error, rng

STEPS = int(os.environ.get("PERHAPS_TEST_STEPS", "3000"))
KEYS = ["k0", "k1", "k2", "k3"]
ITEMS = 4000  # different ones
MOST_COPIES = 8

BLOOM = ["BF.RESERVE {} .01 50", "BF.RESERVE {} .01 500 EXPANSION 1", "BF.RESERVE {} .01 5000",
         "BF.RESERVE {} .01 5000 NONSCALING", "BF.RESERVE {} .01 200 EXPANSION 4",
         "BF.RESERVE {} .01 3000 WINDOW 1d"]
CUCKOO = ["CF.RESERVE {} 50", "CF.RESERVE {} 5000 EXPANSION 0", "CF.RESERVE {} 200 EXPANSION 2",
          "CF.RESERVE {} 100 ERROR .001"]


class World:
    """The server, and for each key a family and how often each item was added."""

    def __init__(self, talk):
        self.talk = talk
        self.random = rng("model")
        self.held = {}
        self.asked = self.wrong = 0

    def item(self):
        return f"item {self.random.randrange(ITEMS)}"

    def known(self, key):
        """An item that is in, or None."""
        inside = self.held[key][1]
        return self.random.choice(list(inside)) if inside else None

    def meet(self, key, item, found):
        """Judges an answer; what is not in may be found as often as the rate says."""
        is_in = self.held[key][1][item] > 0
        assert found or not is_in, f"{item} was in {key}"
        self.asked += not is_in
        self.wrong += found and not is_in

    # ---- Commands: each gets a key

    def make(self, key):
        family, ways = self.random.choice([("BF", BLOOM), ("CF", CUCKOO)])
        reply = self.talk.get(self.random.choice(ways).format(key))
        assert isinstance(reply, Error) == (key in self.held)
        self.held.setdefault(key, (family, Counter()))

    def drop(self, key):
        if self.random.random() < .2:
            self.talk.ok(["UNLINK", key])
            self.held.pop(key, None)

    def add(self, key):
        family = self.held.setdefault(key, ("CF", Counter()))[0]
        items = [self.item() for _ in range(self.random.choice([1, 1, 5, 100]))]
        before = ["BF.MADD", key] if family == "BF" else \
            [self.random.choice(["CF.INSERT", "CF.INSERTNX"]), key, "ITEMS"]
        for item, added in zip(items, self.talk.ok(before + items)):
            self.took(key, item, added, before[0] == "CF.INSERT")

    def add_one(self, key):
        family = self.held.setdefault(key, ("BF", Counter()))[0]
        command = "BF.ADD" if family == "BF" else self.random.choice(["CF.ADD", "CF.ADDNX"])
        item = self.item()
        self.took(key, item, self.talk.get([command, key, item]), command == "CF.ADD")

    def took(self, key, item, added, always):
        if isinstance(added, Error) or added == -1:
            return  # it was full
        if not always:
            self.meet(key, item, added == 0)
        self.held[key][1][item] += added

    def ask(self, key):
        if key not in self.held:
            return
        family, inside = self.held[key]
        items = [self.item() for _ in range(20)] + list(inside)[:200]
        for item, found in zip(items, self.talk.ok([family + ".MEXISTS", key, *items])):
            self.meet(key, item, found == 1)
        if family == "CF" and inside:
            item = self.known(key)
            assert self.talk.ok(["CF.COUNT", key, item]) >= inside[item]

    def remove(self, key):
        if self.held.get(key, ("BF",))[0] == "CF":
            for _ in range(20):
                item = self.known(key)
                if item and self.held[key][1][item] > 0:
                    assert self.talk.ok(["CF.DEL", key, item]) == 1
                    self.held[key][1][item] -= 1

    def copy(self, key):
        to = self.random.choice(KEYS)
        if key in self.held and to != key:
            self.talk.ok(["COPY", key, to, "REPLACE"])
            self.held[to] = (self.held[key][0], Counter(self.held[key][1]))

    def rename(self, key):
        to = self.random.choice(KEYS)
        if key in self.held and to != key:
            self.talk.ok(["RENAME", key, to])
            self.held[to] = self.held.pop(key)

    def restore(self, key):
        if key in self.held:
            data = self.talk.ok(["DUMP", key])
            self.talk.ok(["RESTORE", key, 0, data, "REPLACE"])

    def load(self, key):
        if key not in self.held:
            return
        family = self.held[key][0]
        pieces = dump(self.talk, family, key)
        if pieces:  # an empty cuckoo filter has none
            self.talk.ok(["DEL", key])
        for position, data in pieces:
            self.talk.ok([family + ".LOADCHUNK", key, position, data])

    def tidy(self, key):
        family = self.held.get(key, ("",))[0]
        if family == "CF":
            self.talk.ok(["CF.COMPACT", key])
        elif family == "BF":
            self.talk.get(["BF.SHRINK", key])  # which not every filter can

    def merge(self, key):
        """Unites two filters, if the server does; then all of both must be there."""
        other = self.random.choice(KEYS)
        if key in self.held and other in self.held:
            reply = self.talk.get(["BF.MERGE", key, other])
            if not isinstance(reply, Error):
                self.held[key][1].update(self.held[other][1])

    def reload(self, _):
        if self.random.random() < .2:
            before = self.talk.digest()
            self.talk.ok("DEBUG RELOAD")
            assert self.talk.digest() == before


COMMANDS = [World.make, World.drop, World.copy, World.rename, World.restore, World.load,
            World.tidy, World.merge, World.reload] + [World.remove] * 2 + \
           [World.add, World.add_one, World.ask] * 8


def test_model(talk2):
    world = World(talk2)
    for _ in range(STEPS):
        world.random.choice(COMMANDS)(world, world.random.choice(KEYS))
    for key in world.held:
        world.ask(key)
    assert world.asked > STEPS
    # what is stale in a layered cuckoo filter is found, too: it counts as wrong
    mean = world.asked * .01
    print(f"{world.wrong} of {world.asked} answers were wrong")
    assert world.wrong <= mean + 6.5 * mean ** .5
