#!/usr/bin/env python3
"""python_bench.py [OPTION...] - measures the package for Python beside the C library and a set.

1. Batches of integers in a numpy array: contains_many() and add_many() beside the same calls of
   the C library, which ctypes makes on the same array and on a filter from the same file.
2. Batches of strings as Arrow has them (bytes and offsets), beside the C calls on the same bytes.
3. One key a call: "k in f" of a short str, beside an empty method call and "k in" a set; add().
4. Beside a Python set, and beside flor (python3-flor), a Bloom filter in Python: time and memory.

All of a comparison take turns in one process, several rounds; the best of each counts, since other
programs only add to a time.  Results are Markdown tables.  It needs build/lib, python3-numpy, and
for the last table python3-flor.
"""
import argparse
import ctypes
import pathlib
import sys
import tempfile
import time
import timeit
import tracemalloc

TOP = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "build" / "lib" / "python"))
sys.path.insert(0, str(TOP / "tests" / "python"))
import numpy  # noqa: E402

import arrow  # noqa: E402
import perhaps  # noqa: E402

try:
    import flor
except ImportError:
    flor = None

FPR = 0.01
STRING_NBYTES = 20


# ---- The C library -------------------------------------------------------------------------------


class Keys(ctypes.Structure):
    """struct perhaps_keys."""

    _fields_ = [(name, ctypes.c_size_t) for name in
                ("count", "each", "hashed", "packed", "key_nbytes", "offsets", "offset_nbytes")]


def packed(array):
    return Keys(len(array), 0, 0, array.ctypes.data, array.itemsize, 0, 0)


def between(strings):
    return Keys(len(strings.items), 0, 0, strings.data.ctypes.data, 0, strings.offsets.ctypes.data, 4)


class C:
    """A filter of the C library, from a file."""

    c = ctypes.CDLL(str(TOP / "build" / "lib" / "libperhaps.so"))
    c.perhaps_contains_many.restype = ctypes.c_size_t

    def __init__(self, path):
        self.filter = ctypes.c_void_p()
        error = self.c.perhaps_open(str(path).encode(), None, ctypes.byref(self.filter))
        if not error:
            error = self.c.perhaps_clone(self.filter, ctypes.byref(self.filter))
        if error:
            sys.exit(f"python_bench.py: {path}: error {error}")

    def contains_many(self, keys, answers):
        return self.c.perhaps_contains_many(self.filter, ctypes.byref(keys),
                                                  ctypes.c_void_p(answers.ctypes.data))

    def add_many(self, keys):
        if self.c.perhaps_add_many(self.filter, ctypes.byref(keys), None):
            sys.exit("python_bench.py: the C library refused keys")


class Strings(arrow.Column):
    """Strings of one length in Arrow's form, made by numpy."""

    def __init__(self, first, count):
        super().__init__("u", range(count))
        numbers = numpy.arange(first, first + count, dtype=numpy.uint64)
        digits = numpy.char.zfill(numbers.astype("S"), STRING_NBYTES)
        self.data = numpy.frombuffer(digits.tobytes(), dtype=numpy.uint8)
        self.offsets = (numpy.arange(count + 1) * STRING_NBYTES).astype(numpy.int32)

    def array(self):
        table = (ctypes.c_void_p * 3)(None, self.offsets.ctypes.data, self.data.ctypes.data)
        return arrow.Array(length=len(self.items), n_buffers=3, buffers=arrow.keep(table),
                           release=self.counter.releaser(arrow.Array))


# ---- Measuring -----------------------------------------------------------------------------------


def best_of(rounds, **contestants):
    """Lets the contestants take turns.  Returns the best seconds of each."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, run in contestants.items():
            begin = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def heading(*cells):
    row(*cells)
    row(*["---"] * len(cells))


def batches(title, count, rounds, present, absent, c_present, c_absent):
    """A table of one form of keys: the package beside the C library."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "f.perhaps"
        half = perhaps.Filter(count, FPR, seed=1)
        half.add_many(present)
        half.save(path)
        ours, theirs = perhaps.open(path, mode="w"), C(path)
    answers = numpy.empty(count, dtype=bool)
    found = numpy.asarray(ours.contains_many(absent))
    theirs.contains_many(c_absent, answers)
    if not numpy.array_equal(found, answers) or not all(ours.contains_many(present)):
        sys.exit("python_bench.py: the answers differ")
    print(f"\n{title}: {count:,} keys, {len(bytes(half)) >> 20} MiB, ns a key\n")
    heading("", "Python", "C", "Python / C")
    for name, run, c_run in (
        ("absent", lambda: ours.contains_many(absent),
         lambda: theirs.contains_many(c_absent, answers)),
        ("present", lambda: ours.contains_many(present),
         lambda: theirs.contains_many(c_present, answers)),
        ("add again", lambda: ours.add_many(present), lambda: theirs.add_many(c_present)),
    ):
        best = best_of(rounds, python=run, c=c_run)
        python_ns, c_ns = (best[who] * 1e9 / count for who in ("python", "c"))
        row(name, f"{python_ns:.1f}", f"{c_ns:.1f}", f"{python_ns / c_ns:.2f}")


