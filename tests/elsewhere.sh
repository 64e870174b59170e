#!/bin/bash
# elsewhere.sh [SYSTEM[:COMPILER]...] - builds and tests in clean chroots of other systems, for
# ./dev elsewhere.  COMPILER is gcc or clang.  It finds what depends on this machine: versions
# of libraries and compilers, another C library (musl), and packages that are missing (bare).
#
# mmdebstrap makes the chroots, as root or in a user namespace.  They are kept as archives in
# build/elsewhere (remove one to have it made anew) and unpacked for each run.  The environment
# has PACKAGES, the packages of Debian that a build needs; and may have PERHAPS_MIRROR_DEBIAN
# and PERHAPS_MIRROR_UBUNTU, for other mirrors than the public ones.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
kept=$source/build/elsewhere
debian=${PERHAPS_MIRROR_DEBIAN:-http://deb.debian.org/debian}
ubuntu=${PERHAPS_MIRROR_UBUNTU:-http://archive.ubuntu.com/ubuntu}
ubuntu_keys=usr/share/keyrings/ubuntu-archive-keyring.gpg

fail() {
    echo "elsewhere: $*" >&2
    exit 1
}

# sources SYSTEM: prints the sources of its packages, as apt wants them.
sources() {
    case $1 in
    bookworm | trixie) echo "deb $debian $1 main" ;;
    musl) printf '%s\n' "deb $debian bookworm main" "deb-src $debian bookworm main" ;;
    bare) echo "deb $debian bookworm main" ;;
    noble) printf "deb $ubuntu %s main universe\n" noble noble-updates ;;
    *) fail "no system '$1'" ;;
    esac
}

# packages SYSTEM: prints the packages that are installed with the system.  elsewhere_inside.sh
# adds those that depend on its versions.
packages() {
    case $1 in
    bare) echo ca-certificates ;;
    trixie) echo "$PACKAGES ubuntu-archive-keyring" ;;
    musl) echo "$PACKAGES musl-tools dpkg-dev autoconf automake libtool" ;;
    *) echo "$PACKAGES dpkg-dev file" ;;
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
    tar -C "$kept" -xf "$kept/trixie.tar" --transform='s|.*/||' "./$ubuntu_keys"
    echo "$kept/${ubuntu_keys##*/}"
}

# make_system SYSTEM: makes its archive, unless there is one with the same sources and packages.
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
    [ "$name" != noble ] || keyring=(--keyring="$(ubuntu_keyring)")
    sources "$name" | mmdebstrap --variant=apt --aptopt="$kept/apt.conf" "${keyring[@]}" \
        --aptopt='APT::Install-Recommends "false"' --include="$(packages "$name")" \
        --customize-hook="copy-in '$source/tests/elsewhere_inside.sh' /" \
        --customize-hook="chroot \"\$1\" sh /elsewhere_inside.sh prepare $name" \
        "$(sources "$name" | awk '{ print $3; exit }')" "$kept/part.$name.tar" - >"$log" 2>&1 ||
        fail "$name cannot be made: $(tail -n 20 "$log")"
    mv "$kept/part.$name.tar" "$kept/$name.tar"
    echo "$recipe" >"$kept/$name.recipe"
}

# run_in SYSTEM ARGUMENT...: calls elsewhere_inside.sh with the arguments in a fresh copy of the
# system, which has our sources in /src.  The folder $kept/out goes in as /out and comes back.
# Everything passes through pipes, since the root of a namespace owns none of our folders.
run_in() {
    local name=$1 root=${TMPDIR:-/tmp}/perhaps-elsewhere.$$.$1 status=0
    shift
    make_system "$name"
    mkdir -p "$kept/out"
    # shellcheck disable=SC2016
    {
        git -C "$source" ls-files -z --cached --others --exclude-standard |
            tar -C "$source" --null --ignore-failed-read -T - --transform='s|^|src/|' -c 2>/dev/null
        tar -C "$kept" -c out
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
            sh /src/tests/elsewhere_inside.sh "$@" </dev/null
        ' sh "$root" "$@" 3<"$kept/$name.tar" 2>&1 | { grep --line-buffered -v '^E: ' || true; } || status=1
    # Another namespace, in which nothing is mounted below the folder that is removed.
    # shellcheck disable=SC2016
    mmdebstrap --unshare-helper sh -c 'tar -C "$1" -c out; rm -rf --one-file-system "$1"' \
        sh "$root" |
        tar -C "$kept" -x
    return "$status"
}

[ $# -gt 0 ] || set -- bookworm trixie noble musl bare
failed=
for name in "$@"; do
    case $name in
    bare)
        # The packages are built on bookworm, and tried on a system with nothing else.
        run_in bookworm packages && run_in bare install && run_in bare demo ;;
    *:*) run_in "${name%:*}" test "${name#*:}" ;;
    *) run_in "$name" test ;;
    esac || failed="$failed $name"
done
[ -z "$failed" ] || fail "failed:$failed"
