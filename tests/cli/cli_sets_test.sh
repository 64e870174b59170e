#!/usr/bin/env bash
# End-to-end tests of the command line for sets that grow, are counted, and age:
# cli_sets_test.sh PROGRAM, as cli_test.sh.
# Proves that inputs of unknown size fit (growth), that counts are right (--count), and that
# windows forget what is old and nothing else (--window).
. "$(dirname "$0")/../support/cli_helpers.sh"

# kinds OPTION...: prints the kinds that 'plan' recommends and lists for these options.
kinds() { "$program" plan -n 1000 --json "$@" | grep -o '"kind":"[a-z]*"' | sort -u | cut -d'"' -f4; }

# rows NAME: prints how many rows the table of that name in 'out' has, without its head.
rows() { sed "1,/^$1:\$/d" out | tail -n +2 | wc -l; }

above() { [ "$(awk -v a="$1" -v b="$2" 'BEGIN { print (a > b) }')" = 1 ]; }

# nearly A B: whether file A is file B without at most 5 lines.  Lines are lost as false
# positives; of 300,000 at a rate of 1e-6, that is less than one in most runs.
nearly() { [ "$(diff "$2" "$1" | grep -c '^<')" -le 5 ] && ! diff "$2" "$1" | grep -q '^>'; }

# ---- Growing -------------------------------------------------------------------------

# The size of a pipe is unknown.
test_pipes() {
    local j
    seq 300000 >in
    seq 300001 600000 >not_in
    for j in 1 8; do
        reports "300,000 keys into f: " build -j $j -o f < <(cat in)
        check "pipe: build -j $j: bits" says "bits a key"
        matches in query f in
        counts -le 3600 query -c f not_in # 1.2 % false positives
        run dedup -j $j < <(cat in in)
        check "pipe: dedup -j $j" nearly out in
        check "pipe: dedup -j $j: summary" says "600,000 lines, "
        run dedup -j $j -p 1e-9 < <(cat in in)
        check "pipe: dedup -j $j by a filter" nearly out in
        check "pipe: dedup -j $j by a filter: summary" says "600,000 lines, " "bits a key"
        run dedup -j $j --state s$j < <(cat in)
        check "pipe: dedup --state -j $j" nearly out in
        run dedup -j $j --state s$j < <(cat in not_in)
        check "pipe: dedup --state again -j $j" nearly out not_in
    done
    reports "300,003 keys into g" build -o g - in < <(seq 3)
    works build -o g in <(seq 3)
    works build --grow -o f < <(cat in)
    run info --json f
    check "pipe: it grew" [ "$(field keys out)" -gt "$(field capacity out)" ]
    works verify f
    works build -o g --json < <(:)
    ends 1 query g keys
    works build -p 1e-12 -o h < <(cat in)
    matches in query h in
    tells_json keys 1000 build -p 1e-6 -o g --json < <(yes same | head -1000)
}

# Without a filter dedup of a pipe grows by tables, through several sizes here.
test_tables() {
    local j
    seq 3000000 >in
    for j in 1 8; do
        run dedup --json -j $j < <(cat in in)
        check "tables: -j $j" nearly out in
        check "tables: -j $j: the rate" above 1e-6 "$(field fpr_now err)"
        check "tables: -j $j: all keys" [ "$(field keys_in_filter err)" = "$(wc -l <out)" ]
        check "tables: -j $j: memory" above 8 "$(($(field body_bytes err) / 3000000))"
        reports " bits a key, " dedup -j $j < <(cat in)
    done
}

