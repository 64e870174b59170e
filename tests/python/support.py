"""What several tests use."""
import os
import pathlib
import random

import perhaps

TREE = pathlib.Path(__file__).parents[2]


def chosen_seed():
    text = os.environ.get('PERHAPS_TEST_SEED') or '42'
    seed = random.getrandbits(32) | 1 if text == 'fresh' else int(text)
    if text == 'fresh':
        print(f'PERHAPS_TEST_SEED={seed}')  # which pytest shows if a test fails
    return seed


SEED = chosen_seed() or 42


def made_by(*keys, **options):
    """A filter with these keys, added one by one."""
    options = {'capacity': 1000, 'fpr': 1e-9, 'seed': SEED, 'hash': 'xxh3', **options}
    f = perhaps.Filter(**options)
    for key in keys:
        f.add(key)
    return f


def same_keys(some, others):
    """Whether these are the same keys, one after the other."""
    return made_by(*some) == made_by(*others)


def raised(error, call, *args, **kwargs):
    """The exception of this class, or a subclass, that the call raises."""
    try:
        call(*args, **kwargs)
    except error as e:
        return e
    raise AssertionError(f'{error.__name__} was not raised')
