#!/usr/bin/env bash
# End-to-end tests of the command line for filters that are made from a pipe without -n:
# cli_auto_test.sh PROGRAM, as cli_test.sh.
# Proves that such a filter has just the size that its keys need, also when these went to the
# disk or to a larger filter; that options which speak of later keys make one that grows; and
# that a build which fails leaves everything as it was.
. "$(dirname "$0")/../support/cli_helpers.sh"

# bits: prints the bits for each key that came, by the JSON of the last build.
bits() { echo $((8 * $(field body_bytes err) * 100 / $(field keys err))); } # in hundredths

# body FILE: prints the body of a filter and what follows: the header counts the keys that set
# a bit, and these depend on the order in which keys come.
body() { tail -c +4097 "$1"; }

# Every order, memory and number of threads makes the same file, and its body is that of a
# filter which was planned for as many keys.
test_sized() {
    local j
    seq 200000 >in
    seq 200001 400000 >not_in
    works build -n 200000 --seed 5 -o planned in
    for j in 1 4; do
        works build --json --seed 5 -j $j -o f$j < <(cat in)
        check "sized, -j $j: bits a key" [ "$(bits)" -le 1002 ] # from 400,000 keys on 10.0
        check "sized, -j $j: JSON" says '"sized":true,"folded":0'
        check "sized, -j $j: as planned" cmp -s <(body f$j) <(body planned)
    done
    check "sized: any number of threads" same f1 f4
    matches in query f1 in
    counts -le 2400 query -c f1 not_in # 1.2 % false positives
    works verify f1
    reports "sized for the 200,000 keys that came" build --seed 5 --memory 1M -o g < <(shuf in)
    check "sized: it spilled" says "the keys do not fit in --memory and go to "
    check "sized, from the disk: the same" same f1 g
    reports "sized for 200,000 different keys" build --seed 5 -o g < <(cat in in)
    check "sized, repeated keys: the same" same f1 g
    "$program" build --seed 5 -o - - in < <(seq 100) >g 2>err
    check "sized, a file and a pipe: the same" same f1 g
    shows "^notes +it is full" info f1
    refuses "full: make it anew with a larger -n or with --grow" add f1 not_in
}

# No key, one key, and the same one again and again.
test_sized_few() {
    works build -o f < <(:)
    ends 1 query f keys
    reports "1 key into f: 64 B, 512 bits a key, sized for the 1 key that came" build -o f \
        < <(echo one)
    writes $'one\n' query f --key one
    reports "sized for 1 different key" build -o f < <(yes one | head -5000)
    works build -o f /dev/null
    refuses "standard input:1: not 16 bytes" build --hash none -o g < <(echo short)
    check "wrong key: nothing was made" [ ! -e g ]
}

# Options are heeded as if the number were known.
test_sized_options() {
    local options
    seq 20000 >in
    for options in "--kind blocked" "--kind bloom" "--kind cuckoo" "--kind counting" "--prefer compact" \
        "--prefer fast" "--kind blocked:together" "-p 1e-6" "-p 1e-12" "--once"; do
        reports ", sized for the 20,000 keys that came, " build $options -o f < <(cat in)
        matches in query f in
    done
    reports ", sized for" build --key-file secret -o f < <(cat in)
    matches in query --key-file secret f in
    seq -f '%016.0f' 20000 >hashes
    reports "sized for the 20,000 keys" build --hash none -o f < <(cat hashes)
    works build --removable -o f < <(cat keys keys)
    works remove f keys
    matches keys query f keys
    works build --kind cuckoo -o f < <(cat keys keys) # without --removable it is a set
    refuses "f: was made without --removable, and stores each key once: build it anew" remove f keys
    matches keys query f keys
    works build --static -o f < <(cat in)
    shows "^kind +ribbon" info f
    works build -o f in
    check "a file: room for later keys" says "room for "
}

# What speaks of later keys makes a filter that grows, as every pipe once did.
test_later_keys() {
    local options
    seq 100000 >in
    for options in --grow "--kind elastic" "--kind chain:base=bloom" "--kind chain:factor=3" --removable --count \
        "--kind elastic:until=1M"; do
        works build $options -o f < <(cat in)
        check "$options: not sized" not says "sized for"
        matches in query f in
        works add f <(seq 100001 200000)
    done
    for options in "--memory 1G" "--tmp ." "--tmp none"; do
        for size in "-n 10" --grow --removable; do
            refuses "as with --static or from a pipe without -n" build $options $size -o g < <(cat keys)
        done
        refuses "${options% *}: is for keys that wait" build $options -o g keys
    done
    check "later keys: nothing was made" [ ! -e g ]
}

# Without a file for keys that do not fit in the memory they go to a large filter, which is
# folded; and more keys than that takes are an error.
test_folded() {
    local j options
    seq 100000 >in
    seq 100001 200000 >not_in
    for j in 1 4; do
        for options in "" "--kind bloom -p 0.1%"; do
            reports ", folded to 1/" build -j $j --memory 1M --tmp none $options -o f < <(cat in)
            matches in query f in
            works verify f
        done
        works build -j $j --json --memory 1M --tmp none -o f < <(cat in in)
        check "folded: JSON" [ "$(field folded err)" -ge 2 ]
        check "folded: less than 14 bits a key" [ $((8 * $(field body_bytes err))) -le 1400000 ]
        counts -le 1200 query -c f not_in
        works build -j $j --memory 1M --tmp none -o h < <(seq 350000)
        check "too large to be folded" says "room for "
        cp f old
        refuses "came, more than the memory has room for: give more --memory, or a folder with --tmp" \
            build -j $j --memory 1M --tmp none -o f < <(seq 1000000)
        check "too many: f as it was" same f old
        refuses "g was not made" build -j $j --memory 1M --tmp none --kind cuckoo -o g < <(cat in in)
        refuses "g was not made" build -j $j --memory 1M --tmp none --static -o g < <(cat in in)
        refuses "g was not made" build -j $j --memory 1M --tmp none --against in -o g \
            < <(cat in not_in)
    done
    reports "sized for the 10 keys" build --memory 1M --tmp none -o f < <(cat keys)
    works build --static --seed 5 --memory 16M --tmp none -o f in
    works build --static --seed 5 -o g in
    check "--static --tmp none: the same file" same f g
    mkdir none
    works build --memory 1M --tmp ./none -o f < <(cat in)
    check "a folder of that name" says "go to ./none for a while"
}

# A signal while keys are read, and a full disk, leave the old filter.
test_sized_failures() {
    local j
    for j in 1 4; do
        interrupted INT 0 "interrupted; g was not made" build -j $j -o g
        check "-j $j: nothing was made" [ ! -e g ]
    done
    works build -o f keys
    cp f old
    refuses "no/such: No such file" build --tmp no/such -o f < <(cat keys)
    refuses "Not a directory" build --tmp keys -o f < <(cat keys)
    ulimit -S -f 1000 # KiB: what root may not exceed either
    refuses "f: the temporary file in .: File too large" build -q --memory 1M --tmp . -o f \
        < <(seq 500000)
    check "sized, the disk is full: says how" says "--tmp" "--memory" "f is unchanged"
    check "sized, the disk is full: the old file" same f old
    refuses "f: File too large" build -q -p 1e-9 -o f < <(seq 400000)
    check "sized, no room for the filter: the old file" same f old
    refuses_into /dev/full "standard output: No space left" build -q -o - < <(cat keys)
}

run_tests
