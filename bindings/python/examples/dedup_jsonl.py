"""Drops repeated documents from JSON lines: python3 dedup_jsonl.py <corpus.jsonl >unique.jsonl

A document is the same if its text is, whatever else its line has.  Of 1000 new documents at most
one is dropped by mistake.  The filter of a run is kept in a file, so that the next run knows what
came before.
"""
import json
import os
import sys

import perhaps

STATE = os.environ.get('STATE', 'seen.perhaps')


def main():
    if os.path.exists(STATE):
        seen = perhaps.open(STATE, 'w')
    else:
        seen = perhaps.Filter(fpr=0.001, grow=True)  # nobody knows how many will come
    read = kept = 0
    for line in sys.stdin:
        read += 1
        text = ' '.join(json.loads(line)['text'].split())
        if seen.add_new(text):
            kept += 1
            sys.stdout.write(line)
    seen.save(STATE)
    print(f'{kept} of {read} documents are new; {len(seen)} are known', file=sys.stderr)


if __name__ == '__main__':
    main()
