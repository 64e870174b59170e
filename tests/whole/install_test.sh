#!/bin/bash
# install_test.sh SOURCE BUILD CC [CFLAGS] - installs into a folder of its own and builds
# programs against what is there.  Proves that all files are installed, that the libraries
# export nothing but perhaps_*, that pkg-config and find_package() work, shared and static, that
# the project can be a part of another one, optimized and without a trace in it, and that
# 'uninstall' leaves nothing.
set -eu
source=$1 build=$2 cc=$3 cflags=${4:-}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() {
    echo "install_test.sh: $*" >&2
    exit 1
}

# It is installed into another folder than it was configured for, and then moved: no file may
# contain an absolute path.
cmake --install "$build" --prefix "$root/first" >"$root/log" || fail "$(cat "$root/log")"
mv "$root/first" "$root/prefix"
prefix=$root/prefix
pc=$(find "$prefix" -name perhaps.pc)
[ -n "$pc" ] || fail "no perhaps.pc"
libdir=$(dirname "$(dirname "$pc")")
header=$prefix/include/perhaps.h
version=$(sed -n 's/^#define PERHAPS_VERSION  *"\(.*\)"/\1/p' "$header")
abi=$(awk '/define PERHAPS_VERSION_(MAJOR|MINOR)/ { printf "%s%s", dot, $3; dot = "." }' "$header")

# ---- What is there

[ -x "$prefix/bin/perhaps" ] || fail "no program"
[ -f "$prefix/share/man/man1/perhaps.1" ] || fail "no man page"
# The names that a library shows, beside those of sanitizers.
names() { nm -D --defined-only "$1" | awk '{ print $3 }' | grep -v -e '^__asan' -e '^__odr_asan'; }

# What was built is there, and shows its entry alone.
while read -r built installed entry; do
    [ -e "$build/lib/$built" ] || [ "$built" = perhaps.so ] || continue
    file=$(find "$prefix" -path "*/$installed")
    [ -n "$file" ] || fail "$built is not installed as $installed"
    [ "$(names "$file")" = "$entry" ] || fail "$installed: $(names "$file"), not just $entry"
done <<'LIST'
perhaps.so lib/redis/modules/perhaps.so RedisModule_OnLoad
perhaps_sqlite.so perhaps_sqlite.so sqlite3_perhapssqlite_init
python/perhaps/_perhaps.abi3.so python3/dist-packages/perhaps/_perhaps.abi3.so PyInit__perhaps
python/perhaps/_cluster.abi3.so python3/dist-packages/perhaps/_cluster.abi3.so PyInit__cluster
LIST
if [ -e "$build/lib/postgres/perhaps.so" ]; then
    [ -n "$(find "$prefix" -path '*/extension/perhaps.control')" ] || fail "no perhaps.control"
    names "$(find "$prefix" -path '*/postgresql/*/perhaps.so')" >"$root/names"
    grep -qx Pg_magic_func "$root/names" || fail "no extension for PostgreSQL"
    others=$(grep -v -e '^pg_perhaps_' -e '^pg_finfo_pg_perhaps_' -e '^_PG_init$' \
        -e '^Pg_magic_func$' "$root/names" || true)
    [ -z "$others" ] || fail "the extension for PostgreSQL shows $others"
fi
for name in bash-completion/completions/perhaps zsh/site-functions/_perhaps \
    fish/vendor_completions.d/perhaps.fish; do
    [ -s "$prefix/share/$name" ] || fail "no completions in $name"
done
for name in perhaps.h perhaps_{plan,file,live,sets,window,build,fast,embed,layout}.h \
    perhaps_cluster.h perhaps_cluster_async.h; do
    [ -f "$prefix/include/$name" ] || fail "no header $name"
    echo "#include <$name>" | $cc -std=c11 -Werror -fsyntax-only -I"$prefix/include" -xc - ||
        fail "$name does not compile alone"
