#!/usr/bin/env bash
# Several processes add the same keys at once:  cluster_writers_test.sh DRIVER
# Proves that of all processes that add a key exactly one is told that it was new, also while
# the filter grows, slots move, connections break and a process is killed.  Rates of 1e-13 and
# less keep false positives out of the counts.
. "$(dirname "$0")/cluster_helpers.sh"
servers_start_cluster 3 0 "${SETTINGS[@]}" || exit 1
heal

# writers NAME PROCESSES KEYS [BATCH]: so many processes add the same keys, each in its own
# order.  Waits for all of them, and collects their output in out.
writers() {
    local name=$1 processes=$2 keys=$3 batch=${4:-100} pids=() i
    for i in $(seq "$processes"); do
        PERHAPS_TEST_SEED=$((PERHAPS_TEST_SEED + i)) "$program" add "$(url "$name")" shuffle=1 \
            count="$keys" batch="$batch" >"writer$i" 2>"writer_err$i" &
        pids+=($!)
    done
    for i in "${!pids[@]}"; do
        wait "${pids[i]}"
        status=$?
        cp "writer$((i + 1))" out
        check "$name: writer $((i + 1)): $(tail -n 1 out)" gives none
        check "$name: writer $((i + 1)) added all" is added "$keys"
    done
    cat writer[0-9]* | grep '^{' >out
}

# sum NAME: prints the sum of this number over all writers.
sum() { sed -n 's/.*"'"$1"'":\([0-9]*\).*/\1/p' out | awk '{ n += $1 } END { print n + 0 }'; }

# each_once NAME KEYS: all writers together were told "new" as often as there are keys.  More is
# allowed only for keys in doubt: those sent again after a broken connection.
each_once() {
    local told doubtful
    told=$(sum told_new) doubtful=$(sum doubtful)
    check "$1: each of $2 keys is new once: $told told, $doubtful doubtful" \
        [ $((told >= $2 && told <= $2 + doubtful)) = 1 ]
    all_there "$1" "$2"
}

# none_in_doubt NAME PROCESSES KEYS [BATCH]: writers, while nothing else happens.
none_in_doubt() {
    writers "$@"
    each_once "$1" "$3"
    check "none was in doubt" [ "$(sum doubtful)" = 0 ]
}

test_undisturbed() {
    succeeds "create" create two capacity=100000 fpr=1e-14
    none_in_doubt two 2 30000
    succeeds "create" create eight capacity=100000 fpr=1e-14
    none_in_doubt eight 8 20000
    # batches of one key, so that all processes meet on the same few keys
    succeeds "create" create small capacity=100000 fpr=1e-14 partitions=3
    none_in_doubt small 8 300 1
}

# The filter begins with room for 50 keys and gets many layers.
test_while_it_grows() {
    succeeds "create" create grows capacity=50 fpr=1e-13 grow=1
    none_in_doubt grows 8 20000 37
    succeeds "open" open grows
    check "layers: $(tail -n 1 out)" above layers 5
    check "keys: $(tail -n 1 out)" [ "$(told keys)" -ge 20000 ]
}

test_while_slots_move() {
    succeeds "create" create moving capacity=1000 fpr=1e-13 grow=1
    writers moving 4 20000 &
    wait_for=$!
    move_slots 0 1 700
    move_slots 1 2 700
    move_slots 2 0 700
    wait $wait_for
    cat writer[0-9]* | grep '^{' >out
    check "all have ended well" [ "$(grep -c '"error":"none"' out)" = 4 ]
    each_once moving 20000
}

# One process is killed in the middle, and what it was told is lost with it.  So fewer keys may
# be told as new, but never more, and all keys are in.
test_writer_is_killed() {
    local victim
    succeeds "create" create killed capacity=100000 fpr=1e-13 grow=1
    "$program" add "$(url killed)" count=50000 batch=50 >victim 2>err &
    victim=$!
    sleep 0.3
    kill -KILL $victim
    wait $victim 2>/dev/null
    writers killed 2 50000
    check "none is new twice: $(sum told_new)" [ "$(sum told_new)" -le 50000 ]
    all_there killed 50000
}

test_connections_break() {
    local i pid
    succeeds "create" create broken capacity=100000 fpr=1e-14
    writers broken 3 10000 &
    pid=$!
    while kill -0 $pid 2>/dev/null; do
        for i in 0 1 2; do server_cli $i client kill type normal skipme yes >/dev/null; done
        sleep 0.1
    done
    wait $pid
    cat writer[0-9]* | grep '^{' >out
    check "all have ended well" [ "$(grep -c '"error":"none"' out)" = 3 ]
    each_once broken 10000
}

run_tests
