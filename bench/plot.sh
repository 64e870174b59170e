#!/bin/sh
# plot.sh [JSON] - draws the figures in doc/plots from what perhaps-bench --json wrote, and keeps it
# there; without one from a run over many sizes and numbers of threads, at one rate.
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

if [ $# -gt 0 ]; then
    cp "$1" "$data/bench.json"
else
    "$bin/perhaps-bench" --keys 30k,100k,300k,1M,3M,10M,30M,100M --fpr 0.1% --load 0 \
        --repeat 3 --threads "$(thread_numbers)" --json "$data/bench.json"
fi
"$bin/perhaps-plot" "$data/bench.json" "$data"
gnuplot -c "$here/plot.gp" "$data" "$plots"
mv "$data/bench.json" "$plots/bench.json"
ls -l "$plots"
