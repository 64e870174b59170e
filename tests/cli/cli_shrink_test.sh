#!/usr/bin/env bash
# End-to-end tests of the verb shrink: cli_shrink_test.sh PROGRAM, as cli_test.sh.
# Proves that the small filter is the one that would have been built, that errors tell what to
# do, and that nothing is left or lost after an error or a signal.
. "$(dirname "$0")/../support/cli_helpers.sh"

# large NAME OPTION...: builds a filter of 20,000 keys with room for 200,000.
large() { works build -q -n 200000 -o "$1" "${@:2}" in; }

test_kinds() {
    local kind
    seq 20000 >in
    for kind in blocked bloom counting; do
        large f --kind $kind
        reports "f shrunk to 1/" shrink f -o g
        check "$kind: summary" says " -> " "bits a key" "% now"
        works verify g
        matches in query g in
        check "$kind: it is smaller" [ "$(wc -c <g)" -lt $(($(wc -c <f) / 5)) ]
        counts -le 1500 query -c g <(seq 20001 120000) # 1.2 % at most
        # Once more, to its own path: the same bytes.
        quietly shrink -q f -o f
        check "$kind: -o F" same g f
        keeps g refuses "g: nothing smaller keeps" shrink g -o g
        rm f g
    done
}

test_json() {
    seq 20000 >in
    large f
    tells_json "keys_in_filter body_bytes_before" "20000 $("$program" info --json f |
        grep -o '"body_bytes":[0-9]*' | cut -d: -f2)" shrink f -o g -p 0.05 --json
    check "one line" lines err 1
    check "fpr" [ "$(facts fpr_asked)" = 0.05 ]
}

test_chain() {
    seq 30000 >in
    works build -q --kind chain:base=blocked -n 20000 -o f in
    works shrink f -o g -p 0.02
    matches in query g in
    works verify g
}

test_secret() {
    seq 20000 >in
    large f --hash sip --key-file secret
    works shrink f -o g
    matches in query --key-file secret g in
}

test_refusals() {
    seq 20000 >in
    large f
    cp f damaged
    printf 'x' | dd of=damaged bs=1 seek=9000 conv=notrunc 2>dd_err
    refuses "shrink: which filter?" shrink
    refuses "which file shall it make? give -o G" shrink f
    refuses "one operand too many" shrink f g -o h
    refuses "works on filters in files only" shrink redis://localhost/f -o g
    refuses "writes files only" shrink f -o redis://localhost/g
    refuses "missing: No such file" shrink missing -o g
    refuses "keys: " shrink keys -o g
    keeps keys refuses "keys: exists and is not a filter" shrink f -o keys
    keeps damaged refuses "damaged: " shrink damaged -o damaged
    refuses "g was not made" shrink damaged -o g
    refuses "next smaller size: give -p " shrink f -o g -p 1e-9
    refuses "-p 2: not a rate" shrink f -o g --fpr 2
    refuses "it is written to a file only" shrink f -o -
    check "no g" [ ! -e g ]
    works build -q --kind cuckoo -o c in
    refuses "c: filters of its kind, cuckoo, cannot be made smaller, but only blocked" shrink c -o g
    works build -q --static -o r in
    refuses "build it anew from the keys" shrink r -o g
}

# What -p the message asks for is enough.
test_advice() {
    local rate
    seq 20000 >in
    large f
    works shrink f -o g
    refuses "next smaller size: give -p " shrink g -o h
    rate=$(sed 's/.*give -p \([0-9.e-]*\).*/\1/' err)
    works shrink g -o h -p "$rate"
    matches in query h in
}

# A process that adds in place has no checksums, and one that replaces the file has the lock.
test_locks() {
    seq 20000 >in
    large f
    cp f g
    begins add f
    keeps g refuses "f: is being written in place: try again when that has ended" shrink f -o g
    refuses "f: another process is changing it" shrink f -o f
    finishes
    works shrink f -o g
    matches in query g in
}

run_tests
