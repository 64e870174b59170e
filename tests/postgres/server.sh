# server.sh - a PostgreSQL server of our own, for the tests and the benchmark; to be sourced.
#
#     . server.sh
#     server_start LIBRARIES     the folder with perhaps.so, perhaps.control and perhaps--*.sql
#     psql ... ; server_stop     PGHOST, PGUSER and PGDATABASE are set
#
# Each server_start starts one more server, and PGHOST is that of the last; server_stop stops all.
#
# The server finds its libraries and its extensions relative to its program.  So the program is
# copied to a tree of its own, $server_tree, which else is links to the installed one.  It listens
# on a socket in that tree only, and is gone with it at the end.  PRELOAD has libraries that it
# needs at the beginning: the runtime of a sanitizer.  They are copied, since the server may not be
# allowed to read the build tree.

# Says why there can be no server, and ends.
server_skip() {
    echo "skipped: $1"
    exit 77
}

server_pids=() server_trees=() # of all servers

# PostgreSQL refuses to run as root: root becomes the user postgres, or nobody.
server_owner=$(id -un)
[ "$(id -u)" -ne 0 ] || server_owner=$(id -un postgres 2>/dev/null || echo nobody)
as_owner() {
    if [ "$(id -u)" -eq 0 ]; then
        (cd / && exec setpriv --reuid "$server_owner" --regid "$(id -g "$server_owner")" \
            --clear-groups "$@")
    else
        "$@"
    fi
}

# server_link FROM TO: makes the folder TO, with links to all that is in FROM.
server_link() {
    mkdir -p "$2"
    ln -s "$1"/* "$2"/
}

# server_make LIBRARIES: makes the tree.
server_make() {
    local config=${PG_CONFIG:-pg_config} bin lib share prefix
    command -v "$config" >/dev/null || server_skip "no pg_config"
    bin=$("$config" --bindir) lib=$("$config" --pkglibdir) share=$("$config" --sharedir)
    [ -x "$bin/initdb" ] && [ -x "$bin/postgres" ] || server_skip "no PostgreSQL server"
    [ "$(id -u)" -ne 0 ] || command -v setpriv >/dev/null || server_skip "root has no setpriv"
    server_tree=$(mktemp -d "${TMPDIR:-/tmp}/perhaps-postgres.XXXXXX")
    server_trees+=("$server_tree")
    trap server_stop EXIT
    trap 'exit 130' INT TERM
    chmod 755 "$server_tree"
    prefix=$server_tree/root
    server_bin=$prefix$bin
    mkdir -p "$prefix$bin"
    cp "$bin/postgres" "$bin/initdb" "$prefix$bin/"
    for program in psql pg_dump pg_restore pg_isready; do
        [ ! -x "$bin/$program" ] || ln -s "$bin/$program" "$prefix$bin/"
    done
    server_link "$lib" "$prefix$lib"
    server_link "$share" "$prefix$share"
    rm "$prefix$share/extension"
    server_link "$share/extension" "$prefix$share/extension"
    rm -f "$prefix$lib/perhaps.so" "$prefix$share"/extension/perhaps*
    cp "$1/perhaps.so" "$prefix$lib/"
    server_preload=
    for library in ${PRELOAD//:/ }; do
        cp "$library" "$server_tree/"
        server_preload+=${server_preload:+:}$server_tree/$(basename "$library")
    done
    cp "$1/perhaps.control" "$1"/perhaps--*.sql "$prefix$share/extension/"
    mkdir "$server_tree/data" "$server_tree/socket"
    [ "$(id -u)" -ne 0 ] || chown "$server_owner" "$server_tree/data" "$server_tree/socket"
}

# server_start LIBRARIES [SETTING...]: settings as name=value.
server_start() {
    local setting settings=()
    server_make "$1"
    shift
    for setting in "$@"; do
        settings+=(-c "$setting")
    done
    as_owner "$server_bin/initdb" -D "$server_tree/data" -U tester -A trust -N -E UTF8 \
        --locale=C.UTF-8 >"$server_tree/initdb" 2>&1 ||
        { cat "$server_tree/initdb"; exit 1; }
    as_owner env \
        ${server_preload:+LD_PRELOAD="$server_preload" ASAN_OPTIONS=detect_leaks=0} \
        "$server_bin/postgres" -D "$server_tree/data" -k "$server_tree/socket" \
        -c listen_addresses= -c fsync=off -c full_page_writes=off "${settings[@]}" \
        >"$server_tree/log" 2>&1 &
    local starter=$!
    export PGHOST=$server_tree/socket PGUSER=tester PGDATABASE=postgres PGPORT=5432
    PATH=$server_bin:$PATH
    for _ in $(seq 300); do
        if psql -qXAtc 'SELECT 1' >/dev/null 2>&1; then
            server_pid=$(head -n 1 "$server_tree/data/postmaster.pid")
            server_pids+=("$server_pid")
            return 0
        fi
        kill -0 "$starter" 2>/dev/null || break
        sleep 0.1
    done
    cat "$server_tree/log"
    exit 1
}

server_stop() {
    local pid tree
    for pid in "${server_pids[@]}"; do
        kill -INT "$pid" 2>/dev/null # ends at once
    done
    [ "${#server_pids[@]}" -eq 0 ] || wait
    for tree in "${server_trees[@]}"; do
        rm -rf "$tree"
    done
    server_pids=() server_trees=() server_pid=
}
