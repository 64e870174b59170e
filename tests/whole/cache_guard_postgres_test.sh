#!/usr/bin/env bash
# Tests of examples/cache_guard on PostgreSQL:  cache_guard_postgres_test.sh PROGRAM
# Proves that it works there as on SQLite: look-ups, two processes that sign up the same
# addresses, errors, and a server that dies.  The server listens on a free port of 127.0.0.1, in
# a folder that is removed at the end.  Skipped where no PostgreSQL server is installed.
. "$(dirname "$0")/../support/cli_helpers.sh"

if ! command -v initdb >/dev/null; then
    for programs in /usr/lib/postgresql/*/bin; do
        PATH=$PATH:$programs
    done
fi
export GUARD_SECRET=0123456789abcdef
run check --database postgresql://127.0.0.1:1/x --guard g
if ! command -v initdb >/dev/null || says "built without PostgreSQL"; then
    echo "skipped: no PostgreSQL server, or no libpq"
    exit 77
fi
export TMPDIR=$folder

# PostgreSQL refuses to run as root: root becomes the user postgres, or nobody.
owner=$(id -un)
[ "$(id -u)" -ne 0 ] || owner=$(id -un postgres 2>/dev/null || echo nobody)
as_owner() {
    if [ "$(id -u)" -eq 0 ]; then
        (cd / && setpriv --reuid "$owner" --regid "$(id -g "$owner")" --clear-groups "$@")
    else
        "$@"
    fi
}

stop() { as_owner pg_ctl -D "$folder/data" -m immediate stop >/dev/null 2>&1; }

# Starts the server on a free port; tries another one if the port is in use.
start() {
    local tries
    mkdir "$folder/data" && chmod 755 "$folder" && chown "$owner" "$folder/data"
    as_owner initdb -D "$folder/data" -U tester -A trust -N >"$folder/initdb" 2>&1 ||
        { cat "$folder/initdb"; exit 1; }
    trap 'stop; rm -rf "$folder"' EXIT
    for tries in $(seq 20); do
        port=$((10000 + SRANDOM % 12000))
        as_owner pg_ctl -D "$folder/data" -w -l "$folder/data/log" -o "-p $port -c fsync=off \
            -c listen_addresses=127.0.0.1 -c unix_socket_directories=''" start >/dev/null && return
        grep -qi 'address already in use' "$folder/data/log" || break
    done
    cat "$folder/data/log"
    exit 1
}

# database NAME: makes a database and sets $url to its address.
database() {
    psql -qX "postgresql://tester@127.0.0.1:$port/postgres" -c "CREATE DATABASE $1"
    url=postgresql://tester@127.0.0.1:$port/$1
}
sql() { psql -qXAt "$url" -c "$1"; }

test_run() {
    database run
    run --users 5e3 --lookups 5e3 --database "$url"
    check "run" exits 0
    check "users were checked" says "5000 users checked: the guard denies 0"
    check "they are in the database" [ "$(sql 'SELECT count(*) FROM users')" = 5000 ]
    run --lookups 1e3 --database "$url"
    check "users are taken as they are" tells '^5000 users'
}

test_two_processes() {
    database pair
    two_sign_up 1000 --database "$url" --guard guard
}

test_refused() {
    local shape
    database shapes
    echo a@x.example >addresses
    for shape in 'name TEXT' 'email TEXT'; do
        sql "DROP TABLE IF EXISTS users; CREATE TABLE users ($shape)" 2>/dev/null
        refuses "database postgresql: ERROR:" signup --database "$url" --guard guard <addresses
    done
    refuses 'does not exist' signup --database "$url-none" --guard guard
    refuses 'Connection refused' --database postgresql://127.0.0.1:1/x
}

# This test ends the server, so its name makes it the last one.
test_zz_server_that_dies() {
    database dies
    mkfifo slow
    "$program" signup --database "$url" --guard guard <slow >out 2>err &
    pid=$!
    exec 5>slow
    echo a@x.example >&5
    until_true lines out 1
    stop
    echo b@x.example >&5
    exec 5>&-
    wait $pid
    status=$?
    check "a server that dies" exits 2
    check "a server that dies: one line" lines err 1
    check "what was given away before was said" tells '^free.guard.a@x.example$'
    check "and nothing after" lines out 1
}

start
run_tests
