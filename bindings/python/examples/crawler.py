"""A crawler that remembers where it was: python3 crawler.py folder/index.html

It follows the links of pages in files, as one on the web would follow those of addresses.  Many
threads share the filter: add_new() tells one of them alone that an address is new.
"""
import pathlib
import queue
import re
import sys
import threading

import perhaps

# At 1e-6 about one page in a million is missed.
seen = perhaps.Filter(1_000_000, 1e-6, removable=True, shared=True)
waiting = queue.Queue()


def visit():
    while True:
        page = waiting.get()
        if page.exists():
            sys.stdout.write(f'{page.name}\n')
            for link in re.findall(r'href="([^"]+)"', page.read_text()):
                target = (page.parent / link).resolve()
                if seen.add_new(str(target)):
                    waiting.put(target)
        waiting.task_done()


first = pathlib.Path(sys.argv[1]).resolve()
seen.add(str(first))
waiting.put(first)
for _ in range(4):
    threading.Thread(target=visit, daemon=True).start()
waiting.join()
print(f'{len(seen)} addresses are known', file=sys.stderr)
