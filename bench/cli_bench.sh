#!/bin/bash
# cli_bench.sh [--peers] [--exact] [--lines N] [--repeat R] [--bin FOLDER]
#
# Measures the command line on N (20 million) lines of 20 bytes, each twice, in random order,
# which 'perhaps-bench lines' makes in a temporary folder (in TMPDIR).  Prints the best of R (3)
# runs, with the file in the page cache: seconds and peak memory, as GNU time tells them
# (without it: seconds only).  A second table is about N different lines that come from a pipe:
# filters that are planned, that get their size at the end, and that grow.  A third one is about
# shrink, with the input and one of its outputs in memory (in /dev/shm, if there).  --peers also
# measures other tools that find repeated lines (mawk takes minutes) and DCSO's bloom, a Bloom
# filter; and how often that and perhaps are wrong.
# --exact measures only what dedup does without an error, beside plain dedup, and with their
# times as multiples of its time; with --peers also beside sort and uniq.
set -euo pipefail
export LC_ALL=C

lines=20000000 repeat=3 peers='' exact='' bin=$(dirname "$0")/../build/bin
while [ $# -gt 0 ]; do
    case $1 in
    --peers) peers=yes ;;
    --exact) exact=yes ;;
    --lines) lines=$2 && shift ;;
    --repeat) repeat=$2 && shift ;;
    --bin) bin=$2 && shift ;;
    *)
        sed -n '2,13s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
    esac
    shift
done
PATH=$(cd "$bin" && pwd):$PATH

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
keys=$folder/keys filter=$folder/filter
perhaps-bench lines "$lines" >"$keys"

gnu_time=$(type -P time || true)

# Runs a command; prints its seconds and its peak memory in KiB (or -).
run() {
    if [ -n "$gnu_time" ]; then
        "$gnu_time" -o "$folder/time" -f '%e %M' "$@" >/dev/null 2>"$folder/errors"
    else
        TIMEFORMAT='%R -'
        { time "$@" >/dev/null 2>"$folder/errors"; } 2>"$folder/time"
    fi || { cat "$folder/errors" >&2 && exit 1; }
    tail -n 1 "$folder/time"
}

# Runs a command some times and prints the best run as a row.  The row 'wc -l' comes first: the
# others are compared with it, since counting lines is the least that can be done with them.
row() {
    label=$1
    shift
    for ((i = 0; i < ${once:-$repeat}; i++)); do run "$@"; done | sort -n >"$folder/runs"
    read -r seconds kib <"$folder/runs"
    [ "$label" != "wc -l" ] || wc_seconds=$seconds
    awk -v label="$label" -v seconds="$seconds" -v kib="$kib" -v lines="$lines" \
        -v wc="${wc_seconds:-0}" 'BEGIN {
            if (seconds <= 0) seconds = 0.005 # the clock has hundredths
            ratio = wc ? sprintf("%.1f", seconds / wc) : ""
            memory = kib == "-" ? "" : sprintf("%.1f", kib / 1024)
            printf "%-24s %8.2f %8s %10.1f %10s\n", label, seconds, ratio,
                lines / seconds / 1e6, memory
        }'
}

grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //' || true
echo "$(nproc) CPUs; $lines lines of 20 bytes, each twice; best of $repeat runs"
printf '%-24s %8s %8s %10s %10s\n' command seconds "x wc -l" "M lines/s" "peak MiB"

