#!/bin/bash
# instructions.sh [--record | --check] [--bin FOLDER] [TEXT]
#
# Counts the instructions of what perhaps-instructions does (or of those operations that have
# TEXT in their names), and prints them for one key, beside the recorded ones.  Needs valgrind.
#   --record  records them: in instructions.txt, and in doc/notebook/MEASUREMENTS.md
#   --check   fails if one is more than 5 % above what was recorded; ends with 77 if another
#             compiler or processor recorded it
set -euo pipefail
export LC_ALL=C
export PERHAPS_CPU=avx2 # valgrind has no AVX-512; a processor without AVX2 takes its best

here=$(cd "$(dirname "$0")" && pwd)
record=$here/instructions.txt document=$here/../doc/notebook/MEASUREMENTS.md
bin=$here/../build/bin mode='' text=''
while [ $# -gt 0 ]; do
    case $1 in
    --record | --check) mode=$1 ;;
    --bin) bin=$2 && shift ;;
    -*)
        sed -n '2,9s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
    *) text=$1 ;;
    esac
    shift
done
program=$bin/perhaps-instructions

# skip WORDS...: tells why there is nothing to check.
skip() {
    echo "instructions: $*" >&2
    [ "$mode" != --check ] || exit 77
}

# count FOLDER: prints each operation and its instructions a key.  Works in the folder.
count() {
    valgrind -q --tool=callgrind --callgrind-out-file="$1/parts" --combine-dumps=yes \
        --toggle-collect='counted_*' --dump-after=perhaps_free \
        "$program" "$text" >"$1/keys" 2>"$1/errors" || {
        cat "$1/errors" >&2
        return 2
    }
    # a part for each operation, and empty ones: of other filters, and the end of the program
    awk 'NR == FNR { if ($1 == "totals:" && $2) count[++parts] = $2; next }
        { printf "%s %.1f\n", $1, count[FNR] / $2 }
        END { exit parts != FNR }' "$1/parts" "$1/keys"
}

# compare RECORD COUNTS: prints the table.  With --check it fails at a count that is more than
# 5 % above the recorded one, or has none.
compare() {
    awk -v check="$mode" '
    BEGIN { printf "%-42s %9s %9s\n", "instructions a key", "recorded", "now" }
    NR == FNR { if (FNR > 1) recorded[$1] = $2; next }
    {
        known = $1 in recorded
        above = check == "--check" && $2 > 1.05 * recorded[$1]
        failed += above
        printf "%-42s %9s %9.1f", $1, known ? recorded[$1] : "-", $2
        if (known)
            printf "%+9.1f %%", 100 * ($2 / recorded[$1] - 1)
        print !above ? "" : known ? "  ERROR: more than 5 % above" : "  ERROR: not recorded"
    }
    END { exit failed > 0 }' "$@"
}

# update_table COUNTS FILE: prints the file with these counts in its table.  There a column has
# the name of an operation, and a line begins with that of a filter.
update_table() {
    awk 'NR == FNR {
        split($0, word, "[/ ]")
        operations[word[2]]
        now["`" word[1] "`", word[2]] = sprintf("%.0f", word[3])
        next
    }
    {
        count = split($0, field, " *[|] *")
        line = "|"
        for (i = 2; i < count; i++) {
            if (field[i] in operations)
                column[i] = field[i]
            known = (field[2], column[i]) in now
            line = line " " (known ? now[field[2], column[i]] : field[i]) " |"
            changed += known
        }
        print changed ? line : $0
        changed = 0
    }' "$@"
}

command -v valgrind >/dev/null || { skip "there is no valgrind" && exit 2; }
build=$("$program" --build) recorded=$(sed 1q "$record")
[ "$build" = "$recorded" ] || skip "this is $build; recorded was $recorded"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
count "$folder" >"$folder/counts"
compare "$record" "$folder/counts"
if [ "$mode$text" = --record ]; then
    { echo "$build" && cat "$folder/counts"; } >"$record"
    update_table "$folder/counts" "$document" >"$folder/document"
    cp "$folder/document" "$document"
fi
