#!/usr/bin/env bash
# Kills a master under the crowd of cluster_crowd_test.c:  cluster_crowd_test.sh PROGRAM
. "$(dirname "$0")/cluster_helpers.sh"
servers_start_cluster 3 1 "${SETTINGS[@]}" || exit 1
heal

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
