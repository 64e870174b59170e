#!/usr/bin/env bash
# End-to-end tests of the command line:  cli_test.sh PROGRAM
# Prints a line for each check that fails and a total; exit status 1 if one failed.
. "$(dirname "$0")/cli_helpers.sh"

# ---- Help, usage ---------------------------------------------------------------------

test_help() {
    local verb
    run
    check "no arguments" exits 2
    check "no arguments: usage on stderr" says "usage: perhaps"
    check "no arguments: nothing on stdout" lines out 0
    for arguments in help --help -h "help build" "build --help" "query -h"; do
        run $arguments
        check "$arguments" exits 0
        check "$arguments: on stdout" tells "usage: perhaps"
        check "$arguments: silent" is_silent
    done
    for verb in build add remove query count dedup info plan merge verify; do
        run help $verb
        check "help $verb" exits 0
        check "help $verb" tells "usage: perhaps $verb"
        check "help $verb: --help" tells "--help"
    done
    run plan --help-all
    check "plan --help-all: kinds" tells "^Kinds:"
    run help nonsense
    refused "help nonsense" "nonsense: no such verb"
    run --version
    check "--version" exits 0
    check "--version" tells '^perhaps [0-9]+\.[0-9]+\.[0-9]+'
    run nonsense
    refused "unknown verb" "nonsense: no such verb"
}

