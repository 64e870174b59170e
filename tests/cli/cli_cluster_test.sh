#!/usr/bin/env bash
# End-to-end tests of the command line for filters on servers: cli_cluster_test.sh PROGRAM, as
# cli_test.sh.  Most tests run on one server and on a cluster of three.  Proves that the verbs do
# on servers what they do on files, that what they cannot do there is refused before a server is
# asked, and that passwords never appear in messages.
. "$(dirname "$0")/cli_cluster_helpers.sh"

# ask_server ARGUMENT...: redis-cli, talking to that server of $at which owns the key.
ask_server() {
    local i=0
    [ "$at" = "$all" ] && i=2
    server_cli $i -c "$@"
}

# id NAME: prints the id of a filter, in which the names of its partitions end.
id() { ask_server hget "perhaps:{$1}" id; }

# ---- What is refused before a server is asked ----------------------------------------

# What works on files only, and options that do not fit a filter on servers.
test_elsewhere_only() {
    local url=$one/none verb
    run build -o f keys
    refuses "remove: works on filters in files only" remove $url keys
    refuses "count: works on filters in files only" count $url keys
    refuses "merge: writes files only: make a filter on servers with 'perhaps create'" merge -o $url f
    refuses "merge: takes files, not what lies on servers" merge -o g f $url
    refuses "build: writes files only: make a filter on servers with 'perhaps create'" build -o $url keys
    refuses "query: takes files, not what lies on servers" query f $url
    refuses "--rewrite: is not for filters on servers" add --rewrite $url keys
    refuses "--kind: is not for filters on servers" create $url -n 5 --kind bloom
    refuses "--removable: is not for filters on servers" create $url -n 5 --removable
    refuses "--count: is not for filters on servers" create $url -n 5 --count
    refuses "--window: is not for filters on servers" dedup --state $url --window 1h keys
    refuses "--kind: is not for filters on servers" dedup --state $url --kind bloom keys
    refuses "--partitions: is not for filters in files" create g -n 5 --partitions 4
    refuses "--partitions 0: not a number of partitions" create $url -n 5 --partitions 0
    refuses "--partitions x: not a number of partitions" create $url -n 5 --partitions x
    refuses "create: for how many keys? give -n N" create $url
    refuses "create: which filter?" create
    refuses "one operand too many" create $url keys
    refuses "leave out --key-file" create $url -n 5 --hash xxh3 --key-file k
    refuses "keys: is a file: remove it with rm" delete keys
    refuses "keys: is a file, which has the right count" recount keys
    refuses "copy: from where to where?" copy $url
    refuses "copy: from where to where?" copy f g $url
    refuses "copy: both lie on servers" copy $url $all/none
    refuses "--partitions: is not for filters in files" copy $url g --partitions 4
    for verb in create add query info verify delete copy recount; do
        shows "redis://host:port/name" help $verb
    done
    check "nothing was made" [ ! -e g ]
}

# Wrong addresses; and a password in an address that is never shown.
test_addresses() {
    local url
    # each lacks something or has a wrong character
    for url in redis:// redis://h redis://h/ redis://h:x/n redis://h:99999/n redis:///n \
        redis://h/a%zz "redis://h/a b" redis://h/a/b redis://h/{a} redis://h/n?x=1 \
        redis://h/n?timeout=5 redis://:@h/n redis://@h/n redis://::1/n redis:h/n 'redis://h/n?cacert=x'; do
        refuses "${url#*@}: " info "$url"
    done
    refuses "h/a/b: " info "redis://me:top secret@h/a/b"
    check "a password is not shown" not says secret
    run query keys redis://me:secret@h/n
    check "a password is not shown in an input" not says secret
    refuses "operand too many" info redis://:secret@h/n redis://:secret@h/m
    check "a password is not shown in what is too many" not says secret
    refuses "redis://127.0.0.1:1/n: 127.0.0.1:1: " info redis://127.0.0.1:1/n?patience=200ms
    run info redis://no-such-host.invalid/n?patience=200ms
    refused "no such host" "redis://no-such-host.invalid:6379/n: no-such-host.invalid:6379: "
}

