"""One wheel for all versions: it is built, and works where nothing else is installed; and the lines
of the README install it.

PERHAPS_BUILD_DIR has what CMake has built, so that it is not built again.  No test asks PyPI.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from support import TREE

pytest.importorskip('setuptools')
pytest.importorskip('wheel')
pytest.importorskip('pip')


WHEELS = pathlib.Path('/usr/share/python-wheels')  # from which Debian fills a new environment


def run(*words, cwd=None, **more):
    environment = {k: v for k, v in os.environ.items()
                   if k != 'PYTHONPATH' and not k.startswith('PIP_')}
    done = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True,
                          env={**environment, 'PIP_NO_INDEX': '1', **more})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def tree(tmp_path):
    return copy_tree(tmp_path / 'tree')


def copy_tree(tree):  # pip is not to write into the sources
    (tree / 'include').mkdir(parents=True)
    shutil.copy(TREE / 'include/perhaps.h', tree / 'include')
    shutil.copytree(TREE / 'bindings/python', tree / 'bindings/python')
    return tree


def install_lines():
    """The blocks of shell below 'Install' in the README, without what apt-get does."""
    text = (TREE / 'bindings/python/README.md').read_text()
    section = text.partition('\n## Install\n')[2].partition('\n## ')[0]
    blocks = re.findall(r'^```sh\n(.*?)^```$', section, re.MULTILINE | re.DOTALL)
    return [re.sub(r'^sudo apt-get (.*\\\n)*.*\n', '', block, flags=re.MULTILINE)
            for block in blocks]


def run_lines(lines, tree, **more):
    """Runs them in the tree, with the Python of the tests for 'python3'."""
    python = tree / 'bin/python3'
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    run('bash', '-ec', lines, cwd=tree, PATH=f'{python.parent}:{os.environ["PATH"]}', **more)
    out = run(tree / 'venv/bin/python', '-c',
              'import perhaps; print(perhaps.Filter(9, 0.1), perhaps.__file__)')
    assert str(tree / 'venv') in out


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    tree = copy_tree(tmp_path_factory.mktemp('wheel') / 'tree')
    run(sys.executable, '-m', 'pip', 'wheel', '--no-build-isolation', '--no-deps', '--no-index',
        '--no-cache-dir', '--disable-pip-version-check', '-w', tree / 'made',
        tree / 'bindings/python')
    wheels = list((tree / 'made').iterdir())
    assert len(wheels) == 1
    return wheels[0]


def test_what_is_in_it(wheel):
    assert wheel.name.endswith('.whl') and '-cp311-abi3-linux_' in wheel.name
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {'perhaps/__init__.py', 'perhaps/__init__.pyi', 'perhaps/py.typed',
            'perhaps/_perhaps.abi3.so', 'perhaps/copyright'} <= names
    terms = zipfile.ZipFile(wheel).read('perhaps/copyright').decode()
    assert 'Permission is hereby granted' in terms and 'Yann Collet' in terms
    assert not [name for name in names if name.endswith(('.c', '.h', '.o', '.pyc'))]


def test_it_works_in_a_clean_environment(wheel, tmp_path):
    run(sys.executable, '-m', 'venv', '--without-pip', tmp_path / 'venv')
    python = tmp_path / 'venv/bin/python'
    run(sys.executable, '-m', 'pip', '--python', python, 'install', '--no-deps', '--no-index',
        '--disable-pip-version-check', wheel)
    code = ('import perhaps, pickle, sys; f = perhaps.Filter(1000, 0.001); f.update(range(100));'
            'g = pickle.loads(pickle.dumps(f)); assert g == f and 5 in g and "numpy" not in sys.modules;'
            'print(perhaps.__version__, perhaps.__file__)')
    out = run(python, '-c', code)
    assert out.startswith(wheel.name.split('-')[1]) and str(tmp_path) in out


def test_the_lines_of_the_readme_need_no_network(tree):
    blocks = install_lines()
    assert len(blocks) == 2 and '--no-build-isolation' in blocks[0]
    run_lines(blocks[0], tree)


@pytest.mark.skipif(not list(WHEELS.glob('setuptools-*')) or not list(WHEELS.glob('wheel-*')),
                    reason='python3-setuptools-whl and python3-wheel-whl stand for PyPI')
def test_the_line_of_the_readme_for_those_who_reach_pypi(tree):
    run_lines(install_lines()[1], tree, PIP_FIND_LINKS=str(WHEELS))


def test_it_needs_no_hiredis_before_cluster_is_used():
    code = ('import perhaps; perhaps.Filter(10, 0.1);'
            'maps = open("/proc/self/maps").read(); assert "hiredis" not in maps')
    run(sys.executable, '-c', code, PYTHONPATH=os.environ['PYTHONPATH'])