# Prints the most anonymous memory, in MiB, that a command has when it is looked at, every
# hundredth of a second.  The peak of GNU time also has the pages of the mapped input.
anonymous() {
    "$@" >/dev/null 2>&1 &
    while kill -0 $! 2>/dev/null; do
        awk '/^RssAnon/ { print $2 / 1024 }' "/proc/$!/status" 2>/dev/null || true
        sleep 0.01
    done | sort -n | tail -n 1
}
if [ -n "$exact" ]; then
    # The runs of all commands alternate, so that what else the machine does slows down all.
    names=(plain --exact --unique --count-each)
    for ((i = 0; i < repeat; i++)); do
        for name in "${names[@]}"; do
            set -- perhaps dedup -q
            [ "$name" = plain ] || set -- "$@" "$name"
            run "$@" "$keys" >>"$folder/of $name"
        done
    done
    for name in "${names[@]}"; do
        sort -n "$folder/of $name" | head -n 1 | {
            read -r seconds kib
            [ "$name" != plain ] || echo "$seconds" >"$folder/plain"
            set -- perhaps dedup -q
            [ "$name" = plain ] || set -- "$@" "$name"
            awk -v name="$name" -v seconds="$seconds" -v kib="$kib" \
                -v plain="$(cat "$folder/plain")" -v anonymous="$(anonymous "$@" "$keys")" '
                BEGIN {
                    printf "dedup %-14s %6.2f s, %.1f x plain, peak %.0f MiB, anonymous %.0f\n",
                        name, seconds, seconds / plain, kib / 1024, anonymous }'
        }
    done
    row "cat" cat "$keys"
    [ -n "$peers" ] || exit 0
    once=1
    row "sort -u" sort -u "$keys"
    sort_uniq() { sort "$keys" | uniq "$1"; }
    export -f sort_uniq
    export keys
    row "sort | uniq -u" bash -c 'sort_uniq -u'
    row "sort | uniq -c" bash -c 'sort_uniq -c'
    exit 0
fi
row "wc -l" wc -l "$keys"
row "cat" cat "$keys"
row "perhaps build -j1" perhaps build -q -j1 -o "$filter" "$keys"
row "perhaps build -j1 -n" perhaps build -q -j1 -n "$lines" -o "$filter" "$keys"
row "perhaps build" perhaps build -q -o "$filter" "$keys"
row "perhaps query" perhaps query "$filter" "$keys"
row "perhaps query -c" perhaps query -c "$filter" "$keys"
row "perhaps dedup -j1" perhaps dedup -q -j1 "$keys"
row "perhaps dedup" perhaps dedup -q "$keys"
row "perhaps dedup -n half" perhaps dedup -q -n $((lines / 2)) "$keys"
kept=$(perhaps dedup -q "$keys" | wc -l)
echo "dedup keeps $kept of $((lines / 2)) different lines"

# Builds a filter of different lines that come from a pipe, in ways that take turns, so that all
# have the same noise; then prints the best run of each, and what the filter takes.
build_from_pipe() { cat "$keys.different" | perhaps build -q "$@" -o "$filter"; }
export -f build_from_pipe
export filter keys
pipe_rows() {
    local way label
    for ((i = 0; i < repeat; i++)); do
        for way; do
            # shellcheck disable=SC2016
            run bash -c 'build_from_pipe $0' "$way" >>"$folder/pipe${way// /}"
            perhaps info --json "$filter" >"$folder/info${way// /}"
        done
    done
    for way; do
        label=${way:-no option}
        read -r seconds kib < <(sort -n "$folder/pipe${way// /}")
        [ "$way" != "$1" ] || planned=$seconds
        awk -v label="$label" -v seconds="$seconds" -v kib="$kib" -v planned="$planned" \
            -v nbytes="$(sed -n 's/.*"body_bytes": *\([0-9]*\).*/\1/p' "$folder/info${way// /}")" \
            -v lines="$lines" 'BEGIN {
                if (seconds <= 0) seconds = 0.005
                if (planned <= 0) planned = 0.005
                printf "%-28s %8.2f %10.2f %10.2f %10s\n", label, seconds, seconds / planned,
                    8 * nbytes / lines, kib == "-" ? "" : sprintf("%.1f", kib / 1024)
            }'
    done
}
seq 10000000000000000001 "$(printf '1%019d' "$lines")" >"$keys.different"
echo
echo "$lines different lines of 20 bytes from a pipe, rate 1 %"
printf '%-28s %8s %10s %10s %10s\n' "perhaps build" seconds "x planned" bits/key "peak MiB"
pipe_rows "-n $lines" "" "--memory 64M" "--memory 256M --tmp none" "--grow"

