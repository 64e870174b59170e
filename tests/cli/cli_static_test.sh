#!/usr/bin/env bash
# End-to-end tests of the command line for sets that are known at once: cli_static_test.sh
# PROGRAM, as cli_test.sh.
# Proves that the file depends on the keys alone, that a build which is stopped or has no room
# leaves everything as it was, and that second lists and values are heeded.
. "$(dirname "$0")/../support/cli_helpers.sh"

# Of the same keys and seed every order, memory and number of threads makes the same file.
test_static() {
    seq 200000 >in
    seq 200001 400000 >not_in
    works build --static --seed 5 -p 0.001 -j 1 -o f in
    run build --static --seed 5 -p 0.001 -j 3 --memory 1M -o g < <(shuf in; cat in)
    check "static: a pipe, twice each, little memory: the same file" same f g
    matches in query f in
    counts -le 300 query -c f not_in
    works verify f
    shows '^kind +ribbon$' info f
    shows '^keys +200,000$' info f
    works build --static -p 1e-9 -o g empty
    ends 1 query g keys
    "$program" build --static -o - in >h 2>err
    matches in query h in
    refuses "no key is added or removed later" build --static --removable -n 1000 -o r keys
    for arguments in "add f keys" "remove f keys" "merge -o m f g" "build --memory 5 -o m in" \
        "build --static --tmp /no/such -o m in" "build --static --tmp in -o m in" \
        "build --kind ribbon --grow -o m in" "create c -n 100 --kind ribbon" "dedup --kind ribbon in"; do
        ends 2 $arguments
    done
    check "static: nothing was made" not test -e m
    check "static: nothing is left" test -z "$(find . -name '.*' -type f)"
    tells_json 'keys keys_in_filter' '10 10' build --json --static -o g keys
    shows '^kind +ribbon$' plan --static -n 1000
}

# A build that is killed in the middle leaves the old file and no other.
test_static_killed() {
    works build --static -o f keys
    cp f old
    mkdir tmp
    for signal in KILL TERM; do
        "$program" build --static --memory 1M --tmp tmp -o f \
            < <(exec 2>/dev/null; seq 3000000; exec sleep 60) >out 2>err &
        # The whole path: this folder is in /tmp, too, and so is what a forked shell has open.
        until [ -n "$(find /proc/$!/fd -lname "*/test_static_killed/tmp/*" 2>/dev/null)" ] ||
            ! kill -0 $! 2>/dev/null; do
            sleep 0.01
        done
        kill -$signal $!
        wait $! 2>/dev/null
        check "static, SIG$signal: the old file" same f old
        check "static, SIG$signal: no other" test -z "$(find tmp . -maxdepth 1 -name '.*' -type f)"
        check "static, SIG$signal: nothing in --tmp" test -z "$(ls -A tmp)"
    done
}

# When the first keys go to the disk, it is told how much is free there.
test_static_disk() {
    seq 300000 >in
    gzip -k in
    mkdir tmp
    local small="--static -j 1 --memory 1M --tmp tmp -o f"
    reports "the keys do not fit in --memory and go to tmp for a while; " build $small in
    check "disk: free" says " are free"
    reports "the keys do not fit in --memory and go to tmp for a while; " build $small < <(cat in)
    reports "the keys do not fit" build $small -n 10 < <(cat in)
    works build --static --tmp tmp -o f in
    check "disk: nothing goes there" not says "for a while"
    quietly build $small -q in
    quietly build $small -q < <(cat in)
    works build $small --json in
    check "disk: JSON" lines err 1
    cp f old
    works build $small -n 1e14 in
    check "disk: nothing in --tmp" test -z "$(ls -A tmp)"
    check "disk: the same file" [ "$(stat -c %s f)" = "$(stat -c %s old)" ]
}

# fills_up NAME TEXT ARGUMENT...: a build for which the disk is too small: an error that says
# so, the old file, and nothing beside it.
fills_up() {
    run build --static --memory 1M --tmp disk "${@:3}"
    check "full disk, $1: exit 2" exits 2
    check "full disk, $1: says" says "$2" "No space left on device" "is unchanged"
    check "full disk, $1: the old file" same disk/f old
    check "full disk, $1: nothing else" [ "$(ls -A disk)" = f ]
}

# Whether the keys or the filter fill the disk, an error leaves everything as it was.  Only root
# can make a small disk.
test_static_full_disk() {
    mkdir disk
    mount -t tmpfs -o size=2m none disk 2>/dev/null || return 0
    trap 'umount "$folder/test_static_full_disk/disk" 2>/dev/null; rm -rf "$folder"' EXIT
    works build --static -o disk/f keys
    cp disk/f old
    seq 500000 >in
    fills_up pipe "f: the temporary file in disk: No space" -q -o disk/f < <(cat in)
    fills_up file "f: the temporary file in disk: No space" -q -o disk/f in
    fills_up "the filter" "f: No space left on device, for it or for the temporary file in disk" \
        -q -p 1e-5 -o disk/f < <(seq 250000)
    fills_up against "the temporary file in disk" -q --against in -o disk/f < <(seq 60000)
    fills_up values "f: the temporary file in disk: No space" -q --field 1 --value-field 2 -o disk/f \
        < <(seq 300000 | sed 's/$/\t1/')
    run build --static --memory 1M --tmp disk -o g in
    check "full disk: nothing else" [ "$(ls -A disk)" = f ]
    umount disk
}

# A filter against a second list makes no error on either; keys of both are listed.
test_against() {
    seq 5000 >in
    seq 4000 200000 >others
    works build --against others -o f in
    writes $'5000\n' query -c f in
    seq 5001 200000 >absent
    writes $'0\n' query -c f absent
    run build --against <(cat others) --kind against:others=196000 -o g in
    writes $'0\n' query -c g absent
    writes $'5000\n' query -c g in
    shows '^kind +against$' info f
    shows '^kind +against$' plan -n 8e6 --kind against:others=9e8
    ends 2 build --against no_file -o m in
    ends 2 build --against others --kind blocked -o m in
    ends 2 add f keys
}

# Values come back; a wrong one is refused.
test_values() {
    paste <(seq 1000) <(seq 1000 | awk '{ print $1 % 256 }') >in
    works build --field 1 --value-field 2 -p 1e-7 -o f in
    tells_json value_bits 8 info --json f
    awk '{ print $2 "\t" $1 }' in >wanted
    seq 1000 >some
    matches wanted query --label f some
    writes $'no\tnobody\n' query --label f --key nobody
    works build --field 1 --value-field 2 -p 1e-4 -o f < <(printf 'a\t65535\n')
    writes $'65535\ta\n' query --label f --key a
    refuses "one too large" build --field 1 --value-field 2 -o m < <(printf 'a\t65536\n')
    refuses "one too large" build --field 1 --value-field 2 --kind ribbon:value-bits=8 -o m < <(printf 'a\t256\n')
    printf 'a\t5\nb\t4\n' >few
    works build --field 1 --value-field 2 -o few.f few
    tells_json value_bits 3 info --json few.f
    writes $'5\ta\n' query --label few.f --key a
    ends 2 build --field 1 --value-field 2 -o m < <(printf 'a\tx\n')
    ends 2 build --field 1 --value-field 2 -o m < <(printf 'a\t1\na\t2\n')
    check "values: it says why" says "different values"
}

run_tests
