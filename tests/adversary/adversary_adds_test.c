/* adversary_adds_test.c - proves that keys which somebody chose fill a filter with a secret no
 * faster than random keys do, and that they do so where the seed of the hash is known.
 *
 * The enemy has a filter of his own, of the same options, and sees every byte of it.  From a
 * few random candidates he takes the one that does most harm there:
 * - spread: it sets the most bits that are not set yet (kinds of bits and counters);
 * - crowd: it lies in the first eighth of the body, so that lines and buckets there get full.
 *
 * What he has chosen then goes to the victim's filter.
 *
 * The victim's fill is compared with that of FILLS filters which got as many random keys: the
 * number of set bits, the fpr, the number of keys that were accepted, and the memory.  With the
 * usual seed each is within 3 standard deviations of their mean.  With other seeds it may
 * differ by 9: a normal variable does that with a probability below 10^-11 if its deviation was
 * estimated from 64 others (Student's distribution), and there are 80 of them. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "filter/filter.h"
#include "kinds/kinds.h"

enum { ADDED = 16 * 1000, FILLS = 64, CANDIDATES = 8, CROWDED_SHARE = 8 };
static const double asked_fpr = 0.01;

/* ---- Fill -------------------------------------------------------------------------------- */

enum { MEASURES = 4 };
static const char *const measure_name[MEASURES] = { "bits set", "fpr", "keys", "bytes" };

struct fills {
    double of[MEASURES];
};

static uint64_t bits_set(const perhaps_filter *f)
{
    struct body_cursor cursor = { 0 };
    const uint8_t *piece;
    uint64_t set = 0;
    for (uint64_t n; (piece = filter_next_piece(f, &cursor, &n));)
        for (uint64_t i = 0; i < n; i++)
            set += (uint64_t)__builtin_popcount(piece[i]);
    for (size_t i = 0; i < f->parts->count; i++)
        set += bits_set(f->parts->part[i]);
    return set;
}

static struct fills fills_of(const perhaps_filter *f)
{
    struct perhaps_stats stats = stats_of(f);
    return (struct fills){ { (double)bits_set(f), stats.fpr_now, (double)stats.keys,
                             (double)stats.memory_nbytes } };
}

/* Adds keys one by one, so that a refused key does not keep out the next. */
static struct fills fills_with(const struct perhaps_options *options,
                               const struct perhaps_keys *keys)
{
    scoped_filter *f = make_with(options);
    for (size_t i = 0; i < keys->count; i++)
        perhaps_add(f, key_at(keys, i), keys->key_nbytes);
    return fills_of(f);
}

/* The mean of the fills by random keys, and their deviations. */
struct usual {
    struct fills mean, sd;
};

/* A deviation below a thousandth of the mean counts as that: a fill that hardly depends on
 * chance may differ by so much. */
static struct usual usual_fills(const struct perhaps_options *options, struct rng *rng)
{
    struct fills fill[FILLS];
    struct usual usual = { 0 };
    for (size_t i = 0; i < FILLS; i++) {
        scoped_keys keys = make_keys(RANDOM_KEYS, rng_next(rng), 0, ADDED);
        fill[i] = fills_with(options, &keys);
    }
    for (unsigned m = 0; m < MEASURES; m++) {
        double squares = 0;
        for (size_t i = 0; i < FILLS; i++)
            usual.mean.of[m] += fill[i].of[m] / (double)FILLS;
        for (size_t i = 0; i < FILLS; i++)
            squares += pow(fill[i].of[m] - usual.mean.of[m], 2);
        usual.sd.of[m] = fmax(sqrt(squares / (FILLS - 1)), usual.mean.of[m] / 1000);
    }
    return usual;
}

/* ---- The enemy --------------------------------------------------------------------------- */

struct enemy {
    perhaps_filter *own;
    perhaps_filter *empty; /* like the part of it that takes keys */
    bool has_cells;        /* counters instead of bits */
};

/* Returns the part of a filter to which new keys go; they are the same for all kinds. */
static perhaps_filter *newest(perhaps_filter *f)
{
    return f->parts->count ? f->parts->part[f->parts->count - 1] : f;
}

static struct reads reads_of(const perhaps_filter *f, const struct perhaps_hashed *hashed)
{
    struct keyhash hash;
    struct reads reads = { 0 };
    memcpy(&hash, hashed->bytes, sizeof hash);
    f->kind->reads(f, hash, &reads);
    return reads;
}

/* Returns a one for each cell of a byte that is in use: a bit, or a counter of four bits. */
static unsigned used_cells(unsigned byte, bool has_cells)
{
    unsigned pairs = byte | byte >> 1;
    return has_cells ? (pairs | pairs >> 2) & 0x11 : byte;
}

/* Returns how many cells of his filter would be in use that are not: he adds the key to an
 * empty filter and compares the two. */
static unsigned new_cells(struct enemy *e, const struct perhaps_hashed *hashed)
{
    const struct perhaps_keys one = perhaps_keys_hashed(hashed, 1);
    perhaps_clear(e->empty);
    perhaps_add_many(e->empty, &one, NULL);
    struct reads key = reads_of(e->empty, hashed), own = reads_of(newest(e->own), hashed);
    unsigned gain = 0;
    for (size_t i = 0; i < key.count; i++)
        for (size_t at = 0; at < key.nbytes[i]; at++)
            gain += (unsigned)__builtin_popcount(
                used_cells(reads_range(e->empty, &key, i)[at], e->has_cells) &
                ~used_cells(reads_range(newest(e->own), &own, i)[at], e->has_cells) & 0xff);
    return gain;
}

