#!/usr/bin/env bash
# Servers that lose data, refuse or do not answer:  cluster_losses_test.sh DRIVER
# Proves that each of these is an error whose text says what to do, and never the answer "no"
# for a key that was added.
. "$(dirname "$0")/cluster_helpers.sh"
servers_start_cluster 3 0 "${SETTINGS[@]}" || exit 1
heal

# remove_partition NAME NUMBER: deletes a partition; sets $node and $key to where it was.
remove_partition() {
    node=$(owner_of "perhaps:{$1/$2}")
    key=$(partitions "$node" "$1" "$2")
    check "partition $2 was there: $key" [ "$(server_cli "$node" del "$key")" = 1 ]
}

# nothing_left NAME: no server has anything of the filter.
nothing_left() {
    local server left
    left=$(for server in 0 1 2; do server_cli $server --scan --pattern "perhaps:{$1[/}]*"; done)
    check "nothing is left: $(head -n 3 <<<"$left")" [ -z "$left" ]
}

# ---- A part is lost --------------------------------------------------------------------------

# A server loses everything while clients add and ask.  An add to a partition that is gone makes
# a new one, which must not be taken for the old one.
test_flushall() {
    succeeds "create" create flushed capacity=3000000 fpr=1e-4 partitions=1024
    start_crowd flushed adders=2 askers=3
    crowd_adds 5000
    server_cli 1 flushall >/dev/null
    check "it is noticed" within 20 grep -q LOST crowd
    sleep 1 # so that askers meet what the adds have made
    stop_crowd
    only_errors LOST
    check "some was lost" above LOST 0
    fails "open" LOST open flushed
    fails "ask" LOST ask flushed keys=keys
    succeeds "delete" delete flushed
    nothing_left flushed
    succeeds "create" create flushed capacity=1000 fpr=1e-4
}

# One partition is deleted: every call tells so, also one by a client that had the filter open.
test_partition_is_deleted() {
    local node key
    filled deleted 20000 capacity=1000000 fpr=1e-4 partitions=64
    open_asker deleted
    remove_partition deleted 17
    echo >&5
    end_asker
    check "who has it open: $(tail -n 1 out)" gives LOST
    check "nothing is denied" is denied 0
    check "it says which, and what to do" mentions 'partition 17 .*delete'
    fails "open" LOST open deleted
    fails "ask" LOST ask deleted keys=keys
    fails "add" LOST add deleted first=20000 count=20000
    fails "ask after somebody tried to add" LOST ask deleted keys=keys
    fails "verify" LOST verify deleted
    check "of all" is partitions 64
    check "one is lost" is lost 1
    succeeds "delete" delete deleted
}

# A client that adds to a partition that is gone makes one of zeros, and may die before it
# notices.  Others must notice then.
test_partition_of_zeros() {
    local node key nbytes
    filled zeros 20000 capacity=1000000 fpr=1e-4 partitions=64
    open_asker zeros
    nbytes=$(server_cli "$(owner_of 'perhaps:{zeros/5}')" \
        strlen "$(partitions "$(owner_of 'perhaps:{zeros/5}')" zeros 5)")
    remove_partition zeros 5
    server_cli "$node" setbit "$key" $((8 * (nbytes - 100))) 1 >/dev/null
    echo >&5
    end_asker
    check "who has it open: $(tail -n 1 out)" gives LOST
    check "nothing is denied" is denied 0
    fails "open" LOST open zeros
    succeeds "delete" delete zeros
}

# Large batches fill the partition that they made anew, until it looks like a real one.  The
# loss must be noticed all the same.
test_partition_is_deleted_beside_a_crowd() {
    local node key adders
    filled beside 40000 capacity=10000000 fpr=1e-4 partitions=64
    added=40000 start_crowd beside adders=1 askers=6 batch=4
    crowd_adds 20
    "$program" run "$(url beside)" keys=more adders=4 batch=8000 >adders 2>adders_err &
    adders=$!
    check "large batches are added" within 60 grep -q '"acknowledged":[1-9]' adders
    remove_partition beside 3
    check "it is noticed" within 10 grep -q LOST crowd
    sleep 1 # so that askers meet what the adds have made
    kill -TERM $adders
    wait $adders
    stop_crowd
    only_errors LOST
    succeeds "delete" delete beside
}

