#!/bin/bash
# elsewhere.sh [SYSTEM[:COMPILER]...] - builds and tests in clean chroots of other systems;
# ./dev elsewhere.  COMPILER is gcc or clang.
#
# The chroots are made by mmdebstrap, as root or in a user namespace, kept as archives in
# build/elsewhere (remove one to have it made anew), and unpacked for each run.  In the environment:
# PACKAGES of Debian that a build needs; PERHAPS_MIRROR_DEBIAN and PERHAPS_MIRROR_UBUNTU for other
# mirrors than the public ones.
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

# The sources of a system, as apt has them.
sources() {
    case $1 in
    bookworm | trixie) echo "deb $debian $1 main" ;;
    musl) printf '%s\n' "deb $debian bookworm main" "deb-src $debian bookworm main" ;;
    bare) echo "deb $debian bookworm main" ;;
    noble) printf "deb $ubuntu %s main universe\n" noble noble-updates ;;
    *) fail "no system '$1'" ;;
    esac
}

# What is installed at once; elsewhere_inside.sh adds what depends on the system.
packages() {
    case $1 in
    bare) echo ca-certificates ;;
    trixie) echo "$PACKAGES ubuntu-archive-keyring" ;;
    musl) echo "$PACKAGES musl-tools dpkg-dev autoconf automake libtool" ;;
    *) echo "$PACKAGES dpkg-dev file" ;;
    esac
}

# Debian 13 has Ubuntu's keys, which Debian 12 has not.
ubuntu_keyring() {
    if [ -e "/$ubuntu_keys" ]; then
        echo "/$ubuntu_keys"
        return
    fi
    make_system trixie >&2
    tar -C "$kept" -xf "$kept/trixie.tar" --transform='s|.*/||' "./$ubuntu_keys"
    echo "$kept/${ubuntu_keys##*/}"
}

# A system is made again when what belongs to it has changed.
make_system() {
    local name=$1 keyring=() recipe log=$kept/$1.log
    recipe=$(sources "$name" && packages "$name")
    if [ -e "$kept/$name.tar" ] && [ "$recipe" = "$(cat "$kept/$name.recipe")" ]; then
        return
    fi
    echo "elsewhere: making $name (some minutes)" >&2
    mkdir -p "$kept"
    # proxies, and what else this machine needs to reach a mirror
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

# $1: a system; the others: what elsewhere_inside.sh is called with, in a fresh copy of the system
# with the sources in /src.  What is in $kept/out is in /out, and comes back.  The root of a
# namespace owns none of our folders: all goes through pipes.
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
    # in a namespace of its own, which has no mounts in there
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
        # the packages are built on bookworm, and tried where there is nothing
        run_in bookworm packages && run_in bare install && run_in bare demo ;;
    *:*) run_in "${name%:*}" test "${name#*:}" ;;
    *) run_in "$name" test ;;
    esac || failed="$failed $name"
done
[ -z "$failed" ] || fail "failed:$failed"
