#!/bin/bash
# packages_test.sh SOURCE BUILD - packs what is built there into Debian packages, and looks into
# them.  Proves that each has its licence, its changes and its documents, and says what it is
# and needs; that man page and completions lie where Debian's programs look; and that no file is
# in two packages.
set -eu
source=$1 build=$2
command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null || exit 77
! grep -q '^PERHAPS_SANITIZE:STRING=.' "$build/CMakeCache.txt" || exit 77
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() {
    echo "packages_test.sh: $*" >&2
    exit 1
}

# has PACKAGE FILE...: each is in the folder /usr of the package, and not empty.
has() {
    local package=$1 file
    shift
    for file in "$@"; do
        [ -s "$root/$package/usr/$file" ] || fail "$package has no /usr/$file"
    done
}

# needs PACKAGE OTHER: OTHER, with the version if it says one, is among its dependencies.
needs() {
    dpkg-deb -f "$root/$1.deb" Depends | sed 's/, /\n/g' | grep -Fqx "$2" ||
        fail "$1 needs $2, but says: $(dpkg-deb -f "$root/$1.deb" Depends)"
}

# The terms of all that is compiled in, in the form that programs read.
check_copyright() {
    local file=$root/$1/usr/share/doc/$1/copyright text
    has "$1" "share/doc/$1/copyright"
    for text in 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/' \
        "Copyright: $(sed -n 's/^Copyright (c) //p' "$source/LICENSE")" \
        ' Permission is hereby granted, free of charge, to any person obtaining a copy' \
        'Copyright: 2012-2023 Yann Collet' 'License: BSD-2-Clause' \
        ' Redistribution and use in source and binary forms, with or without'; do
        grep -Fqx "$text" "$file" || fail "$file has no line '$text'"
    done
}

# Its header has neither name nor time, so that the same package comes out tomorrow.
check_changes() {
    local file=$root/$1/usr/share/doc/$1/changelog.gz
    has "$1" "share/doc/$1/changelog.gz"
    gzip -dc "$file" | cmp - "$source/CHANGES.md" || fail "$file is not CHANGES.md"
    [ "$(od -An -tx1 -N 8 "$file")" = ' 1f 8b 08 00 00 00 00 00' ] || fail "$file: not gzip -n"
}

# A short line that no other package has, and some that say more.
check_description() {
    dpkg-deb -f "$root/$1.deb" Description >"$root/description"
    [ "$(head -n 1 "$root/description" | wc -c)" -le 80 ] || fail "$1: its synopsis is long"
    ! grep -E '.{81}' "$root/description" || fail "$1: a line of its description is long"
    [ "$(wc -l <"$root/description")" -ge 4 ] || fail "$1 says little"
    head -n 1 "$root/description" >>"$root/synopses"
}

check_files() {
    local file
    (cd "$root/$1" && find . ! -type d) >>"$root/files"
    while read -r file; do
        ! readelf -SW "$file" | grep -q ' \.symtab ' || fail "$1: $file is not stripped"
    done < <(find "$root/$1" -type f \( -name '*.so*' -o -path '*/bin/*' \))
}

check_library() {
    local name shlibs=$root/control/shlibs
    dpkg-deb -e "$root/$1.deb" "$root/control"
    for name in libperhaps libperhaps_cluster; do # what other packages that use it depend on
        [ ! -e "$build/lib/$name.so" ] ||
            grep -Fqx "$name $abi $1 (>= $version)" "$shlibs" || fail "shlibs: $name"
    done
    grep -qx 'activate-noawait ldconfig' "$root/control/triggers" || fail "$1: no ldconfig"
}

check_dev() {
    needs "$1" "libperhaps$abi (= $version)"
    has "$1" "share/doc/$1/README.md" "share/doc/$1/examples/crawler.c"
    local file
    while read -r file; do # which the README leads to
        has "$1" "share/doc/$1/$file"
    done < <(sed -n 's/.*](\(doc\/[^)#]*\).*/\1/p' "$source/README.md")
}

# Where man and the shells look in Debian; zsh looks in site-functions below /usr/local only.
check_tools() {
    has "$1" bin/perhaps "lib/perhaps/client-$version.so" share/man/man1/perhaps.1.gz "share/doc/$1/README.md"
    gzip -dc "$root/$1/usr/share/man/man1/perhaps.1.gz" | cmp - "$source/doc/perhaps.1"
    [ ! -e "$root/$1/usr/share/man/man1/perhaps.1" ] || fail "two man pages"
    has "$1" share/bash-completion/completions/perhaps share/zsh/vendor-completions/_perhaps \
        share/fish/vendor_completions.d/perhaps.fish
    for file in libssl3 libhiredis; do # which the client loads
        dpkg-deb -f "$root/$1.deb" Depends | grep -q "$file" || fail "$1 does not need $file"
    done
    [ ! -e "$root/$1/usr/share/zsh/site-functions" ] || fail "$1: completions for no zsh"
}

check_module() {
    has "$1" lib/redis/modules/perhaps.so "share/doc/$1/MODULE.md" \
        "share/doc/$1/examples/signup.py"
}

check_python() {
    needs "$1" 'python3 (>= 3.11)'
    has "$1" lib/python3/dist-packages/perhaps/{__init__.py,_perhaps.abi3.so} \
        "share/doc/$1"/{README.md,examples/dedup_jsonl.py}
}

check_sqlite() {
    needs "$1" 'libsqlite3-0 (>= 3.31)'
    has "$1" "share/doc/$1/README.md"
}

# $2: the version of the server
check_postgres() {
    needs "$1" "postgresql-$2"
    has "$1" "lib/postgresql/$2/lib/perhaps.so" \
        "share/postgresql/$2/extension/perhaps.control" \
        "share/doc/$1"/{README.md,examples/signup.sql}
}

cpack --config "$build/CPackConfig.cmake" -B "$root/made" >"$root/log" 2>&1 ||
    fail "$(cat "$root/log")"
version=$(sed -n 's/^#define PERHAPS_VERSION  *"\(.*\)"/\1/p' "$source/include/perhaps.h")
abi=${version%.*}
for deb in "$root"/made/*.deb; do
    package=$(dpkg-deb -f "$deb" Package)
    mv "$deb" "$root/$package.deb"
    dpkg-deb -x "$root/$package.deb" "$root/$package"
    check_copyright "$package"
    check_changes "$package"
    check_description "$package"
    check_files "$package"
    case $package in
    libperhaps-dev) check_dev "$package" ;;
    libperhaps*) check_library "$package" ;;
    perhaps) check_tools "$package" ;;
    redis-perhaps) check_module "$package" ;;
    python3-perhaps) check_python "$package" ;;
    libsqlite3-mod-perhaps) check_sqlite "$package" ;;
    postgresql-*-perhaps) check_postgres "$package" "$(echo "$package" | tr -dc 0-9)" ;;
    *) fail "a package that this test does not know: $package" ;;
    esac
done
[ -d "$root/libperhaps-dev" ] || fail "no packages"
twice=$(sort "$root/files" | uniq -d)
[ -z "$twice" ] || fail "in two packages: $twice"
twice=$(sort "$root/synopses" | uniq -d)
[ -z "$twice" ] || fail "of two packages: $twice"
