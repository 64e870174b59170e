#!/bin/bash
# shell_test.sh EXTENSION README [COMMAND] - the examples of README in the shell of SQLite, and
# filters that go from there to the command line and back.
#
# In the ```sql blocks of README "--> x" says that a line prints x.
set -eu
extension=$1 readme=$2 command=${3:-}
if ! command -v sqlite3 >/dev/null || ! sqlite3 :memory: '.help load' | grep -q load; then
    echo "no sqlite3 that loads extensions"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fails() {
    echo "shell_test: $1" >&2
    exit 1
}

# run SQL: prints what the shell prints.  Newer shells trust no schema, and so no file.
run() {
    sqlite3 -bail db -cmd ".load $extension" -cmd 'PRAGMA trusted_schema = ON' "$1" 2>&1
}

# ---- The examples --------------------------------------------------------------------------

sed -n '/^```sql$/,/^```$/{/^```/!p}' "$readme" >examples.sql
sed -n 's/.*--> //p' examples.sql >wanted
[ "$(wc -l <wanted)" -ge 8 ] || fails "README has few examples"
{ echo ".load $extension" && cat examples.sql; } | sqlite3 -bail examples >printed ||
    fails "an example of README fails"
diff wanted printed || fails "an example of README prints something else"

# Nothing but the entry is exported.
exported=$(nm -D --defined-only "$extension" | awk '{ print $3 }')
[ "$exported" = sqlite3_perhapssqlite_init ] || fails "it exports $exported"

# ---- Filters of the command line ------------------------------------------------------------

[ -n "$command" ] || exit 0
seq 1 5000 | sed 's/^/line /' >lines
run "CREATE TABLE t(line TEXT);"
sqlite3 db ".import lines t"
"$command" build -q -o a -n 10000 -p 0.001 --seed 5 lines
[ "$(run "SELECT sum(perhaps_contains('a', line)) FROM t")" = 5000 ] || fails "a path"
[ "$(run "SELECT sum(perhaps_contains(readfile('a'), line)) FROM t LIMIT 1")" = 5000 ] ||
    fails "bytes of a file"
run "SELECT perhaps_save(perhaps_build(line, 0.001, 'capacity=10000 seed=5'), 'b') FROM t;" >/dev/null
[ "$("$command" query -c b lines)" = 5000 ] || fails "the command line does not find all"
"$command" verify -q b || fails "verify"
"$command" merge -q -o c a b || fails "the two cannot be merged"
[ "$("$command" query -c b <<<'never seen')" = 0 ] || fails "the command line finds too many"

# What --ignore-case noted holds for texts from SQL, too, and not for integers.
printf 'Foo\nBAR\n' | "$command" build -q --ignore-case -n 100 -p 1e-9 -o e
[ "$(run "SELECT perhaps_contains('e', 'FOO') || perhaps_contains('e', 'bar') || perhaps_contains(readfile('e'), x'626152')
    || perhaps_contains('e', 'fo')")" = 1110 ] || fails "case that was ignored"
run "SELECT perhaps_save(perhaps_add(readfile('e'), 'New', x'4F4C44', 5208208757389214273), 'e2')" >/dev/null
[ "$(run "SELECT perhaps_contains('e2', 'nEW') || perhaps_contains('e2', 'Old') || perhaps_contains('e2', 5208208757389214273)
    || perhaps_contains('e2', 7523094288207667809)")" = 1110 ] || fails "case that was ignored, added"
[ "$(printf 'NEW\nold\n' | "$command" query -c e2)" = 2 ] || fails "the command line does not find them"

# What info tells is what the command line tells.
for options in "" static removable grow 'grow removable' kind=counting; do
    run "SELECT perhaps_save(perhaps_build(line, 0.01, '$options'), 'd') FROM t;" >/dev/null
    run "SELECT perhaps_info('d'), perhaps_info(readfile('d'))" | tr '|' '\n' >ours
    "$command" info --json d >theirs
    /usr/bin/env python3 - "$options" <<'TEXT' || fails "info differs"
import json, sys
theirs = json.load(open("theirs"))
for line in open("ours"):
    for name, value in json.loads(line).items():
        if name == "parts":
            assert len(value) == len(theirs[name]), name
        elif isinstance(value, float):
            assert abs(value - theirs[name]) <= 1e-8 * abs(value) + 1e-15, (name, value)
        else:
            assert value == theirs[name], (name, value, theirs[name])
TEXT
done
