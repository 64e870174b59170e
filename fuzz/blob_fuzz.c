/* blob_fuzz.c - fuzzes filters as values, as databases and other languages have them: any bytes
 * in memory are refused, or give a filter that is safe to use, and that is the same after it
 * was written and read again.
 *
 * The bytes are taken as they are, and once more with their checksums corrected. */
#include <stdlib.h>
#include <string.h>

#include "support/hostile.h"
#include <perhaps_sets.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { NBYTES_MOST = 1 << 18 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Returns a copy in memory of just that size, so that a sanitizer sees a read behind it; or at
 * an aligned address. */
static uint8_t *copy_of(const uint8_t *bytes, size_t nbytes, bool aligned)
{
    const size_t room = (nbytes + PERHAPS_ALIGNMENT) / PERHAPS_ALIGNMENT * PERHAPS_ALIGNMENT;
    uint8_t *copy = aligned ? aligned_alloc(PERHAPS_ALIGNMENT, room) : malloc(nbytes + !nbytes);
    check(copy);
    if (nbytes)
        memcpy(copy, bytes, nbytes);
    return copy;
}

/* Returns the bytes of the filter, to be freed. */
static uint8_t *write_out(const perhaps_filter *filter, size_t *nbytes)
{
    *nbytes = (size_t)perhaps_write_nbytes(filter);
    uint8_t *bytes = malloc(*nbytes);
    check(bytes && !perhaps_to_bytes(filter, bytes, *nbytes));
    check(perhaps_to_bytes(filter, bytes, *nbytes - 1) == PERHAPS_ERR_ARGUMENT);
    return bytes;
}

/* A database keeps what the library has written of a filter, and takes that for the filter. */
static void check_again(const perhaps_filter *filter)
{
    size_t nbytes, nagain;
    perhaps_filter *again;
    uint8_t *bytes = write_out(filter, &nbytes);
    check(!perhaps_from_bytes(bytes, nbytes, NULL, &again));
    check(perhaps_equal(filter, again));
    uint8_t *bytes_again = write_out(again, &nagain);
    check(nagain == nbytes && !memcmp(bytes, bytes_again, nbytes));
    free(bytes_again);
    free(bytes);
    perhaps_free(again);
}

/* Unites the filter with itself: what is in it is in the union. */
static void check_union(const perhaps_filter *filter)
{
    const uint8_t key[] = "0123456789abcdef";
    perhaps_filter *both;
    check(!perhaps_clone(filter, &both));
    bool was_in = perhaps_contains(filter, key, PERHAPS_HASH_NBYTES);
    bool is_added = !perhaps_add(both, key, PERHAPS_HASH_NBYTES);
    int error = perhaps_merge(both, filter);
    check(!is_added || perhaps_contains(both, key, PERHAPS_HASH_NBYTES));
    check(error || !was_in || perhaps_contains(both, key, PERHAPS_HASH_NBYTES));
    perhaps_free(both);
}

/* Damage does not get checksums as if it were sound. */
static void check_damaged(const perhaps_filter *filter)
{
    const size_t nbytes = (size_t)perhaps_write_nbytes(filter);
    perhaps_filter *copy;
    uint8_t *bytes = malloc(nbytes);
    check(bytes && perhaps_to_bytes(filter, bytes, nbytes) == PERHAPS_ERR_DAMAGED);
    check(perhaps_clone(filter, &copy) == PERHAPS_ERR_DAMAGED && !copy);
    free(bytes);
}

/* Takes the bytes in one of the modes.  A filter that lies in them leaves them as they were. */
static void take(const uint8_t *file, size_t nbytes, enum perhaps_mode mode)
{
    const bool in_place = mode == PERHAPS_MODE_READ;
    const struct perhaps_open_options options = { .mode = mode };
    uint8_t *bytes = copy_of(file, nbytes, in_place);
    struct perhaps_verdict verdict;
    perhaps_filter *filter;
    int error = perhaps_from_bytes(bytes, nbytes, &options, &filter);
    check(!error == !!filter);
    if (filter) {
        const bool damaged =
            in_place && perhaps_verify(filter, &verdict) == PERHAPS_ERR_DAMAGED;
        exercise(filter, nbytes);
        if (damaged) {
            check_damaged(filter);
        } else {
            check_union(filter);
            check_again(filter);
        }
        check(!memcmp(bytes, file, nbytes));
    }
    perhaps_free(filter);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    if (nbytes > NBYTES_MOST)
        return 0;
    uint8_t *file = copy_of(data, nbytes, false);
    for (int sealed = 0; sealed < 2; sealed++) {
        take(file, nbytes, PERHAPS_MODE_LOAD);
        take(file, nbytes, PERHAPS_MODE_READ);
        if (nbytes < BODY_OFFSET && !is_small_file(file, nbytes))
            break;
        reseal(file, nbytes);
    }
    free(file);
    return 0;
}
