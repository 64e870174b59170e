"""What is no argument is refused by its name: TypeError for a wrong type, ValueError for a value.

The table has a row for each parameter of each public call; the stub and the signatures are
compared with it, so that a new one is not forgotten."""
import array
import ast
import datetime
import inspect

import perhaps
import pytest
from support import SEED, TREE, made_by, raised

try:
    from perhaps import Cluster
except ImportError:  # built without the client
    Cluster = None

THING = object()

# kind of parameter: (things of a wrong type, wrong values)
WRONG = {
    'capacity': (['x', b'1', [], 1j, True, None, THING],
                 [0, -1, 0.5, 1000.5, -5.0, float('nan'), float('inf'), 2**48 + 1, 10**30, 1e30,
                  -10**30]),
    'number': (['x', b'1', [], 1j, True, None, THING],
               [-1, 0.5, -5.0, float('nan'), float('inf'), 10**30, 1e30, -10**30]),
    'fpr': (['0.01', b'1', [], 1j, True, THING],
            [1, 1.0, 2, -0.1, 1e-16, float('nan'), float('inf'), 10**400]),
    'flag': (['yes', '', [], 0.5, 2, None, THING], []),
    'kind': ([5, b'blocked', [], 1.5, THING], ['sieve', '', 'a\0b', 'blocked\0', '\ud800']),
    'mode': ([5, b'r', [], 1.5, None, THING], ['x', '', 'r\0', '\ud800']),
    'hash': ([5, b'sip', [], THING], ['md5', '', 'custom', 'sip\0', '\ud800']),
    'prefer': ([5, b'fast', [], THING], ['cheap', '', 'fast\0']),
    'seed': (['x', b'1', 1.5, 1e6, [], True, THING], [0, -1, 2**64, 10**30, -10**30]),
    'secret': (['0123456789abcdef', 5, [], bytearray(16), THING], [b'', b'short', bytes(17)]),
    'window': ([b'24h', [], 1j, True, THING],
               [0, -1, 1.5, 2**64, 10**30, -10**30, '', 'soon', '5', '-5s', 'nans', '1e30s', '5s\0',
                datetime.timedelta(0), datetime.timedelta(-1)]),
    'integers': ([5, 'x', [1, 2], (1, 2), slice(1, 2), THING],
                 [range(5, 5), range(0, 9, 2), range(9, 0, -1), range(-5, 5), range(2**70),
                  range(1)]),
    'path': ([5, 1.5, [], None, THING], ['a\0b', b'a\0b']),
    'folder': ([5, 1.5, [], b'x', THING], ['a\0b', '\ud800']),
    'text': ([5, 1.5, [], b'x', THING], ['a\0b', '\ud800']),
    'data': (['text', 5, None, [], THING], []),
    'key': ([None, 1.5, True, (), [], THING], ['\ud800']),
    'keys': (['one', b'one', bytearray(b'one'), 5, 1.5, None, THING, [None], [1.5], [[]],
              array.array('d', [1])], ['\ud800x'.split('y')]),
    'values': ([5, None, 1.5, THING, ['x'], [1.5], [None]], [[-1], [2**16], [2**40], [10**30]]),
    'value_bits': (['x', [], 1j, True, THING], [-1, 17, 0.5, 10**30]),
    'now': (['noon', [], 1j, THING], [-1, float('nan'), float('inf'), 1e30, 10**400]),
    'seconds': (['x', b'1', [], 1j, None, THING], [-1, float('nan'), float('inf'), 1e7, 10**400]),
    'filter': ([5, 'x', None, [], {1}, THING], []),
    'any': ([], []),
}
WRONG['shrink_fpr'] = WRONG['fpr'][0], [1, 1.0, 2, -0.1, float('nan'), float('inf'), 10**400]
WRONG['threads'] = WRONG['number'][0], WRONG['number'][1] + [1025]
WRONG['optional_values'] = [v for v in WRONG['values'][0] if v is not None], WRONG['values'][1]
WRONG['against'] = [v for v in WRONG['keys'][0] if v is not None], WRONG['keys'][1]
WRONG['optional_path'] = [v for v in WRONG['path'][0] if v is not None], WRONG['path'][1]

