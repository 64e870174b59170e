"""Files: those of the command line and of the C library are the same."""
import errno
import os
import pathlib
import subprocess
import sys

import numpy
import perhaps
import pytest
from arrow import Column
from support import SEED, TREE, made_by, raised

GOLDEN = sorted((TREE / 'tests/golden').rglob('*.perhaps'))
CLI = pathlib.Path(os.environ.get('PERHAPS_BUILD_DIR', TREE / 'build')) / 'bin/perhaps'
needs_cli = pytest.mark.skipif(not CLI.exists(), reason='the command line is not built')
WORDS = ['apple', 'pear', 'plüm', '42', 'a b c', '日本']


def cli(*words, text=''):
    env = {k: v for k, v in os.environ.items() if k != 'LD_PRELOAD'}  # it has its own sanitizer
    done = subprocess.run([CLI, *map(str, words)], input=text.encode(), capture_output=True, env=env)
    assert done.returncode < 2, done.stderr.decode()
    return done.stdout.decode()


def lines(words):
    return ''.join(word + '\n' for word in words)


@needs_cli
def test_the_command_line_reads_what_python_saved(tmp_path):
    f = made_by(*WORDS, 7)
    f.save(tmp_path / 'f')
    answer = cli('query', tmp_path / 'f', text=lines(WORDS + ['7', 'stone']))
    assert answer == lines(WORDS)  # 7 is an int, and no text
    assert 'rate' in cli('info', tmp_path / 'f')
    cli('add', tmp_path / 'f', text='stone\n')
    assert 'stone' in perhaps.open(tmp_path / 'f') and 7 in perhaps.open(tmp_path / 'f')


@needs_cli
def test_python_reads_what_the_command_line_built(tmp_path):
    for options in ([], ['--removable'], ['--count'], ['--grow'], ['--static'], ['--prefer', 'compact']):
        cli('build', '-o', tmp_path / 'f', '-n', 1000, '-p', '1e-6', *options, text=lines(WORDS))
        f = perhaps.open(tmp_path / 'f')
        assert all(f.contains_many(WORDS)) and 'stone' not in f and 42 not in f


@needs_cli
@pytest.mark.parametrize('words, options', [
    ([], {}), (['--removable'], {'removable': True}), (['--prefer', 'compact'], {'prefer': 'compact'}),
    (['--kind', 'bloom'], {'kind': 'bloom'}), (['--grow'], {'grow': True}),
    (['--count'], {'count': True}), (['--window', '500-keys'], {'window': 500}),
    (['--window', '24h'], {'window': '24h'})])
def test_the_same_bytes_both_ways(tmp_path, words, options):
    verb = 'dedup' if 'window' in options else 'build'
    if verb == 'dedup':  # the command line has windows for this alone, and takes any seed
        cli('dedup', '--state', tmp_path / 'f', '-n', 1000, '-p', 0.001, *words, text=lines(WORDS))
        f, g = perhaps.open(tmp_path / 'f'), perhaps.Filter(1000, 0.001, **options)
        skip = {'keys', 'keys_different', 'fpr_now', 'load', 'bits_per_key', 'mapped',
                'memory_nbytes'}
        for name in set(dir(f.stats())) - skip:
            value = getattr(f.stats(), name)
            if not name.startswith('_') and not callable(value):
                assert value == getattr(g.stats(), name), name
        return
    cli('build', '-o', tmp_path / 'f', '-n', 1000, '-p', 0.001, '--seed', SEED, *words,
        text=lines(WORDS))
    f = perhaps.open(tmp_path / 'f')
    g = perhaps.Filter(1000, 0.001, seed=SEED, hash=f.stats().hash, **options)
    g.update(WORDS)
    # but for the header, where the command line notes how lines became keys
    assert behind_header(bytes(g)) == behind_header((tmp_path / 'f').read_bytes())


def behind_header(data):
    return data[int.from_bytes(data[12:14], 'little'):]


def secret_of(path, words=('--key-file',)):
    path.write_bytes(bytes(range(16)))
    return [*words, path]