# Every kind that can grow takes more keys than it was planned for.  With each, two ways of four
# to ask for that are tried, which the seed chooses.
test_grow() {
    local kind arguments number=0
    seq 5000 >in
    for kind in $(kinds --grow); do
        for arguments in "" "-n 100" "--grow" "--grow -n 100"; do
            is_chosen $((number++)) 2 || continue
            works build --kind "$kind" -p 1e-6 $arguments -o f < <(cat in)
            writes $'5000\n' query -c f in
        done
        works add f <(seq 5001 9000)
        writes $'9000\n' query -c f <(seq 9000)
        works verify f
        shows "^kind +$kind\$" info f
        check "$kind: info: until when" tells "^room +grows"
        shows '"fpr_until":([0-9]+|null)' info --json f
        check "$kind: info --json: one line" lines out 1
        run dedup -q --kind "$kind" -n 10 --grow < <(cat in in)
        check "$kind: dedup" nearly out in
        if [ "$kind" = chain ]; then
            works merge -o g f f
            writes $'9000\n' query -c g <(seq 9000)
        else
            refuses "f: filters of its kind cannot be put together without the keys" merge -o g f f
        fi
        rm -f g
        number=$((number + 1)) # the other ways with the next kind
    done
    works build --grow -n 10 -o f in
    # Without -n a filter that grows begins with room for 2^16 keys.
    works build --grow -o f in
    tells_json capacity 65536 info --json f
    # A file is counted, and does not grow.
    run build -o f in
    tells_json capacity 7250 info --json f
    refuses "--kind blocked: cannot do all that is asked" build --kind blocked --grow -n 5 -o g in
    check "--grow: a kind that cannot: nothing was made" [ ! -e g ]
}

test_grow_options() {
    seq 20000 >in
    works build --kind chain:factor=4 -n 1000 -o f in
    tells_json factor 4 info --json f
    works build --kind chain:base=bloom --grow -n 1000 -o f in
    shows '"base":"bloom"' info --json f
    reports "; the rate is now " build --kind elastic:until=2000 -n 1000 -p 0.001 -o f <(seq 300000)
    shows "^notes +it has more than the 2,000 keys" info f
    run build --kind elastic:until=100k -n 1000 -p 0.01 -o f in
    check "until: enough" not says "the rate is now"
    reports "; the rate is now " dedup --kind elastic:until=1000 -n 100 -p 0.001 < <(seq 300000)
    works dedup --kind chain:factor=4,base=bloom < <(cat in)
    refuses "factor: not a whole number from 1 to 32768" build --kind chain:factor=32769 -o g in
    works build --kind chain:factor=32768 -n 10 -o steep in
    writes $'20000\n' query -c steep in
    refuses "factor: not a whole number" plan --kind chain:factor=0
    refuses "no such kind: there are" build --kind chain:base=nonsense -o g in
    refuses "until: not a whole number" build --kind elastic:until=0 -o g in
    refuses "this kind takes together" build --kind blocked:base=bloom -n 5 -o g in
    refuses "--kind chain:base=chain: no filter with" build --kind chain:base=chain -n 5 -o g in
    refuses "this kind takes until=N" build --kind elastic:factor=2 -o g in
    check "nothing was made" [ ! -e g ]
}

test_removable_grows() {
    seq 20000 >in
    works build --removable --grow -p 1e-6 -o f < <(cat in)
    reports "10,000 keys removed from f: " remove f <(seq 10000)
    writes $'10000\n' query -c f in
    works build --removable -p 1e-6 -o f < <(cat in)
    works remove f in
    works build --removable --kind chain:base=cuckoo -n 1000 -p 1e-6 -o f in
    works remove f in
    counts -le 100 query -c f in # a few stale entries stay
    refuses "--kind chain:base=bloom: " build --removable --kind chain:base=bloom -n 1000 -o g in
    works build --grow -q -o f in
    refuses "f: was made without --removable, and stores each key once" remove f <(seq 5)
}

