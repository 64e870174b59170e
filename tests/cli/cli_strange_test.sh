#!/bin/bash
# End-to-end tests of inputs that are not what somebody may think: cli_strange_test.sh PROGRAM
. "$(dirname "$0")/../support/cli_helpers.sh"
export LC_ALL=C

# warns TEXT ARGUMENT...: works, and standard error is one line, which contains the text.
warns() {
    works "${@:2}"
    check "${*:2}: one line: $1" lines err 1
    check "${*:2}: says" says "$1"
}

# In each verb that reads keys, and once a run.
test_returns() {
    local text="in: lines end in a carriage return, which is part of the key: give --crlf to leave it off" verb
    sed 's/$/\r/' keys >in
    cp in again
    works build -q -n 1000 --count -p 1e-12 -o f keys
    for verb in "build -o g" "build -n 20 -o g" "build --static -o g" "build --count -o g" \
        "dedup" "dedup -n 30" "dedup --exact" "dedup --unique" "dedup --count-each" "dedup --state s" "count f" "add f"; do
        warns "$text" $verb -q in again
        [[ $verb == add* ]] || warns "$text" $verb -j1 -q keys in
        quietly $verb -q --crlf in again
        quietly $verb -q --raw in again
    done
    warns "$text" query f in # it was added
    run query --json f in
    check "--json: no other line" lines err 1
    works build -q -n 1000 --kind counting -p 1e-12 -o f keys
    writes '' query f in
    check "query: says" says "$text"
    check "query: the exit status stays" exits 1
    warns "standard input: lines end in a carriage return" build -q -o g < <(cat in)
    # The key is not the end of the line, or few lines end so, or ends are no newlines.
    sed 's/^/a,/' in >fields
    quietly build -q -o g --field 1 --delimiter , fields
    warns "fields: lines end in a carriage return" build -q -o g --field 2 --delimiter , fields
    quietly build -q -o g keys <(seq 11 20; printf '21\r\n')
    cat keys in >mixed
    warns "mixed: lines end" build -q -o g mixed
    quietly build -q -o g --null <(tr '\n' '\0' <in)
    quietly build -q -o g --key $'a\r'
    quietly build -q -o g empty
    warns "lines end" build -q -o g <(printf 'a\r')
    # Only the beginning is looked at.
    quietly build -q -o g <(seq 100000; cat in in)
    gzip -k in
    warns "in.gz: lines end in a carriage return" dedup -q --exact in.gz
}

# Keys that are hashes may have any bytes.
test_hashes() {
    local hash nbytes
    for hash in none none-64; do
        [ $hash = none ] && nbytes=15 || nbytes=7
        { head -c $nbytes /dev/zero | tr '\0' 'x'; printf '\r\n'; } >in
        quietly build -q --hash $hash -o f in
        quietly build -q --hash $hash --static -o g in
        quietly query f in
        quietly add -q f in
        rm -f s
        quietly dedup -q --hash $hash --state s in
        quietly dedup -q --state s in
    done
}

test_texts() {
    { printf '\xef\xbb\xbf'; cat keys; } >in
    warns "in: begins with a byte order mark, which is part of the first key: take it off first, with 'tail -c +4'" build -q -o f in
    matches <(tail -c +4 in | tail -n +2) query f keys
    quietly build -q -o f <(tail -c +4 in)
    matches keys query f keys
    local from
    for from in UTF-16; do
        iconv -f UTF-8 -t $from keys >in
        run build -q -o f in
        check "$from: one line" lines err 1
        check "$from: says" says "in: is text in UTF-16, whose bytes are taken for keys: convert it first, with 'iconv -f $from -t UTF-8'"
        check "$from: its advice" same <(eval "$(sed "s/.*'\(iconv.*\)'.*/\1/" err) <in") keys
    done
    quietly build -q -o f <(noise 100000)
    quietly build -q -o f <(printf '\0\0\0\0\0\0\0\0\0\0\0\0\n')
    # Two sorts are two lines.
    { printf '\xef\xbb\xbf'; sed 's/$/\r/' keys; } >in
    run build -q -o f in in
    check "a mark and carriage returns: two lines" lines err 2
}

# Formats that are not unpacked.
test_formats() {
    local name
    printf 'LZIP\1\f\n' >in
    warns "in: is packed by lzip, whose packed bytes are taken for keys: unpack it first, with 'lzip -dc'" build -q -o f in
    printf '\x1f\x9d\x90\x61\x14\x00' >in
    warns "in: is packed by compress, whose packed bytes are taken for keys: unpack it first, with 'gzip -dc'" build -q -o f in
    check "compress: its advice" [ "$(gzip -dc <in)" = a ]
    printf '\x89LZO\0\r\n\x1a\nmore' >in
    warns "in: is packed by lzop" build -q -o f in
    printf '7z\xbc\xaf\x27\x1cmore' >in
    warns "in: is a 7z archive" build -q -o f in
    warns "in: is a 7z archive" build -q --null -o f in
    works build -q -o g keys
    gzip -k g
    warns "g.gz: is a packed filter, whose bytes are taken for keys" build -q -o f g.gz
    command -v tar >/dev/null || return
    for name in ustar gnu pax; do
        tar --format=$name -cf in keys
        warns "in: is a tar archive, whose bytes are taken for keys: unpack it first, with 'tar -xO'" build -q -o f in
        check "tar $name: its advice" same <(tar -xO <in) keys
    done
    gzip in
    warns "in.gz: is a tar archive" build -q -o f in.gz
}

# A filter is a file, and is not packed.
test_filters_are_files() {
    works build -q -n 1000 -o f keys
    gzip -k f
    mkfifo p
    for verb in "query f.gz keys" "info f.gz" "verify f.gz" "add f.gz keys" "copy f.gz g" "dedup --state f.gz keys"; do
        refuses "f.gz: not a filter file" $verb
    done
    refuses "not a filter file" query <(cat f) keys
    refuses "p: not a filter file" query p keys
    refuses "f.gz: exists and is not a filter" merge -o f.gz f f
}

run_tests
