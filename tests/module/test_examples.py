"""The programs of examples/module."""
import subprocess
import sys

import pytest
import redis

from servers import TREE


@pytest.fixture
def url(clean):
    return f"redis://127.0.0.1:{clean.port}"


def output_of(program, *arguments, text=None):
    path = TREE / "examples" / "module" / program
    done = subprocess.run([sys.executable, str(path), *arguments], input=text,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_signup(url):
    words = output_of("signup.py", url).split()
    assert words[0] == "4900"  # no address that is taken was called free
    assert 100 <= int(words[-2]) <= 100 + 300  # of 4,900 at most 1 %, and room for chance
    assert redis.Redis.from_url(url).dbsize() == 0


def test_crawler(url):
    urls = "".join(f"http://example/{i}\n" for i in range(5000))
    first = output_of("crawler.py", url, text=urls + urls).splitlines()
    assert len(first) >= 4950  # 0.1 % may be taken for ones that were seen
    assert len(set(first)) == len(first)
    assert output_of("crawler.py", url, text=urls) == ""


def test_cache_guard(url):
    words = output_of("cache_guard.py", url).split()
    assert words[0] == words[2] == "10000"
    assert 10000 <= int(words[6]) <= 10000 + 600  # 30,000 do not exist; 0.25 %, room for chance
    assert redis.Redis.from_url(url).dbsize() == 0
