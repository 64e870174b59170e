"""Texts that many replies share, the table of the commands, and items to try."""
import re

import pytest

from servers import NoStart, Server, show

WRONGTYPE = "-WRONGTYPE Operation against a key holding the wrong kind of value"
NOT_FOUND = "-ERR not found"
EXISTS = "-ERR item exists"
ARITY = "-ERR wrong number of arguments for '...' command"
CAPACITY_MOST = 1 << 40

MB = 1 << 20

STRANGE_ITEMS = [b"", b"\0", b"\0\0", b"\r\n", b"$-1\r\n", bytes(range(256)), b"\xff" * 100,
                 "Größe €".encode(), b"x" * MB, b"x" * (MB - 1) + b"y"]

# keys and items that are also names of options
WORDS = ["expansion", "nonscaling", "NONSCALING", "items", "ITEMS", "NOCREATE", "capacity", "error",
         "window", "0", "-1", "f*", "BF.ADD"]

# name: (what it does, whether it is fast, how many words it takes; a negative one: at least)
COMMANDS = {
    "BF.RESERVE": ("write", True, -4),
    "BF.ADD": ("write", False, 3),
    "BF.MADD": ("write", False, -3),
    "BF.INSERT": ("write", False, -4),
    "BF.EXISTS": ("read", False, 3),
    "BF.MEXISTS": ("read", False, -3),
    "BF.INFO": ("read", True, -2),
    "BF.CARD": ("read", True, 2),
    "BF.DEBUG": ("read", False, 2),
    "BF.SCANDUMP": ("read", False, 3),
    "BF.LOADCHUNK": ("write", False, 4),
    "BF.LOAD": ("write", False, 3),
    "BF.SHRINK": ("write", False, -2),
    "BF.MERGE": ("write", False, -3),
    "CF.RESERVE": ("write", True, -3),
    "CF.ADD": ("write", False, 3),
    "CF.ADDNX": ("write", False, 3),
    "CF.INSERT": ("write", False, -4),
    "CF.INSERTNX": ("write", False, -4),
    "CF.EXISTS": ("read", False, 3),
    "CF.MEXISTS": ("read", False, -3),
    "CF.COUNT": ("read", False, 3),
    "CF.DEL": ("write", True, 3),
    "CF.COMPACT": ("write", False, 2),
    "CF.INFO": ("read", True, -2),
    "CF.DEBUG": ("read", False, 2),
    "CF.SCANDUMP": ("read", False, 3),
    "CF.LOADCHUNK": ("write", False, 4),
}


def of_family(family):
    return [name for name in COMMANDS if name.startswith(family)]


def without_name(text):
    """An error about arity names the command as it likes."""
    return re.sub("^(-ERR wrong number of arguments for )'.*' command$", r"\1'...' command", text)


def refusal(talk, command):
    """What a command says that must change nothing."""
    before = talk.digest()
    said = without_name(show(talk.get(command)))
    return said if talk.digest() == before else said + ", and it changed something"


def refuses(talk, command, error):
    """Asserts that a command is refused with this text, and changes nothing."""
    assert refusal(talk, command) == error, command


def all_refused(talk, table):
    """The same for a table of commands and errors."""
    said = [(command, refusal(talk, command)) for command, _ in table]
    assert [one for one in said if one not in table] == []


def wrong_counts(name):
    """Commands with too few words, and with too many where that is possible."""
    arity = COMMANDS[name][2]
    words = [name, "k", "0", "1", "2", "3", "4"]
    counts = range(1, abs(arity)) if arity < 0 else [n for n in range(1, 7) if n != arity]
    return [words[:n] for n in counts]


def dump(talk, family, key):
    """All pieces that SCANDUMP gives: pairs of a position and bytes."""
    pieces, position = [], 0
    while True:
        position, data = talk.ok([family + ".SCANDUMP", key, position])
        if position == 0:
            return pieces
        pieces.append((position, data))


def bytes_of(pieces):
    """The bytes of a dump; its positions also tell how often the filter has changed."""
    return [data for _, data in pieces]


def renamed(names):
    """A server in which commands have other names."""
    try:
        return Server(*[f"rename-command {old} {new}" for old, new in names.items()])
    except NoStart as error:
        if "No such command" in str(error):
            pytest.skip("this server cannot rename commands of modules")
        raise
