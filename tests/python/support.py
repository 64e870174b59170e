"""What several tests use."""
import os
import pathlib

import perhaps

TREE = pathlib.Path(__file__).parents[2]
SEED = 1 + int(os.environ.get('PERHAPS_TEST_SEED') or 41)


def made_by(*keys, **options):
    """A filter with these keys, added one by one."""
    options = {'n': 1000, 'fpr': 1e-9, 'seed': SEED, 'hash': 'xxh3', **options}
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
