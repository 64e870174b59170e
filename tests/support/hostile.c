/* hostile.c - filter files as an enemy makes them: see hostile.h.  Fuzzers use it, too, so it
 * checks with must(), which aborts, and not with expect() of the tests. */
#include "hostile.h"
#include <perhaps.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef _WIN32
#include <sys/mman.h>
#include <unistd.h>
#endif

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "filter/filter.h"
#include "kinds/kinds.h"

/* ---- Checksums -------------------------------------------------------------------------- */

/* The header of a small file is whole blocks of 64 bytes. */
static size_t small_header_size(const uint8_t *file, size_t nbytes)
{
    const size_t size = (size_t)get_number(file + SMALL_AT_HEADER_NBYTES, 2);
    return size % SMALL_UNIT_NBYTES || size == 0 || size > nbytes ? SMALL_UNIT_NBYTES : size;
}

/* Other headers are whole blocks of BODY_OFFSET bytes. */
size_t header_size(const uint8_t *file, size_t nbytes)
{
    uint32_t size;
    if (is_small_file(file, nbytes))
        return small_header_size(file, nbytes);
    memcpy(&size, file + AT_HEADER_NBYTES, sizeof size);
    return size % BODY_OFFSET || size == 0 || size > nbytes ? BODY_OFFSET : size;
}

void reseal_header(uint8_t *file, size_t nbytes)
{
    put64(file + AT_CHECKSUM, 0);
    put64(file + AT_CHECKSUM, XXH3_64bits(file, header_size(file, nbytes)));
}

bool is_small_file(const uint8_t *file, size_t nbytes)
{
    return nbytes >= SMALL_AT_FIELDS && get64(file + AT_FEATURES) & FEATURE_SMALL_FILE &&
           small_header_size(file, nbytes) <= nbytes;
}

/* A small file has one checksum: of the first 24 bytes, whose seed is that of the rest of the
 * header, whose seed is that of all behind it; or 0 while it is written in place. */
static void reseal_small(uint8_t *file, size_t nbytes)
{
    const size_t size = small_header_size(file, nbytes);
    const bool live = file[AT_FEATURES] & 1;
    uint64_t sum = live ? 0 : XXH3_64bits_withSeed(file + size, nbytes - size, 0);
    sum = XXH3_64bits_withSeed(file + SMALL_AT_FIELDS, size - SMALL_AT_FIELDS, sum);
    put64(file + SMALL_AT_CHECKSUM, XXH3_64bits_withSeed(file, SMALL_AT_CHECKSUM, sum));
}

void reseal(uint8_t *file, size_t nbytes)
{
    if (is_small_file(file, nbytes)) {
        reseal_small(file, nbytes);
        return;
    }
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

/* ---- Packed headers ---------------------------------------------------------------------- */

/* A packed header while it is read. */
struct unpacking {
    const uint8_t *at, *end;
    struct numbers *numbers;
    bool whole;
};

static uint64_t take_number(struct unpacking *u, bool raw, const char *what)
{
    struct numbers *n = u->numbers;
    uint64_t value = 0;
    u->whole = u->whole && n->count < NUMBERS_MAX && (!raw || u->end - u->at >= 8);
    if (u->whole && raw) {
        value = get64(u->at);
        u->at += 8;
    }
    for (unsigned shift = 0; u->whole && !raw; shift += 7) {
        u->whole = u->at < u->end && shift < 64;
        if (u->whole)
            value |= (uint64_t)(*u->at & 127) << shift;
        if (!u->whole || *u->at++ < 128)
            break;
    }
    if (!u->whole)
        return 0;
    n->value[n->count] = value;
    n->raw[n->count] = raw;
    n->what[n->count++] = what;
    return value;
}

/* Reads a section, and adds the size of its body. */
static void take_section(struct unpacking *u, bool first)
{
    const struct filter_kind *kind = kind_by_id((uint32_t)take_number(u, false, "kind"));
    struct geometry g = { 0 };
    u->whole = u->whole && kind;
    if (!first)
        take_number(u, false, "parent");
    g.capacity = take_number(u, false, "capacity");
    const uint64_t fpr = take_number(u, true, "fpr");
    memcpy(&g.fpr, &fpr, sizeof fpr);
    for (unsigned i = 0; u->whole && i < kind_packed_count(kind); i++)
        g.field[i] = take_number(u, false, "field");
    u->whole = u->whole && !kind_set_geometry(kind, &g) && g.body_nbytes < 1 << 16;
    u->numbers->body_nbytes += u->whole ? g.body_nbytes : 0;
}

bool read_numbers(const uint8_t *file, size_t nbytes, struct numbers *numbers)
{
    if (!is_small_file(file, nbytes))
        return false;
    struct unpacking u = { file + SMALL_AT_FIELDS, file + header_size(file, nbytes), numbers,
                           true };
    numbers->count = numbers->body_nbytes = 0;
    numbers->sections = take_number(&u, false, "sections");
    const uint64_t hash = take_number(&u, false, "hash");
    if (hash == PERHAPS_HASH_XXH3 || hash == PERHAPS_HASH_XXH3_64 ||
        hash == PERHAPS_HASH_GROUPED)
        take_number(&u, true, "seed");
    if (hash == PERHAPS_HASH_SIP || hash == PERHAPS_HASH_CUSTOM)
        take_number(&u, true, "check");
    const uint64_t note = take_number(&u, false, "note");
    u.whole = u.whole && note <= PERHAPS_NOTE_MAX && numbers->sections < NUMBERS_MAX;
    for (uint64_t i = 0; i < note && u.whole; i++) /* letters are numbers below 128 */
        take_number(&u, false, "letter");
    for (uint64_t i = 0; i < numbers->sections && u.whole; i++)
        take_section(&u, i == 0);
    return u.whole && numbers->sections && numbers->body_nbytes < 1 << 16;
}

size_t write_numbers(const struct numbers *n, const uint8_t *old, size_t old_nbytes,
                     uint8_t file[65536])
{
    const size_t old_head = header_size(old, old_nbytes), rest = old_nbytes - old_head;
    uint8_t *at = file + SMALL_AT_FIELDS;
    memset(file, 0, 65536);
    memcpy(file, old, SMALL_AT_FIELDS);
    for (size_t i = 0; i < n->count; i++) {
        uint64_t value = n->value[i];
        if (n->raw[i]) {
            put64(at, value);
            at += 8;
            continue;
        }
        for (; value > 127; value >>= 7)
            *at++ = (uint8_t)(value | 128);
        *at++ = (uint8_t)value;
    }
    const size_t head = ((size_t)(at - file) + 63) / 64 * 64;
    const uint64_t behind = n->body_nbytes + COUNTERS_NBYTES * n->sections;
    if (head + behind >= 65536)
        return 0;
    memcpy(file + head, old + old_head, rest < behind ? rest : behind);
    put_number(file + SMALL_AT_HEADER_NBYTES, head, 2);
    put_number(file + SMALL_AT_FILE_NBYTES, head + behind, 2);
    reseal(file, head + (size_t)behind);
    return head + (size_t)behind;
}

/* ---- Opening ---------------------------------------------------------------------------- */

#ifndef _WIN32 /* where windows.c has it */

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

#endif

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
    const bool live = f->mapping->file && f->mapping->file[AT_FEATURES] & 1;
    must((error == PERHAPS_ERR_UNSUPPORTED) == (!stats.mapped || live));
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
    const uint64_t low = f->body.geometry.field[0], range = f->body.geometry.field[1] - low + 1;
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
