#!/bin/bash
# Tests the command line on a web server:  cli_web_test.sh PROGRAM SERVER
# SERVER is tests/support/web_server.py, which serves the folder of the test.
server=$(realpath "$2") || exit 2
. "$(dirname "$0")/../support/cli_helpers.sh"
command -v python3 >/dev/null && command -v openssl >/dev/null || exit 77
python=$(command -v python3)
ids=
trap 'for id in $ids; do kill "$id" 2>/dev/null; done; rm -rf "$folder"' EXIT

# serve NAME [CERTIFICATE KEY]: starts a server of this folder, and sets 'port'.
serve() {
    rm -f port
    LD_PRELOAD='' "$python" "$server" . port "${@:2}" 2>server_err &
    ids="$ids $!"
    while [ ! -e port ] && kill -0 $! 2>/dev/null; do sleep 0.05; done
    port=$(cat port)
}

# counted WORD: what the server has counted.
counted() {
    LD_PRELOAD='' "$python" -c "
import sys, urllib.request
words = urllib.request.urlopen('http://127.0.0.1:$port/count').read().decode().split()
print(words[words.index('$1') + 1])"
}

seq 100000 >all
seq 99991 100010 >asked
"$program" build -q -o large -p 1% all || exit 1
"$program" build -q -o small --key here || exit 1
"$program" build -q -o ribbon --kind ribbon all || exit 1
"$program" build -q -o elastic --kind elastic all || exit 1
"$program" build -q -o live --live -n 100K all || exit 1
serve plain
at=http://127.0.0.1:$port

test_answers() {
    "$program" query large asked >wanted
    run query "$at/plain/large" asked
    check "as the file" same out wanted
    check "status" exits 0
    check "silent" is_silent
    "$program" query -v large asked >wanted
    run query -v "$at/plain/large" <asked
    check "the others" same out wanted
    run query -c --check "$at/plain/ribbon" asked
    check "with checks" prints "$("$program" query -c ribbon asked)
"
    run query --key here "$at/plain/small"
    check "a small file" prints $'here\n'
    run query --any --key nothere "$at/plain/small"
    check "none" exits 1
    run query "$at/bare/large" asked
    check "without ETag" exits 0
}

test_many_keys() {
    seq 50001 150000 >many
    run query -c "$at/plain/large" many
    check "many" prints "$("$program" query -c large many)
"
    run query --label "$at/plain/large" asked
    check "labels" lines out 20
}

test_few_bytes() {
    local before
    before=$(counted bytes)
    run query --key 5 "$at/plain/large"
    check "a line and the header" [ $(($(counted bytes) - before)) -eq $((4096 + 64)) ]
}

test_info() {
    run info "$at/plain/large"
    check "kind" tells 'kind +blocked' 'file bytes'
    run info --json "$at/plain/ribbon"
    check "JSON" tells '"kind":"ribbon"'
}

test_redirects() {
    run query "$at/move/large" asked
    check "followed" exits 0
    run query "$at/round/large" asked
    check "a circle" exits 2
    check "a circle is told" says "redirects more than 5 times"
}

# try HOW TEXT: the server does something wrong, and the message says so, in one line.
try() {
    run query "$at/$1/large" asked
    check "$1" exits 2
    check "$1 is told" says "$at/$1/large: " "$2"
    check "$1 takes a line" lines err 1
    check "$1 prints nothing" [ ! -s out ]
}

test_bad_servers() {
    try whole "sends whole files, not ranges"
    try shift "another range than it was asked for"
    try text "another range than it was asked for"
    try long "more than it was asked for"
    try cut "cut short"
    try change "changed meanwhile"
    run query "$at/once/large" asked
    check "a cut is mended" exits 0
}

test_bad_files() {
    run query "$at/plain/none" asked
    check "none" says "does not have it (status 404)"
    run query "$at/plain/all" asked
    check "another file" says "not a filter"
    run query "$at/plain/live" asked
    check "live" says "live file"
    run query "$at/plain/elastic" asked
    check "elastic" says "cannot be asked without loading it"
    head -c 100000 large >short
    run query "$at/plain/short" asked
    check "short" says "damaged"
    cp large wrong
    printf 'wrong' | dd of=wrong bs=1 seek=70000 conv=notrunc 2>dd_err
    run query -c --check "$at/plain/wrong" all
    check "damaged" exits 2
    check "damage is told" says "damaged"
    run query -c "$at/plain/wrong" all
    check "without --check" exits 0
}

test_no_server() {
    run query http://127.0.0.1:1/large asked
    check "refused" exits 2
    check "refused is told" says "connect"
}

test_other_verbs() {
    run add "$at/plain/large" asked
    check "add" says "download it"
    run query large "$at/plain/asked"
    check "input" says "download it"
    run count "$at/plain/large" asked
    check "count" says "download it"
}

test_interrupted() {
    LD_PRELOAD='' timeout -s INT 2 "$program" query "$at/hang/large" asked >out 2>err
    status=$?
    check "ended" [ "$status" -eq 124 -o "$status" -eq 130 ]
    check "one line" lines err 1
}

test_tls() {
    openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 \
        -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 2>openssl_err
    local plain=$port
    serve tls cert.pem key.pem
    run query "https://127.0.0.1:$port/plain/large" asked
    check "a strange certificate" exits 2
    check "is told" says "certificate"
    CURL_CA_BUNDLE=cert.pem run query "https://127.0.0.1:$port/plain/large" asked
    check "a trusted one" exits 0
    port=$plain
}

# All tests run in the folder that the server serves.
for name in $(compgen -A function test_); do "$name"; done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
