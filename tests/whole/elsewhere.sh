#!/bin/bash
# elsewhere.sh [SYSTEM[:PART]...] - builds and tests in clean chroots of other systems, for
# ./dev elsewhere.  It finds what depends on this machine: versions of compilers, libraries,
# servers and languages, another C library, packages that are missing.
#
#     SYSTEM  bookworm (Debian 12), trixie (Debian 13), noble (Ubuntu 24.04), musl; or windows:
#             Debian's mingw-w64 builds the library and its tests, which run under wine
#     PART    bare       ./dev demo and ./dev test, on a system that has nothing but git
#             tests      ./dev test where all packages are installed, and nothing is left out
#             compilers  every gcc and clang of the system builds the library and runs its tests,
#                        and once more with -flto
#             packages   builds the Debian packages, and uses them on a system without ours
#
# All parts are run if none is named, and all systems.
#
# mmdebstrap makes the chroots, as root or in a user namespace.  They are kept as archives in
# ~/.cache/perhaps-elsewhere (remove one to have it made anew) and unpacked for each run.  The
# environment has PACKAGES, the packages of Debian that builds and tests need; and may have
# PERHAPS_MIRROR_DEBIAN and PERHAPS_MIRROR_UBUNTU, for other mirrors than the public ones;
# PERHAPS_TEST_SEED; and RESULTS, as for stages.sh.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
kept=${XDG_CACHE_HOME:-$HOME/.cache}/perhaps-elsewhere
debian=${PERHAPS_MIRROR_DEBIAN:-http://deb.debian.org/debian}
ubuntu=${PERHAPS_MIRROR_UBUNTU:-http://archive.ubuntu.com/ubuntu}
ubuntu_keys=usr/share/keyrings/ubuntu-archive-keyring.gpg
out=$(mktemp -d) # goes into each chroot as /out, and comes back
trap 'rm -rf "$out"' EXIT

fail() {
    echo "elsewhere: $*" >&2
    exit 1
}

# sources SYSTEM: prints the sources of its packages, as apt wants them.
sources() {
    case $1 in
    bookworm* | trixie*) echo "deb $debian ${1%-bare} main" ;;
    musl | windows) printf '%s\n' "deb $debian bookworm main" "deb-src $debian bookworm main" ;;
    noble*) printf "deb $ubuntu %s main universe\n" noble noble-updates ;;
    *) fail "no system '$1': bookworm, trixie, noble, musl or windows" ;;
    esac
}

# packages SYSTEM: prints the packages that are installed with the system.
packages() {
    case $1 in
    *-bare) echo git ;;
    bookworm) echo "$PACKAGES redis-server redis-tools" ;;
    trixie) echo "$PACKAGES redis-server redis-tools valkey-server valkey-tools ubuntu-archive-keyring" ;;
    musl) echo "$PACKAGES musl-tools dpkg-dev autoconf automake libtool" ;;
    windows)
        echo "cmake ninja-build pkg-config libxxhash-dev dpkg-dev autoconf automake libtool" \
            "gcc-mingw-w64-x86-64 wine64 wine"
        ;;
    *) echo "$PACKAGES valkey-server valkey-tools" ;;
    esac
}

# Prints the path of Ubuntu's keys.  Debian 12 has no package of them, so they are taken out of
# the chroot of Debian 13.
ubuntu_keyring() {
    if [ -e "/$ubuntu_keys" ]; then
        echo "/$ubuntu_keys"
        return
    fi
    make_system trixie >&2
    # apt reads them as another user, who may not look into ~
    tar -C "$out" -xf "$kept/trixie.tar" --transform='s|.*/||' "./$ubuntu_keys"
    chmod 755 "$out"
    echo "$out/${ubuntu_keys##*/}"
}

