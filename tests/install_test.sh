#!/bin/bash
# install_test.sh BUILD CC [CFLAGS] - installs into a folder of its own and builds programs
# against what is there: with pkg-config and with find_package(), shared and static.
set -eu
build=$1 cc=$2 cflags=${3:-}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() {
    echo "install_test.sh: $*" >&2
    exit 1
}

# Where it will be in the end is part of pkg-config's file, so it is staged as packagers do.
DESTDIR=$root/stage cmake --install "$build" >"$root/log" || fail "$(cat "$root/log")"
pc=$(find "$root/stage" -name perhaps.pc)
[ -n "$pc" ] || fail "no perhaps.pc"
libdir=$(dirname "$(dirname "$pc")")
prefix=$(dirname "$(dirname "$(find "$root/stage" -path '*/bin/perhaps')")")

# ---- What is there

[ -x "$prefix/bin/perhaps" ] || fail "no program"
[ -f "$prefix/share/man/man1/perhaps.1" ] || fail "no man page"
for header in perhaps.h perhaps_cluster.h; do
    [ -f "$prefix/include/$header" ] || fail "no header $header"
done
for library in libperhaps libperhaps_cluster; do
    [ -f "$libdir/$library.a" ] || fail "no static library $library"
    readelf -d "$libdir/$library.so" | grep -q "SONAME.*\[$library\.so\.0\]" ||
        fail "wrong soname of $library"
    [ "$(readlink "$libdir/$library.so")" = $library.so.0 ] || fail "$library.so is no link"
    others=$(nm -D --defined-only "$libdir/$library.so" | awk '$2 ~ /[A-Z]/ { print $3 }' |
        grep -v -e '^perhaps_' -e '^__asan' -e '^__odr_asan' || true)
    [ -z "$others" ] || fail "$library: exported beside perhaps_*: $others"
done

# ---- A program

cat >"$root/program.c" <<'C'
#include <perhaps.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    struct perhaps_options options = { .capacity = 10, .fpr = 1e-6 };
    perhaps_filter *f;
    int error = perhaps_create(&options, &f);
    if (error || strcmp(perhaps_version(), PERHAPS_VERSION)) {
        fprintf(stderr, "%s, %s\n", perhaps_strerror(error), perhaps_version());
        return 1;
    }
    perhaps_add(f, "one", 3);
    int wrong = !perhaps_contains(f, "one", 3) || perhaps_contains(f, "two", 3);
    perhaps_free(f);
    return wrong;
}
C

export PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root/stage
version=$(pkg-config --modversion perhaps)
"$prefix/bin/perhaps" --version | grep -q -F "$version" || fail "versions differ"

# shellcheck disable=SC2046,SC2086
$cc $cflags -o "$root/shared" "$root/program.c" $(pkg-config --cflags --libs perhaps)
readelf -d "$root/shared" | grep -q 'NEEDED.*\[libperhaps\.so\.0\]' || fail "linked statically"
LD_LIBRARY_PATH=$libdir "$root/shared" || fail "pkg-config: the shared program fails"

# shellcheck disable=SC2046,SC2086
$cc $cflags -o "$root/static" "$root/program.c" \
    $(pkg-config --static --cflags --libs perhaps | sed 's/-lperhaps/-l:libperhaps.a/')
readelf -d "$root/static" | grep -q 'libperhaps' && fail "linked dynamically"
"$root/static" || fail "pkg-config: the static program fails"

# Nobody listens at port 1.
cat >"$root/client.c" <<'C'
#include <perhaps_cluster.h>
#include <stdio.h>

int main(void)
{
    struct perhaps_cluster_options where = { .url = "redis://127.0.0.1:1/name" };
    perhaps_cluster *cluster;
    if (perhaps_cluster_new(&where, &cluster))
        return 1;
    int error = perhaps_cluster_open(cluster);
    printf("%s: %s\n", perhaps_cluster_name(cluster), perhaps_cluster_problem(cluster));
    perhaps_cluster_free(cluster);
    return error != PERHAPS_ERR_UNREACHABLE;
}
C

# shellcheck disable=SC2046,SC2086
$cc $cflags -o "$root/client" "$root/client.c" $(pkg-config --cflags --libs perhaps_cluster)
readelf -d "$root/client" | grep -q 'NEEDED.*\[libperhaps_cluster\.so\.0\]' ||
    fail "client linked statically"
LD_LIBRARY_PATH=$libdir "$root/client" || fail "pkg-config: the client fails"
unset PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR

# ---- The same with CMake

mkdir "$root/project"
cat >"$root/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C)
find_package(perhaps 0.1 REQUIRED)
add_executable(consumer_shared ../program.c)
target_link_libraries(consumer_shared PRIVATE perhaps::shared)
add_executable(consumer_static ../program.c)
target_link_libraries(consumer_static PRIVATE perhaps::static)
add_executable(client_shared ../client.c)
target_link_libraries(client_shared PRIVATE perhaps::cluster)
add_executable(client_static ../client.c)
target_link_libraries(client_static PRIVATE perhaps::cluster_static)
CMAKE
{
    cmake -G Ninja -S "$root/project" -B "$root/project/build" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$cflags" && cmake --build "$root/project/build"
} >"$root/log" 2>&1 || fail "$(cat "$root/log")"
for program in client_shared client_static; do
    LD_LIBRARY_PATH=$libdir "$root/project/build/$program" || fail "CMake: $program fails"
done
"$root/project/build/consumer_shared" || fail "CMake: the shared program fails"
"$root/project/build/consumer_static" || fail "CMake: the static program fails"
