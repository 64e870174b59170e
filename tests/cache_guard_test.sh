#!/usr/bin/env bash
# End-to-end tests of examples/cache_guard:  cache_guard_test.sh PROGRAM
# Prints a line for each check that fails and a total; exit status 1 if one failed.
tests=$(realpath "$(dirname "$0")")
. "$tests/servers.sh"
. "$tests/cli_helpers.sh"

export TMPDIR=$folder # where the program puts what it makes

# small ARGUMENT...: a run with few users, as JSON.
small() { run --users 5k --lookups 5k --signups 200 --json "$@"; }

# signs_up WORDS ADDRESS...: what the verb signup answers, without the tabs and the addresses.
signs_up() {
    local wanted=$1
    shift
    printf '%s\n' "$@" | "$program" signup --database users.db >out 2>err
    status=$?
    [ "$status" -eq 0 ] && [ "$(cut -f 1,2 out | tr '\t\n' '/ ')" = "$wanted " ]
}

is_well() { [ "$status" -eq 0 ] && grep -q '"well":true' out; }
has() { [ "$(field "$1" out)" = "$2" ]; }
nothing_left() { [ -z "$(find "$folder" -maxdepth 1 -name 'cache_guard.*')" ]; }

# refuses TEXT ARGUMENT...: exit status 2, and one line that says so.
refuses() {
    local text=$1
    shift
    run "$@"
    check "$*: exit 2" exits 2
    check "$*: one line" lines err 1
    check "$*: names the program" grep -q '^cache_guard: ' err
    check "$*: says $text" says "$text"
}

# ---- A run -------------------------------------------------------------------------------

test_run() {
    small
    check "run" is_well
    check "run: five ways" [ "$(grep -o '"batch"' out | wc -l)" -eq 5 ]
    check "run: users" has users 5000
    check "run: users and those who signed up were checked" has checked 5150
    check "run: silent" is_silent
    check "run: nothing is left" nothing_left
    run --quick --cache none --seed 7
    check "for people" exits 0
    check "for people: no cache" tells 'cache: none'
    check "for people: the seed" tells 'seed 7'
    check "for people: two ways" [ "$(grep -c '^guard in memory' out)" -eq 2 ]
    check "for people: sign-ups" tells '^2,000 sign-ups'
    run --help
    check "help" exits 0
    check "help: on stdout" tells '^usage: cache_guard'
}

# One seed asks the same, so the guard is what differs.
test_what_the_guard_keeps_away() {
    small --cache none --guard none --absent 100%
    check "nobody is there: all reach the database" has reached_database 5000
    check "no guard: well" is_well
    small --cache none --guard memory --absent 100% --fpr 1e-9
    check "at a low rate nothing comes through" \
        [ "$(grep -o '"reached_database":0,' out | wc -l)" -eq 1 ]
    small --cache none --guard memory --absent 0
    check "all are there: all reach the database" \
        [ "$(grep -o '"reached_database":5000,' out | wc -l)" -eq 2 ]
    check "all are there: well" is_well
}

test_file_and_database_that_stay() {
    small --database users.db --guard both.guard --cache none
    check "a guard in a file" is_well
    check "it is removed at the end" [ ! -e both.guard ]
    check "the database stays" [ -s users.db ]
    small --database users.db --cache none
    check "users are taken as they are" has users 5150
    check "and nobody signs up" has lines 0
    check "users as they are: well" is_well
    echo guarded >precious
    refuses "precious: there is a file of that name" --quick --cache none --guard precious
    check "what was there is as it was" [ "$(cat precious)" = guarded ]
}

test_ends_by_signal() {
    local name pid server
    for name in TERM INT; do
        env --default-signal "$program" --users 100k --lookups 100M >out 2>err &
        pid=$!
        until_true server_of $pid || echo "no server of its own"
        server=$(pgrep -P $pid)
        kill -s $name $pid
        wait $pid
        status=$?
        check "$name" exits $((128 + $(kill -l $name)))
        check "$name: silent" is_silent
        check "$name: nothing is left" nothing_left
        check "$name: its server ends" until_true not kill -0 "$server" 2>/dev/null
    done
}
server_of() { [ -n "$(pgrep -P "$1")" ]; }

# ---- Sign-ups ----------------------------------------------------------------------------

