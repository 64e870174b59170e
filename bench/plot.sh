#!/bin/sh
# plot.sh [JSON...] - draws the figures in doc/plots from files that perhaps-bench --json wrote,
# all of them together, and keeps these files there, so that the figures can be drawn again.
# Without a file it measures first: at many sizes, at many rates, and filters that grow, beside
# the peers of ./dev bench --peers.
set -eu
here=$(dirname "$0")
bin=${BIN:-$here/../build/bin} plots=${PLOTS:-$here/../doc/plots}
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
mkdir -p "$plots"

# Measures what the figures show: our kinds (speed.svg), and one of them beside other libraries
# (peers.svg).  RocksDB's ribbon, and at a gigabyte most peers, would take too long.
measure() {
    peers=libbloom,rocksdb-bloom,blobloom,guava
    run() { "$bin/perhaps-bench" --load 0 --threads 1 "$@"; }
    run --keys 30k,100k,300k,1M,3M,10M,30M,100M --fpr 0.1% --repeat 3 \
        --kind blocked,strided,cuckoo,bloom,counting,elastic,ribbon --json "$data/kinds.json"
    run --keys 30k,100k,300k,1M,3M,10M --fpr 0.1% --repeat 3 \
        --kind blocked,$peers,rocksdb-ribbon --json "$data/sizes.json"
    run --keys 30M,100M --fpr 0.1% --repeat 2 --kind blocked,$peers --json "$data/large.json"
    run --keys 550M --fpr 0.1% --repeat 2 --kind blocked,rocksdb-bloom,blobloom \
        --json "$data/gigabyte.json"
    run --keys 1M --fpr 10%,1%,0.01%,0.001% --repeat 2 \
        --kind $peers,rocksdb-ribbon,seiflotfy --json "$data/rates.json"
    "$bin/perhaps-bench" grow --json "$data/grow.json"
}

# Writes what plot.gp draws, a file for each figure.  Each line of a figure is a block, with its
# name in quotes before it and two empty lines behind it.  The last block is what the others are
# compared with.  The sed brings the JSON into a form that awk can read without a parser: a line
# for each row, and for each stop of a filter that grows.  Rows of different runs stand in one
# figure only if they are of one machine: so those of a run without peers go to speed.svg, and
# those of a run with peers to peers.svg.
write_data() {
    for json in "$@"; do
        grep -q '"peer": true' "$json" && echo '{"run": "peers"}' || echo '{"run": "own"}'
        sed 's/^ *//' "$json" | tr -d '\n' | sed 's/{"\(filter\|keys\)"/\n&/g' | sed 1d
        echo
    done >"$data/rows"
    awk -v data="$data" '
    # Returns the first value of this name after the texts "behind" and then "next_behind"; a
    # text keeps its quotes.
    function value(name, behind, next_behind,    text) {
        text = substr($0, index($0, behind))
        text = substr(text, index(text, next_behind))
        if (!match(text, "\"" name "\": [^,}]*")) return ""
        return substr(text, RSTART + length(name) + 4, RLENGTH - length(name) - 4)
    }
    function put(file, name, x, y) {
        if (!((file, name) in block)) names[file, ++count[file]] = name
        block[file, name] = block[file, name] x " " y "\n"
    }
    function write(file, blocks,    i) {
        for (i = 1; i <= count[blocks]; i++)
            printf "%s\n%s\n\n", names[blocks, i], block[blocks, names[blocks, i]] > \
                (data "/" file ".dat")
    }
    /^{"run"/ { of_peers = /"peers"/ }
    /^{"filter"/ {
        kind = value("filter"); rate = value("fpr"); is_peer = /"peer": true/
        grows = value("grows") == "true" && !/"problem"/
        # Two lines of bits are enough: the first filter of each kind at 1 %.
        grown = grows && rate == 0.01 && !(value("kind") in lines) ? kind : ""
        if (grown) lines[value("kind")]
        if (grown && !fixed) {
            compared = kind
            fixed = value("fixed")
            sub("\"$", ", planned for so many\"", fixed)
        }
        if (grows && !(rate in asker)) asker[rate] = kind
    }
    grows && /^{"keys"/ {
        if (grown) put("grow_bits", kind, value("keys"), value("bits_per_key"))
        put("grow_fpr", kind, value("keys"), value("fpr_now"))
        if (kind == asker[rate])
            put("grow_asked", sprintf("\"%g%% is asked for\"", 100 * rate), value("keys"), rate)
        if (kind == compared)
            put("grow_fixed", fixed, value("keys"), value("fixed_bits_per_key"))
    }
    !/"absent"/ || /"fixed"/ || /"problem"/ { next }
    value("shared") == "true" || value("threads") != 1 { next }
    is_peer && value("capacity") == 1e6 {
        put("bits_peers", kind, value("fpr_measured"), value("bits_per_key"))
    }
    rate != 0.001 { next }
    {
        size = value("body_bytes"); fastest = /"batched"/ ? "\"batched\"" : "\"single\""
        ns = value("ns", fastest, "\"absent\"")
        if (is_peer || !of_peers) put(is_peer ? "peers" : "speed", kind, size, ns)
        if (!is_peer && !own) own = kind
        if (kind != own) next
        put(of_peers ? "peers_bare" : "bare", "\"bare read of one line\"", size, \
            value("bare_ns", fastest, "\"absent\""))
        if (!of_peers) next
        put("own", "\"perhaps, many in a call\"", size, ns)
        put("own", "\"perhaps, one in a call\"", size, value("ns", "\"single\"", "\"absent\""))
    }
    END {
        write("speed", "speed"); write("speed", "bare")
        write("peers", "own"); write("peers", "peers"); write("peers", "peers_bare")
        write("bits_peers", "bits_peers")
        write("grow_bits", "grow_bits"); write("grow_bits", "grow_fixed")
        write("grow_fpr", "grow_fpr"); write("grow_asked", "grow_asked")
        exit count["speed"] + count["bits_peers"] + count["grow_bits"] == 0
    }' "$data/rows" || {
        echo "$*: no rows: not by perhaps-bench --json" >&2
        exit 2
    }
}

if [ $# -eq 0 ]; then
    measure
    set -- "$data"/*.json
fi
write_data "$@"
[ ! -e "$data/bits_peers.dat" ] || "$bin/perhaps-bench" bits >"$data/bits.dat"
gnuplot -c "$here/plot.gp" "$data" "$plots"
for json in "$@"; do
    cmp -s "$json" "$plots/${json##*/}" || cp "$json" "$plots"
done
ls -l "$plots"
