#!/usr/bin/env bash
# Clients that use the module and clients that do not, on one filter: cluster_module_test.sh
# DRIVER MODULE
# Proves that both get the same answers, wherever the module is loaded; that replicas and the AOF
# need no module; and what PERHAPS.TEST and PERHAPS.SET refuse.  Servers load the module when a
# test wants it.  The other tests of the client run with the module, too: cluster_*_module.
module=$(realpath "$2")
. "$(dirname "$0")/cluster_helpers.sh"
unset PERHAPS_TEST_MODULE
SETTINGS+=(--enable-module-command yes --enable-debug-command yes)
servers_start_cluster 3 1 "${SETTINGS[@]}" || exit 1
heal

# Redis 8 and Valkey 9 list modules of their own.
lacks_module() { ! server_cli "$1" module list | grep -qx bf; }

# load I...: lets these servers load the module, unless they have it.
load() {
    local i
    for i; do
        ! lacks_module "$i" ||
            check "server $i loads it" [ "$(server_cli "$i" module load "$module")" = OK ]
    done
}

# calls I NAME: prints how many commands of this name (in lower case) the server has done.
calls() {
    server_cli "$1" info commandstats | sed -n "s/^cmdstat_$2:calls=\([0-9]*\).*/\1/p" | grep . || echo 0
}
sum_of_calls() { # NAME
    local i sum=0
    for i in "${!PORTS[@]}"; do
        is_up "$i" && sum=$((sum + $(calls "$i" "$1")))
    done
    echo $sum
}

# same_answers NAME[?SETTINGS]: clients with and without the module find all keys of the file keys, and the
# same false positives.
same_answers() {
    local with
    drive ask "$1" keys=keys absent=20000
    check "$1: with the module all are there: $(tail -n 1 out)" gives none
    with=$(told absent_present)
    drive ask "$1$([[ $1 = *\?* ]] && echo '&' || echo '?')module=no" keys=keys absent=20000
    check "$1: and without: $(tail -n 1 out)" gives none
    check "$1: the same false positives" is absent_present "$with"
    check "$1: there are some" above absent_present 0
}

# counts NAME KEYS: the counts tell so many, and the bits agree.
counts() {
    succeeds "verify $1" verify "$1"
    check "$1: nothing is lost or miscounted: $(tail -n 1 out)" is miscounted 0
    check "$1: $2 keys are counted: $(tail -n 1 out)" is keys "$2"
}

# Keys of one client are repeated keys for the other.  The rate lets few be taken for old ones.
both_ways() { # NAME
    local new
    succeeds "create" create "$1" capacity=100000 fpr=1e-2
    succeeds "add with the module" add "$1" count=30000
    new=$(told told_new)
    check "nearly all are new" above told_new 29900
    succeeds "add without" add "$1?module=no" count=30000
    check "now none is" is told_new 0
    succeeds "add others without" add "$1?module=no" adder=1 count=30000
    new=$((new + $(told told_new)))
    succeeds "add them with the module" add "$1" adder=1 count=30000
    check "now none is" is told_new 0
    printf '30000\n30000\n' >keys
    same_answers "$1"
    counts "$1" $new
}

test_nowhere() {
    with_single
    both_ways nowhere
    check "nothing went by its commands" [ "$(calls "$entry" perhaps.set)" = 0 ]
    end_single
}

test_on_some_masters() {
    local m=($(masters))
    load "${m[0]}" "${m[1]}"
    both_ways some
    check "the first was used" [ "$(calls "${m[0]}" perhaps.set)" -gt 0 ]
    check "the second was used" [ "$(calls "${m[1]}" perhaps.test)" -gt 0 ]
}

test_on_all_masters() {
    local before i bits
    load $(masters)
    bits=$(sum_of_calls bitfield) before=$(sum_of_calls perhaps.set)
    succeeds "create" create many capacity=100000 fpr=1e-3
    succeeds "add" add many count=40000 batch=8000
    check "one command to each node, or a few" \
        [ $(($(sum_of_calls perhaps.set) - before)) -le 20 ]
    check "each partition is reached once a command: $(($(sum_of_calls bitfield) - bits))" \
        [ $(($(sum_of_calls bitfield) - bits)) -lt 10000 ]
    both_ways all
}

