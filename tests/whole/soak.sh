#!/usr/bin/env bash
# A long run: that nothing acknowledged is lost, and nothing leaks, over hours.
# soak.sh BUILD [HOURS [SEED]]
#
# Side by side, about one core in all:
#   grow, window  'perhaps dedup --durable' on endless streams, ended by kill -9 and otherwise
#                 again and again; a model knows each line (soak_dedup.c)
#   held          a process that holds live files open, and one that reads them: no key is
#                 denied, and open files, threads and memory stay as they are (soak_held.c)
#   kills         kill -9 of writers of all kinds (kills.c), in portions with fresh seeds
#   cluster       faults on a cluster (cluster_stress.sh), five minutes of twenty; not in runs
#                 of less than two minutes, or where no servers are installed
#
# Prints a line every minute, and a summary at the end.  Each run draws another seed, unless
# one is given or PERHAPS_TEST_SEED is set.  At the first thing that is wrong it says what,
# keeps all files and ends with status 1.
set -euo pipefail

build=$(realpath "${1:?usage: soak.sh BUILD [HOURS [SEED]]}")
hours=${2:-2}
here=$(dirname "$(realpath "$0")")
total=$(awk -v hours="$hours" 'BEGIN { print int(hours * 3600) }')
[ "$total" -gt 0 ] || { echo "soak.sh: HOURS is a number such as 2 or 0.1" >&2; exit 2; }
seed=${PERHAPS_TEST_SEED:-${3:-fresh}}
[ "$seed" != fresh ] || seed=$SRANDOM
unset PERHAPS_TEST_SEED
echo "PERHAPS_TEST_SEED=$seed"

folder=$(mktemp -d)
export TMPDIR=$folder
conductor=$$
SECONDS=0
declare -A pid_of status_of

# ---- The parts -------------------------------------------------------------------------------

# draw_seeds NAME: $RANDOM is another stream in each part, which follows from the seed.
draw_seeds() { RANDOM=$(($(printf '%s' "$seed$1" | cksum | cut -d ' ' -f 1) % 32768)); }
next_seed() { next=$((RANDOM << 15 | RANDOM)); }
goes_on() { [ $((SECONDS + ${1:-0})) -lt "$total" ] && kill -0 $conductor 2>/dev/null; }

tell() { echo "$2" >"$folder/$1.new" && mv "$folder/$1.new" "$folder/$1.now"; }

kills_part() {
    local portions=0 cycles=0 portion=100 before
    [ "$total" -ge 120 ] || portion=20
    draw_seeds kills
    while goes_on; do
        next_seed
        before=$SECONDS
        if ! "$build/tests/kills" $portion $next >"$folder/kills.out" 2>&1; then
            echo "WRONG: kills $portion $next"
            cat "$folder/kills.out"
            exit 1
        fi
        portions=$((portions + 1)) cycles=$((cycles + portion))
        tell kills "$cycles cycles"
        goes_on || break
        sleep $((SECONDS - before + 1))
    done
    echo "kills         $cycles cycles in $portions runs, each with another seed; nothing lost"
}

