"""What the server tells of the commands; rights; the configuration; the arguments of the module."""
import pathlib
import re

import pytest

from contract import COMMANDS, of_family
from servers import MODULE, Error, Map, NoStart, Server, Simple, settings, show

SETTINGS = {  # name: (default, least, most)
    "bf-error-rate": ("0.01", None, None),
    "bf-initial-size": ("100", 1, 1 << 30),
    "bf-expansion-factor": ("2", 0, 32768),
    "cf-bucket-size": ("2", 1, 255),
    "cf-initial-size": ("1024", 4, 1 << 30),
    "cf-max-iterations": ("20", 1, 65535),
    "cf-expansion-factor": ("1", 0, 32768),
    "cf-max-expansions": ("32", 1, 65536),
}
NUMBERS = [name for name in SETTINGS if name != "bf-error-rate"]


# ---- What COMMAND tells ---------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_command_info(talk2, name):
    does, fast, arity = COMMANDS[name]
    told = talk2.ok(["COMMAND", "INFO", name])[0]
    flags = set(told[2])
    assert told[0].decode() == name.lower()
    assert told[1] == arity
    assert ("write" in flags, "readonly" in flags) == (does == "write", does == "read")
    assert ("fast" in flags) == fast
    assert told[3] == 1  # the first key


def test_adds_are_refused_when_the_memory_is_full(talk2):
    for name, (does, _, _) in COMMANDS.items():
        flags = talk2.ok(["COMMAND", "INFO", name])[0][2]
        gives_back = name in ("CF.DEL", "CF.COMPACT", "BF.SHRINK")
        assert ("denyoom" in flags) == (does == "write" and not gives_back), name


def told_names(talk):
    return [name.decode() for name in talk.ok("COMMAND LIST FILTERBY MODULE bf")]


def version(talk):
    return [int(part) for part in
            re.search(r"redis_version:([\d.]+)", talk.ok("INFO server").decode())[1].split(".")]


def have_categories(talk):
    """Before 7.2 the commands of modules are in no category of rights, not even in @read."""
    if version(talk) < [7, 2]:
        pytest.skip("this server has no categories for commands of modules")


def has_own_categories(talk):
    """Redis and Valkey 7.2 let a module have none."""
    return b"bloom" in talk.ok("ACL CAT")


def have_own_categories(talk):
    if not has_own_categories(talk):
        pytest.skip("this server lets no module have categories of its own")


@pytest.mark.parametrize("name", COMMANDS)
def test_categories(talk2, name):
    have_categories(talk2)
    does, fast, _ = COMMANDS[name]
    categories = set(talk2.ok(["COMMAND", "INFO", name])[0][6])
    assert f"@{does}" in categories
    assert ("@fast" if fast else "@slow") in categories


@pytest.mark.parametrize("family, category", [("BF", "bloom"), ("CF", "cuckoo")])
def test_categories_of_the_families(talk2, family, category):
    have_own_categories(talk2)
    for name in of_family(family):
        assert f"@{category}" in set(talk2.ok(["COMMAND", "INFO", name])[0][6])


@pytest.mark.parametrize("name", COMMANDS)
def test_keys_of_a_command(talk2, name):
    does, _, arity = COMMANDS[name]
    words = [name, "key", "0.1", "1000", "1000"][:max(abs(arity), 3)]
    if name == "BF.MERGE":
        words = ["BF.MERGE", "key", "one", "two"]
    keys = [b"key", b"one", b"two"] if name == "BF.MERGE" else [b"key"]
    assert talk2.ok(["COMMAND", "GETKEYS", *words[:abs(arity) if arity > 0 else None]]) == keys
    told = talk2.ok(["COMMAND", "GETKEYSANDFLAGS", *words[:abs(arity) if arity > 0 else None]])
    flags = {key.decode(): {one for one in flags} for key, flags in told}
    assert ("RW" in flags["key"] or "OW" in flags["key"]) == (does == "write")
    if name == "BF.MERGE":
        assert "RO" in flags["one"] and "RO" in flags["two"]


