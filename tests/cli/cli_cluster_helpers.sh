# What the tests of the command line for filters on servers share; sourced by cli_cluster_test.sh
# and cli_servers_test.sh PROGRAM.  It starts one server, $one, and a cluster of three, $all.
here=$(realpath "$(dirname "$0")")
. "$here/../support/cli_helpers.sh"
. "$here/../support/servers.sh"

servers_start_single || exit 1
servers_start_cluster 3 0 || exit 1
one=redis://127.0.0.1:${PORTS[0]} all=redis://127.0.0.1:${PORTS[2]}

# is_gone NAME: whether nothing of the filter is left on any server.
is_gone() {
    local i
    for i in 0 1 2 3; do
        [ -z "$(server_cli $i --raw keys "perhaps:{$1[/}]*")" ] || return 1
    done
}

# both FUNCTION: calls it with $at as the server and then as the cluster, and empties them after
# it.
both() { for at in "$one" "$all"; do "$1"; flush_all; done; }
on_one() { at=$one "$1"; flush_all; }
flush_all() {
    local i
    for i in 0 1 2 3; do server_cli $i flushall >/dev/null; done
}
