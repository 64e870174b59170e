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
    run dedup --state s -n 1000 -p 1e-12 --kind elastic --hash none --grow --fast keys
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
    run dedup --state w --window 1h -p 1e-12 keys
    check "window: ignored" says "ignored: -p"
}

# Two first runs: the second is told so, as one beside a later run is.
test_two_first_runs() {
    local first verb
    mkfifo slow
    for verb in "dedup --state new keys" "build -o new keys" "create new -n 5"; do
        exec 5<>slow
        : >first_out
        "$program" dedup --state new <slow >first_out 2>first_err 5<&- &
        first=$!
        echo a >&5
        check "$verb: the first has begun" until_true lines first_out 1
        run $verb
        refused "$verb: beside a first run" "new: another process is changing it: try again later"
        exec 5>&-
        wait $first
        check "$verb: the first run is kept" [ "$("$program" dedup --state new <first_out 2>err)" = "" ]
        check "$verb: no lock is left" no_litter
        rm new
    done
}

# It has what the first has made then, and its errors say so.
test_waiting_for_a_first_run() {
    local waiter
    mkfifo slow
    exec 5<>slow
    "$program" build -n 20 -o new slow 2>first_err 5<&- &
    until_true [ -e .new.lock ]
    until_true reads $! slow
    "$program" build -n 5 --wait 60 -o new keys 2>err 5<&- &
    waiter=$!
    check "the second waits" until_true reads $waiter .new.lock
    seq 3 >&5
    exec 5>&-
    wait $waiter
    status=$?
    refused "the second fails" "full"
    check "the second fails: what the first made stays" says "; new is unchanged"
    run query -c new <(seq 3)
    check "what the first made" prints $'3\n'
}

# What somebody else puts in the place meanwhile, without a lock, stays.
test_made_meanwhile() {
    local verb
    run build -n 100 -o other keys
    mkfifo slow
    for verb in "build -n 100 -o new" "dedup -n 100 --state new"; do
        exec 5<>slow
        "$program" $verb slow >out 2>err 5<&- &
        check "$verb: has begun" until_true [ -e .new.lock ]
        check "$verb: reads" until_true reads $! slow
        cp other new
        seq 5 >&5
        exec 5>&-
        wait $!
        status=$?
        refused "$verb: made meanwhile" "new: another process has made it meanwhile"
        check "$verb: stays" same new other
        check "$verb: no temporary files" no_litter
        rm new
    done
}

# Nobody reads on: the lock goes, too.
test_closed_pipe_leaves_no_lock() {
    seq 100000 >in
    "$program" dedup --state new in 2>err | head -1 >out
    status=${PIPESTATUS[0]}
    check "closed pipe" exits 141
    check "closed pipe: no lock is left" no_litter
    check "closed pipe: nothing is remembered" [ ! -e new ]
}

# ---- Outputs -------------------------------------------------------------------------

test_output_is_no_filter() {
    echo important >notes.txt
    run build -o f keys
    for verb in "build -o notes.txt keys" "merge -o notes.txt f f"; do
        run $verb
        refused "$verb" "notes.txt: is there and no filter: give another name, or --force to replace it"
        check "$verb: it stays" [ "$(cat notes.txt)" = important ]
    done
    run build -o notes.txt --force keys
    check "--force" exits 0
    run build -o notes.txt keys
    check "a filter is replaced" exits 0
    head -c 70000 notes.txt >damaged
    run build -o damaged keys
    check "a damaged filter is replaced" exits 0
    : >hollow
    run build -o hollow keys
    check "an empty file is replaced" exits 0
}

test_standard_output() {
    "$program" build --seed 1 -n 100 -o - keys 2>err | cat >piped
    check "-o -: summary" says "10 keys into standard output: "
    run build --seed 1 -n 100 -o f keys
    check "-o -: the same filter" same piped f
    check "-o -: no file is called so" [ ! -e ./- ]
    { echo before; "$program" merge -o - f; } >both 2>err
    check "-o -: behind what is there" cmp -s <(echo before; cat f) both
    "$program" build -n 5 -o - keys 2>err >>keys
    status=$?
    refused "-o -: into its input" "standard output: is an input, too"
    if [ -e /dev/full ]; then
        "$program" build -n 100 -o - keys 2>err >/dev/full
        status=$?
        refused "-o -: full disk" "standard output: No space left on device; what was written there is no filter"
    fi
    if command -v script >/dev/null; then
        script -qec "'$program' build -n 100 -o - keys" typescript >err </dev/null
        check "-o -: a terminal" says "standard output is a terminal"
    fi
}

test_links_to_nothing() {
    mkdir links targets
    ln -s ../targets/f links/f
    run build -o links/f keys
    check "a link to nothing" exits 0
    check "a link to nothing: stays" [ -L links/f ]
    check "a link to nothing: what it names is made" [ -s targets/f ]
    ln -s ../targets/s links/s
    run dedup --state links/s keys
    check "a link to nothing: as a state" [ -s targets/s ]
    ln -s missing/f links/nowhere
    run build -o links/nowhere keys
    refused "a link to no folder" "links/nowhere: cannot be written: No such file or directory"
    check "no lock is left" [ "$(ls -A links targets | wc -w)" = 7 ]
}

