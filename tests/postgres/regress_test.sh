#!/usr/bin/env bash
# Runs the tests of bindings/postgres with pg_regress on a server of our own:
#     regress_test.sh BINDING LIBRARIES
# BINDING is the folder with sql/ and expected/.
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
