#!/usr/bin/python3
"""sqlite_bench.py [--rows N] [--rounds R] [--folder DIR] - measures the SQLite extension.

Runs in the sqlite3 module of this Python, whose version of SQLite it prints, with
build/lib/perhaps_sqlite.so.  A table has N rows (10 million) with an integer key and an e-mail
address of about 23 bytes; another has as many addresses, half of them the same.  The database is
a file in DIR (a temporary folder) of which all pages are in the page cache, and which is mapped.

1. Aggregating.  The yardstick reads the same column of all rows and counts them:
       SELECT count(*), max(length(email)) FROM users
   The aim is at most 1.5 times that.  count(DISTINCT) is what an exact set takes.
2. Asking a filter of N keys, at 1 % and at 0.1 %, for each row of the other table, beside the
   same statement without the question, and beside an exact question to an index (for a tenth of
   the rows).  The aim is 5 million rows a second.
3. One question in a statement of its own: by the path of a file, by a BLOB in a table, which
   SQLite reads as a whole for each statement, and by an index.

The statements take turns, R rounds (3), and the best time of each counts.
"""
import argparse
import os
import pathlib
import sqlite3
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXTENSION = os.environ.get("PERHAPS_SQLITE", str(ROOT / "build/lib/perhaps_sqlite.so"))
RATE = 0.001


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


def connect(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(EXTENSION)
    db.execute("PRAGMA cache_size = -100000")
    db.execute("PRAGMA mmap_size = 2147418112")
    db.execute("PRAGMA synchronous = OFF")
    return db


def fill(db, rows):
    series = "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < ?)"
    db.execute("CREATE TABLE users(id INTEGER PRIMARY KEY, email TEXT)")
    db.execute(f"INSERT INTO users {series} SELECT i, 'user' || i || '@example.com' FROM s", (rows,))
    db.execute("CREATE TABLE visits(id INTEGER PRIMARY KEY, email TEXT)")
    # every second one is known; the order is not that of the other table
    db.execute(f"INSERT INTO visits {series} SELECT i, iif(i % 2, 'user', 'guest') "
               "|| (1 + i * 7919 % ?) || '@example.com' FROM s", (rows, rows))
    db.execute("CREATE TABLE filters(name TEXT PRIMARY KEY, filter BLOB)")


def best(db, statements, rounds, parameters=()):
    """Returns the best time of each, and its last result."""
    times, results = {}, {}
    for _ in range(rounds):
        for name, sql in statements.items():
            begin = time.perf_counter()
            results[name] = db.execute(sql, parameters).fetchall()
            times[name] = min(times.get(name, 1e9), time.perf_counter() - begin)
    return times, results


def aggregate(db, rows, rounds):
    read = "count(*) + the column"
    statements = {
        read: "SELECT count(*), max(length(email)) FROM users",
        "perhaps_build(email, 0.001)": f"SELECT length(perhaps_build(email, {RATE})) FROM users",
        f"the same, 'capacity={rows}'":
            f"SELECT length(perhaps_build(email, {RATE}, 'capacity={rows}')) FROM users",
        "the same, 'static'": f"SELECT length(perhaps_build(email, {RATE}, 'static')) FROM users",
        "perhaps_build(id, 0.001)": f"SELECT length(perhaps_build(id, {RATE})) FROM users",
    }
    times, results = best(db, statements, rounds)
    print(f"Aggregating {rows:,} rows:\n")
    table(("", "s", "to count(*) + the column", "bytes"),
          *((name, f"{t:.2f}", f"{t / times[read]:.2f}",
             "" if name == read else f"{results[name][0][0]:,}") for name, t in times.items()))


def keep_filter(db, rate, path):
    db.execute("INSERT OR REPLACE INTO filters "
               f"SELECT 'users', perhaps_build(email, {rate}) FROM users")
    db.execute("SELECT perhaps_save(filter, ?) FROM filters", (path,)).fetchall()


def scan(db, rows, rounds, rate, path):
    handle = "(SELECT perhaps_open(filter) FROM filters WHERE name = 'users')"
    few = rows // 10
    statements = {
        "no question": "SELECT count(*), max(length(email)) FROM visits",
        "count(*) alone": "SELECT count(*) FROM visits WHERE email IS NOT NULL",
        "perhaps_open() of a BLOB":
            f"SELECT count(*) FROM visits WHERE perhaps_contains({handle}, email)",
        "a file by its path":
            f"SELECT count(*) FROM visits WHERE perhaps_contains('{path}', email)",
        "a BLOB as a parameter": "SELECT count(*) FROM visits WHERE perhaps_contains(:blob, email)",
        "the index (a tenth)":
            "SELECT count(*) FROM (SELECT email FROM visits LIMIT %d) v "
            "WHERE EXISTS (SELECT 1 FROM users WHERE users.email = v.email)" % few,
    }
    (bound,), = db.execute("SELECT filter FROM filters").fetchall()
    times, results = best(db, statements, rounds, {"blob": bound})
    asked = {name: few if "tenth" in name else rows for name in statements}
    print(f"A filter of {rows:,} keys at {rate} ({len(bound):,} bytes) asked for each of {rows:,} "
          "rows, half of which are in it:\n")
    table(("", "s", "M rows/s", "rows found"),
          *((name, f"{t:.2f}", f"{asked[name] / t / 1e6:.2f}", f"{results[name][0][0]:,}")
            for name, t in times.items()))


def one(db, rows, rounds, path):
    statements = {
        "the file, by its path": (f"SELECT perhaps_contains('{path}', ?)", 20000),
        "the BLOB, from a table":
            ("SELECT perhaps_contains((SELECT filter FROM filters WHERE name = 'users'), ?)", 20),
        "the index": ("SELECT EXISTS (SELECT 1 FROM users WHERE email = ?)", 20000),
    }
    found = {}
    for _ in range(rounds):
        for name, (sql, count) in statements.items():
            begin = time.perf_counter()
            for i in range(count):
                db.execute(sql, (f"user{1 + i * 7919 % rows}@example.com",)).fetchone()
            found[name] = min(found.get(name, 1e9), (time.perf_counter() - begin) / count)
    print("One question in a statement of its own:\n")
    table(("", "microseconds"), *((name, f"{t * 1e6:,.1f}") for name, t in found.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        db = connect(os.path.join(folder, "bench.db"))
        print(f"SQLite {sqlite3.sqlite_version}, perhaps "
              f"{db.execute('SELECT perhaps_version()').fetchone()[0]}\n", flush=True)
        fill(db, options.rows)
        aggregate(db, options.rows, options.rounds)
        path = os.path.join(folder, "users.perhaps")
        db.execute("CREATE INDEX users_email ON users(email)")
        for rate in (0.01, RATE):
            keep_filter(db, rate, path)
            scan(db, options.rows, options.rounds, rate, path)
        one(db, options.rows, options.rounds, path)
        db.close()


if __name__ == "__main__":
    main()
