/* hostile.c - filter files as an enemy makes them: see hostile.h.  Fuzzers use it, too, so it
 * checks with must(), which aborts, and not with expect() of the tests. */
#include "hostile.h"
#include <perhaps_sets.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "filter/filter.h"

/* ---- Checksums -------------------------------------------------------------------------- */

/* The header is whole blocks of BODY_OFFSET bytes. */
size_t header_size(const uint8_t *file, size_t nbytes)
{
    uint32_t size;
    memcpy(&size, file + AT_HEADER_NBYTES, sizeof size);
    return size % BODY_OFFSET || size == 0 || size > nbytes ? BODY_OFFSET : size;
}

void reseal_header(uint8_t *file, size_t nbytes)
{
    put64(file + AT_CHECKSUM, 0);
    put64(file + AT_CHECKSUM, XXH3_64bits(file, header_size(file, nbytes)));
}

void reseal(uint8_t *file, size_t nbytes)
{
    if (nbytes < BODY_OFFSET)
        return;
    reseal_header(file, nbytes);
    /* The table of checksums stands behind the bodies.  If the header puts it outside the file,
     * there is nothing to seal. */
    uint64_t from = header_size(file, nbytes), end = get64(file + AT_TABLE_OFFSET);
    if (end < from || end > nbytes)
        return;
    uint64_t left = end - from;
    uint64_t pages = left / PERHAPS_PAGE_NBYTES + (left % PERHAPS_PAGE_NBYTES != 0);
    if ((pages + 1) * 8 > nbytes - end)
        return;
    uint8_t *at = file + from, *table = file + end;
    for (uint64_t page = 0; page < pages; page++) {
        uint64_t size = left < PERHAPS_PAGE_NBYTES ? left : PERHAPS_PAGE_NBYTES;
        put64(table + page * 8, XXH3_64bits_withSeed(at, size, page));
        at += size;
        left -= size;
    }
    put64(table + pages * 8, XXH3_64bits_withSeed(table, pages * 8, pages));
}

/* ---- Opening ---------------------------------------------------------------------------- */

int open_bytes(const void *bytes, size_t nbytes, const struct perhaps_open_options *options,
               perhaps_filter **filter)
{
    char path[64];
    int fd = memfd_create("filter", MFD_CLOEXEC);
    must(fd >= 0);
    for (size_t done = 0; done < nbytes;) {
        ssize_t n = write(fd, (const uint8_t *)bytes + done, nbytes - done);
        must(n > 0);
        done += (size_t)n;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int error = perhaps_open(path, options, filter);
    must(error ? !*filter : *filter != NULL);
    close(fd);
    return error;
}

/* ---- Using ------------------------------------------------------------------------------ */

enum { KEYS = 40, KEY_NBYTES = PERHAPS_HASH_NBYTES };

/* Returns keys of 16 bytes, which filters of every hash accept. */
static struct perhaps_keys invent_keys(uint64_t seed, uint8_t bytes[KEYS * KEY_NBYTES])
{
    for (uint64_t i = 0; i < KEYS * KEY_NBYTES / 8; i++)
        put64(bytes + i * 8, XXH3_64bits_withSeed(&i, sizeof i, seed));
    return perhaps_keys_packed(bytes, KEY_NBYTES, KEYS);
}

/* Calls what only reads, and aborts if a rate is no number from 0 to 1. */
static void inspect(const perhaps_filter *f)
{
    struct perhaps_stats stats;
    struct perhaps_verdict verdict;
    perhaps_stats_of(f, &stats);
    must(!isnan(stats.load) && !isnan(stats.fpr_now) && !isnan(stats.plan.fpr_predicted));
    must(stats.fpr_now >= 0 && stats.fpr_now <= 1);
    /* of a chain, each layer that these keys would take is planned, which takes seconds */
    for (unsigned bits = 0; bits <= (f->kind->composite ? 0 : 64); bits += 32) {
        double fpr = perhaps_predict_fpr(f, bits < 64 ? UINT64_C(1) << bits : UINT64_MAX);
        must(fpr >= 0 && fpr <= 1);
    }
    int error = perhaps_verify(f, &verdict);
    must((error == PERHAPS_ERR_UNSUPPORTED) == !stats.mapped);
}

/* Adds keys until the first error, and aborts if one that was added is not found. */
static void add_some(perhaps_filter *f, const struct perhaps_keys *keys)
{
    size_t done;
    bool present[KEYS];
    perhaps_add_many(f, keys, &done);
    perhaps_contains_many(f, keys, present);
    if (f->kind->forgets) /* a window may have forgotten some of the keys */
        return;
    for (size_t i = 0; i < done; i++) {
        const uint8_t *key = (const uint8_t *)keys->packed + i * KEY_NBYTES;
        uint64_t count;
        must(present[i] && perhaps_contains(f, key, KEY_NBYTES));
        must(perhaps_count(f, key, KEY_NBYTES, &count) || count > 0);
    }
}

/* Merges, and aborts if a failed merge has changed the filter. */
static void merge_some(perhaps_filter *f, const perhaps_filter *other)
{
    perhaps_filter *before;
    must(!perhaps_clone(f, &before));
    must(!perhaps_merge(f, other) || perhaps_equal(f, before));
    perhaps_free(before);
}

/* Adds integers of the range of a bitmap, and aborts unless they are there until they are
 * removed again. */
static void exercise_integers(perhaps_filter *f, uint64_t seed)
{
    const uint64_t low = f->geometry.field[0], range = f->geometry.field[1] - low + 1;
    struct perhaps_hashed hashed[KEYS] = { 0 };
    struct perhaps_keys keys = perhaps_keys_hashed(hashed, KEYS);
    size_t removed;
    for (uint64_t i = 0; i < KEYS; i++)
        put64(hashed[i].bytes, low + XXH3_64bits_withSeed(&i, sizeof i, seed) % range);
    must(!perhaps_add_many(f, &keys, NULL));
    must(perhaps_contains_many(f, &keys, NULL) == KEYS);
    must(!perhaps_remove_many(f, &keys, NULL, &removed, NULL) && removed > 0);
    must(perhaps_contains_many(f, &keys, NULL) == 0);
}

void exercise(const perhaps_filter *filter, uint64_t seed)
{
    uint8_t bytes[KEYS * KEY_NBYTES];
    struct perhaps_keys keys = invent_keys(seed, bytes);
    bool answer[KEYS];
    size_t removed;
    struct perhaps_verdict verdict;
    perhaps_filter *f;
    inspect(filter);
    perhaps_contains_many(filter, &keys, answer);
    const int error = perhaps_clone(filter, &f);
    if (error == PERHAPS_ERR_DAMAGED) { /* no copy makes damage look sound */
        must(perhaps_verify(filter, &verdict) == PERHAPS_ERR_DAMAGED);
        return;
    }
    must(!error && perhaps_equal(f, filter));
    add_some(f, &keys);
    perhaps_add_unless_present_many(f, &keys, answer, NULL);
    merge_some(f, filter);
    if (!perhaps_remove_many(f, &keys, answer, &removed, NULL))
        must(removed <= KEYS);
    inspect(f);
    must(!perhaps_clear(f));
    merge_some(f, filter);
    must(!perhaps_clear(f));
    add_some(f, &keys);
    if (f->kind->exact)
        exercise_integers(f, seed);
    inspect(f);
    perhaps_free(f);
}
