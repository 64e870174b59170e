# Redis servers for tests; sourced by bash.  They listen on 127.0.0.1 only, on free ports, keep
# nothing on the disk but a log, and end with the shell that started them, however it ends.
#
#     servers_start_single [CONFIG...]                    one server
#     servers_start_cluster MASTERS REPLICAS [CONFIG...]  a cluster: REPLICAS for each master
#     server_again I       starts server I once more, on its port, after it has ended
#     server_cli I ARG...  redis-cli, talking to server I
#     servers_stop         ends them all
#
# CONFIG is as redis-server takes it: --maxmemory 10mb.  Each call adds to PORTS and PIDS, of one
# server each: a cluster's masters come before its replicas.  A start that fails returns 1, having
# said why on standard error.

SERVER_PROGRAM=$(command -v redis-server || command -v valkey-server)
SERVER_CLI=$(command -v redis-cli || command -v valkey-cli)
if [ -z "$SERVER_PROGRAM" ] || [ -z "$SERVER_CLI" ]; then
    echo "skipped: there is no redis-server here"
    exit 77
fi

PORTS=() PIDS=()
server_folders=() server_configs=() # of each, the latter quoted for eval

# What the shell would do at its end stays.
servers_folder=$(mktemp -d) || exit 2
eval "set_before=($(trap -p EXIT))"
trap "servers_stop; rm -rf '$servers_folder'; ${set_before[2]-}" EXIT

server_cli() {
    local i=$1
    shift
    "$SERVER_CLI" --no-auth-warning -p "${PORTS[i]}" "$@"
}

# The log is asked and not the port: that might be another's, or want a password.
server_ready() { grep -q 'Ready to accept connections' "$1/log" 2>/dev/null; }

# server_run FOLDER PORT CONFIG...: sets server_pid; returns 1 if it has ended at once.  A cluster's
# bus has the port 10000 higher.
server_run() {
    local folder=$1 port=$2 tries
    shift 2
    rm -f "$folder/log"
    # KILL, since this shell may have been killed by it
    setpriv --pdeathsig KILL "$SERVER_PROGRAM" --bind 127.0.0.1 --port "$port" --dir "$folder" \
        --logfile "$folder/log" --save "" --appendonly no --daemonize no "$@" \
        >"$folder/out" 2>&1 </dev/null &
    server_pid=$!
    for tries in $(seq 500); do
        server_ready "$folder" && return 0
        kill -0 $server_pid 2>/dev/null || break
        sleep 0.02
    done
    kill -KILL $server_pid 2>/dev/null
    wait $server_pid 2>/dev/null
    return 1
}

# server_start CONFIG...: one more, on the first port that is free.  All ports, of the bus too, are
# below those that the system gives to clients.
server_start() {
    local folder port tries
    folder=$(mktemp -d "$servers_folder/XXXXXX") || return 1
    for tries in $(seq 20); do
        port=$((10000 + SRANDOM % 12000)) # another in every run, whatever the seed
        if server_run "$folder" $port "$@"; then
            PORTS+=($port) PIDS+=($server_pid)
            server_folders+=("$folder") server_configs+=("$(printf '%q ' "$@")")
            return 0
        fi
        grep -qi 'address already in use' "$folder/log" "$folder/out" || break
    done
    cat "$folder/log" "$folder/out" >&2
    return 1
}

server_again() {
    local i=$1
    wait "${PIDS[i]}" 2>/dev/null
    eval "server_run '${server_folders[i]}' ${PORTS[i]} ${server_configs[i]}" || return 1
    PIDS[i]=$server_pid
}

servers_start_single() { server_start "$@"; }

# cluster_ready FROM: whether all servers from that one on know of all slots, and all replicas have
# caught up with their masters.
cluster_ready() {
    local i
    for ((i = $1; i < ${#PORTS[@]}; i++)); do
        server_cli "$i" cluster info | grep -q '^cluster_state:ok' || return 1
        server_cli "$i" info replication | grep -q '^master_link_status:down' && return 1
    done
    return 0
}

servers_start_cluster() {
    local masters=$1 replicas=$2 first=${#PORTS[@]} nodes=() i
    shift 2
    for ((i = 0; i < masters * (1 + replicas); i++)); do
        server_start --cluster-enabled yes --cluster-config-file nodes.conf \
            --cluster-node-timeout 2000 "$@" || return 1
        nodes+=("127.0.0.1:${PORTS[-1]}")
    done
    "$SERVER_CLI" --no-auth-warning --cluster create "${nodes[@]}" --cluster-replicas "$replicas" \
        --cluster-yes >"$servers_folder/create" 2>&1 || { cat "$servers_folder/create" >&2; return 1; }
    for i in $(seq 500); do
        cluster_ready "$first" && return 0
        sleep 0.05
    done
    echo "the cluster does not become ready" >&2
    return 1
}

servers_stop() {
    local pid
    for pid in "${PIDS[@]}"; do
        kill -CONT "$pid" 2>/dev/null # a stopped one, too
        kill -KILL "$pid" 2>/dev/null # they have nothing to keep
        wait "$pid" 2>/dev/null
    done
    PORTS=() PIDS=() server_folders=() server_configs=()
}
