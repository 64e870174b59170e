#!/usr/bin/env bash
# End-to-end tests of what the command line keeps and replaces:  cli_states_test.sh PROGRAM, as
# cli_test.sh.  Proves that states, filters and other people's files survive signals, full disks
# and other processes that change them at once; that no lock or temporary file stays; and that
# the numbers in summaries are right.
. "$(dirname "$0")/../support/cli_helpers.sh"

# ---- States --------------------------------------------------------------------------

# A state grows, since nobody knows on the first day what comes on later days.
test_a_state_grows() {
    printf 0123456789abcdef >secret # always the same false positives, which spare these lines
    seq 1000 >day1
    seq 501 20000 >day2
    seq 1001 20000 >new
    matches day1 dedup --key-file secret --state file day1
    matches new dedup --key-file secret --state file day2
    run dedup --key-file secret --state pipe < <(cat day1)
    matches new dedup --key-file secret --state pipe < <(cat day2)
    run dedup --state one --kind blocked day1
    refused "a kind that does not grow" "--state: is for lines that are still to come, too, and --kind blocked"
    check "a kind that does not grow: says how" says "such as -n 10M"
    run dedup --state planned -n 100 keys
    run dedup --state planned day2
    check "planned: full" says "full: make it anew with a larger -n or with --grow"
}

# Options that would make another state are told to be ignored; those that fit it are not.
test_ignored_options() {
    run dedup --state s -n 500 -p 1e-5 keys
    check "new: nothing to say" lines err 1
    run dedup --state s -n 500 -p 1e-5 keys
    check "as it was made: nothing to say" lines err 1
    run dedup --state s -n 1000 -p 1e-12 --kind elastic --hash none --grow --prefer fast keys
    check "ignored" says "s: exists already and stays as it was made: ignored: -n, -p, --kind, --grow, --prefer, --hash"
    check "ignored: one line" lines err 2
    quietly dedup --state s -n 1000 -q keys
    run dedup --state grown --grow --kind chain:factor=3 keys
    run dedup --state grown --grow --kind chain:factor=3 keys
    check "grows, as asked" not says "ignored"
    reports "ignored: --kind" dedup --state grown --kind chain:factor=2 keys
    run dedup --state w --window 1h keys
    reports "ignored: -p" dedup --state w --window 1h -p 1e-12 keys
}

# Two processes make the same new file: the second is told that the first is at work, although
# there is no file yet.
test_two_first_runs() {
    local verb
    for verb in "dedup --state new keys" "build -o new keys" "create new -n 5"; do
        begins dedup --state new
        echo a >&5
        check "$verb: the first has begun" until_true lines slow_out 1
        refuses "new: another process is changing it: try again later" $verb
        finishes
        check "$verb: the first run is kept" [ "$("$program" dedup --state new <slow_out 2>err)" = "" ]
        check "$verb: no lock is left" no_litter
        rm new
    done
}

# A process that waits for a first run then works on the file that this has made, and its errors
# say so.
test_waiting_for_a_first_run() {
    local waiter
    begins build -n 20 -o new
    "$program" build -n 5 --wait 60 -o new keys 2>err 5<&- &
    waiter=$!
    check "the second waits" until_true reads $waiter .new.lock
    seq 3 >&5
    finishes
    wait $waiter
    status=$?
    refused "the second fails" "full"
    check "the second fails: what the first made stays" says "; new is unchanged"
    writes $'3\n' query -c new <(seq 3)
}

# A file that another program puts in the place meanwhile, without a lock, is not replaced.
test_made_meanwhile() {
    local verb
    run build -n 100 -o other keys
    for verb in "build -n 100 -o new" "dedup -n 100 --state new"; do
        begins $verb
        cp other new
        seq 5 >&5
        finishes
        cp slow_err err
        refused "$verb: made meanwhile" "new: another process has made it meanwhile"
        check "$verb: stays" same new other
        check "$verb: no temporary files" no_litter
        rm new
    done
}