# Without --removable or --count a key is stored once, however often it comes; --once asks for
# that explicitly.
test_once() {
    yes same | head -100 >copies
    works build --grow -o f < <(cat copies keys)
    works add f copies
    works add --once f copies
    writes $'100\n' query -c f copies
    works build --removable --grow -o g < <(seq 100)
    refuses "copies:" add g copies
    check "once: says how" says "give --once"
    works add --once g copies
    works build --once --removable --grow -o g < <(cat copies)
    refuses "--once: leaves nothing to count" build --once --count -o g copies
    refuses "standard input:" build --removable --grow -o g < <(cat copies)
}

# ---- Counting ------------------------------------------------------------------------

# In 'in' the key i comes i times.
test_count() {
    local kind j
    for i in 1 2 3 4 5; do seq 5 -1 $i; done >in
    works build --count -n 100 -p 1e-6 -o f in
    writes $'3\t3\n4\t4\n5\t5\n6\t0\n7\t0\n' count f <(seq 3 7)
    check "count: exit" exits 0
    check "count: silent" is_silent
    tells_json 'keys perhaps no' '5 3 2' count --json f <(seq 3 7)
    run add f <(seq 2)
    run count -0 f < <(printf '1\0002\0003')
    check "count -0" [ "$(tr '\0' '|' <out)" = $'1\t2|2\t3|3\t3|' ]
    writes $'x,5\t5\ny,9\t0\n' count --field 2 -d , f <(printf 'x,5\ny,9\n')
    writes $'x,5\t5\ny,9\t0\n' count --field 2 -d , f <(printf 'x,5\ny,9\nz\n')
    check "count --field: missing" exits 0
    check "count --field: missing: says" says "1 line skipped: /dev/fd/63:3 has no such field"
    seq 100000 >many
    run build --count -p 1e-8 -o g many
    awk '{ print $0 "\t" 1 }' many >counted
    for j in 1 2 8; do
        matches counted count -j $j g many
    done
    works build --count --grow -n 10 -p 1e-7 -o g many
    matches counted count g many
    for kind in $(kinds --count); do
        works build --kind "$kind" --count -n 100 -p 1e-6 -o g in
        writes $'3\t3\n4\t4\n5\t5\n6\t0\n' count g <(seq 3 6)
    done
    # 40 copies are more than 15, where 'counting' stops, and more than 8, which 'cuckoo' can
    # store.
    { yes many | head -40; echo once; } >copies
    works build --count --kind counting -n 100 -o g copies
    writes $'many\t15+\nonce\t1\n' count g <(printf 'many\nonce\n')
    shows '"saturated":[1-9]' info --json g
    run build --count --kind cuckoo -n 100 -o g copies
    refused "count: too often" "copies:9: this key came more often than the kind can count"
    run build -n 10 --kind blocked -o b keys
    refuses "b: its kind cannot count: build it with --count" count b keys
    check "count: a kind that cannot: nothing printed" lines out 0
    refuses "--kind blocked: cannot do all" build --kind blocked --count -n 5 -o g keys
    refuses "missing: No such file" count missing keys
    refuses "which filter?" count
}

# ---- Windows -------------------------------------------------------------------------

# A line is printed again when it comes back after the window has passed, by any number of
# threads and also if the input is cut into two runs with a state between them.
test_window_keys() {
    local j
    { seq 1000; seq 100; seq 901 1000; } >in
    # 1 to 100 come back after 1000 lines, 901 to 1000 after 200.
    matches <(seq 1000; seq 100) dedup -p 1e-12 --window 200-keys in # far apart: printed again
    matches <(seq 1000) dedup -p 1e-12 --window 1k-keys in
    seq 300000 | awk '{ print; if ($0 > 500) print $0 - 500; if ($0 > 20000) print $0 - 20000 }' >in
    for j in 1 8; do
        alike window dedup -j $j -p 1e-12 --window 1k-keys --kind window:generations=11 in
        run dedup -j $j -p 1e-12 --window 1k-keys --state s$j < <(head -400000 in)
        cp out first.$j
        run dedup -j $j --state s$j < <(tail -n +400001 in)
        cat first.$j out >both.$j
        check "window of keys: in two runs, -j $j" same both.1 both.$j
    done
    # 300,000 new lines, and 280,000 that come back 20,000 lines later.  Those that come back
    # 500 lines later are repeats.
    check "window of keys: what is in it" lines "first window" 580000
    run dedup -p 1e-12 --window 1k-keys in
    check "window of keys: in two runs as in one" same both.1 out
    run info --json s1
    check "window of keys: info: generations" [ "$(grep -o '"age"' out | wc -l)" = 5 ]
    writes $'100\n' query -c s1 <(seq 299901 300000)
    works verify s1
    works add s1 keys
    refuses "s1: its kind cannot remove" remove s1 keys
    run dedup --kind window -n 200 -p 1e-12 <(seq 1000; seq 100)
    check "a kind that forgets holds -n keys" lines out 1100
}

