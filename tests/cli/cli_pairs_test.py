"""Every pair of options of every verb: cli_pairs_test.py PROGRAM.

Proves that of two options none is dropped in silence.  They are taken together; or refused, by a line
that names one of them; or they stand below, with the reason why one means nothing beside the other.

An option is dropped if it changes something alone, and nothing beside the other one.  What a run does is
seen by what it prints and by the files that it makes.  PERHAPS_TEST_EVERY tries all pairs, else the seed
chooses one in eight."""
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
SEED = os.environ.get("PERHAPS_TEST_SEED", "1")
SEED = int.from_bytes(os.urandom(4), "little") if SEED == "fresh" else int(SEED)
ONE_IN = 1 if "PERHAPS_TEST_EVERY" in os.environ else 8

# What each verb is given beside the options.
VERBS = {
    "build": ["-o", "O", "in"], "plan": ["-n", "1000"], "create": ["-n", "1000", "O"], "add": ["F", "in"],
    "remove": ["R", "in"], "query": ["F", "in"], "count": ["R", "in"], "dedup": ["in"], "info": ["F"],
    "verify": ["F"], "shrink": ["F", "-o", "O", "-p", "0.5"], "merge": ["-o", "O", "F", "G"],
    "compare": ["F", "G"], "copy": ["F", "O"],
}

# A value for each option that takes one.
VALUES = {
    "capacity": "2000", "fpr": "0.02", "integers": "0-4999", "window": "24h", "kind": "bloom", "prefer": "compact", "field": "2", "delimiter": ",", "time-field": "3",
    "set-back": "1000000000",
    "key": "5", "durable": "10", "state": "S", "memory": "64M", "tmp": "folder", "against": "old",
    "value-field": "2", "threads": "1", "wait": "1", "seed": "7",
    "hash": "sip", "key-file": "K",
}
SKIPPED = {"output", "help", "help-all", "partitions"}

# Pairs of which the second means nothing beside the first, and why.  "*": beside any.
MEANINGLESS = {
    ("*", "*", "prefer"): "a preference: it decides only where several kinds will do",
    ("*", "quiet", "*"): "what it changes is seen in the summary only",
    ("*", "json", "ignore-case"): "the message about letters would not be JSON",
    ("*", "any", "*"): "it ends at the first key that answers the question",
    ("*", "window", "grow"): "generations grow",
    ("*", "count", "removable"): "what counts can remove",
    ("plan", "grow", "removable"): "the same",
    ("*", "integers", "removable"): "a bitmap can remove",
    ("*", "against", "static"): "it is built once",
    ("*", "value-field", "static"): "it is built once",
    ("*", "static", "seed"): "the seed is not shown",
    ("*", "against", "seed"): "the seed is not shown",
    ("*", "against", "capacity"): "what is built once has the size of its keys",
    ("*", "static", "capacity"): "the same",
    ("*", "integers", "capacity"): "a bitmap has room for its range",
    ("*", "integers", "null"): "the keys are the same",
    ("*", "raw", "null"): "the keys are the same, and there is no message about carriage returns",
    ("*", "json", "null"): "the same",
    ("*", "null", "raw"): "there is no message about carriage returns",
    ("*", "crlf", "raw"): "the same",
    ("*", "integers", "raw"): "the same",
    ("*", "integers", "crlf"): "a number with a carriage return is none",
    ("*", "null", "crlf"): "there are no carriage returns before a NUL",
    ("*", "raw", "crlf"): "the keys are the same: none of them is in the filter",
    ("*", "json", "raw"): "what it says about packed files and carriage returns would not be JSON",
    ("*", "integers", "ignore-case"): "digits are no letters",
    ("*", "count", "null"): "there are as many records",
    ("*", "crlf", "null"): "none of the keys is in the filter then",
    ("query", "crlf", "any"): "the same, and nothing is printed",
    ("dedup", "state", "grow"): "a state grows",
    ("dedup", "against", "exact"): "it is exact",
    ("dedup", "unique", "exact"): "it is exact",
    ("verify", "json", "quiet"): "facts are what was asked for",
}

