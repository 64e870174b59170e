#!/bin/bash
# left_out_test.sh SOURCE - configures as on a machine that lacks this and that.  Proves that what
# is left out is told last, with the packages that have what is missing, and kept in a file.
set -eu
source=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() {
    echo "left_out_test.sh: $*" >&2
    exit 1
}

# A pkg-config that does not find what $HIDDEN names, in '|'.
cat >"$root/pkg-config" <<'SH'
#!/bin/bash
for word in "$@"; do
    case $HIDDEN in *"|${word%%[ <>=]*}|"*) exit 1 ;; esac
done
exec pkg-config "$@"
SH
chmod +x "$root/pkg-config"

# configure HIDDEN ARGUMENT...: leaves in $root/end what is told before CMake's own last lines.
configure() {
    export HIDDEN=$1
    shift
    rm -rf "$root/build"
    cmake -G Ninja -S "$source" -B "$root/build" -DPKG_CONFIG_EXECUTABLE="$root/pkg-config" "$@" \
        >"$root/log" 2>&1 || fail "$(cat "$root/log")"
    sed -n '/^-- Built/,/^-- Configuring done/p' "$root/log" | sed '$d; 1s/^-- //' >"$root/end"
    diff "$root/end" "$root/build/left_out.txt" || fail "left_out.txt has something else"
    sed -i 's/  */ /g; s/^ //' "$root/end"
}

tells() {
    grep -Fqx "$1" "$root/end" || fail "no line '$1' in: $(cat "$root/end")"
}

configure '|sqlite3|libpq|cmocka|' -DPG_CONFIG="$root/none" -DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON \
    -DWEB_CLANG="$root/none"
tells 'bindings/python python3-dev'
tells 'bindings/sqlite libsqlite3-dev'
tells 'bindings/postgres postgresql-server-dev-all'
tells 'bindings/web clang lld wasi-libc libclang-rt-dev-wasm32 binaryen'
tells 'examples/cache_guard libsqlite3-dev'
tells 'the tests libcmocka-dev'
# each once, though two things lack it
grep -q '^sudo apt-get install python3-dev libsqlite3-dev postgresql-server-dev-all' \
    "$root/end" || fail "no command: $(cat "$root/end")"
grep -q '^Built: the library, the client of servers, the command line' "$root/end" &&
    ! grep -q '^Built.*\(Python\|SQL\|tests\)' "$root/end" || fail "built? $(cat "$root/end")"

# What somebody does not want, nobody misses.
configure '||' -DBUILD_TESTING=OFF -DPERHAPS_{CLI,CLUSTER,MODULE,PYTHON,SQLITE,POSTGRES,WEB}=OFF
[ "$(cat "$root/end")" = 'Built: the library' ] || fail "built? $(cat "$root/end")"
