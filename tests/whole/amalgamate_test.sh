#!/bin/bash
# amalgamate_test.sh SOURCE COMPILER GOLDEN - proves that the library as one file is compiled by
# this compiler, and by others that are there, without a warning, and passes the library's tests.
set -eu
source=$1 cc=$2 golden=$3
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

fail() {
    echo "amalgamate: $*"
    exit 1
}

python3 "$source/cmake/amalgamate.py" "$source" "$made" "$cc"
header=$(echo '#include <xxhash.h>' | "$cc" -E - | sed -n 's/^# 1 "\(.*xxhash\.h\)".*/\1/p' | head -n 1)
cp "$(dirname "$header")"/xxh*.h "$made"
cd "$made"

# quiet COMPILER...: compiles it, with no word.
quiet() {
    "$@" -Wall -Wextra -I. -c perhaps.c -o "$made/other.o" 2>"$made/log" && ! [ -s "$made/log" ] ||
        fail "$*: $(head -n 5 "$made/log")"
    echo "amalgamate: $*: no warning"
}

"$cc" -O2 -Wall -Wextra -Werror -c perhaps.c || fail "$cc does not compile it"
for other in "clang -O2 -std=c11" "musl-gcc -O2" "x86_64-w64-mingw32-gcc -O2" "aarch64-linux-gnu-gcc -O2"; do
    # shellcheck disable=SC2086
    ! command -v ${other%% *} >/dev/null || quiet $other
done
if command -v g++ >/dev/null; then
    printf '#include "perhaps.h"\nint main() { return perhaps_version() ? 0 : 1; }\n' >c++.cpp
    g++ -std=c++11 -Wall -Wextra -Werror c++.cpp perhaps.o -lm -pthread -o c++ && ./c++ ||
        fail "its header is not C++"
fi

# What is not in its header is no name of the program that it is dropped into.
names=$(nm -g --defined-only perhaps.o | awk '$3 !~ /^perhaps_/ { print $3 }')
[ -z "$names" ] || fail "it defines $names"

# The library's tests see what is inside, and of what is left out the layouts.
"$cc" -O1 -w -DPERHAPS_PRIVATE= -DPERHAPS_WITH_SODIUM -I. -I"$source/include" -c perhaps.c -o whole.o
"$cc" -O2 -w -D_GNU_SOURCE -I"$source/include" -c "$source/src/layout/layout.c" -o layout.o
cd "$source/tests"
support=$(echo support/{main,support,kinds,files,processes,entropy,hostile}.c)
tests='kinds/properties kinds/model kinds/kernels kinds/cuckoo kinds/elastic kinds/counting kinds/ribbon
core/merge core/shrink build/build store/golden
store/damage store/small store/in_place'
for object in $support; do
    "$cc" -O1 -D_GNU_SOURCE -Isupport -I../src -I../include -c "$object" -o "$made/$(basename "$object").o"
done
for test in $tests; do
    name=$(basename "$test")
    "$cc" -O1 -w -D_GNU_SOURCE -DGOLDEN_FOLDER="\"$golden\"" -Isupport -I../src -I../include "${test}_test.c" \
        "$made"/*.c.o "$made/whole.o" "$made/layout.o" -Wl,--wrap=getentropy,--undefined=__wrap_getentropy \
        -lcmocka -lsodium -lm -pthread -o "$made/$name" || fail "$test is not linked"
    # The model takes a minute, and with the scalar loops a tenth of its steps.
    [ "$name" = model ] && cpu=scalar || cpu=
    (cd "$made" && env ${cpu:+PERHAPS_CPU=$cpu} ./"$name" >log 2>&1) || fail "$test fails: $(grep -v -e OK -e RUN "$made/log")"
done
echo "amalgamate: $(wc -l <"$made/perhaps.c") lines, $(wc -w <<<"$tests") of the library's tests pass"
