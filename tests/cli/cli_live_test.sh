#!/usr/bin/env bash
# End-to-end tests of live files: cli_live_test.sh PROGRAM, as cli_test.sh.
# Proves that what a verb has acknowledged is there after kill -9, that one key rewrites no
# file, and that nobody reads a live file without its journal.
. "$(dirname "$0")/../support/cli_helpers.sh"

# inode FILE: which file is at that path.
inode() { stat -c %i "$1"; }

test_add() {
    local before
    reports "F made" create --live -n 100000 F
    before=$(inode F)
    quietly add -q F keys
    check "one key rewrites nothing" [ "$(inode F)" = "$before" ]
    quietly add -q F --key extra
    writes $'extra\n' query F --key extra
    writes "" query F --key other
    matches keys query F keys
    shows "^journal .* 11 records" info F
    shows "F: ok, .* and 11 records in its journal" verify F
    tells_json "records" 11 info F --json
    matches keys query --check F keys
    check "no litter" no_litter
}

# Nobody's file is overwritten.
test_names() {
    works create -q --live -n 100 F
    keeps F refuses "is the file itself" copy F F
    check "it is still live" test -e F.journal
    refuses "give two filters" copy F
    seq 5 >G.journal
    keeps G.journal refuses "G.journal is there" create --live -n 100 G
    check "nothing is left" not test -e G
    keeps G.journal refuses "G.journal is there" build --live --removable -o G keys
    check "nothing is left" not test -e G
    keeps G.journal refuses "G.journal is there" dedup --state G --durable 1s keys
    check "nothing is left" not test -e G
    rm G.journal
    mkfifo G.journal
    refuses "G.journal is there" create --live -n 100 G
    check "it is a pipe still" test -p G.journal
    rm G.journal
    : >G.journal
    works create -q --live -n 100 G
}

test_every_kind() {
    local kind
    for kind in blocked bloom cuckoo strided counting elastic chain; do
        works create -q --live --kind $kind -n 1000 $kind
        works add -q $kind keys
        works add -q $kind empty
        matches keys query $kind keys
        works copy -q $kind plain
        matches keys query plain keys
        shows "plain: ok, [0-9]* pages?$" verify plain
    done
    refuses "cuckoo: was made without --removable, and stores each key once: build it anew" remove cuckoo keys
    matches keys query cuckoo keys
    works create -q --live --removable -n 1000 removable
    works add -q removable keys
    works remove -q removable keys
    writes "" query removable keys
    refuses "its kind cannot remove keys" remove blocked keys
}

test_build() {
    works build -q --live --removable -o F keys
    matches keys query F keys
    works remove -q F --key 3
    counts -eq 9 query -c F keys
    refuses "leave out --static" build --live --static -o G keys
    refuses "give -o F" build --live -o - keys
}

test_without_journal() {
    works create -q --live -n 1000 F
    works add -q F keys
    cp F copy
    refuses "copy: a live file, without its journal" query copy keys
    mv F.journal aside
    refuses "F: a live file, without its journal" query F keys
    refuses "F: a live file, without its journal" add F keys
    works create -q --live -n 1000 G
    cp G.journal F.journal
    refuses "F: a live file, without its journal" query F keys
    mv aside F.journal
    matches keys query F keys
    refuses "F is a live file, whose" add --rewrite F keys
}

test_damage() {
    works create -q --live -n 1000 F
    works add -q F keys
    works add -q F --key later
    printf X | dd of=F.journal bs=1 seek=600 conv=notrunc status=none
    keeps F.journal refuses "F: the file is damaged" add F keys
    run verify F
    check "verify tells" exits 1
}

# The journal of a file that was renamed is not that of the next file of the old name.
test_renamed() {
    works create -q --live -n 1000 F
    works add -q F keys
    mv F G
    keeps F.journal refuses "may belong to a file that was renamed" create --live -n 1000 F
    keeps F.journal refuses "may belong to a file that was renamed" dedup -q --state F --durable 1 keys
    mv G F
    matches keys query F keys
}

# What a verb puts in place of a live file is live, too.
test_replaced() {
    works create -q --live -n 100000 F
    works add -q F keys
    works shrink -q F -o F
    works add -q F --key shrunk
    works merge -q -o F F F
    works add -q F --key merged
    works build -q -o G keys
    works copy -q F H
    works copy -q G F
    works add -q F --key backed
    matches keys query F keys
    writes $'backed\n' query F --key backed
    writes "" query F --key merged
    works build -q -o F <(seq 5)
    works build -q --live --removable -o F <(seq 5)
    works add -q F --key built
    counts -eq 6 query -c F <(seq 5; echo built)
    check "it is live" test -e F.journal
    shows "F: ok, .* in its journal" verify F
    keeps F refuses "is a live file, which takes keys later" build --static -o F keys
    keeps F refuses "is a live file, which takes keys later" build --static -q -o F keys
    mv F.journal aside
    keeps F refuses "is a live file without its journal" build -o F keys
    mv aside F.journal
    counts -eq 6 query -c F <(seq 5; echo built)
    writes $'merged\n' query H --key merged
}

