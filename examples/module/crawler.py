#!/usr/bin/env python3
"""Prints the URLs that no crawler has had for a while: a Bloom filter that forgets.

Any number of crawlers may share the filter: each URL goes to one of them.  A URL that comes again
within the window is remembered for another window, and is not printed.
Run: crawler.py [redis://127.0.0.1:6379 [24h]] <urls, a server that has loaded perhaps.so
"""
import itertools
import sys

import redis

SEEN, CAPACITY, RATE = "example:seen", 1_000_000, 0.001  # URLs in a window; share of needless skips
server = redis.Redis.from_url(sys.argv[1] if len(sys.argv) > 1 else "redis://127.0.0.1:6379")
window = sys.argv[2] if len(sys.argv) > 2 else "24h"

try:
    server.execute_command("BF.RESERVE", SEEN, RATE, CAPACITY, "WINDOW", window)
except redis.ResponseError as error:
    if "item exists" not in str(error):
        raise  # another crawler has made it

lines = (line.rstrip("\n") for line in sys.stdin)
while batch := list(itertools.islice(lines, 1000)):
    for url, is_new in zip(batch, server.bf().madd(SEEN, *batch)):
        if isinstance(is_new, redis.ResponseError):
            raise is_new
        if is_new:
            print(url)  # here a crawler would fetch it
