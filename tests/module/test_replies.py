"""Each command's reply, beside the table of what RedisBloom replies to it in both protocols:
redisbloom_replies.txt.  As a program, with a RedisBloom in PERHAPS_MODULE, it writes the table:
    python3 test_replies.py >table && mv table redisbloom_replies.txt"""
import pathlib
import re

from servers import Server, show

TABLE = pathlib.Path(__file__).with_name("redisbloom_replies.txt")
OURS = ", $bits_per_item:"  # begins the last line of BF.DEBUG


def alike(command, reply):
    """A reply without the sizes, and the bytes of a dump, that each implementation has for
    itself."""
    words, text = command.split(), show(reply)
    text = re.sub(r"(Capacity|Size|Number of buckets|Bucket size), :\d+", r"\1, :N", text)
    text = re.sub(r"\b(bytes|bits|hashes|capacity|ratio|bktsize|buckets):[\w.-]+", r"\1:N", text)
    text = re.sub(r"(apacity must be .*)1(073741824|099511627776)", r"\1N", text)
    if words[0] == "BF.DEBUG" and OURS in text:
        text = text[:text.index(OURS)] + "]"
    if words[0].endswith("SCANDUMP"):
        text = re.sub(r"^\[:[2-9]\d*|^\[:1\d+", "[:N", text)
        text = re.sub(r"\$(?!-1\]).+\]$", "$bytes]", text)
    if words[0] == "BF.INFO" and words[-1] in ("CAPACITY", "SIZE"):
        text = re.sub(r"^\[:\d+\]$", "[:N]", text)
    if words[1:2] in (["full"], ["cfull"]) and isinstance(reply, list):
        text = "each of " + " ".join(sorted(set(map(show, reply))))
    return text


def replies(server, commands):
    """What each command is answered in RESP2, and in RESP3 when all are sent once more."""
    columns = []
    for protocol in 2, 3:
        talk = server.talk(protocol)
        talk.ok("FLUSHALL")
        columns.append([alike(command, talk.get(command)) for command in commands])
    return list(zip(commands, *columns))


def rows():
    lines = TABLE.read_text().splitlines()
    return [tuple(line.split("\t")) for line in lines if line and not line.startswith("#")]


def test_replies_are_those_of_redisbloom(clean):
    table = rows()
    said = replies(clean, [row[0] for row in table])
    assert [(one, told) for one, told in zip(said, table) if one != told] == []


if __name__ == "__main__":
    comments = [line for line in TABLE.read_text().splitlines() if line.startswith("#")]
    with Server() as other:
        lines = ["\t".join(row) for row in replies(other, [row[0] for row in rows()])]
    print("\n".join(comments + lines))
