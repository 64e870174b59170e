#!/usr/bin/env bash
# Tests examples/events_cluster.c:  events_cluster_test.sh PROGRAM
# Proves that two of these programs, which share a filter, together print each event once.
program=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
. "$(dirname "$0")/../support/servers.sh"
servers_start_single || exit 1
url=redis://127.0.0.1:${PORTS[0]}/events?timeout=1m # no connection is given up
cd "$folder" || exit 1

events() { seq 60000; seq 30000; printf 'the last line has no end'; }
: | "$program" "$url" || exit 1 # makes the filter
events | "$program" "$url" >one &
other=$!
events | "$program" "$url" >two || exit 1
wait $other || exit 1
cat one two | sort >all
if ! events | sort -u | diff -q - all; then
    echo "$(wc -l <all) events came through, $(sort -u all | wc -l) of them different"
    exit 1
fi
if ! events | "$program" "$url" | cmp - /dev/null; then
    echo "events came through a second time"
    exit 1
fi
if "$program" "$url" <one 2>problem || ! grep -q 'must be a pipe' problem; then
    echo "a file is no pipe, and no message: $(cat problem)"
    exit 1
fi
if "$program" redis://127.0.0.1:1/events </dev/null 2>problem || ! grep -q 127.0.0.1:1 problem; then
    echo "no server, and no message: $(cat problem)"
    exit 1
fi
