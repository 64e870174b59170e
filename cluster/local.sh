#!/bin/sh
# local.sh up|down|status - a Redis or Valkey Cluster on this machine, to try things with.
set -eu

usage() {
    cat <<'TEXT'
usage: local.sh up [--port BASE] [--replicas N] [--single] [--folder F]
       local.sh down|status [--folder F]

A Redis (or Valkey) Cluster that listens on 127.0.0.1 only and keeps nothing on the disk.

  up       start it, wait until it answers, print its address; what runs already stays as it
           is, what has died is started again
  down     stop it, and remove what it left
  status   the servers, and whether the cluster is well: 0 if so, else 1

  --port BASE   the ports are BASE, BASE + 1, ... [7000], and those 10000 above for what the
                servers have to say to each other; 0: ports that are free
  --replicas N  of each of the three masters: 0, 1, 2 [1]
  --single      one server that is no cluster
  --folder F    where its logs are [build/cluster]
TEXT
}

fail() {
    echo "cluster: $*" >&2
    exit 2
}

# ---- One server ------------------------------------------------------------------------------

# The folders of all servers that there are: their ports are their names.
ports() {
    for path in "$folder"/[1-9]*/pid; do
        [ ! -e "$path" ] || basename "$(dirname "$path")"
    done | sort -n
}

# $1: a port.  A process of this number that lives elsewhere is another one.
is_running() {
    pid=$(cat "$folder/$1/pid" 2>/dev/null) && [ -n "$pid" ] &&
        [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$folder/$1" ]
}

cli() {
    cli_port=$1
    shift
    timeout 5 "$program-cli" -h 127.0.0.1 -p "$cli_port" "$@" 2>/dev/null
}

# $1: port.  That what answers there is ours, and not somebody else's.
answers() {
    cli "$1" info server | grep -q "^process_id:$(cat "$folder/$1/pid")"
}

# $1: port.  Why it did not start.
last_words() {
    sed -n 's/^[0-9]*:[A-Z] .* [.*#-] //p' "$folder/$1/log" | tail -n 1
}

start_server() {
    port=$1
    mkdir -p "$folder/$port"
    cluster="--cluster-enabled yes --cluster-config-file nodes.conf --cluster-node-timeout 5000"
    [ -z "$single" ] || cluster=
    # shellcheck disable=SC2086
    "$program-server" --port "$port" --bind 127.0.0.1 --dir "$folder/$port" --logfile log \
        --save '' --appendonly no --repl-diskless-sync-delay 0 $cluster >/dev/null 2>"$folder/$port/errors" </dev/null &
    echo $! >"$folder/$port/pid"
}

# Waits until it answers; returns 1 if it does not.
await_server() {
    tries=0
    until answers "$1"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] && [ -d "/proc/$(cat "$folder/$1/pid")" ] || return 1
        sleep 0.05
    done
}

# Nothing is kept, so there is nothing to wait for but the end of the processes.
stop_servers() {
    for port in "$@"; do
        ! is_running "$port" || kill "$pid"
    done
    for port in "$@"; do
        tries=0
        while is_running "$port"; do
            tries=$((tries + 1))
            [ $tries -ne 60 ] || kill -9 "$pid"
            sleep 0.05
        done
        rm -r "${folder:?}/$port"
    done
}

# ---- The cluster -----------------------------------------------------------------------------

# Starts those that do not run, and stops these again if one cannot; says why in $problem.
start_servers() {
    started=
    for port in "$@"; do
        is_running "$port" && continue
        start_server "$port"
        started="$started $port"
    done
    for port in $started; do
        await_server "$port" && continue
        problem="port $port: $(last_words "$port")$(cat "$folder/$port/errors")"
        # shellcheck disable=SC2086
        stop_servers $started
        return 1
    done
}

# Every server knows all the others, all slots are served, replicas have what their masters have.
is_well() {
    for port in "$@"; do
        facts=$(cli "$port" cluster info && cli "$port" info replication) || return 1
        echo "$facts" | grep -q '^cluster_state:ok' || return 1
        echo "$facts" | grep -q "^cluster_known_nodes:$#[^0-9]*\$" || return 1
        ! echo "$facts" | grep -q '^master_link_status:down' || return 1
    done
}

