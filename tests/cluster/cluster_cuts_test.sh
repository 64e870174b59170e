#!/usr/bin/env bash
# Starts an empty server and an empty cluster for cluster_cuts_test.c, in which replies break
# off at any byte: cluster_cuts_test.sh TEST [PROGRAM]
. "$(dirname "$0")/../support/servers.sh"
servers_start_single || exit 1
servers_start_cluster 3 0 --cluster-preferred-endpoint-type unknown-endpoint || exit 1
"$1" "${PORTS[@]}" "${@:2}"
