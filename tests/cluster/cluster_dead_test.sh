#!/usr/bin/env bash
# One of three servers is dead, and the cluster serves the slots of the others:
# cluster_dead_test.sh DRIVER
# Proves that queries of keys on the other servers are answered, that queries of keys on the
# dead one are errors, and that no key is denied that is in.
. "$(dirname "$0")/cluster_helpers.sh"
servers_start_cluster 3 0 --cluster-require-full-coverage no || exit 1
heal

dead=2
KEYS=90 # of which about a third is on each server
ASKING='patience=50ms'

# name_on SERVER PREFIX: prints a name of a filter whose description lies on this server.
name_on() {
    local i
    for i in $(seq 50); do
        [ "$(owner_of "perhaps:{$2$i}")" != "$1" ] || { echo "$2$i"; return; }
    done
}

fill() { # NAME [SETTING...]
    succeeds "create" create "$1" partitions=96 fpr=1e-9 "${@:2}"
    succeeds "add" add "$1" count=$KEYS
}

# ask NAME: starts a process that has the filter open before the server dies, and then asks for
# one key a call.  end_ask NAME waits for it and puts its output into out.
declare -A go asker
ask() {
    mkfifo "go$1"
    "$program" ask "$(url "$1" "$ASKING")" keys=keys wait=1 each=1 <"go$1" >"asked$1" 2>err &
    asker[$1]=$!
    exec {go[$1]}>"go$1"
    check "an asker is connected" within 60 grep -q waiting "asked$1"
}
end_ask() {
    local fd=${go[$1]}
    wait "${asker[$1]}"
    status=$?
    exec {fd}>&-
    cp "asked$1" out
}

# answers NAME: checks the last run.  About a third of the keys lies on each server, give or take
# as much as the draw of partitions and of keys does: only "some" is certain.
answers() {
    check "$1: of the others: $(tail -n 1 out)" above asked 0
    check "$1: of the dead one: $(tail -n 1 out)" above failed 0
    check "$1: none is denied" is denied 0
}

# In a small filter the client checks every partition that it asks; in a large one some in
# turn.  A filter that grows may have layers that the client does not know while the description
# is out of reach; keys that it finds in the known layers are told all the same.
test_one_is_dead() {
    local names=() name
    for name in 0 $dead; do
        names+=("$(name_on $name small)" "$(name_on $name large)" "$(name_on $name grows)")
    done
    printf '%d\n' $KEYS >keys
    for name in "${names[@]}"; do
        case $name in
        small*) fill "$name" capacity=10000 ;;
        large*) fill "$name" capacity=1000000 ;;
        grows*) fill "$name" capacity=10000 grow=1 ;;
        esac
        ask "$name"
    done
    kill_server $dead
    for name in "${names[@]}"; do echo >&"${go[$name]}"; done
    for name in "${names[@]}"; do
        end_ask "$name"
        answers "$name"
    done
    for name in "${names[@]:0:3}"; do
        drive ask "$name?$ASKING" keys=keys each=1 absent=$KEYS
        answers "$name, opened now"
        check "$name: what is absent is not there" is absent_present 0
        check "$name: nor denied without asking" above absent_asked 0
    done
    drive add "${names[1]}?$ASKING" count=$KEYS first=1000
    check "what cannot be added is an error: $(tail -n 1 out)" gives UNREACHABLE
    drive ask "${names[5]}?$ASKING" keys=keys
    check "without its description none can be opened" gives UNREACHABLE
}

run_tests
