#!/usr/bin/env bash
# Starts servers for cluster_async_test.c:  cluster_async_test.sh PROGRAM
. "$(dirname "$0")/../support/servers.sh"
servers_start_single || exit 1
servers_start_cluster 3 0 --cluster-node-timeout 60000 || exit 1 # no master is replaced
"$1" "${PORTS[0]}" "${PIDS[0]}" "${PORTS[1]}" "${PIDS[2]}"
