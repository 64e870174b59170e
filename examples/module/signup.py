#!/usr/bin/env python3
"""Tells whether an e-mail address is taken: a Bloom filter in front of a database.

If the filter says "certainly not", the answer is there at once.  Only after "perhaps" the database
is asked, which is SQLite here.  Strangers choose the addresses, but the filter's hash is keyed.
Run: signup.py [redis://127.0.0.1:6379], a server that has loaded perhaps.so
"""
import sqlite3
import sys

import redis

USERS, SIGNUPS, TAKEN = 100_000, 5_000, "example:taken"
server = redis.Redis.from_url(sys.argv[1] if len(sys.argv) > 1 else "redis://127.0.0.1:6379")
database = sqlite3.connect(":memory:")
questions = 0


def is_free(address):
    """Asks the database only if it must."""
    global questions
    if not server.bf().exists(TAKEN, address):
        return True  # certainly
    questions += 1
    return not database.execute("SELECT 1 FROM users WHERE address = ?", (address,)).fetchone()


addresses = [f"user.{i}@mail.example" for i in range(USERS)]
database.execute("CREATE TABLE users (address TEXT PRIMARY KEY)")
database.executemany("INSERT INTO users VALUES (?)", ((address,) for address in addresses))
server.delete(TAKEN)
server.bf().create(TAKEN, 0.01, 2 * USERS)  # redis-py calls BF.RESERVE so; later versions: reserve
for i in range(0, USERS, 1000):
    server.bf().madd(TAKEN, *addresses[i : i + 1000])

tried = [f"user.{i}@mail.example" for i in range(USERS - 100, USERS - 100 + SIGNUPS)]
free = sum(is_free(address) for address in tried)  # 100 of them are taken
server.delete(TAKEN)
print(f"{free} of {SIGNUPS} addresses are free; the database was asked {questions} times")
