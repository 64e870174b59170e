#!/bin/bash
# End-to-end tests of inputs that are not what somebody may think, and of filters that come from
# a pipe or are packed: cli_strange_test.sh PROGRAM
. "$(dirname "$0")/cli_helpers.sh"
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

# Verbs that read a filter take it from a pipe, and packed.
test_streamed() {
    local how name
    works build -q --seed 5 -n 1000 -p 1e-9 -o f keys
    works build -q --seed 5 -n 1000 -p 1e-9 -o other <(seq 11 20)
    works build -q --seed 5 -n 1000 --count -p 1e-9 -o counted keys
    gzip -k f && gzip -k other && gzip -k counted
    ! command -v zstd >/dev/null || zstd -q f
    ! command -v xz >/dev/null || xz -k f
    ! command -v bzip2 >/dev/null || bzip2 -k f
    for name in f.gz f.zst f.xz f.bz2; do
        [ -e $name ] || continue
        matches keys query $name keys
        matches keys query --check $name keys
        matches keys query <(cat $name) keys
        matches keys query /dev/stdin keys <$name
    done
    seq 15 >asked
    matches keys query <(cat f) asked
    matches keys query <(zcat f.gz) asked
    matches keys query /dev/stdin asked < <(cat f)
    matches keys query /dev/stdin asked <f
    matches <(seq 11 15) query -v f.gz asked
    matches <(sed 's/$/\t1/' keys) count counted.gz keys
    matches <(sed 's/$/\t1/' keys) count <(cat counted) keys
    run info --json f
    cp out plain
    run info --json f.gz
    check "info: the number of keys" [ "$(facts keys capacity body_bytes)" = "$(field keys plain) $(field capacity plain) $(field body_bytes plain)" ]
    tells_json file_bytes "$(wc -c <f)" info --json <(cat f)
    shows 'f.gz: ok, .* all that was read' verify f.gz
    shows 'ok, .* all that was read' verify <(cat f)
    run verify --json f.gz
    check "verify --json" tells '"ok":true,"pages":null,"damaged":0'
    works compare <(cat f) other.gz
    cp out streamed
    works compare f other
    check "compare: the same numbers" same <(tail -n +3 out) <(tail -n +3 streamed)
    for how in "f.gz other.gz" "f other.gz" "f.gz other"; do
        works merge -q -o m $how
        matches <(seq 20) query m <(seq 20)
        works verify m
    done
    works merge -q -o m <(cat f) <(cat other)
    matches <(seq 20) query m <(seq 20)
    works merge --common -q -o i f.gz <(cat f)
    matches keys query i asked
    works shrink -q -p 0.1 -o s f.gz
    works verify s
    works shrink -q -p 0.1 -o t f
    check "shrink: the same filter" same s t
    works copy -q f.gz b
    check "copy: the same filter" same b f
}

# What cannot be: changes, damage, a pipe that was read already.
test_streamed_refused() {
    local verb
    works build -q -n 100000 --kind counting -o f keys
    gzip -k f
    for verb in "add f.gz keys" "remove f.gz keys" "dedup --state f.gz keys"; do
        keeps f.gz refuses "f.gz: is packed, and cannot be changed so: unpack it first, and pack it again afterwards" $verb
    done
    mkfifo p
    for verb in "add p keys" "remove p keys" "dedup --state p keys"; do
        refuses "p: is no file, and a filter can be changed in a file only: write it to one first" $verb
    done
    refuses "f.gz: exists and is not a filter" merge -o f.gz f f
    refuses "not a filter file" query <(seq 1000) keys
    refuses "not a filter file" query <(:) keys
    gzip -k keys
    refuses "keys.gz: not a filter file" query keys.gz keys
    refuses "the file is damaged" query <(head -c 20000 f) keys
    head -c 400 f.gz >cut.gz
    refuses "cut.gz: truncated gzip data" query cut.gz keys
    cp f bad && printf x | dd of=bad bs=1 seek=30000 conv=notrunc 2>dd
    refuses "the file is damaged" query <(cat bad) keys
    ends 1 verify <(cat bad)
    gzip bad
    ends 1 verify bad.gz
    (timeout 60 bash -c 'cat f >p' 2>cat_err &)
    refuses "p: can be read once only, and was read already: name it once" compare p p
    refuses "p: is an input, too: give another file" query p p
    refuses "/dev/stdin: is an input, too: give another file" query /dev/stdin < <(cat f)
}

# is_empty DESCRIPTOR: whether nothing can be read from the pipe.
is_empty() { ! read -t 0 -u "$1"; }

# A header that claims a large body takes no more memory than the bytes that come.
test_streamed_claims() {
    [ -r /proc/self/status ] || return
    # 4 GB, of which a header and some pages come; the writer ends when nobody reads any more.
    { "$program" build -q -n 3G --kind bloom -o - keys 2>build_err | head -c 1000000 >claims; } </dev/null
    [ "$(wc -c <claims)" -eq 1000000 ] || return # not on such a small machine
    mkfifo p
    exec 6<>p
    "$program" query p keys >out 2>err 6<&- &
    local pid=$!
    cat claims >&6
    # All of it is in the program: the pipe is empty.
    check "has read it" until_true is_empty 6
    check "takes little: $(grep VmRSS /proc/$pid/status)" [ "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' /proc/$pid/status)" -lt 100000 ]
    exec 6<&-
    wait $pid
    status=$?
    refused "claims" "the file is damaged"
}

run_tests