# Keys of all layers are found, and new ones go to the newest.
test_growing() {
    load $(masters)
    succeeds "create" create grows capacity=2000 fpr=1e-2 grow=1
    succeeds "add with the module" add grows count=20000
    succeeds "add without" add "grows?module=no" adder=1 count=20000
    check "it has grown" above layers 3
    printf '20000\n20000\n' >keys
    same_answers grows
}

# Replicas have the same bits, and none of them has the module: those of one whose keys were all
# added with it, and WAIT counts them.
test_replicas() {
    local master replica key i
    load $(masters)
    succeeds "create" create copies capacity=100000 fpr=1e-3 partitions=64
    succeeds "add" add "copies?acknowledge=1" count=50000
    for master in $(masters); do
        replica=$(replica_of "$master")
        check "replica $replica has no module" lacks_module "$replica"
        check "replica $replica has the same data" [ "$(server_cli "$master" debug digest)" = \
            "$(server_cli "$replica" debug digest)" ]
    done
    echo 50000 >keys
    all_there "copies?replicas=yes"
}

# A replica that has the module answers with it.
test_replicas_answer() {
    local replica
    load $(masters)
    filled answered 20000 capacity=20000 fpr=1e-2 partitions=64
    replica=$(replica_of "$(owner_of 'perhaps:{answered/0}')")
    all_there "answered?replicas=yes"
    load "${!PORTS[@]}"
    all_there "answered?replicas=yes"
    check "the replica was asked" [ "$(calls "$replica" perhaps.test)" -gt 0 ]
    same_answers "answered?replicas=yes"
}

# A server that starts anew from its AOF, without the module, has all bits.
test_aof() {
    with_single --appendonly yes --enable-module-command yes
    load "$entry"
    filled file 20000 capacity=100000 fpr=1e-3
    succeeds "add again" add file count=20000
    check "none is new" is told_new 0
    check "it went by the module" [ "$(calls "$entry" perhaps.set)" -gt 10 ]
    kill_server "$entry"
    server_again "$entry" || exit 1
    check "it has no module now" lacks_module "$entry"
    all_there file
    end_single
}

# Slots move in a circle, and the nodes have the module but one.
test_slots_move() {
    local m=($(masters))
    load "${m[0]}" "${m[1]}"
    succeeds "create" create moves capacity=3000000 fpr=1e-4 partitions=4096
    start_crowd moves askers=2
    crowd_adds 20000
    move_slots "${m[0]}" "${m[1]}" 100
    move_slots "${m[1]}" "${m[2]}" 100
    move_slots "${m[2]}" "${m[0]}" 100
    crowd_adds 20000
    stop_crowd
    only_errors
    all_there moves
    all_there "moves?module=no"
    heal
}

# A slot is on its way, and one of its strings is on the new node already: the old node knows
# nothing of it, and the new one does not say anything yet.
test_slot_between_nodes() {
    local key from to slot
    load $(masters)
    filled between 1000 capacity=5000 fpr=1e-6 partitions=1
    slot=$(slot_of 'perhaps:{between/0}') from=$(owner_of 'perhaps:{between/0}')
    to=$(masters | grep -vx "$from" | head -n 1)
    key=$(partitions "$from" between 0)
    server_cli "$to" cluster setslot "$slot" importing "$(id_of "$from")" >/dev/null
    server_cli "$from" cluster setslot "$slot" migrating "$(id_of "$to")" >/dev/null
    succeeds "add before it moves" add between first=1000 count=1000
    check "all were new" is told_new 1000
    check "it moves" [ "$(server_cli "$from" migrate 127.0.0.1 "${PORTS[to]}" "$key" 0 5000)" = OK ]
    all_there between 2000
    succeeds "add when it has moved" add between first=2000 count=1000
    check "all were new" is told_new 1000
    all_there between 3000
    server_cli "$to" cluster setslot "$slot" node "$(id_of "$to")" >/dev/null
    server_cli "$from" cluster setslot "$slot" node "$(id_of "$to")" >/dev/null
    heal
    all_there between
}