# Somebody removes the journal, or puts another one there, while keys are added.
test_removed() {
    local how
    for how in "rm F.journal" "mv F.journal aside" "cp --remove-destination other.journal F.journal" \
        "mv F aside" "cp --remove-destination other F"; do
        rm -f F F.journal other other.journal
        works create -q --live -n 1000 F
        works create -q --live -n 1000 other
        begins add F
        echo early >&5
        until_true reads $begun F.journal
        $how
        echo late >&5
        finishes
        cp slow_err err
        refused "add, $how" "was removed, renamed or replaced meanwhile: the keys are not in it"
    done
}

test_removed_beside_dedup() {
    works create -q --live -n 1000 F
    begins dedup --state F --durable 1
    echo early >&5
    until_true lines slow_out 1
    rm F.journal
    echo late >&5
    finishes
    cp slow_err err
    refused "dedup" "was removed, renamed or replaced meanwhile: lines that were printed may come again"
}

test_mode() {
    works create -q --live -n 1000 F
    chmod 600 F
    works add -q F keys
    check "the journal is private, too" [ "$(stat -c %a F.journal)" = 600 ]
}

# Somebody writes: others wait or say so, and read what was acknowledged.
test_two_writers() {
    local pid
    works create -q --live -n 1000 F
    works add -q F keys
    mkfifo slow
    "$program" add -q F slow &
    pid=$!
    exec 5>slow
    until_true reads $pid F.journal
    refuses "F: another process is changing it" add F keys
    refuses "F: another process is changing it" build -o F keys
    matches keys query F keys
    works copy -q F G
    matches keys query G keys
    echo late >&5
    exec 5>&-
    check "the writer ends" wait $pid
    writes $'late\n' query F --key late
}

# remembered STATE: the lines that a run of dedup would not print again.
test_dedup() {
    seq 1000 >in
    matches in dedup -q --state S --durable 100 in
    writes "" dedup -q --state S in
    seq 500 1500 >more
    matches <(seq 1001 1500) dedup -q --state S more
    check "it is live" test -e S.journal
    # A state that was not live becomes so.
    works dedup -q --state plain in
    check "it is not live" not test -e plain.journal
    writes "" dedup -q --state plain --durable 1s in
    check "it is live now" test -e plain.journal
    refuses "--durable: keeps which state" dedup --durable 1s in
    refuses "neither a number of lines" dedup --state S --durable soon in
}

# A line is printed, whether or not more lines come, while lines before it are acknowledged.
test_dedup_answers() {
    local j
    for j in 1 2 8; do
        answers_at_once dedup -q -j $j --state S$j --durable 1
        answers_at_once dedup -q -j $j --state T$j --durable 1ms
    done
}

# Kills dedup when it has printed some lines: none of those that it acknowledged comes again,
# and none is lost.
test_dedup_killed() {
    local pid how
    for how in 100 50ms; do
        rm -f S S.journal slow
        mkfifo slow
        "$program" dedup -q --state S --durable $how <slow >printed 2>err &
        pid=$!
        exec 5>slow
        seq 1000 >&5
        until_true lines printed 1000
        until_true acknowledged
        seq 1001 1040 >&5
        kill -9 $pid
        wait $pid 2>/dev/null
        exec 5>&-
        seq 1100 | "$program" dedup -q --state S >again 2>err
        check "$how: none of the first comes again" not grep -qxF -f <(seq 1000) again
        sort -n printed again | uniq >both
        check "$how: none is lost" same both <(seq 1100)
    done
}

# acknowledged: whether the journal of S has all lines of the file 'printed'.
acknowledged() {
    [ "$("$program" query -c S printed 2>/dev/null)" = 1000 ]
}

test_dedup_broken_pipe() {
    seq 200000 | "$program" dedup -q --state S --durable 1h 2>err | head -n 1 >first
    seq 200000 | "$program" dedup -q --state S >again 2>err
    check "what nobody saw comes again" [ "$(wc -l <again)" -gt 100000 ]
}

# An error in the middle: the keys before it are removed once, and the message tells how many.
test_remove_error() {
    works create -q --live --integers 0-1000 B
    works add -q B <(seq 0 1000)
    refuses ":4: " remove B <(printf '1\n2\n3\nabc\n5\n')
    check "how many were removed" says "; 3 of the first 3 keys were removed from B: go on at"
    counts -eq 998 query -c B <(seq 0 1000)
    # Keys that were added twice stay in, whatever is removed of the first copies.
    seq 20000 >in
    works create -q --live --kind cuckoo -n 60000 F
    works add -q F in in
    (ulimit -f $(($(stat -c %s F.journal) / 1024 + 64)) && "$program" remove F in) >out 2>err
    check "the journal cannot be written" [ $? -eq 2 ]
    counts -eq 20000 query -c F in
}

test_signal() {
    works create -q --live -n 1000 F
    interrupted TERM 0 "the first 10 keys are in F: adding all again is safe" add F
    counts -eq 10 query -c F keys
}

test_window() {
    works dedup -q --state W --window 3-keys --durable 10 keys
    shows "^journal .* records" info W
    writes "" dedup -q --state W <(seq 8 10)
}

run_tests
