#!/usr/bin/env bash
# End-to-end tests of examples/cache_guard:  cache_guard_test.sh PROGRAM
# Proves that the guard keeps look-ups of nobody from the database and denies no user: also
# after kills, with two processes at once, and with a guard on servers that stop or lose it.
# Prints a line for each check that fails and a total; the exit status is 1 if a check failed.
tests=$(realpath "$(dirname "$0")")
. "$tests/../support/servers.sh"
. "$tests/../support/cli_helpers.sh"

export TMPDIR=$folder # SQLite puts its temporary files there
export GUARD_SECRET=0123456789abcdef

small() { run --users 5e3 --lookups 5e3 "$@"; }
both=(--database users.db --guard users.guard)

# signs_up WORDS ADDRESS...: whether the verb signup gives these answers, without tabs and
# addresses: "free/guard" means free, as the guard knew.
signs_up() {
    local wanted=$1
    shift
    printf '%s\n' "$@" | "$program" signup "${both[@]}" >out 2>err
    status=$?
    [ "$status" -eq 0 ] && [ "$(cut -f 1,2 out | tr '\t\n' '/ ')" = "$wanted " ]
}

# column NUMBER WAY: prints a column of the table's row of that name, counted behind the name.
column() { sed -n "s/^$2  *//p" out | awk "{ print \$$1 }"; }

# denies NUSERS NDENIED: whether the check at the end found these numbers.
denies() { says "$1 users checked: the guard denies $2"; }

# ---- Look-ups ----------------------------------------------------------------------------

# All ways get the same look-ups, so the guard makes the difference.  Nine of ten look-ups are
# of nobody.
test_look_ups() {
    small
    check "look-ups" exits 0
    check "look-ups: all users were checked" denies 5000 0
    needless=$(column 2 'no guard')
    check "no guard: what nobody has reaches the database" [ "$needless" -gt 4000 ]
    check "\"nobody\" cached: hardly less" [ "$(column 2 'no guard, "nobody" cached')" -gt 4000 ]
    check "guard: hardly any" [ "$(column 2 guard)" -le 20 ]
    check "guard: users are asked for as before" \
        [ $(($(column 1 guard) - $(column 2 guard))) -eq $(($(column 1 'no guard') - needless)) ]
    small --fpr 1e-9
    check "at a low rate nothing comes through" [ "$(column 2 guard)" -eq 0 ]
    check "nothing is left" [ -z "$(ls -A "$folder" | grep -v -e test_ -e keys -e empty)" ]
    run --help
    check "help" exits 0
    check "help: on stdout" tells '^usage: cache_guard'
}

# A guard in a file and users in a database stay for the next run; another's file stays, too.
test_file_and_database_that_stay() {
    small "${both[@]}"
    check "a guard in a file" denies 5000 0
    check "a guard in a file: hardly any comes through" [ "$(column 2 guard)" -le 20 ]
    check "what nobody has is free" signs_up "free/guard taken/database" a@x.example \
        user.1@mail.example
    small "${both[@]}"
    check "users are taken as they are" tells '^5001 users'
    check "users are taken as they are: well" denies 5001 0
    echo guarded >precious
    refuses "guard precious: not a filter file" --database users.db --guard precious
    check "what was there is as it was" [ "$(cat precious)" = guarded ]
}

# ---- Sign-ups ----------------------------------------------------------------------------

# An address is given away once.  Wrong addresses are refused, and control characters are not
# printed.  A guard that was lost is made anew from the database.
test_signup() {
    check "new ones are free" signs_up "free/guard free/guard" a@x.example b@x.example
    check "then they are taken" signs_up "taken/database free/guard taken/database" \
        a@x.example c@x.example c@x.example
    check "what is no address is refused" signs_up "refused/- refused/- refused/- free/guard" \
        "" nonsense 'a b@x.example' "$(printf 'y%.0s' {1..240})@x.example"
    check "too long" signs_up "refused/-" "$(printf 'y%.0s' {1..260})@x.example"
    printf '\033[2Jd@x.example\nd@x.example\r\n' | "$program" signup "${both[@]}" >out 2>err
    check "nothing commands the terminal" not grep -q "$(printf '\033')" out
    check "the end of a line may be Windows'" tells '^free.guard.d@x.example$'
    rm users.guard
    check "a guard that was lost is made anew" signs_up "taken/database free/guard" \
        a@x.example e@x.example
    check "and checked" denies 6 0
    GUARD_SECRET=fedcba9876543210 refuses "secret" signup "${both[@]}"
    GUARD_SECRET=short refuses "wanted are 16 characters" signup "${both[@]}"
}

# An address goes into the guard before it goes into the database.  So one for which the guard
# has no room must not get into the database: the guard would deny that user.
test_order() {
    seq -f '%g@x.example' 1000 >addresses
    run signup "${both[@]}" --capacity 50 <addresses
    check "a full guard" exits 2
    check "a full guard says so" says "the filter is full"
    ngiven=$(grep -c ^free out)
    check "some were given away before" [ "$ngiven" -gt 40 ]
    run check "${both[@]}"
    check "it denies nobody" exits 0
    check "nobody came past it" denies "$ngiven" 0
}

