#!/usr/bin/env bash
# cluster_bench.sh [--bin FOLDER] [OPTION...] - runs perhaps-bench-cluster on servers that it
# starts and stops itself: clusters of 3 and 12 masters, and one server that is none; or on those
# of --servers.  There are no replicas: they would take CPU time from the masters on the same
# machine.  The cluster of 3 comes first, since some things are only measured on the first.
here=$(dirname "$0")
bin=$here/../build/bin
if [ "${1:-}" = --bin ]; then
    bin=$2
    shift 2
fi
case " $* " in
*" --servers"* | *" --help "*) exec "$bin/perhaps-bench-cluster" "$@" ;;
esac

load=()
for ((i = 1; i < $#; i++)); do
    next=$((i + 1))
    [ "${!i}" != --module ] || load=(--loadmodule "$(realpath "${!next}")")
done
. "$here/../tests/support/servers.sh"
servers_start_cluster 3 0 "${load[@]}" || exit
urls=redis://127.0.0.1:${PORTS[-1]}
servers_start_single "${load[@]}" || exit
urls=$urls,redis://127.0.0.1:${PORTS[-1]}
case " $* " in
*" --quick "*) ;;
*)
    servers_start_cluster 12 0 "${load[@]}" || exit
    urls=$urls,redis://127.0.0.1:${PORTS[-1]}
    ;;
esac
"$bin/perhaps-bench-cluster" --servers "$urls" "$@"
