#!/usr/bin/env bash
# What a message says after a stop: cli_stops_test.sh PROGRAM, as cli_test.sh.
# A run over a live file is stopped by a signal, a limit, a full disk or one that fails.  What it
# says is then done, word by word, until it works.  The filter must be, byte for byte, the one of a
# run that nothing has stopped: so no key was left out, and none was added or removed twice.
. "$(dirname "$0")/../support/cli_helpers.sh"

# A multiset for kinds that store copies.  For removals every key is there twice.
nkeys=200000

# begin VERB KIND: makes the live file F, and 'wanted', which is F after an undisturbed run.
begin() {
    local verb=$1 kind=$2 range= copies=
    rm -f F* G* wanted
    [ -e many ] || { seq $nkeys && seq 3 $nkeys; } >many
    [ "$kind" != bitmap ] || range="--integers 0-1000000"
    [ "$verb" != remove ] || copies=--removable
    if [ "$kind" = bitmap ]; then
        works create -q --live $range F
    else
        works create -q --live $copies --kind "$kind" -n $((nkeys * 3)) F
    fi
    [ "$verb" = add ] || works add -q F many
    cp F G
    cp F.journal G.journal
    works "$verb" -q G many
    works copy -q G wanted
}

# disturbed VERB FAULT: runs it with the fault; leaves what it said in 'err'.
disturbed() {
    local verb=$1 fault=$2 pid
    case $fault in
    signal)
        mkfifo slow
        env --default-signal "$program" "$verb" F <slow 2>err &
        pid=$!
        {
            head -n 150000 many
            kill -INT "$pid"
            until_true not kill -0 "$pid" 2>kill.err
        } >slow
        wait "$pid"
        status=$?
        rm -f slow
        sed -i "s/standard input/many/" err
        ;;
    limit) # of what ulimit counts: 1024 bytes
        (
            ulimit -f $(($(stat -c %s F.journal) / 1024 + 64 + RANDOM % 600))
            exec "$program" "$verb" F many
        ) 2>err
        status=$?
        ;;
    full) # a file system without fallocate() tells when it writes
        (
            ulimit -f $(($(stat -c %s F.journal) / 1024 + 64 + RANDOM % 700))
            LD_PRELOAD="$PERHAPS_TEST_DISK:$LD_PRELOAD" PERHAPS_TEST_LACKS=fallocate \
                exec "$program" "$verb" F many
        ) 2>err
        status=$?
        ;;
    sync)
        LD_PRELOAD="$PERHAPS_TEST_DISK:$LD_PRELOAD" PERHAPS_TEST_BAD_SYNC=$3 \
            "$program" "$verb" F many 2>err
        status=$?
        ;;
    esac
}

# resume VERB: does what the message in 'err' says, once, without a fault.
resume() {
    local verb=$1 text line record
    text=$(cat err)
    line=$(expr "$text" : '.*go on at many:\([0-9]*\)')
    record=$(expr "$text" : '.*the last record is number \([0-9,]*\), at many:')
    if expr "$text" : ".*${verb/e/}ing all again is safe" >expr.out; then
        line=1
    elif [ -n "$record" ] && "$program" info F | grep -q "the last is number $record\$"; then
        line=$(expr "$text" : '.*, at many:\([0-9]*\)')
    fi
    check "$verb: the message tells how to go on: $text" [ -n "$line" ]
    tail -n +"${line:-1}" many >rest
    works "$verb" -q F rest
}

# stops VERB KIND FAULT...: the fault stops it, and what it says leads to the same filter.
stops() {
    local verb=$1 kind=$2
    begin "$verb" "$kind"
    disturbed "$verb" "${@:3}"
    check "$*: it is stopped" [ "$status" -ne 0 ]
    check "$*: one line" lines err 1
    cp err "said"
    resume "$verb"
    works copy -q F result
    check "$*: the same filter: $(cat said)" same result wanted
}

test_add() {
    local kind fault
    for kind in counting cuckoo blocked bitmap; do
        for fault in signal limit full "sync 1" "sync 2"; do
            stops add $kind $fault
        done
    done
}

# The place is right in a later input, and where lines have no key.
test_place() {
    { seq 1000 && echo && seq 1001 5000; } | sed 's/^./x,&/' >a
    { echo && echo && seq 5001 9000; } | sed 's/^./x,&/' >b
    works create -q --live --removable --kind cuckoo -n 5000 F
    run add --field 2 -d, -q F a b
    line=$(expr "$(cat err)" : '.*go on at b:\([0-9]*\)$')
    check "it is full in b" [ -n "$line" ]
    tail -n +"$line" b | head -1 >next
    check "the line is the one that was refused: $line" says "b:$line: the filter is full"
    check "all before it are in" [ "$("$program" query -c --field 2 -d, -q F a)" -eq 5000 ]
}

test_remove() {
    local kind fault
    for kind in cuckoo counting bitmap; do
        for fault in signal limit full "sync 1" "sync 2"; do
            stops remove $kind $fault
        done
    done
}

run_tests
