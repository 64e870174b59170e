#!/bin/sh
# cluster_bench.sh [--bin FOLDER] [OPTION...] - perhaps-bench-cluster on three masters and a single
# server that it starts and stops; or on those of --servers.
set -eu
here=$(dirname "$0")
bin=$here/../build/bin
if [ "${1:-}" = --bin ]; then
    bin=$2
    shift 2
fi
case " $* " in
*" --servers"* | *" --help "* | *" -h "*) exec "$bin/perhaps-bench-cluster" "$@" ;;
esac

local_sh=$here/../cluster/local.sh
folder=$(mktemp -d)
clean_up() {
    "$local_sh" down --folder "$folder/many"
    "$local_sh" down --folder "$folder/one"
    rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT TERM
many=$("$local_sh" up --port 0 --replicas 0 --folder "$folder/many")
one=$("$local_sh" up --port 0 --single --folder "$folder/one")
"$bin/perhaps-bench-cluster" --servers "$many" --single "$one" "$@"
