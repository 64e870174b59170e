#!/usr/bin/env bash
# The command line and servers that refuse or do not answer: cli_servers_test.sh PROGRAM, as
# cli_test.sh.  Proves that each of these is an error that says what is in and what to do, that
# passwords never appear in messages, and that keys on a server that hangs are never denied.
. "$(dirname "$0")/cli_cluster_helpers.sh"

test_passwords() { on_one passwords_at; }
# Passwords in the address and in REDISCLI_AUTH, and a user who may only read.
passwords_at() {
    local secret=${one/:\/\//://:s3cret@}
    run create $at/urls -n 1000 -q
    server_cli 0 config set requirepass s3cret >asked
    refuses "/urls: 127.0.0.1:${PORTS[0]}: NOAUTH" add $at/urls keys
    check "no password: says what to do" says "required: give user and password" REDISCLI_AUTH
    refuses ": WRONGPASS" add ${one/:\/\//://:wrong@}/urls keys
    check "a wrong password is not shown" not says wrong@
    works add $secret/urls keys
    check "password in the address: is not shown" not says s3cret
    check "password in the address: summary" says "10 keys added to $at/urls: "
    REDISCLI_AUTH=s3cret run query -c $at/urls keys
    check "REDISCLI_AUTH" prints $'10\n'
    REDISCLI_AUTH=wrong run query -c $secret/urls keys
    check "the address has precedence" prints $'10\n'
    REDISCLI_AUTH=wrong run query -c $at/urls keys
    refused "REDISCLI_AUTH: wrong" ": WRONGPASS"
    REDISCLI_AUTH=s3cret server_cli 0 config set requirepass "" >asked
    server_cli 0 acl setuser reader on '>pa@ss' '~perhaps:*' +@read +@connection +cluster >asked
    secret=${one/:\/\//://reader:pa%40ss@}
    writes $'10\n' query -c $secret/urls keys
    shows "^filter +$at/urls\$" info $secret/urls
    REDISCLI_AUTH=pa@ss run query -c ${one/:\/\//://reader@}/urls keys
    check "a user in the address, REDISCLI_AUTH" prints $'10\n'
    REDISCLI_AUTH=wrong run query -c ${one/:\/\//://reader@}/urls keys
    refused "a user in the address, REDISCLI_AUTH: wrong" ": WRONGPASS"
    refuses "/urls: 127.0.0.1:${PORTS[0]}: NOPERM" add $secret/urls <(echo new)
    refuses ": NOPERM" create $secret/more -n 5
    check "a user who may read: nothing is made" is_gone more
    refuses ": NOPERM" delete $secret/urls
    server_cli 0 acl deluser reader >asked
}

test_maxmemory() { on_one maxmemory_at; }
# A server whose memory is full refuses; one that would evict keys is refused by us.
maxmemory_at() {
    local used n
    run create $at/urls -n 100k -q
    used=$(server_cli 0 info memory | tr -d '\r' | sed -n 's/^used_memory://p')
    server_cli 0 config set maxmemory $((used + 5000000)) >asked
    refuses "MiB of the filter would lie there" create $at/large -n 100M
    check "maxmemory: too large: says what to do" says "raise its maxmemory"
    refuses "/large: 127.0.0.1:${PORTS[0]}: OOM " create $at/large -n 4600k
    check "maxmemory: says what to do" says "'maxmemory': raise its maxmemory"
    check "maxmemory: nothing is left" is_gone large
    server_cli 0 config set maxmemory 1 >asked
    refuses ": OOM " add $at/urls keys
    check "maxmemory: add: says what is in" says "; 0 of the keys, in no order, are in $at/urls: adding all again is safe"
    refuses ": OOM " dedup --state $at/urls keys
    n=$(wc -l <out) # of the ten lines, as many as were read at once
    check "maxmemory: dedup: what is not known to be old is printed" [ "$n" -gt 0 ]
    check "maxmemory: dedup: says so" says "; the lines so far are done and remembered, but the last $n may come again"
    ends 1 query -c $at/urls keys
    server_cli 0 config set maxmemory-policy allkeys-lru maxmemory 1gb >asked
    refuses "would throw parts of a filter away" create $at/large -n 5
    server_cli 0 config set maxmemory-policy noeviction maxmemory 0 >asked
    works add -q $at/urls keys
}

test_interrupted() { on_one interrupted_at; }
interrupted_at() {
    run create $at/urls -n 1000 -p 1e-14 -q
    interrupted INT 0 " of the keys, in no order, are in $at/urls: adding all again is safe" add $at/urls
    check "add, SIGINT: says" says "perhaps: interrupted; "
    run create $at/lines -n 1000 -p 1e-14 -q # in the first filter the lines may be by now
    interrupted TERM 10 "perhaps: interrupted; the lines so far are done and remembered" dedup --state $at/lines
}

# A server that stops answering in the middle of an add: an error within the patience.
test_silent_server() { on_one silent_server_at; }
silent_server_at() {
    local pid url="$one/urls?timeout=2s&patience=3s"
    run create $at/urls -n 10000 -p 1e-14 -q
    mkfifo slow
    "$program" add "$url" <slow >out 2>err &
    pid=$!
    exec 5>slow
    seq 10 >&5
    echo 10 >ten # which can be read more than once
    check "a silent server: has added" until_true "$program" query --any $at/urls ten
    kill -STOP ${PIDS[0]} # its connections stay open
    seq 11 20 >&5
    wait $pid
    status=$?
    exec 5>&-
    refused "a silent server" "/urls: 127.0.0.1:${PORTS[0]}: "
    check "a silent server: says what is in" says "; 10 of the keys, in no order, are in $at/urls: adding all again is safe"
    refuses "/urls: 127.0.0.1:${PORTS[0]}: " query "$url" keys
    env --default-signal "$program" add $at/urls <slow >out 2>err &
    pid=$!
    exec 5>slow
    until_true catches $pid "$(kill -l INT)"
    kill -INT $pid
    wait $pid
    status=$?
    exec 5>&-
    check "a silent server: SIGINT" exits 130
    kill -CONT ${PIDS[0]}
    writes $'10\n' query -c $at/urls <(seq 10)
}

# A long run ends with an error, and goes on where its message says.
goes_on_at() {
    local pid line url="$one/urls?timeout=300ms&patience=500ms"
    run create $at/urls -n 210000 -p 1e-9 -q # room, too, for what the bits of a broken run cannot tell
    mkfifo slow
    seq 200000 >all
    "$program" add "$url" slow >out 2>err &
    pid=$!
    exec 5>slow
    head -n 60000 all >&5
    until_true has_keys 20000
    kill -STOP ${PIDS[0]}
    tail -n +60001 all >&5 2>/dev/null
    exec 5>&-
    wait $pid
    status=$?
    kill -CONT ${PIDS[0]}
    refused "it goes on" "/urls: 127.0.0.1:${PORTS[0]}: "
    line=$(sed -n 's/.*; all before slow:\([0-9]*\) are in$/\1/p' err)
    check "it says where: $(cat err)" [ "${line:-0}" -gt 1 -a "${line:-0}" -le 200000 ]
    head -n $((line - 1)) all >before
    check "all before it are in" [ "$("$program" query -c $at/urls before)" = $((line - 1)) ]
    tail -n "+$line" all | "$program" add -q $at/urls
    check "and then all are" [ "$("$program" query -c $at/urls all)" = 200000 ]
    # What the broken run held is counted, too, until it is found by the bits.
    run info --json $at/urls
    line=$(field keys out)
    run add -q $at/urls all
    run info --json $at/urls
    check "none is counted again: $line, $(field keys out)" [ "$(field keys out)" -le "$line" ]
}
has_keys() { [ "$("$program" info --json $at/urls | sed -n 's/.*"keys": *\([0-9]*\).*/\1/p')" -ge "$1" ]; }
test_goes_on() { on_one goes_on_at; }

# labels FILE: whether each line of 'keys' is in the file, behind "perhaps" or "unknown".
labels() { same <(cut -f 2 "$1") many && ! cut -f 1 "$1" | grep -qvE '^(perhaps|unknown)$'; }

# One of three masters hangs.  What the others answer is told, and the rest is unknown: never
# "no".  All of these keys are in.
test_unknown() {
    local url="$all/half?timeout=2s&patience=3s" hung unknown i
    seq 2000 >many
    at=$all
    run create $all/half -n 10k -p 1e-14 --partitions 64 -q
    run add -q $all/half many
    run create $one/whole -n 10k -p 1e-14 -q
    run add -q $one/whole <(seq 1000)
    for hung in 1 2 3; do # neither the one that has the description nor that of the address
        [ $hung -eq 2 ] || server_cli $hung --raw keys 'perhaps:{half}' | grep -q . || break
    done
    for i in 1 2 3; do server_cli $i config set cluster-require-full-coverage no >/dev/null; done
    kill -STOP ${PIDS[hung]}
    run query -j 1 --label "$url" many
    refused "a master hangs" "keys are unknown"
    unknown=$(grep -c ^unknown out)
    check "--label: all are labelled" labels out
    check "--label: some are unknown" [ "$unknown" -gt 0 ]
    check "the error tells how many" grep -qE "; ([0-9],)?[0-9]+ of 2,000 keys are unknown" err
    run query "$url" many
    check "query: exit 2" exits 2
    check "query: unknown keys are not printed" [ "$(wc -l <out)" -lt 2000 ]
    run query -v "$url" many
    check "query -v: exit 2" exits 2
    check "query -v: nor here" lines out 0
    ends 2 query --any -v "$url" many
    kill -CONT ${PIDS[hung]}
    until_true eval 'server_cli $hung cluster info | grep -q ^cluster_state:ok'
    for i in 1 2 3; do server_cli $i config set cluster-require-full-coverage yes >/dev/null; done
    run query --label "$all/half" many
    check "it answers again" exits 0
    check "all are there" [ "$(grep -c ^perhaps out)" -eq 2000 ]
    tells_json 'perhaps no unknown' '2000 0 0' query --json "$all/half" many
    flush_all
}

run_tests
