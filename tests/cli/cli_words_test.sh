#!/usr/bin/env bash
# End-to-end tests of the words of the command line:  cli_words_test.sh PROGRAM, as cli_test.sh
# Proves that it understands what people type (numbers with commas, several fields, keys as
# arguments), that its messages say what is wrong and what to do, and that help and completions
# are complete.  A check fails when the text of a message changes.
man_page=$(realpath "$(dirname "$0")")/../doc/perhaps.1
[ -e "$man_page" ] || man_page=${man_page%doc/*}../doc/perhaps.1
. "$(dirname "$0")/../support/cli_helpers.sh"

# 'add' changes the file itself: the inode stays, and a full filter keeps what is in.
test_add_is_in_place() {
    run build -n 1000 -p 1e-6 --seed 1 -o f keys
    ls -i f >inode
    works add f <(seq 11 20)
    check "add: the file is the same one" [ "$(ls -i f)" = "$(cat inode)" ]
    writes $'20\n' query -c f <(seq 20)
    cp f f.before
    refuses "full" add f <(seq 5000)
    check "add: says what is in" grep -q '; [0-9,]* of the keys, in no order, are in f$' err
    mv f.before f
    interrupted INT 0 "of the keys, in no order, are in f: adding all again is safe" add f
    check "add, SIGINT: says" grep -qE "interrupted; (0|10) of the keys, in no order, are in f: adding all again is safe" err
    works verify f
}

# With --rewrite a new file replaces the old one; kinds that cannot share a file do so always.
test_add_rewrites() {
    local kind
    run build -n 1000 --seed 1 -o f keys
    ls -i f >inode
    keeps f refuses "; f is unchanged" add --rewrite f <(seq 5000)
    run add --rewrite f <(seq 20)
    check "--rewrite: another file" [ "$(ls -i f)" != "$(cat inode)" ]
    writes $'20\n' query -c f <(seq 20)
    for kind in cuckoo counting elastic chain; do
        run build -n 100 --kind $kind -o g keys
        works add g <(seq 20)
        writes $'20\n' query -c g <(seq 20)
    done
    if [ "$(id -u)" -ne 0 ]; then
        chmod a-w f
        works add f <(seq 30)
    fi
}

# Keys that a process had added before it was killed are in.  The file has no checksums then;
# the next add writes them.
test_add_dies() {
    run build -q -n 1000 -p 1e-9 -o f keys
    begins add -q f
    seq 100 200 >&5
    check "add: a key is found at once" until_true "$program" query --any f --key 200
    kill -9 $begun
    finishes 2>kill_err
    refuses "perhaps add f < /dev/null" verify f
    writes $'111\n' query -c f keys <(seq 100 200)
    run add -q f
    works verify f
}

# After a signal the numbers so far are printed.
test_interrupted_query() {
    run build -n 100 -p 1e-12 -o f keys
    interrupted INT 10 "interrupted; 10 keys were asked, 10 are perhaps in f" query f
    check "query, SIGINT: one line" lines err 1
    interrupted INT 0 " are perhaps in f" query -v f
    check "query -v, SIGINT: says" grep -qE "interrupted; (10 keys were asked, 10|0 keys were asked, 0) are perhaps in f" err
    run build --count -n 100 -p 1e-12 -o g keys
    interrupted TERM 10 "interrupted; 10 keys were asked, 10 are perhaps in g" count g
}

# -q: no summary; --any: no output at all, only the exit status.
test_quiet() {
    quietly build -q -n 100 -p 1e-12 --count -o f keys
    matches keys query -q f keys
    writes $'10\n' query -q -c f keys
    writes $'3\t1\n' count -q f <(echo 3)
    works verify -q f
    check "verify -q: prints nothing" lines out 0
    shows '^keys +10$' info -q f
    works query --any f keys
    check "--any: prints nothing" lines out 0
    ends 1 query --any f <(echo stone)
    refuses "--any: prints nothing: leave out -c" query --any -c f keys
    refuses "--any: prints nothing: leave out --label" query --any --label f keys
    refuses "--label: prints every key: leave out -c" query -q --label -c f keys
}

# The byte at offset 4100 lies in the first page of the body, which begins at 4096.  A small file
# is found to be damaged when it is opened.
test_common_options() {
    run build -q -n 100000 --count -o f keys
    shows '"ok":true,"pages":[0-9]+,"damaged":0' verify --json f
    printf X | dd of=f bs=1 seek=4100 conv=notrunc 2>dd_err # one byte becomes another
    ends 1 verify --json f
    check "verify --json: damaged" tells '"ok":false,"pages":[0-9]*,"damaged":1,"first_damaged":4096'
    run build -q -n 100 --count -o s keys
    shows '"ok":true,"pages":1,"damaged":0' verify --json s
    printf X | dd of=s bs=1 seek=100 conv=notrunc 2>dd_err
    ends 1 verify s
    check "verify: small and damaged" grep -q 's: the file is damaged' err
    ends 1 verify --json s
    check "verify --json: small and damaged" tells '"ok":false,"problem":"the file is damaged'
    shows '^perhaps [0-9]+\.[0-9]+\.[0-9]+' -V
}

# A misspelt verb or option gets a suggestion; options of other tools get the right one.
test_did_you_mean() {
    refuses "quary: no such verb: did you mean 'query'?" quary f
    refuses "dedupe: no such verb: did you mean 'dedup'?" dedupe
    refuses "xyzzy: no such verb: see 'perhaps help'" xyzzy
    refuses "contains: no such verb: here it is 'query'" contains f
    refuses "rm: no such verb: here it is 'remove': see 'perhaps help remove'" rm f
    for path in redis:/x redis:x valkey:/127.0.0.1/x ftp://h/f sftp://h/f.gz; do
        refuses "$path: neither a file nor an address of servers: those are redis://" query $path keys
        refuses "$path: neither a file nor an address" build -o $path keys
        refuses "$path: neither a file nor an address" build -o f $path
        refuses "$path: neither a file nor an address" dedup --state $path keys
    done
    cp keys redis:odd
    works build -q -o f redis:odd # a file that is there
    refuses "--ouput=f: no such option: did you mean --output?" build --ouput=f keys
    refuses "--removeable: no such option: did you mean --removable?" build --removeable keys
    refuses "--xyzzy: no such option: see 'perhaps build --help-all'" build --xyzzy keys
    refuses "-d,: -d takes no value here" dedup --field 2 -d, keys
    check "dedup -d,: says how" says "--delimiter"
    refuses ",: no such file, and -d takes no value here" dedup --field 2 -d , keys
    check "dedup -d ,: says how" says "--delimiter"
}

# Commas must stand before groups of three digits; B, kB and so on are taken as units.
test_numbers_of_people() {
    local value
    for value in 1,000,000 1MB 1000kb 1,000k 1000KB; do
        tells_json capacity 1000000 plan -n $value --json
    done
    for value in 1,00 1000,000 ,100 1,000, 1,0000 1MBB 5B 1,000,00; do
        refuses "-n $value: not a number of keys" plan -n $value
    done
}

# narrow NAME: what was printed fits a terminal of 80 columns.
narrow() { check "$1: 79 columns" not grep -qE '^.{80}' out; }

# The help of a verb fits on a screen of 80 x 24, and all that there is to it on two; it shows at
# most 13 options and says how many more there are.
test_help_is_short() {
    local verb
    run help
    narrow help
    for verb in build create add remove query count dedup info plan merge compare verify copy delete recount; do
        run help $verb
        narrow "help $verb"
        check "help $verb: one screen" [ "$(wc -l <out)" -le 24 ]
        check "help $verb: the usual options" [ "$(grep -cE '^  (-.,|   ) --' out)" -le 13 ]
        run $verb --help-all
        narrow "$verb --help-all"
        check "$verb --help-all: two screens" [ "$(wc -l <out)" -le 48 ]
        check "$verb --help-all" tells '--help-all +all options'
    done
    shows "and [0-9]+ more: 'perhaps build --help-all'" help build
    for arguments in "build --help-all" "help build --help-all"; do
        shows '--seed S' $arguments
    done
}

# The man page has every verb and every option, and no others; there are not many.
test_man_page() {
    local verb verbs
    verbs=$("$program" help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
    check "verbs" [ "$(wc -w <<<"$verbs")" -ge 15 ]
    for verb in $verbs; do
        check "man page: $verb" grep -qx "\.It Cm $verb" "$man_page"
    done
    for verb in $verbs; do
        "$program" "$verb" --help-all | sed -n 's/^  \(-.,\|   \) --\([a-z-]*\).*/\2/p'
    done | sort -u >options
    grep '^\.It Fl' "$man_page" | grep -o '\\-[a-z][a-z-]*' | cut -c3- | sort -u >described
    check "man page: $(diff options described)" same options described
    check "few options: $(wc -l <options)" [ "$(wc -l <options)" -le 49 ]
}

