#!/usr/bin/env bash
# Starts an empty server for a test that stands between it and a client: cluster_liars_test.sh TEST
. "$(dirname "$0")/../support/servers.sh"
servers_start_single || exit 1
"$1" "${PORTS[0]}"
