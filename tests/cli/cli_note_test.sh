#!/usr/bin/env bash
# How keys were made of lines is noted with a filter: cli_note_test.sh PROGRAM, as cli_test.sh.
# Proves that every verb makes keys as the first one did, that options which contradict that are
# told, and that keys with other letters are no silent "no".
. "$(dirname "$0")/../support/cli_helpers.sh"

test_same_keys() {
    seq 100 | sed 's/.*/row,Key &,rest/' >table
    works build -q --field 2 -d , --ignore-case -o F table
    shows "^keys made of +field=2 delimiter=, ignore-case$" info F
    matches table query F table
    writes "x,kEY 7"$'\n' query F <(echo "x,kEY 7")
    writes "KEY 8"$'\n' query F --key "KEY 8"
    works add -q F <(echo "row,NEW,rest")
    writes "new"$'\n' query F --key new --key "row,NEW,rest"
    shows "new" query F --key new --label
    # Other fields may be named; one that begins at 1 and does not end is the line.
    writes "key 9"$'\n' query --field 1- F <(echo "key 9")
    writes "key 9;x"$'\n' query --field 1 -d ";" F <(echo "key 9;x")
    refuses "but the keys of F are such fields: if lines are keys, give --field 1-" query F <(echo "key 9")
}

test_kinds_and_ways() {
    printf 'a:K1\r\nb:K2\r\n' >in
    works build -q --field 2 -d : --crlf --ignore-case --removable -o F in
    works remove -q F <(printf 'x:k2\n')
    writes $'a:K1\r\n' query F in
    works build -q --static --field 2 -d : --crlf -o S in
    writes $'b:K2\r\n' query S <(printf 'b:K2\r\nb:k2\r\n')
    works build -q --count --field 2 -d : --crlf -o C in in
    writes $'a:K1\r\t2\nb:K2\r\t2\n' count C in
    works create -q -n 100 --ignore-case --live L
    works add -q L <(echo WORD)
    writes "word"$'\n' query L --key word
    works copy -q L B
    writes "WorD"$'\n' query B --key WorD
    works dedup -q --state D --field 1 --delimiter : in
    writes $'c:K1\n' dedup -q --state D <(printf 'a:other\nc:K1\n')
    works merge -q -o M F F
    shows "^keys made of +field=2 delimiter=: crlf ignore-case$" info M
    cat F >copy
    writes $'a:K1\r\n' query copy in
}

# Every list of fields, and every byte between fields, is read as it was written.
test_forms() {
    local fields byte
    for fields in 1 2- 1,3-5 5,4,3,2,1 2,4- 1000000; do
        works create -q -n 10 --field "$fields" F
        shows "^keys made of +field=$fields delimiter=.x09$" info F
        rm F
    done
    for byte in ' ' '\' , '"' $'\x7f' $'\xff' ';'; do
        printf '1%s2%s3\n' "$byte" "$byte" >line
        works build -q --field 2,3 -d "$byte" -o F line
        matches line query F line
        writes "" query F --key "2|3"
    done
    works create -q -n 10 G
    shows "^keys made of +lines$" info G
    refuses "too many to be noted" create -n 10 --field "$(seq -s , 1 3 90)" H
}

test_contradictions() {
    works build -q -o F keys
    works build -q --ignore-case -o I keys
    run query --ignore-case F keys
    check "answers" same out keys
    check "and says so" says "--ignore-case: F was made without it: keys that it has with capital"
    quietly query --ignore-case I keys
    quietly query -q --ignore-case F keys
    keeps F refuses "--ignore-case: F was made without it, and its keys would be missed" add --ignore-case F keys
    works build -q --removable -o R keys
    keeps R refuses "F was made without it" add --ignore-case F keys
    keeps R refuses "R was made without it" remove --ignore-case R keys
    works build -q --seed 5 -o A keys
    works build -q --seed 5 --ignore-case -o B keys
    keeps A refuses "one was made with --ignore-case, and one without" merge -o A A B
    works build -q --seed 5 --field 1 -o C keys
    works merge -q -o AC A C
}

