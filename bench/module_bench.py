#!/usr/bin/env python3
"""module_bench.py [OPTION...] - measures the module in a server that it starts and stops itself.

1. Memory an item and rates, of filters that were reserved and of such that have grown.
2. Commands a second by redis-benchmark, beside GET and SET of one string: pipelines of 1, 16 and
   64 commands.  The commands take turns, several rounds.  The rate is the best of them.  Ratios
   are taken within a round, and the median is told, so that other programs disturb them little.
   The filters have room for 10 million items at 1 %, and half of these are in.  Half of the items
   that are asked for and added are there already; each run of adds works on a fresh copy.  GET of
   5 million asks for as many strings, one for each item that is in, and finds half of them, too.
3. What takes long with a filter of a gigabyte, half of whose bits are set: SAVE and load, beside a
   string of as many random bytes; SCANDUMP and LOADCHUNK of all pieces; DEL and UNLINK; the memory
   of a replica while it gets everything from its master.

Results are Markdown tables.  It needs nothing but Python, redis-server and redis-benchmark
(or Valkey's).  PERHAPS_MODULE and PERHAPS_SERVER may name another module and server.
"""
import argparse
import csv
import io
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "module"))
import servers  # noqa: E402

BENCHMARK = shutil.which("redis-benchmark") or shutil.which("valkey-benchmark")
ITEMS = 10_000_000  # what the filters have room for
MANY = 100  # items in a BF.MEXISTS or BF.MADD

# What RedisBloom of June 2026 did in a server 7.0.15, on another machine: thousand commands a
# second with 50 clients, by command and pipeline.  Only ratios to its GET can be compared.  It is
# not known which keys that GET asked for; ratios to ours of one string are the stricter ones.
REDISBLOOM = {
    "PING": (82, 1304, 3311), "GET": (91, 904, 821),
    "BF.EXISTS": (84, 762, 1034), "BF.ADD": (83, 781, 907),
    "CF.EXISTS": (79, 709, 979), "CF.ADD": (74, 730, 1277),
    "BF.MEXISTS": (23, 31, None), "BF.MADD": (19, 26, None),
}
PIPELINES = (1, 16, 64)


# ---- A server and a client -----------------------------------------------------------------------


class Client(servers.Talk):
    def call(self, *words):
        return self.ok(words)

    def told(self, section, field):
        """What INFO tells."""
        for line in self.call("INFO", section).decode().splitlines():
            name, _, value = line.partition(":")
            if name == field:
                return value
        return None


class Server(servers.Server):
    """One with the module, that a client is connected to."""

    def start(self):
        super().start()
        self.client = Client(self.port)

    def cpu_s(self):
        fields = ("used_cpu_user", "used_cpu_sys")
        return sum(float(self.client.told("cpu", field)) for field in fields)


def timed(function, *words):
    begin = time.perf_counter()
    function(*words)
    return time.perf_counter() - begin


def table(*rows):
    """Prints rows as Markdown, the first one as the head."""
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = [str(cell).ljust(width) if i == 0 else str(cell).rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        print("| " + " | ".join(cells) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 1) + ("-" if i == 0 else ":")
                                 for i, width in enumerate(widths)) + "|")
    print(flush=True)


