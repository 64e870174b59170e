#!/bin/bash
# End-to-end tests of dedup --exact, --unique and --count-each, against awk and sort:
# cli_exact_test.sh PROGRAM
. "$(dirname "$0")/../support/cli_helpers.sh"
export LC_ALL=C

# What must come out, by other means: lines that come first, again, and once; counts.
firsts() { awk '!seen[$0]++' "$@"; }
agains() { awk 'seen[$0]++' "$@"; }
onces() {
    awk '{ n[$0]++; line[NR] = $0 }
        END { for (i = 1; i <= NR; i++) if (n[line[i]] == 1) print line[i] }' "$@"
}
each() { sort "$@" | uniq -c | sort; }

# many NUMBER: lines of which many come again, some often, and others once.
many() {
    awk -v n="$1" -v seed="$PERHAPS_TEST_SEED" 'BEGIN {
        srand(seed)
        for (i = 0; i < n; i++)
            print rand() < 0.3 ? "once " i : "again " int(exp(rand() * 8))
    }'
}

# Lines of the second file that are not in the first, each once; also those that are; and those
# that come once in both together.
news() { awk 'NR == FNR { old[$0]; next } !($0 in old) && !seen[$0]++' "$@"; }
olds() { awk 'NR == FNR { old[$0]; next } ($0 in old) || seen[$0]++' "$@"; }

# Yesterday's file and today's, against awk, grep and comm.
test_against() {
    many 20000 >yesterday
    { many 5000 && seq 3000 && tail -n 9000 yesterday; } >today
    news yesterday today >wanted
    matches wanted dedup -q --against yesterday today
    matches wanted dedup -q --exact --against yesterday today
    matches wanted dedup -q --against yesterday <today
    matches wanted dedup -q --against - today <yesterday
    matches wanted dedup -q --against <(gzip -c yesterday) <(gzip -c today)
    matches wanted dedup -q -j 1 -p 0.5 --against yesterday today
    grep -vxFf yesterday today | awk '!seen[$0]++' >grepped
    check "as grep" same wanted grepped
    comm -13 <(sort -u yesterday) <(sort -u today) >common
    check "as comm" same common <(sort wanted)
    olds yesterday today >wanted
    matches wanted dedup -q -d --against yesterday today
    onces yesterday today >both
    grep -xFf both today >wanted
    matches wanted dedup -q --unique --against yesterday today
    tells_json "lines new repeated" "4 1 3" dedup --json --against <(seq 9) <(printf '1\n10\n1\n10\n')
    writes $'lines\t2\nnew\t1\nrepeated\t1\n' dedup -q -c --against <(seq 9) <(printf '1\n10\n')
    writes $'x,B\n' dedup -q --field 2 --delimiter , --ignore-case --against <(echo z,a) <(printf 'y,A\nx,B\n')
    writes "" dedup -q --against today today
    matches keys dedup -q --against empty keys
    writes "" dedup -q --against keys empty
    refuses "none: No such file" dedup --against none keys
    refuses "leave out --exact, --unique, --against" dedup --count-each --against keys keys
    refuses "leave out" dedup --state S --against keys keys
}

# agree ARGUMENT...: the three options print for the inputs what awk and sort do.  The words
# before "--" are options.
agree() {
    local options=()
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    firsts "$@" >firsts
    matches firsts dedup --exact "${options[@]}" "$@"
    check "--exact ${options[*]}: says" says "without error"
    agains "$@" >agains
    matches agains dedup --exact -d -q "${options[@]}" "$@"
    onces "$@" >onces
    matches onces dedup --unique -q "${options[@]}" "$@"
    each "$@" >each
    run dedup --count-each -q "${options[@]//-p0.5/-q}" "$@"
    check "--count-each ${options[*]}: sorted" same <(sort -k1,1nr -s out) out
    sort out >sorted
    check "--count-each ${options[*]}" same sorted each
}

# With a rate of 50 % half of the lines that come once are suspects.
test_model() {
    local j
    many 30000 >in
    seq 20000 >some && seq 500 >>some
    for j in 1 2 7; do agree -j$j -- in; done
    agree -j2 -p0.5 -- some
    agree -j2 -p0.5 -- in some in
    agree -j2 -- keys empty keys
    agree -j1 -- empty
}

# Few lines come again, so filters save memory; and what they suspect is told.
test_suspects() {
    local facts='lines new repeated suspected suspected_new'
    seq 100000 >in && seq 1000 >>in
    run dedup --exact --json -p0.5 in
    check "few repeats: all new lines" same out <(seq 100000)
    set -- $(facts $facts)
    check "few repeats: counts: $*" [ "$1 $2 $3" = "101000 100000 1000" ]
    check "few repeats: all repeats are suspects: $*" [ "$4" -ge 1000 ]
    check "few repeats: so are others: $*" [ "$5" -ge 1000 ]
    check "few repeats: their sum: $*" [ "$4" -eq $(($5 + 1000)) ]
    run dedup --exact --json in
    set -- $(facts compared table_bytes)
    check "few repeats: few lines are compared: $*" [ "$1" -lt 10000 ]
    check "few repeats: a small table: $*" [ "$2" -lt 200000 ]
    tells_json 'lines unique repeated' '101000 99000 2000' dedup --unique --json in
    seq 1000 >>in
    matches <(seq 1001 100000) dedup --unique -q -p0.5 in
    tells_json 'lines new repeated' '20 10 10' dedup --exact --json keys keys
    writes $'lines\t20\nnew\t10\nrepeated\t10\n' dedup --exact -c -q keys keys
    writes $'lines\t11\nunique\t9\nrepeated\t2\n' dedup --unique -c -q keys <(echo 3)
}