# The program is ended by SIGPIPE, since nobody reads its output: its lock must go, too.  Status
# 141 is 128 + SIGPIPE.
test_closed_pipe_leaves_no_lock() {
    seq 100000 >in
    "$program" dedup --state new in 2>err | head -1 >out
    status=${PIPESTATUS[0]}
    check "closed pipe" exits 141
    check "closed pipe: no lock is left" no_litter
    check "closed pipe: nothing is remembered" [ ! -e new ]
}

# ---- Signals, other processes, full disks --------------------------------------------

# A signal in the middle leaves a filter as it was, and a state with the lines that were
# printed.
test_signals() {
    local j
    seq 5 >in
    run build -n 100 -o f in
    for j in 1 2 8; do
        keeps f interrupted INT 0 "interrupted; f is unchanged" add --rewrite -j $j f
    done
    interrupted TERM 0 "interrupted; g was not made" build -n 100 -o g
    check "build, SIGTERM: nothing was made" [ ! -e g ]
    interrupted INT 10 "are done and remembered" dedup -n 100 --state s
    check "dedup, SIGINT: printed" lines out 10
    writes $'11\n12\n' dedup --state s < <(seq 12)
}

# A filter that another program makes shorter while it is asked, as a disk that fails: an error,
# and no key is said not to be there.
test_lost_bytes() {
    local pid
    seq 100000 >in
    works build -q -n 100000 -o f in
    mkfifo slow
    "$program" query f slow >out 2>err &
    pid=$!
    {
        truncate -s 8192 f # it is open: the pipe is opened after it
        cat in
    } >slow
    wait "$pid"
    status=$?
    check "cut off: exit status" exits 2
    check "cut off: says so" grep -q '^perhaps: f: cannot be read any more: ' err
}

# One signal ends the whole pipe, as Ctrl-C does.  Who writes the input dies first, and its end is
# none of the keys.
test_signal_to_all() {
    local i pid
    seq 1000 >in
    run build -q -n 1000 -o good in
    for i in 1 2 3 4 5; do
        cp good f
        setsid bash -c 'trap : TERM; seq 60000000 | "$0" build -q -n 60M -o f' "$program" 2>err &
        pid=$!
        sleep 0.$i
        kill -TERM -- -$pid
        wait $pid # which waits for the pipe
        check "the filter stays as it was" same good f
    done
}

# Processes that replace a filter wait for each other or are refused: no add is lost.
test_locks() {
    local i pids
    seq 5 >in
    run build -n 10000 -p 1e-6 -o f in
    begins add -q --rewrite f
    refuses "f: another process is changing it" add --wait 0.1 f in
    writes $'5\n' query -c f in
    seq 100 200 >&5
    finishes
    writes $'101\n' query -c f <(seq 100 200)
    pids=
    for i in 1 2 3 4 5 6; do
        seq $((i * 1000)) $((i * 1000 + 99)) >in$i
        until_true "$program" add -q --rewrite f in$i 2>/dev/null &
        pids="$pids $!"
    done
    wait $pids
    for i in 1 2 3 4 5 6; do
        writes $'100\n' query -c f in$i
    done
}

# Several processes add to one file at once; it stays the same file, and is whole at the end.
test_in_place() {
    local i pids
    seq 1000 >in
    run build -n 100k -p 1e-6 -o f in
    reports "1,000 keys added to f" add f <(seq 2001 3000)
    writes $'2000\n' query -c f <(seq 3000)
    works verify f
    ls -i f >inode
    pids=
    for i in 1 2 3 4 5 6; do
        seq $((i * 10000)) $((i * 10000 + 5000)) >in$i
        "$program" add -q f in$i 2>err$i &
        pids="$pids $!"
    done
    wait $pids
    for i in 1 2 3 4 5 6; do
        check "add: six at once: silent" [ ! -s err$i ]
        writes $'5001\n' query -c f in$i
    done
    check "add: the file is the same one" [ "$(ls -i f)" = "$(cat inode)" ]
    works verify f
    begins add -q f
    echo at_once >&5
    echo at_once >once # which can be read more than once
    check "add: readers find a key at once" until_true "$program" query --any f once
    refuses "f: another process is changing it" add --rewrite f in
    refuses "f: another process is changing it" build -n 5 -o f in
    works add -q f <(echo beside)
    refuses "f: has no checksums while it is added to in place: check it later" verify f
    writes $'2\n' query -c f <(printf 'at_once\nbeside\n')
    finishes
    check "add: silent" [ ! -s slow_err ]
    works verify f
    interrupted INT 0 " of the keys, in no order, are in f: adding all again is safe" add f
    refuses " of the keys, in no order, are in f" add f <(seq 1000000)
    writes $'1000\n' query -c f in
    run build --kind cuckoo -n 1000 -o c keys
    works add c in
    refuses "missing: No such file" add missing in
    refuses "keys: not a filter file" add keys in
    mkfifo pipe
    refuses "pipe: not a filter file" add pipe in
    refuses ".: Is a directory" add . in
    refuses "f: is an input, too" add f f
    refuses "--in-place: no such option" add --in-place f in
    run build --key-file k -n 1000 -q -o sip keys
    refuses "sip: was built with a secret" add sip in
    works add --key-file k sip in
}