ARGUMENTS = {
    "BF.RESERVE": ["error_rate", "capacity", "expansion", "nonscaling"],
    "BF.INSERT": ["capacity", "error", "expansion", "nocreate", "nonscaling", "items", "item"],
    "BF.LOADCHUNK": ["iterator", "data"],
    "BF.LOAD": ["dump"],
    "CF.RESERVE": ["capacity", "bucketsize", "maxiterations", "expansion"],
    "CF.INSERT": ["capacity", "nocreate", "items", "item"],
}


def names_in(arguments):
    for one in arguments:
        one = Map(one).dict()
        yield one[b"name"].decode().lower()
        yield from names_in(one.get(b"arguments", []))


@pytest.mark.parametrize("name", COMMANDS)
def test_command_docs(talk2, name):
    docs = Map(talk2.ok(["COMMAND", "DOCS", name])[1]).dict()
    assert len(docs[b"summary"]) > 10
    assert re.fullmatch(r"\d+\.\d+\.\d+", docs[b"since"].decode())
    assert docs[b"complexity"].startswith(b"O(")
    names = list(names_in(docs[b"arguments"]))
    assert "key" in names or name == "BF.MERGE"
    assert set(ARGUMENTS.get(name, [])) <= set(names)


def test_no_command_is_left_out(talk2):
    told = {name.decode() for name in talk2.ok("COMMAND LIST FILTERBY MODULE bf")}
    known = {name.lower() for name in COMMANDS}
    assert known <= told
    assert all(name.startswith("perhaps.") for name in told - known)


def test_commands_without_keys(talk2):
    for name, does in ("perhaps.test", "readonly"), ("perhaps.set", "write"):
        told = talk2.ok(["COMMAND", "INFO", name])[0]
        assert told[1] == 6 and does in told[2] and told[3:6] == [0, 0, 0]
        assert len(Map(talk2.ok(["COMMAND", "DOCS", name])[1]).dict()[b"summary"]) > 10


def test_names_have_small_letters_and_are_found_in_all(talk2):
    """As the server's own: clients turn a name into small letters before they look it up."""
    for name in told_names(talk2):
        assert name == name.lower()
        for spelling in name, name.upper(), name.title():
            assert [one[0].decode() for one in talk2.ok(["COMMAND", "INFO", spelling])] == [name]
            assert talk2.ok(["COMMAND", "DOCS", spelling])[0].decode() == name
    for pattern in "bf.*", "BF.*":
        told = talk2.ok(["COMMAND", "LIST", "FILTERBY", "PATTERN", pattern])
        assert {name.decode() for name in told} == {n.lower() for n in of_family("BF")}
    talk2.says("Bf.AdD k", "-ERR wrong number of arguments for 'bf.add' command")
    talk2.ok("CONFIG RESETSTAT")
    talk2.ok("BF.ADD k a")
    talk2.ok("bf.add k b")
    assert "cmdstat_bf.add:calls=2," in talk2.ok("INFO commandstats").decode()


# ---- Rights ---------------------------------------------------------------------------------


def as_user(server, *rules):
    admin = server.talk()
    admin.ok("ACL SETUSER someone reset on nopass +hello " + " ".join(rules))
    talk = server.talk()
    talk.ok("AUTH someone x")
    return talk


def is_denied(talk, command):
    reply = talk.get(command)
    return isinstance(reply, Error) and reply.startswith("NOPERM")


def test_rights_to_commands(clean):
    talk = as_user(clean, "~*", "+bf.add", "+BF.EXISTS", "+cf.del")
    talk.says("BF.ADD k a", ":1")
    talk.says("BF.EXISTS k a", ":1")
    talk.says("CF.DEL c a", "-Not found")
    for command in "BF.MADD k a", "BF.INFO k", "CF.ADD c a", "BF.RESERVE n .1 10":
        assert is_denied(talk, command), command
    clean.talk().ok("ACL SETUSER someone +@all -bf.add")
    talk.says("BF.MADD k b", "[:1]")
    assert is_denied(talk, "BF.ADD k c")