# at SECOND LINE...: prints the lines with this time before each.
at() {
    local second=$1 line
    shift
    for line; do printf '%s\t%s\n' "$second" "$line"; done
}

timed() { run dedup --field 2 --time-field 1 -p 1e-12 "$@"; }

test_window_time() {
    local j
    { at 1000 a b; at 1099 a c; at 1124 b; at 1125 a b c; at 1126 a; } >in
    timed --window 100s in
    # The first generation, with a and b, is forgotten at 1000 + 100 + 100/4: five generations.
    check "window of time" prints $'1000\ta\n1000\tb\n1099\tc\n1125\ta\n1125\tb\n'
    timed --window 100s --kind window:generations=2 in
    check "window of time: two generations" prints $'1000\ta\n1000\tb\n1099\tc\n'
    timed --window 2m in
    check "window of time: a longer one" prints $'1000\ta\n1000\tb\n1099\tc\n'
    { at 1000 a; at 900 b; at 1001 b; at 2000 a b; at 1000 a b; } >in
    timed --window 100s in
    check "window of time: out of order" prints $'1000\ta\n900\tb\n2000\ta\n2000\tb\n'
    { at 1000 a; at 1060 a; at 1120 a; at 1180 a; } >in
    timed --window 60s --kind window:generations=61 in
    check "window of time: a repeat does not renew" prints $'1000\ta\n1120\ta\n'
    seq 200000 | awk '{ t = int($0 / 700); print t "\t" $0 % 5000; print t + .5 "\t" $0 }' >in
    for j in 1 8; do
        alike window dedup --field 2 --time-field 1 -p 1e-12 -j $j --window 20s in
        rm -f s
        timed -j $j --window 20s --state s < <(head -150001 in)
        cp out both
        timed -j $j --state s < <(tail -n +150002 in)
        cat out >>both
        check "window of time: in two runs as in one, -j $j" same "first window" both
    done
    run info --json s
    check "window of time: info: generations" [ "$(grep -o '"age"' out | wc -l)" = 5 ]
    timed --window 20s --key-file key in
    check "window of time: with a secret" same "first window" out
}

# at_clock SECONDS COMMAND...: runs it under a clock that is so far ahead.
at_clock() {
    echo "$1" >clock
    shift
    PERHAPS_TEST_CLOCK=$PWD/clock "$@"
}

