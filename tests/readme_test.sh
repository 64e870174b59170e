#!/usr/bin/env bash
# The README's examples: the C one is examples/readme.c, and the shell one runs as it stands.
# usage: readme_test.sh SOURCE_FOLDER FOLDER_OF_PERHAPS
set -eu
source=$(cd "$1" && pwd)
bin=$(cd "$2" && pwd)
export PATH="$bin:$PATH"

block() { # $1: the language of a fenced block
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

# The filter on servers: on ports that are free; or left out where there are none.
if command -v redis-server valkey-server >/dev/null; then
    servers=$source/cluster/local.sh
    trap '"$servers" down --folder "$folder/servers" >/dev/null; rm -rf "$folder"' EXIT
    address=$("$servers" up --port 0 --replicas 0 --folder "$folder/servers")
    sed -i "s|redis://127.0.0.1:7000|$address|" commands
else
    sed -i '/^url=/,/^perhaps delete/d' commands
fi
bash commands > output 2> summaries || true # find may meet what it must not read
cat output summaries
lines=$(wc -l < files)
! command -v redis-server valkey-server >/dev/null || grep -q 'redis://.* deleted' summaries
test "$(sed -n 1p output)" -eq "$lines"         # query -c: all of them
test "$(sed -n 2p output)" -le 1100             # of a million others
grep -q "$(printf '\t2$')" output                # count, of what was added twice
test "$(grep -cx "$((lines - 1))\|$lines" output)" -ge 1 # dedup
