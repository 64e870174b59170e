#!/usr/bin/env bash
# End-to-end tests of the command line:  cli_test.sh PROGRAM
# Proves that the verbs do what they promise on filters in files: help and usage, build and
# query, inputs of all sorts, damaged files, dedup.  Any number of threads (-j) must give the
# same output.  Prints a line for each check that fails and a total; the exit status is 1 if a
# check failed.
. "$(dirname "$0")/../support/cli_helpers.sh"

# ---- Help, usage ---------------------------------------------------------------------

# Help goes to standard output and is no error; a usage error goes to standard error with status
# 2.
test_help() {
    local verb
    run
    check "no arguments" exits 2
    check "no arguments: usage on stderr" says "usage: perhaps"
    check "no arguments: nothing on stdout" lines out 0
    for arguments in help --help -h "help build" "build --help" "query -h"; do
        shows "usage: perhaps" $arguments
        check "$arguments: silent" is_silent
    done
    for verb in build add remove query count dedup info plan merge copy compare verify; do
        shows "usage: perhaps $verb" help $verb
        check "help $verb: --help" tells "--help"
    done
    shows "^Kinds:" plan --help-all
    refuses "nonsense: no such verb" help nonsense
    shows '^perhaps [0-9]+\.[0-9]+\.[0-9]+' --version
    refuses "nonsense: no such verb" nonsense
}

# Wrong values are refused by a line that begins with the option, before anything is made.
test_bad_options() {
    local value arguments
    for value in 0 -5 10x nan inf 0x10 1.5 1e30 99T9 "" " 1" 1e 300T; do
        refuses "-n $value: " build -o f -n "$value" keys
        refuses "-n $value: " plan --capacity="$value"
    done
    for value in 0 1 -1 nan inf 2 100% 1e-16 0x1p-3 x "" 1e-3x; do
        refuses "-p $value: " build -o f -p "$value" keys
    done
    for arguments in "--kind nonsense" "--hash nonsense" "--seed 0" "--seed -1" "-j 0" "--field 0"; do
        refuses "$arguments: " build -o f $arguments keys
    done
    refuses "-d ab: " build -o f --field 1 -d ab keys
    refuses "--delimiter: " build -o f -d , keys
    refuses "--bogus: no such option" build --bogus
    refuses "-Z: no such option" build -Z
    refuses "-o: needs a value" build -o
    refuses "--json=3: takes no value" build --json=3 -o f keys
    refuses "give -o F" build keys
    refuses "give -o F" merge keys
    refuses "which filters" merge -o f
    refuses "give -n N" plan
    refuses "which filter?" query
    refuses "operand too many" info a b
    refuses "operand too many" plan -n 1 a
    refuses "--label: " query --label -v f keys
    refuses "--label: " query --label -c f keys
    refuses "leave out --key-file" build -o f --hash xxh3 --key-file k keys
    refuses "leave out --seed" build -o f --key-file k --seed 1 keys
    refuses "give --key-file" build -o f --hash sip keys
    check "nothing was made" [ ! -e f ]
}

# Ways to write ten million, and a thousandth.
test_numbers() {
    local value
    for value in 10M 1e7 10000000 0.01G 10000k 1e4k 10000000.0 10m; do
        tells_json capacity 10000000 plan -n $value --json
    done
    for value in 0.001 1e-3 0.1% .001 0.01e-1; do
        tells_json fpr_asked 0.001 plan -n 1M --json -p $value
    done
}

# ---- The main job --------------------------------------------------------------------

# The exit status is that of grep: 0 if a line was printed or counted, 1 if none, 2 after an
# error.
test_build_and_query() {
    seq 1 20000 >in
    seq 20001 40000 >not_in
    reports "20,000 keys into f: " build -o f in
    check "build: one line" lines err 1
    check "build: nothing on stdout" lines out 0
    matches in query f in
    check "query: exit" exits 0
    check "query: no summary" is_silent
    writes '' query -v f in
    check "query -v: exit" exits 1
    counts -le 300 query -c f not_in # 1.5 % false positives, where 1 % is expected
    counts -ge 19700 query f -v -c not_in in
    check "query -v -c: exit" exits 0
    works query --any f in
    check "query --any: prints nothing" lines out 0
    printf 'certainly not\n' >one
    run build -p 1e-12 -o sharp in
    ends 1 query --any sharp one
    ends 1 query sharp one
    writes $'perhaps\t1\nno\tx\nperhaps\t2\n' query --label sharp < <(printf '1\nx\n2')
    tells_json 'keys perhaps no' '20001 20000 1' query --json sharp in one
    writes $'20000\n' query sharp --count -- in
    tells_json keys 20000 build --json -o f in
    quietly build --quiet -o f in
}

