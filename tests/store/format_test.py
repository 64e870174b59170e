"""Compares the second reader of filter files (format_reader.py) with the library.

format_test.py PERHAPS FOLDER: for the golden files in FOLDER and below, and for files that the command PERHAPS
builds, both readers give the same answer to each key; and both refuse the same damaged files."""
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from struct import pack, unpack_from

from format_reader import GOLDEN, M, header_sum, read, small_sum

FORMS = {  # how the key of a number looks
    "golden": lambda i: b"golden key %08d" % i,
    "bitmap": lambda i: b"%d" % (10 ** 18 + i),
    "none": lambda i: b"%016x" % ((i + 1) * GOLDEN & M),
    "none-64": lambda i: b"%08x" % (((i + 1) * GOLDEN & M) >> 32),
}
COPIES = {"counting": 20, "cuckoo": 2, "elastic": 2}  # the kinds that count, and how often some keys come
SECRET = bytes(range(16))
BUILDS = """20000 --kind ribbon:value-bits=13 -p 0.1 -d: --field 1 --value-field 2
90000 --kind elastic:until=3e6 -p 0.05 --removable
9000 --kind elastic -p 0.05
2000 --kind blocked -p 0.05
2000 --kind blocked:together -p 0.001 --prefer compact --key-file secret
2000 --kind bloom -p 0.05 --hash none
2000 --kind bloom -p 0.05 --hash none-64
2000 --kind cuckoo -p 0.02 -n 4000 --removable
2000 --kind cuckoo -p 0.02 -n 2000
2000 --kind strided -p 0.004
20000 --kind strided -p 1e-6 --removable
2000 --kind counting -p 0.0001 --count
2000 --kind counting -p 0.01
2000 --kind chain:factor=1,base=bloom -p 0.1 -n 100
2000 --kind chain:base=counting -p 0.1 -n 100 --removable
2000 --kind chain:base=cuckoo -p 0.1 -n 100
2000 --kind ribbon -p 0.02
9000 --kind ribbon -p 0.0002
2000 --kind ribbon -p 1e-6
2000 --kind against -p 0.3 --against golden
2000 --kind against:group=16 -p 0.3 --against golden
20000 --kind against:group=15 --against golden""".splitlines()

def run(*words, keys=()):
    given = b"".join(key + b"\n" for key in keys)
    return subprocess.run([PERHAPS, *words, "-q"], input=given, capture_output=True)

def compare(path, form, *sip, values=False):
    """Asks both for many keys, among them those for which the library errs."""
    found = read(path.read_bytes(), SECRET)
    keys = [FORMS[form](i) for i in (*range(2000), *range(200000, 202000))]
    keys += run("query", path, form, *sip).stdout.splitlines()[-300:]
    keys += [b"", b"+1000000000000000003", b"01000000000000000003"] if "none" not in form else []
    mine = [found(key) for key in keys]
    labels = [b"no" if not n else b"%d" % (n - 1) if values else b"perhaps" for n in mine]
    theirs = run("query", path, "--label", *sip, keys=keys).stdout.splitlines()
    assert theirs == [label + b"\t" + key for label, key in zip(labels, keys)], path
    if any(kind in path.name for kind in COPIES) and not path.read_bytes()[16] & 4:
        counts = [key + (b"\t%d" % n if n < 15 else b"\t15+") for key, n in zip(keys, mine)]
        assert run("count", path, keys=keys).stdout.splitlines() == counts, path
    print(f"{path.name}: {len(keys)} keys, {len(keys) - mine.count(0)} are perhaps there")

def refused(data):
    """Whether both refuse a file of these bytes.  They must agree."""
    Path("damaged").write_bytes(data)
    theirs = run("verify", "damaged")
    assert theirs.returncode == 0 or theirs.stderr.startswith(b"perhaps: "), theirs.stderr
    try:
        mine = read(data) and None
    except ValueError as error:
        mine = error
    assert bool(mine) == (theirs.returncode != 0), f"{mine}, but the library: {theirs.stderr}"
    return bool(mine)