FOR_FILTERS = {
    'capacity': 'capacity', 'fpr': 'fpr', 'removable': 'flag', 'grow': 'flag', 'window': 'window',
    'secret': 'secret', 'count': 'flag', 'shared': 'flag', 'kind': 'kind', 'base': 'kind',
    'seed': 'seed', 'hash': 'hash', 'prefer': 'prefer', 'integers': 'integers', 'together': 'flag',
}
FOR_PLANS = {**FOR_FILTERS, 'others': 'number', 'value_bits': 'value_bits'}
FOR_BUILDERS = {**FOR_PLANS, 'memory': 'number', 'threads': 'threads', 'folder': 'folder'}
del FOR_BUILDERS['capacity']  # which may be 0, for unknown: below


def filter_of(**options):
    return made_by('apple', fpr=1e-6, **options)


def against_builder():
    builder = perhaps.Builder(fpr=0.01, kind='against', others=1)
    builder.add_many(['x'])
    return builder


def valued_builder():
    return perhaps.Builder(fpr=0.01, kind='ribbon', value_bits=8)


# The name of each call; what makes it; its right arguments; the kind of each parameter.
CALLS = {
    'Filter': (lambda: perhaps.Filter, {'capacity': 100, 'fpr': 0.01},
               {**FOR_FILTERS, 'like': 'any'}),
    'plan': (lambda: perhaps.plan, {'capacity': 100, 'fpr': 0.01}, {**FOR_PLANS, 'static': 'flag'}),
    'Builder': (lambda: perhaps.Builder, {'fpr': 0.01}, {**FOR_BUILDERS, 'capacity': 'number'}),
    'build': (lambda: perhaps.build, {'keys': ['a'], 'fpr': 0.01},
              {'keys': 'keys', 'fpr': 'fpr', 'against': 'against', 'values': 'optional_values',
               'value_bits': 'value_bits', 'path': 'optional_path', 'capacity': 'number',
               'options': 'any'}),
    'open': (lambda: perhaps.open, {'path': '/'},
             {'path': 'path', 'mode': 'mode', 'secret': 'secret', 'check': 'flag'}),
    'Filter.from_bytes': (lambda: perhaps.Filter.from_bytes, {'data': bytes(filter_of())},
                          {'data': 'data', 'secret': 'secret'}),
    'Filter.save': (lambda: filter_of().save, {'path': '/'}, {'path': 'path', 'new': 'flag'}),
    'Filter.shrink': (lambda: filter_of().shrink, {}, {'fpr': 'shrink_fpr'}),
    'Filter.predict_fpr': (lambda: filter_of().predict_fpr, {'keys': 5}, {'keys': 'number'}),
    'Filter.set_back': (lambda: perhaps.Filter(100, 0.01, window='1h').set_back, {}, {'now': 'now'}),
    'Filter.advance': (lambda: perhaps.Filter(100, 0.01, window='1h').advance, {}, {'now': 'now'}),
    'Filter.get': (lambda: perhaps.build(['a'], 0.01, values=[1]).get, {'key': 'a'},
                   {'key': 'key', 'default': 'any'}),
    'Builder.add_many': (valued_builder, {'keys': ['a'], 'values': [1]},
                         {'keys': 'keys', 'values': 'values'}),
    'Builder.add_others': (against_builder, {'keys': ['a']}, {'keys': 'keys'}),
    'Builder.save': (valued_builder, {'path': '/'}, {'path': 'path'}),
}
CALLS['Builder.add_many'] = (lambda: valued_builder().add_many, *CALLS['Builder.add_many'][1:])
CALLS['Builder.add_many'][2]['values'] = 'optional_values'
CALLS['Builder.add_others'] = (lambda: against_builder().add_others,
                               *CALLS['Builder.add_others'][1:])
CALLS['Builder.save'] = (lambda: perhaps.Builder(fpr=0.01).save, *CALLS['Builder.save'][1:])
for name in ('add', 'add_new', 'remove', 'count'):
    CALLS[f'Filter.{name}'] = (
        lambda name=name: getattr(filter_of(removable=True, kind='cuckoo'), name),
        {'key': 'apple'}, {'key': 'key'})
