#!/bin/sh
# plot.sh [JSON...] - draws the figures in doc/plots from what perhaps-bench --json wrote, and keeps it
# there; without one from a run over many sizes and numbers of threads, at one rate, and one of
# filters that grow.
set -eu
here=$(dirname "$0")
bin=${BIN:-$here/../build/bin} plots=${PLOTS:-$here/../doc/plots}
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
mkdir -p "$plots"

# 1, 2, 3 ... of few processors, 1, 2, 4 ... and all of many.
thread_numbers() {
    all=$(nproc) number=1
    while [ "$number" -lt "$all" ]; do
        printf '%d,' "$number"
        [ "$all" -le 8 ] && number=$((number + 1)) || number=$((number * 2))
    done
    echo "$all"
}

# Draws what is in the JSON, and keeps it.
draw() {
    kept=bench.json
    ! grep -q '"growths"' "$1" || kept=grow.json
    rm -f "$data"/*.dat
    "$bin/perhaps-plot" "$1" "$data"
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