# Clients have a filter open while it is deleted and made anew with another size.  They must not
# use the new filter with the old layout.
test_deleted_and_made_anew() {
    local i
    succeeds "create" create anew capacity=3000000 fpr=1e-4 partitions=256
    start_crowd anew adders=2 askers=3
    crowd_adds 3000
    succeeds "delete" delete anew
    check "it is noticed" within 20 grep -qE 'LOST|MISSING|CHANGED' crowd
    succeeds "create" create anew capacity=300000 fpr=1e-3 partitions=256
    sleep 1
    # The keys of the deleted filter are gone, rightly; but its users get an error, and no "no".
    stop_crowd
    only_errors LOST MISSING CHANGED UNFINISHED
    succeeds "open" open anew
    check "nothing was added to the new one" is keys 0
    succeeds "add" add anew count=1000
    all_there anew 1000
    succeeds "delete" delete anew
}

# ---- Counts that are wrong -------------------------------------------------------------------

counts_of() { # NAME: prints the Redis key of the counts
    echo "perhaps:{$1}:$(server_cli "$(owner_of "perhaps:{$1}")" hget "perhaps:{$1}" id)"
}

# at_counts COMMAND NAME ARGUMENT...: sends a command about the counts of a filter.
at_counts() {
    server_cli "$(owner_of "perhaps:{$2}")" "$1" "$(counts_of "$2")" "${@:3}" >/dev/null
}

# is_between NAME LEAST MOST: whether this number of the driver's last line is.
is_between() { [ "$(told "$1")" -ge "$2" ] && [ "$(told "$1")" -le "$3" ]; }

# miscounted NAME WHAT: verify and statistics tell that the counts are wrong; the keys can be
# asked for all the same.
miscounted() {
    fails "verify, $2" LOST verify "$1"
    check "$2: it says what to do" mentions 'perhaps recount'
    check "$2: no partition is lost" is lost 0
    check "$2: miscounted" is miscounted 1
    all_there "$1"
}

# recounted NAME LEAST MOST: after a recount there are so many keys, and verify is content.
recounted() {
    succeeds "recount" recount "$1"
    check "recounted: $(tail -n 1 out)" is_between now "$2" "$3"
    succeeds "verify" verify "$1"
    check "all is well" is miscounted 0
    succeeds "open" open "$1"
    check "the count is set: $(tail -n 1 out)" is_between keys "$2" "$3"
}

# Whatever somebody makes of the counts is told, and can be mended or deleted.
test_counts_are_replaced() {
    local value
    filled counted 20000 capacity=50000 fpr=1e-3
    recounted counted 19800 20400
    at_counts del counted
    miscounted counted "deleted"
    fails "statistics" LOST open counted
    check "statistics say what to do" mentions 'perhaps recount'
    recounted counted 19800 20400
    at_counts del counted
    at_counts hset counted keys.0 20000
    miscounted counted "made by another program"
    recounted counted 19800 20400
    for value in 0 9223372036854775000 -9223372036854775000 many 4000000; do
        at_counts hset counted keys.0 $value
        miscounted counted "set to $value"
        recounted counted 19800 20400
    done
    at_counts set counted hello
    miscounted counted "a text"
    recounted counted 19800 20400
    succeeds "add" add counted first=20000 count=10000
    recounted counted 29800 30500
    at_counts set counted hello
    succeeds "delete" delete counted
    nothing_left counted
}

# A full filter that is recounted is full within the accuracy of the estimate (its deviation is
# 30), and each layer of one that grows is counted.
test_recount_of_full_filters() {
    succeeds "create" create brim capacity=20000 fpr=1e-3
    fails "add" FULL add brim count=20500 batch=20
    recounted brim 19800 20200
    fails "add" FULL add brim first=30000 count=1000
    succeeds "create" create layers capacity=1000 fpr=1e-3 grow=1
    succeeds "add" add layers count=20000
    recounted layers 19800 20600
    check "it has grown" above layers 3
    at_counts hset layers keys.1 0
    echo 20000 >keys
    miscounted layers "one layer"
    recounted layers 19800 20600
    succeeds "add" add layers first=20000 count=20000
    all_there layers 40000
}

