#!/usr/bin/env bash
# A cluster whose slots move and whose nodes end, hang and come back, while clients add and ask:
# cluster_moves_test.sh DRIVER
# Proves that clients follow: no acknowledged key is denied, and no call fails except where the
# test says so.  Where a master is lost, clients use acknowledge=1, since Redis itself may lose
# what only the master had.
. "$(dirname "$0")/cluster_helpers.sh"
servers_start_cluster 3 1 "${SETTINGS[@]}" || exit 1
heal

# Slots move in a circle through all masters: the client must follow MOVED and ASK.
test_slots_move() {
    local moved asked m=($(masters))
    succeeds "create" create moves capacity=3000000 fpr=1e-4 partitions=4096
    moved=$(errorstat MOVED) asked=$(errorstat ASK)
    start_crowd moves askers=2
    crowd_adds 2000
    move_slots "${m[0]}" "${m[1]}" 100
    move_slots "${m[1]}" "${m[2]}" 100
    move_slots "${m[2]}" "${m[0]}" 100
    crowd_adds 2000
    stop_crowd
    only_errors
    check "MOVED was answered" [ "$(errorstat MOVED)" -gt "$moved" ]
    check "ASK was answered" [ "$(errorstat ASK)" -gt "$asked" ]
    check "redirections are counted" above redirections 0
    all_there moves
}

# A slot is on its way: some of its keys lie on the new node and the others on the old one.
test_slot_between_nodes() {
    local key from to slot asked
    filled between 1000 capacity=200 fpr=1e-6 grow=1 partitions=1
    printf '3000\n' >keys
    slot=$(slot_of 'perhaps:{between/0}') from=$(owner_of 'perhaps:{between/0}')
    to=$(masters | grep -vx "$from" | head -n 1)
    check "there are several keys in the slot" [ "$(keys_in "$from" "$slot" | wc -l)" -gt 1 ]
    server_cli "$to" cluster setslot "$slot" importing "$(id_of "$from")" >/dev/null
    server_cli "$from" cluster setslot "$slot" migrating "$(id_of "$to")" >/dev/null
    asked=$(errorstat ASK)
    move_key "$from" "$to" "$(keys_in "$from" "$slot" | head -n 1)"
    succeeds "add while it is between them" add between first=1000 count=2000
    check "all were new" is told_new 2000
    check "it has grown" above layers 3
    all_there between
    check "ASK was answered" [ "$(errorstat ASK)" -gt "$asked" ]
    for key in $(keys_in "$from" "$slot"); do
        move_key "$from" "$to" "$key"
    done
    server_cli "$to" cluster setslot "$slot" node "$(id_of "$to")" >/dev/null
    server_cli "$from" cluster setslot "$slot" node "$(id_of "$to")" >/dev/null
    all_there between
    heal
}
keys_in() { server_cli "$1" cluster getkeysinslot "$2" 100; } # SERVER SLOT
move_key() { # FROM TO KEY
    check "$3 moves" [ "$(server_cli "$1" migrate 127.0.0.1 "${PORTS[$2]}" "$3" 0 5000)" = OK ]
}

# leaves I ID: every other node forgets node I.  To be repeated until none has it: one tells
# another of it.  (redis-cli's del-node cannot be repeated once it stopped half way.)
leaves() {
    local i id=$2 gone=0
    for i in "${!PORTS[@]}"; do
        [ "$i" -ne "$1" ] && is_up "$i" || continue
        server_cli "$i" cluster nodes | grep -q "^$id" || continue
        gone=1
        server_cli "$i" cluster forget "$id" >cluster_out 2>&1
    done
    return $gone
}

# whole_without I ID: the cluster is whole, and no node has heard of ID from another one again.
whole_without() {
    leaves "$1" "$2"
    is_whole
}