# Shrinks a filter that was planned for a little more than 2, 10, and 60 times its keys.  Its
# bytes count, not those of what it becomes.  What 'cat' writes goes nowhere; 'cp' makes a copy,
# as large as the filter.
shrink_row() {
    local label=$1 what=$2
    shift 2
    for ((i = 0; i < repeat; i++)); do run "$@"; done | sort -n >"$folder/runs"
    read -r seconds kib <"$folder/runs"
    awk -v label="$label" -v what="$what" -v seconds="$seconds" -v kib="$kib" \
        -v nbytes="$(wc -c <"$memory/large")" 'BEGIN {
            if (seconds <= 0) seconds = 0.005
            printf "%-16s %-16s %8.2f %8.2f %10s\n", label, what, seconds,
                nbytes / seconds / 1e9, kib == "-" ? "" : sprintf("%.1f", kib / 1024)
        }'
}
memory=$folder
if [ -w /dev/shm ]; then
    memory=$(mktemp -d /dev/shm/perhaps-bench.XXXXXX)
    trap 'rm -rf "$folder" "$memory"' EXIT
fi
echo
echo "a filter of $((lines * 40)) keys at most, made smaller; GB/s of it, best of $repeat runs"
printf '%-16s %-16s %8s %8s %10s\n' command output seconds GB/s "peak MiB"
for share in 2 10 60; do
    seq 10000000000000000001 "$(printf '1%019d' $((lines * 39 / share)))" |
        perhaps build -q -n $((lines * 40)) -o "$memory/large"
    shrink_row "shrink to 1/$share" memory perhaps shrink -q "$memory/large" -o "$memory/small"
    shrink_row "shrink to 1/$share" disk perhaps shrink -q "$memory/large" -o "$folder/small"
done
shrink_row cat nowhere cat "$memory/large"
shrink_row cp memory cp "$memory/large" "$memory/small"
rm -f "$keys.different" "$memory"/large "$memory"/small
[ -n "$peers" ] || exit 0
once=1
row "sort -u" sort -u "$keys"
if type -P mawk >/dev/null; then
    # shellcheck disable=SC2016
    row "mawk '!s[\$0]++'" mawk '!s[$0]++' "$keys"
else
    echo "mawk is not installed"
fi
if [[ $(bloom help 2>/dev/null || true) != *"bloom filters"* ]]; then
    echo "bloom (DCSO) is not installed (Debian: golang-github-dcso-bloom-cli)"
    exit 0
fi

# The tool of DCSO gets the same numbers as perhaps: as many keys, 1 %.  Two of its commands do
# the work of one of perhaps, so a shell runs them, which needs the functions exported.
make_bloom() { rm -f "$filter.dcso" && bloom create -p 0.01 -n $((lines / 2)) "$filter.dcso"; }
build_bloom() { make_bloom && bloom insert "$filter.dcso" <"$keys"; }
query_bloom() { bloom check "$filter.dcso" <"$keys"; }
export -f make_bloom build_bloom query_bloom
export filter keys lines
row "perhaps build -p 1% -n" perhaps build -q -p 0.01 -n $((lines / 2)) -o "$filter" "$keys"
row "bloom create, insert" bash -c build_bloom
row "bloom check" bash -c query_bloom

# Prints how many of the lines that were added are not found, and how many others are found.
# The others are the same lines with a '-' before them: as many, and none of them was added.
error_row() {
    label=$1
    shift
    found=$("$@" <"$keys" | wc -l)
    wrong=$(sed 's/^/-/' "$keys" | sort -u | tee "$folder/absent" | "$@" | wc -l) || true
    awk -v label="$label" -v lost=$((lines - found)) -v wrong="$wrong" \
        -v asked="$(wc -l <"$folder/absent")" 'BEGIN {
            printf "%s at 1 %%: %.4f %% of %d absent lines found, %d of those present not\n",
                label, 100 * wrong / asked, asked, lost }'
}
error_row perhaps perhaps query "$filter"
error_row "bloom (DCSO)" bloom check "$filter.dcso"