# Filters of earlier versions have no marker in their counts.
test_counts_of_earlier_versions() {
    filled earlier 1000 capacity=10000
    server_cli "$(owner_of 'perhaps:{earlier}')" hdel 'perhaps:{earlier}' counted >/dev/null
    at_counts hdel earlier of
    succeeds "verify" verify earlier
    succeeds "add" add earlier first=1000 count=1000
    recounted earlier 1950 2080
    at_counts set earlier hello
    recounted earlier 1950 2080
    succeeds "delete" delete earlier
}

# A recount needs all partitions, and none of a filter that is not there.
test_recount_of_what_is_lost() {
    local node key
    fails "none" MISSING recount nothing
    filled partly 1000 capacity=10000 partitions=16
    remove_partition partly 7
    fails "recount" LOST recount partly
    check "it says which" mentions 'partition 7'
    succeeds "delete" delete partly
}

# ---- What is not a filter, or not whole ------------------------------------------------------

# 'verify' and statistics tell what has become of the filter that is open; a later call may
# succeed again when the description is back.
test_verify_of_a_stale_handle() {
    local node
    filled stale 100 capacity=1000
    open_asker stale verify wait=2
    node=$(owner_of 'perhaps:{stale}')
    server_cli "$node" rename 'perhaps:{stale}' 'away:{stale}' >/dev/null
    echo >&5
    check "its description is away" within 10 grep -q MISSING asked
    server_cli "$node" rename 'away:{stale}' 'perhaps:{stale}' >/dev/null
    echo >&5
    end_asker
    check "it is back, and nothing is lost: $(tail -n 1 out)" gives none
    check "to stats neither: $(tail -n 1 out)" grep -q '"stats":"none"' <(tail -n 1 out)
    open_asker stale verify wait=1
    succeeds "delete" delete stale
    succeeds "create" create stale capacity=1000
    echo >&5
    end_asker
    check "made anew: $(tail -n 1 out)" gives CHANGED
    check "stats says the same" grep -q '"stats":"CHANGED"' <(tail -n 1 out)
}

# What a handle has reserved is not in the bits, and is not given back after it has recounted.
test_recount_beside_what_is_held() {
    succeeds "create" create held capacity=100000
    succeeds "add, and recount" add held count=200 batch=1 recount=1
    succeeds "open" open held
    check "at least what is in: $(tail -n 1 out)" above keys 199
    check "and not much more" [ "$(told keys)" -lt 300 ]
    succeeds "delete" delete held
}

# A handle that was not opened looks at what is there when it verifies, each time.
test_verify_without_open() {
    local node key
    filled unopened 100 capacity=1000 partitions=16
    remove_partition unopened 3
    open_asker unopened verify unopened=1 wait=1
    check "one is lost: $(tail -n 2 asked)" grep -q '"error":"LOST"' asked
    succeeds "delete" delete unopened
    succeeds "create" create unopened capacity=100000
    echo >&5
    end_asker
    check "made anew: $(tail -n 1 out)" gives none
    succeeds "delete" delete unopened
}

# A filter that could not be deleted stays open.
test_delete_that_fails() {
    local node
    filled kept 100 capacity=1000
    node=$(owner_of 'perhaps:{kept}')
    replicas_wanted 1 "$node"
    open_asker kept delete wait=1
    check "it is refused: $(cat asked)" grep -q '"error":"REFUSED"' asked
    replicas_wanted 0 "$node"
    echo >&5
    end_asker
    check "statistics: $(tail -n 1 out)" gives none
    check "of the filter" is keys 100
    all_there kept
    succeeds "delete" delete kept
}

# with_comma VERB...: runs the driver in a locale where numbers have a decimal comma.
with_comma() {
    LC_ALL=de_DE.UTF-8 drive "$@"
    check "with a decimal comma: $1: $(tail -n 1 out)" gives none
}