@pytest.mark.parametrize("spelling", [str.lower, str.upper, str.title])
def test_rights_in_letters_of_either_case(clean, spelling):
    admin = clean.talk()
    rules = spelling("+bf.add"), "+cf.add", spelling("-CF.ADD"), spelling("+cf.del")
    as_user(clean, "~*", *rules)
    told = Map(admin.ok("ACL GETUSER someone")).dict()[b"commands"].decode()
    assert {"+bf.add", "+cf.del"} <= set(told.split()) and "+cf.add" not in told
    line, = [one for one in admin.ok("ACL LIST") if one.startswith(b"user someone ")]
    assert told in line.decode()
    for name, allowed in (("bf.add", True), ("cf.del", True), ("cf.add", False)):
        for word in name, name.upper():
            reply = admin.get(["ACL", "DRYRUN", "someone", word, "k", "a"])
            assert (reply == "OK") == allowed, word
            assert allowed or f"'{name}' command" in show(reply)


RULES = [  # rules, commands that they allow, commands that they refuse
    (["+@all", "-@write"], ["bf.exists", "perhaps.test"], ["bf.add", "cf.del", "perhaps.set"]),
    (["+@read"], ["bf.exists", "bf.info", "cf.count"], ["bf.add", "cf.del", "cf.compact"]),
    (["+@write"], ["bf.add", "cf.del", "perhaps.create"], ["bf.exists", "cf.info"]),
    (["+@fast"], ["bf.info", "cf.del"], ["bf.add", "cf.exists"]),
    (["+@slow"], ["bf.add", "cf.exists"], ["bf.info", "cf.del"]),
    (["+@bloom"], ["bf.add", "bf.exists"], ["cf.add", "cf.exists", "perhaps.create"]),
    (["+@cuckoo"], ["cf.add", "cf.exists"], ["bf.add", "bf.exists", "perhaps.create"]),
]


@pytest.mark.parametrize("rules, allows, refuses", RULES)
def test_what_categories_allow(clean, rules, allows, refuses):
    """The table of doc/MODULE.md.  A server before 7.2 puts commands of modules into none."""
    admin = clean.talk()
    has_none = version(admin) < [7, 2]
    if rules[-1] in ("+@bloom", "+@cuckoo") and not has_own_categories(admin):
        assert "Unknown command or category" in admin.get(["ACL", "SETUSER", "someone", *rules])
        return
    as_user(clean, "~*", *rules)

    def is_allowed(name):
        arity = abs(admin.ok(["COMMAND", "INFO", name])[0][1])
        return admin.get(["ACL", "DRYRUN", "someone", name, *["k"] * (arity - 1)]) == "OK"

    said = {name: is_allowed(name) for name in allows + refuses}
    if has_none:
        assert set(said.values()) == {rules[0] == "+@all"}
    else:
        assert said == {**dict.fromkeys(allows, True), **dict.fromkeys(refuses, False)}


def test_lists_of_the_categories(clean):
    admin = clean.talk()
    if version(admin) < [7, 2]:
        for category in "read", "write", "fast", "slow":
            names = admin.ok(["COMMAND", "LIST", "FILTERBY", "ACLCAT", category])
            assert not set(told_names(admin)) & {name.decode() for name in names}
        return
    if not has_own_categories(admin):
        return
    for family, category in ("BF", "bloom"), ("CF", "cuckoo"):
        for command in ["ACL", "CAT"], ["COMMAND", "LIST", "FILTERBY", "ACLCAT"]:
            told = {name.decode() for name in admin.ok([*command, category])}
            assert told == {name.lower() for name in of_family(family)}