# Every kind that the help lists builds, answers, verifies and removes repeats.
test_kinds() {
    local kind range
    seq 1 3000 >in
    for kind in $("$program" plan --help-all | sed -n '1,/^Kinds:/d; /^$/,$d; s/^  \([a-z][a-z]*\) .*/\1/p'); do
        range=
        [ "$kind" != bitmap ] || range='--integers=1-3000'
        works build --kind "$kind" $range -p 0.001 -o f in
        writes $'3000\n' query -c f in
        works verify f
        shows "^kind +$kind\$" info f
        if "$program" add f empty 2>&1 | grep -q 'built once'; then
            ends 2 dedup -q --kind "$kind" -n 3000 in
            continue
        fi
        run dedup -q --kind "$kind" $range -n 3000 < <(cat in in)
        check "$kind: dedup: few lines are lost" [ "$(wc -l <out)" -ge 2995 ]
        check "$kind: dedup: none comes twice" [ -z "$(sort out | uniq -d)" ]
    done
    run build --removable -o f in
    works remove f in
}

# Any number of threads makes the same file, and keeps the order of the lines.
test_threads() {
    local j
    seq 100000 >in # several blocks of input
    for j in 1 2 7; do
        works build -j $j --seed 5 -o f$j in
        matches in query -j $j f$j in
        check "-j $j: the same filter" same f1 f$j
        matches in dedup -j $j -p 1e-15 in in
    done
}

# lines_of_all_sorts: prints random lines, many of them twice, which end anywhere in a block of
# input; empty lines and blanks; a line of 5 MB in the middle; and no newline at the end.
lines_of_all_sorts() {
    local i
    noise 1500000 | base64 -w 0 | tr '/+' '\n\n' >some
    cat some
    seq 30000
    head -c 5000000 /dev/zero | tr '\0' x
    printf '\n\n\n \n'
    for i in 1 2 3; do head -c $((300000 * i)) some; done
    seq 20000 40000
    printf 'the end'
}

# Many threads give the same output and the same files as one, whatever the lines are.
test_threads_are_alike() {
    local j verb
    lines_of_all_sorts >in
    { seq 30000; cat in; seq 50000; } >ask
    awk '!seen[$0]++' in >first
    awk 'seen[$0]++' in >again
    for j in 1 2 8; do
        run build -j $j -n 400k -p 1e-12 --seed 7 -o f$j in
        check "alike: build -j $j: the same filter" same f1 f$j
        cp f1 more$j
        run add -j $j more$j ask
        check "alike: add -j $j: the same filter" same more1 more$j
        for verb in query "query -v" "query --label" "query -c"; do
            alike "$verb" $verb -j $j f1 ask
        done
        matches first dedup -j $j -p 1e-12 in
        matches again dedup -j $j -p 1e-12 -d in
        matches first dedup -j $j -p 1e-12 -n 8M -q in in
        matches first dedup -j $j -p 1e-12 -n 1M --state s$j in
        alike left dedup -j $j --state s$j in ask
    done
    check "alike: the last newline" [ "$(tail -n 1 first)" = "the end" ]
}

# Any number of threads names the same line in an error, and has done the lines before it.
test_threads_blame_alike() {
    local j verb
    { seq -f '%.0f x' 90000; echo alone; seq -f '%.0f y' 50000; echo alone; } >in
    seq -f '%016.0f' 90000 >sized
    { cat sized; echo short; cat sized; } >bad
    run build -n 200k --hash none -p 1e-12 -o none sized
    run build -n 300k -o f keys
    for j in 1 2 8; do
        for verb in "dedup -p 1e-12" "dedup -n 8M" "build -o g" "query f" "add f"; do
            run $verb -j $j --delimiter ' ' --field 2 in
            check "blame: $verb -j $j" says "2 lines skipped: in:90001 has no such field"
        done
        refuses "full" dedup -j $j -n 1000 --field 1 --delimiter ' ' in
        cp err full$j
        check "blame: dedup -j $j: full: the same line" same full1 full$j
        alike full dedup -j $j -n 1000 --field 1 --delimiter ' ' in
        refuses "full" build -j $j -n 1000 --seed 3 -p 1e-12 -o g --field 1 -d ' ' in
        cp err built$j
        check "blame: build -j $j: full: the same line" same built1 built$j
        refuses "bad:90001: not 16 bytes" add -j $j none bad
        refuses "missing: No such file" query -c -j $j f keys missing
    done
}