# Its replica, which may have no module, takes over.
test_master_is_killed() {
    local old new
    load $(masters)
    succeeds "create" create killed capacity=3000000 fpr=1e-4 partitions=1024
    start_crowd "killed?acknowledge=1" askers=2
    crowd_adds 20000
    old=$(owner_of 'perhaps:{killed/0}') new=$(replica_of "$old")
    kill_server "$old"
    takes_over "$old"
    server_again "$old" || exit 1
    heal
    crowd_adds 20000
    stop_crowd
    only_errors REPLICAS
    all_there killed
    all_there "killed?module=no"
}

# Strings that were deleted, or made anew by an add to nothing, are no "no".
test_lost() {
    local key
    load $(masters)
    filled gone 20000 capacity=50000 fpr=1e-3 partitions=8
    open_asker gone
    key=$(partitions "$(owner_of 'perhaps:{gone/3}')" gone 3)
    server_cli "$(owner_of 'perhaps:{gone/3}')" del "$key" >/dev/null
    echo >&5
    end_asker
    check "nothing is denied" is denied 0
    check "it is noticed" mentions "lost partition 3"
    server_cli "$(owner_of 'perhaps:{gone/3}')" setbit "$key" 100000 1 >/dev/null
    fails "add" LOST add gone first=20000 count=1000
}

# ---- The commands ----------------------------------------------------------------------------

# hex64 NUMBER: prints a number as 8 bytes, little-endian, as redis-cli reads them in quotes.
hex64() { printf '%016x' "$1" | sed 's/\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)/\\x\8\\x\7\\x\6\\x\5\\x\4\\x\3\\x\2\\x\1/'; }
THOUSANDTH='\xfc\xa9\xf1\xd2\x4d\x62\x50\x3f' # 0.001

# describe NAME: sets id, and geometry as redis-cli reads it, of a filter with the rate 0.001.
describe() {
    local text field
    id=$(server_cli "$entry" hget "perhaps:{$1}" id)
    text=$(server_cli "$entry" hget "perhaps:{$1}" layer.0)
    geometry=$(hex64 "$(sed 's/.*capacity=\([0-9]*\).*/\1/' <<<"$text")")$THOUSANDTH
    geometry+=$(hex64 "$(sed 's/.*partitions=\([0-9]*\).*/\1/' <<<"$text")")
    for field in $(sed 's/.*fields=//; s/,/ /g' <<<"$text"); do geometry+=$(hex64 "$field"); done
}

# sends TEXT...: sends lines as redis-cli reads them, over one connection, and prints the replies.
sends() { printf '%s\n' "$@" | server_cli "$entry"; }
HASH='0123456789abcdef'

