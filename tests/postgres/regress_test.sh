#!/usr/bin/env bash
# Runs the tests of bindings/postgres with pg_regress on a server of our own:
#     regress_test.sh BINDING LIBRARIES
# BINDING is the folder with sql/ and expected/.  Its Makefile installs all that is needed, too.
. "$(dirname "$0")/server.sh"

binding=$1
regress=$(dirname "$("${PG_CONFIG:-pg_config}" --pgxs)")/../test/regress/pg_regress
[ -x "$regress" ] || server_skip "no pg_regress"
server_start "$2" max_parallel_workers=8
mapfile -t tests < <(sed -n 's/^test: *//p' "$binding/schedule" | tr ' ' '\n')
cd "$server_tree" || exit 1
"$regress" --inputdir="$binding" --outputdir="$server_tree" --bindir="$server_bin" \
    --host="$PGHOST" --user="$PGUSER" --dbname=perhaps_regress --encoding=UTF8 --no-locale \
    "${tests[@]}" || { cat "$server_tree/regression.diffs"; exit 1; }

# What the Makefile installs, and takes away again.
if command -v make >/dev/null; then
    installed() { find "$server_tree/dest" -type f | sed 's|.*/||' | sort | tr '\n' ' '; }
    make=(make -s -C "$binding" BUILD="$2/../.." DESTDIR="$server_tree/dest"
        PG_CONFIG="${PG_CONFIG:-pg_config}")
    "${make[@]}" install >/dev/null || exit 1
    [ "$(installed)" = "$(cd "$2" && echo perhaps--*.sql perhaps.control perhaps.so) " ] ||
        { echo "installed: $(installed)"; exit 1; }
    "${make[@]}" uninstall >/dev/null || exit 1
    [ -z "$(installed)" ] || { echo "left: $(installed)"; exit 1; }
fi
