# What the tests of the cluster client on real servers share; sourced by cluster_*_test.sh DRIVER.
# DRIVER is cluster_driver.  Each call of it prints lines of JSON, the last of which is checked.
# A server is named by its index in PORTS and PIDS.
here=$(realpath "$(dirname "$0")")
. "$here/../support/cli_helpers.sh"
. "$here/../support/servers.sh"

# Replicas get their copy at once, and a replica may take over however long it had no master.
SETTINGS=(--repl-diskless-sync-delay 0 --cluster-replica-validity-factor 0)

# ---- The driver ----------------------------------------------------------------------------

entry=0 # the server whose port stands in addresses

# url NAME [SETTINGS]: prints the address of a filter.
url() { echo "redis://127.0.0.1:${PORTS[entry]}/$1${2:+?$2}"; }

# drive VERB NAME[?SETTINGS] [NAME=VALUE...]: runs the driver.
drive() {
    local verb=$1 name=${2%%\?*} settings=
    [ "$name" = "$2" ] || settings=${2#*\?}
    shift 2
    run "$verb" "$(url "$name" "$settings")" "$@"
}

# told NAME: prints this number of the driver's last line; 0 if the line does not have it.
told() {
    local line number
    line=$(tail -n 1 out)
    number=$(field "$1" /dev/stdin <<<"$line")
    echo "${number:-0}"
}

is() { [ "$(told "$1")" = "$2" ]; } # NAME NUMBER
above() { [ "$(told "$1")" -gt "$2" ]; } # NAME NUMBER

# gives ERROR: whether the last run ended with this error ("none" for success) and a status that
# fits.
gives() {
    tail -n 1 out | grep -q "^{\"error\":\"$1\"" && [ "$status" -eq "$([ "$1" = none ]; echo $?)" ]
}
mentions() { tail -n 1 out | grep -qiE "\"problem\":\"[^\"]*$1"; }

# succeeds NAME VERB...: runs the driver, which must succeed.
succeeds() {
    local name=$1
    shift
    drive "$@"
    check "$name: $(tail -n 1 out)" gives none
}

# filled NAME NUMBER SETTING...: makes a filter, adds so many keys, and writes their number to
# the file keys.
filled() {
    succeeds "create" create "$1" "${@:3}"
    succeeds "add" add "$1" count="$2"
    echo "$2" >keys
}

# fails NAME ERROR VERB...: runs the driver, which must end with this error.
fails() {
    local name=$1 error=$2
    shift 2
    drive "$@"
    check "$name: $(tail -n 1 out)" gives "$error"
}

# all_there NAME[?SETTINGS] [NUMBER]: asks for all acknowledged keys (so many, or as many as the
# file keys tells); none of them may be denied.
all_there() {
    [ $# -eq 1 ] || echo "$2" >keys
    drive ask "$1" keys=keys
    check "$1: all keys are there: $(tail -n 1 out)" gives none
    check "$1: keys were asked" above asked 0
}

# ---- A crowd that adds and asks while something happens --------------------------------------

# start_crowd NAME[?SETTINGS] [NAME=VALUE...]: starts the driver's verb 'run' as process $crowd.
# $added tells how many keys of each adder are in already, a line for each.
start_crowd() {
    local name=${1%%\?*} settings=
    [ "$name" = "$1" ] || settings=${1#*\?}
    shift
    printf '%s' "${added:+$added$'\n'}" >keys
    "$program" run "$(url "$name" "$settings")" keys=keys "$@" >crowd 2>crowd_err &
    crowd=$!
}

acknowledged() { tail -n 2 crowd | sed -n 's/.*"acknowledged":\([0-9]*\).*"errors".*/\1/p' | tail -n 1; }
crowd_is_at() { [ "$(acknowledged || echo 0)" -ge "$1" ] 2>/dev/null; }

# crowd_adds NUMBER: waits until so many more keys have been acknowledged, and fails if that
# takes a minute.
crowd_adds() {
    local from
    until_true [ -s crowd ]
    from=$(acknowledged)
    within 60 crowd_is_at $((${from:-0} + $1))
    check "the crowd goes on: $(tail -n 1 crowd) $(tail -n 1 crowd_err)" \
        crowd_is_at $((${from:-0} + $1))
}

# Ends the crowd, of whose keys none may have been denied.  Its last line is in out, for 'told'.
# Status 3 of the driver means that a key was denied.
stop_crowd() {
    kill -TERM $crowd
    wait $crowd
    status=$?
    cp crowd out
    cp crowd_err err
    check "it ends well: $(tail -n 3 err)" exits "$(above denied 0 && echo 3 || echo 0)"
    check "nothing acknowledged was denied: $(tail -n 1 out) $(grep denied err | head -n 3)" \
        is denied 0
    check "keys were asked" above asked 0
}

# only_errors ERROR...: the crowd has met no other errors.
only_errors() {
    local sum=0 error
    for error; do sum=$((sum + $(told "$error"))); done
    check "no errors but $*: $(sort -u err | head -n 5) $(tail -n 1 out)" is errors $sum
}

# open_asker NAME [VERB [NAME=VALUE...]]: starts a process that has the filter open before
# something happens.  A line to file descriptor 5 makes it ask; end_asker waits for it and puts
# its output into out.
open_asker() {
    local name=$1
    shift
    [ $# -gt 0 ] || set -- ask keys=keys wait=1
    rm -f go
    mkfifo go
    "$program" "$1" "$(url "$name")" "${@:2}" <go >asked 2>err &
    asker=$!
    exec 5>go
    check "an asker is connected" within 60 grep -q waiting asked
}
end_asker() {
    wait $asker
    status=$?
    exec 5>&-
    cp asked out
}

# ---- Servers -------------------------------------------------------------------------------

# within SECONDS COMMAND...: repeats the command until it succeeds, for at most so long.
within() {
    local end=$((SECONDS + $1))
    shift
    while [ $SECONDS -lt $end ]; do
        "$@" && return 0
        sleep 0.05
    done
    return 1
}

is_up() { kill -0 "${PIDS[$1]}" 2>/dev/null; }
# role I: prints "master" or "slave"; nothing if the server is stopped or gone.
role() { timeout 2 "$SERVER_CLI" -p "${PORTS[$1]}" role 2>/dev/null | head -n 1; }
is_master() { [ "$(role "$1")" = master ]; }
id_of() { server_cli "$1" cluster myid; }
index_of_port() {
    local i
    for i in "${!PORTS[@]}"; do
        [ "${PORTS[i]}" != "$1" ] || echo "$i"
    done
}

# replica_of I: prints the index of the first replica of server I.
replica_of() {
    local port
    port=$(server_cli "$1" cluster nodes |
        awk -v id="$(id_of "$1")" '$4 == id && $3 !~ /fail/ { split($2, a, "[:@]"); print a[2]; exit }')
    index_of_port "$port"
}

masters() {
    local i
    for i in "${!PORTS[@]}"; do
        is_master "$i" && echo "$i"
    done
}

# enter_elsewhere I: makes addresses name another server than I, which is going to be down.
enter_elsewhere() {
    [ "$entry" -ne "$1" ] || entry=$(masters | grep -vx "$1" | head -n 1)
}

# takes_over OLD: waits until the replica of OLD, which is $new, has become the master.
takes_over() {
    enter_elsewhere "$1"
    check "its replica takes over" within 30 is_master "$new"
}

slot_of() { server_cli "$entry" cluster keyslot "$1"; }

# owner_of KEY: prints the index of the master that owns the slot of the key.
owner_of() {
    local slot port
    slot=$(slot_of "$1")
    port=$(server_cli "$entry" cluster nodes | awk -v slot="$slot" '$3 ~ /master/ && $3 !~ /fail/ {
        for (i = 9; i <= NF; i++) {
            n = split($i, range, "-")
            if (range[1] + 0 <= slot && slot <= range[n] + 0) { split($2, a, "[:@]"); print a[2] }
        } }' | head -n 1)
    index_of_port "$port"
}

# Whether all servers that run know the owners of all slots and the same number of replicas, and
# all replicas have caught up with their masters.
is_whole() {
    local i replicas=0
    rm -f view[0-9]*
    for i in "${!PORTS[@]}"; do
        is_up "$i" || continue
        server_cli "$i" cluster info 2>/dev/null | tr -d '\r' >info
        grep -q '^cluster_state:ok' info && grep -q '^cluster_slots_pfail:0' info &&
            grep -q '^cluster_slots_fail:0' info || return 1
        server_cli "$i" info replication | grep -q '^master_link_status:down' && return 1
        is_master "$i" || replicas=$((replicas + 1))
        server_cli "$i" cluster nodes >"view$i"
    done
    for i in view[0-9]*; do
        [ "$(grep -c slave "$i")" -eq $replicas ] || return 1
    done
}
heal() {
    within 60 is_whole || tail -n 30 info view[0-9]* # what it lacks
    check "the cluster becomes whole" is_whole
}

# Whether the nodes agree about who owns which slots: they learn it one after another.
agree() { "$SERVER_CLI" --cluster check "127.0.0.1:${PORTS[entry]}" >cluster_out 2>&1; }

# cluster_does NAME ARGUMENT...: redis-cli --cluster must succeed, which begins nothing before the
# nodes agree.
cluster_does() {
    local name=$1
    shift
    within 30 agree || cat cluster_out
    "$SERVER_CLI" --cluster "$@" >cluster_out 2>&1
    local ended=$?
    check "$name: $(grep -a -m 3 -E '\[ERR\]|\*\*\*' cluster_out || tail -n 2 cluster_out)" \
        [ $ended -eq 0 ]
}
move_slots() { # FROM TO NUMBER
    cluster_does "$3 slots move" reshard "127.0.0.1:${PORTS[$1]}" --cluster-from "$(id_of "$1")" \
        --cluster-to "$(id_of "$2")" --cluster-slots "$3" --cluster-yes
}

# errorstat NAME: prints how many such errors all servers have given so far.
errorstat() {
    local i
    for i in "${!PORTS[@]}"; do
        is_up "$i" && server_cli "$i" info errorstats
    done | sed -n "s/^errorstat_$1:count=\([0-9]*\).*/\1/p" | awk '{ n += $1 } END { print n + 0 }'
}

kill_server() {
    kill -KILL "${PIDS[$1]}"
    wait "${PIDS[$1]}" 2>/dev/null
}

# with_single CONFIG...: starts a server without a cluster, to which the rest of the test talks.
# end_single ends it.
with_single() {
    servers_start_single "$@" || exit 1
    entry=$((${#PORTS[@]} - 1))
}
end_single() {
    kill_server "$entry"
    unset 'PORTS[entry]' 'PIDS[entry]'
    entry=0
}

# partitions SERVER NAME [NUMBER]: prints the Redis keys of the filter's partitions on the
# server.
partitions() { server_cli "$1" --scan --pattern "perhaps:{$2/${3:-*}}*"; }
