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
block sh | grep -v '^\./dev ' > commands
test "$(wc -l < commands)" -ge 8
bash commands > output 2> summaries || true # find may meet what it must not read
cat output summaries
lines=$(wc -l < files)
test "$(sed -n 1p output)" -eq "$lines"         # query -c: all of them
test "$(sed -n 2p output)" -le 1100             # of a million others
grep -q "$(printf '\t2$')" output                # count, of what was added twice
test "$(grep -cx "$((lines - 1))\|$lines" output)" -ge 1 # dedup