def send_random(client, count, *words):
    """Sends so many random items of 8 bytes, 4 commands on their way; returns how often 1 came."""
    step, stride = min(count, 10_000), 14
    head = b"*%d\r\n" % (len(words) + step)
    head += b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)
    items = bytearray((b"$8\r\n" + bytes(8) + b"\r\n") * step)
    waiting = ones = 0
    for _ in range(count // step):
        random = os.urandom(8 * step)
        for i in range(8):
            items[4 + i :: stride] = random[i::8]
        client.socket.sendall(head + items)
        waiting += 1
        if waiting == 4:
            ones += client.read().count(1)
            waiting -= 1
    return ones + sum(client.read().count(1) for _ in range(waiting))


# ---- Memory and rates ----------------------------------------------------------------------------

MAKES = {  # how a filter is made for N items, and what adds to it
    "BF.RESERVE f 0.01 N NONSCALING": ("BF", "BF.MADD", "f"),
    "BF.RESERVE f 0.01 N": ("BF", "BF.MADD", "f"),
    "BF.RESERVE f 0.01 100": ("BF", "BF.MADD", "f"),
    "BF.RESERVE f 0.001 N": ("BF", "BF.MADD", "f"),
    "BF.RESERVE f 0.000001 N": ("BF", "BF.MADD", "f"),
    "CF.RESERVE f N": ("CF", "CF.INSERT", "f", "ITEMS"),
    "CF.RESERVE f N ERROR 0.01": ("CF", "CF.INSERT", "f", "ITEMS"),
    "": ("CF", "CF.INSERT", "f", "ITEMS"),
}


def fields_of(client, family):
    reply = client.call(f"{family}.INFO", "f", "ALL")
    return dict(zip(reply[::2], reply[1::2]))


def measure_memory(client, make, family, *adds, items):
    """Fills a filter, and returns a row of the table."""
    client.call("FLUSHALL")
    if make:
        client.call(*[items if word == "N" else word for word in make.split()])
    bits = []
    step = items // 200
    for i in range(200):
        send_random(client, step, *adds)
        if i >= 100:
            bits.append(fields_of(client, family)["Size"] * 8 / (step * (i + 1)))
    info = fields_of(client, family)
    wrong = send_random(client, 1_000_000, f"{family}.MEXISTS", "f")
    return (make or "none", info["Number of filters"], f"{bits[-1]:.1f}",
            f"{min(bits):.1f} to {max(bits):.1f}", f"{wrong / 1e4:.3f} %",
            f"{float(info['Error rate now']) * 100:.3f} %")


def bench_memory(items):
    print(f"{items} items, after all are added, and while the second half is added:\n")
    rows = [("made by", "filters", "bits an item", "on the way", "wrong of a million", "as told")]
    with Server() as server:
        for make, adds in MAKES.items():
            rows.append(measure_memory(server.client, make, *adds, items=items))
    table(*rows)


# ---- Commands a second ---------------------------------------------------------------------------

RANDOM = "__rand_int__"  # redis-benchmark puts a number of 12 digits here
COMMANDS = {  # words, and the key that a run gets a fresh copy of
    "PING": (["PING"], None),
    "GET": (["GET", "string"], None),
    "GET of 5 million": (["GET", RANDOM], None),
    "SET": (["SET", "string", "xxx"], None),
    "BF.EXISTS": (["BF.EXISTS", "bloom", RANDOM], None),
    "CF.EXISTS": (["CF.EXISTS", "cuckoo", RANDOM], None),
    "BF.MEXISTS": (["BF.MEXISTS", "bloom", *[RANDOM] * MANY], None),
    "BF.ADD": (["BF.ADD", "copy", RANDOM], "bloom"),
    "CF.ADD": (["CF.ADD", "copy", RANDOM], "cuckoo"),
    "BF.MADD": (["BF.MADD", "copy", *[RANDOM] * MANY], "bloom"),
}


def fill(client, *words, each=()):
    """Adds the first half of the items, each with some words, 1000 a command, 16 on their way."""
    waiting = 0
    for first in range(0, ITEMS // 2, 1000):
        items = (b"%012d" % i for i in range(first, first + 1000))
        client.send([*words, *(word for item in items for word in (item, *each))])
        waiting += 1
        if waiting == 16:
            client.read()
            waiting -= 1
    for _ in range(waiting):
        client.read()


def run(server, name, pipeline, seconds):
    """Commands a second, and microseconds of CPU time of each, in about so many seconds."""
    words, source = COMMANDS[name]
    if source:
        server.client.call("COPY", source, "copy", "REPLACE")
    a_second = REDISBLOOM.get(name, REDISBLOOM["GET"])[1 if pipeline > 1 else 0] * 1000
    requests = round(a_second * seconds)
    begin_s = server.cpu_s()
    done = subprocess.run(
        [BENCHMARK, "-p", str(server.port), "-c", "50", "-P", str(pipeline),
         "-n", str(requests), "-r", str(ITEMS), "--csv", *words],
        capture_output=True, text=True, check=True)
    return (float(next(csv.DictReader(io.StringIO(done.stdout)))["rps"]),
            (server.cpu_s() - begin_s) / requests * 1e6)


def measure_rates(server, rounds, seconds):
    """All runs: by pipeline and command a list with one of each round."""
    runs = {pipeline: {name: [] for name in COMMANDS} for pipeline in PIPELINES}
    for _ in range(rounds):
        for pipeline in PIPELINES:
            for name in COMMANDS:
                runs[pipeline][name].append(run(server, name, pipeline, seconds))
    return runs


def ratio(runs, name, other, what=0):
    """The median ratio within a round: of rates, or of CPU times (what=1)."""
    return statistics.median(a[what] / b[what] for a, b in zip(runs[name], runs[other]))


def known_ratio(name, pipeline):
    """What RedisBloom's ratio to GET is; None where it was not measured."""
    column = PIPELINES.index(pipeline)
    known = REDISBLOOM.get(name, (None,) * 3)[column]
    return known and known / REDISBLOOM["GET"][column]


def tell_rates(pipeline, runs):
    print(f"Pipeline {pipeline}, 50 clients:\n")
    rows = [("command", "thousand/s", "million items/s", "CPU us", "to GET", "by CPU",
             "to GET of 5 million", "to SET", "RedisBloom to GET", "ours to RedisBloom's")]
    for name in COMMANDS:
        best = max(rate for rate, _ in runs[name])
        inside = statistics.median(us for _, us in runs[name])
        items = MANY if name.startswith("BF.M") else 1
        to_get = ratio(runs, name, "GET")
        known = known_ratio(name, pipeline)
        rows.append((name, f"{best / 1e3:.0f}", f"{best * items / 1e6:.2f}", f"{inside:.2f}",
                     f"{to_get:.3f}", f"{1 / ratio(runs, name, 'GET', 1):.3f}",
                     f"{ratio(runs, name, 'GET of 5 million'):.3f}",
                     f"{ratio(runs, name, 'SET'):.3f}",
                     f"{known:.3f}" if known else "", f"{to_get / known:.2f}" if known else ""))
    table(*rows)


def bench_rates(rounds, seconds):
    with Server() as server:
        client = server.client
        client.call("SET", "string", "xxx")
        fill(client, "MSET", each=["xxx"])
        client.call("BF.RESERVE", "bloom", "0.01", ITEMS)
        client.call("CF.RESERVE", "cuckoo", ITEMS)
        fill(client, "BF.MADD", "bloom")
        fill(client, "CF.INSERT", "cuckoo", "ITEMS")
        runs = measure_rates(server, rounds, seconds)
        for pipeline in PIPELINES:
            tell_rates(pipeline, runs[pipeline])


# ---- A large filter ------------------------------------------------------------------------------

# A rate so low that an item sets some 50 bits: fewer items fill the filter.
BIG_RATE, BIG_BITS = "1e-15", 90  # bits an item, more or less


def make_string(client, nbytes):
    piece = 16 << 20
    client.call("SETRANGE", "big", nbytes - 1, "x")  # no more than that is allocated
    for first in range(0, nbytes, piece):
        client.call("SETRANGE", "big", first, os.urandom(min(piece, nbytes - first)))


def make_filter(client, nbytes):
    capacity = nbytes * 8 // BIG_BITS
    client.call("BF.RESERVE", "big", BIG_RATE, capacity, "NONSCALING")
    send_random(client, capacity, "BF.MADD", "big")


def save_and_load(server):
    """Seconds of a SAVE, and of the load after a new start."""
    save = timed(server.client.call, "SAVE")
    server.restart(signal.SIGKILL)
    told = server.text().partition("DB loaded from disk: ")[2]
    return save, float(told.split()[0])


def dump_and_load(client):
    """Copies a filter piece by piece, and returns how many there were."""
    at = pieces = 0
    while True:
        at, data = client.call("BF.SCANDUMP", "big", at)
        if at == 0:
            return pieces
        client.call("BF.LOADCHUNK", "copy", at, data)
        pieces += 1


def resync(server):
    """Seconds of a full resync, and by how many MiB the replica's memory was above its master's."""
    master = int(server.client.told("memory", "used_memory"))
    with Server(f"replicaof 127.0.0.1 {server.port}") as replica:
        begin = time.perf_counter()
        while replica.client.told("replication", "master_link_status") != "up":
            time.sleep(0.02)
        seconds = time.perf_counter() - begin
        peak = int(replica.client.told("memory", "used_memory_peak"))
        return seconds, (peak - master) / (1 << 20)


SIZE = "size, MiB"


def measure_large(make, nbytes, copy):
    """What takes long with the value that make() puts behind the key 'big'."""
    result = {}
    with Server("repl-diskless-sync-delay 0", "proto-max-bulk-len 4gb") as server:
        make(server.client, nbytes)
        result[SIZE] = server.client.call("MEMORY", "USAGE", "big", "SAMPLES", 0) / (1 << 20)
        result["SAVE, s"], result["load, s"] = save_and_load(server)
        seconds, above = resync(server)
        result["full resync, s"] = seconds
        result["replica's memory beyond the master's, MiB"] = above
        begin = time.perf_counter()
        pieces = copy(server.client)
        result["SCANDUMP and LOADCHUNK, or COPY, s"] = time.perf_counter() - begin
        result["pieces"] = pieces
        result["DEL, s"] = timed(server.client.call, "DEL", "copy")
        result["UNLINK, s"] = timed(server.client.call, "UNLINK", "big")
    return result


def copy_string(client):
    client.call("COPY", "big", "copy")
    return 1


def bench_large(nbytes):
    bloom = measure_large(make_filter, nbytes, dump_and_load)
    string = measure_large(make_string, round(bloom[SIZE] * (1 << 20)), copy_string)
    rows = [("", "filter", "string", "filter to string")]
    for what, ours in bloom.items():
        theirs = string[what]
        to_string = f"{ours / theirs:.2f}" if theirs else ""
        rows.append((what, f"{ours:.4g}", f"{theirs:.4g}", to_string))
    table(*rows)


# ---- The program ---------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of one run, about")
    parser.add_argument("--items", type=int, default=10_000_000, help="for memory and rates")
    parser.add_argument("--mib", type=int, default=1024, help="size of the large filter")
    parser.add_argument("--only", choices=("memory", "rates", "large"))
    parser.add_argument("--quick", action="store_true", help="a minute: rough figures")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds, options.mib, options.items = 2, 0.4, 64, 200_000
    if not pathlib.Path(servers.MODULE).exists():
        sys.exit(f"module_bench.py: there is no {servers.MODULE}: './dev build' makes it")
    if options.only in (None, "memory"):
        bench_memory(options.items)
    if options.only in (None, "rates"):
        bench_rates(options.rounds, options.seconds)
    if options.only in (None, "large"):
        bench_large(options.mib << 20)


if __name__ == "__main__":
    main()
