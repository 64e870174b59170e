#!/bin/sh
# cluster_bench.sh [--bin FOLDER] [OPTION...] - runs perhaps-bench-cluster on three masters that
# it starts and stops itself; or on the servers of --servers.  There are no replicas: they would
# take CPU time from the masters on the same machine.
set -eu
here=$(dirname "$0")
bin=$here/../build/bin
if [ "${1:-}" = --bin ]; then
    bin=$2
    shift 2
fi
case " $* " in
*" --servers"* | *" --help "*) exec "$bin/perhaps-bench-cluster" "$@" ;;
esac

folder=$(mktemp -d)
clean_up() {
    "$here/../cluster/local.sh" down --folder "$folder/many"
    rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT TERM
many=$("$here/../cluster/local.sh" up --port 0 --replicas 0 --folder "$folder/many")
"$bin/perhaps-bench-cluster" --servers "$many" "$@"
