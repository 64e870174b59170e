#!/usr/bin/env bash
# Starts an empty server for cluster_pool_test.c:  cluster_pool_test.sh PROGRAM
. "$(dirname "$0")/../support/servers.sh"
servers_start_single || exit 1
"$1" "${PORTS[0]}"