# While one process replaces the file, an add in place waits: it would add to the old file.
test_in_place_waits() {
    seq 10 >in
    run build -n 1000 -o f in
    begins add -q --rewrite f
    "$program" add -q f <(seq 100 200) 2>err 5<&- &
    until_true reads $! f
    seq 300 400 >&5
    finishes
    wait
    check "add waits for add" is_silent
    counts -ge 202 query -c f <(seq 100 200; seq 300 400)
}

# Full disks, closed pipes and closed standard files are reported; nothing is changed then.
test_outputs() {
    seq 1 100000 >in
    run build -o f in
    for arguments in "query f in" "info f" "dedup in" "help" "plan -n 5" "query -c f in"; do
        refuses_into /dev/full "standard output: No space left on device" $arguments
    done
    "$program" query f in 2>err | head -1 >out
    status=${PIPESTATUS[0]}
    check "closed pipe" prints $'1\n'
    check "closed pipe: silent" is_silent
    check "closed pipe: SIGPIPE" exits 141
    "$program" build -o /dev/stdout in 2>err | cat >piped
    "$program" query -c piped in >out 2>err
    check "-o /dev/stdout into a pipe" prints $'100000\n'
    check "/dev/stdout stands" [ -e /dev/stdout ]
    "$program" query f in >&- 2>err
    status=$?
    refused "closed stdout" "standard output: Bad file descriptor"
    "$program" query f <&- >out 2>err
    status=$?
    check "closed stdin" exits 2
    limited() { (ulimit -f 8 && "$program" "$@") >out 2>err; status=$?; }
    keeps f limited add --rewrite f in
    refused "file-size limit" "f: File too large; f is unchanged"
}

# ---- Outputs -------------------------------------------------------------------------

# A file that is no filter is not replaced.
test_output_is_no_filter() {
    echo important >notes.txt
    run build -o f keys
    for verb in "build -o notes.txt keys" "merge -o notes.txt f f"; do
        refuses "notes.txt: exists and is not a filter: give another name, or remove it first" $verb
        check "$verb: it stays" [ "$(cat notes.txt)" = important ]
    done
    head -c 70000 f >damaged
    works build -o damaged keys
    : >hollow
    works build -o hollow keys
}

test_standard_output() {
    "$program" build --seed 1 -n 100 -o - keys 2>err | cat >piped
    check "-o -: summary" says "10 keys into standard output: "
    run build --seed 1 -n 100 -o f keys
    check "-o -: the same filter" same piped f
    check "-o -: no file is called so" [ ! -e ./- ]
    { echo before; "$program" merge -o - f; } >both 2>err
    check "-o -: behind what is there" cmp -s <(echo before; cat f) both
    refuses_into keys "standard output: is an input, too" build -n 5 -o - keys
    refuses_into /dev/full "standard output: No space left on device; what was written there is no filter" \
        build -n 100 -o - keys
    if command -v script >/dev/null; then
        script -qec "'$program' build -n 100 -o - keys" typescript >err </dev/null
        check "-o -: a terminal" says "standard output is a terminal"
    fi
}