# ---- Create, delete ------------------------------------------------------------------

test_create_file() {
    reports "perhaps: f made, for 1,000,000 keys: " create f -n 1M -p 1e-4
    tells_json 'capacity keys' '1000000 0' info --json f
    keeps f refuses "f: is there already" create f -n 10
    mkdir folder
    refuses "folder: is there already" create folder -n 10
    refuses "missing/f: cannot be written" create missing/f -n 10
    tells_json capacity 100 create g -n 100 --json
    quietly create h -n 100 --removable -q
    run add h keys
    works remove h keys
    run create grown --grow
    works add grown <(seq 200000)
    run create --key-file K secret -n 100
    ends 1 query --key-file K secret keys
}

# A filter is made whole or not at all, and keys of other programs stay.
create_at() {
    local name
    reports "/new made, for 1,000,000 keys: " create $at/new -n 1M -p 0.001 --partitions 60
    check "create: summary: partitions" says "60 partitions on "
    check "create: nothing on stdout" lines out 0
    check "create: one line" lines err 1
    refuses "/new: there is a filter of that name" create $at/new -n 5
    tells_json 'capacity keys partitions' '1000000 0 60' info --json $at/new
    ends 1 query $at/new keys
    tells_json 'capacity fpr_asked' '100000 0.01' create $at/told -n 100k --json
    quietly create $at/quiet -n 100k -q --seed 7 --prefer fast
    refuses " takes 1 to " create $at/parts -n 100k --partitions 1M
    refuses " partitions, so that none is larger" create $at/parts -n 100M --partitions 2
    check "create: refused: nothing is left" is_gone parts
    ask_server set "perhaps:{string}" x >asked
    refuses "/string: " create $at/string -n 5
    check "create: another's key stays" [ "$(ask_server get "perhaps:{string}")" = x ]
    refuses "/string: " info $at/string
    refuses "/string: " delete $at/string
    ask_server del "perhaps:{string}" >asked
    for name in told quiet; do
        works delete $at/$name -q
        check "delete -q" is_silent
        check "delete: all of it" is_gone $name
    done
    reports "/new deleted" delete $at/new
    check "delete: all of it" is_gone new
    refuses "/new: there is no filter of that name" delete $at/new
}
test_create() { both create_at; }

# What was done to lines is noted on the servers, and done by whoever uses the filter.
note_at() {
    printf 'x,Foo\ny,BAR\n' >in
    works create -q -n 1000 -p 1e-6 --field 2 --delimiter , --ignore-case $at/noted
    works add -q $at/noted in
    writes $'1,foo\n2,bAR\n' query $at/noted <(printf '1,foo\n2,bAR\n3,baz\n')
    writes $'FOO\n' query --field 1- $at/noted <(printf 'FOO\nbaz\n')
    writes '' dedup --state $at/noted <(printf '5,FOO\n')
    shows '^keys made of +field=2 delimiter=, ignore-case$' info $at/noted
    works copy -q $at/noted g
    shows '^keys made of +field=2 delimiter=, ignore-case$' info g
    works build --kind blocked:together -q -n 100 --ignore-case -o h <(echo Foo)
    works copy -q h $at/small
    writes $'fOO\n' query $at/small <(printf 'fOO\nbar\n')
    works create -q -n 100 $at/plain
    refused_adds=$(printf 'A\n' | "$program" add --ignore-case $at/plain 2>&1)
    check "note: letters treated otherwise" grep -q 'was made without it' <<<"$refused_adds"
}
test_note() { both note_at; }

# A process died while it made the filter: everything but delete is refused.
half_made_at() {
    local verb
    run create $at/half -n 1000 -q
    ask_server hset "perhaps:{half}" state creating >asked
    for verb in "info $at/half" "add $at/half keys" "query $at/half keys" "verify $at/half" \
        "copy $at/half f" "dedup --state $at/half keys"; do
        refuses "perhaps delete" $verb
    done
    refuses "somebody is making a filter of that name" create $at/half -n 5
    check "half-made: no file was made" [ ! -e f ]
    works delete $at/half
    check "half-made: all of it" is_gone half
}
test_half_made() { both half_made_at; }