def integers(count, rounds):
    random = numpy.random.default_rng(1)
    present, absent = (random.integers(0, 1 << 64, count, dtype=numpy.uint64) for _ in range(2))
    batches("Integers, numpy uint64", count, rounds, present, absent, packed(present),
            packed(absent))


def strings(count, rounds):
    present, absent = Strings(0, count), Strings(count, count)
    batches(f"Strings of {STRING_NBYTES} bytes, Arrow", count, rounds, present, absent,
            between(present), between(absent))


def single(rounds):
    """One key a call, on filters that the first cache holds: what the call itself takes."""
    class Empty:
        def method(self, key):
            pass

    f = perhaps.Filter(1000, FPR, seed=1)
    f.add("present")
    names = {"f": f, "s": {"present"}, "e": Empty(), "l": [], "k": "present", "a": "absent", "i": 7}
    print("\nOne key a call, ns (the loop of timeit included)\n")
    heading("", "ns")
    for name, statement in (("empty loop", "pass"), ("empty method call, in Python", "e.method(k)"),
                            ("empty method call, in C: list.clear()", "l.clear()"),
                            ("k in f, short str, present", "k in f"),
                            ("k in f, short str, absent", "a in f"), ("k in f, int", "i in f"),
                            ("k in set", "k in s"), ("f.add(k)", "f.add(k)"),
                            ("f.add_new(k)", "f.add_new(k)")):
        timer = timeit.Timer(statement, globals=names)
        number = 500_000
        row(name, f"{min(timer.repeat(rounds, number)) * 1e9 / number:.1f}")


def others(count, rounds):
    """A set and flor: keys as bytes, one a call, since they have nothing else."""
    keys = [b"key %d" % i for i in range(count)]
    absent = [b"other %d" % i for i in range(count)]

    def ask(has):
        return lambda: [has(key) for key in absent]

    def make_set():
        return set(keys)

    def make_ours():
        f = perhaps.Filter(count, FPR, seed=1)
        f.update(keys)
        return f

    def make_flor():
        f = flor.BloomFilter(n=count, p=FPR)
        for key in keys:
            f.add(key)
        return f

    print(f"\n{count:,} keys of bytes from a list, ns a key\n")
    heading("", "add", "ask, one a call", "memory, bytes a key")
    for name, make, asker in (("set", make_set, lambda s: s.__contains__),
                              ("perhaps", make_ours, lambda f: f.__contains__),
                              ("flor", make_flor, lambda f: f.check)):
        if name == "flor" and flor is None:
            print("flor is left out: python3-flor is not installed", file=sys.stderr)
            continue
        turns = 1 if name == "flor" else rounds
        added = best_of(turns, make=make)["make"]
        made = make()
        asked = best_of(turns, ask=ask(asker(made)))["ask"]
        row(name, f"{added * 1e9 / count:.0f}", f"{asked * 1e9 / count:.0f}",
            f"{memory_nbytes(made, make) / count:.2f}")


def memory_nbytes(made, make):
    """What it takes beside its keys.  The allocations of a filter are none of Python's."""
    if isinstance(made, perhaps.Filter):
        return len(bytes(made))
    tracemalloc.start()
    kept = make()
    nbytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return nbytes


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=lambda text: int(float(text)), default=10_000_000,
                        help="keys of a batch (10e6)")
    parser.add_argument("--rounds", type=int, default=7, help="how often each takes its turn (7)")
    parser.add_argument("--only", choices=["integers", "strings", "single", "others"])
    options = parser.parse_args()
    parts = {"integers": lambda: integers(options.keys, options.rounds),
             "strings": lambda: strings(options.keys, options.rounds),
             "single": lambda: single(options.rounds),
             "others": lambda: others(min(options.keys, 1_000_000), options.rounds)}
    for name, run in parts.items():
        if options.only in (None, name):
            run()


if __name__ == "__main__":
    main()