# An output that is a link to a missing file makes that file, and keeps the link.
test_links_to_nothing() {
    mkdir links targets
    ln -s ../targets/f links/f
    works build -o links/f keys
    check "a link to nothing: stays" [ -L links/f ]
    check "a link to nothing: what it names is made" [ -s targets/f ]
    ln -s ../targets/s links/s
    run dedup --state links/s keys
    check "a link to nothing: as a state" [ -s targets/s ]
    ln -s missing/f links/nowhere
    refuses "links/nowhere: cannot be written: No such file or directory" build -o links/nowhere keys
    check "no lock is left" [ "$(ls -A links targets | wc -w)" = 7 ]
}

# A key file is made only together with its filter: no failure leaves one alone.
test_new_key_file() {
    refuses "leave out --key-file" build --key-file key --hash none -o f keys
    refuses "full" build --key-file key -n 3 -o f keys
    check "a build that fails: leaves no key file" [ ! -e key ]
    run build --key-file key -o f keys missing
    check "no input: leaves no key file" [ ! -e key ]
    interrupted INT 0 "interrupted; f was not made" build --key-file key -n 100 -o f
    check "interrupted: leaves no key file" [ ! -e key ]
    refuses "missing/key: cannot be made: No such file or directory" build --key-file missing/key -o f keys
    ln -s nothing link
    refuses "link: is a link to nothing" build --key-file link -o f keys
    if [ -e /dev/full ]; then
        refuses "/dev/full: No space left" build --key-file key -o /dev/full keys
        check "it cannot be saved: leaves no key file" [ ! -e key ]
    fi
    run build --key-file key -o f keys
    writes $'10\n' query -c --key-file key f keys
}

# Seeds from 1 to 2^64 - 1; 18446744073709551616 is 2^64.
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
    works build --seed 18446744073709551615 -n 100 -o f keys
}

# ---- Building ------------------------------------------------------------------------

# Without -n a filter gets some room for later adds.
test_build_leaves_room() {
    seq 10000 >in
    run build -o f in
    works add f <(seq 10001 12000)
    writes $'12000\n' query -c f <(seq 12000)
    run build -o f keys
    works add f <(seq 500)
    run build -n 10 -o f keys
    refuses "full: make it anew with a larger -n or with --grow" add f in
}

# ---- Counting ------------------------------------------------------------------------

# Counts are right after any further 'add', up to 15, which is written 15+.
test_count_goes_on() {
    local options
    { yes many | head -40; seq 8; seq 8; echo once; } >in
    { yes fourteen | head -14; yes fifteen | head -15; } >>in
    for options in "" "-n 100" "--grow -n 5" "--removable" "-p 1e-12"; do
        works build --count $options -o f in
        works add f in
        run build --seed 1 -p 1e-12 --count $options -o f in
        run count f <(printf '%s\n' many 8 once fourteen fifteen none)
        check "--count $options" [ "$(cut -f2 out | paste -sd' ')" = "15+ 2 1 14 15+ 0" ]
    done
    works build --count -o f < <(cat in)
    run build --seed 1 --removable --count -n 100 -o f in
    run remove f <(echo 8)
    writes $'8\t1\n' count f <(echo 8)
    refuses "leave out --kind" build --count --kind cuckoo -o f in
    shows '^\{"kind":"counting"' plan --count -n 1000 --json
    yes same | head -100000 >in
    run build --count -o f in
    check "--count: copies take no room" [ "$(stat -c %s f)" -lt 100000 ]
}