# Zeros behind packed data are ignored, since tapes add them; other bytes are an error.
test_padding() {
    local tool
    run build -q -n 100 -p 1e-12 -o f keys
    for tool in gzip xz; do
        command -v $tool >/dev/null || continue
        { $tool -c <keys; head -c 300000 /dev/zero; $tool -c <keys; head -c 4 /dev/zero; } >in
        writes $'20\n' query -c f in
        { $tool -c <keys; head -c 8 /dev/zero; echo junk and more junk; } >in
        refuses "in: corrupt $tool data" query -c f in
    done
}

# Archives, files of other packers and filters are no lines of keys.  They are refused before
# any work; --raw takes their bytes as lines all the same.
test_not_lines() {
    local verb
    run build -q -n 100 -p 1e-12 -o f keys
    cp f g
    cp f f.before
    # the first bytes of these formats
    printf 'PK\3\4 and so on\n' >a.zip
    printf '\4\42\115\30 and so on\n' >a.lz4
    for verb in "query f" "query -c f" "add f" "build -n 50 -o h" dedup; do
        refuses "a.zip: is a zip archive: unpack it first, with 'unzip -p'" $verb keys a.zip
        refuses "a.lz4: is packed by lz4: unpack it first, with 'lz4 -dc'" $verb keys a.lz4
        refuses "g: is a filter, not a file of keys" $verb keys g
        check "$verb: told before the work" lines out 0
    done
    refuses "standard input: is a zip archive" query f <a.zip
    refuses "standard input: is a filter" query f < <(cat g)
    check "nothing was added" same f f.before
    check "nothing was made" [ ! -e h ]
    gzip -c <keys >a.gz
    works build --raw -n 1000 -p 1e-12 -o h a.zip a.lz4 a.gz g
    run query --raw -c h a.zip a.gz
    check "--raw: as they are" [ "$(cat out)" = "$(cat a.zip a.gz | grep -ac '')" ]
    writes $'0\n' query -c h a.gz
}

