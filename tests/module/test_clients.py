"""The module through clients of other languages, by their typed calls.  What is not installed is
skipped:
    go-redis             Debian unstable: golang-go golang-github-redis-go-redis-dev; or PERHAPS_GO_CLIENT,
                         the program clients/go_redis.go as it was built there (CGO_ENABLED=0)
    node-redis, ioredis  npm install --prefix build/clients redis ioredis; or PERHAPS_NODE_MODULES, a folder
    Predis               Debian: php-cli php-predis
redis-py has a test of its own (test_redispy.py)."""
import os
import pathlib
import shutil
import subprocess

import pytest

from servers import TREE

CLIENTS = pathlib.Path(__file__).with_name("clients")
GO_PATH = pathlib.Path("/usr/share/gocode")
NODE_MODULES = pathlib.Path(os.environ.get("PERHAPS_NODE_MODULES")
                            or TREE / "build" / "clients" / "node_modules")


def run(words, **environment):
    """What a program prints: lines, by their first word."""
    done = subprocess.run(list(map(str, words)), env={**os.environ, **environment}, text=True,
                          capture_output=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="session")
def go_program(tmp_path_factory):
    given = os.environ.get("PERHAPS_GO_CLIENT")
    if given:
        return given
    if not shutil.which("go") or not (GO_PATH / "src/github.com/redis/go-redis").exists():
        pytest.skip("no golang-go with golang-github-redis-go-redis-dev")
    folder = tmp_path_factory.mktemp("go")
    source = folder / "src" / "client"
    source.mkdir(parents=True)
    shutil.copy(CLIENTS / "go_redis.go", source)
    (source / "go.mod").write_text("module client\n")  # or its imports may not end in /v9
    subprocess.run(["go", "build", "-o", folder / "client", "."], check=True, timeout=600, cwd=source,
                   env={**os.environ, "GO111MODULE": "off", "GOPATH": f"{folder}:{GO_PATH}",
                        "GOCACHE": str(folder / "cache"), "CGO_ENABLED": "0"})
    return folder / "client"


@pytest.mark.parametrize("protocol", [2, 3])
def test_go_redis(clean, go_program, protocol):
    """Before, BF.INFO and CF.INFO had more fields than RedisBloom's, and it failed on them."""
    assert run([go_program, clean.port, protocol]) == [
        "bf.add true", "bf.madd [false true]", "bf.exists true", "bf.mexists [true false]",
        "bf.card 2", "bf.insert [true]", "bf.info 1 1 4", "bf.info items 1", "bf.scandump 1",
        "bf.loadchunk true", "cf.add true", "cf.addnx false", "cf.insert [true true]",
        "cf.insertnx [0 1]", "cf.exists true", "cf.mexists [true false]", "cf.count 2",
        "cf.del true", "cf.info 1 3 1 1 20", "cf.loadchunk 2", "pipeline 2 2 1 true"]


def node(package):
    if not shutil.which("node"):
        pytest.skip("no node")
    if not (NODE_MODULES / package).exists():
        pytest.skip(f"no {package}: npm install --prefix build/clients redis ioredis")


@pytest.mark.parametrize("protocol", [2, 3])
def test_node_redis(clean, protocol):
    node("@redis/bloom")
    said = run(["node", CLIENTS / "node_redis.js", clean.port, protocol],
               NODE_PATH=str(NODE_MODULES))
    assert said == [
        "bf.add true", "bf.madd [false,true]", "bf.exists true", "bf.mexists [true,false]",
        "bf.card 2", "bf.insert [true]", "bf.info [1,1,4]", "bf.loadchunk [true,true,false]", "cf.add true",
        "cf.addnx false", "cf.insert [true,true]", "cf.insertnx [0,1]", "cf.exists true",
        "cf.count 2", "cf.del true", "cf.info [1,3,1,1,20]", "cf.loadchunk 2"]


def test_ioredis(clean):
    node("ioredis")
    assert run(["node", CLIENTS / "ioredis.js", clean.port], NODE_PATH=str(NODE_MODULES)) == [
        'bf.reserve "OK"', "bf.add 1", "bf.madd [0,1]", "bf.mexists [1,0]", "bf.info 10 2",
        "pipeline 1 1"]


def test_predis(clean):
    if not shutil.which("php"):
        pytest.skip("no php-cli")
    found = subprocess.run(["php", "-r", "exit(stream_resolve_include_path('Predis/autoload.php')"
                                         " ? 0 : 1);"], timeout=600)
    if found.returncode:
        pytest.skip("no php-predis")
    said = run(["php", CLIENTS / "predis.php", clean.port])
    assert said == ["bf.add 1", "bf.madd [0,1]", "bf.exists 1", "bf.mexists [1,0]", said[4],
                    "cf.add 1", "cf.addnx 0", "cf.count 1", "cf.del 1"]
    assert said[4] in ("bf.info 5", "bf.info 10")  # by names, or as it came
