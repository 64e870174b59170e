"""Is this key in the set?  "Certainly not" (False), or "perhaps" (True).

Integers and their decimal text are DIFFERENT keys: 42 is not '42'.  A key is a str (as UTF-8),
bytes, a bytearray or a memoryview, or an int (as 8 bytes, little-endian, from -2**63 to
2**64 - 1).  Nothing else is one: floats, bools, None and tuples raise TypeError.  The keys are
those of the command line, whose lines are text, and of the C library.

>>> import perhaps
>>> seen = perhaps.Filter(1_000_000, 0.001)       # a million keys; one answer in 1000 is wrong
>>> seen.add('http://example.com/')
>>> 'http://example.com/' in seen
True
>>> seen.update(str(n) for n in range(1000))
>>> '42' in seen, 42 in seen
(True, False)
>>> len(seen)
1001

A filter answers from a few bits a key.  For a key that was added the answer is always True.  For
any other key it is True with a probability of at most the rate that was asked for.
"""
import operator

from ._perhaps import *  # noqa: F403: all that it has is public
from ._perhaps import Builder, open, version as __version__

# open() stands in for the builtin one here, and so is not for 'import *'
__all__ = [name for name in dir() if name[0].isupper()] + ['build', 'plan']


def _say_of_what(error, name):
    """Puts the argument's name before an error that tells another one, or none."""
    if type(error) in (TypeError, ValueError):
        error.args = (f'{name}: {error}',)


def _values_and_bits(values, value_bits):
    """The values as a list, and how many bits the largest has."""
    try:
        values = [operator.index(value) for value in values]
    except TypeError as error:
        _say_of_what(error, 'values')
        raise
    if value_bits is None:
        value_bits = max([1, *(value.bit_length() for value in values if 0 <= value < 2**16)])
    return values, value_bits


def build(keys, fpr, against=None, *, values=None, value_bits=None, path=None, capacity=0,
          **options):
    """Returns a filter of all keys, which is smaller than one that keys are added to later.

    keys        an array, Arrow data, or anything iterable, which is read once
    against     keys that are known not to be among these: the filter makes no error on them
    values      an int of value_bits bits for each key: Filter.get()
    capacity    how many keys there are; 0: they are counted
    path        writes the filter to this file, whose size memory does not limit, and opens it

    The other options are those of Filter and Builder.

    >>> fruit = build(['apple', 'pear'], 0.001)
    >>> 'pear' in fruit, fruit.kind
    (True, 'ribbon')
    >>> build(['apple', 'pear'], 0.001, values=[3, 5]).get('pear')
    5
    """
    if values is not None:
        options.setdefault('kind', 'ribbon')
        values, value_bits = _values_and_bits(values, value_bits)
    if against is not None:
        options.setdefault('kind', 'against')
        if hasattr(against, '__len__'):
            options.setdefault('others', min(len(against), 2**48))  # which may say anything
    builder = Builder(capacity, fpr, value_bits=0 if value_bits is None else value_bits, **options)
    builder.add_many(keys, values)
    if against is not None:
        try:
            builder.add_others(against)
        except Exception as error:
            _say_of_what(error, 'against')
            raise
    if path is None:
        return builder.finish()
    builder.save(path)
    return open(path, secret=options.get('secret'))


def __getattr__(name):
    """Loads the client of servers, and its libraries, when it is first asked for."""
    if name in ('Cluster', 'ClusterStats'):
        from . import _cluster
        return getattr(_cluster, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