# A client with a decimal comma and one with a point use the same filter.
test_decimal_comma() {
    LC_ALL=de_DE.UTF-8 "$program" 2>comma
    if grep -q 'no such locale' comma; then
        echo "    skipped: there is no de_DE.UTF-8 (package locales)"
        return
    fi
    with_comma create comma capacity=100 fpr=1e-3 grow=1
    with_comma add comma count=1000
    succeeds "open, with a point" open comma
    check "it has grown: $(tail -n 1 out)" above layers 2
    all_there comma 1000
    with_comma ask comma keys=keys
    check "a number like any other" \
        [ "$(server_cli "$(owner_of 'perhaps:{comma}')" hget 'perhaps:{comma}' fpr)" = 1e-3 ]
    succeeds "create, with a point" create point capacity=1000 fpr=1e-3
    with_comma open point
    with_comma delete point
    with_comma delete comma
}

# Names without a filter, names that are taken, and a name that is another program's string.
test_missing_and_taken() {
    fails "open" MISSING open nothing
    fails "delete" MISSING delete nothing
    succeeds "create" create taken capacity=1000
    fails "create again" TAKEN create taken capacity=1000
    succeeds "it is as it was" open taken
    server_cli "$(owner_of 'perhaps:{text}')" set 'perhaps:{text}' hello >/dev/null
    fails "create where there is a text" TAKEN create text capacity=1000
    drive open text
    check "open a text: $(tail -n 1 out)" [ "$status" -eq 1 ]
    drive delete text
    check "delete a text: $(tail -n 1 out)" [ "$status" -eq 1 ]
    check "it is still there" \
        [ "$(server_cli "$(owner_of 'perhaps:{text}')" get 'perhaps:{text}')" = hello ]
}

# A filter is deleted while two clients add to it, which makes layers.  Nothing of it stays behind,
# and one of the same name can be made at once.
test_delete_while_it_grows() {
    local i adders
    for i in $(seq 12); do
        succeeds "create" create growing capacity=20 fpr=1e-3 grow=1
        "$program" add "$(url growing)" count=1000000 batch=40 >adder1 2>err1 &
        adders=$!
        "$program" add "$(url growing)" count=1000000 batch=300 adder=1 >adder2 2>err2 &
        adders="$adders $!"
        sleep "0.$(printf %02d $((RANDOM % 40)))"
        succeeds "delete" delete growing
        succeeds "create again" create growing capacity=1000
        wait $adders
        for n in 1 2; do
            cp adder$n out
            check "who adds is told: $(tail -n 1 out)" grep -qE '"error":"(MISSING|CHANGED|UNFINISHED|LOST)"' out
        done
        succeeds "the new one is as it was made" open growing
        check "no key is in it" is keys 0
        succeeds "delete the new one" delete growing
        nothing_left growing
    done
}

: "${ROUNDS:=10}" # how often a process is killed

# The process that makes a filter is killed at various moments: what it leaves is told as
# unfinished, and can be deleted.
test_half_created() {
    local i pid unfinished=0
    for i in $(seq $ROUNDS); do
        "$program" create "$(url half)" capacity=4000000 fpr=1e-4 >out 2>err &
        pid=$!
        sleep "0.0$(printf %02d $((RANDOM % 40)))"
        kill -KILL $pid 2>/dev/null
        wait $pid 2>/dev/null
        drive open half
        if gives UNFINISHED; then
            unfinished=$((unfinished + 1))
            check "it says what to do" mentions delete
            drive create half capacity=1000
            check "create: $(tail -n 1 out)" eval 'gives UNFINISHED || gives TAKEN'
            check "it says what to do" mentions delete
            succeeds "delete" delete half
        elif gives none; then
            succeeds "delete" delete half
        else
            check "open: $(tail -n 1 out)" gives MISSING
        fi
        check "nothing is left" [ -z "$(for n in 0 1 2; do partitions $n half; done)" ]
    done
    echo "    half created: unfinished $unfinished of $ROUNDS"
    succeeds "create" create half capacity=1000
    succeeds "delete" delete half
}

# ---- Servers that do not answer, or refuse ---------------------------------------------------