# A time that is far ahead is not told to the window: its line counts as of the latest one before.
test_window_far_ahead() {
    local now j
    now=$(date +%s)
    { at $((now - 5000)) a; at 9999999999 x y; at $((now - 2000)) a x; at $((now + 99)) b; at $((now + 9999)) b; } >in
    for j in 1 8; do
        rm -f s
        timed -q -j $j --window 1000s --state s in
        check "far ahead: the window goes on" same out <(sed 7d in)
        check "far ahead: is told once" [ "$(wc -l <err)" = 1 ]
        check "far ahead: where" says "perhaps: in:2: its time is further ahead of the clock than the window is long"
        shows '"newest_time":"20' info --json s
        check "far ahead: is not remembered" not tells '"newest_time":"2286'
        check "far ahead: no warning" not tells "forgets nothing"
    done
    tells_json 'times_ahead' 3 dedup --json --field 2 --time-field 1 --window 1000s in
    at 9999999999 x y x >in
    timed -q --window 1000s --state none in
    check "far ahead: nothing else came" same out <(head -n 2 in)
    # times of long ago, and simulated ones
    for now in 0 1000000000; do
        at $now a b a >in
        at $((now + 500)) a >>in
        at $((now + 5000)) a >>in
        timed -q --window 1000s in
        check "long ago, $now" same out <(sed '3,4d' in)
        check "long ago, $now: nothing to say" is_silent
    done
    # far behind the latest: nothing is lost or forgotten, and it is told
    { at 90000 a b; at 100 a c; at 90001 a c; } >in
    timed -q --window 1000s in
    check "far behind" prints $'90000\ta\n90000\tb\n100\tc\n'
    check "far behind: is told" says "in:3: its time is more than the window before the latest"
}

# A clock that was wrong for one run: the state is told of, by each verb, until it is brought back.
test_window_clock_ahead() {
    local path=s years=$((72 * 365 * 86400)) option
    for option in "--state s" "--state live --durable 100"; do
        read -r _ path _ <<<"$option"
        check "a day" at_clock -86400 run dedup -q --window 1h $option keys
        check "new" lines out 10
        check "ahead" at_clock $years run dedup -q $option keys
        check "ahead: all was forgotten" lines out 10
        check "nothing to warn of" is_silent
        for verb in "dedup -q $option" "query -q $path" "add -q $path"; do
            run $verb keys
            check "$verb: warns" says "perhaps: $path: its newest time is 20" ", and the clock shows 20" \
                "it forgets nothing until then; if the clock is right, bring it back"
        done
        writes '' dedup -q $option keys
        shows "^notes +its newest time is 20.* and the clock shows 20" info $path
        run dedup --json $option keys
        check "dedup --json: one object and no more" lines err 1
        at_clock $((2 * 86400)) run dedup -q $option keys
        check "two days later: still frozen" lines out 0

        works dedup $option --set-back now /dev/null
        check "brought back" says "$path: its newest time is brought back from 20" " to 20"
        run info $path
        check "brought back: no note" not tells "^notes "
        writes '' dedup -q $option keys
        check "brought back: silent" is_silent
        at_clock 3500 run dedup -q $option keys
        check "is remembered for the window" lines out 0
        at_clock 4600 run dedup -q $option keys
        check "forgets again" lines out 10
        works dedup $option --set-back now /dev/null
        at_clock 9200 run dedup $option --set-back now /dev/null
        check "nothing to bring back" says "$path: --set-back: ignored: its newest time is not after 20"
        run verify $path
        check "verify" exits 0
    done
}

# A clock that goes back loses nothing and drops nothing without a word, also in the middle of a
# run.  A small step is nobody's business.
test_window_clock_back() {
    local step
    for step in -600 -864000; do
        echo 0 >clock
        {
            cat keys
            until [ "$(wc -l <out)" = 10 ]; do sleep 0.02; done
            echo $step >clock
            seq 5 15
        } | PERHAPS_TEST_CLOCK=$PWD/clock run dedup -q --window 1h --state "s$step"
        check "clock back by $step: every line once" same out <(seq 15)
        if [ $step = -600 ]; then
            check "a small step" is_silent
        else
            check "a large step is told once" [ "$(grep -c 'the clock went back, from 20.* to 20' err)" = 1 ]
        fi
    done
    at_clock -864000 run dedup -q --state s-600 keys
    check "the next run, before NTP: loses nothing" lines out 0
    check "and is told" says "s-600: its newest time is 20"
    writes '' dedup -q --state s-600 <(seq 15)
    check "after NTP: as if nothing was" is_silent
}

