"""Was this password leaked?  python3 passwords.py build LIST FILTER;  ... check FILTER

The list has a password a line.  The filter of all 900 million known ones takes 1.6 GB at an error
rate of 1e-4: one good password in 10,000 is refused, and every leaked one.  It is mapped, and so
opens at once.
"""
import sys

import perhaps


def build(source, target):
    with open(source, errors='surrogateescape') as lines:
        keys = (line.rstrip('\n').encode(errors='surrogateescape') for line in lines)
        leaked = perhaps.build(keys, 1e-4, path=target)
    print(f'{len(leaked)} passwords in {leaked.stats().memory_nbytes} bytes', file=sys.stderr)


def check(target):
    with perhaps.open(target) as leaked:
        for line in sys.stdin:
            password = line.rstrip('\n')
            good = len(password) >= 8 and password not in leaked
            print('good' if good else 'leaked' if password in leaked else 'too short')


if __name__ == '__main__':
    {'build': build, 'check': check}[sys.argv[1]](*sys.argv[2:])
