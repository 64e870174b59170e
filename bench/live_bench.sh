#!/bin/bash
# live_bench.sh [--lines N] [--repeat R] [--bin FOLDER] [OPTION of perhaps-bench-live...]
#
# What live files cost: the tables of perhaps-bench-live; then dedup with a durable state beside
# one that is saved at the end, of N (20 million) lines, half of them repeated; and one key that
# is added to a filter of 1 GB.  In a temporary folder (in TMPDIR); best of R (5) runs, in turns.
set -euo pipefail
export LC_ALL=C
lines=20000000 repeat=5 bin=$(dirname "$0")/../build/bin rest=()
while [ $# -gt 0 ]; do
    case $1 in
    --lines) lines=$2 && shift ;;
    --repeat) repeat=$2 && rest+=("$1" "$2") && shift ;;
    --bin) bin=$2 && shift ;;
    --keys | --folder) rest+=("$1" "$2") && shift ;;
    *)
        sed -n '2,6s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
    esac
    shift
done
PATH=$(cd "$bin" && pwd):$PATH
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
perhaps-bench-live ${rest[@]+"${rest[@]}"}

# seconds COMMAND...: prints how long it takes.
seconds() {
    local began=$EPOCHREALTIME
    "$@"
    awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.4f\n", b - a }'
}

# A run of dedup, into a pipe or a file.
to_pipe() { perhaps dedup -q -n $((lines / 2)) --state S "$@" keys | cat >/dev/null; }
to_file() { perhaps dedup -q -n $((lines / 2)) --state S "$@" keys >out; }
clean() { rm -f S S.journal out; }

perhaps-bench lines "$lines" >keys
printf '\n| dedup of %s lines, s | state at the end | --durable 1s | --durable 100k | plain / durable |\n|---|---|---|---|---|\n' $lines
for how in to_pipe to_file; do
    rm -f plain time lines_
    for ((i = 0; i < repeat; i++)); do
        clean && seconds "$how" >>plain
        clean && seconds "$how" --durable 1s >>time
        clean && seconds "$how" --durable 100k >>lines_
    done
    best() { sort -n "$1" | head -n 1; }
    awk -v how="$how" -v plain="$(best plain)" -v time="$(best time)" -v lines="$(best lines_)" \
        'BEGIN { printf "| %s | %.2f | %.2f | %.2f | %.2f, %.2f |\n", how, plain, time, lines, plain / time, plain / lines }'
done
clean
rm -f keys

perhaps create -q --live -n 800M big
for ((i = 0; i < 4 * repeat; i++)); do seconds perhaps add -q big --key "$i"; done | sort -n >times
printf '\none key added to a filter of %s bytes: best %.1f ms, median %.1f ms; an empty program: ' \
    "$(stat -c %s big)" "$(head -n 1 times | awk '{ print 1000 * $1 }')" \
    "$(sed -n "$((2 * repeat))p" times | awk '{ print 1000 * $1 }')"
for ((i = 0; i < 4 * repeat; i++)); do
    seconds perhaps --version | tail -n 1
done | sort -n | head -n 1 | awk '{ printf "%.1f ms\n", 1000 * $1 }'
