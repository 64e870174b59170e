#!/usr/bin/env python3
"""Keeps questions about users who do not exist away from a database.

A cuckoo filter has the users, and unlike a Bloom filter it can forget one.  The order matters: a
user is in the filter before the database has the user, and leaves it afterwards.
Run: cache_guard.py [redis://127.0.0.1:6379], a server that has loaded perhaps.so
"""
import sys

import redis

USERS, KNOWN = 20_000, "example:users"
server = redis.Redis.from_url(sys.argv[1] if len(sys.argv) > 1 else "redis://127.0.0.1:6379")
cuckoo = server.cf()
database = {}  # stands for one that is slow


def create(user):
    if user not in database:  # CF.ADD and not CF.ADDNX, which might take another's place for ours
        cuckoo.add(KNOWN, user)
        database[user] = f"profile of {user}"


def remove(user):
    if database.pop(user, None):  # CF.DEL only what was added: it would take out another one
        cuckoo.delete(KNOWN, user)


server.delete(KNOWN)
for i in range(USERS):
    create(f"user {i}")
for i in range(0, USERS, 2):
    remove(f"user {i}")

users = [f"user {i}" for i in range(2 * USERS)]  # a quarter of them exists
perhaps = server.execute_command("CF.MEXISTS", KNOWN, *users)
asked = [user for user, answer in zip(users, perhaps) if answer]
found = sum(user in database for user in asked)
server.delete(KNOWN)
print(f"{found} of {len(database)} users found by {len(asked)} questions instead of {len(users)}")