@needs_cli
def test_a_secret_both_ways(tmp_path):
    key = tmp_path / 'key'
    secret = perhaps.Filter(10, 0.01, secret=True).secret
    key.write_text(secret.hex() + '\n')
    made_by(*WORDS, secret=secret, hash='sip', seed=None).save(tmp_path / 'f')
    assert cli('query', '--key-file', key, tmp_path / 'f', text=lines(WORDS)) == lines(WORDS)
    cli('build', '-o', tmp_path / 'g', '-n', 100, '--key-file', key, text=lines(WORDS))
    assert all(perhaps.open(tmp_path / 'g', secret=secret).contains_many(WORDS))
    raised(perhaps.SecretError, perhaps.open, tmp_path / 'g')


@pytest.mark.parametrize('path', GOLDEN, ids=lambda path: path.stem)
def test_golden_files(path):
    form = '10000000000%08d' if path.stem == 'bitmap' else 'golden key %08d'
    count = 6000 if path.stem == 'ribbon-of-layers' else 100
    keys = [form % i for i in range(count)]
    for mode in ('r', 'w'):
        f = perhaps.open(path, mode)
        assert all(f.contains_many(keys)) and all(key in f for key in keys[:100])
        others = [form % i for i in range(10000000, 10001000)]
        assert f.contains_many(others).count(True) < 20
        if path.parent.name == 'small' or len(bytes(f)) >= 65536:  # others were written before
            assert bytes(f) == path.read_bytes()
        assert f.stats().mapped == (mode == 'r') and f.kind == path.stem.split('-')[0]
        assert perhaps.Filter.from_bytes(path.read_bytes()) == f
    if path.stem == 'bitmap':
        assert int(keys[7]) in f and f.contains_many(numpy.array(keys, 'i8')).count(True) == 100


def test_modes(tmp_path):
    path = tmp_path / 'f'
    made_by('a').save(path)
    f = perhaps.open(path)
    raised(perhaps.ReadOnlyError, f.add, 'b')
    assert f.verify() > 0
    f = perhaps.open(str(path), 'w')
    f.add('b')
    assert 'b' not in perhaps.open(path)
    raised(perhaps.UnsupportedError, f.verify)
    f.save(os.fsencode(path))
    assert 'b' in perhaps.open(path, mode='r', check=True)
    with perhaps.open(path, 'in place') as f:
        assert f.stats().shared and f.stats().mapped
        f.add('c')
        assert 'c' in perhaps.open(path)
        f.sync()
    assert perhaps.open(path).verify() > 0
    raised(perhaps.UnsupportedError, perhaps.open(path, 'w').sync)
    for bad in ('rw', 'a', ''):
        assert "'in place'" in str(raised(ValueError, perhaps.open, path, bad))


def test_processes_share_a_file(tmp_path):
    path = tmp_path / 'f'
    perhaps.Filter(10000, 1e-6, seed=SEED).save(path)
    code = ('import perhaps, sys; f = perhaps.open(sys.argv[1], "in place");'
            'f.update(range(int(sys.argv[2]), int(sys.argv[2]) + 1000))')
    with perhaps.open(path, 'in place') as f:
        processes = [subprocess.Popen([sys.executable, '-c', code, path, str(i * 1000)])
                     for i in range(3)]
        f.update(range(3000, 4000))
        assert [p.wait() for p in processes] == [0] * 3
        assert all(f.contains_many(range(4000)))
    f = perhaps.open(path)
    assert f.verify() and all(f.contains_many(range(4000))) and len(f) == 4000


def test_errors_of_the_system(tmp_path):
    error = raised(FileNotFoundError, perhaps.open, tmp_path / 'none')
    assert error.errno == errno.ENOENT and error.filename == tmp_path / 'none'
    f = made_by()
    error = raised(OSError, f.save, tmp_path / 'no' / 'folder')
    assert error.errno == errno.ENOENT and error.filename == tmp_path / 'no' / 'folder'
    raised(IsADirectoryError, f.save, tmp_path)
    f.save(tmp_path / 'f', new=True)
    raised(FileExistsError, f.save, tmp_path / 'f', new=True)
    f.save(tmp_path / 'f')
    raised(TypeError, f.save, 5)
    raised(TypeError, perhaps.open, None)
    raised(ValueError, f.save, 'a\0b')
    if os.path.exists('/dev/full'):
        assert raised(OSError, f.save, '/dev/full').errno == errno.ENOSPC