# ---- Add, query ----------------------------------------------------------------------

# adds_none: whether adding keys again does not count them again.  A key that is sent once more
# after a connection broke may be counted twice (doc/CLUSTER.md: doubtful).  That is rare, and
# the caller tries again.
adds_none() {
    local before
    run info --json $at/urls
    before=$(field keys out)
    "$program" add $at/urls --json <in >out 2>err
    [ "$(facts keys keys_in_filter)" = "30000 $before" ]
}

# Adds and queries of many keys, in any number of threads, keep the order of the lines.
add_at() {
    local j
    seq 1 30000 >in
    seq 30001 60000 >not_in
    run create $at/urls -n 100k -p 0.001 -q
    reports "30,000 keys added to redis://127.0.0.1:" add $at/urls in
    check "add: one line" lines err 1
    run info --json $at/urls
    check "add: none is counted twice" [ "$(field keys out)" -le 30000 ]
    check "add --json: nothing was new" eval 'adds_none || adds_none || adds_none'
    matches in query $at/urls in
    check "query: silent" is_silent
    counts -le 300 query -c $at/urls not_in # 1 %, where 0.1 % is asked
    ends 1 query -v $at/urls in
    works query --any $at/urls in
    check "query --any: prints nothing" lines out 0
    writes $'perhaps\t1\n' query --label $at/urls <(printf '1\n')
    tells_json 'keys perhaps no' '30000 30000 0' query --json $at/urls in
    for j in 1 2 8; do
        run query -j $j $at/urls in not_in
        check "query -j $j: order" same <(head -30000 out) in
        works add -j $j -q $at/urls <(seq ${j}0001 ${j}2000)
        writes $'2000\n' query -c $at/urls <(seq ${j}0001 ${j}2000)
    done
    printf 'x,one,p\0y,two,q\0' >records
    run add $at/urls -0 --field 2 -d , -q records
    run query $at/urls <(printf 'one\ntwo\n')
    check "-0 --field" lines out 2
    reports ":2 has no such field" add $at/urls --field 2 <(printf 'a\tb\nc\n')
    gzip -c not_in >not_in.gz
    works add -q $at/urls not_in.gz
    writes $'30000\n' query -c $at/urls not_in
    refuses "missing: No such file" add $at/urls missing
    refuses "missing: No such file" query $at/urls missing
    refuses "/missing: there is no filter of that name: make it with 'perhaps create'" add $at/missing in
    refuses "/missing: there is no filter of that name" query $at/missing in
}
test_add() { both add_at; }

# Each line is answered before the next one comes.
streaming_at() {
    run create $at/query -n 1000 -p 1e-14 -q
    run create $at/dedup -n 1000 -p 1e-14 -q
    run add $at/query -q <(seq 3)
    answers_at_once query $at/query
    answers_at_once dedup -q --state $at/dedup
}
test_streaming() { both streaming_at; }

# ---- Dedup ---------------------------------------------------------------------------

dedup_at() {
    printf 'b\na\nb\nc\na\nb\n' >in
    refuses "/seen: there is no filter of that name: make it with 'perhaps create'" dedup --state $at/seen in
    run create $at/seen -n 100k -p 1e-14 -q
    writes $'b\na\nc\n' dedup --state $at/seen in
    check "dedup: summary" says "6 lines, 3 new, 3 repeated; "
    writes '' dedup -n 5 --state $at/seen in
    writes $'a\nx\n' dedup -d --state $at/seen <(printf 'a\nx\nx\n')
    writes $'lines\t1000\nnew\t1000\nrepeated\t0\n' dedup -c --state $at/seen <(seq 1000)
    tells_json 'new repeated doubtful' '499 501 0' dedup --json --state $at/seen <(seq 500 1499)
    writes $'q\tnew\n' dedup -q --field 2 --state $at/seen <(printf 'p\t7\nq\tnew\n')
    reports ":2 has no such field" dedup --field 2 --state $at/seen <(printf 'p\tnewer\nq\n')
    check "dedup: the others are printed" prints $'p\tnewer\n'
    matches <(seq 90000 150000) dedup -q --state $at/seen in <(seq 90000 150000) <(seq 100000 120000)
    refuses_into /dev/full "standard output: No space left on device; what could not be printed is remembered" \
        dedup --state $at/seen <(seq 10 20) <(seq 5000 5010)
}
test_dedup() { both dedup_at; }