# Lines that come slowly, and in halves, are passed on in order, by any number of threads.
test_slow_pipes() {
    local j
    seq 60 >in
    run build -n 100 -p 1e-12 -o f in
    for j in 1 8; do
        for i in $(seq 20); do printf '%d\n%d' $((3 * i - 2)) $((3 * i - 1)); echo; echo $((3 * i)); sleep 0.005; done |
            "$program" query -j $j f >out 2>err
        check "slow pipe: query -j $j" same out in
        for i in $(seq 20); do seq $((3 * i - 2)) $((3 * i)); echo 1; sleep 0.005; done |
            "$program" dedup -j $j -q -n 100 -p 1e-12 >out 2>err
        check "slow pipe: dedup -j $j" same out in
    done
}

# ---- Input ---------------------------------------------------------------------------

# Lines that end in \r\n, records that end in a zero byte, empty lines, and binary data.
test_records() {
    printf 'a\r\nb\nb\n\nlast' >in
    reports "5 keys" build -p 1e-12 -o f in
    printf 'a\na\r\n\nlast\nb\nx\n' >ask
    writes $'a\r\n\nlast\nb\n' query f ask
    writes $'a\nx\n' query f ask -v
    run build --crlf -p 1e-12 -o f in
    writes $'a\na\r\n\nlast\nb\n' query --crlf f ask
    printf 'one\ntwo\0three\0\0' >in
    reports "3 keys" build -0 -p 1e-12 -o f in
    run query -0 f < <(printf 'three\0one\ntwo\0one\0')
    check "-0: query" [ "$(tr '\0' '|' <out)" = $'three|one\ntwo|' ]
    works build -o f empty
    ends 1 query f < <(printf 'a\n\n')
    noise 3000000 >binary
    printf '\n' >>binary
    run build -p 1e-12 -o f binary
    matches binary query f binary
}

# A line of 4 MB is one key, and differs from one that is a byte longer.
test_long_lines() {
    { head -c 4000000 /dev/zero | tr '\0' x; echo; seq 9; } >in
    { cat in; head -c 4000000 /dev/zero | tr '\0' x; echo y; } >ask
    reports "10 keys" build -p 1e-12 -o f in
    matches in query f ask
    run dedup in ask
    check "long line: dedup" lines out 11
}

test_fields() {
    printf 'x,1,p\ny,2,q\n' >in
    works build -p 1e-12 --field 2 -d , -o f in
    printf '0\t2\tz\n1\t3\tz\r\n' >ask
    writes $'0\t2\tz\n' query f --field 2 ask
    refuses "ask:1: has no such field, nor has any other line" query f --field 4 ask
    printf 'a b\nc d\nx\ne f\n' >ask
    run build -n 100 -o f keys
    writes $'a b\nc d\ne f\n' dedup --field 2 --delimiter ' ' ask
    check "--field: missing in dedup" says "1 line skipped: ask:3 has no such field"
    reports "1 line skipped: ask:3 has no such field" add --rewrite f --field 2 -d ' ' ask
    run build -n 5 -p 1e-12 -o f --field 2 -d ' ' --crlf < <(printf 'a b\r\n')
    works query --field 1- f < <(printf 'b\n')
    works dedup -n 5 --field 2 --delimiter '\t' < <(printf 'a\\tb\tc\n')
}

# Without -n a file is counted first, from where standard input stands; a pipe cannot be.
test_counting() {
    seq 100 >in
    "$program" build -o f -p 1e-12 <in 2>err
    check "stdin from a file is counted" says "100 keys into f"
    refuses "standard input: cannot be read twice" dedup --kind bloom < <(seq 3)
    check "pipe without -n: says how" says "-n 10M"
    refuses "cannot be read twice" build --kind window -o g in <(seq 3)
    check "nothing was made" [ ! -e g ]
    refuses "in:" build -n 3 -o g - in < <(seq 3)
    check "-n too small: says" says "full" "g was not made"
    check "-n too small: nothing was made" [ ! -e g ]
    reports "103 keys" build -n 200 -o g - in < <(seq 3)
    { dd bs=1 count=6 of=/dev/null 2>dd_err && "$program" build -o f --json 2>err; } <in
    check "stdin from its offset on" [ "$(field keys err)" = 97 ]
}