# A filter that was made without --removable and --count is a set: a key that comes again changes
# nothing, whatever the kind, and no verb takes one away.
test_set() {
    local options
    yes same | head -20 >same
    seq 500 >in
    for options in "--grow" "--kind cuckoo -n 1000" "--kind strided -n 1000" "--kind counting -n 1000" \
        "--kind elastic --grow" "--kind chain:base=cuckoo -n 100" "--kind chain:base=strided -n 100" \
        "--live --grow" "--live --kind strided -n 1000"; do
        rm -f f f.journal
        works create -q $options f
        works add -q f same
        works add -q -j3 f same same
        shows '"keys": *1,.*"removes": *false,"counts": *false' info --json f
        works add -q f in
        cp f before
        works add -q f <(cat in in in same)
        shows '"keys": *[45][0-9][0-9],.*"removes": *false,"counts": *false' info --json f
        matches in query f in
        refuses "f: was made without --removable, and stores each key once" remove f same
        refuses "f: was made without --count, and stores each key once" count f same
        shows "^copies +none: a set, from which no key can be removed\$" info f
        [ ! -e f.journal ] || continue
        check "$options: adding all again changes nothing" cmp -s f before
    done
    rm -f f f.journal
    works create -q --grow f
    for _ in $(seq 20); do works add -q f <(echo same); done
    shows '"keys": *1,' info --json f
    works build --kind cuckoo -q -o f same in
    shows "^copies +none" info f
    works build -q -n 1000 -o f in # which can store none anyway
    run info f
    check "bloom kinds have no copies" tells "^rate"
    check "bloom kinds have no copies" [ "$(grep -c ^copies out)" = 0 ]
    works build --removable -q -o f in
    shows "^copies +one each time that a key is added; keys can be removed\$" info f
    shows '"removes": *true' info --json f
    rm f
    works create -q --removable --kind strided -n 1000 -p 1e-6 f
    refuses "same:5: no room for one more copy of this key, of which 8 are the most (4 in the kind strided): give --once" add f same
    rm f
    works create -q --removable --kind cuckoo -n 1000 f
    refuses "same:9: no room for one more copy of this key, of which 8 are the most (4 in the kind strided): give --once" add f same
    works add -q --once f same
    works create -q --kind cuckoo --seed 1 -n 1000 a
    works create -q --kind cuckoo --seed 1 -n 1000 --removable b
    refuses "copies stored and none" merge -o c a b
    refuses "copies stored and none" merge --common -o c a b
}

# ---- Numbers -------------------------------------------------------------------------

# Bloom kinds count a key only if it sets a bit, and estimate the true number from their bits;
# other kinds know it.  Of 156,909 keys at 1 % about 290 set no bit when they come.
test_keys_are_an_estimate() {
    local keys counted
    seq 156909 >in
    run build --seed 1 -n 160k -o f in
    run add -q f <(echo one)
    shows "^keys +about 156,[89][0-9]{2} different ones \\(156,[0-9]{3} of them set a bit\\)\$" info f
    run info --json f
    keys=$(field keys_different out) counted=$(field keys out)
    check "info --json" [ $((keys - 156910)) -ge -100 -a $((keys - 156910)) -le 100 ]
    check "info --json: counted" [ "$counted" -lt "$keys" ]
    run build --kind cuckoo --removable -n 160k -o g in
    shows "^keys +156,909\$" info g
    run build --kind cuckoo --seed 1 -n 160k -o g in # a set
    shows "^keys +about 156,[89][0-9]{2} different ones \(156,[0-9]{3} of them are stored\)\$" info g
    reports "2 filters into h: about 15" merge -o h f f
    reports "1 filter into h: about 15" merge -o h f
}

# Summaries say "1 key", not "1 keys", and leave out figures that mean nothing.
test_one_of_a_thing() {
    reports "1 key into f: " build -n 1 -o f < <(echo a)
    check "1 key: no speed" not says "keys/s"
    reports ", room for 999 keys more, " build -n 1000 --removable -o f < <(echo a)
    check "most of it is empty" not says "bits a key"
    reports "0 keys removed from f, 2 were not in it" remove f < <(seq 2)
    reports "g made, for 1 key: " create g -n 1
    reports "1 line, 1 new, 0 repeated" dedup < <(echo a)
    reports " keys/s" build -n 20000 -o f < <(seq 20000)
}

# Windows are told in the unit in which people gave them; JSON has milliseconds.
test_times_have_units() {
    local window
    for window in 24h 7d 90m 1500ms 36h; do
        run dedup --window $window --kind window:base=bloom --state "s$window" keys
        refuses "is a window of $window in 5 generations" dedup --window 5h --kind window:base=bloom --state "s$window" keys
    done
    tells_json period_time 21600000 plan --kind window:base=bloom --window 24h --json
    shows '"together":0' plan -n 1000 --json
}

run_tests
