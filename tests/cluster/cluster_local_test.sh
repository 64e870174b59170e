#!/bin/bash
# Tests of cluster/local.sh:  cluster_local_test.sh LOCAL
# Proves that 'up' starts servers on loopback and prints their address, that a second 'up'
# leaves them as they are, and that 'down' ends them all and leaves no file.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../support/cli_helpers.sh"

tools=redis
command -v redis-server >/dev/null || tools=valkey
if ! command -v "$tools-server" >/dev/null; then
    echo "no redis-server or valkey-server here"
    exit 77
fi
servers=$folder/servers
trap '"$program" down --folder "$servers"; rm -rf "$folder"' EXIT

# local_ends STATUS ARGUMENT...: runs it with the servers' folder; the exit status is this.
local_ends() { ends "$@" --folder "$servers"; }
cli() { "$tools-cli" -h 127.0.0.1 "$@"; }
pids() { cat "$servers"/*/pid; }
first_port() { sed -n 's|^redis://127.0.0.1:\([0-9]*\)$|\1|p' out; }
has_slots() { cli -p "$1" cluster info | grep -q "^cluster_slots_ok:16384"; }

# none_runs PID...: whether all these processes have ended.  One that has ended but was not
# waited for is still in /proc, without a folder.
none_runs() {
    local pid
    for pid in "$@"; do
        [ -z "$(readlink "/proc/$pid/cwd")" ] || return 1
    done
}

# Six servers come up, one dies and comes back, and all go down.
test_cluster() {
    local_ends 0 up --port 0
    check "up: prints the address and nothing else" lines out 1
    local port before
    port=$(first_port) before=$(pids)
    # shellcheck disable=SC2086
    check "up: they run" not none_runs $before
    check "up: six servers" test "$(echo "$before" | wc -l)" -eq 6
    check "up: all slots are served" has_slots "$port"
    cli -c -p "$port" set a-key value >/dev/null
    check "up: it takes a key" test "$(cli -c -p $((port + 1)) get a-key)" = value
    check "up: nobody else is listened to" test "$(cli -p "$port" config get bind | tail -n 1)" = 127.0.0.1
    check "up: nothing is kept" test -z "$(cli -p "$port" config get save | tail -n +2)"

    local_ends 0 up --port 0
    check "again: the same servers" test "$(pids)" = "$before"
    check "again: the key is there" test "$(cli -c -p "$port" get a-key)" = value
    local_ends 2 up --port $((port + 100))
    check "elsewhere meanwhile: says" says "there is one on the ports $port"
    local_ends 0 status
    check "status: a row a server" lines out 6
    check "status: masters" test "$(grep -c ' master ' out)" -eq 3

    ends 2 up --port "$port" --folder "$folder/other"
    check "a port is taken: says which" says "port $port: "
    check "a port is taken: leaves nothing" test ! -e "$folder/other"

    kill -9 "$(cat "$servers/$((port + 5))/pid")"
    until_true none_runs "$(cat "$servers/$((port + 5))/pid")"
    local_ends 1 status
    check "one has died: which" tells "127.0.0.1:$((port + 5)) *has ended"
    local_ends 0 up --port 0
    local_ends 0 status
    before=$(pids)

    local_ends 0 down
    # shellcheck disable=SC2086
    check "down: none runs" none_runs $before
    check "down: leaves nothing" test ! -e "$servers"
    local_ends 0 down
    local_ends 1 status
}

test_fewer() {
    local_ends 0 up --port 0 --replicas 0
    check "three masters: no more" test "$(pids | wc -l)" -eq 3
    local_ends 0 down
    local_ends 0 up --port 0 --single
    check "one server: it is no cluster" \
        test "$(cli -p "$(first_port)" config get cluster-enabled | tail -n 1)" = no
    local_ends 0 down
    check "one server: down" test ! -e "$servers"
}

test_refusals() {
    local arguments
    for arguments in "sideways" "up --port x" "up --port" "up --port 99999" "up --replicas 9" \
        "up --colour red"; do
        # shellcheck disable=SC2086
        ends 2 $arguments
        check "'$arguments': says something" test -s err
    done
}

run_tests
