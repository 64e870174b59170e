"""The programs of examples/module, each with a server of its own."""
import os
import pathlib
import socket
import subprocess
import sys
import time

import pytest
import redis

TREE = pathlib.Path(__file__).parents[2]
EXAMPLES = TREE / "examples" / "module"
MODULE = os.environ.get("PERHAPS_MODULE", str(TREE / "build" / "lib" / "perhaps.so"))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def url(tmp_path):
    port = free_port()
    words = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(tmp_path), "--save", ""]
    server = subprocess.Popen(["redis-server", *words, "--loadmodule", MODULE],
                              stdout=subprocess.DEVNULL)
    client = redis.Redis(port=port)
    for _ in range(500):
        try:
            client.ping()
            break
        except redis.ConnectionError:
            assert server.poll() is None, "the server does not start"
            time.sleep(0.02)
    yield f"redis://127.0.0.1:{port}"
    server.kill()
    server.wait()


def output_of(program, *arguments, text=None):
    done = subprocess.run([sys.executable, str(EXAMPLES / program), *arguments], input=text,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_signup(url):
    words = output_of("signup.py", url).split()
    assert words[0] == "19900"  # no address that is taken was called free
    assert 100 <= int(words[-2]) <= 100 + 600  # of 19,900 at most 1 %, and room for chance
    assert redis.Redis.from_url(url).dbsize() == 0


def test_crawler(url):
    urls = "".join(f"http://example/{i}\n" for i in range(5000))
    first = output_of("crawler.py", url, text=urls + urls)
    assert len(first.splitlines()) >= 4950  # 0.1 % may be taken for ones that were seen
    assert len(set(first.splitlines())) == len(first.splitlines())
    assert output_of("crawler.py", url, text=urls) == ""


def test_cache_guard(url):
    words = output_of("cache_guard.py", url).split()
    assert words[0] == words[2] == "10000"
    assert 10000 <= int(words[6]) <= 10000 + 600  # 30,000 do not exist; 0.25 %, room for chance
    assert redis.Redis.from_url(url).dbsize() == 0
