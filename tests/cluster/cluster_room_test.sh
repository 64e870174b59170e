#!/usr/bin/env bash
# Starts servers for cluster_room_test.c:  cluster_room_test.sh TEST
. "$(dirname "$0")/../support/servers.sh"
servers_start_single || exit 1
servers_start_cluster 3 0 || exit 1
"$1" "${PORTS[0]}" "${PORTS[1]}"