# Packed inputs are unpacked; cut or corrupt ones are an error, and the filter stays as it was.
test_packed() {
    seq 1 50000 >in
    seq 50001 60000 >further
    run build -p 1e-12 -n 100k -o f in
    for tool in gzip zstd xz bzip2; do
        command -v $tool >/dev/null || continue
        $tool -qc <in >in.packed
        { $tool -qc <in; $tool -qc <further; $tool -qc <empty; } >two.packed
        reports "50,000 keys into p" build -p 1e-12 -o p in.packed
        matches in query p in
        writes $'50000\n' query -c f in.packed
        shows "^new	60000\$" dedup -p 1e-12 -c two.packed in
        matches in dedup -p 1e-12 -n 50000 < <(cat in.packed)
        head -c 9000 in.packed >short.packed
        refuses "short.packed: truncated $tool data" query -c f short.packed
        head -c 10 in.packed >short.packed
        refuses "short.packed: truncated $tool data" build -o g short.packed
        { head -c 9000 in.packed; head -c 9000 /dev/zero; } >bad.packed
        keeps f refuses "bad.packed: " add --rewrite f bad.packed
        check "$tool: corrupt: outcome" says "; f is unchanged"
        { cat in.packed; echo junk; } >bad.packed
        refuses "bad.packed: " query -c f bad.packed
    done
    printf '\x1f' >in
    reports "1 key into" build -o p in
}

# Inputs that cannot be read are told before any work is done.
test_bad_inputs() {
    run build -o f keys
    cp f f.before
    for verb in "query f" "add f" "dedup" "build -o g"; do
        refuses "missing: No such file or directory" $verb missing
        refuses "missing: No such file or directory" $verb keys missing
        check "$verb: told before the work" lines out 0
        refuses ".: Is a directory" $verb .
    done
    if [ "$(id -u)" -ne 0 ]; then
        cp keys secret_in
        chmod 0 secret_in
        refuses "secret_in: Permission denied" query f secret_in
    fi
    check "f is unchanged" same f f.before
    check "g was not made" [ ! -e g ]
    refuses "a?b: No such file" query f "$(printf 'a\nb')"
}

# ---- Filter files --------------------------------------------------------------------

# Files that are no filters, and outputs that cannot be written, are refused and stay.
test_bad_filters() {
    mkdir -p a_folder
    run build -o f keys
    for verb in query add remove info verify; do
        refuses "missing: No such file or directory" $verb missing
        refuses "keys: not a filter file" $verb keys
        refuses "a_folder: Is a directory" $verb a_folder
    done
    refuses "a_folder: Is a directory" build -o a_folder keys
    refuses "missing/f: cannot be written" build -o missing/f keys
    refuses "keys: is an input, too" build -o keys keys
    check "build: onto its input: it stands" lines keys 10
    refuses "f: is an input, too" add f f
    refuses "keys: not a filter file" merge -o g f keys
    if [ "$(id -u)" -ne 0 ]; then
        chmod a-w a_folder
        refuses "a_folder/f: cannot be written: Permission denied" build -o a_folder/f keys
    fi
}

# With --check no key is missed in a file that was overwritten with zeros.  Byte 69632 is the
# begin of the second page: 4096 of the header and 65536 of the first page.
test_overwritten() {
    seq 100000 >in
    run build -n 100000 -o f in
    run build -n 100000 --count -o g in
    writes $'100000\n' query --check -c f in
    for filter in f g; do
        dd if=/dev/zero of=$filter bs=1000 seek=100 count=1 conv=notrunc 2>err
    done
    run query -c f in
    check "not checked: keys are missed" not prints $'100000\n'
    refuses "f: damaged: 1 of the 2 pages that were read, the first at byte 69632: keys" query --check f in
    check "checked: none is missed" same out in
    refuses "the file is damaged" count --check g in
}

