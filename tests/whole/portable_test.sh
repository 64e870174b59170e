#!/bin/bash
# portable_test.sh SOURCE COMPILER... - proves that src/system alone knows the system: no other file
# of src/ includes a header that is not C's, or uses a function that C does not have; and that the
# library without a system and without libsodium (PERHAPS_SYSTEM_NONE, PERHAPS_WITHOUT_SODIUM) is
# compiled without a warning, and does what portable.c asks of it.
set -eu
source=$1
shift
cc="$*"
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
cd "$source"

fail() {
    echo "portable: $*"
    exit 1
}

known='assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign
stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string threads time wchar
xxhash immintrin arm_neon wasm_simd128 perhaps perhaps_build perhaps_cluster perhaps_embed
perhaps_fast perhaps_file perhaps_layout perhaps_live perhaps_plan perhaps_remote perhaps_sets perhaps_window
sodium/utils sodium/crypto_shorthash_siphash24'
grep -rnoE '#include <[^>]+>' src --include='*.[ch]' | grep -v '^src/system/' |
    while IFS=: read -r file line include; do
        name=${include#*<}
        name=${name%.h>}
        grep -qw -- "$name" <<<"$known" || fail "$file:$line: $include: ask src/system"
    done

find src -name '*.c' | xargs -P "$(nproc)" -I FILE sh -c '
    objects=$1 cc=$2
    mkdir -p "$objects/$(dirname FILE)"
    $cc -std=c11 -O0 -Wall -Wextra -Werror -DPERHAPS_SYSTEM_NONE -DPERHAPS_WITHOUT_SODIUM -Iinclude \
        -c FILE -o "$objects/FILE.o"' sh "$objects" "$cc" || fail "it is not compiled"

# What the compiler calls for C itself begins with two underscores.
c='abort calloc ceil copysign cos erfc exp exp2 expm1 fabs floor fma fmax fmin fmod free frexp isinf isnan
ldexp lgamma log log10 log1p log2 lround malloc memchr memcmp memcpy memmove memset nearbyint nextafter
pow qsort realloc rint round sin snprintf sqrt strchr strcmp strcspn strlen strncmp strpbrk strrchr
strspn strstr strtod strtoull tgamma trunc vsnprintf'
used=$(find "$objects/src" -name '*.o' -print0 | xargs -0 nm -P |
    awk '$2 == "U" { used[$1] } $2 ~ /^[TDBRVWC]$/ { defined[$1] }
         END { for (name in used) if (!(name in defined)) print name }' | sort)
for name in $used; do
    case $name in __* | _GLOBAL_OFFSET_TABLE_) continue ;; esac
    grep -qw -- "$name" <<<"$c" || fail "src/ uses $name(), which C does not have"
done
count=$(wc -w <<<"$used")
[ "$count" -gt 10 ] || fail "only $count functions of C were found"

$cc -std=c11 -O0 -Wall -Wextra -Werror -Iinclude tests/whole/portable.c $(find "$objects/src" -name '*.o') -lm \
    -o "$objects/portable" || fail "it is not linked"
"$objects/portable" || fail "the library without a system fails"
echo "portable: one room knows the system; without it the library works"