# make_system NAME: makes its archive, unless there is one with the same sources and packages.
# NAME is a system, or SYSTEM-bare.
make_system() {
    local name=$1 keyring=() recipe log=$kept/$1.log
    recipe=$(sources "$name" && packages "$name")
    if [ -e "$kept/$name.tar" ] && [ "$recipe" = "$(cat "$kept/$name.recipe")" ]; then
        return
    fi
    echo "elsewhere: making $name (some minutes)" >&2
    mkdir -p "$kept"
    # Proxies, and what else apt on this machine needs to reach a mirror.
    apt-config dump | grep -E '^Acquire::(https?|Check-[A-Za-z-]*)\b.* ".+"' >"$kept/apt.conf" ||
        true
    case $name in noble*) keyring=(--keyring="$(ubuntu_keyring)") ;; esac
    sources "$name" | mmdebstrap --variant=apt --aptopt="$kept/apt.conf" "${keyring[@]}" \
        --aptopt='APT::Install-Recommends "false"' --dpkgopt=force-unsafe-io \
        --include="$(packages "$name")" \
        --customize-hook="copy-in '$source/tests/whole/elsewhere_inside.sh' /" \
        --customize-hook="chroot \"\$1\" sh /elsewhere_inside.sh prepare $name" \
        "$(sources "$name" | awk '{ print $3; exit }')" "$kept/part.$name.tar" - >"$log" 2>&1 ||
        fail "$name cannot be made: $(tail -n 20 "$log")"
    mv "$kept/part.$name.tar" "$kept/$name.tar"
    echo "$recipe" >"$kept/$name.recipe"
}

# run_in NAME ARGUMENT...: calls elsewhere_inside.sh with the arguments in a fresh copy of the
# system, which has our sources in /src.  Everything passes through pipes, since the root of a
# namespace owns none of our folders.
run_in() {
    local name=$1 root=${TMPDIR:-/tmp}/perhaps-elsewhere.$$.$1 status=0
    shift
    make_system "$name"
    # shellcheck disable=SC2016
    {
        git -C "$source" ls-files -z --cached --others --exclude-standard |
            tar -C "$source" --null --ignore-failed-read -T - --transform='s|^|src/|' -c 2>/dev/null
        tar -C "$out" --transform='s|^\.|out|' -c .
    } | mmdebstrap --unshare-helper sh -eu -c '
        root=$1
        shift
        mkdir "$root"
        tar -C "$root" --exclude="./dev/*" -x <&3
        tar -C "$root" --ignore-zeros -x
        cp /etc/resolv.conf "$root/etc/resolv.conf"
        mount --make-rprivate /
        mount --rbind /dev "$root/dev"
        mount -t proc proc "$root/proc"
        chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
            ${PERHAPS_TEST_SEED:+PERHAPS_TEST_SEED="$PERHAPS_TEST_SEED"} \
            sh /src/tests/whole/elsewhere_inside.sh "$@" </dev/null
        ' sh "$root" "$@" 3<"$kept/$name.tar" 2>&1 | { grep --line-buffered -v '^E: ' || true; } || status=1
    # Another namespace, in which nothing is mounted below the folder that is removed.
    # shellcheck disable=SC2016
    mmdebstrap --unshare-helper sh -c 'tar -C "$1/out" -c .; rm -rf --one-file-system "$1"' \
        sh "$root" | tar -C "$out" -x
    return "$status"
}

# run_part SYSTEM PART
run_part() {
    case $1:$2 in
    musl:*) run_in musl compilers ;;
    windows:*) run_in windows windows ;;
    *:bare) run_in "$1-bare" bare ;;
    *:packages) run_in "$1" packages && run_in "$1-bare" install ;;
    *) run_in "$1" "$2" ;;
    esac
}

# One result for each test of the part, for stages.sh.
tell_results() {
    [ -n "${RESULTS:-}" ] && [ -e "$out/results" ] || return 0
    sed "s/^\([a-z]*\) [a-z]*, /\1 $1, /" "$out/results" >>"$RESULTS"
    rm "$out/results"
}

[ $# -gt 0 ] || set -- bookworm trixie noble musl windows
failed=
for what in "$@"; do
    system=${what%%:*} parts='bare tests compilers packages'
    case $system in musl) parts=compilers ;; windows) parts=tests ;; esac
    case $what in *:*) parts=${what#*:} ;; esac
    sources "$system" >/dev/null
    for part in $parts; do
        case $part in
        bare | tests | compilers | packages) ;;
        *) fail "no part '$part': bare, tests, compilers or packages" ;;
        esac
        echo "== $system: $part"
        run_part "$system" "$part" || failed="$failed $system:$part"
        tell_results "$system"
    done
done
[ -z "$failed" ] || fail "failed:$failed"