# After a kill at any moment the guard denies no user, and a new run can finish the work.
test_kill() {
    local i pid
    seq -f '%g@x.example' 30000 >addresses
    for i in 1 2 3 4 5; do
        "$program" signup "${both[@]}" <addresses >out 2>err &
        pid=$!
        until_true has_lines out $((i * 200))
        kill -KILL $pid
        wait $pid 2>/dev/null
        run check "${both[@]}"
        check "after kill $i no user is denied" exits 0
    done
    run signup "${both[@]}" <addresses
    check "the rest sign up" exits 0
    check "all of them, once" denies 30000 0
}
has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }

# Two processes at once, when there is neither table nor guard yet.
test_two_processes() { two_sign_up 4000 "${both[@]}"; }

# The check finds a user whom the guard does not know: such a check proves something.
test_check_finds_what_is_wrong() {
    check "one user" signs_up "free/guard" a@x.example
    printf 'b@x.example\n' | "$program" signup --database users.db --guard other >out 2>err
    run check "${both[@]}"
    check "a guard that was gone round" exits 1
    check "says how many" says "WRONG: 2 users checked: the guard denies 1"
    run check --database users.db --guard other
    check "the other guard knows both" exits 0
    run signup "${both[@]}"
    check "to open is to repair" exits 0
    run check "${both[@]}"
    check "for good" exits 0
}

# ---- What is refused ---------------------------------------------------------------------

test_refused() {
    local shape
    refuses "nonsense: no such option" nonsense
    refuses "--nonsense: no such option" --nonsense 1
    refuses "--users: no such option, or no value" --users
    refuses "--users 0: wanted is a number" --users 0
    refuses "--lookups 1k: wanted is a number" --lookups 1k
    refuses "out of range" --users 10 --fpr 2
    refuses "database no/users.db: unable to open" --database no/users.db
    refuses "database keys: file is not a database" --database keys
    refuses "signup: wanted are --database and --guard" signup --guard g
    refuses "check: wanted are --database and --guard" check --database users.db
    refuses "database users.db: unable to open" check "${both[@]}"
    refuses "guard keys: not a filter file" signup --database users.db --guard keys
    refuses "guard no/guard: No such file" signup --database users.db --guard no/guard
    refuses "guard" --users 10 --guard redis://
    "$program" --users 10 --lookups 10 >/dev/full 2>err
    status=$?
    check "a full disk" exits 2
    check "a full disk: says" says "No space left"
    command -v python3 >/dev/null || return 0
    for shape in 'name TEXT' 'email TEXT'; do # tables of other programs
        rm -f users.db
        python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute(sys.argv[2])' \
            users.db "CREATE TABLE users ($shape)"
        refuses "database users.db" signup "${both[@]}"
    done
}

# ---- Servers -----------------------------------------------------------------------------

# stop_while_asked I: stops a server for a while, as soon as queries come in.
stop_while_asked() {
    until_true asked "$1" || echo "no questions came"
    kill -STOP "${PIDS[$1]}"
    sleep 4 # longer than a look-up waits for an answer
    kill -CONT "${PIDS[$1]}"
}
asked() {
    [ "$(server_cli "$1" info commandstats | sed -n 's/^cmdstat_getrange:calls=\([0-9]*\).*/\1/p' |
        grep . || echo 0)" -gt 5000 ]
}

test_guard_on_a_server() {
    servers_start_single || return
    local both=(--database users.db --guard "redis://127.0.0.1:${PORTS[0]}/taken")
    small --guard "${both[3]}"
    check "a guard on a server" denies 5000 0
    check "a guard on a server: hardly any comes through" [ "$(column 2 guard)" -le 20 ]
    check "sign-up" signs_up "free/guard" a@x.example
    check "sign-up: taken" signs_up "taken/database" a@x.example
    server_cli 0 flushall >/dev/null
    check "a guard that the server lost is made anew" signs_up "taken/database" a@x.example
    check "and full again" denies 1 0
    servers_stop
    refuses "127.0.0.1" signup --database users.db --guard "${both[3]}?patience=100ms"
}

# Look-ups that the server does not answer go to the database.
test_guard_that_does_not_answer() {
    servers_start_single || return
    stop_while_asked 0 &
    run --users 5e3 --lookups 1e5 --guard "redis://127.0.0.1:${PORTS[0]}/taken?timeout=500ms"
    wait $!
    check "a server that stops for a while" exits 0
    check "questions that were not answered" tells '^the guard did not answer [1-9]'
    servers_stop
}

test_guard_on_a_cluster() {
    servers_start_cluster 3 0 || return
    small --guard "redis://127.0.0.1:${PORTS[1]}/taken"
    check "a guard on a cluster" denies 5000 0
    servers_stop
}

run_tests