def is_small(data):
    return data[16] & 16

def changed(data, at, new):
    """Other bytes in the header, with the right checksum."""
    data = data[:at] + new + data[at + len(new):]
    if is_small(data):
        return data[:24] + pack("<Q", small_sum(data, unpack_from("<H", data, 12)[0])) + data[32:]
    return data[:32] + pack("<Q", header_sum(data, unpack_from("<I", data, 12)[0])) + data[40:]

def try_golden(path, rng):
    data = path.read_bytes()
    form, small = "bitmap" if "bitmap" in path.name else "golden", is_small(data)
    (head,), (table,) = (unpack_from(t, data, at) for t, at in (("<H", 12) if small else ("<I", 12), ("<Q", 72)))
    table = len(data) - 24 if small else table
    compare(path, form)
    assert refused(data[:-1]) and refused(data + b"\0") and not refused(data), path
    for first, end in (0, head), (head, table), (table, len(data)):
        at = rng.randrange(first, end)
        assert refused(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]), (path, at)
    # Other numbers, but not where the readers may differ: a hash with a secret, billions of keys
    # or a rate at which there is no room for those that are there.
    places = range(8, 284, 4)
    if small:  # 3f ends a rate
        places = [at for at in (*range(8, 24), *range(34, head)) if data[at] != 0x3f]
    for at in rng.sample([at for at in places if at not in (12, 16, 32, 36, 44, 148)], 20 if small else 3):
        refused(changed(data, at, bytes([data[at] ^ 1])))
    kind = re.match("blocked|bloom|bitmap|", path.name)[0]
    if kind:  # as if it were written in place, and most bits set; a key has 16 in a line
        live, size = Path("live " + path.name), table - head
        body = rng.getrandbits(8 * size) | rng.getrandbits(8 * size) | rng.getrandbits(8 * size)
        data = changed(data, 16, bytes([data[16] | 1]))
        if not small:
            data = changed(changed(data, 144, b"\7"), *(200, b"\x10") if kind == "blocked" else (144, b"\7"))
        live.write_bytes(data[:head] + body.to_bytes(size, "little") + bytes(len(data) - table))
        compare(live, form)

def try_built(line, rng):
    path, (n, *options) = Path("built " + line), line.split()
    form, plain = options[-1] if "none" in line else "golden", "none" not in line and "secret" not in line
    keys = [FORMS[form](i) for i in range(int(n))]
    keys += [keys[i] for i in range(400) for _ in range(i % max(COPIES.get(w, 1) for w in options))]
    keys = [key + b":%d" % rng.getrandbits(13) for key in keys] if "value" in line else keys
    Path("keys").write_bytes(b"".join(key + b"\n" for key in keys))
    made = run("build", "-o", path, *options, *["--seed", str(rng.getrandbits(60))] * plain, "keys")
    assert made.returncode == 0, made.stderr
    compare(path, form, *["--key-file", "secret"] * ("secret" in line), values="value" in line)

def main():
    seed = os.environ.get("PERHAPS_TEST_SEED", "1")
    seed = str(random.SystemRandom().getrandbits(60)) if seed == "fresh" else seed
    print("PERHAPS_TEST_SEED=" + seed)
    for form, key in FORMS.items():
        Path(form).write_bytes(b"".join(key(i) + b"\n" for i in range(3000, 200000)))
    Path("secret").write_bytes(SECRET)
    assert any(FOLDER.glob("*.perhaps"))
    for path in sorted(FOLDER.rglob("*.perhaps")):
        try_golden(path, random.Random(f"{seed} {path.name}"))
    for line in BUILDS:
        try_built(line, random.Random(f"{seed} {line}"))

if __name__ == "__main__":
    PERHAPS, FOLDER = (Path(word).resolve() for word in sys.argv[1:])
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        main()
