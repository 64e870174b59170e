# Redis servers for tests; sourced by bash.  They listen on 127.0.0.1 only, on free ports, keep
# nothing on the disk but a log, and end with the shell that started them, however it ends.
#
#     servers_start_single [CONFIG...]                    one server
#     servers_start_cluster MASTERS REPLICAS [CONFIG...]  a cluster: REPLICAS for each master
#     server_again I       starts server I once more, on its port, after it has ended
#     server_cli I ARG...  redis-cli, talking to server I
#     servers_stop         ends them all
#
# CONFIG is as redis-server takes it: --maxmemory 10mb; @PORT@ in it is the server's port, so that
# '--port 0 --tls-port @PORT@' makes it speak TLS.  SERVER_CLI_OPTIONS are for redis-cli.  Each
# call adds its servers to the arrays PORTS and PIDS; a cluster's masters come before its replicas.
# A start that fails returns 1 and tells the reason on standard error.  The tests are skipped
# (status 77) where no redis-server or valkey-server is installed.  PERHAPS_SERVER may name the
# one to take, and PERHAPS_TEST_MODULE a module that all servers load.

SERVER_PROGRAM=$(command -v "${PERHAPS_SERVER:-redis-server}" || command -v valkey-server)
SERVER_CLI=$(command -v redis-cli || command -v valkey-cli)
if [ -z "$SERVER_PROGRAM" ] || [ -z "$SERVER_CLI" ]; then
    echo "skipped: there is no redis-server here"
    exit 77
fi

PORTS=() PIDS=() SERVER_CLI_OPTIONS=()
server_folders=() server_configs=() # of each server; the configs are quoted for eval

# The trap of the shell that sourced this is kept, and runs after ours.
servers_folder=$(mktemp -d) || exit 2
eval "set_before=($(trap -p EXIT))"
trap "servers_stop; rm -rf '$servers_folder'; ${set_before[2]-}" EXIT

server_cli() {
    local i=$1
    shift
    "$SERVER_CLI" --no-auth-warning "${SERVER_CLI_OPTIONS[@]}" -p "${PORTS[i]}" "$@"
}

# The log tells whether the server is ready.  The port would not: it may be another program's,
# or want a password.
server_ready() { grep -q 'Ready to accept connections' "$1/log" 2>/dev/null; }

# server_run FOLDER PORT CONFIG...: starts a server and sets server_pid; returns 1 if the server
# ends at once.  In a cluster a server also takes the port 10000 higher, for the bus.
server_run() {
    local folder=$1 port=$2 tries
    shift 2
    rm -f "$folder/log"
    # When this shell dies, even by KILL, the server gets KILL.
    setpriv --pdeathsig KILL "$SERVER_PROGRAM" --bind 127.0.0.1 --port "$port" --dir "$folder" \
        --logfile "$folder/log" --save "" --appendonly no --daemonize no \
        ${PERHAPS_TEST_MODULE:+--loadmodule "$PERHAPS_TEST_MODULE"} "${@//@PORT@/$port}" \
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

# server_start CONFIG...: starts one more server on a port that is free.  Ports are 10000 to
# 21999, so that these and those of the bus are below the ports that the system gives to
# clients.
server_start() {
    local folder port tries
    folder=$(mktemp -d "$servers_folder/XXXXXX") || return 1
    for tries in $(seq 20); do
        port=$((10000 + SRANDOM % 12000)) # does not depend on the seed of the test
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

# cluster_ready FROM: whether all servers from that index on see all slots served, and all
# replicas have caught up with their masters.
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
    "$SERVER_CLI" --no-auth-warning "${SERVER_CLI_OPTIONS[@]}" --cluster create "${nodes[@]}" \
        --cluster-replicas "$replicas" --cluster-yes >"$servers_folder/create" 2>&1 ||
        { cat "$servers_folder/create" >&2; return 1; }
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
        kill -CONT "$pid" 2>/dev/null # it may be stopped
        kill -KILL "$pid" 2>/dev/null # they have nothing to keep
        wait "$pid" 2>/dev/null
    done
    PORTS=() PIDS=() server_folders=() server_configs=()
}