def run(folder, *arguments):
    return subprocess.run([PROGRAM, *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

def options_of(verb):
    text = run(".", verb, "--help-all").stdout.decode()
    found = re.findall(r"^  (?:-\w, |    )--([a-z-]+)( [A-Z][A-Z|-]*)?(?= |$)", text, re.M)
    return {name: value.strip() for name, value in found if name not in SKIPPED}

def prepare(folder):
    lines = "".join(f"{n % 900},{n % 7},{n},k{n % 5}\r\n" for n in range(1000)) + "Word\nword\n5\n5\n6\n"
    numbers = "".join(f"{n}\n" for n in range(600)) + "5\n6\n"
    for name, text in (("in", lines), ("in0", lines.replace("\n", "\0")), ("numbers", numbers),
                       ("numbers0", numbers.replace("\n", "\0")), ("old", "5\n"),
                       ("known", lines[:9000]), ("other", "5\n77\n")):
        with open(os.path.join(folder, name), "w", newline="") as file:
            file.write(text)
    os.mkdir(os.path.join(folder, "folder"))
    for command in (["build", "-q", "--seed", "3", "-n", "9000", "-o", "F", "known"],
                    ["build", "-q", "--seed", "3", "-n", "9000", "-o", "G", "other"],
                    ["build", "-q", "--kind", "cuckoo", "--removable", "-n", "9000", "-o", "R", "known"]):
        run(folder, *command).check_returncode()

def facts_of(folder, name):
    """What is to be seen of a file that a run has made or changed."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    info = run(folder, "info", "--json", name)
    if info.returncode:
        with open(path, "rb") as file:
            return file.read(8)
    facts = json.loads(info.stdout)
    keep = ("kind", "keys", "capacity", "fpr_asked", "fpr_until", "hash", "geometry", "keys_made_of", "removes", "counts",
            "parts")
    asked = run(folder, "query", "-q", "--field", "1-", name, "in")
    counts = [len(asked.stdout)] + [facts.get(each) for each in keep]
    if isinstance(facts.get("parts"), list):
        counts[-1] = [(part.get("kind"), part.get("capacity")) for part in facts["parts"]]
    return [counts, os.path.exists(path + ".journal")]

def words_of(verb, options, known):
    words = []
    for name in options:
        words += ["--" + name] + ([VALUES[name]] if known[name] else [])
    inputs = ("numbers" if "integers" in options else "in") + ("0" if "null" in options else "")
    return [verb] + words + [inputs if word == "in" else word for word in VERBS[verb]]

def unlike(text):
    """A text without times and rates, which differ from run to run."""
    text = re.sub(rb'"seconds":[^,}]*', b"", text)
    text = re.sub(rb"[0-9.]+ (?:ns|us|ms|s|min|h)\b[^\n]*", b"", text)
    return re.sub(rb"0\.0[0-9]+|[0-9.e-]+ %", b"", text)

def effect(base, verb, options, known):
    """(status, message, what was seen)"""
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "x")
        shutil.copytree(base, folder)
        done = run(folder, *words_of(verb, options, known))
        if done.returncode > 1:
            return done.returncode, done.stderr.decode(errors="replace"), None
        files = [facts_of(folder, name) for name in ("O", "S", "F", "R", "K")]
        return done.returncode, "", [done.returncode, unlike(done.stdout), unlike(done.stderr), files]

def is_meaningless(verb, first, second):
    return any((v, a, b) in MEANINGLESS for v in (verb, "*") for a in (first, "*") for b in (second, "*"))

def main():
    wrong, npairs = [], 0
    with tempfile.TemporaryDirectory() as parent:
        base = os.path.join(parent, "base")
        os.mkdir(base)
        prepare(base)
        for verb in VERBS:
            known = options_of(verb)
            nothing = effect(base, verb, [], known)
            if nothing[0] > 1:
                wrong.append(f"{verb}: {nothing[1]}")
                continue
            alone = {}
            for pair in itertools.combinations(sorted(known), 2):
                npairs += 1
                if (npairs + SEED) % ONE_IN:
                    continue
                for name in pair:
                    if name not in alone:
                        alone[name] = effect(base, verb, [name], known)
                status, message, both = effect(base, verb, pair, known)
                title = f"{verb} --{pair[0]} --{pair[1]}"
                if status > 1:
                    letters = {"capacity": "-n", "fpr": "-p", "invert": "-v", "count": "-c", "repeated": "-d"}
                    names = ["--" + name for name in pair] + [letters.get(name, "--" + name) for name in pair]
                    refused_alone = [alone[name][1] for name in pair if alone[name][0] > 1]
                    message = message.splitlines()[-1] + "\n" # what stands before it is not the error
                    if status != 2:
                        wrong.append(f"{title}: status {status}: {message!r}")
                    elif message not in [line for text in refused_alone for line in text.splitlines(True)] and not any(name in message for name in names):
                        wrong.append(f"{title}: names none of them: {message!r}")
                    continue
                for first, second in (pair, pair[::-1]):
                    if alone[first][0] > 1 or alone[second][0] > 1 or is_meaningless(verb, first, second):
                        continue
                    if both == alone[first][2] and alone[second][2] != nothing[2]:
                        wrong.append(f"{title}: --{second} is dropped")
    print("\n".join(wrong))
    print(f"PERHAPS_TEST_SEED={SEED}: {npairs} pairs, {len(wrong)} wrong")
    return bool(wrong)

sys.exit(main())