done
for library in libperhaps libperhaps_cluster; do
    [ -f "$libdir/$library.a" ] || fail "no static library $library"
    readelf -d "$libdir/$library.so" | grep -q "SONAME.*\[$library\.so\.$abi\]" ||
        fail "wrong soname of $library"
    [ "$(readlink "$libdir/$library.so")" = "$library.so.$abi" ] || fail "$library.so is no link"
    others=$(nm -D --defined-only "$libdir/$library.so" | awk '$2 ~ /[A-Z]/ { print $3 }' |
        grep -v -e '^perhaps_' -e '^__asan' -e '^__odr_asan' || true)
    [ -z "$others" ] || fail "$library: exported beside perhaps_*: $others"
    others=$(nm --defined-only --extern-only "$libdir/$library.a" |
        awk 'NF == 3 { print $3 }' | grep -v -e '^perhaps_' -e '^__asan' -e '^__odr_asan' || true)
    [ -z "$others" ] || fail "$library.a: exported beside perhaps_*: $others"
done

# ---- The client of servers, which the program loads when it is needed

! readelf -d "$prefix/bin/perhaps" | grep -E 'NEEDED.*lib(ssl|crypto|hiredis)' ||
    fail "the program loads the client each time"
client=$prefix/lib/perhaps/client-$version.so
[ -f "$client" ] || fail "no client of servers for the program"
others=$(names "$client" | grep -v '^perhaps_cluster_' || true)
[ -z "$others" ] || fail "the client of the program shows $others"

# says TEXT: asking a server of the installed program is an error, of one line that has TEXT.
says() {
    local status=0
    ln -sf "$prefix/bin/perhaps" "$root/link" # it finds the client from wherever it is called
    (cd / && "$root/link" info redis://127.0.0.1:1/name) 2>"$root/error" || status=$?
    [ "$status" = 2 ] && [ "$(wc -l <"$root/error")" = 1 ] && grep -Fq "$1" "$root/error" ||
        fail "a filter on servers: $status, $(cat "$root/error"), not '$1'"
}
says '127.0.0.1:1: Connection refused'
mv "$client" "$root/client.so"
says "the client of servers cannot be loaded: $(realpath "$prefix")/bin/../lib/perhaps/client"
[ "$(seq 10 | "$prefix/bin/perhaps" dedup -q | wc -l)" = 10 ] || fail "nothing works without the client"
mv "$root/client.so" "$client"

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

export PKG_CONFIG_PATH=$libdir/pkgconfig
for where in "$abi.$(awk '/define PERHAPS_VERSION_PATCH/ { print $3 }' "$header")" \
    "$(pkg-config --modversion perhaps) $(pkg-config --modversion perhaps_cluster)" \
    "$("$prefix/bin/perhaps" --version)" "$(grep -m 1 '^## ' "$source/CHANGES.md")"; do
    case " $where " in *" $version "*) ;; *) fail "version $version, but also: $where" ;; esac
done

# shellcheck disable=SC2046,SC2086
$cc $cflags -o "$root/shared" "$root/program.c" $(pkg-config --cflags --libs perhaps)
readelf -d "$root/shared" | grep -q "NEEDED.*\[libperhaps\.so\.$abi\]" || fail "linked statically"
LD_LIBRARY_PATH=$libdir "$root/shared" || fail "pkg-config: the shared program fails"

# shellcheck disable=SC2046,SC2086
$cc $cflags -o "$root/static" "$root/program.c" \
    $(pkg-config --static --cflags --libs perhaps | sed 's/-lperhaps/-l:libperhaps.a/')
readelf -d "$root/static" | grep -q 'libperhaps' && fail "linked dynamically"
"$root/static" || fail "pkg-config: the static program fails"

# A program's own functions may have any name that does not begin with perhaps_, such as those
# of functions inside the library.
cat >"$root/names.c" <<'C'
int allocate(int x) { return x; }
int release(int x) { return allocate(x); }
C
# shellcheck disable=SC2046,SC2086
$cc $cflags -o "$root/names" "$root/program.c" "$root/names.c" \
    $(pkg-config --static --cflags --libs perhaps | sed 's/-lperhaps/-l:libperhaps.a/') ||
    fail "a name of the static library is in the way"

# The client reports an error, since nobody listens at port 1.
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
readelf -d "$root/client" | grep -q "NEEDED.*\[libperhaps_cluster\.so\.$abi\]" ||
    fail "client linked statically"
LD_LIBRARY_PATH=$libdir "$root/client" || fail "pkg-config: the client fails"
unset PKG_CONFIG_PATH

# ---- The same with CMake

