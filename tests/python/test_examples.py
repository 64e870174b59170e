"""The examples do what they say."""
import json
import os
import subprocess
import sys

import pytest
from support import TREE


def run(name, *words, text='', **environment):
    done = subprocess.run([sys.executable, '-B', TREE / f'bindings/python/examples/{name}.py', *words],
                          input=text, capture_output=True, text=True,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_dedup_jsonl(tmp_path):
    texts = ['one', 'two', 'one ', 'three', ' two']
    lines = [json.dumps({'id': i, 'text': text}) + '\n' for i, text in enumerate(texts)]
    state = str(tmp_path / 'state')
    out, told = run('dedup_jsonl', text=''.join(lines), STATE=state)
    assert out == ''.join(lines[i] for i in (0, 1, 3)) and '3 of 5' in told
    out, told = run('dedup_jsonl', text=lines[2] + '{"text": "four"}\n', STATE=state)
    assert out == '{"text": "four"}\n' and '4 are known' in told


def test_crawler(tmp_path):
    pages = {'index': ['a', 'b', 'c'], 'a': ['b', 'index', 'missing'], 'b': ['b', 'd'], 'c': [],
             'd': ['index'], 'alone': ['a']}
    for name, links in pages.items():
        (tmp_path / f'{name}.html').write_text(
            ''.join(f'<a href="{link}.html">{link}</a>' for link in links))
    out, told = run('crawler', str(tmp_path / 'index.html'))
    assert sorted(out.split()) == [f'{name}.html' for name in ('a', 'b', 'c', 'd', 'index')]
    assert '6 addresses' in told


SPIDER = '''
import scrapy

class Pages(scrapy.Spider):
    name = 'pages'
    custom_settings = {'DUPEFILTER_CLASS': 'scrapy_dupefilter.PerhapsDupeFilter'}

    def start_requests(self):
        yield scrapy.Request(self.first)

    def parse(self, response):
        print(response.url.rsplit('/')[-1], flush=True)
        yield from response.follow_all(css='a')
'''


def test_scrapy_dupefilter(tmp_path):
    """Of pages that link to each other each is fetched once, also by a run that goes on."""
    pytest.importorskip('scrapy')
    for name, links in {'a': 'aabc', 'b': 'abc', 'c': 'a', 'd': 'a'}.items():
        (tmp_path / name).write_text(
            '<html><body>' + ''.join(f'<a href="{link}">x</a>' for link in links) + '</body></html>')
    (tmp_path / 'pages.py').write_text(SPIDER)
    path = os.pathsep.join([str(TREE / 'bindings/python/examples'), os.environ.get('PYTHONPATH', '')])

    def crawl(first):
        done = subprocess.run(
            [sys.executable, '-B', '-m', 'scrapy', 'runspider', 'pages.py', '-a', f'first={first}',
             '-s', 'JOBDIR=job', '-s', 'LOG_LEVEL=ERROR'],
            cwd=tmp_path, capture_output=True, text=True, env={**os.environ, 'PYTHONPATH': path})
        assert done.returncode == 0 and not done.stderr, done.stderr
        return sorted(done.stdout.split())

    start = (tmp_path / 'a').as_uri()
    assert crawl(start) == ['a', 'b', 'c']
    assert crawl((tmp_path / 'd').as_uri()) == ['d']


def test_table():
    out, _ = run('table')
    assert 'KB' in out and 'rows are of customers' in out
    assert int(out.split('\n')[1].split()[0]) >= 10000


def test_passwords(tmp_path):
    words = tmp_path / 'list'
    words.write_bytes(b'123456789\npassword\ncorrect horse\np\xe4ssw\xf6rter\n')
    filter_path = str(tmp_path / 'filter')
    _, told = run('passwords', 'build', str(words), filter_path)
    assert told.startswith('4 passwords')
    asked = ['password', 'short', *(f'correct battery {i}' for i in range(50))]
    out, _ = run('passwords', 'check', filter_path, text=''.join(word + '\n' for word in asked))
    told = out.split('\n')
    assert told[:2] == ['leaked', 'too short']
    assert told[2:-1].count('good') > 45  # each is refused once in 10,000 times
