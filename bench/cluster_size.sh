#!/bin/sh
# cluster_size.sh KEYS RATE [NAME] - tells what a filter takes on servers (doc/CLUSTER.md, On
# paper), beside a classic one with a command for each bit; from 'perhaps plan' and bytes sent.
set -eu
[ $# -ge 2 ] || { sed -n '2,3s/^# //p' "$0" && exit 2; }
perhaps=${BIN:-$(dirname "$0")/../build/bin}/perhaps
"$perhaps" plan --json --kind blocked:together -n "$1" -p "$2" | tr '{,' '\n\n' |
    sed -n '/others/q; s/"\([a-z_]*\)":\([0-9.e+-]*\)}*$/\1 \2/p' |
    awk -v name="${3:-urls}" -v rate="$2" '
    # how many digits a random number below n has, on average
    function digits(n) { return n > 10 ? 1 + (n - 10) / n * digits(n / 10) : 1 }
    function argument(nbytes) { return 1 + length(int(nbytes) "") + 2 + nbytes + 2 }
    function command(count, nbytes) { return 1 + length(count "") + 2 + nbytes }
    # partitions of at most 16 MiB, and 1024 or more where each can be 4 KiB; masters with 48
    # GiB for the filter each
    function spread(nbytes) {
        partitions = int((nbytes - 1) / (2 ^ 24 - 128)) + 1
        least = nbytes < 2 ^ 22 ? int(nbytes / 4096) : 1024
        partitions = partitions < least ? least : partitions
        masters = int(nbytes / 48 / 2 ^ 30) + 1
        key = argument(length("perhaps:{" name "/}:" "ID of 12 hex") + digits(partitions))
        printf "%.1f GB, %d partitions on %d masters; ", nbytes / 1e9, partitions, masters
    }
    !($1 in plan) { plan[$1] = $2 }
    END {
        set = plan["line_bits"] * plan["bands"]; reply = 3 + length(set "") + 4 * set
        printf "blocked: %.2f bits a key, %d set; ", plan["bits_per_key"], set
        spread(plan["body_bytes"])
        first = digits(plan["body_bytes"] / partitions)
        bit = argument(3) + argument(2) + argument(first + 0.9) + argument(1)
        printf "add %.0f, %d; ", command(2 + 4 * set, argument(8) + key + set * bit),
            reply
        printf "ask %.0f, %d\n",
            command(4, argument(8) + key + 2 * argument(first)), argument(64 * plan["bands"])
        k = -log(rate) / log(2); k = k > int(k) ? int(k) + 1 : k
        printf "classic: %.2f bits a key, %d set; ", k / log(2), k
        spread(k / log(2) * plan["capacity"] / 8)
        bit = argument(6) + key + argument(8)
        printf "add %.0f, %d; ", k * command(4, bit + argument(1)), 4 * k
        printf "ask %.0f, %d\n", k * command(3, bit), 4 * k
        printf "%.1f of its masters a key; ", masters * (1 - (1 - 1 / masters) ^ k)
        printf "512 MiB hold %.0f million keys\n", 2 ^ 32 * log(2) ^ 2 / -log(rate) / 1e6
    }'