test_set_back_options() {
    at 1000 a >in
    refuses "--set-back: the time of which state? give --state F" dedup --set-back now in
    refuses "not a time: give 'now', seconds since 1970" dedup --state s --set-back then in
    refuses "not a time: " dedup --state s --set-back 0 in
    run dedup -q -n 10 --state set in
    refuses "--set-back: set does not forget by time" dedup --state set --set-back now in
    run dedup -q --window 10-keys --state wk in
    refuses "--set-back: wk does not forget by time" dedup --state wk --set-back now in
    refuses "set-back" dedup --state redis://127.0.0.1:1/x --set-back now in
    run dedup -q --window 1h --state new --set-back now in
    check "a new state" says "new: --set-back: ignored: it was not there before"
    # to a time of the lines: a log of long ago is read once more
    timed -q --window 100s --state log <(at 5000 a)
    timed -q --state log --set-back 1000 <(at 1000 a b; at 1200 a b)
    check "to a time of the lines" prints $'1000\tb\n1200\ta\n1200\tb\n'
}

# A state keeps its window; a run that asks for another one is refused and changes nothing.
test_window_state() {
    { at 1000 a; at 1001 b; } >in
    timed --window 100s --state s in
    check "state: new" lines out 2
    timed --window 100s --state s in
    check "state: the same window" lines out 0
    timed --state s in
    check "state: need not be said again" lines out 0
    timed --window 100s --kind window:generations=5 --state s in
    check "state: generations, too" exits 0
    cp s s.before
    timed --window 200s --state s in
    refused "state: another window" "--window: s is a window of 100s in 5 generations"
    timed --window 100s --kind window:generations=6 --state s in
    refused "state: other generations" "--window: s is a window of 100s in 5 generations"
    refuses "--window: s is a window of 100s" dedup --window 100-keys --state s in
    check "state: is as it was" same s s.before
    run dedup --state s <(at 1000 a)
    check "state: goes on with the clock" lines out 1
    writes '' dedup --state s <(at 1000 a)
    run dedup -n 100 --state set in
    timed --window 100s --state set in
    refused "state: remembers for ever" "--window: set remembers all for ever"
    timed --state set in
    refused "state: has no time" "--time-field: set does not forget by time"
    run dedup --window 10-keys --state by_keys in
    timed --state by_keys in
    refused "state: goes by keys" "--time-field: by_keys does not forget by time"
}

# Without --time-field the window goes by the clock of the machine.
test_window_clock() {
    matches <(seq 5) dedup --window 1h --state s <(seq 5; seq 3)
    matches <(seq 6 9) dedup --window 1h --state s <(seq 9)
    run dedup --window 40ms --state t keys
    sleep 0.1
    matches keys dedup --state t keys
    run dedup -p 1e-12 --window 5w < <(seq 100000; seq 100000)
    check "clock: a pipe" lines out 100000
}

# A window over 'bloom' is planned sooner than the usual one, which counts for as many short runs
# as here.
quickly_timed() { timed --kind window:base=bloom "$@"; }

