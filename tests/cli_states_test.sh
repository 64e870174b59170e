#!/usr/bin/env bash
# End-to-end tests of what the command line keeps: states, outputs, counts; and of the numbers
# that it tells.  cli_states_test.sh PROGRAM, as cli_test.sh.
. "$(dirname "$0")/cli_helpers.sh"

# ---- States --------------------------------------------------------------------------

# What comes on later days is not known on the first.
test_a_state_grows() {
    printf 0123456789abcdef >secret # no line is lost by chance
    seq 1000 >day1
    seq 501 20000 >day2
    seq 1001 20000 >new
    run dedup --key-file secret --state file day1
    check "first day" same out day1
    run dedup --key-file secret --state file day2
    check "second day" exits 0
    check "second day: the new ones" same out new
    run dedup --key-file secret --state pipe < <(cat day1)
    run dedup --key-file secret --state pipe < <(cat day2)
    check "by a pipe: the new ones" same out new
    run dedup --state one --kind blocked day1
    refused "a kind that does not grow" "--state: is for lines that are still to come, too, and --kind blocked"
    check "a kind that does not grow: says how" says "such as -n 10M"
    run dedup --state planned -n 100 keys
    run dedup --state planned day2
    check "planned: full" says "full: make it anew with a larger -n or with --grow"
}

test_ignored_options() {
    run dedup --state s -n 500 -p 1e-5 keys
    check "new: nothing to say" lines err 1
    run dedup --state s -n 500 -p 1e-5 keys
    check "as it was made: nothing to say" lines err 1
    run dedup --state s -n 1000 -p 1e-9 --kind elastic --hash none --grow --fast keys
    check "ignored" says "s: is there already and stays as it was made: ignored: -n, -p, --kind, --grow, --fast, --hash"
    check "ignored: one line" lines err 2
    run dedup --state s -n 1000 -q keys
    check "ignored: -q" is_silent
    run dedup --state grown --grow --factor 3 keys
    run dedup --state grown --grow --factor 3 keys
    check "grows, as asked" not says "ignored"
    run dedup --state grown --factor 2 keys
    check "another factor" says "ignored: --factor"
    run dedup --state w --window 1h keys
    run dedup --state w --window 1h -p 1e-9 keys
    check "window: ignored" says "ignored: -p"
}

# ---- Building ------------------------------------------------------------------------

test_build_leaves_room() {
    seq 10000 >in
    run build -o f in
    run add f <(seq 10001 12000)
    check "add to what was made of a file" exits 0
    run query -c f <(seq 12000)
    check "add to what was made of a file: all are in" prints $'12000\n'
    run build -o f keys
    run add f <(seq 500)
    check "add to what was made of a few lines" exits 0
    run build -n 10 -o f keys
    run add f in
    refused "full" "full: make it anew with a larger -n or with --grow"
}

# ---- Counting ------------------------------------------------------------------------

test_count_goes_on() {
    local options
    { yes many | head -40; seq 8; seq 8; echo once; } >in
    { yes fourteen | head -14; yes fifteen | head -15; } >>in
    for options in "" "-n 100" "--grow -n 5" "--removable" "-p 1e-12"; do
        run build --count $options -o f in
        check "--count $options: no copy is refused" exits 0
        run add f in
        check "--count $options: add: no copy is refused" exits 0
        run build --seed 1 -p 1e-9 --count $options -o f in
        run count f <(printf '%s\n' many 8 once fourteen fifteen none)
        check "--count $options" [ "$(cut -f2 out | paste -sd' ')" = "15+ 2 1 14 15+ 0" ]
    done
    run build --count -o f < <(cat in)
    check "--count of a pipe: no copy is refused" exits 0
    run build --seed 1 --removable --count -n 100 -o f in
    run remove f <(echo 8)
    run count f <(echo 8)
    check "--removable --count: removed" prints $'8\t1\n'
    run build --count --kind cuckoo -o f in
    refused "a kind that refuses copies" "leave out --kind and --base"
    run plan --count -n 1000 --json
    check "plan --count: what build makes" tells '^\{"kind":"counting"'
    yes same | head -100000 >in
    run build --count -o f in
    check "--count: copies take no room" [ "$(stat -c %s f)" -lt 100000 ]
}

run_tests