# Several processes share a state: each line is printed by exactly one of them.
dedups_at_once_at() {
    local i pids=
    run create $at/shared -n 100k -p 1e-14 -q
    for i in 1 2 3 4; do
        seq 30000 | shuf --random-source=<(yes $i) >in$i
        "$program" dedup -q --state $at/shared in$i >out$i 2>err$i &
        pids="$pids $!"
    done
    wait $pids
    check "four dedups at once: each line once" same <(cat out[1-4] | sort -n) <(seq 30000)
    check "four dedups at once: silent" [ -z "$(cat err[1-4])" ]
}
test_dedups_at_once() { both dedups_at_once_at; }

# ---- Info, verify, copy -----------------------------------------------------------

# The facts of a filter; then a partition of a wrong length, and one that is lost.
info_at() {
    local fact partition
    run create $at/urls -n 100k -p 0.001 -q
    run add -q $at/urls <(seq 50000)
    run info $at/urls
    for fact in 'filter +redis://127.0.0.1:[0-9]+/urls' 'layout +perhaps' 'kind +blocked' 'layers +1' \
        'keys +(about )?[45][0-9],[0-9]{3}.*' 'rate +.* at most 0.1 % was asked' \
        'nodes +[13]' 'hash +xxh3' 'created +20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z'; do
        check "info" tells "^$fact\$"
    done
    run info --json $at/urls
    check "info --json: one line" lines out 1
    check "info --json" [ "$(facts capacity fpr_asked)" = "100000 0.001" ]
    check "info --json: nodes" [ "$(field largest_node_bytes out)" -le "$(field body_bytes out)" ]
    check "info --json: nodes" [ "$(field smallest_node_bytes out)" -le "$(field largest_node_bytes out)" ]
    shows "^redis://127.0.0.1:[0-9]+/urls: ok, [0-9]+ partitions; about [45][0-9]," verify $at/urls
    partition="perhaps:{urls/5}:$(id urls)"
    ask_server append "$partition" x >asked
    ends 1 verify $at/urls
    ask_server del "$partition" >asked
    ends 1 verify $at/urls
    check "verify: lost: one line" lines err 1
    check "verify: lost: says" says "/urls: 1 of " " has lost partition 5 "
    seq 50000 >all # so that some of them lie in each partition
    for verb in "info $at/urls" "add $at/urls all" "query $at/urls all" "copy $at/urls f" \
        "dedup --state $at/urls all"; do
        refuses " has lost partition 5 " $verb
    done
    works delete -q $at/urls
    refuses "/urls: there is no filter of that name" info $at/urls
    refuses "/urls: there is no filter of that name" verify $at/urls
}
test_info() { both info_at; }

