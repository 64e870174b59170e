#!/bin/sh
# local.sh up|down|status - runs a Redis or Valkey Cluster on this machine, to try things with.
#
# Each server has a folder that is named after its port, with its process number in 'pid'.
# There is no other record: what runs is found out by looking at these folders.
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

# Prints the ports of all servers, which are the names of their folders.
ports() {
    for path in "$folder"/[1-9]*/pid; do
        [ ! -e "$path" ] || basename "$(dirname "$path")"
    done | sort -n
}

# Returns whether the server of port $1 runs, and sets $pid.  If a process of this number works
# in another folder, the server has ended and the number was given to another process.
is_running() {
    pid=$(cat "$folder/$1/pid" 2>/dev/null) && [ -n "$pid" ] &&
        [ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$folder/$1" ]
}

# Sends a command to the server of port $1.  A server that hangs must not hang this script.
cli() {
    cli_port=$1
    shift
    timeout 5 "$program-cli" -h 127.0.0.1 -p "$cli_port" "$@" 2>/dev/null
}

# Returns whether the server of port $1 answers, and is ours and not somebody else's.
answers() {
    cli "$1" info server | grep -q "^process_id:$(cat "$folder/$1/pid")"
}

# Prints the last line of the log of port $1, which says why the server did not start.
last_words() {
    sed -n 's/^[0-9]*:[A-Z] .* [.*#-] //p' "$folder/$1/log" | tail -n 1
}

# Starts the server of port $1, and does not wait for it.  Nothing is saved to the disk, and
# replicas get the data at once, without the usual delay of five seconds.
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

# Waits until the server of port $1 answers.  Returns 1 if it ends, or says nothing for ten
# seconds.
await_server() {
    tries=0
    until answers "$1"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] && [ -d "/proc/$(cat "$folder/$1/pid")" ] || return 1
        sleep 0.05
    done
}

# Stops servers and removes their folders.  All get the signal first, and are then waited for,
# so that they end at the same time; one that has not ended after three seconds is killed.
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

# Starts the servers of these ports that do not run.  If one cannot start, stops those that it
# has started, says why in $problem and returns 1.
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

# Returns whether the cluster is well: every server knows all the others, all slots are served,
# and replicas have what their masters have.
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

# Prints as many ports as there are servers to be: from $1 on.
ports_from() {
    count=$((3 * (replicas + 1)))
    [ -z "$single" ] || count=1
    seq "$1" $(($1 + count - 1))
}

# Prints a random port from 10000 to 21999.  Also the port 10000 above it, for the messages of
# the cluster, lies below those that the system gives to programs that ask for any port.
random_port() {
    echo $((10000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
}

# Starts the servers on ports that are free.  It tries, since a port that is looked at and found
# free may be taken a moment later.
start_anywhere() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        wanted=$(ports_from "$(random_port)")
        # shellcheck disable=SC2086
        ! start_servers $wanted || return 0
    done
    fail "found no free ports: $problem"
}

# Fails if the ports that run ($1) are not those that are wanted ($2).
expect_same() {
    [ "$1" = "$2" ] ||
        fail "there is one on the ports $(echo "$1" | tr '\n' ' ')in $folder ('down' stops it)"
}

# Makes a new cluster.  If that fails or is interrupted, nothing is left of it.
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

# Starts servers again that have ended.
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

# Prints a line about one server: its address, process, role, slots and memory; or why it has
# ended, and then returns 1.
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

# ---- The command line ------------------------------------------------------------------------

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