mkdir "$root/project"
cat >"$root/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C)
find_package(perhaps ${ABI} REQUIRED)
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
        -DABI="$abi" -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$cflags" && cmake --build "$root/project/build"
} >"$root/log" 2>&1 || fail "$(cat "$root/log")"
for program in client_shared client_static; do
    LD_LIBRARY_PATH=$libdir "$root/project/build/$program" || fail "CMake: $program fails"
done
"$root/project/build/consumer_shared" || fail "CMake: the shared program fails"
"$root/project/build/consumer_static" || fail "CMake: the static program fails"

# ---- Without a build system

# The sources build with one call of the compiler, which takes a while.
# shellcheck disable=SC2086
$cc $cflags -I"$source/include" -o "$root/plain" "$root/program.c" \
    "$source"/src/*.c "$source"/src/*/*.c "$source"/src/*/*/*.c -lsodium -lm &
alone=$!

# ---- As a part of another project, whose targets have common names

mkdir "$root/parent"
cp "$root/program.c" "$root/parent"
cat >"$root/parent/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.21)
project(parent LANGUAGES C)
enable_testing()
foreach(name static shared objects support stress uninstall cluster)
  add_custom_target(${name})
endforeach()
if(WAY STREQUAL subdirectory)
  add_subdirectory(${PERHAPS} _deps/perhaps-build) # where FetchContent builds
else()
  include(FetchContent)
  FetchContent_Declare(perhaps SOURCE_DIR ${PERHAPS})
  FetchContent_MakeAvailable(perhaps)
endif()
add_executable(program program.c)
target_link_libraries(program PRIVATE perhaps::static)
if(NOT CMAKE_BUILD_TYPE STREQUAL "${TYPE}")
  message(FATAL_ERROR "the build type has become ${CMAKE_BUILD_TYPE}")
endif()
CMAKE

# part WAY TYPE: configures the other project, with a build type or "".
part() {
    cmake -G Ninja -S "$root/parent" -B "$root/parent/build" -DPERHAPS="$source" -DWAY="$1" \
        -DCMAKE_BUILD_TYPE="$2" -DTYPE="$2" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_C_FLAGS="$cflags" >"$root/log" 2>&1 || fail "by $1: $(cat "$root/log")"
}

# compiles TARGET FLAGS [COLD]: whether each object of a target is compiled with FLAGS, some of
# them with COLD behind, and with no other ones that optimize, when the program is built.
compiles() {
    ninja -C "$root/parent/build" -t commands program |
        awk -v target="/$1.dir/" -v flags="$2" -v cold="${3:-}" '
            !index($0, target) || !/ -c / { next }
            !sub(flags, "") { bad = 1 }
            cold && sub(cold, "") { ncold++ }
            / -O| -DNDEBUG/ { bad = 1 }
            { n++ }
            END { exit bad || !n || (cold && (!ncold || ncold == n)) }'
}

# Where the project chose no build type, the library alone is as released.  Another type is
# what it is: both ways build the same then, and once.
for way in fetch subdirectory; do
    part "$way" ""
    compiles perhaps_objects ' -O3 -DNDEBUG' ' -O[2s]' || fail "by $way: the library is not optimized"
    compiles program '' || fail "by $way: other programs get our flags"
    part "$way" Debug
    compiles perhaps_objects '' || fail "by $way: Debug is optimized"
    cmake --build "$root/parent/build" --target program >"$root/log" 2>&1 ||
        fail "by $way: $(cat "$root/log")"
    "$root/parent/build/program" || fail "by $way: the program fails"
done
targets=$(cmake --build "$root/parent/build" --target help)
echo "$targets" | grep -E '_test|perhaps-bench' && fail "in another project: tests"
[ ! -e "$root/parent/build/compile_commands.json" ] || fail "in another project: a list of ours"

{ wait "$alone" && "$root/plain"; } || fail "the sources do not build alone"

# ---- Gone again

DESTDIR=$root/stage cmake --install "$build" >"$root/log" || fail "$(cat "$root/log")"
DESTDIR=$root/stage cmake --build "$build" --target uninstall >"$root/log" ||
    fail "$(cat "$root/log")"
left=$(find "$root/stage" ! -type d)
[ -z "$left" ] || fail "not uninstalled: $left"