def test_save_replaces_only_filters(tmp_path):
    notes = tmp_path / 'notes.txt'
    notes.write_text('mine')
    f = made_by(1, 2, capacity=10)
    builder = perhaps.Builder(fpr=0.01)
    for save in (f.save, builder.save):
        assert str(notes) in str(raised(FileExistsError, save, notes))
        assert notes.read_text() == 'mine'
    (tmp_path / 'empty').touch()
    for name in 'empty', 'new', 'new':
        f.save(tmp_path / name)


def test_files_that_are_no_filters(tmp_path):
    path = tmp_path / 'f'
    made_by(*range(1000), capacity=100000).save(path)
    good = path.read_bytes()
    path.write_bytes(b'something else' * 1000)
    error = raised(perhaps.FormatError, perhaps.open, path)
    assert str(path) in str(error)
    path.write_bytes(good[:-1])
    raised(perhaps.DamagedError, perhaps.open, path)
    at = len(good) // 2
    path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
    raised(perhaps.DamagedError, perhaps.open, path, 'w')
    damaged = perhaps.open(path)
    raised(perhaps.DamagedError, damaged.verify)
    # What is copied from it would have checksums that are right.
    error = raised(perhaps.DamagedError, damaged.save, tmp_path / 'copy')
    assert 'copy' not in str(error) and not (tmp_path / 'copy').exists()
    for way in (damaged.copy, damaged.__reduce__, damaged.__bytes__):
        raised(perhaps.DamagedError, way)
    os.truncate(path, 0)
    raised(perhaps.FormatError, perhaps.open, path)


def test_bytes():
    f = made_by('a')
    data = bytes(f)
    for form in (data, bytearray(data), memoryview(data)):
        assert perhaps.Filter.from_bytes(form) == f
    raised(perhaps.DamagedError, perhaps.Filter.from_bytes, data + b'!')
    for bad in (b'', b'x', data[:50], data[::-1]):
        raised(perhaps.FormatError, perhaps.Filter.from_bytes, bad)
    raised(TypeError, perhaps.Filter.from_bytes, 'text')
    raised(BufferError, perhaps.Filter.from_bytes, memoryview(data * 2)[::2])


def test_bytes_of_an_enemy():
    """Any byte may be wrong: there is an error, or it was none that counts."""
    data = bytes(made_by(*range(20), capacity=20))
    for at in [*range(0, 4096, 7), *range(len(data) - 200, len(data))]:
        if at >= len(data):
            continue
        bad = bytearray(data)
        bad[at] ^= 0x41
        try:
            perhaps.Filter.from_bytes(bad)
        except (perhaps.Error, MemoryError):
            continue
        raise AssertionError(f'byte {at} was not missed')


@needs_cli
def test_case_that_was_ignored(tmp_path):
    """What --ignore-case noted with a file holds for texts from here, too, in every form."""
    long = 'L' * 70000
    words = ['Foo', 'BAR', 'Süß', long]
    cli('build', '--ignore-case', '--count', '-n', 100, '-p', 1e-9, '-o', tmp_path / 'F', text=lines(words))
    with perhaps.open(tmp_path / 'F', 'w') as f:
        for word in words + ['foo', 'fOO', b'FOO', bytearray(b'bAR'), memoryview(b'Bar'), long.lower()]:
            assert word in f and f.count(word) == 1
        for keys in (words, iter(words), [b'foo', bytearray(b'BAR')], numpy.array(words[:3]),
                     numpy.array([b'FOO', b'bar']), Column('u', ['FOO', 'bar'] * 2000 + [long])):
            assert all(f.contains_many(keys)), keys
        assert 'FO' not in f and 'süẞ' not in f
        # an int is no text, whatever letters its bytes are
        number = int.from_bytes(b'ABCDEFGH', 'little')
        f.add(number)
        assert number in f and number + (0x20 << 8) not in f
        assert list(f.contains_many(numpy.array([number]))) == [True]
        assert list(f.contains_many([number, number + 0x20])) == [True, False]
        f.add('New')
        f.update(['MORE', b'Yet'])
        assert all(word in f for word in ('new', 'more', 'yet'))
        f.remove('nEW')
        assert 'New' not in f
        f.save(tmp_path / 'G')
    assert cli('query', tmp_path / 'G', text='MORE\nNew\n') == 'MORE\n'
