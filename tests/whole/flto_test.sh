#!/bin/bash
# flto_test.sh SOURCE CC [FLAGS [CMAKE_ARGUMENT...]] - builds everything with CC and flags for
# link-time optimization (default: -flto), as some distributions build all they have.  Proves
# that it builds, that the static libraries export nothing but perhaps_*, that tests of the
# library pass, and that its sources build with one call of the compiler, too.  Status 77: the
# compiler itself cannot link with these flags.
set -eu
source=$(realpath "$1") cc=$2 flags=${3:--flto}
shift $(($# < 3 ? $# : 3))
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() {
    echo "flto_test.sh: $cc $flags: $*" >&2
    exit 1
}

# can_link OPTION: whether a program of two objects, one in an archive, links with it.
can_link() {
    # shellcheck disable=SC2086
    (cd "$root" && "$cc" $flags -c one.c two.c && rm -f two.a && "$ar" rcs two.a two.o &&
        "$cc" $flags $1 one.o two.a -o one && ./one) >"$root/log" 2>&1
}

echo 'int two(void); int main(void) { return two(); }' >"$root/one.c"
echo 'int two(void); int two(void) { return 0; }' >"$root/two.c"

# The archiver and the linker must know the compiler's objects.  Clang has its own of both, which
# lie beside it; those that -print-prog-name tells may be of an older release.
ar=ar link=
if "$cc" --version | grep -q clang; then
    beside=$(dirname "$(realpath "$(command -v "$cc")")")
    ar=$beside/llvm-ar
    [ -x "$ar" ] || ar=$("$cc" -print-prog-name=llvm-ar)
    if ! can_link ""; then
        link=-fuse-ld=lld
        [ ! -x "$beside/ld.lld" ] || link=--ld-path=$beside/ld.lld
    fi
fi
if ! can_link "$link"; then
    echo "flto_test.sh: $cc cannot link with $flags: $(cat "$root/log")"
    exit 77
fi

cmake -G Ninja -S "$source" -B "$root/build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags" \
    -DCMAKE_AR="$(command -v "$ar")" -DCMAKE_EXE_LINKER_FLAGS="$link" \
    -DCMAKE_SHARED_LINKER_FLAGS="$link" -DCMAKE_MODULE_LINKER_FLAGS="$link" "$@" \
    >"$root/log" 2>&1 || fail "$(cat "$root/log")"
cmake --build "$root/build" >"$root/log" 2>&1 ||
    fail "does not build: $(grep -E 'FAILED|error|undefined|multiple' "$root/log" | head -n 60)"

for library in "$root"/build/lib/*.a; do
    case $library in *_inside.a | */libsupport.a) continue ;; esac # for our tests
    names=$(nm --defined-only --extern-only "$library" | awk 'NF == 3 { print $3 }')
    echo "$names" | grep -q '^perhaps_' || fail "${library##*/} exports nothing"
    others=$(echo "$names" | grep -v '^perhaps_' || true)
    [ -z "$others" ] || fail "${library##*/}: exported beside perhaps_*: ${others:0:500}"
done

# What reads objects with nm, which may not know those of this compiler, is left out.
ctest --test-dir "$root/build" -j "$(nproc)" -L '^(properties|files|cuckoo|kernels|model)$' \
    -LE '^(cpu|long|servers)$' -E arrows --no-tests=error --output-on-failure >"$root/log" 2>&1 ||
    fail "$(cat "$root/log")"
passed=$(grep -c ' Passed ' "$root/log")

cat >"$root/program.c" <<'C'
#include <perhaps.h>

int main(void)
{
    struct perhaps_options options = { .capacity = 10, .fpr = 1e-6 };
    perhaps_filter *f;
    if (perhaps_create(&options, &f))
        return 1;
    perhaps_add(f, "one", 3);
    int wrong = !perhaps_contains(f, "one", 3) || perhaps_contains(f, "two", 3);
    perhaps_free(f);
    return wrong;
}
C
# shellcheck disable=SC2046,SC2086
"$cc" -O2 $flags $link -I"$source/include" -o "$root/plain" "$root/program.c" \
    "$source"/src/*.c "$source"/src/*/*.c "$source"/src/*/*/*.c $(pkg-config --cflags --libs libxxhash libsodium) -lm \
    >"$root/log" 2>&1 || fail "the sources do not build alone: $(cat "$root/log")"
"$root/plain" || fail "the sources build alone, and do not work"
echo "$cc $flags: builds, exports perhaps_* alone, $passed tests passed"