def test_rights_to_read(clean):
    have_categories(clean.talk())
    clean.talk().ok("BF.ADD k a")
    talk = as_user(clean, "~*", "+@read")
    for name, (does, _, arity) in COMMANDS.items():
        words = [name, "k", "1", "1", "1"][:max(abs(arity), 2)]
        assert is_denied(talk, words) == (does == "write"), name


def test_rights_to_write(clean):
    have_categories(clean.talk())
    talk = as_user(clean, "~*", "+@write")
    for name, (does, _, arity) in COMMANDS.items():
        words = [name, "k", "1", "1", "1"][:max(abs(arity), 2)]
        assert is_denied(talk, words) == (does == "read"), name


def test_rights_to_keys(clean):
    talk = as_user(clean, "~bf:*", "%R~src:*", "+@all")
    talk.says("BF.ADD bf:1 a", ":1")
    talk.says("BF.EXISTS src:1 a", ":0")
    for command in ("BF.ADD other a", "BF.EXISTS other a", "BF.INFO other", "BF.ADD src:1 a",
                    "CF.DEL other a", "BF.MERGE other bf:1", "BF.MERGE bf:2 other",
                    "BF.MERGE bf:2 bf:1 other", "BF.MERGE src:1 bf:1", "BF.SHRINK src:1"):
        assert is_denied(talk, command), command
    talk.says("BF.MERGE bf:2 bf:1", "+OK")
    assert not is_denied(talk, "BF.MERGE bf:3 bf:1 src:1")


def test_rights_to_the_families(clean):
    have_own_categories(clean.talk())
    talk = as_user(clean, "~*", "+@bloom")
    talk.says("BF.ADD k a", ":1")
    assert is_denied(talk, "CF.ADD c a")


# ---- Configuration --------------------------------------------------------------------------


def test_defaults(talk2):
    assert settings(talk2) == {"bf." + name: told[0] for name, told in SETTINGS.items()}


NO_NUMBERS = ["", "x", "1.5", "1e2", "0x10", " 1", "nan", "inf", "9223372036854775808"]


@pytest.mark.parametrize("name", NUMBERS)
def test_ranges(talk2, name):
    _, least, most = SETTINGS[name]
    for value in least, most, least + 1:
        talk2.says(f"CONFIG SET bf.{name} {value}", "+OK")
        assert settings(talk2)["bf." + name] == str(value)
    for value in least - 1, most + 1, -1 << 63, (1 << 63) - 1:
        error = talk2.get(["CONFIG", "SET", "bf." + name, value])
        assert f" - Value for `{name}` must be in the range [{least}, {most}]" in error
    for value in NO_NUMBERS:
        assert f" - Invalid value for `{name}`" in talk2.get(["CONFIG", "SET", "bf." + name, value])
    assert settings(talk2)["bf." + name] == str(least + 1)


def test_range_of_the_rate(talk2):
    for given, told in ((".001", "0.001"), ("1e-9", "1e-09"), (".25", "0.25"), (".9", "0.25"),
                        ("1e-300", "1e-300"), (".1234567890123", "0.1234567890123")):
        talk2.says(f"CONFIG SET bf.bf-error-rate {given}", "+OK")
        assert settings(talk2)["bf.bf-error-rate"] == told
    for value in "0", "1", "-1", "2", "inf", "-inf":
        error = talk2.get(f"CONFIG SET bf.bf-error-rate {value}")
        assert "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)" in error
    for value in "x", "nan", ".1x", "1e400", "":
        error = talk2.get(["CONFIG", "SET", "bf.bf-error-rate", value])
        assert "Invalid value for `bf-error-rate`" in error
    assert settings(talk2)["bf.bf-error-rate"] == "0.1234567890123"


def test_several_settings_at_once(talk2):
    """If one is wrong, none is set."""
    before = settings(talk2)
    assert isinstance(talk2.get("CONFIG SET bf.bf-initial-size 500 bf.bf-error-rate 7"), Error)
    assert settings(talk2) == before
    talk2.says("CONFIG SET bf.bf-initial-size 500 bf.bf-error-rate .1", "+OK")
    assert settings(talk2)["bf.bf-initial-size"] == "500"


