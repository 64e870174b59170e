#!/usr/bin/env bash
# Starts an empty server for cluster_cuts_test.c, in which replies break off at any byte:
# cluster_cuts_test.sh PROGRAM
. "$(dirname "$0")/servers.sh"
servers_start_single || exit 1
"$1" "${PORTS[0]}"