test_keys() {
    printf 'a,X\nb,x\nc,y\na,y\nC,z\r\nd\nc,Z\r\n' >in
    writes $'a,X\nb,x\nc,y\nC,z\r\nd\n' dedup --exact -q --field 1 --delimiter , in
    writes $'a,X\nb,x\nc,y\nd\n' dedup --exact -q --field 1 --delimiter , --ignore-case in
    writes $'a,X\nc,y\nC,z\r\n' dedup --exact -q --field 2 --delimiter , --ignore-case --crlf in
    writes $'b,x\nd\n' dedup --unique -q --field 1 --delimiter , --ignore-case in
    writes $'      3 c,y\n      2 a,X\n      1 b,x\n      1 d\n' dedup --count-each -q --field 1 --delimiter , --ignore-case in
    reports "1 line skipped: in:6 has no such field" dedup --exact --field 2 --delimiter , in
    reports "1 line skipped: in:6 has no such field" dedup --count-each --field 2 --delimiter , in
    check "skipped lines are told once" [ "$(grep -c skipped err)" = 1 ]
    writes $'a b c\nb a c\n' dedup --exact -q --field 2,1 --delimiter ' ' <(printf 'a b c\nb a c\na b x\n')
    matches <(printf 'a\nb\0c\0') dedup --exact -0 -q <(printf 'a\nb\0c\0a\nb\0c')
    matches <(printf 'c\0') dedup --unique -0 -q <(printf 'a\nb\0c\0a\nb')
    writes $'a\n\nb\n' dedup --exact -q <(printf 'a\n\nb\n\na')
    writes $'b\n' dedup --unique -q <(printf 'a\n\nb\n\na')
}

# The last line of a file may have no end, and files lie one behind the other.
test_no_end() {
    printf 'a\nb\nab' >one && printf 'ab\na\nabab' >two && printf 'b\nab' >three
    cat one two three >joined # has other lines
    agree -p0.5 -- joined
    writes $'a\nb\nab\nabab\n' dedup --exact -q one two three
    writes $'abab\n' dedup --unique -q one two three
    writes $'      3 ab\n      2 a\n      2 b\n      1 abab\n' dedup --count-each -q one two three
    head -c 4096 /dev/zero | tr '\0' x >page # zeros lie behind a page
    printf '\0' >zero
    cat page zero >longer
    matches <(cat page && echo && cat longer && echo) dedup --exact -q page longer page longer
}

# Large files are mapped with gaps between them.
test_large_files() {
    seq -f '%01000.0f' 1 2500 >first
    seq -f '%01000.0f' 2000 4500 >second
    printf '%s\n' a b a >small
    agree -- first small second first
}

test_long_lines() {
    local i
    for i in 1 2 1 3; do head -c 1000000 /dev/zero | tr '\0' x && echo $i; done >in
    agree -- in
    firsts in | tr x X >firsts
    matches firsts dedup --exact -q --ignore-case <(tr x X <in) in
}

# Pipes and what is packed are copied; standard input may be a file that was read in part.
test_inputs() {
    many 5000 >in
    firsts in >firsts
    onces in >onces
    gzip -k in
    matches firsts dedup --exact -q in.gz
    matches firsts dedup --exact -q in.gz in in.gz
    matches firsts dedup --exact -q <(cat in) in.gz
    matches firsts dedup --exact -q < <(cat in)
    matches onces dedup --unique -q < <(cat in.gz)
    matches firsts dedup --exact -q <in
    gzip -c in.gz >twice.gz # is unpacked once only, though what is in it looks packed
    matches <(perl -0777 -pe 's/\n?\z/\n/' in.gz | awk '!seen[$0]++') dedup --exact -q --raw in.gz
    run dedup --exact -q twice.gz
    check "packed twice" exits 0
    tells_json 'copied_bytes' "$(wc -c <in)" dedup --exact --json in.gz
    tells_json 'copied_bytes' 0 dedup --exact --json in
    [ ! -e /proc/self/status ] || ends 0 dedup --exact /proc/self/status
    { read -r && "$program" dedup --exact -q - && cat; } <in >out 2>err
    check "from the middle of standard input" same out <(tail -n +2 in | awk '!seen[$0]++')
}