def test_what_settings_do(talk2):
    talk2.ok("CONFIG SET bf.bf-initial-size 5000 bf.bf-error-rate .001 bf.bf-expansion-factor 5 "
             "bf.cf-initial-size 100000 bf.cf-expansion-factor 7 bf.cf-max-iterations 9")
    talk2.ok("BF.ADD f a")
    info = talk2.info("f")
    assert info["Capacity"] >= 5000 and info["Expansion rate"] == 5
    assert abs(float(info["Error rate asked"]) - .001) < 1e-9
    talk2.ok("BF.RESERVE g .01 100")
    assert talk2.info("g")["Expansion rate"] == 5
    talk2.ok("CF.RESERVE c 100")
    info = talk2.info("c", "CF")
    assert [info["Expansion rate"], info["Max iterations"]] == [7, 9]
    talk2.ok("CONFIG SET bf.cf-bucket-size 8")
    assert isinstance(talk2.get("CF.RESERVE d 15"), Error)
    talk2.says("CF.RESERVE d 16", "+OK")
    talk2.ok("CONFIG SET bf.bf-expansion-factor 0")
    talk2.ok("BF.ADD h a")
    talk2.says("BF.INFO h EXPANSION", "[_]")
    talk2.says("BF.RESERVE i .01 100 EXPANSION 3", "+OK")
    talk2.says("BF.INFO i EXPANSION", "[:3]")


def test_settings_in_the_configuration_file():
    with Server("bf.bf-initial-size 777", "bf.bf-error-rate 0.125") as server:
        told = settings(server.talk())
        assert told["bf.bf-initial-size"] == "777"
        assert told["bf.bf-error-rate"] == "0.125"


# ---- Where ranges end -----------------------------------------------------------------------


def ranges():
    """What RedisBloom replies: words and text."""
    for line in pathlib.Path(__file__).with_name("redisbloom_ranges.txt").read_text().splitlines():
        if not line.startswith("#"):
            words, _, reply = line.partition("\t=\t")
            yield ["" if word == '""' else word for word in words.split("\t")], reply


def test_ranges_are_those_of_redisbloom(talk2):
    """RESERVE, INSERT and settings refuse what RedisBloom refuses, and say so in its words.  Only
    the largest capacity is another one."""
    differ = []
    for words, told in ranges():
        talk2.ok("DEL k")
        before = settings(talk2)
        reply = talk2.get(words)
        if words[0] == "CONFIG":
            text = reply.split(" - ", 1)[1] if isinstance(reply, Error) else reply
            if not isinstance(reply, Error):
                talk2.ok(["CONFIG", "SET", words[2], before[words[2]]])
        else:
            text = reply if isinstance(reply, str) else str(reply)
            told = re.sub("(apacity must be .*)1073741824", r"\g<1>1099511627776", told)
        if text != told:
            differ.append((words, text, told))
    assert differ == []


# ---- Arguments of the module ----------------------------------------------------------------


@pytest.mark.parametrize("arguments, expected", [
    ("bf-initial-size 200 cf-expansion-factor 3", {"bf-initial-size": "200",
                                                   "cf-expansion-factor": "3"}),
    ("ERROR_RATE .05 INITIAL_SIZE 300 CF_MAX_EXPANSIONS 7",
     {"bf-error-rate": "0.05", "bf-initial-size": "300", "cf-max-expansions": "7"}),
    ("error_rate 0.002 bf-error-rate .05", {"bf-error-rate": "0.05"}),
])
def test_arguments(arguments, expected):
    with Server(module=arguments) as server:
        usual = {name: told[0] for name, told in SETTINGS.items()}
        assert settings(server.talk()) == {"bf." + name: value
                                           for name, value in {**usual, **expected}.items()}


