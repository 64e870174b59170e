#!/bin/bash
# End-to-end tests of the verbs compare and intersect:  cli_compare_test.sh PROGRAM
. "$(dirname "$0")/../support/cli_helpers.sh"

# make NAME SEQ-ARGUMENTS OPTION...: builds a filter of numbers with a known seed.
make() { run build -q --seed 5 -n 2500 -p 1e-4 "${@:3}" -o "$1" <(seq $2); }

# near NUMBER NAME [SLACK]: the number of the JSON that was printed is so many, but for six
# standard errors and this slack.
near() {
    local value error
    value=$(field "$2" out) error=$(field "$2_error" out)
    check "$2 $value +- $error is near $1" awk -v v="$value" -v e="$error" -v t="$1" \
        -v s="${3:-2}" 'BEGIN { d = v - t; exit !((d < 0 ? -d : d) <= 6 * e + s) }'
}

# Two sets of 2,000 and 1,500 numbers, of which 500 are in both.
test_compare() {
    make a "1 2000"
    make b "1501 3000"
    for kind in blocked bloom counting cuckoo; do
        make a "1 2000" --kind $kind
        make b "1501 3000" --kind $kind
        works compare --json a b
        check "$kind: one line" lines out 1
        near 2000 keys_a
        near 1500 keys_b
        near 3000 keys_either
        near 500 keys_both
        near 0.25 a_in_b 0.01
        near 0.3333 b_in_a 0.01
        near 0.16667 jaccard 0.01
    done
    shows '^keys of A +[12],[0-9]{3} \+- [0-9]+$' compare a b
    check "a share" tells '^share of A in B +2[0-9](\.[0-9]+)? % \+- [0-9.]+ %$'
    check "a similarity" tells '^Jaccard +0\.1[0-9]+ \+- 0\.[0-9]+$'
    shows '^share of A in B +100 % \+- 0 %$' compare a a
    keeps a works compare a b
}

# Filters that differ in size only are read as smaller ones.  If all bits would be set in these,
# they are refused.
test_compare_sizes() {
    run build -q --seed 5 -n 150000 -o a <(seq 1 100000)
    run build -q --seed 5 -n 300000 -o large <(seq 50001 150000)
    works compare --json a large
    near 50000 keys_both
    alike sizes compare --json a large
    run build -q --seed 5 -n 1234567 -o other <(seq 50001 150000)
    refuses "other: differs from a (capacity 1234567 and 150000): build both" compare a other
}

# A set of integers is exact.
test_compare_integers() {
    for name in "a 1 600" "b 401 1000"; do
        set -- $name
        run build -q --integers 1-1000 -o "$1" <(seq "$2" "$3")
    done
    tells_json "keys_a keys_b keys_both keys_both_error" "600.0 600.0 200.0 0.0" compare --json a b
    shows '^in A and B +200 \+- 0$' compare a b
    reports "2 filters into c: 200 keys" merge --common -o c a b
    writes $'401\n600\n' query c <(printf '%s\n' 400 401 600 601)
}

# Nothing in common with nothing.
test_compare_nothing() {
    run build -q --seed 5 -n 10 -o a keys
    run build -q --seed 5 -n 10 -o none empty
    shows '^keys of B +0 \+- 0$' compare a none
    check "nothing in common" tells '^in A and B +0 \+- 0$' '^Jaccard +0 \+- 0$'
    works compare --json none none
    near 0 keys_either 0
}

test_compare_refusals() {
    make a "1 100"
    make b "1 100"
    refuses "which two filters" compare a
    refuses "which two filters" compare a b b
    refuses "which filter" compare
    refuses "missing: No such file" compare a missing
    refuses "keys: not a filter file" compare a keys
    refuses "not what lies on servers" compare a redis://127.0.0.1:1/x
    refuses "on filters in files only" compare redis://127.0.0.1:1/x a
    run build -q --seed 6 -n 2500 -p 1e-4 -o b keys
    refuses "b: differs from a (seed 6 and 5): build both with the same options" compare a b
    make b "1 100" --kind cuckoo
    refuses "b: differs from a (kind cuckoo and blocked): build both" compare a b
    for options in "--kind chain" "--kind elastic" --static; do
        run build -q --seed 5 -n 2500 $options -o b keys
        refuses "filters that grow, age, or are built once cannot be compared" compare b b
    done
    refuses "no such option" compare -o c a a
}

# What all have is there, and little else; the rate is not higher than before.
test_merge_common() {
    local rate
    make a "1 2000"
    make b "1001 2500"
    make c "1401 3000"
    run info --json a
    rate=$(field fpr_now out)
    reports "3 filters into d: at most about" merge --common -o d a b c
    check "tells the rate" says ", a rate of "
    writes $'600\n' query -c d <(seq 1401 2000)
    counts -le 20 query -c d <(seq 1400) <(seq 2001 5000)
    run merge --common --json -o d a b c
    check "rate" awk -v now="$(field fpr_now err)" -v was="$rate" 'BEGIN { exit !(now <= was) }'
    works merge --common -q -o a a b
    writes $'1000\n' query -c a <(seq 1001 2000)
    check "takes keys" works add a <(seq 5000 5100)
    for kind in bloom counting cuckoo; do
        make a "1 2000" --kind $kind
        make b "1001 2500" --kind $kind
        works merge --common -o d a b
        writes $'1000\n' query -c d <(seq 1001 2000)
        counts -le 20 query -c d <(seq 1000)
    done
}

test_merge_common_refusals() {
    make a "1 100"
    cp a b
    refuses "give -o F" merge --common a b
    refuses "which filters" merge --common -o d
    refuses "writes files only" merge --common -o redis://127.0.0.1:1/x a b
    refuses "not what lies on servers" merge --common -o d a redis://127.0.0.1:1/x
    run build -q --seed 6 -n 2500 -p 1e-4 -o b keys
    refuses "b: differs from a (seed 6 and 5): build both with the same" merge --common -o d a b
    for options in "--kind chain" "--kind elastic" --static; do
        run build -q --seed 5 -n 2500 $options -o b keys
        refuses "cannot be put together without the keys" merge --common -o d b b
    done
    check "nothing was saved" [ ! -e d ]
    keeps keys refuses "keys: exists and is not a filter" merge --common -o keys a a
}

run_tests