# All notations of 1795289886 seconds, which is 2026-11-21T19:38:06Z; then what is no time.
test_times() {
    local time
    for time in 1795289886 1795289886.0 1795289886.123 1795289886.123456789 \
        2026-11-21T19:38:06 2026-11-21T19:38:06Z "2026-11-21 19:38:06" 2026-11-21T19:38:06.5 \
        2026-11-21T21:08:06+01:30 2026-11-21T14:38:06.001-05:00 2026-11-21T20:38:06+0100 \
        "2026-11-21 19:38:06Z"; do
        quickly_timed --window 4s <(at 1795289885 a; at "$time" a; at 1795289891 a)
        check "time $time" [ "$(wc -l <out) $status" = "2 0" ]
        quickly_timed --window 4s <(at "$time" a; at 1795289886 a)
        check "time $time: is that second" lines out 1
        quickly_timed --window 1s <(at 1795289884 a; at "$time" a; at 1795289888.2 a)
        check "time $time: is not another" lines out 3
    done
    for time in "" x -5 1e9 1795289886123 1795289886. 1795289886x " 1795289886" 2026-11-21 \
        2026-11-21T19:38 2026-02-29T00:00:00 2026-13-01T00:00:00 2026-11-21T24:00:00 \
        2026-11-21T19:38:06+ 2026-11-21T19:38:06+1 2026-11-21T19:38:06. 1969-12-31T23:59:59 \
        2026-11-21T19:38:06ZZ 21.11.2026; do
        quickly_timed --window 1h <(at 1 a b; at "$time" c; at 2 d)
        check "no time '$time'" [ "$(wc -l <out) $status" = "3 0" ]
        check "no time '$time': where" says ":3 has no time in its --time-field: expected seconds"
    done
    printf '5\ta\n6\n7\ta\n' >in
    refuses "in:1: has no time in its --time-field: expected seconds" dedup --window 1h --time-field 2 in
    check "no such field: in no line" says "nor has any other line"
    printf 'a\t5\nb\nc\t7\n' >in
    reports "1 line skipped: in:2 has no field with a time" dedup --window 1h --time-field 2 --state s in
    check "no such field: the others are done" prints $'a\t5\nc\t7\n'
    printf 'a,5\r\na,6\r\n' >in
    writes $'a,5\r\n' dedup --window 1h --crlf --field 1 --time-field 2 --delimiter , in
}

test_window_options() {
    local value
    for value in 24 24x 0s 24H h -1h 1.5 0-keys -keys 10 x-keys 10M 1.0001s ""; do
        refuses "--window $value: not a window: give a time with its unit (ms, s, m, h, d, w)" \
            dedup --window "$value" keys
    done
    for value in 250ms 1.5s 90m 24h 7d 2w 10M-keys 1e6-keys 500-keys; do
        works plan --kind window:base=bloom --window $value
    done
    refuses "generations: not a whole number from 2 to 64" dedup --window 1h --kind window:generations=1 keys
    refuses "generations: not" plan --window 1h --kind window:generations=65
    refuses "give --window too" dedup --time-field 1 keys
    refuses "the window goes by keys" dedup --window 10-keys --time-field 1 keys
    refuses "--kind blocked: cannot forget" dedup --window 1h --kind blocked keys
    refuses "--kind window:base=window: " dedup --window 1h --kind window:base=window keys
    matches keys dedup --window 1h --kind window:base=cuckoo -n 100 keys
}

# ---- Plan, info, signals -------------------------------------------------------------

# The plan names the kinds that could do the job instead.
test_plan() {
    shows "^fpr until +1,000,000\$" plan -n 1M
    check "plan: others" [ "$(rows "others that can")" -ge 3 ]
    shows "^kind " plan --grow
    check "plan --grow: others" tells "^ +chain +blocked "
    shows "^fpr until +any number\$" plan --grow --kind chain
    shows "^kind +window\$" plan --window 24h --kind window:generations=9
    check "plan --window: others" tells "^ +window +blocked "
    tells_json generations 9 plan --window 24h --kind window:generations=9 --json
    works plan --count -n 1M
    check "plan --count: others can count" not tells "^ +blocked "
    shows '"others_that_can":\[\{"kind":' plan --grow --json
    check "plan --json: one line" lines out 1
    is_json "plan --json" '.others_that_can[0].kind' out
    refuses "give -n N, or --grow" plan
    refuses "no key is added or removed later" plan --grow --static
}