@pytest.mark.parametrize("arguments, reason", [
    ("WHAT 5", "WHAT"),
    ("bf-initial-size", "no value"),
    ("bf-initial-size 0", "Value for `bf-initial-size` must be in the range [1, 1073741824]"),
    ("cf-bucket-size 256", "Value for `cf-bucket-size` must be in the range [1, 255]"),
    ("cf-expansion-factor 1.5", "Invalid value for `cf-expansion-factor`"),
    ("ERROR_RATE inf", "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)"),
    ("INITIAL_SIZE x", "Invalid value for `bf-initial-size`"),
    ("ERROR_RATE 1", "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)"),
    ("ERROR_RATE x", "Invalid value for `bf-error-rate`"),
])
def test_arguments_that_are_refused(arguments, reason):
    with pytest.raises(NoStart) as error:
        Server(module=arguments)
    assert reason in str(error.value)


# ---- What the server tells of the module ----------------------------------------------------


def test_module_list(talk2):
    told = [Map(one).dict() for one in talk2.ok("MODULE LIST")]
    told, = [one for one in told if one[b"name"] == b"bf"]
    assert told[b"ver"] > 0
    assert told[b"path"].decode() == MODULE


def test_module_stays(talk2):
    """It has data types, so the server does not unload it; and none is loaded twice."""
    assert isinstance(talk2.get("MODULE UNLOAD bf"), Error)
    with Server("enable-module-command local") as server:
        talk = server.talk()
        assert isinstance(talk.get(["MODULE", "LOAD", MODULE]), Error)
        talk.says("BF.ADD f a", ":1")


def test_module_is_loaded_later():
    with Server("enable-module-command local", module=None) as server:
        talk = server.talk()
        assert isinstance(talk.get("BF.ADD f a"), Error)
        assert isinstance(talk.get(["MODULE", "LOAD", MODULE, "WHAT", "5"]), Error)
        talk.says(["MODULE", "LOAD", MODULE, "INITIAL_SIZE", "5000"], "+OK")
        talk.says("BF.ADD f a", ":1")
        assert talk.info("f")["Capacity"] >= 5000


def numbers(talk):
    text = talk.ok("INFO everything").decode()
    return {name: int(value) for name, value in re.findall(r"^(bf_\w+):(\d+)\r?$", text, re.M)}


def test_info_section(talk2):
    before = numbers(talk2)
    names = {"bf_filters", "bf_bytes", "bf_adds", "bf_questions", "bf_positives", "bf_refusals"}
    assert names <= set(before)
    talk2.ok("BF.RESERVE f .01 10 NONSCALING")
    talk2.ok("BF.MADD f a b a")
    talk2.ok("CF.ADD c a")
    talk2.ok("CF.INSERT c ITEMS b c")
    talk2.ok("BF.EXISTS f a")
    talk2.ok("BF.MEXISTS f a b x")
    talk2.ok("CF.MEXISTS c a x")
    after = numbers(talk2)
    grown = {name: after[name] - before[name] for name in names}
    assert grown["bf_filters"] == 2
    assert grown["bf_bytes"] > 0
    assert grown["bf_adds"] == 5
    assert grown["bf_questions"] == 6
    assert grown["bf_positives"] == 4
    assert grown["bf_refusals"] == 0
    talk2.get(["BF.MADD", "f", *range(100)])
    assert numbers(talk2)["bf_refusals"] > before["bf_refusals"]
    talk2.ok("FLUSHALL")
    assert numbers(talk2)["bf_filters"] == before["bf_filters"]
    assert numbers(talk2)["bf_bytes"] <= after["bf_bytes"]
    assert "bf_adds" in talk2.ok("INFO modules").decode()


def test_the_server_names_the_module(talk2):
    assert "module:name=bf," in talk2.ok("INFO modules").decode()
    assert isinstance(talk2.ok("PING"), Simple)