# Lines without the field are skipped and counted, by any number of threads; if no line has it,
# that is an error.
test_short_lines() {
    local j verb
    printf 'a 1\nx\nb 2\ny\n\nc 3\n' >in
    for j in 1 2 8; do
        works build -j $j -n 100 -p 1e-12 --field 2 -d ' ' -o f in
        check "-j $j: and counted" says "perhaps: 3 lines skipped: in:2 has no such field, and so on"
        writes $'a 1\nb 2\nc 3\n' query -j $j --field 2 -d ' ' f in
        quietly query -c --field 2 -d ' ' -j $j f in keys -q
        tells_json 'skipped keys' '3 3' query --json --field 2 -d ' ' -j $j f in
        writes $'a 1\nb 2\nc 3\n' dedup -j $j --field 2 --delimiter ' ' in in
        check "-j $j: dedup: six" says "6 lines skipped: in:2 has no such field"
    done
    printf 'a 0123456789abcdef\nx\nb short\n' >sized
    refuses "sized:3: not 16 bytes" build --hash none -n 100 --field 2 -d ' ' -o g sized
    for verb in "query f" "build -o h" "add --rewrite f" "dedup"; do
        refuses "keys:1: has no such field, nor has any other line: see --field, --delimiter" \
            $verb --field 2 keys
    done
    check "nothing was made" [ ! -e h ]
    printf '2026-11-21T10:00:00 a\nnever b\n2026-11-21T10:01:00 c\nd\n' >in
    run dedup --window 1h --time-field 1 --field 2 --delimiter ' ' in
    check "lines without a time" prints $'2026-11-21T10:00:00 a\n2026-11-21T10:01:00 c\n'
    check "lines without a time are counted" says "2 lines skipped: in:2 has no time in its --time-field"
}

# A key of several fields has them in the given order, joined by the delimiter.
test_several_fields() {
    local value
    printf 'a,b,c,d,e\n' >in
    run build -q -n 100 -p 1e-12 --field 1,3-4 -d , -o f in
    writes $'1\n' query -c --field 1- f <(echo a,c,d)
    writes $'c,d,a,z\n' query f --field 3,1-2 -d , <(echo c,d,a,z)
    writes $'1\n' query -c f --field 2- -d , <(echo x,a,c,d)
    refuses "has no such field" query --any f --field 1,3-4 -d , <(echo a,b,c)
    for value in 0 1,0 1,1 1-3,2 3-1 1, ,1 1.5 - -2 1-x ""; do
        refuses "--field $value: not fields" query f --field="$value" in
    done
    run build -q -n 100 -p 1e-12 --ignore-case -o g <(printf 'Apple\nPEAR\n')
    writes $'aPPLE\npear\n' query --ignore-case g <(printf 'aPPLE\npear\nstone\n')
    writes $'2\n' query -c g <(printf 'Apple\napple\n')
    ends 1 query --ignore-case --field 2,1 -d , -c f <(echo 'C,D,a' | sed 's/C,D,a/d,A,c/')
}

