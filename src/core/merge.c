/* merge.c - compares two filters, by their bytes or by a digest, and makes the union or the
 * intersection of two. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../base/bytes.h"
#include "../filter/counters.h"
#include <perhaps.h>

/* Returns whether a key has its bits or fingerprint at the same place in both filters; of
 * composites, in the parts that both have. */
static bool same_shape(const perhaps_filter *a, const perhaps_filter *b)
{
    return !perhaps_difference(a, b, NULL);
}

/* Gives body and parts of 'from' to 'f': by exchanging them, or, if the body of 'f' is mapped
 * from a file and so must stay where it is, by copying.  (Composites cannot be written in
 * place, so those have no parts.) */
static void take_body(perhaps_filter *f, perhaps_filter *from)
{
    filter_exchange_parts(f, from);
    if (f->mapping->file) {
        memcpy(f->body.bytes, from->body.bytes, f->body.geometry.body_nbytes);
        return;
    }
    uint8_t *old = f->body.bytes;
    f->body.bytes = from->body.bytes;
    from->body.bytes = old;
}

/* The union of two filters may exceed the fpr although each of them keeps it.  So the fpr of
 * the union is computed from its actual bits (filter_unite()) before 'f' takes it. */
int perhaps_merge(perhaps_filter *f, const perhaps_filter *other)
{
    if (f->read_only)
        return PERHAPS_ERR_READ_ONLY;
    if (f == other)
        return PERHAPS_ERR_ARGUMENT;
    if (!f->kind->merge || f->changer->locked) /* a journal has keys, not whole filters */
        return PERHAPS_ERR_UNSUPPORTED;
    if (!same_shape(f, other))
        return PERHAPS_ERR_MISMATCH;
    perhaps_filter *both; /* a copy, so that 'f' stays unchanged on failure */
    int error = filter_check(other);
    if (!error)
        error = perhaps_clone(f, &both);
    if (error)
        return error;
    error = filter_unite(both, other);
    if (!error) {
        take_body(f, both);
        f->counters->keys = both->counters->keys;
        f->keys_estimated = both->keys_estimated;
        filter_reset_room(f);
    }
    perhaps_free(both);
    return error;
}

/* All that is left in 'f' was in it before, and in 'other', too.  So a key that gets the answer
 * "perhaps" now got it from both filters, and the fpr is at most the smaller one of the two.
 * Nothing can fail on the way then, so no copy is needed. */
int perhaps_intersect(perhaps_filter *f, const perhaps_filter *other)
{
    if (f->read_only)
        return PERHAPS_ERR_READ_ONLY;
    if (f == other)
        return PERHAPS_ERR_ARGUMENT;
    if (!f->kind->intersect || f->changer->locked)
        return PERHAPS_ERR_UNSUPPORTED;
    if (!same_shape(f, other))
        return PERHAPS_ERR_MISMATCH;
    int error = filter_check(other);
    if (error)
        return error;
    filter_settle(f);
    filter_settle(other);
    f->kind->intersect(f, other);
    filter_become_estimated(f);
    return 0;
}

/* Compares two bodies of the same length, whose pieces may have different lengths. */
static bool same_bodies(const perhaps_filter *a, const perhaps_filter *b)
{
    struct body_cursor a_cursor = { 0 }, b_cursor = { 0 };
    const uint8_t *piece = NULL, *other = NULL;
    for (uint64_t n = 0, m = 0, both;; n -= both, m -= both, piece += both, other += both) {
        if (!n)
            piece = filter_next_piece(a, &a_cursor, &n);
        if (!m)
            other = filter_next_piece(b, &b_cursor, &m);
        if (!piece || !other)
            return piece == other;
        both = n < m ? n : m;
        if (memcmp(piece, other, both) != 0)
            return false;
    }
}

bool perhaps_equal(const perhaps_filter *a, const perhaps_filter *b)
{
    if (!same_shape(a, b) || a->parts->count != b->parts->count || !same_bodies(a, b))
        return false;
    for (size_t i = 0; i < a->parts->count; i++)
        if (!perhaps_equal(a->parts->part[i], b->parts->part[i]))
            return false;
    return true;
}

/* Digests what same_shape() compares, and the bytes of the body. */
static void digest_filter(XXH3_state_t *state, const perhaps_filter *f)
{
    const struct geometry g = filter_geometry(f);
    const uint64_t id = f->kind->id | (uint64_t)f->is_set << 32;
    const uint64_t shape[] = {
        id,           f->hasher.id, f->hasher.seed, hasher_check(&f->hasher), f->parts->count,
        g.body_nbytes
    };
    enum { SHAPE = sizeof shape / sizeof *shape };
    uint8_t bytes[sizeof shape + sizeof g.field];
    for (size_t i = 0; i < SHAPE; i++)
        store64(bytes + i * sizeof *shape, shape[i]);
    for (size_t i = 0; i < PERHAPS_FIELDS_MAX; i++)
        store64(bytes + (SHAPE + i) * sizeof *shape, g.field[i]);
    XXH3_128bits_update(state, bytes, sizeof bytes);
    struct body_cursor cursor = { 0 };
    const uint8_t *piece;
    for (uint64_t n; (piece = filter_next_piece(f, &cursor, &n));)
        XXH3_128bits_update(state, piece, (size_t)n);
    for (size_t i = 0; i < f->parts->count; i++)
        digest_filter(state, f->parts->part[i]);
}

void perhaps_digest(const perhaps_filter *f, uint8_t digest[16])
{
    XXH3_state_t state;
    XXH128_canonical_t canonical;
    XXH3_128bits_reset(&state);
    digest_filter(&state, f);
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
    memcpy(digest, canonical.digest, sizeof canonical.digest);
}