# What an earlier version made, or a program: nothing is known, and nothing is said.
test_not_noted() {
    works build -q -n 100000 -o F keys # no small file
    cp F G
    local python=
    for python in python3 /usr/bin/python3 ''; do
        [ -n "$python" ] || { echo "left out: forged notes: no python3-xxhash"; return; }
        ! "$python" -c 'import xxhash' 2>/dev/null || break
    done
    "$python" - <<'TEXT' || check "python" false
from xxhash import xxh3_64_intdigest
def forge(name, note):
    data = bytearray(open('F', 'rb').read())
    data[96:104] = len(note).to_bytes(8, 'little')
    data[280:4096] = note + bytes(4096 - 280 - len(note))
    data[32:40] = bytes(8)
    data[32:40] = xxh3_64_intdigest(bytes(data[:4096])).to_bytes(8, 'little')
    open(name, 'wb').write(data)
forge('later', b'keys: json=name')
forge('own', b'of the program of somebody else')
forge('none', b'')
forge('odd', b'keys: field=2')
TEXT
    local file
    for file in none own; do
        quietly query "$file" keys
        quietly query --ignore-case "$file" keys
    done
    shows "^keys made of +of the program of somebody else$" info own
    run info none
    check "nothing" not tells "^keys made of"
    refuses "later: was made of 'keys: json=name', which this version does not know" query later keys
    refuses "which this version does not know" add odd keys
    shows "^keys made of +json=name$" info later
}

# Hashes in capital letters are asked of a filter that has them in small ones.
test_letters() {
    local i
    for i in $(seq 300); do echo "$i" | md5sum | cut -c1-32; done >small
    tr a-f A-F <small >capital
    works build -q -o F small
    run query F capital
    check "none is found" prints ""
    check "it says why" says "F: has none of the first 300 keys, but has them with small letters"
    works build -q -o F capital
    run query F small
    check "the other way round" says "has them with capital letters"
    quietly query F capital
    run query F <(seq 1000 2000)
    check "no letters" is_silent
    run query F <(for i in $(seq 300); do echo "other $i"; done)
    check "keys that are not there" is_silent
    works build -q --ignore-case -o F small
    matches capital query F capital
}

# A list of hashes with counts, as there are of passwords, whose lines nobody asks for.
test_counts() {
    local i
    for i in $(seq 50); do echo "$(echo "$i" | sha1sum | cut -c1-40 | tr a-f A-F):$i"; done >list
    cut -d : -f 1 list >hashes
    run build -o F list
    check "built" exits 0
    check "it says so" says "list: lines are hashes with a colon and a count behind them" "--field 1 --delimiter :"
    works build -q --field 1 --delimiter : -o F list
    check "silent" is_silent
    matches hashes query F hashes
    matches list query F list
    echo "abc:1" >short
    quietly build -q -o F short
}

# What -v leaves out by chance is told, and about how much that is.
test_missing() {
    seq 20000 >in
    works build -q -p 5% -o F in
    run query -v F <(seq 20001 40000)
    check "about" says " more that are not there either may be missing, at most $(grouped $((20000 - $(wc -l <out)))): to lose none, see dedup --against"
    run query -v -c --json F <(seq 20001 40000)
    check "expected" awk -v e="$(field expected_missing err)" -v n="$(cat out)" \
        'BEGIN { d = 20000 - n - e; exit !(d * d < 36 * e && e > 100) }'
    works build -q --integers 1-30000 -o B in
    quietly query -v B <(seq 20001 29000)
    quietly query -v -q F <(seq 20001 40000)
    quietly query --any -v F <(seq 20001 40000)
    quietly query F <(seq 20001 40000)
}

# grouped N: with a comma behind the thousands.
grouped() { echo "$1" | sed -E ':a; s/([0-9])([0-9]{3})(,|$)/\1,\2\3/; ta'; }

run_tests