await_cluster() {
    tries=0
    until is_well "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "it is not well after a minute; logs: $folder/*/log"
        sleep 0.2
    done
}

form_cluster() {
    addresses=
    for port in "$@"; do
        addresses="$addresses 127.0.0.1:$port"
    done
    # shellcheck disable=SC2086
    "$program-cli" --cluster create $addresses --cluster-replicas "$replicas" \
        --cluster-yes >"$folder/create.log" 2>&1 ||
        fail "it could not be formed: $(tail -n 1 "$folder/create.log")"
}

# Of the ports from $1 on, as many as there are servers.
ports_from() {
    count=$((3 * (replicas + 1)))
    [ -z "$single" ] || count=1
    seq "$1" $(($1 + count - 1))
}

# Somewhere below what the system gives to those who do not care, also 10000 above.
random_port() {
    echo $((10000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
}

start_anywhere() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        wanted=$(ports_from "$(random_port)")
        # shellcheck disable=SC2086
        ! start_servers $wanted || return 0
    done
    fail "found no free ports: $problem"
}

# $1: running, $2: wanted
expect_same() {
    [ "$1" = "$2" ] ||
        fail "there is one on the ports $(echo "$1" | tr '\n' ' ')in $folder ('down' stops it)"
}

# Nothing is left of what could not be made.
make_new() {
    trap down EXIT
    trap 'exit 2' INT TERM
    # shellcheck disable=SC2086
    if [ "$base" -eq 0 ]; then
        start_anywhere
    else
        wanted=$(ports_from "$base")
        start_servers $wanted || fail "$problem (--port chooses others)"
    fi
    # shellcheck disable=SC2086
    if [ -z "$single" ]; then
        form_cluster $wanted
        await_cluster $wanted
    fi
    trap - EXIT
}

mend() {
    # shellcheck disable=SC2086
    start_servers $1 || fail "$problem"
    # shellcheck disable=SC2086
    [ -n "$single" ] || await_cluster $1
}

up() {
    wanted=$(ports)
    if [ -z "$wanted" ]; then
        make_new
    else
        [ "$base" -eq 0 ] || expect_same "$wanted" "$(ports_from "$base")"
        mend "$wanted"
    fi
    echo "redis://127.0.0.1:$(echo "$wanted" | head -n 1)"
}

down() {
    # shellcheck disable=SC2046
    stop_servers $(ports)
    rm -f "$folder/create.log"
    [ ! -d "$folder" ] || rmdir "$folder" 2>/dev/null || true
}

# Of one server: who it is, its slots, its memory; or why it has ended.
describe() {
    if ! is_running "$1"; then
        echo "127.0.0.1:$1  has ended; the last line of its log: $(last_words "$1")"
        return 1
    fi
    role=$(cli "$1" info replication | sed -n 's/^role:\([a-z]*\).*/\1/p')
    slots=$(cli "$1" cluster nodes | awk '/myself/ { print $9 }')
    memory=$(cli "$1" info memory | sed -n 's/^used_memory_human:\([0-9.A-Z]*\).*/\1/p')
    printf '%s  pid %-7s %-7s %-12s %s\n' "127.0.0.1:$1" "$pid" "$role" "${slots:--}" "$memory"
}

status() {
    all=$(ports)
    [ -n "$all" ] || {
        echo "none is up in $folder"
        exit 1
    }
    code=0
    for port in $all; do
        describe "$port" || code=1
    done
    # shellcheck disable=SC2086
    if cli "$port" cluster info | grep -q ^cluster_state && ! is_well $all; then
        echo "it is not well: logs in $folder/*/log"
        code=1
    fi
    exit $code
}

# ---- Words -------------------------------------------------------------------------------------

program=redis
command -v redis-server >/dev/null || program=valkey
if ! command -v "$program-server" >/dev/null || ! command -v "$program-cli" >/dev/null; then
    fail "needs redis-server and redis-cli, or valkey's (Debian: redis-server redis-tools)"
fi

verb=${1:-}
[ $# -eq 0 ] || shift
folder=$(dirname "$0")/../build/cluster base=7000 replicas=1 single=
while [ $# -gt 0 ]; do
    case $1 in
    --port) base=${2:-} && shift ;;
    --replicas) replicas=${2:-} && shift ;;
    --single) single=yes ;;
    --folder) folder=${2:-} && shift ;;
    *) fail "'$1': not an option ('help' tells them)" ;;
    esac
    [ $# -gt 0 ] || fail "an option lacks its value"
    shift
done
case $base in
'' | *[!0-9]*) base=-1 ;;
esac
[ "$base" -eq 0 ] || { [ "$base" -ge 1024 ] && [ "$base" -le 55000 ]; } ||
    fail "--port: a number from 1024 to 55000, or 0"
case $replicas in
[012]) ;;
*) fail "--replicas: 0, 1 or 2" ;;
esac
folder=$(realpath -m "$folder")

case $verb in
up | down | status) "$verb" ;;
help | -h | --help) usage ;;
*)
    usage >&2
    exit 2
    ;;
esac