/* Returns how many of the ranges in which the key lies, or would lie in an empty filter, are in
 * the first part of the body. */
static unsigned crowding(struct enemy *e, const struct perhaps_hashed *hashed)
{
    struct reads key = reads_of(e->empty, hashed);
    unsigned inside = 0;
    for (size_t i = 0; i < key.count; i++)
        inside += key.at[i] < e->empty->body.geometry.body_nbytes / CROWDED_SHARE;
    return inside;
}

typedef unsigned harm_function(struct enemy *e, const struct perhaps_hashed *hashed);

/* Returns the keys that he has chosen, each from CANDIDATES. */
static struct perhaps_keys choose_keys(const struct perhaps_options *options,
                                       harm_function *harm, struct rng *rng)
{
    struct perhaps_keys chosen = make_keys(RANDOM_KEYS, rng_next(rng), 0, ADDED);
    scoped_filter *own = make_with(options), *empty = clone_of(newest(own));
    struct enemy e = { own, empty, !strcmp(empty->kind->about.name, "counting") };
    for (size_t i = 0; i < chosen.count; i++) {
        struct perhaps_hashed hashed[CANDIDATES];
        scoped_keys candidates = make_keys(RANDOM_KEYS, rng_next(rng), 0, CANDIDATES);
        size_t best = 0;
        unsigned most = 0;
        expect_success(perhaps_hash_many(own, &candidates, hashed));
        for (size_t c = 0; c < CANDIDATES; c++) {
            unsigned here = harm(&e, &hashed[c]);
            best = here > most ? c : best;
            most = here > most ? here : most;
        }
        perhaps_add(own, key_at(&candidates, best), candidates.key_nbytes);
        memcpy((uint8_t *)chosen.packed + i * chosen.key_nbytes, key_at(&candidates, best),
               chosen.key_nbytes);
    }
    return chosen;
}

/* ---- Tests ------------------------------------------------------------------------------- */

static const struct attack {
    const char *name;
    harm_function *harm;
} attacks[] = { { "spread", new_cells }, { "crowd", crowding } };
enum { ATTACKS = sizeof attacks / sizeof *attacks };

/* Only kinds of bits or counters, which fold, can be spread over; composites have parts of
 * these. */
static bool applies(const struct perhaps_kind *kind, const struct attack *attack)
{
    return attack->harm != new_cells || kind_by_name(kind->name)->folds || has_parts(kind);
}

/* Returns by how many deviations the fill differs most from the usual one. */
static double farthest(const struct fills *fills, const struct usual *usual)
{
    double most = 0;
    for (unsigned m = 0; m < MEASURES; m++) {
        double away = (fills->of[m] - usual->mean.of[m]) / usual->sd.of[m];
        print_message("  %s, %s: %.6g, usual %.6g +- %.2g: %+.2f deviations\n", scene_text(),
                      measure_name[m], fills->of[m], usual->mean.of[m], usual->sd.of[m], away);
        most = fmax(most, fabs(away));
    }
    return most;
}

static double deviations_allowed(void)
{
    return getenv("PERHAPS_TEST_SEED") ? 9 : 3;
}

/* The enemy's own filter has a secret of his own. */
TEST_EACH(test_secret, any_kind)
{
    struct rng rng = rng_for("secret");
    struct perhaps_options options = options_for(kind, ADDED, asked_fpr, 0), his = options;
    uint8_t secret[16];
    for (size_t i = 0; i < sizeof secret; i++)
        secret[i] = (uint8_t)rng_next(&rng);
    options.hashing = (struct perhaps_hashing){ .hash = PERHAPS_HASH_SIP, .secret = secret };
    his.hashing = (struct perhaps_hashing){ .hash = PERHAPS_HASH_SIP };
    struct usual usual = usual_fills(&options, &rng);
    for (size_t a = 0; a < ATTACKS; a++) {
        if (!applies(kind, &attacks[a]))
            continue;
        scoped_keys keys = choose_keys(&his, attacks[a].harm, &rng);
        struct fills fills = fills_with(&options, &keys);
        scene("%s, %s, secret", kind->name, attacks[a].name);
        expect(farthest(&fills, &usual) <= deviations_allowed());
    }
}

/* The same enemy, where both filters have the same seed. */
TEST_EACH(test_known_seed, any_kind)
{
    struct rng rng = rng_for("known seed");
    struct perhaps_options options = options_for(kind, ADDED, asked_fpr, test_seed());
    struct usual usual = usual_fills(&options, &rng);
    for (size_t a = 0; a < ATTACKS; a++) {
        if (!applies(kind, &attacks[a]))
            continue;
        scoped_keys keys = choose_keys(&options, attacks[a].harm, &rng);
        struct fills fills = fills_with(&options, &keys);
        scene("%s, %s, known seed", kind->name, attacks[a].name);
        expect(farthest(&fills, &usual) >= 20);
    }
}