# Each partition is lost while 'query' and 'dedup' have the filter open, and is made anew by an add of
# somebody who does not know: it has one bit, and is too short.  What they printed before counts.
lost_beside_at() {
    local i
    for verb in "query --label" "query -v" "dedup --state"; do
        run create $at/lost -n 1000 -q --partitions 2
        run add -q $at/lost <(seq 500)
        mkfifo lines
        "$program" $verb $at/lost lines >out 2>err &
        exec 6>lines
        seq 500 >&6
        until_true [ "$verb" != "query --label" -o -s out ]
        sleep 0.3
        for i in 0 1; do
            ask_server del "perhaps:{lost/$i}:$(id lost)" >asked
            ask_server setbit "perhaps:{lost/$i}:$(id lost)" 3000 1 >asked
        done
        for i in $(seq 400); do seq 500; done >&6 2>asked
        exec 6>&-
        wait $!
        status=$?
        rm lines
        check "$verb: it is an error: $(cat err)" exits 2
        check "$verb: which says what is lost" grep -q "has lost partition" err
        check "$verb: no key is denied: $(grep -c ^no out)" not grep -q ^no out
        [ "$verb" != "query -v" ] || check "$verb: prints nothing" lines out 0
        run delete -q $at/lost
    done
}
test_lost_beside() { both lost_beside_at; }

# A filter is deleted while lines are added to it: nothing says that adding them again would do.
deleted_beside_at() {
    run create $at/gone -n 1000 -q
    mkfifo lines
    "$program" add $at/gone lines >out 2>err &
    exec 6>lines
    seq 1000 >&6
    echo 1000 >last
    check "it has begun" until_true "$program" query --any $at/gone last
    run delete -q $at/gone
    for i in $(seq 400); do seq 500; done >&6 2>asked
    exec 6>&-
    wait $!
    status=$?
    rm lines
    check "it is an error: $(cat err)" exits 2
    check "it says that it was deleted" grep -q "was deleted since it was opened" err
    check "and no more" not grep -q "safe\|are in" err
}
test_deleted_beside() { on_one deleted_beside_at; }

# A count that somebody has changed is told, and mended.
recount_at() {
    local counts
    run create $at/urls -n 20k -p 0.001 -q
    run add -q $at/urls <(seq 10000)
    counts="perhaps:{urls}:$(id urls)"
    ask_server hset "$counts" keys.0 17 >asked
    ends 1 verify $at/urls
    check "verify: one line" lines err 1
    check "verify: says" says "/urls: the count of layer 0 is 17, and its bits tell of " "perhaps recount"
    tells_json 'lost keys' '0 17' verify --json $at/urls
    reports "/urls: its count was 17, is now " recount $at/urls
    check "recount: one line" lines err 1
    check "recount: nothing on stdout" lines out 0
    ask_server del "$counts" >asked
    refuses "/urls: the counts of its keys were removed or replaced" info $at/urls
    refuses "perhaps recount" copy $at/urls f
    writes $'10000\n' query -c $at/urls <(seq 10000)
    run recount $at/urls --json
    check "recount --json" [ "$(field was err)" -eq 0 ]
    check "recount --json" [ "$(field keys_in_filter err)" -ge 9800 ]
    check "recount --json" [ "$(field keys_in_filter err)" -le 10300 ]
    works verify $at/urls
    run recount $at/urls -q
    check "recount -q" is_silent
    refuses "/none: there is no filter of that name" recount $at/none
}
test_recount() { both recount_at; }

# A filter goes from a file to servers and back without losing a bit.
copy_at() {
    local kind
    seq 20000 >in
    run build --kind blocked -n 30000 -p 0.001 -o f in
    reports "f copied to redis://127.0.0.1:" copy f $at/moved --partitions 16
    matches in query $at/moved in
    tells_json partitions 16 info --json $at/moved
    works copy $at/moved g --json
    check "copy: down: --json" [ "$(field keys_in_filter err)" -ge 19900 ]
    check "copy: down: the same bytes" same f g
    works verify g
    matches in query g in
    refuses "/moved: there is a filter of that name" copy f $at/moved
    writes $'20000\n' query -c $at/moved in
    run add -q $at/moved <(echo more)
    works copy -q $at/moved g
    check "copy -q" is_silent
    works query g <(echo more)
    refuses "missing/g: cannot be written" copy $at/moved missing/g
    refuses "missing: No such file" copy missing $at/other
    run build --kind blocked -p 1e-7 -o h in
    refuses "/other: a filter of kind blocked, or with several lines a key apart" copy h $at/other
    run build --kind blocked:together -p 1e-7 -o h in
    works copy -q h $at/sharp
    matches in query $at/sharp <(seq 40000)
    for kind in bloom cuckoo chain; do
        run build --kind $kind -o h keys
        refuses "/other: a filter of kind $kind" copy h $at/other
        check "copy: a kind that cannot: nothing is left" is_gone other
    done
    refuses "/none: there is no filter of that name" copy $at/none h
}
test_copy() { both copy_at; }

