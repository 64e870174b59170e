"""The module through redis-py: its own helpers for Bloom and cuckoo filters.  With
PERHAPS_PYTHON_CLIENT=valkey through valkey-py, which has the same names."""
import importlib
import inspect
import os

import pytest

NAME = os.environ.get("PERHAPS_PYTHON_CLIENT", "redis")
redis = pytest.importorskip(NAME)
if not hasattr(redis.Redis, "bf"):
    pytest.skip(f"this {NAME} knows no bf()", allow_module_level=True)

helpers = importlib.import_module(NAME + ".commands.bf.commands")
connection = importlib.import_module(NAME + ".connection")
PythonParser = getattr(connection, "PythonParser", None) or \
    connection._RESP2Parser  # since redis-py 5
KNOWS_RESP3 = "protocol" in inspect.signature(redis.Redis.__init__).parameters


@pytest.fixture
def client(clean, monkeypatch):
    # dumps are bytes: redis-py lets the parser of hiredis not read them
    monkeypatch.setattr(helpers, "HIREDIS_AVAILABLE", False, raising=False)
    pool = redis.ConnectionPool(host="127.0.0.1", port=clean.port, parser_class=PythonParser)
    yield redis.Redis(connection_pool=pool)
    pool.disconnect()


@pytest.fixture(params=[True, False], ids=["text", "bytes"])
def any_client(clean, request):
    with redis.Redis(host="127.0.0.1", port=clean.port, decode_responses=request.param) as one:
        yield one


# ---- Bloom ----------------------------------------------------------------------------------


def test_bf_create(any_client):
    bf = any_client.bf()
    assert bf.create("f", 0.01, 1000)
    assert bf.create("g", 0.01, 1000, expansion=1)
    assert bf.create("h", 0.01, 1000, noScale=True)
    with pytest.raises(redis.ResponseError, match="^item exists$"):
        bf.create("f", 0.01, 1000)
    with pytest.raises(redis.ResponseError, match="Nonscaling filters cannot expand"):
        bf.create("i", 0.01, 1000, expansion=2, noScale=True)


def test_bf_add(any_client):
    bf = any_client.bf()
    assert bf.add("f", "foo") == 1
    assert bf.add("f", "foo") == 0
    assert bf.madd("f", "foo", "bar", b"\0\xff") == [0, 1, 1]
    assert bf.exists("f", "bar") == 1
    assert bf.exists("f", "noexist") == 0
    assert bf.mexists("f", "foo", "noexist", b"\0\xff") == [1, 0, 1]


def test_bf_insert(any_client):
    bf = any_client.bf()
    with pytest.raises(redis.ResponseError, match="^not found$"):
        bf.insert("f", ["foo"], noCreate=True)
    assert bf.insert("f", ["foo", "bar"], capacity=1000, error=0.001, expansion=4) == [1, 1]
    assert bf.insert("f", ["foo", "baz"], noCreate=True) == [0, 1]
    assert bf.info("f").expansionRate == 4
    assert bf.insert("g", ["foo"], noScale=True) == [1]
    assert bf.info("g").expansionRate is None


def test_bf_info(any_client):
    bf = any_client.bf()
    bf.create("f", 0.01, 1000, expansion=3)
    bf.madd("f", *range(10))
    info = bf.info("f")
    assert info.capacity >= 1000
    assert info.size > 0
    assert (info.filterNum, info.insertedNum, info.expansionRate) == (1, 10, 3)


def test_bf_dump(client):
    bf = client.bf()
    bf.create("f", 0.0001, 1000)
    bf.madd("f", *range(5000))
    chunks, position = [], 0
    while True:
        position, data = bf.scandump("f", position)
        if position == 0:
            break
        chunks.append((position, data))
    for position, data in chunks:
        assert bf.loadchunk("g", position, data) == b"OK"
    assert all(bf.mexists("g", *range(5000)))
    assert bf.mexists("f", *range(5000, 9000)) == bf.mexists("g", *range(5000, 9000))
    assert bf.info("g").size == bf.info("f").size


def test_bf_pipeline(any_client):
    pipe = any_client.pipeline(transaction=True)
    pipe.bf().create("f", 0.001, 100)
    for i in range(50):
        pipe.bf().add("f", i)
    pipe.bf().exists("f", 7)
    replies = pipe.execute()
    assert [int(bool(one)) for one in replies] == [1] * 52


