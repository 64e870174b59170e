#!/usr/bin/env bash
# The rights that each verb needs, as doc/CLUSTER.md lists them:  cluster_rights_test.sh DRIVER
# Proves that they suffice, and that without one of them an error tells so.
. "$(dirname "$0")/cluster_helpers.sh"
servers_start_cluster 3 0 "${SETTINGS[@]}" || exit 1
heal

# with_rights COMMANDS VERB...: runs the driver as a user who may use these commands only, on all
# servers of the array 'limited'.
limited=()
with_rights() {
    local commands i
    read -ra commands <<<"$1"
    for i in "${limited[@]:-$entry}"; do
        server_cli "$i" acl setuser limited reset on '>secret' '~perhaps:*' '~foreign' \
            '~{foreign}:config' "${commands[@]/#/+}" >/dev/null
    done
    run "$2" "redis://limited:secret@127.0.0.1:${PORTS[entry]}/$3" "${@:4}"
}

# needs VERB COMMANDS NAME...: checks that these commands suffice and that each of them is
# needed.  Commands in 'spare' are given, too: they are needed if time has passed.
spare=''
needs() {
    local verb=$1 all=$2 one
    shift 2
    for one in $all; do
        with_rights "$(tr ' ' '\n' <<<"$all" | grep -vxF "$one" | tr '\n' ' ') $spare" "$verb" "$@"
        check "$verb without $one: $(tail -n 1 out)" gives REFUSED
    done
    with_rights "$all $spare" "$verb" "$@"
    check "$verb: $(tail -n 1 out)" gives none
}

# The commands of the script that reserves room, and its own.
room='eval hget hset hdel hgetall hexists hincrby time'

# Prints the rights of those who make filters.
maker() { echo "cluster|slots getrange strlen bitfield bitcount unlink setrange $room"; }

# The rights that doc/CLUSTER.md lists are enough in a cluster, where PING is one of them.
test_rights_in_a_cluster() {
    local limited=(0 1 2) reader='cluster|slots hgetall hget hexists getrange strlen ping'
    with_rights "$(maker)" create mine capacity=1000
    check "create without ping: $(tail -n 1 out)" gives REFUSED
    check "it says so" mentions PING
    with_rights "$(maker) ping" create mine capacity=1000 grow=1
    check "create: $(tail -n 1 out)" gives none
    with_rights "$reader bitfield $room" add mine count=500
    check "add: $(tail -n 1 out)" gives none
    echo 500 >keys
    with_rights "$reader" ask mine keys=keys
    check "ask: $(tail -n 1 out)" gives none
    with_rights "$reader" open mine
    check "open: $(tail -n 1 out)" gives none
    with_rights "$reader" verify mine
    check "verify: $(tail -n 1 out)" gives none
    with_rights "$reader bitcount $room" recount mine
    check "recount: $(tail -n 1 out)" gives none
    with_rights "$(maker) ping" add mine first=500 count=5000
    check "add, and grow: $(tail -n 1 out)" gives none
    with_rights 'cluster|slots hgetall eval hget hset unlink ping' delete mine
    check "delete: $(tail -n 1 out)" gives none
}

# The rights that each verb needs, as doc/CLUSTER.md lists them.
test_rights() {
    local open='cluster|slots hgetall'
    with_single
    server_cli "$entry" acl setuser other on '>secret' '~other:*' +@all >/dev/null
    filled rights 100 capacity=1000
    needs ask "$open getrange strlen" rights keys=keys
    needs open "$open getrange" rights
    needs verify "$open getrange strlen" rights
    local spare='hdel hincrby' # to take away what clients held that were refused
    needs add "cluster|slots hgetall eval hget hset hexists time bitfield" rights count=10 first=200
    spare=''
    with_rights "cluster|slots bitfield getrange strlen setrange $room" \
        create grows capacity=10 grow=1
    check "who may add only does not create: $(tail -n 1 out)" gives REFUSED
    succeeds "create" create grows capacity=10 grow=1
    with_rights "cluster|slots bitfield getrange strlen setrange $room" \
        add grows count=100
    check "one that grows: $(tail -n 1 out)" gives none
    spare='hdel hincrby'
    needs recount "cluster|slots hgetall eval hget hset hexists time strlen bitcount" rights
    spare=''
    server_cli "$entry" del "perhaps:{rights}:$(server_cli "$entry" hget 'perhaps:{rights}' id)" >/dev/null
    needs recount "cluster|slots hgetall strlen bitcount hset unlink" rights
    needs create "$(maker)" made capacity=1000
    with_rights "$(maker | sed 's/eval//')" create other capacity=1000
    check "it says what is missing, and where: $(tail -n 1 out)" mentions "127.0.0.1.*NOPERM.*EVAL"
    check "nothing is left" [ -z "$(partitions "$entry" other '')" ]
    check "no scratch keys are left" \
        [ -z "$(server_cli "$entry" --scan --pattern 'perhaps:{made}*.tr*')" ]
    with_rights "$open getrange strlen" delete made
    check "who may ask does not delete: $(tail -n 1 out)" gives REFUSED
    with_rights "cluster|slots hgetall eval hget hset unlink" delete made
    check "delete: $(tail -n 1 out)" gives none
    run open "redis://other:secret@127.0.0.1:${PORTS[entry]}/rights"
    check "other keys: $(tail -n 1 out)" gives REFUSED
    end_single
}

# The rights for Redisson's filters.  A lost filter of Redisson cannot be noticed: it is zeros.
test_redisson() {
    local foreign='foreign?layout=redisson'
    with_single
    server_cli "$entry" hset '{foreign}:config' size 9585 hashIterations 7 expectedInsertions 1000 \
        falseProbability 0.01 >/dev/null
    printf '10\n' >keys
    needs add "cluster|slots hmget bitfield" "$foreign" count=10
    needs ask "cluster|slots hmget bitfield_ro" "$foreign" keys=keys
    needs open "cluster|slots hmget bitcount" "$foreign"
    server_cli "$entry" del foreign >/dev/null
    drive ask "$foreign" keys=keys
    check "lost keys are denied, and no error tells: $(tail -n 1 out)" is denied 10
    end_single
}

run_tests