test_unreachable() {
    with_single
    kill_server "$entry"
    fails "nobody listens" UNREACHABLE open 'f?patience=300ms'
    check "it says where" mentions "${PORTS[entry]}"
    server_again "$entry" || exit 1
    kill -STOP "${PIDS[entry]}"
    fails "who listens does not answer" UNREACHABLE open 'f?timeout=300ms&patience=500ms'
    fails "nor to create" UNREACHABLE create 'f?timeout=300ms&patience=500ms' capacity=1000
    kill -CONT "${PIDS[entry]}"
    fails "it answers" MISSING open f
    end_single
    # The port of a cluster's bus speaks another protocol, and hangs up.
    run open "redis://127.0.0.1:$((PORTS[0] + 10000))/f?timeout=300ms&patience=500ms"
    check "no redis: $(tail -n 1 out)" eval 'gives UNREACHABLE || gives PROTOCOL'
}

# A node hangs for longer than the patience: an error; when it goes on, all keys are there.
test_patience_ends() {
    local node
    filled patience 1000 capacity=100000 partitions=64
    node=$(owner_of 'perhaps:{patience/0}')
    kill -STOP "${PIDS[node]}"
    fails "ask" UNREACHABLE ask 'patience?timeout=300ms&patience=1s' keys=keys
    kill -CONT "${PIDS[node]}"
    heal
    all_there patience
}

test_password() {
    local secret='pa:ss/w@rd'
    with_single --requirepass "$secret"
    run open "redis://127.0.0.1:${PORTS[entry]}/f"
    check "none: $(tail -n 1 out)" gives REFUSED
    check "none: says password" mentions password
    run open "redis://:wrong@127.0.0.1:${PORTS[entry]}/f"
    check "wrong: $(tail -n 1 out)" gives REFUSED
    check "wrong: is not shown" not grep -q wrong@ out
    run create "redis://:pa%3Ass%2Fw%40rd@127.0.0.1:${PORTS[entry]}/f" capacity=1000
    check "right: $(tail -n 1 out)" gives none
    end_single
}

# A server without memory refuses; what was acknowledged is in, and with more memory adds go on.
test_memory_is_full() {
    with_single --maxmemory 3mb --maxmemory-policy noeviction
    fails "create" SERVER_FULL create full capacity=100000000 fpr=1e-4
    check "it says what to do" mentions maxmemory
    check "nothing is left" [ "$(server_cli "$entry" dbsize)" = 0 ]
    succeeds "create a small one" create full capacity=10000 grow=1
    server_cli "$entry" setrange filler 1200000 x >/dev/null
    fails "until it is full" SERVER_FULL add full count=5000000
    printf '%s\n' "$(told added)" >keys
    check "it has grown" above layers 1
    all_there full
    server_cli "$entry" config set maxmemory 16mb >/dev/null
    succeeds "add, with more memory" add full first="$(cat keys)" count=100000
    all_there full $(($(cat keys) + 100000))
    end_single
}

# A filter that is larger than a server is refused before anything is made: a million strings
# would be made and removed again, or a server without a limit would be killed.
test_larger_than_the_server() {
    local huge='capacity=10000000000000 fpr=1e-9' limit
    with_single
    for limit in 0 1gb; do
        server_cli "$entry" config set maxmemory $limit >/dev/null
        fails "maxmemory $limit" SERVER_FULL create huge $huge
        check "it says how much: $(tail -n 1 out)" mentions 'MiB of the filter would lie there'
    done
    check "nothing is left" [ "$(server_cli "$entry" dbsize)" = 0 ]
    check "nor was anything large made" [ "$(server_cli "$entry" info memory |
        sed -n 's/^used_memory_peak:\([0-9]*\).*/\1/p')" -lt 20000000 ]
    end_single
}

# A server that would evict keys when its memory is full is refused: parts of the filter would
# be lost without notice.  volatile-lru evicts only keys with a time to live, which we do not
# set.
test_eviction() {
    with_single --maxmemory 50mb --maxmemory-policy allkeys-lru
    fails "create" REFUSED create evicted capacity=100000
    check "it says what to do" mentions maxmemory-policy
    server_cli "$entry" config set maxmemory-policy volatile-lru >/dev/null
    succeeds "no key of ours has a time to live" create evicted capacity=100000
    end_single
}

# Writes that want a replica, on a server that has none.
test_too_few_replicas() {
    with_single --min-replicas-to-write 1
    drive create 'lonely?patience=500ms' capacity=1000
    check "min-replicas-to-write: $(tail -n 1 out)" eval 'gives REPLICAS || gives REFUSED'
    server_cli "$entry" config set min-replicas-to-write 0 >/dev/null
    succeeds "create" create lonely capacity=1000
    fails "acknowledge" REPLICAS add 'lonely?acknowledge=1&timeout=1s&patience=1s' count=10
    succeeds "without" add lonely count=10
    end_single
}