# ---- Secrets, growth, full -----------------------------------------------------------

# A filter with a secret needs it to add and to ask, but not for info and verify.
secret_at() {
    rm -f K
    reports "K: made with a new secret" create $at/sip -n 1000 --key-file K
    check "--key-file: for its owner" [ "$(stat -c %a K)" = 600 ]
    keeps K refuses "/sip: there is a filter of that name" create $at/sip -n 1000 --key-file K
    refuses "/sip: there is a filter of that name" create $at/sip -n 1000 --key-file L
    check "--key-file: not made for a filter that was not" [ ! -e L ]
    works add -q --key-file K $at/sip keys
    writes $'10\n' query -c --key-file K $at/sip keys
    for verb in add query; do
        refuses "/sip: was built with a secret: give it with --key-file" $verb $at/sip keys
    done
    printf '%032d' 1 >hex
    refuses "/sip: hex is not the key file" query --key-file hex $at/sip keys
    refuses "missing: No such file" query --key-file missing $at/sip keys
    refuses "keys: not a key file" query --key-file keys $at/sip keys
    shows "^hash +sip\$" info $at/sip
    check "info needs no key: keys" tells "^keys +10\$"
    works verify $at/sip
    run copy --key-file K $at/sip f
    writes $'10\n' query -c --key-file K f keys
    run copy --key-file K f $at/sip2
    writes $'10\n' query -c --key-file K $at/sip2 keys
    run create $at/hashed -n 1000 --hash none -p 1e-6 -q
    works add -q $at/hashed <(printf '0123456789abcdef\n')
    refuses ":2: not 16 bytes" add $at/hashed <(printf '0123456789abcdef\nshort\n')
    for name in sip hashed; do works delete -q $at/$name; done
}
test_secret() { both secret_at; }

# A filter that grows gets layers.
growth_at() {
    run create $at/grown --grow -n 1000 -p 0.001 -q
    works add -q $at/grown <(seq 20000)
    writes $'20000\n' query -c $at/grown <(seq 20000)
    counts -le 40 query -c $at/grown <(seq 20001 40000) # 0.2 %, where 0.1 % is asked
    run info --json $at/grown
    check "--grow: layers" [ "$(field layers out)" -ge 4 ]
    works verify $at/grown
    run dedup -q --state $at/grown <(seq 19000 25000)
    check "--grow: dedup" [ "$(wc -l <out)" -ge 4980 ]
    refuses "/grown: " copy $at/grown f
    check "--grow: no file" [ ! -e f ]
    works delete -q $at/grown
    check "--grow: delete: all of it" is_gone grown
}
test_growth() { both growth_at; }

# A full filter tells the line at which it stopped, and what came before it is in.
full_at() {
    run create $at/small -n 1000 -p 1e-14 -q
    seq 5000 >in
    run add -j 1 $at/small in
    refused "full" "in:1001: the filter is full: make it anew with a larger -n or with --grow; 1,000 of the keys, in no order, are in redis://"
    writes $'1000\n' query -c $at/small <(seq 1000)
    works add -q $at/small <(seq 1000)
    run create $at/state -n 1000 -p 1e-14 -q
    run dedup --state $at/state in
    refused "dedup: full" "in:1001: the filter is full: make it anew with a larger -n or with --grow; the lines so far are done"
    check "dedup: full: the lines so far are printed" same out <(seq 1000)
    writes '' dedup -q --state $at/state <(seq 1000)
}
test_full() { both full_at; }

# ---- A filter that Redisson made -----------------------------------------------------

