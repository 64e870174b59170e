#!/bin/sh
# elsewhere_inside.sh WHAT... - runs in a chroot of another system, for elsewhere.sh:
#     prepare SYSTEM   installs what is no package, when the system is made
#     bare             runs ./dev demo and ./dev test, as a new user does
#     tests            builds everything, leaves nothing out, and runs ./dev test
#     compilers        builds and tests /src with every compiler; on musl with musl-gcc
#     packages         builds the packages into /out
#     install          installs them, and uses library, program and man page
#     windows          builds for Windows, and runs the tests under wine
set -eu
system=$(. /etc/os-release && echo "$PRETTY_NAME")

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

# The same with the compiler for Windows, whose checks of the stack need one more library.
prepare_windows() {
    cc=x86_64-w64-mingw32
    mkdir -p /windows/include /windows/lib/pkgconfig /tmp/sources
    cd /tmp/sources
    apt-get source -qq libsodium cmocka
    (cd libsodium-*/ && autoreconf -fi &&
        ./configure --quiet --host=$cc --prefix=/windows --disable-shared --disable-ssp &&
        make --silent -j "$(nproc)" install)
    (cd cmocka-*/ && cmake -B build -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_C_COMPILER=$cc-gcc \
        -DWITH_STATIC_LIB=ON -DWITH_EXAMPLES=OFF && cmake --build build &&
        cp include/*.h /windows/include &&
        cp build/src/libcmocka-static.a /windows/lib/libcmocka.a)
    cp /usr/include/xxhash.h /windows/include
    printf 'Name: cmocka\nDescription: .\nVersion: 1\nCflags: -I/windows/include\n%s\n' \
        'Libs: -L/windows/lib -lcmocka' >/windows/lib/pkgconfig/cmocka.pc
    printf 'Name: xxhash\nDescription: .\nVersion: 0.8\nCflags: -I/windows/include\n' \
        >/windows/lib/pkgconfig/libxxhash.pc
    rm -rf /tmp/sources
}

# timed WORDS COMMAND...: runs it, and prints one line with the time; its output if it fails.
timed() {
    words=$1 begin=$(date +%s) log=$(mktemp)
    shift
    if "$@" >"$log" 2>&1; then
        echo "$system: $words: ok, $(($(date +%s) - begin)) s; $(tail -n 1 "$log")"
    else
        cat "$log"
        echo "$system: $words: FAILED, $(($(date +%s) - begin)) s"
        return 1
    fi
}

bare() {
    cd /src
    timed "./dev demo" ./dev demo
    timed "./dev test" ./dev test
}

run_tests() {
    cd /src
    timed "./dev build" ./dev build
    if grep -q '^Left out' build/left_out.txt; then
        cat build/left_out.txt
        return 1
    fi
    RESULTS=/out/results timed "./dev test" ./dev test quick
}

# compiler CC CMAKE_ARGUMENT...: builds everything with it, and runs what sees the library.
compiler() {
    cc=$1 log=/tmp/log begin=$(date +%s)
    shift
    version="$("$cc" -dumpfullversion 2>/dev/null || "$cc" -dumpversion)"
    rm -rf /build
    if ! { cmake -G Ninja -S /src -B /build -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$cc" "$@" &&
        cmake --build /build -- -k 0; } >"$log" 2>&1; then
        grep -E 'error:|undefined reference|Error at|FAILED' "$log" || tail -n 40 "$log"
        echo "$system: $cc $version $*: does not build"
        return 1
    fi
    warnings=$(grep -c 'warning:' "$log" || true)
    if ! ctest --test-dir /build -j "$(nproc)" --output-on-failure --no-tests=error \
        -LE 'long|cpu|servers|slow|install|bench|examples|faults|failover' >"$log" 2>&1; then
        cat "$log"
        echo "$system: $cc $version $*: failed"
        return 1
    fi
    echo "$system: $cc $version $*: $(grep -c ' Passed ' "$log") tests passed," \
        "$warnings warnings, $(($(date +%s) - begin)) s"
}

# Without the client for servers and libsodium everything builds, and addresses are refused.
test_without_parts() {
    { cmake -G Ninja -S /src -B /build/alone -DPERHAPS_CLUSTER=OFF -DPERHAPS_SODIUM=OFF \
        -DBUILD_TESTING=OFF && cmake --build /build/alone; } >/tmp/log 2>&1 ||
        { cat /tmp/log; return 1; }
    /build/alone/bin/perhaps info redis://127.0.0.1/x 2>&1 | grep -q PERHAPS_CLUSTER || return 1
    echo "$system: without the client of servers and libsodium: builds, and refuses addresses"
}

compilers() {
    status=0
    if [ -d /musl ]; then
        export PKG_CONFIG_LIBDIR=/musl/lib/pkgconfig
        # Python, servers and databases of Debian are for its own C library.
        set -- -DPERHAPS_CLI=OFF -DPERHAPS_CLUSTER=OFF -DPERHAPS_PYTHON=OFF -DPERHAPS_MODULE=OFF \
            -DPERHAPS_SQLITE=OFF -DPERHAPS_POSTGRES=OFF \
            -DCMAKE_CXX_COMPILER=CMAKE_CXX_COMPILER-NOTFOUND
        compiler musl-gcc "$@" || status=1
        bash /src/tests/whole/flto_test.sh /src musl-gcc -flto "$@" || status=1
        return $status
    fi
    apt-get update -qq
    packages=$(apt-cache pkgnames | grep -Ex '(gcc|clang)-[0-9]+' | sort -V)
    # LLVM's linker and archiver, without which clang cannot link what -flto compiled
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages \
        $(echo "$packages" | sed -n 's/^clang\(.*\)/llvm\1 lld\1/p') >/tmp/log 2>&1 ||
        { cat /tmp/log; return 1; }
    for cc in $packages; do
        compiler "$cc" || status=1
        bash /src/tests/whole/flto_test.sh /src "$cc" || status=1
    done
    test_without_parts || status=1
    return $status
}

# Builds the library and what tests ask nothing of Unix, and runs them.
windows() {
    export PKG_CONFIG_LIBDIR=/windows/lib/pkgconfig WINEDEBUG=-all WINEPREFIX=/tmp/wine
    timed "the build" sh -c 'cmake -G Ninja -S /src -B /build -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_TOOLCHAIN_FILE=/src/cmake/windows.cmake && cmake --build /build'
    wineboot -i >/dev/null 2>&1
    timed "the tests" ctest --test-dir /build -j "$(nproc)" --output-on-failure --no-tests=error
    sed -n '/^not tried: /p' /build/Testing/Temporary/LastTest.log | sort -u
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
    sed -n '/^```c$/,/^```$/{/^```/d;p;/^}$/q}' /src/doc/C.md >fruit.c
    # shellcheck disable=SC2046
    cc fruit.c $(pkg-config --cflags --libs perhaps)
    ./a.out | grep -qx 'apple: perhaps'
    seq 1000 | perhaps build -o seen.perhaps
    test "$(seq 1000 | perhaps query -c seen.perhaps)" = 1000
    perhaps info redis://127.0.0.1:1/x 2>&1 | grep -q 'Connection refused'
    test "$(man -w perhaps)" = "$(dpkg -L perhaps | grep 'man1/perhaps')"
    for package in /out/*.deb; do
        test -s "/usr/share/doc/$(dpkg-deb -f "$package" Package)/copyright"
    done
    apt-get remove -y -qq 'libperhaps*' >/tmp/log 2>&1
    echo "$(cd /out && echo *.deb): installed and used"
}

what=$1
shift
mkdir -p /out
case $what in
prepare)
    case $1 in
    musl) prepare_musl ;;
    windows) prepare_windows ;;
    esac
    ;;
bare) bare ;;
tests) run_tests ;;
compilers) compilers ;;
packages) packages ;;
install) install_packages ;;
windows) windows ;;
esac