# ---- Cuckoo ---------------------------------------------------------------------------------


def test_cf_create(any_client):
    cf = any_client.cf()
    assert cf.create("f", 1000)
    assert cf.create("g", 1000, expansion=2)
    assert cf.create("h", 1000, bucket_size=4)
    assert cf.create("i", 1000, max_iterations=10, expansion=0, bucket_size=1)
    with pytest.raises(redis.ResponseError, match="^item exists$"):
        cf.create("f", 1000)


def test_cf_add(any_client):
    cf = any_client.cf()
    cf.create("f", 1000)
    assert cf.add("f", "foo") == 1
    assert cf.add("f", "foo") == 1
    assert cf.addnx("f", "foo") == 0
    assert cf.addnx("f", "bar") == 1
    assert cf.count("f", "foo") == 2
    assert cf.count("f", "noexist") == 0
    assert cf.exists("f", "foo") == 1
    assert cf.mexists("f", "foo", "noexist") == [1, 0]
    assert cf.delete("f", "foo") == 1
    assert cf.delete("f", "noexist") == 0
    assert cf.count("f", "foo") == 1


def test_cf_insert(any_client):
    cf = any_client.cf()
    with pytest.raises(redis.ResponseError, match="^not found$"):
        cf.insert("f", ["foo"], nocreate=True)
    assert cf.insert("f", ["foo", "foo"], capacity=1000) == [1, 1]
    assert cf.insertnx("f", ["foo", "bar"], capacity=1000) == [0, 1]
    assert cf.insertnx("f", ["baz"], nocreate=True) == [1]


def test_cf_info(any_client):
    cf = any_client.cf()
    cf.create("f", 1000, expansion=2, max_iterations=30)
    cf.insert("f", ["a", "b", "c"])
    cf.delete("f", "c")
    info = cf.info("f")
    assert info.size > 0
    assert info.bucketNum * info.bucketSize >= 1000
    assert (info.filterNum, info.insertedNum, info.deletedNum) == (1, 2, 1)
    assert (info.expansionRate, info.maxIteration) == (2, 30)


def test_cf_dump(client):
    cf = client.cf()
    cf.insert("f", list(range(3000)))
    chunks, position = [], 0
    while True:
        position, data = cf.scandump("f", position)
        if position == 0:
            assert data is None
            break
        chunks.append((position, data))
    for position, data in chunks:
        assert cf.loadchunk("g", position, data) == b"OK"
    assert all(cf.mexists("g", *range(3000)))
    assert cf.info("g").insertedNum == 3000


@pytest.mark.skipif(not KNOWS_RESP3, reason="this client speaks RESP2 alone")
def test_resp3(clean):
    with redis.Redis(host="127.0.0.1", port=clean.port, protocol=3, decode_responses=True) as one:
        bf, cf = one.bf(), one.cf()
        assert bf.create("b", 0.01, 1000) and cf.create("c", 1000)
        assert bf.madd("b", "foo", "foo") == [True, False]
        assert bf.insert("b", ["bar"]) == [True]
        assert bf.mexists("b", "bar", "noexist") == [True, False]
        assert (bf.card("b"), bf.exists("b", "foo")) == (2, True)
        assert cf.add("c", "foo") and cf.insert("c", ["foo"]) == [True]
        assert cf.insertnx("c", ["foo", "bar"]) == [0, 1]
        assert (cf.count("c", "foo"), cf.exists("c", "foo"), cf.delete("c", "bar")) == (2, 1, 1)
        told = bf.info("b")  # a dict in RESP3, or an object as in RESP2
        assert [told.get("Number of items inserted"), told.get("Expansion rate")] == [2, 2]
        told = cf.info("c")
        assert [told.get("Number of items deleted"), told.get("Max iterations")] == [1, 20]


def test_other_clients_words(any_client):
    """What other clients send: names in lower case, numbers as they write them."""
    run = any_client.execute_command
    assert run("bf.reserve", "f", "1.0E-3", "100", "EXPANSION", "2") in (b"OK", "OK", True)
    words = "BF.INSERT g CAPACITY 100 ERROR 0.0010000000474974513 ITEMS a"
    assert run(*words.split()) == [1]
    assert run("BF.CARD", "g") == 1
    assert run("BF.INFO", "g", "ITEMS") is not None