# Adds and removals that fail leave the file as it was; links to a filter are followed and kept.
test_add_and_remove() {
    seq 1 1000 >in
    seq 1001 2000 >further
    run build -n 2000 -p 1e-8 --removable -o f in
    reports "1,000 keys added to f" add f further
    writes $'2000\n' query -c f in further
    reports "1,000 keys removed from f, 3 were not in it" remove f further <(seq 5001 5003)
    writes $'1000\n' query -c f in
    writes $'0\n' query -c f further
    tells_json unmatched_removals 3 info --json f
    keeps f refuses "full" add f <(seq 1 9000)
    check "add: too many: outcome" says "; f is unchanged"
    yes same | head -20 >copies
    keeps f refuses "copies:" add f copies
    run build -o b in
    keeps b refuses "b: its kind" remove b in
    works add f < <(:)
    mkdir -p other
    ln -sf ../f other/link
    works add other/link <(echo new)
    check "add: the link is kept" [ -L other/link ]
    works query f <(echo new)
}

test_hash_none() {
    printf '0123456789abcdef\nfedcba9876543210\n' >in
    works build --hash none -p 1e-6 -o f in
    writes $'2\n' query -c f in
    printf '0123456789abcdef\nshort\n' >bad
    refuses "bad:2: not 16 bytes" build --hash none -o g bad
}

# A secret is made if there is none, is readable for its owner only, and is needed from then on.
test_key_file() {
    seq 100 >in
    reports "key: made with a new secret" build --key-file key -o f in
    check "--key-file: for its owner" [ "$(stat -c %a key)" = 600 ]
    writes $'100\n' query -c --key-file key f in
    refuses "f: was built with a secret: give it with --key-file" query -c f in
    printf '%032d' 1 >hex
    refuses "f: hex is not the key file" query -c --key-file hex f in
    refuses "missing: No such file" add --key-file missing f in
    refuses "in: not a key file" add --key-file in f in
    keeps key run build --hash sip --key-file key -n 1000 -o g in
    check "--key-file: taken silently" lines err 1
    works add --key-file key g in
    printf 0123456789abcdef >raw
    printf 30313233343536373839616263646566 >hex
    run build --key-file raw -o f in
    writes $'100\n' query -c --key-file hex f in
    for verb in info verify; do
        works $verb f
    done
    shows "^hash +sip" info f
    works merge -o h f f
}

# Filters of one seed, size and rate can be merged; others are refused and nothing is saved.
test_merge() {
    seq 1 1000 >a
    seq 1001 2000 >b
    seq 2001 2500 >c
    for name in a b c; do
        run build --seed 0x2a -n 2500 -p 1e-6 -o f$name $name
    done
    reports "3 filters into all" merge -o all fa fb fc
    writes $'2500\n' query -c all a b c
    works merge -q -o fa fa fb
    writes $'2000\n' query -c fa a b
    cp all all.before
    run build --seed 43 -n 2500 -p 1e-6 -o other a
    refuses "other: differs from fa (seed 43 and 42): build both" merge -o all fa other
    run build --seed 0x2a -n 9999 -p 1e-7 -o other a
    refuses "other: differs from fa (capacity 9999 and 2500, fpr 1e-07 and 1e-06): build both" \
        merge -o all fa other
    refuses "missing: No such file" merge -o all fa missing
    check "merge: nothing was saved" same all all.before
    run build -n 100 --kind cuckoo --seed 3 -o x <(seq 100)
    run build -n 100 --kind cuckoo --seed 3 -o y <(seq 101 200)
    refuses "y: does not fit" merge -o z x y
}

# flip FILE OFFSET: inverts the lowest bit of a byte.
flip() {
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    printf "\\$(printf %o $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>dd_err
}

# A flipped bit and a cut file are found.
test_verify() {
    seq 200000 >in
    run build -o f in
    shows '^f: ok, [0-9]+ pages$' verify f
    cp f bad
    flip bad 100000
    ends 1 verify bad
    check "verify: damaged: says where" says "bad: damaged: 1 of "
    # What is copied from it would have checksums that are right.
    for arguments in "copy bad copy" "shrink bad -o copy" "merge -o copy f bad" "merge --common -o copy bad f"; do
        refuses "bad: the file is damaged" $arguments
    done
    refuses "f or bad: the file is damaged" compare f bad
    check "damaged: no copy was made" [ ! -e copy ]
    refuses "bad: " add bad in
    head -c 50000 f >bad
    ends 1 verify bad
    check "verify: truncated: one line" lines err 1
    refuses "bad: " query bad in
    cp f bad
    flip bad 100
    refuses "bad: " info bad
}

