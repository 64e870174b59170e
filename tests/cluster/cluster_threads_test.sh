#!/usr/bin/env bash
# Many threads of one process, each with its own handle:  cluster_threads_test.sh DRIVER
# Proves that handles share nothing that is not protected: no error and no denied key, also
# while slots move and connections break.  It proves most if the driver is built with
# ThreadSanitizer.
. "$(dirname "$0")/cluster_helpers.sh"
servers_start_cluster 3 0 "${SETTINGS[@]}" || exit 1
heal

test_threads() {
    succeeds "create" create threads capacity=1000 fpr=1e-9 grow=1
    start_crowd threads adders=6 askers=6 batch=100
    crowd_adds 2000
    move_slots 0 1 100
    server_cli 1 client kill type normal skipme yes >/dev/null
    crowd_adds 2000
    move_slots 1 0 100
    crowd_adds 2000
    stop_crowd
    check "no errors" is errors 0
    all_there threads
}

run_tests