# asked WORD FILE...: the sum of the numbers behind WORD in what the clients saw.
asked() {
    awk -v word="$1" '/^(masters|replicas) asked/ {
        gsub(/[{}",:]/, " ") # JSON
        for (i = 3; i < NF; i++)
            if ($i == word) sum += $(i + 1)
    } END { print sum + 0 }' "${@:2}"
}

cluster_part() {
    local portions=0 status turn=1200 seconds=100 all
    # besides its two runs it kills five masters
    [ "$total" -ge 1800 ] || seconds=15
    draw_seeds cluster
    while goes_on $((2 * seconds + 60)); do
        next_seed
        status=0
        PERHAPS_TEST_SEED=$next bash "$here/../cluster/cluster_stress.sh" "$build/tests/cluster_driver" \
            $seconds >"$folder/cluster.$portions.out" 2>&1 || status=$?
        if [ $status -eq 77 ]; then
            echo "cluster       left out: no servers are installed"
            exit 0
        elif [ $status -ne 0 ]; then
            echo "WRONG: cluster_stress.sh ended with status $status, PERHAPS_TEST_SEED=$next"
            cat "$folder/cluster.$portions.out"
            exit 1
        fi
        portions=$((portions + 1))
        tell cluster "$portions runs"
        while goes_on && [ $SECONDS -lt $((turn * portions)) ]; do sleep 1; done
    done
    all=("$folder"/cluster.*.out)
    echo "cluster       $portions runs of $seconds s twice and five killed masters:" \
        "$(asked acknowledged "${all[@]}") keys acknowledged," \
        "$(asked asked "${all[@]}") questions, $(asked denied "${all[@]}") denied"
    grep -h '^faults' "${all[@]}" | awk '{ for (i = 2; i < NF; i += 2) n[$i] += $(i + 1) }
        END { printf "              faults:"; for (f in n) printf " %s %d", f, n[f]; print "" }'
}

soak_part() { exec "$build/tests/soak" "$@"; }

# ---- The conductor ---------------------------------------------------------------------------

# begin NAME COMMAND...: a part, in a group of processes of its own.
begin() {
    local name=$1
    shift
    set -m
    ("$@") >"$folder/$name.log" 2>&1 </dev/null &
    pid_of[$name]=$!
    set +m
    renice -n 5 -g "${pid_of[$name]}" >/dev/null 2>&1 || true
}

runs() { [ -z "${status_of[$1]:-}" ] && kill -0 "${pid_of[$1]}" 2>/dev/null; }

# Notes the status of a part that has ended.
note_end() {
    local status=0
    [ -z "${status_of[$1]:-}" ] || return 0
    wait "${pid_of[$1]}" || status=$?
    status_of[$1]=$status
}

# The programs end their children, and print what they did; the loops end with all their group.
stop_parts() {
    local name end
    for name in "${!pid_of[@]}"; do
        runs "$name" || continue
        case $name in
        kills | cluster) kill -TERM -- "-${pid_of[$name]}" 2>/dev/null || true ;;
        *) kill -TERM "${pid_of[$name]}" 2>/dev/null || true ;;
        esac
    done
    end=$((SECONDS + 30))
    while any_runs && [ $SECONDS -lt $end ]; do sleep 0.1; done
    for name in "${!pid_of[@]}"; do
        kill -KILL -- "-${pid_of[$name]}" 2>/dev/null || true
    done
}

any_runs() {
    local name
    for name in "${!pid_of[@]}"; do
        if runs "$name"; then return 0; fi
    done
    return 1
}

progress() {
    local name line
    line="$((SECONDS / 60)) min of $((total / 60)):"
    for name in grow window held kills cluster; do
        [ ! -e "$folder/$name.now" ] || line="$line  $name: $(cat "$folder/$name.now");"
    done
    echo "${line%;}"
}

summary() {
    local name
    echo
    echo "    soak of $((SECONDS / 60)) min $((SECONDS % 60)) s, PERHAPS_TEST_SEED=$seed"
    for name in grow window held kills cluster; do
        [ -n "${pid_of[$name]:-}" ] || continue
        if [ -s "$folder/$name.log" ]; then
            sed 's/^/    /' "$folder/$name.log"
        else
            echo "    $name  stopped; $(cat "$folder/$name.now" 2>/dev/null || echo nothing)"
        fi
    done
}

interrupted=
trap interrupted=1 INT TERM HUP
trap stop_parts EXIT

begin grow soak_part grow "$build/bin/perhaps" "$folder" "$seed" "$total"
begin window soak_part window "$build/bin/perhaps" "$folder" "$seed" "$total"
begin held soak_part held "$folder" "$seed" "$total"
begin kills kills_part
if [ "$total" -ge 120 ] && [ -x "$build/tests/cluster_driver" ]; then
    begin cluster cluster_part
fi

wrong=
shown=0
while any_runs && [ -z "$interrupted$wrong" ]; do
    sleep 1 || true
    for name in "${!pid_of[@]}"; do
        runs "$name" || note_end "$name"
        if [ "${status_of[$name]:-0}" -ne 0 ]; then
            wrong="$name ended with status ${status_of[$name]}"
        fi
    done
    [ $SECONDS -lt $((total + 900)) ] || wrong="a part does not end"
    if [ $((SECONDS - shown)) -ge 60 ]; then
        shown=$SECONDS
        progress
    fi
done
stop_parts
for name in "${!pid_of[@]}"; do
    note_end "$name"
    if [ -z "$interrupted$wrong" ] && [ "${status_of[$name]}" -ne 0 ]; then
        wrong="$name ended with status ${status_of[$name]}"
    fi
done
if grep -q '^WRONG' "$folder"/*.log; then wrong=${wrong:-see above}; fi
trap - EXIT
summary
if [ -n "$wrong" ]; then
    echo "WRONG: $wrong; all files are in $folder"
    exit 1
fi
rm -rf "$folder"
[ -z "$interrupted" ] || { echo "    interrupted"; exit 130; }
echo "    nothing was wrong"
