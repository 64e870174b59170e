"""What all tests of the module start from."""
import pytest

pytest.register_assert_rewrite("contract", "servers")

from servers import Server, seed, settings  # noqa: E402


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"PERHAPS_TEST_SEED={seed()}")


@pytest.fixture(scope="module")
def server():
    """One server for the tests of a file."""
    with Server() as one:
        yield one


@pytest.fixture
def clean(server):
    """The server, without keys and as it was configured; it must live on after the test."""
    talk = server.talk()
    talk.ok("FLUSHALL")
    talk.ok("CONFIG RESETSTAT")
    usual = settings(talk)
    yield server
    if settings(talk) != usual:
        talk.ok(["CONFIG", "SET", *(word for pair in usual.items() for word in pair)])
    assert server.is_well(), server.text()[-10000:]
    for one in server.talks:
        one.close()
    server.talks = []


@pytest.fixture
def talk2(clean):
    return clean.talk(2)


@pytest.fixture
def talk3(clean):
    return clean.talk(3)


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def talk(clean, request):
    """A connection to an empty server: each test runs in both protocols."""
    return clean.talk(request.param)