test_signup() {
    check "new ones are free" signs_up "free/guard free/guard" a@x.example b@x.example
    check "then they are taken" signs_up "taken/database free/guard taken/database" \
        a@x.example c@x.example c@x.example
    check "what is no address is refused" \
        signs_up "refused/- refused/- refused/- refused/- free/guard" \
        "" nonsense @x.example a@ 'a b@x.example' " $(printf 'y%.0s' {1..240})@x.example "
    check "too long" signs_up "refused/-" "$(printf 'y%.0s' {1..260})@x.example"
    printf 'a@x.example\0free@x.example\n\033[2Jd@x.example\r\n' |
        "$program" signup --database users.db >out 2>err
    check "a zero byte ends nothing" tells '^refused.-.a@x.example free@x.example$'
    check "nothing commands the terminal" not grep -q "$(printf '\033')" out
    rm users.db.guard
    check "a guard that was lost is made anew" signs_up "taken/database free/guard" \
        a@x.example e@x.example
    check "it is counted" says "1 free, 1 of them without asking the database; 1 taken"
    check "and checked" says "6 users checked: the guard denies 0"
}

test_secret() {
    printf 'a@x.example\n' >addresses
    run signup --database users.db --key-file key <addresses
    check "a secret is made" [ "$(stat -c %s-%a key)" = 16-600 ]
    run signup --database users.db --key-file key <addresses
    check "and used again" tells '^taken.database'
    printf 0123456789abcdef >other
    refuses "secret" signup --database users.db --key-file other
    refuses "wanted are 16 bytes" signup --database users.db --key-file addresses
    refuses "no/key: No such file" signup --database users.db --key-file no/key
}

# The guard first: an address for which there is no room in it must not get into the database.
test_order() {
    seq -f '%g@x.example' 1000 >addresses
    run signup --database users.db --capacity 50 <addresses
    check "a full guard" exits 2
    check "a full guard says so" says "there is no room for more users"
    ngiven=$(grep -c ^free out)
    check "some were given away before" [ "$ngiven" -gt 40 ]
    run check --database users.db
    check "it denies nobody" exits 0
    check "nobody came past it" says " $ngiven users checked"
}

# Killed at any moment, it has told no lie; and what was begun can be ended.
test_kill() {
    local i pid
    seq -f '%g@x.example' 30000 >addresses
    for i in 1 2 3 4 5; do
        "$program" signup --database users.db <addresses >out 2>err &
        pid=$!
        until_true has_lines out $((i * 200))
        kill -KILL $pid
        wait $pid 2>/dev/null
        run check --database users.db
        check "after kill $i no user is denied" exits 0
    done
    run signup --database users.db <addresses
    check "the rest sign up" exits 0
    check "all of them, once" says "30000 users checked: the guard denies 0"
}
has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }

# Two at once want the same addresses, from the moment on at which there is neither table nor guard.
test_two_processes() {
    local i
    seq -f '%g@x.example' 4000 >addresses
    for i in 1 2; do
        "$program" signup --database users.db <addresses >out.$i 2>err.$i &
        pids[i]=$!
    done
    for i in 1 2; do
        wait ${pids[i]}
        status=$?
        cp err.$i err
        check "process $i" exits 0
        check "process $i denies nobody" says "the guard denies 0"
    done
    grep -h ^free out.1 out.2 | cut -f 3 | sort >given
    check "each address is given away once" same given <(sort addresses)
}

# A check that finds nothing wrong would be worth nothing.
test_check_finds_what_is_wrong() {
    check "one user" signs_up "free/guard" a@x.example
    printf 'b@x.example\n' | "$program" signup --database users.db --guard other >out 2>err
    run check --database users.db
    check "a guard that was gone round" exits 1
    check "says how many" says "WRONG: 2 users checked: the guard denies 1"
    run check --database users.db --guard other
    check "the other guard knows both" exits 0
    run signup --database users.db
    check "to open is to repair" exits 0
    run check --database users.db
    check "for good" exits 0
}

# ---- What is refused ---------------------------------------------------------------------

test_refused() {
    refuses "nonsense: no such verb" nonsense
    refuses "--nonsense: no such option" --nonsense
    refuses "--users: no such option, or not with that value" --users
    refuses "--users 0: wanted is a number" --users 0
    refuses "--absent 101%: wanted is a number" --absent 101%
    refuses "--lookups 1e: wanted is a number" --lookups 1e
    refuses "--readers x: wanted is a number" --readers x
    refuses "database no/users.db: unable to open" --database no/users.db
    refuses "database keys: file is not a database" --database keys --cache none
    refuses "which database?" signup
    refuses "--guard memory" signup --database users.db --guard memory
    refuses "which guard?" signup --database postgresql://x/y
    refuses "database users.db: unable to open" check --database users.db
    refuses "Connection refused" --quick --cache redis://127.0.0.1:1
    for url in nonsense redis:// redis://h:0 redis://h:66000 redis://h:x redis://h/1; do
        refuses "--cache: wanted is" --quick --cache $url
    done
    refuses "guard keys: not a filter file" signup --database users.db --guard keys
    refuses "guard no/guard: No such file" signup --database users.db --guard no/guard
    refuses "guard" --quick --cache none --guard redis://
    "$program" --quick --cache none >/dev/full 2>err
    status=$?
    check "a full disk" exits 2
    check "a full disk: says" says "No space left"
    check "nothing is left" nothing_left
}