# A new node joins, gets a part of the slots, gives it back and leaves.
test_node_comes_and_goes() {
    local new id m=($(masters))
    succeeds "create" create added capacity=3000000 fpr=1e-4 partitions=1024
    start_crowd added askers=2
    crowd_adds 2000
    server_start --cluster-enabled yes --cluster-config-file nodes.conf --cluster-node-timeout 2000 \
        "${SETTINGS[@]}" || exit 1
    new=$((${#PORTS[@]} - 1))
    cluster_does "it joins" add-node "127.0.0.1:${PORTS[new]}" "127.0.0.1:${PORTS[entry]}"
    heal
    id=$(id_of $new) # now: without slots it becomes a replica, and tells nothing while it loads
    move_slots "${m[0]}" $new 50
    move_slots "${m[1]}" $new 50
    crowd_adds 2000
    check "it has a part" [ "$(server_cli $new dbsize)" -gt 0 ]
    move_slots $new "${m[0]}" 100
    crowd_adds 2000
    within 30 leaves $new "$id" || check "it leaves: $(tail -n 2 cluster_out)" false
    kill_server $new
    within 90 whole_without $new "$id" || tail -n 30 info view[0-9]* # what it lacks
    check "the cluster becomes whole without it" is_whole
    crowd_adds 2000
    stop_crowd
    only_errors
    all_there added
}

# All connections of one server after the other are closed: the client sends again.
test_connections_break() {
    local i m=($(masters))
    succeeds "create" create breaks capacity=3000000 fpr=1e-4
    start_crowd breaks adders=2 askers=2
    for i in $(seq 10); do
        crowd_adds 500
        server_cli "${m[i % 3]}" client kill type normal skipme yes >/dev/null
    done
    crowd_adds 500
    stop_crowd
    only_errors
    check "it was tried again" above retries 0
    all_there breaks
}

# With replicas=yes replicas answer queries.
test_replicas_answer() {
    local node
    succeeds "create" create answered capacity=100000 fpr=1e-4
    succeeds "add" add "answered?acknowledge=1" count=1000
    printf '1000\n' >keys
    node=$(replica_of "$(owner_of 'perhaps:{answered/0}')")
    server_cli "$node" config resetstat >/dev/null
    all_there "answered?replicas=yes"
    check "a replica was asked" eval 'server_cli "$node" info commandstats | grep -q cmdstat_getrange'
    check "and answered" [ "$(server_cli "$node" info errorstats | grep -c MOVED)" = 0 ]
}

# A failover by hand: the server whose address the client has becomes a replica.
test_failover_by_hand() {
    local old new
    entry=$(masters | head -n 1)
    old=$entry new=$(replica_of "$entry")
    succeeds "create" create by_hand capacity=3000000 fpr=1e-4
    start_crowd "by_hand?acknowledge=1" askers=2
    crowd_adds 2000
    server_cli "$new" cluster failover >/dev/null
    check "it becomes master" within 30 is_master "$new"
    crowd_adds 2000
    server_cli "$new" client kill type normal skipme yes >/dev/null # clients then read the map
    crowd_adds 2000
    stop_crowd
    only_errors
    heal
    all_there by_hand
}

# ---- Masters that end, hang and come back ----------------------------------------------------

# Its replica takes over; acknowledged keys are all there.
test_master_is_killed() {
    local old new
    succeeds "create" create killed capacity=3000000 fpr=1e-4 partitions=1024
    start_crowd "killed?acknowledge=1" askers=2
    crowd_adds 5000
    old=$(owner_of 'perhaps:{killed/0}') new=$(replica_of "$old")
    kill_server "$old"
    takes_over "$old"
    server_again "$old" || exit 1
    heal
    crowd_adds 5000
    stop_crowd
    only_errors REPLICAS
    all_there killed
}

# Less than the node timeout of 2 s: no replica takes over, and clients wait.
test_master_hangs_shortly() {
    local node
    succeeds "create" create short capacity=3000000 fpr=1e-4 partitions=1024
    node=$(owner_of 'perhaps:{short/0}')
    start_crowd short askers=2
    crowd_adds 2000
    kill -STOP "${PIDS[node]}"
    sleep 0.7
    kill -CONT "${PIDS[node]}"
    crowd_adds 2000
    check "it is still master" is_master "$node"
    stop_crowd
    only_errors
    all_there short
}

# A master hangs until its replica has taken over; when it goes on, it becomes a replica.
test_master_hangs_long() {
    local old new
    succeeds "create" create long capacity=3000000 fpr=1e-4 partitions=1024
    old=$(owner_of 'perhaps:{long/0}') new=$(replica_of "$old")
    start_crowd "long?acknowledge=1&timeout=1s" askers=2
    crowd_adds 2000
    kill -STOP "${PIDS[old]}"
    takes_over "$old"
    kill -CONT "${PIDS[old]}"
    check "the old master becomes a replica" within 30 not is_master "$old"
    heal
    crowd_adds 2000
    stop_crowd
    only_errors REPLICAS
    all_there long
}

# A client asks the old master over an old connection, in the moment in which that goes on and
# does not know yet that it was replaced.  It must not get an answer from the old data.
test_old_master_is_asked() {
    local old new
    filled stale 1000 capacity=100000 fpr=1e-9 partitions=64
    old=$(owner_of 'perhaps:{stale/0}') new=$(replica_of "$old")
    open_asker stale
    kill -STOP "${PIDS[old]}"
    takes_over "$old"
    succeeds "add to the new master" add stale first=1000 count=5000
    printf '6000\n' >keys
    echo >&5
    sleep 0.2 # so that the queries wait in the socket of the old master
    kill -CONT "${PIDS[old]}"
    end_asker
    check "nothing is denied: $(tail -n 1 out)" gives none
    check "all were asked" is asked 6000
    check "the old master becomes a replica" within 30 not is_master "$old"
    heal
    all_there stale
}

# name_apart PREFIX: prints the name of a filter whose description and partition 0 lie on
# different nodes.
name_apart() {
    local name
    for name in "$1"{1..50}; do
        [ "$(owner_of "perhaps:{$name}")" = "$(owner_of "perhaps:{$name/0}")" ] || break
    done
    echo "$name"
}

# The mark that a new layer is ready lies in the description.  If it were lost with its node,
# all keys in that layer would be denied: so growth, too, waits until a replica has acknowledged
# it.
test_growth_is_acknowledged() {
    local name old new
    name=$(name_apart growth)
    old=$(owner_of "perhaps:{$name}") new=$(replica_of "$old")
    succeeds "create" create "$name" capacity=100 fpr=1e-9 grow=1 partitions=1
    succeeds "add" add "$name?acknowledge=1" count=50
    kill -STOP "${PIDS[new]}"
    server_cli "$old" client kill type replica >/dev/null # it gets nothing from now on
    drive add "$name?acknowledge=1&timeout=500ms&patience=1s" first=50 count=1000 batch=10
    check "it cannot grow: $(tail -n 1 out)" gives REPLICAS
    printf '%s\n' $((50 + $(told added))) >keys
    kill_server "$old"
    kill -CONT "${PIDS[new]}"
    takes_over "$old"
    all_there "$name"
    server_again "$old" || exit 1
    heal
    succeeds "add" add "$name?acknowledge=1" first="$(cat keys)" count=1000
    all_there "$name" $(($(cat keys) + 1000))
}

# A master restarts without its data so fast that no replica takes over, and its replica copies
# the empty data.  The loss must be noticed.
test_master_comes_back_empty() {
    local name node
    name=$(name_apart empty)
    node=$(owner_of "perhaps:{$name/0}")
    succeeds "create" create "$name" capacity=3000000 fpr=1e-4 partitions=1024
    start_crowd "$name" adders=2 askers=2
    crowd_adds 5000
    kill_server "$node"
    server_again "$node" || exit 1
    check "it is still master" is_master "$node"
    check "it is noticed" within 30 grep -q LOST crowd
    sleep 1 # so that askers meet what the adds have made
    stop_crowd
    only_errors LOST
    heal
    fails "open" LOST open "$name"
    succeeds "delete" delete "$name"
    succeeds "create again" create "$name" capacity=1000 fpr=1e-4
    succeeds "add" add "$name" count=1000
    check "all were new" above told_new 990
}

# The description of a filter is lost, and its partitions are not.
test_description_is_lost() {
    local name node
    name=$(name_apart nameless)
    node=$(owner_of "perhaps:{$name}")
    succeeds "create" create "$name" capacity=3000000 fpr=1e-4 partitions=1024
    start_crowd "$name" adders=2 askers=2
    crowd_adds 5000
    server_cli "$node" del "perhaps:{$name}" >/dev/null
    check "it is noticed" within 10 grep -qE 'MISSING|CHANGED' crowd
    stop_crowd
    only_errors MISSING CHANGED
    fails "open" MISSING open "$name"
    succeeds "create" create "$name" capacity=1000 fpr=1e-4
}

run_tests