# Pipes ask several filters: what any of them lacks, or none has.
test_several_filters() {
    run build -q -n 100 -p 1e-12 -o odd <(printf '1\n3\n')
    run build -q -n 100 -p 1e-12 --kind bloom -o even <(printf '2\n4\n')
    "$program" query -v odd keys 2>err | "$program" query -v even >out 2>err
    check "in none" same out <(seq 5 10)
    run query --label odd keys
    check "--label" [ "$(head -n 2 out)" = $'perhaps\t1\nno\t2' ]
    refuses "even: is a filter, not a file of keys" query odd even keys
    refuses "--check: is not for filters on servers" query --check redis://127.0.0.1:1/x keys
}

# A key given by --key is taken whole, and stands in place of the inputs.
test_keys_as_arguments() {
    reports "2 keys into f" build -n 100 -p 1e-12 -o f --key apple --key 'two words'
    writes $'apple\ntwo words\n' query f --key apple --key stone --key 'two words'
    ends 1 query --any f --key stone
    run add -q f --key stone --key ''
    writes $'2\n' query -c f --key stone --key ''
    refuses "keys: --key gives the keys: leave out the inputs" query f --key apple keys
    refuses "--key: holds a newline, where keys end: give -0 too" query f --key $'a\nb'
    refuses "--key: is all of a key: leave out --field" query f --key a --field 1
    run query -0 f --key $'a\nb' --key apple
    check "query -0 --key" [ "$(tr '\0' '|' <out)" = 'apple|' ]
    writes $'APPLE\n' query --ignore-case f --key APPLE
}

# --wait waits while another process changes the filter; a minute is enough for the other to
# end.
test_wait() {
    local waiter value
    seq 10 >in
    run build -q -n 1000 -o f in
    begins add -q --rewrite f
    refuses "f: another process is changing it: try again later, or give --wait" \
        add --rewrite f in
    refuses "f: another process is changing it" add --rewrite --wait 0.02 f in
    "$program" add --rewrite --wait 1m f <(seq 100 200) 2>err 5<&- &
    waiter=$!
    seq 300 400 >&5
    finishes
    wait $waiter
    status=$?
    check "--wait" exits 0
    counts -ge 202 query -c f <(seq 100 200; seq 300 400)
    for value in x 1x -1 ""; do
        refuses "--wait $value: not a time" add --wait="$value" f in
    done
}

# completed WORD...: prints what bash offers for the last word.
completed() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _perhaps
    echo "${COMPREPLY[*]}"
}

# The scripts of all three shells are checked where the shell is installed.
test_completions() {
    local shell verb option
    refuses "tcsh: no shell that completions are made for" help --completion tcsh
    refuses "--completion: no shell" help --completion
    for shell in bash zsh fish; do
        works help --completion $shell
        cp out $shell.script
        command -v $shell >/dev/null || continue
        check "$shell parses it" $shell -n $shell.script
    done
    . ./bash.script
    check "bash: verbs" [ "$(completed perhaps de)" = "dedup delete" ]
    check "bash: help" [ "$(completed perhaps help qu)" = "query" ]
    check "bash: options" [ "$(completed perhaps build --rem)" = "--removable" ]
    check "bash: of this verb" [ -z "$(completed perhaps query --rem)" ]
    check "bash: kinds" [ "$(completed perhaps build --kind bloc)" = "blocked" ]
    check "bash: kinds behind =" [ "$(completed perhaps build --kind = bloc)" = "blocked" ]
    check "bash: hashes" [ "$(completed perhaps dedup --hash s)" = "sip" ]
    check "bash: files elsewhere" [ -z "$(completed perhaps query f)" ]
    command -v fish >/dev/null || return 0
    check "fish: options" [ "$(fish -N -c 'source fish.script; complete -C "perhaps build --rem"' |
        cut -f 1)" = "--removable" ]
    check "fish: kinds" [ "$(fish -N -c 'source fish.script; complete -C "perhaps plan --kind bloo"' |
        cut -f 1)" = "bloom" ]
}

# A rate that cannot be reached: the one that the message names can.
test_rates() {
    local arguments rate
    for arguments in "-n 1M --kind ribbon:value-bits=16 -p 1e-6" "-n 1M --kind cuckoo -p 1e-12" "-n 1M --grow -p 1e-14" \
        "-n 1M --kind ribbon -p 1e-14"; do
        refuses "give " plan $arguments
        rate=$(expr "$(cat err)" : '.*-p \([0-9.e-]*\)[^0-9]*$')
        check "plan $arguments: it names a rate: $(cat err)" [ -n "$rate" ]
        works plan ${arguments% *} "$rate"
    done
    works build -q --static -o S keys
    refuses "S: was built once, and takes no lines: give another state" dedup --state S keys
}

run_tests