# A bit for each integer of a range makes no error.
test_integers() {
    local low=13000000000 range arguments
    seq $low 3 13000030000 >in
    seq $low 13000030000 >all
    works build --integers $low-13079999999 -o big in
    tells_json "low high body_bytes fpr_asked fpr_now" "13000000000 13079999999 10000000 0.0 0.0" info --json big
    shows "^rate +no false positives\$" info big
    check "info: the range" tells "^kind +bitmap\$" "^hash +integer\$" "^keys +10,001\$"
    rm big
    works build --integers $low-13000030000 -o f in
    matches in query f all
    shows '"low":0' plan --json --integers 0-9
    shows '"high":"18446744073709551615"' plan --json --integers 18446744073709551600-18446744073709551615
    works remove f in
    writes '' query f all
    works add f in
    matches in query f all
    writes $'perhaps\t13000000003\nno\t13000000004\nno\t5\nno\tabc\nno\t\nperhaps\t+13000000003\n' \
        query --label f < <(printf '%s\n' 13000000003 13000000004 5 abc '' +13000000003)
    works verify f

    # what is no key is named, and changes nothing
    printf '13000000001\n12\n' >bad
    keeps f refuses "bad:2: 12: not in the range $low-13000030000 of the filter; f is unchanged" add --rewrite f bad
    printf '13000000001\n+99999999999999999999\n' >bad
    keeps f refuses "bad:2: +99999999999999999999: not in the range" add --rewrite f bad
    printf '007\n' >bad
    keeps f refuses "bad:1: not an integer" add f bad
    keeps f refuses "bad:1: not an integer" remove f bad
    refuses "bad:1: not an integer" dedup --integers 0-9 bad
    refuses "g was not made" build --integers 0-9 -o g bad
    reports "1 was not in it" remove f --key 12

    # other verbs
    writes $'3\n1\n' dedup -q --integers 0-9 < <(printf '3\n3\n+1\n1\n' | tr -d +)
    writes $'1\n2\n' dedup -q --integers 0-9 --state s < <(printf '1\n2\n1\n')
    writes $'3\n' dedup -q --state s < <(printf '1\n3\n')
    reports "ignored: --integers" dedup --integers 0-8 --state s < <(:)
    works create --integers 1-100 c
    works add c --key 5
    cp c d
    works add d --key 6
    works merge -o e c d
    shows "^keys +2\$" info e
    writes $'7\n' query -c f < <(seq $low 13000000020)

    # plans
    shows "^why +exact: " plan --integers 0-10G
    refuses "give --integers LOW-HIGH" plan --kind bitmap -n 10
    refuses "give --integers LOW-HIGH" dedup --hash integer -n 10 in
    for arguments in "--kind blocked" "--kind chain:base=blocked" "-n 10" "--window 24h"; do
        refuses "leave out ${arguments% *}" plan $arguments --integers 1-9
    done
    refuses "are not hashed" build --hash sip --key-file k --integers 1-9 -o g in
    refuses "cannot grow" plan --grow --integers 1-9
    refuses "cannot count" plan --count --integers 1-9
    for range in 9-1 0-0 5 5- -5 a-b 1-2-3 0-18446744073709551615 0-300T; do
        refuses "not a range" plan --integers=$range
    done
}

test_info() {
    seq 50000 >in
    run build --kind chain:factor=2 -n 1000 -o f in
    run info f
    check "info: layers: what to do" tells "^notes +layers cannot be put together" "^room +grows to any number"
    shows '"parts":\[\{"age":0,' info --json f
    check "info --json: null" tells '"fpr_until":null' '"stale":0'
    is_json "info --json" '.parts | length >= 5' out
    run build -n 1000 -o f keys
    run info f
    check "info: no notes" not tells "^notes"
}

# A new state is saved with the lines so far; a filter that is being built is not.
test_signals() {
    local j
    for j in 1 2 8; do
        interrupted INT 0 "interrupted; g was not made" build -j $j -o g
        check "-j $j: build of a pipe: nothing was made" [ ! -e g ]
        interrupted INT 10 "are done and remembered" dedup -j $j --window 1h --state s
        writes $'11\n12\n' dedup --state s < <(seq 12)
        rm s
    done
}

run_tests
