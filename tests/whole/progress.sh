#!/bin/bash
# progress.sh FOLDER CTEST_ARGUMENT...: runs ctest in a build folder and tells how far it is and
# about how long it will take.  What fails or is skipped is printed as ctest prints it.  The exit
# status is ctest's.
set -u
folder=$1
shift
export LC_ALL=C

# How long each test took earlier, in milliseconds, where ctest has noted it.
declare -A cost
while read -r name _ seconds; do
    [ "$name" != --- ] || break
    cost[$name]=$(printf '%.0f' "${seconds}e3")
done < <(cat "$folder/Testing/Temporary/CTestCostData.txt" 2>/dev/null)

# A test that nobody has timed yet counts as much as the others on average.
known=0 sum=0 ntests=0 total=0 names=()
while read -r _ _ name; do
    names+=("$name")
    [ -z "${cost[$name]:-}" ] || sum=$((sum + cost[$name])) known=$((known + 1))
done < <(ctest --test-dir "$folder" -N "$@" | grep '^ *Test *#')
average=$((known ? sum / known : 1))
for name in "${names[@]}"; do
    total=$((total + ${cost[$name]:=$average})) ntests=$((ntests + 1))
done

span() { # SECONDS
    if [ "$1" -lt 90 ]; then echo "$1 s"; else echo "$((($1 + 30) / 60)) min"; fi
}

clear_line() { [ ! -t 1 ] || printf '\r\033[K'; }

ndone=0 nfailed=0 done_cost=0 told=0
SECONDS=0
show_progress() {
    local left=$((done_cost ? SECONDS * (total - done_cost) / done_cost : 0)) words
    words="$ndone of $ntests tests, $nfailed failed, about $(span "$left") left"
    if [ -t 1 ]; then
        printf '\r\033[K%s ' "$words"
    elif [ $((SECONDS - told)) -ge 10 ]; then
        echo "$words"
        told=$SECONDS
    fi
}

status_file=$(mktemp)
trap 'rm -f "$status_file"' EXIT
{
    ctest --test-dir "$folder" --output-on-failure "$@" 2>&1
    echo $? >"$status_file"
} | {
    while IFS= read -r line; do
        case $line in
        *' Start '*: | *' Start '*': '* | 'Test project '* | 'Internal ctest changing'*) ;;
        *[0-9]/[0-9]*' Test '*'#'*': '*)
            name=${line#*: }
            name=${name%% *}
            ndone=$((ndone + 1)) done_cost=$((done_cost + ${cost[$name]:-$average}))
            case $line in
            *' Passed '*) ;;
            *) clear_line && echo "${line#*: }" ;;
            esac
            case $line in
            *' Passed '* | *'***Skipped'*) ;;
            *) nfailed=$((nfailed + 1)) ;;
            esac
            show_progress ;;
        *) clear_line && echo "$line" ;;
        esac
    done
    clear_line
}
exit "$(cat "$status_file")"
