#!/usr/bin/env bash
# The ways to a server that its address tells:  cluster_network_test.sh DRIVER
# Proves that each works, and that what does not work is said in one line: unix sockets,
# databases, names of clients, passwords that change, several servers of which some are dead,
# sentinels that replace a master, and servers that announce addresses which only they know.
. "$(dirname "$0")/cluster_helpers.sh"

# where ADDRESS: 'drive' and all that use it go to this address, in which NAME is replaced by the
# name of a filter and its settings.
where() { address=$1; }
url() {
    local settings=${2:+$2}
    case $address in
    *\?*) echo "${address/NAME/$1}${settings:+&$settings}" ;;
    *) echo "${address/NAME/$1}${settings:+?$settings}" ;;
    esac
}

# single [CONFIG...]: starts a server, and sets $port.
single() {
    servers_start_single "$@" || exit 1
    entry=$((${#PORTS[@]} - 1))
    port=${PORTS[entry]}
    where "redis://127.0.0.1:$port/NAME"
}

# dead_port: prints a port on which nobody listens.
dead_port() {
    local dead
    for dead in $(seq 9 99); do
        (exec 3<>"/dev/tcp/127.0.0.1/$dead") 2>/dev/null || { echo "$dead"; return; }
    done
}

# problem TEXT NAME ERROR VERB...: ends with this error, whose problem has the text.
problem() {
    fails "$1" "$3" "$4" "$2" "${@:5}"
    check "it says so: $1: $(tail -n 1 out)" mentions "$1"
}

test_unix() {
    local socket="$folder/a b.sock"
    single --unixsocket "$socket"
    where "unix://${folder}/a%20b.sock/NAME"
    filled "by_path" 5000 capacity=10000
    all_there "by_path"
    where "redis+unix://${folder}/a%20b.sock/NAME"
    all_there "by_path"
    where "redis://127.0.0.1:$port/NAME"
    all_there "by_path"
    where "unix://$folder/none.sock/NAME"
    problem "none.sock: No such file" n UNREACHABLE open
}

test_database() {
    single
    filled "n?db=3" 1000 capacity=2000
    all_there "n?db=3" 1000
    fails "another database" MISSING open "n"
    check "it lies there" [ "$(server_cli "$entry" -n 3 exists 'perhaps:{n}')" = 1 ]
    problem "DB index is out of range" "n?db=99" REFUSED open
}

test_client_name() {
    single
    filled "n?client=crawler-7" 1000 capacity=2000
    echo 1000 >keys
    mkfifo go
    "$program" ask "$(url n client=crawler-7)" keys=keys wait=1 <go >asked 2>err &
    local asker=$!
    exec 5>go
    check "connected" within 60 grep -q waiting asked
    check "the server knows the name" grep -q 'name=crawler-7 ' <(server_cli "$entry" client list)
    echo >&5
    wait $asker
    exec 5>&-
}

# The file is read anew for each connection: a handle that is open comes back with the new
# password.
test_password_file() {
    single --requirepass first
    problem "NOAUTH" n REFUSED open
    printf 'first\n' >secret
    where "redis://127.0.0.1:$port/NAME?password-file=$PWD/secret"
    filled n 1000 capacity=2000
    echo 1000 >keys
    open_asker n
    server_cli "$entry" -a first config set requirepass second >/dev/null
    printf 'second' >secret
    server_cli "$entry" -a second client kill type normal skipme yes >/dev/null
    echo >&5
    end_asker
    check "it goes on with the second: $(tail -n 1 out)" gives none
    check "and denies nothing: $(tail -n 1 out)" is denied 0
    check "all were asked" is asked 1000
    printf 'third\n' >secret
    problem "WRONGPASS" n REFUSED open
    check "no password is told" not grep -qE 'first|second|third' out
    : >secret
    problem "secret: there is no password in it" n UNREACHABLE open
    rm secret
    problem "secret: No such file" n UNREACHABLE open
}

# A user goes with the password of a file.
test_user() {
    single
    server_cli "$entry" acl setuser reader on '>word' '~*' +@all >/dev/null
    server_cli "$entry" acl setuser default off >/dev/null
    printf 'word\r\n' >secret
    where "redis://reader@127.0.0.1:$port/NAME?password-file=$PWD/secret"
    filled n 100 capacity=2000
    all_there n 100
}

test_seeds() {
    local dead
    dead=$(dead_port)
    single
    where "redis://127.0.0.1:$dead,127.0.0.1:$port/NAME"
    filled n 1000 capacity=2000
    all_there n 1000
    where "redis://none.invalid,127.0.0.1:$dead/NAME"
    problem "127.0.0.1:$dead: Connection refused" n UNREACHABLE open
    where "redis://localhost:$port/NAME"
    all_there n 1000
}

# A handle that was opened by one master finds another one when that has died, by what it has
# seen: the seed is gone, and so is the node that it is asked about first.
test_seen() {
    local dead first=${#PORTS[@]}
    dead=$(dead_port)
    servers_start_cluster 3 1 "${SETTINGS[@]}" || exit 1
    entry=$first
    where "redis://127.0.0.1:$dead,127.0.0.1:${PORTS[first]}/NAME?acknowledge=1" # has replicas
    filled spread 3000 capacity=10000 partitions=96
    echo 3000 >keys
    open_asker spread
    kill_server "$first"
    check "a replica takes over" within 60 state_is_ok $((first + 1))
    echo >&5
    end_asker
    check "it goes on: $(tail -n 1 out)" gives none
    check "nothing is denied" is denied 0
    check "all were asked" is asked 3000
    where "redis://127.0.0.1:${PORTS[first + 1]}/NAME"
    # a cluster of Valkey 9 may have several databases, and this one has not
    case $(server_cli $((first + 1)) select 1) in
    *"out of range"*) problem "DB index is out of range" "spread?db=1" REFUSED open ;;
    *) problem "db= is for single servers" "spread?db=1" REFUSED open ;;
    esac
}
state_is_ok() { server_cli "$1" cluster info | grep -q '^cluster_state:ok'; }

# ---- Sentinels -----------------------------------------------------------------------------------

# start_sentinel MASTER_PORT: starts a sentinel that is alone in deciding, and sets $sentinel.
start_sentinel() {
    local tries
    for tries in $(seq 20); do
        sentinel=$((22000 + SRANDOM % 5000))
        printf '%s\n' "port $sentinel" "bind 127.0.0.1" "dir $PWD" "logfile $PWD/sentinel.log" \
            "sentinel monitor main 127.0.0.1 $1 1" "sentinel down-after-milliseconds main 1000" \
            "sentinel failover-timeout main 3000" >sentinel.conf
        setpriv --pdeathsig KILL "$SERVER_PROGRAM" sentinel.conf --sentinel >sentinel.out 2>&1 &
        PIDS+=($!) PORTS+=($sentinel) server_folders+=("$PWD") server_configs+=("")
        until_true sentinel_knows && return 0
    done
    return 1
}
sentinel_knows() {
    "$SERVER_CLI" -p "$sentinel" sentinel replicas main 2>/dev/null | grep -q '^name'
}

test_sentinels() {
    local dead master replica
    dead=$(dead_port)
    single "${SETTINGS[@]:0:2}"
    master=$entry
    single "${SETTINGS[@]:0:2}" --replicaof 127.0.0.1 "${PORTS[master]}"
    replica=$entry
    check "the replica is there" within 60 has_caught_up "$replica"
    start_sentinel "${PORTS[master]}" || exit 1
    where "redis+sentinel://127.0.0.1:$dead,127.0.0.1:$sentinel/NAME?master=main"
    filled n 2000 capacity=3000000
    all_there n 2000
    start_crowd n adders=2 askers=2
    crowd_adds 1000
    server_cli "$master" shutdown nosave # waits until the replica has everything
    crowd_adds 1000
    stop_crowd
    check "the replica has taken over" is_master "$replica"
    check "nothing has failed: $(tail -n 1 out)" is errors 0
    all_there n 2000
    where "redis+sentinel://127.0.0.1:${PORTS[replica]}/NAME?master=main"
    problem "is no sentinel: write redis://" n ADDRESS open
    where "redis://127.0.0.1:$sentinel/NAME"
    problem "does not know CLUSTER: .* redis.sentinel://" n ADDRESS open
    where "redis+sentinel://127.0.0.1:$sentinel/NAME?master=other"
    problem "knows no master of the name" n ADDRESS open
    kill_server "$replica"
    where "redis+sentinel://127.0.0.1:$sentinel/NAME?master=main&patience=500ms"
    problem "127.0.0.1:${PORTS[replica]}: .*Connection refused" n UNREACHABLE open
}
# A node of a cluster announces a port on which nobody listens, or nobody answers.  That is said
# at once; and map= tells where the node is.
test_announced_addresses() {
    local dead silent
    dead=$(dead_port)
    single --cluster-enabled yes --cluster-config-file nodes.conf --cluster-announce-ip 127.0.0.1 \
        --cluster-announce-port "$dead"
    server_cli "$entry" cluster addslotsrange 0 16383 >/dev/null
    until_true is_ok "$entry"
    problem "127.0.0.1:$dead: .*127.0.0.1:$port announced this address.*map=OLD:PORT/NEW:PORT" n UNREACHABLE \
        create capacity=1000
    where "redis://127.0.0.1:$port/NAME?map=127.0.0.1:$dead/localhost:$port"
    filled n 2000 capacity=10000
    all_there n 2000
    where "redis://127.0.0.1:$port/NAME?map=10.1.1.1:7/10.1.1.2:8&map=127.0.0.1:$dead/127.0.0.1:$port"
    all_there n 2000
    where "redis://127.0.0.1:$port/NAME?map=127.0.0.1:$dead/127.0.0.1:1"
    problem "announced this address" n UNREACHABLE create capacity=1000
    kill_server "$entry"
    coproc silent { exec python3 -c 'import socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(5)
print(s.getsockname()[1], flush=True)
sys.stdin.read()'; }
    read -r dead <&"${silent[0]}"
    single --cluster-enabled yes --cluster-config-file nodes.conf --cluster-announce-ip 127.0.0.1 \
        --cluster-announce-port "$dead"
    server_cli "$entry" cluster addslotsrange 0 16383 >/dev/null
    until_true is_ok "$entry"
    problem "127.0.0.1:$dead: did not answer.*announced this address" n UNREACHABLE create capacity=1000
    eval "exec ${silent[1]}>&-"
}
is_ok() { server_cli "$1" cluster info | grep -q cluster_state:ok; }
has_caught_up() { server_cli "$1" info replication | grep -q '^master_link_status:up'; }

run_tests