redisson_at() {
    local url="$at/theirs?layout=redisson" i
    refuses "/theirs: " query "$url" keys
    ask_server hset "{theirs}:config" size 95850 hashIterations 7 expectedInsertions 10000 falseProbability 0.01 >asked
    works add -q "$url" keys
    matches keys query "$url" keys
    writes $'11\n12\n' dedup -q --state "$url" <(seq 5 12)
    shows "^layout +redisson\$" info "$url"
    refuses "let Redisson make its filters" create "$url" -n 5
    refuses "let Redisson delete its filters" delete "$url"
    refuses "/theirs: " verify "$url"
    refuses "/theirs: a filter of Redisson's has no counts" recount "$url"
    refuses "/theirs: " copy "$url" f
}
test_redisson() { both redisson_at; }

# Sets bits as Redisson does for three strings: meow, a long one, and one beyond ASCII; and the
# bits of the same strings under another codec.  tests/cluster/codec_test.c has both.
kryo5_bits="1244 9454 1113 9323 982 9192 8088 3341 1179 4520 10 3351 1189 4530
    2346 8319 8317 4705 4703 1091 1089"
json_bits="108 5861 5969 2137 2245 7998 8106 657 2782 3439 5564 3873 8346 6655
    8763 2935 2113 5870 5048 8805 7983"

codecs_at() {
    local url="$at/coded?layout=redisson" codec other bits bit
    printf '%s\n' meow https://example.org/a/page/that/is/long/enough 'é😂"' >strings
    ask_server hset "{coded}:config" size 9585 hashIterations 7 expectedInsertions 1000 falseProbability 0.01 >asked
    for codec in kryo5 json; do
        other=json bits=$kryo5_bits
        [ $codec = kryo5 ] || other=kryo5 bits=$json_bits
        for bit in $bits; do ask_server setbit coded $bit 1; done >asked
        ask_server get coded >theirs
        quietly query "$url&codec=$codec" strings
        check "$codec: all are in" same out strings
        writes '' query "$url&codec=$other" strings
        writes '' query "$url&codec=string" strings
        ask_server del coded >asked
        works add -q "$url&codec=$codec" strings
        ask_server get coded >ours
        check "$codec: adds the same bits" same theirs ours
        ask_server del coded >asked
        printf 'meow\n\xff\nsame\n' >wrong
        refuses "wrong:2: the key is not UTF-8, " add "$url&codec=$codec" wrong
        writes $'meow\n' query "$url&codec=$codec" <(printf 'meow\nsame\n')
        refuses "wrong:2: the key is not UTF-8, " query "$url&codec=$codec" wrong
        refuses "wrong:2: the key is not UTF-8, " dedup --state "$url&codec=$codec" wrong
        ask_server del coded >asked
    done
}
test_codecs() { both codecs_at; }

# Without a codec there is one warning a run, and the server is asked once whether to warn.
test_no_codec() {
    local url="$one/coded?layout=redisson"
    at=$one
    ask_server hset "{coded}:config" size 958500 hashIterations 7 expectedInsertions 100000 falseProbability 0.01 >asked
    ask_server config resetstat >asked
    seq 50000 >many
    writes '' query "$url" keys
    check "empty: no warning for a question" is_silent
    works add "$url" -j 1 many
    check "empty: no warning" not says "names no codec"
    check "asked once a run" [ "$(ask_server info commandstats | grep -o 'strlen:calls=[0-9]*')" = strlen:calls=2 ]
    reports "/coded: the address names no codec" query "$url" -j 4 many
    check "one warning" [ "$(grep -c "names no codec" err)" = 1 ]
    reports "/coded: the address names no codec" add "$url" keys
    quietly query -q "$url" keys
    quietly query "$url&codec=string" keys
    ask_server acl setuser asks on '>secret' '~*' '+cluster|slots' +hmget +bitfield_ro >asked
    reports "/coded: the address names no codec" query "${url/:\/\//:\/\/asks:secret@}" keys
    ask_server acl deluser asks >asked
    flush_all
}

run_tests