# The facts of a filter and of a plan, for people and as JSON; odd names of files are quoted.
test_info_and_plan() {
    seq 1000 >in
    run build -n 1000 -o f in
    shows "^room +full\$" info f
    check "info" tells "^rate +.* at most 1 % was asked\$"
    tells_json capacity 1000 info --json f
    check "info --json: one line" lines out 1
    check "info --json: pages" tells '"huge_pages":(true|false)' '"instructions":"[a-z0-9]+"'
    shows "^capacity +5,000,000,000\$" plan -n 5e9 -p 0.1%
    check "plan: says why" tells "^why +"
    works plan -n 1M --removable --json
    refuses "--kind bloom: cannot do all that is asked" plan -n 1M --kind bloom --removable
    local odd
    odd=$(printf 'odd\377\303\251')
    cp f "$odd"
    shows '"odd\?é"' info --json "$odd"
    is_json "info --json" . out
    run build --json -o "$odd" in
    is_json "build --json" .keys err
    run plan -n 9 --json
    is_json "plan --json" .kind out
}

test_together() {
    seq 2000 >in
    works build -p 1e-5 --kind blocked:together -o f in
    shows '"together":1' info --json f
    check "info: several lines" tells '"bands":[2-8],'
    writes $'2000\n' query -c f in
    run plan -n 1M -p 1% --kind blocked:together --json
    check "plan: one line" tells '"together":0'
    refuses "takes no colon" plan -n 1M --kind cuckoo:together
    refuses "--kind blocked: cannot do all" plan -n 1M --kind blocked:together --removable
    refuses "--kind blocked: cannot" build --kind blocked:together --grow -o g < <(seq 2000)
    check "together: nothing was written" [ ! -e g ]
}

# ---- Dedup ---------------------------------------------------------------------------

test_dedup() {
    printf 'b\na\nb\nc\na\nb\n' >in
    writes $'b\na\nc\n' dedup in
    check "dedup: summary" says "6 lines, 3 new, 3 repeated; " "new lines may have been taken for old"
    writes $'b\na\nb\n' dedup -d in
    writes $'lines\t6\nnew\t3\nrepeated\t3\n' dedup -c in
    tells_json 'lines new repeated' '6 3 3' dedup --json in
    reports "about " dedup -n 1000 --kind bloom -p 0.5 < <(seq 1 1000)
}

# A state remembers between runs.  When it is full, or the output cannot be written, the lines
# that were printed are remembered and no others.
test_dedup_state() {
    seq 1 100 >in
    run dedup -n 300 -p 1e-12 --state s in
    cp s s.100
    check "--state: new" same out in
    writes '' dedup --state s in
    check "--state: summary" says "0 new, 100 repeated"
    matches <(seq 101 150) dedup --state s < <(seq 51 150)
    ends 2 dedup --state s < <(seq 201 2000)
    check "--state: full: says" says "full"
    local printed
    printed=$(wc -l <out)
    check "--state: full: the lines so far stand" [ "$printed" -ge 140 ]
    run info --json s
    check "--state: full: remembered" [ "$(field keys out)" -ge 280 ]
    writes '' dedup --state s < <(seq 201 $((200 + printed)))
    refuses "in: is an input, too" dedup --state in in
    refuses "missing/s: cannot be written" dedup --state missing/s in
    check "--state: nothing printed then" lines out 0
    mv s.100 s
    keeps s refuses_into /dev/full "standard output: No space left on device; s is unchanged" \
        dedup --state s <(seq 10000 10005)
    refuses_into in "standard output: is an input, too" dedup in
}

# Each line is answered before the next one comes, so the verbs work in pipelines of people.
test_streaming() {
    local j
    run build -n 10 -p 1e-12 -o f < <(seq 3)
    for verb in "dedup -n 100" dedup "dedup --window 1h" "query f"; do
        for j in 1 2 8; do answers_at_once $verb -j $j; done
    done
}

# The program ends when its answer is known or an error has come; it does not wait for the rest
# of an input that never ends.
test_early_end() {
    local j
    seq 3 >in
    run build -n 3 -p 1e-12 -o f in
    mkfifo open_ended
    exec 5<>open_ended
    for j in 1 2 8; do
        echo 2 >&5
        # the limit is only for a program that does not end
        timeout 60 "$program" query --any -j $j f open_ended 2>err
        status=$?
        check "-j $j: query --any ends at the first" exits 0
        seq 100 >&5
        timeout 60 "$program" add -j $j f open_ended 2>err
        status=$?
        refused "-j $j: add ends at an error" "open_ended:"
    done
    exec 5>&-
}

run_tests