# answers TEXT LINE...: the last of the replies is TEXT.
answers() {
    local text=$1 reply
    shift
    reply=$(sends "$@" | grep -a . | tail -n 1)
    check "$(printf '%.70s' "${!#}"): $reply" [ "$reply" = "$text" ]
}
refuses() { # TEXT LINE
    local reply
    reply=$(sends "$2" | head -n 1)
    check "$(printf '%.70s' "$2"): $reply" grep -q "$1" <<<"$reply"
}

test_arguments() {
    local id geometry zeros
    with_single --enable-module-command yes
    load "$entry"
    succeeds "create" create mine capacity=1000 fpr=1e-3 partitions=4
    describe mine
    zeros=$(hex64 0)
    answers '0' "perhaps.set mine $id 0 \"$geometry\" $HASH"
    answers '1' "perhaps.set mine $id 0 \"$geometry\" $HASH"
    answers '10' "perhaps.test mine $id 0 \"$geometry\" ${HASH}fedcba9876543210"
    answers '-' "perhaps.test mine 000000000000 0 \"$geometry\" $HASH"
    answers '-' "perhaps.set mine $id 1 \"$geometry\" $HASH"
    answers '-' "perhaps.set yours $id 0 \"$geometry\" $HASH"
    check "an empty question" [ "$(sends "perhaps.test mine $id 0 \"$geometry\" \"\"")" = "" ]
    refuses 'wrong number of arguments' "perhaps.test mine $id 0 \"$geometry\""
    refuses 'no name' "perhaps.test \"\" $id 0 \"$geometry\" $HASH"
    refuses 'no name' "perhaps.test a}b $id 0 \"$geometry\" $HASH"
    refuses 'no name' "perhaps.test \"a\\x00b\" $id 0 \"$geometry\" $HASH"
    refuses 'no name' "perhaps.test $(printf 'a%.0s' {1..201}) $id 0 \"$geometry\" $HASH"
    refuses 'an ID' "perhaps.test mine ${id}0 0 \"$geometry\" $HASH"
    refuses 'an ID' "perhaps.test mine 00000000000G 0 \"$geometry\" $HASH"
    refuses 'a layer' "perhaps.test mine $id 64 \"$geometry\" $HASH"
    refuses 'a layer' "perhaps.test mine $id -1 \"$geometry\" $HASH"
    refuses 'no geometry' "perhaps.test mine $id 0 \"\" $HASH"
    refuses 'no geometry' "perhaps.test mine $id 0 \"$geometry$zeros\" $HASH"
    refuses 'no geometry' "perhaps.test mine $id 0 \"$(for _ in {1..15}; do printf '%s' "$zeros"; done)\" $HASH"
    refuses 'no geometry' "perhaps.test mine $id 0 \"$(for _ in {1..15}; do hex64 -1; done)\" $HASH"
    refuses 'hashes have' "perhaps.test mine $id 0 \"$geometry\" ${HASH}0"
    refuses 'hashes have' "perhaps.test mine $id 0 \"$geometry\" $(printf "$HASH%.0s" {1..8193})"
    refuses 'not allowed from script' "eval \"return redis.call('perhaps.set', '', '', '', '', '')\" 0"
    check "nothing was made but the filter" [ "$(server_cli "$entry" dbsize)" = 6 ]
    end_single
}

# Numbers of which each can be wrong while the others are right.
test_geometries() {
    local id geometry i changed
    with_single --enable-module-command yes
    load "$entry"
    succeeds "create" create mine capacity=1000 fpr=1e-3 partitions=4
    describe mine
    for i in {0..14}; do
        for changed in "$(hex64 -1)" "$(hex64 $((1 << 62)))" "$(hex64 3)" "$(hex64 $((1 << 33)))"; do
            sends "perhaps.set mine $id 0 \"${geometry:0:i * 32}$changed${geometry:i * 32 + 32}\" $HASH" >out
            check "number $i: $(cat out)" grep -qE '^([-01]|ERR that is no geometry of a layer)$' out
        done
    done
    check "it lives" [ "$(server_cli "$entry" ping)" = PONG ]
    succeeds "verify" verify mine
    end_single
}

# Strings of other lengths and other types are not touched, whatever lies in their place.
test_other_strings() {
    local id geometry key
    with_single --enable-module-command yes
    load "$entry"
    succeeds "create" create mine capacity=1000 fpr=1e-3 partitions=1
    describe mine
    key=$(partitions "$entry" mine)
    answers '0' "perhaps.test mine $id 0 \"$geometry\" $HASH"
    server_cli "$entry" rename "$key" kept >/dev/null
    for make in "set $key 5" "lpush $key 5" "append $key x" "setbit $key 100000 1"; do
        answers '-' "del $key" "$make" "perhaps.set mine $id 0 \"$geometry\" $HASH"
        answers '-' "perhaps.test mine $id 0 \"$geometry\" $HASH"
    done
    server_cli "$entry" copy kept "$key" replace >/dev/null
    answers '0' "perhaps.test mine $id 0 \"$geometry\" $HASH"
    server_cli "$entry" append "$key" x >/dev/null
    answers '-' "perhaps.test mine $id 0 \"$geometry\" $HASH"
    server_cli "$entry" copy kept "$key" replace >/dev/null
    server_cli "$entry" setrange "$key" $(($(server_cli "$entry" strlen "$key") - 64)) P >/dev/null
    answers '-' "perhaps.set mine $id 0 \"$geometry\" $HASH"
    end_single
}

# A change breaks off a transaction that watches, and is told to those who listen; nothing else is.
test_who_is_told() {
    local id geometry key
    with_single --enable-module-command yes --notify-keyspace-events K\$
    load "$entry"
    succeeds "create" create mine capacity=1000 fpr=1e-3 partitions=1
    describe mine
    key=$(partitions "$entry" mine)
    watched=("watch $key" "perhaps.set mine $id 0 \"$geometry\" $HASH" multi ping exec)
    check "the first change is noticed" [ "$(sends "${watched[@]}" | tail -n 1)" = "" ]
    check "no change is not" [ "$(sends "${watched[@]}" | tail -n 1)" = PONG ]
    "$SERVER_CLI" -p "${PORTS[entry]}" subscribe "__keyspace@0__:$key" >heard &
    until_true grep -q subscribe heard
    sends "perhaps.set mine $id 0 \"$geometry\" ${HASH}fedcba9876543210" >out
    until_true grep -q setbit heard
    check "who listens is told once" [ "$(grep -c setbit heard)" = 1 ]
    kill $!
    wait $! 2>/dev/null
    end_single
}

# The server's own rules count: whether a replica may write, how many there must be, and who may
# reach which keys.
test_rules() {
    local id geometry set
    with_single --enable-module-command yes
    load "$entry"
    filled mine 1000 capacity=10000 fpr=1e-3 partitions=4
    describe mine
    set="perhaps.set mine $id 0 \"$geometry\" $HASH"
    server_cli "$entry" acl setuser limited reset on '>secret' '%R~perhaps:*' +@all >/dev/null
    answers '0' 'auth limited secret' "${set/set/test}"
    answers '-' 'auth limited secret' "$set"
    server_cli "$entry" acl setuser limited reset on '>secret' '~other:*' +@all >/dev/null
    answers '-' 'auth limited secret' "${set/set/test}"
    answers '0' "$set" # nothing was done before
    server_cli "$entry" acl setuser limited reset on '>secret' '~perhaps:*' +@all -perhaps.test \
        -perhaps.set >/dev/null
    run add "redis://limited:secret@127.0.0.1:${PORTS[entry]}/mine" first=1000 count=1000
    check "who may not use it adds without: $(tail -n 1 out)" gives none
    check "all were new" above told_new 990
    server_cli "$entry" config set min-replicas-to-write 1 >/dev/null
    refuses NOREPLICAS "$set"
    server_cli "$entry" config set min-replicas-to-write 0 maxmemory 1mb >/dev/null
    refuses OOM "$set"
    server_cli "$entry" config set maxmemory 0 >/dev/null
    server_cli "$entry" replicaof 127.0.0.1 1 >/dev/null
    refuses READONLY "$set"
    end_single
}

# What is not this node's is not touched, though it may lie there.
test_slots_of_others() {
    local id geometry owner other i
    load $(masters)
    succeeds "create" create theirs capacity=1000 fpr=1e-3 partitions=1
    entry=$(owner_of 'perhaps:{theirs}')
    describe theirs
    owner=$(owner_of 'perhaps:{theirs/0}')
    for i in "${!PORTS[@]}"; do
        is_master "$i" || continue
        entry=$i
        [ "$i" = "$owner" ] && answers '0' "perhaps.set theirs $id 0 \"$geometry\" $HASH" ||
            answers '-' "perhaps.set theirs $id 0 \"$geometry\" $HASH"
    done
    entry=$(replica_of "$owner")
    load "$entry"
    refuses READONLY "perhaps.set theirs $id 0 \"$geometry\" $HASH"
    answers '-' "perhaps.test theirs $id 0 \"$geometry\" $HASH"
    answers '1' readonly "perhaps.test theirs $id 0 \"$geometry\" $HASH"
    entry=0
}

run_tests
