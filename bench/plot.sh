#!/bin/sh
# plot.sh [JSON...] - draws the figures in doc/plots from files that perhaps-bench --json wrote,
# and keeps these files there, so that the figures can be drawn again.  Without a file it
# measures first: many sizes and numbers of threads at one rate, and filters that grow.
set -eu
here=$(dirname "$0")
bin=${BIN:-$here/../build/bin} plots=${PLOTS:-$here/../doc/plots}
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
mkdir -p "$plots"

# Prints the numbers of threads: 1, 2, 3 ... up to 8 processors; with more, 1, 2, 4 ... and all.
thread_numbers() {
    all=$(nproc) number=1
    while [ "$number" -lt "$all" ]; do
        printf '%d,' "$number"
        [ "$all" -le 8 ] && number=$((number + 1)) || number=$((number * 2))
    done
    echo "$all"
}

# Writes what plot.gp draws, a file for each figure.  Each line of a figure is a block, with its
# name in quotes before it and two empty lines behind it.  The last block is what the others are
# compared with.  The sed brings the JSON into a form that awk can read without a parser: a line
# for each row, and for each stop of a filter that grows.
write_data() {
    sed 's/^ *//' "$1" | tr -d '\n' | sed 's/{"\(filter\|keys\)"/\n&/g' | sed 1d >"$data/rows"
    awk -v data="$data" '
    # Returns the first value of this name after the text "behind"; a text keeps its quotes.
    function value(name, behind,    text) {
        text = substr($0, index($0, behind))
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
    NR == FNR { capacities[value("capacity") + 0]; rates[value("fpr") + 0]; next }
    /^{"filter"/ {
        kind = value("filter"); capacity = value("capacity"); rate = value("fpr")
        if (FNR == 1) {
            first = kind
            fixed = value("fixed") " planned for so many, at the rate of " first
            gsub("\"", "", fixed)
            usual_capacity = 1e7 in capacities ? 1e7 : capacity
            usual_rate = 0.001 in rates ? 0.001 : rate
        }
        grows = value("grows") == "true" && !/"problem"/
    }
    grows && /^{"keys"/ {
        put("grow_bits", kind, value("keys"), value("bits_per_key"))
        put("grow_fpr", kind, value("keys"), value("fpr_now"))
        if (kind == first)
            put("grow_fixed", "\"" fixed "\"", value("keys"), value("fixed_bits_per_key"))
    }
    !/"batched"/ || /"fixed"/ || /"problem"/ || /"peer": true/ || rate != usual_rate { next }
    /"shared": false/ && value("threads") == 1 {
        size = value("body_bytes")
        $0 = substr($0, index($0, "\"batched\""))
        put("speed", kind, size, value("ns", "\"absent\""))
        if (kind == first)
            put("speed_bare", "\"bare read of one line\"", size, value("bare_ns", "\"absent\""))
        next
    }
    /"shared": true/ && capacity == usual_capacity {
        threads = value("threads")
        name = substr(kind, 1, length(kind) - 1)
        $0 = substr($0, index($0, "\"batched\""))
        put("threads", name ": ask\"", threads, 1000 / value("ns", "\"absent\""))
        put("threads", name ": add\"", threads, 1000 / value("ns", "\"add\""))
        if (kind == first)
            put("threads_bare", "\"bare read of one line\"", threads,
                1000 / value("bare_ns", "\"absent\""))
    }
    END {
        write("speed", "speed"); write("speed", "speed_bare")
        write("threads", "threads"); write("threads", "threads_bare")
        write("grow_bits", "grow_bits"); write("grow_bits", "grow_fixed")
        write("grow_fpr", "grow_fpr")
        exit count["speed"] + count["grow_bits"] == 0
    }' "$data/rows" "$data/rows" || {
        echo "$1: no rows: not by perhaps-bench --json" >&2
        exit 2
    }
}

# Draws the figures of one JSON file, and keeps the file.
draw() {
    kept=bench.json
    ! grep -q '"growths"' "$1" || kept=grow.json
    rm -f "$data"/*.dat
    write_data "$1"
    [ ! -e "$data/speed.dat" ] || "$bin/perhaps-bench" bits >"$data/bits.dat"
    gnuplot -c "$here/plot.gp" "$data" "$plots"
    cmp -s "$1" "$plots/$kept" || cp "$1" "$plots/$kept"
}

if [ $# -eq 0 ]; then
    "$bin/perhaps-bench" --keys 30k,100k,300k,1M,3M,10M,30M,100M --fpr 0.1% --load 0 \
        --repeat 3 --threads "$(thread_numbers)" --json "$data/bench.json"
    "$bin/perhaps-bench" grow --json "$data/grow.json"
    set -- "$data/bench.json" "$data/grow.json"
fi
for json in "$@"; do
    draw "$json"
done
ls -l "$plots"
