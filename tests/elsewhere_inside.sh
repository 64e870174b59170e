#!/bin/sh
# elsewhere_inside.sh WHAT... - runs in a chroot of another system, for elsewhere.sh:
#     prepare SYSTEM   installs what depends on the versions of the system, when it is made
#     test [COMPILER]  builds and tests /src with gcc, clang or both; on musl with musl-gcc
#     packages         builds the packages into /out
#     install          installs them, and uses library, program and man page
#     demo             runs ./dev demo
set -eu

# Prints the name of the newest package of clang that the system has.
newest_clang() {
    apt-cache pkgnames clang- | grep -x 'clang-[0-9]*' | sort -V | tail -n 1
}

# Builds with musl's compiler, from Debian's sources, what the library and its tests need.
prepare_musl() {
    mkdir -p /musl/include /musl/lib/pkgconfig /tmp/sources
    cd /tmp/sources
    apt-get source -qq libsodium cmocka
    (cd libsodium-*/ && autoreconf -fi &&
        ./configure --quiet CC=musl-gcc --prefix=/musl --disable-shared \
            --with-pic &&
        make --silent -j "$(nproc)" install)
    (cd cmocka-*/ && cmake -B build -DCMAKE_C_COMPILER=musl-gcc -DCMAKE_INSTALL_PREFIX=/musl \
        -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF -DWITH_EXAMPLES=OFF &&
        cmake --build build && cmake --install build)
    # xxHash is compiled into the library, so its header is enough.
    cp /usr/include/xxhash.h /musl/include
    printf 'Name: xxhash\nDescription: .\nVersion: 0.8\nCflags: -I/musl/include\n' \
        >/musl/lib/pkgconfig/libxxhash.pc
    rm -rf /tmp/sources
}

prepare() {
    case $1 in
    bare) ;;
    musl) prepare_musl ;;
    *) apt-get install -y -qq --no-install-recommends "$(newest_clang)" ;;
    esac
}

# build_and_test COMPILER LABELS CMAKE_ARGUMENT...: builds and runs all tests but those with
# these labels (a regular expression), and prints one line with the result.
build_and_test() {
    compiler=$1 leave_out=$2 log=/tmp/$1.log
    shift 2
    begin=$(date +%s)
    verdict=ok
    { cmake --preset release -S /src -B "/build/$compiler" -DCMAKE_C_COMPILER="$compiler" "$@" &&
        cmake --build "/build/$compiler" -- -k 0; } >"$log" 2>&1 || verdict="does not build"
    if [ "$verdict" = ok ]; then
        ctest --test-dir "/build/$compiler" -j "$(nproc)" --output-on-failure -LE "$leave_out" \
            --no-tests=error >"$log" 2>&1 || verdict=failed
        passed=$(grep -c ' Passed ' "$log" || true)
        failed=$(grep -c '\*\*\*\(Failed\|Exception\|Timeout\|Not Run\)' "$log" || true)
        verdict="$verdict: $passed tests passed, $failed failed"
    fi
    printf '%-32s %-16s %s, %d s\n' "$(. /etc/os-release && echo "$PRETTY_NAME")" \
        "${compiler%-[0-9]*} $("$compiler" -dumpfullversion 2>/dev/null ||
            "$compiler" -dumpversion)" \
        "$verdict" $(($(date +%s) - begin))
    case $verdict in
    ok:*) ;;
    *)
        grep -E 'error:|undefined reference|Error at|\*\*\*|FAILED' "$log" || tail -n 40 "$log"
        cp "$log" "/out/$(. /etc/os-release && echo "$ID$VERSION_ID").$compiler.log"
        return 1 ;;
    esac
}

# Without the client for servers everything builds, and addresses are refused.
test_without_cluster() {
    { cmake -G Ninja -S /src -B /build/alone -DPERHAPS_CLUSTER=OFF -DBUILD_TESTING=OFF &&
        cmake --build /build/alone; } >/tmp/log 2>&1 || { cat /tmp/log; return 1; }
    /build/alone/bin/perhaps info redis://127.0.0.1/x 2>&1 | grep -q PERHAPS_CLUSTER || return 1
    echo "without the client of servers: builds, and refuses their addresses"
}

test_here() {
    if [ -d /musl ]; then
        export PKG_CONFIG_LIBDIR=/musl/lib/pkgconfig
        build_and_test musl-gcc 'long|cpu' -DPERHAPS_CLI=OFF -DPERHAPS_CLUSTER=OFF \
            -DCMAKE_CXX_COMPILER=CMAKE_CXX_COMPILER-NOTFOUND
        return
    fi
    status=0
    if [ "${1:-gcc}" = gcc ]; then
        build_and_test gcc 'long|cpu|faults' || status=1
        test_without_cluster || status=1
    fi
    if [ "${1:-clang}" = clang ]; then
        build_and_test "$(basename "$(ls /usr/bin/clang-[0-9]*)")" 'long|cpu|servers' || status=1
    fi
    return $status
}

# Builds the Debian packages and copies them to /out.
packages() {
    rm -f /out/*.deb
    { cmake -G Ninja -S /src -B /build/deb -DBUILD_TESTING=OFF &&
        cmake --build /build/deb --target package; } >/tmp/log 2>&1 ||
        { tail -n 40 /tmp/log; return 1; }
    cp /build/deb/*.deb /out
}

# Installs the packages on a bare system, and uses them with nothing else but a compiler.
install_packages() {
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends /out/*.deb man-db gcc \
        libc6-dev pkg-config; } >/tmp/log 2>&1 || { tail -n 40 /tmp/log; return 1; }
    cd /tmp
    sed -n '/^```c$/,/^```$/p' /src/README.md | sed '1d;$d' >fruit.c
    # shellcheck disable=SC2046
    cc fruit.c $(pkg-config --cflags --libs perhaps)
    ./a.out | grep -qx 'apple: perhaps'
    seq 1000 | perhaps build -o seen.perhaps
    test "$(seq 1000 | perhaps query -c seen.perhaps)" = 1000
    test "$(man -w perhaps)" = "$(dpkg -L perhaps | grep 'man1/perhaps')"
    apt-get remove -y -qq 'libperhaps*' >/tmp/log 2>&1
    echo "$(cd /out && echo *.deb): installed and used"
}

demo() {
    begin=$(date +%s)
    cd /src
    ./dev demo >/tmp/log 2>&1 || { tail -n 40 /tmp/log; return 1; }
    echo "./dev demo on a bare system: ok, $(($(date +%s) - begin)) s"
}

what=$1
shift
mkdir -p /out
case $what in
prepare) prepare "$@" ;;
test) test_here "$@" ;;
packages) packages ;;
install) install_packages ;;
demo) demo ;;
esac