# Tables that others made.
test_tables() {
    local shape
    command -v python3 >/dev/null || return 0
    for shape in 'name TEXT' 'email TEXT, name TEXT' 'email TEXT PRIMARY KEY'; do
        rm -f users.db
        python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute(sys.argv[2])' \
            users.db "CREATE TABLE users ($shape)"
        refuses "wanted is users (email UNIQUE, name)" signup --database users.db
    done
}

# ---- Servers -----------------------------------------------------------------------------

# stop_while_asked I: holds a server up for a while, as soon as questions come in.
stop_while_asked() {
    until_true asked "$1" || echo "no questions came"
    kill -STOP "${PIDS[$1]}"
    sleep 4 # longer than who asks waits
    kill -CONT "${PIDS[$1]}"
}
# calls I COMMAND: how many have come so far.
calls() {
    server_cli "$1" info commandstats | sed -n "s/^cmdstat_$2:calls=\([0-9]*\).*/\1/p" | grep . ||
        echo 0
}
asked() { [ "$(calls "$1" getrange)" -gt 5000 ]; }
got() { [ "$(calls "$1" get)" -gt 1000 ]; }
size() { server_cli "$1" dbsize; }

test_cache_of_others() {
    servers_start_single || return
    server_cli 0 set mine "what others keep" >/dev/null
    small --guard memory --cache redis://127.0.0.1:"${PORTS[0]}"
    check "a cache that is there" is_well
    check "nothing of others is touched" [ "$(server_cli 0 get mine)" = "what others keep" ]
    check "nothing is left in it" [ "$(size 0)" -eq 1 ]
    server_cli 0 config set requirepass pass >/dev/null
    refuses "NOAUTH" --quick --cache redis://127.0.0.1:"${PORTS[0]}"
    small --guard memory --cache redis://:pass@127.0.0.1:"${PORTS[0]}"
    check "with a password" is_well
    server_cli 0 config set requirepass "" >/dev/null
    servers_stop
}

# A cache that dies ends the program, which cannot empty it any more, either.
test_cache_that_dies() {
    servers_start_single || return
    end_when_asked 0 &
    refuses "cache redis://127.0.0.1" --lookups 10M --users 5k --guard memory \
        --cache redis://127.0.0.1:"${PORTS[0]}"
    wait $!
    check "nothing is left" nothing_left
    servers_stop
}
end_when_asked() {
    until_true got "$1" || echo "no questions came"
    server_cli "$1" shutdown nosave
}

test_guard_on_a_server() {
    servers_start_single || return
    local url=redis://127.0.0.1:${PORTS[0]}/taken
    small --cache none --guard "$url"
    check "a guard on a server" is_well
    check "nothing is left there" [ "$(size 0)" -eq 0 ]
    printf 'a@x.example\n' >addresses
    run signup --database users.db --guard "$url" <addresses
    check "sign-up" tells '^free.guard'
    run signup --database users.db --guard "$url" <addresses
    check "sign-up: taken" tells '^taken.database'
    refuses "taken" --quick --cache none --guard "$url"
    server_cli 0 flushall >/dev/null
    run signup --database users.db --guard "$url" <addresses
    check "a guard that the server lost is made anew" tells '^taken.database'
    check "and full again" says "1 users checked: the guard denies 0"
    servers_stop
    refuses "127.0.0.1" signup --database users.db --guard "$url?patience=100ms"
}

# What a server does not answer, the database does.
test_guard_that_does_not_answer() {
    servers_start_single || return
    stop_while_asked 0 &
    small --lookups 100k --signups 0 --cache none \
        --guard "redis://127.0.0.1:${PORTS[0]}/taken?timeout=500ms"
    wait $!
    check "a server that stops for a while" is_well
    check "questions that were not answered" grep -q '"unanswered":[1-9]' out
    servers_stop
}

test_guard_on_a_cluster() {
    servers_start_cluster 3 0 || return
    small --cache none --guard "redis://127.0.0.1:${PORTS[1]}/taken"
    check "a guard on a cluster" is_well
    check "nothing is left there" [ "$(size 0)$(size 1)$(size 2)" = 000 ]
    servers_stop
}

run_tests
