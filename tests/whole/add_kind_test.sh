#!/bin/bash
# add_kind_test.sh SOURCE LIBRARIES CC [FLAG...] - adds the kind of doc/ADD_A_KIND.md.
#
# Applies doc/add_a_kind.patch to a copy of the sources, and compiles what it touches with CC and
# all warnings; the rest comes from the libraries in the folder LIBRARIES.  Proves that the new kind
# works for a user (add_kind.c), and passes the tests that go over all kinds (properties_test.c).
# FLAGs are those of a sanitizer, with which the libraries were built.
set -eu
source=$(cd "$1" && pwd) libraries=$(cd "$2" && pwd) cc=$3
shift 3
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() {
    echo "add_kind_test.sh: $*" >&2
    exit 1
}

cp -r "$source/src" "$source/include" "$source/tests" "$root"
cd "$root"
export GIT_CEILING_DIRECTORIES=${root%/*} # so that git takes it for no repository
if command -v git >log; then
    apply=(git apply -C1)
elif command -v patch >log; then
    apply=(patch -s -p1 -i)
else
    echo "add_kind_test.sh: there is neither git nor patch" && exit 77
fi
"${apply[@]}" "$source/doc/add_a_kind.patch" >log 2>&1 ||
    fail "doc/add_a_kind.patch does not apply any more: add the rows by hand to a copy of the" \
        "sources, and make the patch anew (git diff -U1). $(cat log)"

objects=()
while read -r file; do
    object=$(basename "$file" .c).o
    "$cc" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror "$@" -Iinclude -c "$file" -o "$object" ||
        fail "$file does not compile"
    objects+=("$object")
done < <(sed -n 's|^+++ b/\(src/.*\.c\)$|\1|p' "$source/doc/add_a_kind.patch")
[ ${#objects[@]} -ge 2 ] || fail "the patch has no kind and no row of the registry"

# compile PROGRAM SOURCE ARGUMENT...
compile() {
    local program=$1
    shift
    "$cc" -std=c11 -D_GNU_SOURCE -w "$@" -o "$program" 2>log ||
        fail "$1 does not compile: $(cat log)"
}

read -ra system < <(pkg-config --libs libsodium) || true
system+=(-lpthread -lm)
compile ./add_kind tests/whole/add_kind.c "$@" -Iinclude "${objects[@]}" \
    "$libraries/libperhaps_inside.a" "${system[@]}"
./add_kind || fail "the new kind does not do what a user expects"

compile ./properties tests/kinds/properties_test.c "$@" -Iinclude -Isrc -Itests/support \
    "${objects[@]}" "$libraries/libsupport.a" "$libraries/libperhaps_inside.a" -lcmocka \
    "${system[@]}" -Wl,--wrap=getentropy,--undefined=__wrap_getentropy
./properties >log 2>&1 || fail "a property of all kinds does not hold: $(grep -B3 FAILED log)"
