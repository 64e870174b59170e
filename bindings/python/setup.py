"""The wheel: CMake builds the extension modules, and this puts them into it.

PERHAPS_BUILD_DIR is a build of the project whose modules are taken as they are.  Otherwise they
are built.  All that is made lies in a temporary folder, and nothing in the source tree.  Filters
on servers are left out where there is no hiredis or OpenSSL, or if PERHAPS_CLUSTER is OFF.
"""
import atexit
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

PROJECT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r'^#define PERHAPS_VERSION +"(.*)"',
                    (PROJECT / 'include/perhaps.h').read_text(), re.MULTILINE)[1]
SCRATCH = tempfile.mkdtemp(prefix='perhaps-')
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)


def wants_cluster():
    asked = os.environ.get('PERHAPS_CLUSTER')
    if asked:
        return asked.upper() not in ('OFF', '0', 'NO', 'FALSE')
    return all(subprocess.run(['pkg-config', '--exists', name]).returncode == 0
               for name in ('hiredis', 'openssl'))


class Build(build_ext):
    """Takes both modules from a build of the project."""

    def run(self):
        self.cluster = wants_cluster()
        given = os.environ.get('PERHAPS_BUILD_DIR')
        self.project_build = pathlib.Path(given or pathlib.Path(self.build_temp, 'project'))
        if not given:
            self.build_project()
        super().run()

    def build_project(self):
        targets = ['perhaps_python'] + ['perhaps_python_cluster'] * self.cluster
        cluster = 'ON' if self.cluster else 'OFF'
        generator = ['-G', 'Ninja'] if shutil.which('ninja') else [] # else make
        subprocess.run(['cmake', '-S', PROJECT, '-B', self.project_build, *generator,
                        '-DCMAKE_BUILD_TYPE=Release', '-DPERHAPS_PYTHON=ON',
                        f'-DPython3_EXECUTABLE={sys.executable}', # whose headers it takes
                        f'-DPERHAPS_CLUSTER={cluster}', '-DPERHAPS_CLI=OFF', '-DPERHAPS_MODULE=OFF',
                        '-DPERHAPS_SQLITE=OFF', '-DPERHAPS_POSTGRES=OFF', '-DBUILD_TESTING=OFF'],
                       check=True)
        subprocess.run(['cmake', '--build', self.project_build, '--parallel', '--target', *targets],
                       check=True)

    def build_extension(self, ext):
        name = ext.name.rpartition('.')[2] + '.abi3.so'
        made = self.project_build / 'lib/python/perhaps' / name
        if not made.exists() and ext.optional:
            return
        place = pathlib.Path(self.get_ext_fullpath(ext.name)).with_name(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(made, place)
        shutil.copy(self.project_build / 'cmake/copyright', place.parent)


setup(
    version=VERSION,
    license='MIT',
    ext_modules=[Extension('perhaps._perhaps', [], py_limited_api=True),
                 Extension('perhaps._cluster', [], py_limited_api=True, optional=True)],
    cmdclass={'build_ext': Build},
    options={'bdist_wheel': {'py_limited_api': 'cp311'}, 'build': {'build_base': SCRATCH},
             'egg_info': {'egg_base': SCRATCH}},
)
