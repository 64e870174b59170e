#!/usr/bin/env python3
"""postgres_bench.py - the extension for PostgreSQL beside what it saves.

    ./dev bench postgres [ROWS]

Starts a server of its own, makes ROWS e-mail addresses (10,000,000; 1.3 GB of disk) with the index
that decides who is signed up, and prints the times of building, asking and keeping filters beside
those of the same work without them.  Everything is gone at the end.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
LIBRARIES = os.path.join(ROOT, "build", "lib", "postgres")
EXAMPLE = os.path.join(ROOT, "bindings", "postgres", "examples", "signup.sql")
SETTINGS = ("shared_buffers=2GB work_mem=512MB maintenance_work_mem=512MB jit=off autovacuum=off "
            "max_wal_size=2GB wal_level=minimal max_wal_senders=0 max_parallel_workers=8 "
            "synchronous_commit=off default_toast_compression=lz4").split()
START = """
. "$1"
shift
server_start "$@" >&2 || exit 1
echo "$PGHOST"
read -r line
"""


class Server:
    """A server of tests/postgres/server.sh, and one connection to it by psql."""

    def __init__(self):
        script = os.path.join(ROOT, "tests", "postgres", "server.sh")
        self.holder = subprocess.Popen(["bash", "-c", START, "bench", script, LIBRARIES] + SETTINGS,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        host = self.holder.stdout.readline().strip()
        if not host:
            sys.exit("postgres_bench: no server: build the extension first (./dev build)")
        self.psql = subprocess.Popen(
            ["psql", "-qXAt", "-v", "ON_ERROR_STOP=1", "-h", host, "-U", "tester", "postgres"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.run("\\timing on")

    def run(self, sql):
        """Returns the lines of the answers, and how long all statements took, in seconds."""
        end = "" if sql.startswith("\\") else ";"
        self.psql.stdin.write(sql + end + "\n\\echo ==end\n")
        self.psql.stdin.flush()
        lines, seconds = [], 0.0
        for line in self.psql.stdout:
            line = line.rstrip("\n")
            if line == "==end":
                return lines, seconds
            time = re.match(r"Time: ([0-9.]+) ms", line)
            if time:
                seconds += float(time.group(1)) / 1000
            elif line:
                lines.append(line)
        sys.exit("postgres_bench: psql has ended")

    def close(self):
        self.psql.stdin.close()
        self.psql.wait()
        self.holder.stdin.close()
        self.holder.wait()


def best(server, sql, times=3):
    return min(server.run(sql)[1] for _ in range(times))


def report(what, seconds, n, yardstick=None):
    ratio = f"{seconds / yardstick:8.2f} x" if yardstick else ""
    print(f"  {what:58} {seconds:8.2f} s {seconds / n * 1e9:8.0f} ns each{ratio}", flush=True)


def probes(server):
    """How often the index of all addresses was looked at."""
    server.run("SELECT pg_stat_force_next_flush()")
    lines, _ = server.run("SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'users_pkey'")
    return int(lines[-1])


def compare(server, rows, queries):
    """Reports the best times of queries that take turns; the first is the yardstick."""
    times = [[] for _ in queries]
    for _ in range(3):
        for (_, sql), all_times in zip(queries, times):
            all_times.append(server.run(sql)[1])
    yardstick = min(times[0])
    for (what, _), all_times in zip(queries, times):
        report(what, min(all_times), rows, yardstick)


def build(server, rows):
    print(f"building a filter of {rows:,} addresses, rate 0.001, beside count(email):")
    for workers in 0, 2:
        server.run(f"SET max_parallel_workers_per_gather = {workers}")
        suffix = ", 2 workers" if workers else ""
        calls = [] if workers else ["perhaps_build(email, 0.001)"]
        calls.append(f"perhaps_build(email, 0.001, {rows})")
        compare(server, rows, [("count(email)" + suffix, "SELECT count(email) FROM users")] +
                [(call + suffix, f"SELECT length({call}::bytea) FROM users") for call in calls])
    server.run("SET max_parallel_workers_per_gather = 0")


def ask(server, rows):
    n = rows // 10
    print(f"{n:,} addresses, of which a tenth is signed up:")
    server.run(f"CREATE TABLE seen AS SELECT perhaps_build(email, 0.001) AS filter FROM users;"
               f"CREATE TABLE candidates AS SELECT CASE WHEN i % 10 = 0 THEN 'user' ELSE 'new' END"
               f" || (i * 7919::bigint) % {rows} || '@example.com' AS email"
               f" FROM generate_series(1, {n}) i; ANALYZE candidates; VACUUM users")
    size, _ = server.run("SELECT pg_size_pretty(pg_column_size(filter)::bigint) FROM seen")
    read = best(server, "SELECT count(email) FROM candidates")
    report("count(email)", read, n)
    asked = best(server, "SELECT count(*) FROM candidates, seen WHERE filter @> email")
    report(f"filter @> email, one filter of {size[0]}", asked, n, read)
    print(f"  that is {n / (asked - read) / 1e6:.1f} million questions a second beside the read")
    server.run("SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off")
    index = "EXISTS (SELECT FROM users u WHERE u.email = c.email OFFSET 0)"
    for what, condition in (("the index alone", index),
                            ("the filter, and the index if perhaps",
                             f"CASE WHEN filter @> c.email THEN {index} ELSE false END")):
        before = probes(server)
        seconds = best(server, f"SELECT count(*) FROM candidates c, seen WHERE {condition}", 2)
        looked = (probes(server) - before) // 2
        report(what, seconds, n)
        print(f"    looks at the index: {looked:,}")
    server.run("RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_memoize")


def keep(server, rows):
    n = 20000
    print("65536 small filters, kept up to date by triggers (examples/signup.sql):")
    one = ("DO $$ DECLARE i int; BEGIN FOR i IN {0} + 1 .. {0} + %d LOOP "
           "INSERT INTO users VALUES ('{1}' || i || '@example.com'); END LOOP; END $$" % n)
    many = ("INSERT INTO users SELECT '{1}' || i || '@example.com' "
            "FROM generate_series({0} + 1, {0} + %d) i" % n)
    alone = [server.run(one.format(0, "a"))[1], server.run(many.format(0, "b"))[1]]
    _, seconds = server.run(f"\\i {EXAMPLE}")
    report("making them, with an index of the shards", seconds, rows)
    sizes, _ = server.run("SELECT avg(pg_column_size(filter))::int FROM taken")
    print(f"    one has {int(sizes[0]):,} bytes")
    server.run("VACUUM ANALYZE taken; VACUUM users")
    for what, sql, without in (("insert of one address, each with the triggers", one, alone[0]),
                               ("insert of many at once with the triggers", many, alone[1])):
        report(what.replace(" with the triggers", " without a trigger"), without, n)
        report(what, server.run(sql.format(n, "c" if sql is one else "d"))[1], n, without)
    server.run("VACUUM taken")
    loop = ("DO $$ DECLARE i int; found int := 0; BEGIN FOR i IN 1 .. 100000 LOOP "
            "IF {} THEN found := found + 1; END IF; END LOOP; END $$")
    key = "('free' || i || '@example.com')"
    index = loop.format(f"EXISTS (SELECT FROM users WHERE email = {key})")
    filters = loop.format(f"is_taken({key})")
    server.run(index)
    for what, sql in (("a question by the index, one at a time", index),
                      ("a question by is_taken(), one at a time", filters)):
        before = probes(server)
        seconds = best(server, sql, 2)
        report(what, seconds, 100000)
        print(f"    looks at the index: {(probes(server) - before) // 2:,} of 100,000")


def main():
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    server = Server()
    try:
        server.run("CREATE EXTENSION perhaps; CREATE TABLE users (email text NOT NULL);"
                   f"INSERT INTO users SELECT 'user' || i || '@example.com' "
                   f"FROM generate_series(0, {rows} - 1) i;"
                   "ALTER TABLE users ADD PRIMARY KEY (email); VACUUM ANALYZE users")
        build(server, rows)
        ask(server, rows)
        keep(server, rows)
    finally:
        server.close()


main()