for name in ('add_many', 'update', 'add_new_many', 'contains_many', 'remove_many', 'count_many'):
    CALLS[f'Filter.{name}'] = (
        lambda name=name: getattr(filter_of(removable=True, kind='cuckoo'), name),
        {'keys': ['apple']}, {'keys': 'keys'})
CALLS['Filter.get_many'] = (lambda: perhaps.build(['a'], 0.01, values=[1]).get_many,
                            {'keys': ['a']}, {'keys': 'keys'})
if Cluster:
    FOR_SERVERS = {'url': 'redis://127.0.0.1:1/x'}
    CALLS['Cluster'] = (lambda: Cluster, FOR_SERVERS, {
        'url': 'text', 'secret': 'secret', 'user': 'text', 'password': 'text', 'timeout': 'seconds',
        'patience': 'seconds', 'deadline': 'seconds', 'replicas': 'flag', 'acknowledge': 'number'})
    far = lambda: Cluster(**FOR_SERVERS, patience=0.01)  # noqa: E731: nobody answers
    CALLS['Cluster.create'] = (lambda: far().create, {'capacity': 10, 'fpr': 0.1}, {
        'capacity': 'capacity', 'fpr': 'fpr', 'grow': 'flag', 'partitions': 'number'})
    CALLS['Cluster.upload'] = (lambda: far().upload, {'filter': filter_of()},
                               {'filter': 'filter', 'partitions': 'number'})
    CALLS['Cluster.save'] = (lambda: far().save, {'path': '/'}, {'path': 'path'})
    for name in ('add', 'add_new'):
        CALLS[f'Cluster.{name}'] = (lambda name=name: getattr(far(), name), {'key': 'a'},
                                    {'key': 'key'})
    for name in ('add_many', 'update', 'add_new_many', 'contains_many'):
        CALLS[f'Cluster.{name}'] = (lambda name=name: getattr(far(), name), {'keys': ['a']},
                                    {'keys': 'keys'})

NO_ARGUMENTS = {'stats', 'digest', 'copy', 'clear', 'rotate', 'sync', 'verify', 'close', 'finish',
                'delete'}
TYPES = {'Filter', 'Builder', 'Cluster'}


def parameters_of(thing):
    return [p for p in inspect.signature(thing).parameters if p != 'self']


def call_with(call, arguments):
    """Calls it, with those of its arguments by position that take no name."""
    signature = inspect.signature(call).parameters
    positional = [arguments.pop(name) for name, p in signature.items()
                  if p.kind == p.POSITIONAL_ONLY and name in arguments]
    call(*positional, **arguments)


@pytest.mark.parametrize('name', CALLS)
def test_wrong_arguments(name):
    make, right, kinds = CALLS[name]
    failures = []
    for parameter, kind in kinds.items():
        for error, things in zip((TypeError, ValueError), WRONG[kind]):
            for thing in things:
                arguments = {**right, parameter: thing}
                try:
                    call_with(make(), arguments)
                    failures.append(f'{parameter}={thing!r}: no error')
                except (error, OverflowError if kind == 'key' else error) as e:
                    said = 'a key' if isinstance(thing, list) and kind == 'keys' else parameter
                    if said not in str(e) and not isinstance(e, UnicodeEncodeError):
                        failures.append(f'{parameter}={thing!r}: does not name it: {e}')
                except BaseException as e:
                    failures.append(f'{parameter}={thing!r}: {type(e).__name__}: {e}')
    assert not failures, '\n' + '\n'.join(failures)


@pytest.mark.parametrize('name', CALLS)
def test_the_table_has_all_parameters(name):
    make, _, kinds = CALLS[name]
    names = parameters_of(make())
    assert sorted(names) == sorted(kinds), f'{name}{tuple(names)}'


@pytest.mark.parametrize('name', CALLS)
def test_other_names_and_numbers_of_arguments(name):
    make, right, kinds = CALLS[name]
    error = raised(TypeError, make(), *[1] * 30)
    assert 'argument' in str(error)
    if 'key' in kinds or 'keys' in kinds and len(kinds) == 1 or name.endswith('r.save'):
        return  # takes no names
    if name not in ('build', 'Filter.advance', 'Filter.set_back'):
        error = raised(TypeError, lambda: make()(**right, colour='red'))
        assert 'colour' in str(error) or 'keyword' in str(error)
    for missing in right:
        if missing not in ('values',):
            rest = {key: value for key, value in right.items() if key != missing}
            assert missing in str(raised(TypeError, lambda: make()(**rest)))