# Without a replica nothing can be added with acknowledge=1.  Reading waits for no replica.
test_reading_needs_no_replica() {
    local url='read?acknowledge=1&timeout=500ms&patience=1s'
    with_single
    filled read 100 capacity=1000
    fails "add" REPLICAS add "$url" first=100 count=10
    succeeds "open, and statistics" open "$url"
    succeeds "verify" verify "$url"
    all_there "$url" 100
    end_single
}

# replicas_wanted NUMBER SERVER...: with fewer replicas these servers refuse writes.
replicas_wanted() {
    local number=$1 i
    shift
    for i in "$@"; do server_cli "$i" config set min-replicas-to-write "$number" >/dev/null; done
}

# An add reserves room before it writes.  When a server refuses, the room is given back: only
# keys that are in count.
test_failed_adds_give_back() {
    local description other i
    succeeds "create" create refused capacity=1000 fpr=1e-6 partitions=8
    description=$(owner_of 'perhaps:{refused}') other=$((($(owner_of 'perhaps:{refused}') + 1) % 3))
    replicas_wanted 1 $other
    for i in $(seq 20); do
        fails "a server refuses, time $i" REFUSED add refused count=100
    done
    replicas_wanted 0 $other
    drive open refused
    check "only those that are in count: $(tail -n 1 out)" [ "$(told keys)" -lt 100 ]
    succeeds "add" add refused count=1000
    drive open refused
    check "all have room: $(tail -n 1 out)" is keys 1000
    check "it was none of the description's" [ $other -ne $description ]
}

# If the room cannot be given back at once, a client that goes on does it later.
test_failed_adds_give_back_later() {
    local i all
    succeeds "create" create later capacity=1000000 fpr=1e-9 partitions=64
    start_crowd later adders=4 askers=1 batch=100
    for i in $(seq 8); do
        crowd_adds 500
        replicas_wanted 1 0 1 2
        sleep 0.1
        replicas_wanted 0 0 1 2
    done
    crowd_adds 2000
    stop_crowd
    check "some adds failed" above REFUSED 8
    all=$(told acknowledged)
    drive open later
    check "none but those that are in count: $all, $(tail -n 1 out)" is keys "$all"
}

# A replica answers queries, and refuses writes.
test_read_only_replica() {
    local master
    with_single --repl-diskless-sync-delay 0
    master=$entry
    filled copied 100 capacity=1000
    with_single --replicaof 127.0.0.1 "${PORTS[master]}"
    check "it has a copy" within 20 eval '[ "$(server_cli $entry dbsize)" = "$(server_cli $master dbsize)" ]'
    all_there copied
    drive add 'copied?patience=500ms' count=10 first=200
    check "it cannot add: $(tail -n 1 out)" mentions READONLY
    drive create 'other?patience=500ms' capacity=10
    check "it cannot create: $(tail -n 1 out)" mentions READONLY
    end_single
    entry=$master
    end_single
}

# A slot that no node owns: an error after the patience; and a client that waits goes on when
# the slot is served again.
test_cluster_is_down() {
    local slot node
    filled down 5000 capacity=100000 partitions=512
    slot=$(slot_of 'perhaps:{down/3}') node=$(owner_of 'perhaps:{down/3}')
    for i in 0 1 2; do server_cli $i cluster delslots "$slot" >/dev/null; done
    drive ask 'down?patience=500ms' keys=keys
    check "an error: $(tail -n 1 out)" [ "$status" -eq 1 ]
    echo "    a slot that nobody serves: $(tail -n 1 out)"
    "$program" ask "$(url down)" keys=keys >asked 2>err &
    sleep 1
    for i in 0 1 2; do server_cli $i cluster setslot "$slot" node "$(id_of "$node")" >/dev/null; done
    wait $!
    status=$?
    cp asked out
    check "it goes on when it is served again: $(tail -n 1 out)" gives none
    check "all were asked" is asked 5000
    heal
}

run_tests