test_bad_options() {
    local value
    for value in 0 -5 10x nan inf 0x10 1.5 1e30 99T9 "" " 1" 1e 300T; do
        refuses "-n $value: " build -o f -n "$value" keys
        refuses "-n $value: " plan --capacity="$value"
    done
    for value in 0 1 -1 nan inf 2 100% 1e-16 0x1p-3 x "" 1e-3x; do
        refuses "-p $value: " build -o f -p "$value" keys
    done
    refuses "--kind nonsense: " build -o f --kind nonsense keys
    refuses "--hash nonsense: " build -o f --hash nonsense keys
    refuses "--seed 0: " build -o f --seed 0 keys
    refuses "--seed -1: " build -o f --seed -1 keys
    refuses "-j 0: " build -o f -j 0 keys
    refuses "--field 0: " build -o f --field 0 keys
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

test_numbers() {
    local value
    for value in 10M 1e7 10000000 0.01G 10000k 1e4k 10000000.0 10m; do
        run plan -n $value --json
        check "-n $value" [ "$(field capacity out)" = 10000000 ]
    done
    for value in 0.001 1e-3 0.1% .001 0.01e-1; do
        run plan -n 1M --json -p $value
        check "-p $value" [ "$(field fpr_asked out)" = 0.001 ]
    done
}

# ---- The main job --------------------------------------------------------------------

test_build_and_query() {
    seq 1 20000 >in
    seq 20001 40000 >not_in
    run build -o f in
    check "build" exits 0
    check "build: summary" says "20,000 keys into f: "
    check "build: one line" lines err 1
    check "build: nothing on stdout" lines out 0
    run query f in
    check "query: all are found" same out in
    check "query: exit" exits 0
    check "query: no summary" is_silent
    run query -v f in
    check "query -v: none" lines out 0
    check "query -v: exit" exits 1
    run query -c f not_in
    check "query -c: at most 1.5 % false positives" [ "$(cat out)" -le 300 ]
    run query f -v -c not_in in
    check "query -v -c" [ "$(cat out)" -ge 19700 ]
    check "query -v -c: exit" exits 0
    run query --any f in
    check "query --any" exits 0
    check "query --any: prints nothing" lines out 0
    printf 'certainly not\n' >one
    run build -p 1e-12 -o sharp in
    run query --any sharp one
    check "query --any: none" exits 1
    run query sharp one
    check "query: none" exits 1
    run query --label sharp < <(printf '1\nx\n2')
    check "query --label" prints $'perhaps\t1\nno\tx\nperhaps\t2\n'
    run query --json sharp in one
    check "query --json" [ "$(field keys err) $(field perhaps err) $(field no err)" = "20001 20000 1" ]
    run query sharp --count -- in
    check "options behind operands" prints $'20000\n'
    run build --json -o f in
    check "build --json" [ "$(field keys err)" = 20000 ]
    run build --quiet -o f in
    check "build --quiet" is_silent
}

test_kinds() {
    local kind
    seq 1 3000 >in
    for kind in $("$program" plan --help-all | sed -n '1,/^Kinds:/d; /^$/,$d; s/^  \([a-z][a-z]*\) .*/\1/p'); do
        run build --kind "$kind" -p 0.001 -o f in
        check "$kind: build" exits 0
        run query -c f in
        check "$kind: no false negative" prints $'3000\n'
        run verify f
        check "$kind: verify" exits 0
        run info f
        check "$kind: info" tells "^kind +$kind\$"
        run dedup -q --kind "$kind" -n 3000 < <(cat in in)
        check "$kind: dedup: few lines are lost" [ "$(wc -l <out)" -ge 2995 ]
        check "$kind: dedup: none comes twice" [ -z "$(sort out | uniq -d)" ]
    done
    run build --removable -o f in
    run remove f in
    check "--removable" exits 0
}

test_threads() {
    local j
    seq 100000 >in
    for j in 1 2 7; do
        run build -j $j --seed 5 -o f$j in
        check "-j $j: build" exits 0
        run query -j $j f$j in
        check "-j $j: order" same out in
        check "-j $j: the same filter" same f1 f$j
        run dedup -j $j -p 1e-15 in in
        check "-j $j: dedup" same out in
    done
}

# lines_of_all_sorts: random lines, many of them twice, which end anywhere in a block; empty ones
# and blanks; one of 5 MB in the middle; no newline at the end.
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

# What many threads do cannot be told from what one does.
test_threads_are_alike() {
    local j verb
    lines_of_all_sorts >in
    { seq 30000; cat in; seq 50000; } >ask
    awk '!seen[$0]++' in >first
    awk 'seen[$0]++' in >again
    for j in 1 2 3 8; do
        run build -j $j -n 400k -p 1e-12 --seed 7 -o f$j in
        check "alike: build -j $j: the same filter" same f1 f$j
        cp f1 more$j
        run add -j $j more$j ask
        check "alike: add -j $j: the same filter" same more1 more$j
        for verb in query "query -v" "query --label" "query -c"; do
            run $verb -j $j f1 ask
            [ $j = 1 ] && cp out "$verb.1"
            check "alike: $verb -j $j" same out "$verb.1"
        done
        run dedup -j $j -p 1e-12 in
        check "alike: dedup -j $j" same out first
        run dedup -j $j -p 1e-12 -d in
        check "alike: dedup -d -j $j" same out again
        run dedup -j $j -p 1e-12 -n 8M -q in in
        check "alike: dedup -j $j in parts" same out first
        run dedup -j $j -p 1e-12 -n 1M --state s$j in
        check "alike: dedup -j $j --state" same out first
        run dedup -j $j --state s$j in ask
        cp out left$j
        check "alike: dedup -j $j --state again" same left1 left$j
    done
    check "alike: the last newline" [ "$(tail -n 1 first)" = "the end" ]
}

# The same line is blamed, and what came before it is done.
test_threads_blame_alike() {
    local j verb
    { seq -f '%.0f x' 90000; echo alone; seq -f '%.0f y' 50000; echo alone; } >in
    seq -f '%016.0f' 90000 >sized
    { cat sized; echo short; cat sized; } >bad
    run build -n 200k --hash none -p 1e-12 -o none sized
    run build -n 300k -o f keys
    for j in 1 2 3 8; do
        for verb in "dedup -p 1e-12" "dedup -n 8M" "build -o g" "query f" "add f"; do
            run $verb -j $j -q --delimiter ' ' --field 2 in
            check "blame: $verb -j $j" says "2 lines skipped: in:90001 has no such field"
        done
        run dedup -j $j -n 1000 --field 1 --delimiter ' ' in
        refused "blame: dedup -j $j: full" "full"
        cp err full$j
        cp out out$j
        check "blame: dedup -j $j: full: the same line" same full1 full$j
        check "blame: dedup -j $j: full: the same output" same out1 out$j
        run build -j $j -n 1000 --seed 3 -p 1e-12 -o g --field 1 -d ' ' in
        refused "blame: build -j $j: full" "full"
        cp err built$j
        check "blame: build -j $j: full: the same line" same built1 built$j
        run add -j $j none bad
        refused "blame: add -j $j: key of another size" "bad:90001: not 16 bytes"
        run query -c -j $j f keys missing
        refused "blame: query -j $j: missing input" "missing: No such file"
    done
}

# What comes slowly is passed on in order, by any number of threads.
test_slow_pipes() {
    local j
    seq 60 >in
    run build -n 100 -p 1e-12 -o f in
    for j in 1 2 8; do
        for i in $(seq 20); do printf '%d\n%d' $((3 * i - 2)) $((3 * i - 1)); echo; echo $((3 * i)); sleep 0.005; done |
            "$program" query -j $j f >out 2>err
        check "slow pipe: query -j $j" same out in
        for i in $(seq 20); do seq $((3 * i - 2)) $((3 * i)); echo 1; sleep 0.005; done |
            "$program" dedup -j $j -q -n 100 -p 1e-12 >out 2>err
        check "slow pipe: dedup -j $j" same out in
    done
}

# ---- Input ---------------------------------------------------------------------------

test_records() {
    printf 'a\r\nb\nb\n\nlast' >in
    run build -p 1e-12 -o f in
    check "records: build" exits 0
    check "records: all counted" says "5 keys"
    printf 'a\na\r\n\nlast\nb\nx\n' >ask
    run query f ask
    check "a carriage return belongs to the key" prints $'a\r\n\nlast\nb\n'
    run query f ask -v
    check "query -v" prints $'a\nx\n'
    run build --crlf -p 1e-12 -o f in
    run query --crlf f ask
    check "--crlf strips it from the key, not from the output" prints $'a\na\r\n\nlast\nb\n'
    printf 'one\ntwo\0three\0\0' >in
    run build -0 -p 1e-12 -o f in
    check "-0: build" says "3 keys"
    run query -0 f < <(printf 'three\0one\ntwo\0one\0')
    check "-0: query" [ "$(tr '\0' '|' <out)" = $'three|one\ntwo|' ]
    : >empty
    run build -o f empty
    check "an empty input makes an empty filter" exits 0
    run query f < <(printf 'a\n\n')
    check "an empty filter holds nothing" exits 1
    noise 3000000 >binary
    printf '\n' >>binary
    run build -p 1e-12 -o f binary
    run query f binary
    check "any bytes" same out binary
}

test_long_lines() {
    { head -c 4000000 /dev/zero | tr '\0' x; echo; seq 9; } >in
    { cat in; head -c 4000000 /dev/zero | tr '\0' x; echo y; } >ask
    run build -p 1e-12 -o f in
    check "long line: build" exits 0
    check "long line: count" says "10 keys"
    run query f ask
    check "long line: query" same out in
    run dedup in ask
    check "long line: dedup" lines out 11
}

test_fields() {
    printf 'x,1,p\ny,2,q\n' >in
    run build -p 1e-12 --field 2 -d , -o f in
    check "--field: build" exits 0
    printf '0\t2\tz\n1\t3\tz\r\n' >ask
    run query f --field 2 ask
    check "--field: the whole line is printed" prints $'0\t2\tz\n'
    run query f --field 4 ask
    refused "--field: missing" "ask:1: has no such field, nor has any other line"
    printf 'a b\nc d\nx\ne f\n' >ask
    run build -n 100 -o f keys
    run dedup --field 2 --delimiter ' ' ask
    check "--field: the other lines are done" prints $'a b\nc d\ne f\n'
    check "--field: missing in dedup" says "1 line skipped: ask:3 has no such field"
    run add --rewrite f --field 2 -d ' ' ask
    check "--field: missing in add" says "1 line skipped: ask:3 has no such field"
    run build -n 5 -p 1e-12 -o f --field 2 -d ' ' --crlf < <(printf 'a b\r\n')
    run query f < <(printf 'b\n')
    check "--field --crlf" exits 0
    run dedup -n 5 --field 2 --delimiter '\t' < <(printf 'a\\tb\tc\n')
    check "--delimiter \\t" exits 0
}

test_counting() {
    seq 100 >in
    "$program" build -o f -p 1e-12 <in 2>err
    check "stdin from a file is counted" says "100 keys into f"
    run build --kind blocked -o g < <(seq 3)
    refused "pipe without -n, a kind that does not grow" "standard input: cannot be read twice"
    check "pipe without -n: says how" says "-n 10M"
    run dedup --kind bloom < <(seq 3)
    refused "dedup of a pipe, a kind that does not grow" "standard input: cannot be read twice"
    run build --kind window -o g in <(seq 3)
    refused "process substitution, a kind that does not grow" "cannot be read twice"
    check "nothing was made" [ ! -e g ]
    run build -n 3 -o g - in < <(seq 3)
    refused "-n too small" "in:"
    check "-n too small: says" says "full"
    check "-n too small: outcome" says "g was not made"
    check "-n too small: nothing was made" [ ! -e g ]
    run build -n 200 -o g - in < <(seq 3)
    check "- and a file" says "103 keys"
    { dd bs=1 count=6 of=/dev/null 2>dd_err && "$program" build -o f --json 2>err; } <in
    check "stdin from its offset on" [ "$(field keys err)" = 97 ]
}

test_packed() {
    seq 1 50000 >in
    seq 50001 60000 >further
    run build -p 1e-12 -n 100k -o f in
    for tool in gzip zstd xz bzip2; do
        command -v $tool >/dev/null || continue
        $tool -qc <in >in.packed
        { $tool -qc <in; $tool -qc <further; $tool -qc <empty; } >two.packed
        run build -p 1e-12 -o p in.packed
        check "$tool: counted and built" says "50,000 keys into p"
        run query p in
        check "$tool: holds the keys" same out in
        run query -c f in.packed
        check "$tool: asked" prints $'50000\n'
        run dedup -p 1e-12 -c two.packed in
        check "$tool: several streams in a file" tells "^new	60000\$"
        run dedup -n 50000 < <(cat in.packed)
        check "$tool: on stdin" same out in
        head -c 9000 in.packed >short.packed
        run query -c f short.packed
        refused "$tool: truncated" "short.packed: truncated $tool data"
        head -c 10 in.packed >short.packed
        run build -o g short.packed
        refused "$tool: truncated in the header" "short.packed: truncated $tool data"
        { head -c 9000 in.packed; head -c 9000 /dev/zero; } >bad.packed
        cp f f.before
        run add --rewrite f bad.packed
        refused "$tool: corrupt" "bad.packed: "
        check "$tool: corrupt: outcome" says "; f is unchanged"
        check "$tool: corrupt: f is unchanged" same f f.before
        { cat in.packed; echo junk; } >bad.packed
        run query -c f bad.packed
        refused "$tool: junk behind" "bad.packed: "
    done
    printf '\x1f' >in
    run build -o p in
    check "half a magic number is a key" says "1 key into"
}

test_bad_inputs() {
    seq 10 >in
    run build -o f in
    cp f f.before
    for verb in "query f" "add f" "dedup" "build -o g"; do
        run $verb missing
        refused "$verb: missing input" "missing: No such file or directory"
        run $verb in missing
        refused "$verb: missing second input" "missing: No such file or directory"
        check "$verb: told before the work" lines out 0
        run $verb .
        refused "$verb: a folder as input" ".: Is a directory"
    done
    if [ "$(id -u)" -ne 0 ]; then
        cp in secret_in
        chmod 0 secret_in
        run query f secret_in
        refused "unreadable input" "secret_in: Permission denied"
    fi
    check "f is unchanged" same f f.before
    check "g was not made" [ ! -e g ]
    run query f "$(printf 'a\nb')"
    refused "newline in a path" "a?b: No such file"
}

# ---- Filter files --------------------------------------------------------------------

test_bad_filters() {
    seq 10 >in
    mkdir -p a_folder
    run build -o f in
    for verb in query add remove info verify; do
        run $verb missing
        refused "$verb: missing filter" "missing: No such file or directory"
        run $verb in
        refused "$verb: not a filter" "in: not a filter file"
        run $verb a_folder
        refused "$verb: a folder" "a_folder: Is a directory"
    done
    run build -o a_folder in
    refused "build: onto a folder" "a_folder: Is a directory"
    run build -o missing/f in
    refused "build: into no folder" "missing/f: cannot be written"
    run build -o in in
    refused "build: onto its input" "in: is an input, too"
    check "build: onto its input: it stands" lines in 10
    run add f f
    refused "add: the filter to itself" "f: is an input, too"
    run merge -o g f in
    refused "merge: not a filter" "in: not a filter file"
    if [ "$(id -u)" -ne 0 ]; then
        chmod a-w a_folder
        run build -o a_folder/f in
        refused "build: read-only folder" "a_folder/f: cannot be written: Permission denied"
    fi
}

test_overwritten() {
    seq 100000 >in
    run build -n 100000 -o f in
    run build -n 100000 --count -o g in
    run query --check -c f in
    check "checked: sound" prints $'100000\n'
    for filter in f g; do
        dd if=/dev/zero of=$filter bs=1000 seek=100 count=1 conv=notrunc 2>err
    done
    run query -c f in
    check "not checked: keys are missed" not prints $'100000\n'
    run query --check f in
    refused "checked" "f: damaged: 1 of the 2 pages that were read, the first at byte 69632: keys"
    check "checked: none is missed" same out in
    run count --check g in
    refused "count, checked" "the file is damaged"
}

test_add_and_remove() {
    seq 1 1000 >in
    seq 1001 2000 >further
    run build -n 2000 -p 1e-8 --removable -o f in
    run add f further
    check "add" exits 0
    check "add: summary" says "1,000 keys added to f"
    run query -c f in further
    check "add: all are in" prints $'2000\n'
    run remove f further <(seq 5001 5003)
    check "remove" exits 0
    check "remove: summary" says "1,000 keys removed from f, 3 were not in it"
    run query -c f in
    check "remove: the others stay" prints $'1000\n'
    run query -c f further
    check "remove: these are gone" prints $'0\n'
    run info --json f
    check "remove: counted" [ "$(field unmatched_removals out)" = 3 ]
    cp f f.before
    run add f <(seq 1 9000)
    refused "add: too many" "full"
    check "add: too many: outcome" says "; f is unchanged"
    check "add: too many: f is unchanged" same f f.before
    yes same | head -20 >copies
    run add f copies
    refused "add: too many copies" "copies:"
    check "add: too many copies: f is unchanged" same f f.before
    run build -o b in
    cp b b.before
    run remove b in
    refused "remove: from a kind that cannot" "b: its kind"
    check "remove: from a kind that cannot: unchanged" same b b.before
    run add f < <(:)
    check "add: nothing" exits 0
    mkdir -p other
    ln -sf ../f other/link
    run add other/link <(echo new)
    check "add: through a symbolic link" exits 0
    check "add: the link is kept" [ -L other/link ]
    run query f <(echo new)
    check "add: through the link" exits 0
    check "no temporary files" no_litter
}

test_hash_none() {
    printf '0123456789abcdef\nfedcba9876543210\n' >in
    run build --hash none -p 1e-6 -o f in
    check "--hash none" exits 0
    run query -c f in
    check "--hash none: query" prints $'2\n'
    printf '0123456789abcdef\nshort\n' >bad
    run build --hash none -o g bad
    refused "--hash none: key of another size" "bad:2: not 16 bytes"
}

test_key_file() {
    seq 100 >in
    run build --key-file key -o f in
    check "--key-file: made" exits 0
    check "--key-file: says so" says "key: made with a new secret"
    check "--key-file: for its owner" [ "$(stat -c %a key)" = 600 ]
    run query -c --key-file key f in
    check "--key-file: query" prints $'100\n'
    run query -c f in
    refused "without the key" "f: was built with a secret: give it with --key-file"
    printf '%032d' 1 >hex
    run query -c --key-file hex f in
    refused "another key" "f: hex is not the key file"
    run add --key-file missing f in
    refused "missing key file" "missing: No such file"
    run add --key-file in f in
    refused "not a key file" "in: not a key file"
    cp key key.before
    run build --hash sip --key-file key -n 1000 -o g in
    check "--key-file: taken" same key key.before
    check "--key-file: taken silently" lines err 1
    run add --key-file key g in
    check "--key-file: add" exits 0
    printf 0123456789abcdef >raw
    printf 30313233343536373839616263646566 >hex
    run build --key-file raw -o f in
    run query -c --key-file hex f in
    check "--key-file: raw and hex" prints $'100\n'
    for verb in info verify; do
        run $verb f
        check "$verb needs no key" exits 0
    done
    run info f
    check "info tells the hash" tells "^hash +sip"
    run merge -o h f f
    check "merge needs no key" exits 0
}

test_merge() {
    seq 1 1000 >a
    seq 1001 2000 >b
    seq 2001 2500 >c
    for name in a b c; do
        run build --seed 0x2a -n 2500 -p 1e-6 -o f$name $name
    done
    run merge -o all fa fb fc
    check "merge" exits 0
    check "merge: summary" says "3 filters into all"
    run query -c all a b c
    check "merge: all are in" prints $'2500\n'
    run merge -q -o fa fa fb
    check "merge: onto a part" exits 0
    run query -c fa a b
    check "merge: onto a part" prints $'2000\n'
    cp all all.before
    run build -n 2500 -p 1e-6 -o other a
    run merge -o all fa other
    refused "merge: another seed" "other: differs from fa"
    run build --seed 0x2a -n 9999 -p 1e-6 -o other a
    run merge -o all fa other
    refused "merge: another size" "other: differs from fa"
    run merge -o all fa missing
    refused "merge: missing" "missing: No such file"
    check "merge: nothing was saved" same all all.before
    run build -n 100 --kind cuckoo --seed 3 -o x <(seq 100)
    run build -n 100 --kind cuckoo --seed 3 -o y <(seq 101 200)
    run merge -o z x y
    refused "merge: too many" "y: does not fit"
}

# flip FILE OFFSET: inverts the lowest bit of a byte.
flip() {
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    printf "\\$(printf %o $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>dd_err
}

test_verify() {
    seq 200000 >in
    run build -o f in
    run verify f
    check "verify" exits 0
    check "verify" tells '^f: ok, [0-9]+ pages$'
    cp f bad
    flip bad 100000
    run verify bad
    check "verify: damaged" exits 1
    check "verify: damaged: says where" says "bad: damaged: 1 of "
    run add bad in
    refused "add: damaged" "bad: "
    head -c 50000 f >bad
    run verify bad
    check "verify: truncated" exits 1
    check "verify: truncated: one line" lines err 1
    run query bad in
    refused "query: truncated" "bad: "
    cp f bad
    flip bad 100
    run info bad
    refused "info: damaged header" "bad: "
}

test_info_and_plan() {
    seq 1000 >in
    run build -n 1000 -o f in
    run info f
    check "info" tells "^capacity +1,000\$"
    check "info" tells "^fpr asked +0.01\$"
    check "info: pages" tells "^huge pages +(yes|no) \(mapped file\)\$"
    check "info: instructions" tells "^instructions +[a-z0-9]+\$"
    run info --json f
    check "info --json: one line" lines out 1
    check "info --json" [ "$(field capacity out)" = 1000 ]
    check "info --json: pages" tells '"huge_pages":(true|false)'
    check "info --json: instructions" tells '"instructions":"[a-z0-9]+"'
    run plan -n 5e9 -p 0.1%
    check "plan" tells "^capacity +5,000,000,000\$"
    check "plan: says why" tells "^why +"
    run plan -n 1M --removable --json
    check "plan --removable" exits 0
    run plan -n 1M --kind bloom --removable
    refused "plan: cannot" "--kind bloom: cannot do all that is asked"
    local odd
    odd=$(printf 'odd\377\303\251')
    cp f "$odd"
    run info --json "$odd"
    check "info --json: a path that is not UTF-8" tells '"odd\?é"'
    if command -v jq >/dev/null; then
        check "info --json: is JSON" jq -e . out >/dev/null
        run build --json -o "$odd" in
        check "build --json: is JSON" jq -e .keys err >/dev/null
        run plan -n 9 --json
        check "plan --json: is JSON" jq -e .kind out >/dev/null
    fi
}

test_together() {
    seq 2000 >in
    run build -p 1e-5 --together -o f in
    check "build --together" exits 0
    run info f
    check "info: together" tells "^together +yes\$"
    check "info: several lines" tells "^parts +[2-8]\$"
    run query -c f in
    check "query: together" prints "2000
"
    run plan -n 1M -p 1% --together
    check "plan --together: one line" not tells "^together"
    run plan -n 1M --together --kind cuckoo
    refused "--together: of another kind" "--kind cuckoo: is not made of lines of bits"
    run plan -n 1M --together --removable
    refused "--together: with a need" "--together: "
    run build --together -o g < <(seq 2000)
    refused "--together: of unknown size" "give -n N"
    check "--together: nothing was written" [ ! -e g ]
}

# ---- Dedup ---------------------------------------------------------------------------

test_dedup() {
    printf 'b\na\nb\nc\na\nb\n' >in
    run dedup in
    check "dedup: first ones, in order" prints $'b\na\nc\n'
    check "dedup: summary" says "6 lines, 3 new, 3 repeated; "
    check "dedup: expected loss" says "new lines may have been taken for old"
    run dedup -d in
    check "dedup -d" prints $'b\na\nb\n'
    run dedup -c in
    check "dedup -c" prints $'lines\t6\nnew\t3\nrepeated\t3\n'
    run dedup --json in
    check "dedup --json" [ "$(field lines err) $(field new err) $(field repeated err)" = "6 3 3" ]
    run dedup -n 1000 --kind bloom -p 0.5 < <(seq 1 1000)
    check "dedup: says when many are lost" says "about "
}

test_dedup_state() {
    seq 1 100 >in
    run dedup -n 300 -p 1e-12 --state s in
    cp s s.100
    check "--state: new" same out in
    run dedup --state s in
    check "--state: all old" lines out 0
    check "--state: summary" says "0 new, 100 repeated"
    run dedup --state s < <(seq 51 150)
    check "--state: a pipe needs no -n then" [ "$(cat out)" = "$(seq 101 150)" ]
    run dedup --state s < <(seq 201 2000)
    check "--state: full" exits 2
    check "--state: full: says" says "full"
    local printed
    printed=$(wc -l <out)
    check "--state: full: the lines so far stand" [ "$printed" -ge 140 ]
    run info --json s
    check "--state: full: remembered" [ "$(field keys out)" -ge 280 ]
    run dedup --state s < <(seq 201 $((200 + printed)))
    check "--state: full: matches what was printed" lines out 0
    run dedup --state in in
    refused "--state: an input" "in: is an input, too"
    run dedup --state missing/s in
    refused "--state: no folder" "missing/s: cannot be written"
    check "--state: nothing printed then" lines out 0
    if [ -e /dev/full ]; then
        mv s.100 s
        cp s s.before
        "$program" dedup --state s <(seq 10000 10005) >/dev/full 2>err
        status=$?
        refused "--state: full disk" "standard output: No space left on device; s is unchanged"
        check "--state: full disk: s is unchanged" same s s.before
    fi
    "$program" dedup in 2>err >>in
    status=$?
    refused "dedup: into its input" "standard output: is an input, too"
}

# A line is answered before the next one is written.
test_streaming() {
    local line j
    run build -n 10 -p 1e-12 -o f < <(seq 3)
    for verb in "dedup -n 100" dedup "dedup --window 1h" "query f"; do
        for j in 1 2 8; do
            mkfifo asked answered
            "$program" $verb -j $j <asked >answered 2>err &
            exec 5>asked 6<answered
            for line in 1 2 3; do
                (echo $line >&5) # alone, should the program have gone
                read -r -t 60 answer <&6
                check "$verb -j $j: answers at once" [ "$answer" = $line ]
            done
            exec 5>&-
            wait $!
            status=$?
            check "$verb -j $j: ends" exits 0
            exec 6<&-
            rm asked answered
        done
    done
}

# The rest of the input is not waited for.
test_early_end() {
    local j
    seq 3 >in
    run build -n 3 -p 1e-12 -o f in
    mkfifo open_ended
    exec 5<>open_ended
    for j in 1 2 8; do
        echo 2 >&5
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

# ---- Signals, other processes, full disks --------------------------------------------

test_signals() {
    local j
    seq 5 >in
    run build -n 100 -o f in
    cp f f.before
    for j in 1 2 8; do
        interrupted INT 0 add --rewrite -j $j f
        check "-j $j: add, SIGINT" exits 130
        check "-j $j: add, SIGINT: says" says "interrupted; f is unchanged"
        check "-j $j: add, SIGINT: f is unchanged" same f f.before
    done
    interrupted TERM 0 build -n 100 -o g
    check "build, SIGTERM" exits 143
    check "build, SIGTERM: says" says "interrupted; g was not made"
    check "build, SIGTERM: nothing was made" [ ! -e g ]
    interrupted INT 10 dedup -n 100 --state s
    check "dedup, SIGINT" exits 130
    check "dedup, SIGINT: printed" lines out 10
    run dedup --state s < <(seq 12)
    check "dedup, SIGINT: the state matches" prints $'11\n12\n'
    check "no temporary files" no_litter
}

test_locks() {
    local i adder pids
    seq 5 >in
    run build -n 10000 -p 1e-6 -o f in
    mkfifo slow
    exec 5<>slow
    "$program" add -q --rewrite f slow 2>slow_err 5<&- &
    adder=$!
    check "add: locks before it reads" until_true reads $adder slow
    run add --wait 0.1 f in
    refused "add: locked" "f: another process is changing it"
    run query -c f in
    check "query: is not locked out" prints $'5\n'
    seq 100 200 >&5
    exec 5>&-
    wait $adder
    run query -c f <(seq 100 200)
    check "add: after the lock" prints $'101\n'
    pids=
    for i in 1 2 3 4 5 6; do
        seq $((i * 1000)) $((i * 1000 + 99)) >in$i
        until_true "$program" add -q --rewrite f in$i 2>/dev/null &
        pids="$pids $!"
    done
    wait $pids
    for i in 1 2 3 4 5 6; do
        run query -c f in$i
        check "six at once: none is lost" prints $'100\n'
    done
}

test_in_place() {
    local i pids adder
    seq 1000 >in
    run build -n 100k -p 1e-6 -o f in
    run add --in-place f <(seq 2001 3000)
    check "--in-place" exits 0
    check "--in-place: summary" says "1,000 keys added to f"
    run query -c f <(seq 3000)
    check "--in-place: all are in" prints $'2000\n'
    run verify f
    check "--in-place: its checksums are right again" exits 0
    ls -i f >inode
    pids=
    for i in 1 2 3 4 5 6; do
        seq $((i * 10000)) $((i * 10000 + 5000)) >in$i
        "$program" add --in-place -q f in$i 2>err$i &
        pids="$pids $!"
    done
    wait $pids
    for i in 1 2 3 4 5 6; do
        check "--in-place: six at once: silent" [ ! -s err$i ]
        run query -c f in$i
        check "--in-place: six at once: none is lost" prints $'5001\n'
    done
    check "--in-place: the file is the same one" [ "$(ls -i f)" = "$(cat inode)" ]
    run verify f
    check "--in-place: six at once: verify" exits 0
    mkfifo slow
    exec 5<>slow
    "$program" add -q f slow 2>slow_err 5<&- &
    adder=$!
    check "--in-place: reads" until_true reads $adder slow
    echo at_once >&5
    check "--in-place: readers find a key at once" until_true "$program" query --any f <(echo at_once)
    run add --rewrite f in
    refused "--in-place: excludes add --rewrite" "f: another process is changing it"
    run build -n 5 -o f in
    refused "--in-place: excludes build" "f: another process is changing it"
    run add --in-place -q f <(echo beside)
    check "--in-place: not another one" exits 0
    run verify f
    refused "--in-place: verify" "f: has no checksums while it is added to in place: check it later"
    run query -c f <(printf 'at_once\nbeside\n')
    check "--in-place: both are in" prints $'2\n'
    exec 5>&-
    wait $adder
    rm slow
    check "--in-place: silent" [ ! -s slow_err ]
    run verify f
    check "--in-place: verify after it" exits 0
    interrupted INT 0 add --in-place f
    check "--in-place: SIGINT" exits 130
    check "--in-place: SIGINT: says" says " of the keys are in f: adding all again is safe"
    run add --in-place f <(seq 1000000)
    refused "--in-place: full" " of the keys are in f"
    run query -c f in
    check "--in-place: full: what was in is in" prints $'1000\n'
    run build --kind cuckoo -n 1000 -o c keys
    run add --in-place c in
    refused "--in-place: a kind that cannot" "c: its kind cannot be changed in place"
    run add --in-place missing in
    refused "--in-place: missing" "missing: No such file"
    run add --in-place keys in
    refused "--in-place: not a filter" "keys: not a filter file"
    mkfifo pipe
    run add --in-place pipe in
    refused "--in-place: a pipe" "pipe: not a filter file"
    run add --in-place . in
    refused "--in-place: a folder" ".: Is a directory"
    run add --in-place f f
    refused "--in-place: the filter to itself" "f: is an input, too"
    run build --in-place -o g in
    refused "--in-place: of add only" "--in-place: no such option"
    run build --key-file k -n 1000 -q -o sip keys
    run add --in-place sip in
    refused "--in-place: without the key" "sip: was built with a secret"
    run add --in-place --key-file k sip in
    check "--in-place: with the key" exits 0
    check "no temporary files" no_litter
}

# An ordinary change keeps those in place out until it is done.
test_in_place_waits() {
    local adder
    seq 10 >in
    run build -n 1000 -o f in
    mkfifo slow
    exec 5<>slow
    "$program" add -q --rewrite f slow 2>slow_err 5<&- &
    adder=$!
    until_true reads $adder slow
    "$program" add --in-place -q f <(seq 100 200) 2>err 5<&- &
    sleep 0.2
    seq 300 400 >&5
    exec 5>&-
    wait
    check "--in-place waits for add" is_silent
    run query -c f <(seq 100 200; seq 300 400)
    check "--in-place waits for add: none is lost" [ "$(cat out)" -ge 202 ]
}

test_outputs() {
    seq 1 100000 >in
    run build -o f in
    if [ -e /dev/full ]; then
        for arguments in "query f in" "info f" "dedup in" "help" "plan -n 5" "query -c f in"; do
            "$program" $arguments >/dev/full 2>err
            status=$?
            refused "$arguments: full disk" "standard output: No space left on device"
        done
    fi
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
    cp f f.before
    (ulimit -f 8 && "$program" add --rewrite f in) >out 2>err
    status=$?
    refused "file-size limit" "f: File too large; f is unchanged"
    check "file-size limit: f is unchanged" same f f.before
    check "no temporary files" no_litter
}

run_tests