test_copies() {
    mkdir there
    matches keys dedup --exact -q --tmp there < <(cat keys)
    check "--tmp: nothing is left" [ -z "$(ls there)" ]
    refuses "nowhere: no temporary file can be made there, for a copy of standard input: No such" dedup --exact --tmp nowhere < <(cat keys)
    matches keys dedup --exact -q --tmp nowhere keys
    (
        failed=0
        ulimit -f 8 # KiB
        refuses "no copy of it fits in there: File too large: name another folder with --tmp" dedup --exact --tmp there < <(seq 100000)
        check "full: nothing is printed" prints ''
        check "full: nothing is left" [ -z "$(ls there)" ]
        [ "$failed" -eq 0 ]
    )
    check "no room for a copy" [ $? -eq 0 ]
    gzip -c keys | head -c 20 >cut.gz
    refuses "cut.gz: truncated gzip data; nothing is printed" dedup --exact cut.gz
}

# changes COMMAND: runs dedup --exact on 'in', and the command when a line has been printed; the
# others have to wait for somebody who reads.
changes() {
    seq 1000000 1400000 >in
    mkfifo pipe
    "$program" dedup --exact -q in >pipe 2>err &
    exec 7<pipe
    read -r _ <&7
    eval "$1"
    cat <&7 >rest
    wait $!
    status=$?
    exec 7<&-
    rm pipe
}
test_changes() {
    local command
    for command in ': >in' 'printf 9 | dd of=in bs=1 seek=99 conv=notrunc 2>dd'; do
        changes "$command"
        refused "$command" "in: was changed while it was read; the lines that are printed may be wrong"
        check "$command: no line is made up" [ -z "$(grep -avE '^[0-9]{7}$' rest)" ]
    done
    changes 'seq 5 >new && mv new in'
    check "a new file of that name changes nothing" exits 0
    check "the old file is read" same rest <(seq 1000001 1400000)
}

test_memory() {
    seq 1000000 >in
    refuses "which is more than 1.00 MB; nothing is printed: give more, or leave out --exact" dedup --exact --memory 1M in in
    check "nothing is printed" prints ''
    refuses "leave out --unique" dedup --unique --memory 1M in in
    run dedup --exact -q --memory 16M in in
    check "enough memory" same out in
    # A sanitizer takes more addresses than that before the program begins.
    if (ulimit -v 200000 && "$program" help) >/dev/null 2>&1; then
        (ulimit -v 200000 && "$program" dedup --exact -q -j2 --memory 16M in in >out 2>err)
        check "within 200 MB of addresses" same out in
    fi
}

# Lines that come often are found however many others there are.
test_heavy() {
    local j
    many 200000 >in
    seq 300000 >>in
    each in >each
    run dedup --count-each --memory 1M --json in
    set -- $(facts lines absent_at_most)
    check "bounded: says: $*" [ "$1 $(grep -c '"complete":false' err)" = "500000 1" ]
    check "bounded: the bound is low: $*" [ "$2" -gt 0 -a "$2" -lt 200 ]
    check "bounded: only exact counts" [ -z "$(sort out | comm -23 - each)" ]
    check "bounded: none is missing above" [ -z "$(awk -v cut="$2" '$1 > cut' each | comm -23 - <(sort out))" ]
    check "bounded: the most frequent first" same <(sort -k1,1nr -s out) out
    for j in 1 2; do alike counts dedup --count-each -q -j$j in; done
    check "all counts" same <(sort out) <(sort each)
    writes $'      2 b\n      2 a\n      1 c\n' dedup --count-each -q <(printf 'b\na\nc\na\nb\n')
    reports "5 lines, 3 different ones printed; these are all; " dedup --count-each <(printf 'b\na\nc\na\nb\n')
    refuses_into /dev/full "standard output: No space left" dedup --count-each in
    refuses_into /dev/full "standard output: No space left" dedup --exact in
}

test_stops() {
    local option
    for option in --exact --unique --count-each; do
        interrupted INT 0 "perhaps: interrupted; nothing is printed" dedup $option --tmp .
        check "$option: no copy is left" no_litter
    done
    seq 1000000 >in
    "$program" dedup --exact in 2>err | head -1 >out
    check "nobody reads: no message" is_silent
}

test_options() {
    local option
    for option in "--state s" "--window 1h" "--state redis://h/f"; do
        run dedup --exact $option keys
        check "--exact $option" exits 2
        check "--exact $option: no state" [ ! -e s ]
    done
    refuses "leave out --state, --window" dedup --unique --state s keys
    refuses "leave out -n, --kind" dedup --exact -n 5 keys
    refuses "leave out -n, --kind" dedup --count-each --hash sip keys
    refuses "--unique: prints lines that are never repeated: leave out -d" dedup --unique -d keys
    refuses "leave out --exact, --unique, --against, -d and -c" dedup --count-each -c keys
    refuses "leave out --exact, --unique, --against, -d and -c" dedup --count-each --exact keys
    refuses "are only for --exact" dedup --memory 1G keys
    refuses "missing: No such file" dedup --exact missing
    run dedup --exact keys >>keys
    "$program" dedup --exact keys >>keys 2>err
    status=$?
    refused "its own input" "standard output: is an input, too"
}

run_tests
