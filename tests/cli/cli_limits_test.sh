#!/bin/bash
# End-to-end tests of the command line in processes that may take little memory:
# cli_limits_test.sh PROGRAM
. "$(dirname "$0")/../support/cli_helpers.sh"

# A sanitizer takes more addresses than these before the program begins.
if ! (ulimit -v 100000 && "$program" help) >/dev/null 2>&1; then
    echo "cannot limit the addresses of this program"
    exit 77
fi

# within LIMIT COMMAND...: runs the program as run() does, under 'ulimit LIMIT'.
within() {
    # shellcheck disable=SC2086
    (ulimit $1 && "$program" "${@:2}") >out 2>err
    status=$?
}

# Keys that do not fit in the memory go to the disk, and the filter is the same.
test_build() {
    local limit j
    seq 1500000 >in
    works build -q --seed 1 -o sized < <(cat in)
    works build -q --static --kind ribbon --seed 1 -o ribbon in
    for limit in '-v 60000' '-d 50000'; do
        for j in '' -j1 -j64; do
            # shellcheck disable=SC2086
            within "$limit" build --seed 1 $j -o f < <(cat in)
            check "sized: $limit $j" exits 0
            check "sized: $limit $j: same" same f sized
            check "sized: $limit $j: spills" says "and go to"
            # shellcheck disable=SC2086
            within "$limit" build -q --static --kind ribbon --seed 1 $j -o f in
            check "ribbon: $limit $j" exits 0
            check "ribbon: $limit $j: same" same f ribbon
        done
    done
}

# What reads keys takes fewer threads where there is no memory for so many.
test_threads() {
    local j verb
    seq 300000 >in
    works build -q -n 300k -o f in
    for verb in --exact --unique; do
        run dedup -q $verb -j1 in keys
        cp out "wanted $verb"
    done
    for j in '' -j2 -j64; do
        # shellcheck disable=SC2086
        {
            within '-v 60000' query -q $j f in
            check "query $j" exits 0
            within '-v 60000' dedup $j -q in in
            check "dedup $j" exits 0
            within '-v 60000' dedup -q --count-each --memory 10M $j in
            check "dedup --count-each $j" exits 0
            for verb in --exact --unique; do
                within '-v 60000' dedup -q $verb $j in keys
                check "dedup $verb $j" same out "wanted $verb"
            done
        }
    done
}

# However little there is: the filter is right, or one line tells that there is no memory, and how
# much there is.
test_least() {
    local kib answers=0 refusals=0
    seq 600000 >in
    works build -q --seed 1 -o wanted < <(cat in)
    for kib in $(seq 8000 1000 36000); do
        rm -f f
        within "-v $kib" build -q --seed 1 -o f < <(cat in)
        case $status in
        0) check "-v $kib: right" same f wanted && answers=$((answers + 1)) ;;
        2)
            refused "-v $kib" "out of memory: this process can take only "
            if grep -q 'is saved, but cannot be opened' err; then
                check "-v $kib: right" same f wanted
            else
                check "-v $kib: no filter" not test -e f
            fi
            refusals=$((refusals + 1))
            ;;
        *) check "-v $kib: the program does not begin" not grep -q '^perhaps: ' err f ;;
        esac
    done
    check "$answers right, $refusals refused" [ "$answers" -gt 0 -a "$refusals" -gt 0 ]
}

test_messages() {
    within '-v 100000' create -n 1G f
    refused "create" "f: it takes 1.24 GB: out of memory: this process can take only "
    check "says how" says "raise its limits (ulimit -v, ulimit -d, control group)"
    within '-v 100000' dedup -q < <(head -c 200M /dev/zero)
    refused "a long line" "standard input: a line is longer than the memory has room for: see --delimiter"
    check "nothing is left" no_litter
}

run_tests
