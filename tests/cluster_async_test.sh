#!/usr/bin/env bash
# Starts servers for cluster_async_test.c, and kills one of them:  cluster_async_test.sh PROGRAM
. "$(dirname "$0")/cluster_helpers.sh"
servers_start_cluster 3 1 "${SETTINGS[@]}" || exit 1
heal
servers_start_single || exit 1
servers_start_cluster 3 0 --cluster-node-timeout 60000 || exit 1 # no master is replaced

test_calls() {
    run "${PORTS[6]}" "${PIDS[6]}" "${PORTS[7]}" "${PIDS[8]}"
    check "$(tail -n 3 err)" [ "$status" = 0 ]
}

is_replica() { [ "$(role "$1")" = slave ]; }

# A master is killed while calls are under way, its replica takes over, and it comes back as a
# replica without data.
test_killed_master() {
    local line new=
    coproc crowd { exec "$program" "${PORTS[0]}" 2>err; }
    read -r line <&"${crowd[0]}"
    check "the crowd is at work" [ "$line" = ready ]
    new=$(replica_of 1)
    kill_server 1
    takes_over 1
    check "the server starts again" server_again 1
    check "it is a replica" within 30 is_replica 1
    eval "exec ${crowd[1]}>&-"
    wait "$crowd_PID"
    status=$?
    check "the crowd ends well" [ "$status" = 0 ]
}

run_tests