def test_the_table_has_all_calls():
    told = set(CALLS)
    for name in ['build', 'plan', 'open', *TYPES]:
        if name != 'Cluster' or Cluster:
            assert name in told
            told.discard(name)
    for name in TYPES if Cluster else TYPES - {'Cluster'}:
        for member, method in vars(getattr(perhaps, name)).items():
            if not member.startswith('_') and member not in NO_ARGUMENTS and (
                    callable(method) or isinstance(method, classmethod)):
                assert f'{name}.{member}' in told
                told.discard(f'{name}.{member}')
    assert not told


def test_the_stub_has_these_parameters():
    stub = ast.parse((TREE / 'bindings/python/perhaps/__init__.pyi').read_text())
    functions = {n.name: n for n in stub.body if isinstance(n, ast.FunctionDef)}
    for node in stub.body:
        if isinstance(node, ast.ClassDef) and node.name in TYPES:
            for n in node.body:
                if isinstance(n, ast.FunctionDef) and (n.name == '__new__' or n.name[0] != '_'):
                    functions[node.name if n.name == '__new__' else f'{node.name}.{n.name}'] = n
    for name, (make, _, kinds) in CALLS.items():
        a = functions[name].args
        names = [arg.arg for arg in [*a.posonlyargs, *a.args, *a.kwonlyargs]]
        names = [n for n in names if n not in ('self', 'cls')] + ([a.kwarg.arg] if a.kwarg else [])
        assert sorted(names) == sorted(kinds), name


@pytest.mark.parametrize('whole', [1e6, 10**6, 1000000.0])
def test_a_whole_number_may_be_a_float(whole):
    f = perhaps.Filter(whole, 0.01, seed=SEED)
    assert f.stats().capacity == 10**6 and f == perhaps.Filter(10**6, 0.01, seed=SEED)
    assert perhaps.plan(1e6, .01).capacity == 10**6
    assert perhaps.Filter(fpr=0.01, window=1e3).stats().capacity == 1000
    error = raised(ValueError, perhaps.Filter, 1000.5, 0.01)
    assert str(error) == 'capacity is a whole number, and not 1000.5'


def test_numbers_of_numpy():
    numpy = pytest.importorskip('numpy')
    for number in (numpy.int32(1000), numpy.uint64(1000), numpy.float64(1000)):
        assert perhaps.Filter(number, numpy.float64(0.01)).stats().capacity == 1000
    assert perhaps.Filter(1000, numpy.float32(0.01), removable=numpy.bool_(True)).kind != 'blocked'


def test_what_is_missing():
    for call in (perhaps.Filter, perhaps.plan):
        assert 'fpr' in str(raised(TypeError, call, 1000))
        assert 'fpr' in str(raised(TypeError, call, 1000, kind='cuckoo'))
        assert 'capacity' in str(raised(TypeError, call, fpr=0.01))
        assert 'capacity' in str(raised(TypeError, call))
    assert 'fpr' in str(raised(TypeError, perhaps.Builder))
    assert 'fpr' in str(raised(TypeError, perhaps.build, ['a']))
    assert 'integers' in str(raised(TypeError, perhaps.Filter, 100, 0.01, kind='bitmap'))


def test_twice():
    assert 'fpr' in str(raised(TypeError, lambda: perhaps.Filter(100, 0.01, fpr=0.01)))


def test_options_that_do_not_go_together():
    for options, name in [({'hash': 'integer'}, 'hash'),
                          ({'integers': range(5), 'hash': 'xxh3-64'}, 'hash'),
                          ({'secret': True, 'hash': 'xxh3'}, 'hash'),
                          ({'secret': bytes(16), 'hash': 'none'}, 'hash'),
                          ({'secret': True, 'integers': range(5)}, 'secret')]:
        error = raised(ValueError, perhaps.Filter, 100, 0.01, **options)
        assert name in str(error), error
