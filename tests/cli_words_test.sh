#!/usr/bin/env bash
# What the command line says and takes, as people type it:  cli_words_test.sh PROGRAM
. "$(dirname "$0")/cli_helpers.sh"

test_add_is_in_place() {
    run build -n 1000 -p 1e-6 --seed 1 -o f keys
    ls -i f >inode
    run add f <(seq 11 20)
    check "add: in place" exits 0
    check "add: the file is the same one" [ "$(ls -i f)" = "$(cat inode)" ]
    run query -c f <(seq 20)
    check "add: all are in" prints $'20\n'
    cp f f.before
    run add f <(seq 5000)
    refused "add: too many" "full"
    check "add: says what is in" grep -q '; [0-9,]* of the keys are in f$' err
    mv f.before f
    interrupted INT 0 add f
    check "add, SIGINT" exits 130
    check "add, SIGINT: says" says "interrupted; 10 of the keys are in f: adding all again is safe"
    run verify f
    check "add, SIGINT: verify" exits 0
}

test_add_rewrites() {
    local kind
    run build -n 1000 --seed 1 -o f keys
    cp f f.before
    ls -i f >inode
    run add --rewrite f <(seq 5000)
    refused "--rewrite: too many" "; f is unchanged"
    check "--rewrite: f is unchanged" same f f.before
    run add --rewrite f <(seq 20)
    check "--rewrite: another file" [ "$(ls -i f)" != "$(cat inode)" ]
    run query -c f <(seq 20)
    check "--rewrite: all are in" prints $'20\n'
    for kind in cuckoo counting elastic chain; do
        run build -n 100 --kind $kind -o g keys
        run add g <(seq 20)
        check "$kind: add" exits 0
        run query -c g <(seq 20)
        check "$kind: all are in" prints $'20\n'
    done
    refuses "--in-place: excludes --rewrite" add --in-place --rewrite f keys
    if [ "$(id -u)" -ne 0 ]; then
        chmod a-w f
        run add f <(seq 30)
        check "a file that may only be replaced is" exits 0
    fi
}

test_interrupted_query() {
    run build -n 100 -p 1e-9 -o f keys
    interrupted INT 10 query f
    check "query, SIGINT" exits 130
    check "query, SIGINT: says" says "interrupted; 10 keys were asked, 10 are perhaps in f"
    check "query, SIGINT: one line" lines err 1
    interrupted INT 0 query -v f
    check "query -v, SIGINT: says" says "interrupted; 10 keys were asked, 10 are perhaps in f"
    run build --count -n 100 -p 1e-9 -o g keys
    interrupted TERM 10 count g
    check "count, SIGTERM" exits 143
    check "count, SIGTERM: says" says "interrupted; 10 keys were asked, 10 are perhaps in g"
}

run_tests
