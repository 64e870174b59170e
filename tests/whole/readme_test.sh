#!/usr/bin/env bash
# Tests of the README's examples:  readme_test.sh SOURCE_FOLDER FOLDER_OF_PERHAPS
# Proves that the example in C is examples/readme.c, which is built and runs, and that those in
# shell, Python and SQL run as they stand in the README and print what the text says.
set -eu
source=$(cd "$1" && pwd)
bin=$(cd "$2" && pwd)
export PATH="$bin:$PATH"

block() { # LANGUAGE: prints the fenced blocks of that language
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$source/README.md" | sed '1d;$d'
}

diff <(block c) <(sed '/^\/\*/,/\*\/$/d' "$source/examples/readme.c")

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$bin/../examples/readme"
test -z "$(ls)" # it leaves nothing behind
block sh | grep -v '^\./dev ' > commands
test "$(wc -l < commands)" -ge 8

# The part with a filter on servers: the address is replaced by that of servers on free ports,
# or the lines are left out where no server is installed.
if command -v redis-server valkey-server >/dev/null; then
    servers=$source/cluster/local.sh
    trap '"$servers" down --folder "$folder/servers" >/dev/null; rm -rf "$folder"' EXIT
    address=$("$servers" up --port 0 --replicas 0 --folder "$folder/servers")
    sed -i "s|redis://127.0.0.1:7000|$address|" commands
else
    sed -i '/^url=/,/^perhaps delete/d' commands
fi
bash commands > output 2> summaries || true # 'find' may meet folders that it must not read
cat output summaries
lines=$(wc -l < files)
! command -v redis-server valkey-server >/dev/null || grep -q 'redis://.* deleted' summaries
test "$(sed -n 1p output)" -eq "$lines"         # query -c finds all keys
test "$(sed -n 2p output)" -le 1100             # false positives of a million other keys
grep -q "$(printf '\t2$')" output                # count of a key that was added twice
test "$(grep -cx "$((lines - 1))\|$lines" output)" -ge 1 # dedup

# The bindings, where they were built.  (One with sanitizers no other program can load.)
lib=$bin/../lib
loads() { ! grep -q '^PERHAPS_SANITIZE:STRING=.' "$bin/../CMakeCache.txt" && [ -e "$lib/$1" ]; }
if loads python/perhaps/_perhaps.abi3.so; then
    test "$(block python | PYTHONPATH=$lib/python python3 -B -)" = "True False"
    perhaps info fruit.perhaps | grep -q '1,001'
fi
if loads perhaps_sqlite.so && command -v sqlite3 >/dev/null; then
    test "$(block sql | sed "s|build/lib|$lib|" | sqlite3)" = 1000
fi
