#!/usr/bin/env bash
# Starts an empty server for the liars of cluster_strange_test.c: cluster_liars_test.sh TEST
. "$(dirname "$0")/servers.sh"
servers_start_single || exit 1
PERHAPS_TEST=${PERHAPS_TEST:-test_liar*} "$1" "${PORTS[0]}"
