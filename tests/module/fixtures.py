"""A server for all tests of a file, and a client that finds it empty."""
import pytest
from world import Server


@pytest.fixture(scope='module')
def server():
    with Server() as one:
        yield one


@pytest.fixture
def client(server):
    server.call('FLUSHALL')
    return server.client
