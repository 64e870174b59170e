"""One wheel for all versions: it is built, and works where nothing else is installed.

PERHAPS_BUILD_DIR has what CMake has built, so that it is not built again.
"""
import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from support import TREE

pytest.importorskip('setuptools')
pytest.importorskip('wheel')
pytest.importorskip('pip')


def run(*words, **more):
    environment = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}
    done = subprocess.run(list(map(str, words)), env={**environment, **more}, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    tree = tmp_path_factory.mktemp('tree')  # pip is not to write into the sources
    (tree / 'include').mkdir()
    shutil.copy(TREE / 'include/perhaps.h', tree / 'include')
    shutil.copytree(TREE / 'bindings/python', tree / 'bindings/python')
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
            'perhaps/_perhaps.abi3.so'} <= names
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


def test_it_needs_no_hiredis_before_cluster_is_used():
    code = ('import perhaps; perhaps.Filter(10, 0.1);'
            'maps = open("/proc/self/maps").read(); assert "hiredis" not in maps')
    run(sys.executable, '-c', code, PYTHONPATH=os.environ['PYTHONPATH'])
