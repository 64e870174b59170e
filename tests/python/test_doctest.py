"""The examples of the docstrings and of README.md, and the stub."""
import ast
import doctest
import pathlib

import perhaps
from support import TREE

BINDING = TREE / 'bindings/python'


def test_docstrings():
    results = doctest.testmod(perhaps)
    assert results.failed == 0 and results.attempted > 20


def test_readme(tmp_path):
    text = (BINDING / 'README.md').read_text().replace('/tmp/', f'{tmp_path}/')
    text = text.replace('```', '')  # which would be output
    test = doctest.DocTestParser().get_doctest(text, {}, 'README.md', None, 0)
    results = doctest.DocTestRunner().run(test)
    assert results.failed == 0 and results.attempted > 15


def names_of(body):
    return {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def test_the_stub_has_all_that_there_is():
    stub = ast.parse((BINDING / 'perhaps/__init__.pyi').read_text())
    protocols = {'_ArrowArray', '_ArrowStream'}
    optional = {'Cluster', 'ClusterStats'}
    assert set(perhaps.__all__) - optional == names_of(stub.body) - protocols - optional - {'open'}
    for node in stub.body:
        if not isinstance(node, ast.ClassDef) or node.name in protocols | optional:
            continue
        real = getattr(perhaps, node.name)
        here = {name for name in vars(real) if not name.startswith('_')}
        told = names_of(node.body) | {n.target.id for n in node.body if isinstance(n, ast.AnnAssign)}
        told = {name for name in told if not name.startswith('_')} - {'done'}
        here -= {'n_fields', 'n_sequence_fields', 'n_unnamed_fields'}
        assert here == told, node.name
        for name in names_of(node.body) - {'__buffer__'}:  # which Python shows from 3.12 on
            assert hasattr(real, name), name


def test_the_package_is_marked_as_typed():
    folder = pathlib.Path(perhaps.__file__).parent
    assert (folder / 'py.typed').exists() and (folder / '__init__.pyi').exists()


def test_everything_public_is_explained():
    for name in perhaps.__all__:
        thing = getattr(perhaps, name)
        assert thing.__doc__, name
        for member, method in vars(thing).items() if isinstance(thing, type) else ():
            if not member.startswith('_') and callable(method):
                assert method.__doc__, f'{name}.{member}'