test_new_key_file() {
    run build --key-file key --hash none -o f keys
    refused "no such build" "leave out --key-file"
    run build --key-file key -n 3 -o f keys
    refused "a build that fails" "full"
    check "a build that fails: leaves no key file" [ ! -e key ]
    run build --key-file key -o f keys missing
    check "no input: leaves no key file" [ ! -e key ]
    interrupted INT 0 build --key-file key -n 100 -o f
    check "interrupted: leaves no key file" [ ! -e key ]
    run build --key-file missing/key -o f keys
    refused "no folder for it" "missing/key: cannot be made: No such file or directory"
    ln -s nothing link
    run build --key-file link -o f keys
    refused "a link to nothing" "link: is a link to nothing"
    if [ -e /dev/full ]; then
        run build --key-file key -o /dev/full keys
        refused "it cannot be saved" "/dev/full: No space left"
        check "it cannot be saved: leaves no key file" [ ! -e key ]
    fi
    run build --key-file key -o f keys
    run query -c --key-file key f keys
    check "and then it works" prints $'10\n'
}

test_seeds() {
    local seed
    for seed in 18446744073709551616 0x10000000000000000 99999999999999999999 0x 1e3 010x "" 00; do
        refuses "--seed $seed: not a seed: give a number from 1 to 2^64-1" build --seed "$seed" -n 9 -o f keys
    done
    run build --seed 010 -n 100 -o eight keys
    run build --seed 10 -n 100 -o ten keys
    check "a leading zero: is decimal" same eight ten
    run build --seed 0xa -n 100 -o hex keys
    check "hexadecimal" same hex ten
    run build --seed 18446744073709551615 -n 100 -o f keys
    check "the largest" exits 0
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
        run build --seed 1 -p 1e-12 --count $options -o f in
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

# ---- Numbers -------------------------------------------------------------------------

test_keys_are_an_estimate() {
    local keys counted
    seq 156909 >in
    run build --seed 1 -n 160k -o f in
    run add -q f <(echo one)
    run info f
    check "info: about" tells "^keys +about 156,[89][0-9]{2} different ones \\(156,[0-9]{3} of them set a bit\\)\$"
    run info --json f
    keys=$(field keys_estimated out) counted=$(field keys out)
    check "info --json" [ $((keys - 156910)) -ge -100 -a $((keys - 156910)) -le 100 ]
    check "info --json: counted" [ "$counted" -lt "$keys" ]
    run build --kind cuckoo -n 160k -o g in
    run info g
    check "info: exact" tells "^keys +156,909\$"
    run merge -o h f f
    check "merge: about" says "2 filters into h: about 15"
    run merge -o h f
    check "merge: one" says "1 filter into h: about 15"
}

test_one_of_a_thing() {
    run build -n 1 -o f < <(echo a)
    check "1 key" says "1 key into f: "
    check "1 key: no speed" not says "keys/s"
    run build -n 1000 --removable -o f < <(echo a)
    check "room" says ", room for 999 keys more, "
    check "most of it is empty" not says "bits a key"
    run remove f < <(seq 2)
    check "2 were not in it" says "0 keys removed from f, 2 were not in it"
    run create g -n 1
    check "create: 1 key" says "g made, for 1 key: "
    run dedup < <(echo a)
    check "1 line" says "1 line, 1 new, 0 repeated"
    run build -n 20000 -o f < <(seq 20000)
    check "many: speed" says " keys/s"
}

test_times_have_units() {
    local window
    for window in 24h 7d 90m 1500ms 36h; do
        run dedup --window $window --state "s$window" keys
        run dedup --window 5h --state "s$window" keys
        refused "--window" "is a window of $window in 5 generations"
    done
    run plan --window 24h
    check "plan: period" tells "^period time +6h\$"
    check "plan: no period of keys" not tells "^period keys"
    run plan --window 24h --json
    check "plan --json: period in ms" [ "$(field period_time out)" = 21600000 ]
    run plan -n 1000
    check "plan: what it has not" not tells "^together"
    run plan -n 1000 --json
    check "plan --json: what it has not" tells '"together":0'
    run plan --grow --kind chain --compact
    check "plan: preference" tells "^preference +compact\$"
}

# bits RATE: what the plan for it takes.
bits() { "$program" plan -n 1M -p "$1" --json | sed 's/.*"body_bytes":[0-9]*,"bits_per_key":\([0-9.]*\).*/\1/'; }

# Wherever a rate that is stricter by a tenth takes less, plan says so; and what it says is true.
test_cheaper_rates() {
    local rate wanted stricter
    for rate in 0.01 5e-3 2e-3 1e-3 5e-4 1e-4 1e-5 1e-6 1e-7; do
        wanted=$(awk -v a="$(bits $rate)" -v b="$(bits "$(awk -v p=$rate 'BEGIN { print p * .9 }')")" \
            'BEGIN { print b < .99 * a }')
        run plan -n 1M -p $rate
        check "$rate: at most one line" [ "$(grep -c '^cheaper' out)" -ge "$wanted" -a "$(grep -c '^cheaper' out)" -le 1 ]
        run plan -n 1M -p $rate --json
        stricter=$(sed -n 's/.*"cheaper":{"fpr":\([-0-9.e]*\).*/\1/p' out)
        [ -n "$stricter" ] || continue
        check "$rate: it is cheaper" [ "$(awk -v a="$(bits $rate)" -v b="$(bits "$stricter")" \
            -v p=$rate -v q="$stricter" 'BEGIN { print b < a && q < p }')" = 1 ]
    done
}

test_static() {
    run plan -n 1000 --static
    check "--static: says that it does nothing" tells "^notes +--static changes nothing"
    run plan --help-all
    check "--static: its help says so" tells "static .*all keys are known at once: changes"
}

run_tests
