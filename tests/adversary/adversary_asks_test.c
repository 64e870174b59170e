/* adversary_asks_test.c - proves that questions, however they are chosen, find no more false
 * positives than chance allows if the hash has a secret.
 *
 * The enemy knows some keys that were added.  He keeps every false positive that he finds, and
 * asks new keys that are like those: with a bit turned over, a number added, parts of several
 * put together.  He goes on where he found most (from which keys, and by which change), which
 * is a hill climb.  He never asks a key twice, and none that was added.
 *
 * Under SipHash the answer for a new key does not depend on the answers before it, so what he
 * finds is binomially distributed whatever he does: with N questions the mean is N p, where p
 * is the fpr that perhaps_stats_of() tells, and the deviation sqrt(N p (1 - p)).  He may find
 * 7.2 deviations more, or some 10 where the mean is small (chance.h); with any other seed than
 * the usual one this fails less than once in 10^11 runs for each kind.
 *
 * That he is worth the name is shown with the hash 'none', which hides nothing: there he finds
 * more than this bound, in most kinds fifty times as many. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "chance.h"

/* For each of eleven kinds, and for one of them in two layouts: more than 10^7 in all. */
enum { QUESTIONS = 850 * 1000, ADDED = 20 * 1000, BATCH = 200 };
static const double asked_fpr = 0.01;

/* ---- What he has asked ------------------------------------------------------------------- */

enum { KEY_NBYTES_MOST = 48, SEEN_BITS = 21 };

struct text {
    uint8_t bytes[KEY_NBYTES_MOST];
    size_t nbytes;
};

/* A set of keys, by 64 bits of a hash of their own.  Two keys with the same bits would only
 * leave out a question. */
struct seen {
    uint64_t *slot; /* 0: empty */
};

/* Returns whether the key was not in the set, and puts it there. */
static bool see(struct seen *seen, const struct text *key)
{
    uint64_t hash = mix64(key->nbytes + 1);
    for (size_t at = 0; at < key->nbytes; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        size_t left = key->nbytes - at;
        memcpy(&word, key->bytes + at, left < sizeof word ? left : sizeof word);
        hash = mix64(hash ^ word);
    }
    hash += !hash;
    size_t mask = ((size_t)1 << SEEN_BITS) - 1, at = hash & mask;
    while (seen->slot[at] && seen->slot[at] != hash)
        at = (at + 1) & mask;
    bool is_new = !seen->slot[at];
    seen->slot[at] = hash;
    return is_new;
}

/* ---- The enemy --------------------------------------------------------------------------- */

/* A key near which he asks, and what he found there; or the same of a way to change keys. */
struct score {
    uint32_t asked, found;
};

struct base {
    struct text key;
    struct score score;
};

enum { BASES = 4096, WAYS = 10, FIXED_WAYS = 6 };

struct enemy {
    struct rng rng;
    struct seen seen;
    struct base base[BASES];
    size_t nbases; /* ever taken; the newest BASES of them are there */
    struct score way[WAYS];
    bool fixed; /* all keys must have the same length */
    uint64_t asked, found;
};

static void take_base(struct enemy *e, const struct text *key)
{
    e->base[e->nbases++ % BASES] = (struct base){ .key = *key };
}

/* Returns the rate of success so far.  What was hardly tried looks better than it may be, so it
 * will be tried. */
static double rate_of(struct score score)
{
    return (score.found + 0.2) / (score.asked + 4.0);
}

static size_t some_base(struct enemy *e)
{
    return (size_t)rng_below(&e->rng, e->nbases < BASES ? e->nbases : BASES);
}

/* Returns the best of a few bases. */
static size_t choose_base(struct enemy *e)
{
    size_t best = some_base(e);
    for (unsigned i = 0; i < 3; i++) {
        size_t other = some_base(e);
        if (rate_of(e->base[other].score) > rate_of(e->base[best].score))
            best = other;
    }
    return best;
}

/* Returns the best way; every fourth time any, so that none is forgotten. */
static unsigned choose_way(struct enemy *e)
{
    unsigned ways = e->fixed ? FIXED_WAYS : WAYS;
    unsigned best = (unsigned)rng_below(&e->rng, ways);
    if (rng_below(&e->rng, 4) == 0)
        return best;
    for (unsigned way = 0; way < ways; way++)
        if (rate_of(e->way[way]) > rate_of(e->way[best]))
            best = way;
    return best;
}

/* ---- Ways to change a key ---------------------------------------------------------------- */

static void flip_bits(struct text *key, unsigned count, struct rng *rng)
{
    while (count-- > 0) {
        size_t bit = (size_t)rng_below(rng, 8 * key->nbytes);
        key->bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
}

/* Adds a small number to the key as a little-endian or a big-endian number. */
static void count_on(struct text *key, struct rng *rng)
{
    bool big = rng_next(rng) & 1;
    unsigned carry = 1 + (unsigned)rng_below(rng, 1000);
    for (size_t i = 0; i < key->nbytes; i++) {
        uint8_t *digit = &key->bytes[big ? key->nbytes - 1 - i : i];
        carry += *digit;
        *digit = (uint8_t)carry;
        carry >>= 8;
    }
}

/* Replaces the bytes from 'at' on by those of another key. */
static void splice(struct text *key, const struct text *other, size_t at)
{
    for (size_t i = at; i < key->nbytes && i < other->nbytes; i++)
        key->bytes[i] = other->bytes[i];
}

/* Adds two other keys bit by bit: false positives of a linear hash add up to another one. */
static void add_bits(struct text *key, const struct text *a, const struct text *b)
{
    for (size_t i = 0; i < key->nbytes && i < a->nbytes && i < b->nbytes; i++)
        key->bytes[i] ^= a->bytes[i] ^ b->bytes[i];
}

/* Writes the key again behind itself, as far as there is room. */
static void repeat(struct text *key)
{
    size_t n = key->nbytes;
    while (key->nbytes < KEY_NBYTES_MOST && key->nbytes < 2 * n) {
        key->bytes[key->nbytes] = key->bytes[key->nbytes - n];
        key->nbytes++;
    }
}

static void extend(struct text *key, bool in_front, struct rng *rng)
{
    if (key->nbytes == KEY_NBYTES_MOST)
        key->nbytes--;
    if (in_front)
        memmove(key->bytes + 1, key->bytes, key->nbytes);
    key->bytes[in_front ? 0 : key->nbytes] = (uint8_t)rng_next(rng);
    key->nbytes++;
}

/* The first FIXED_WAYS keep the length. */
static void change(struct enemy *e, struct text *key, unsigned way)
{
    struct rng *rng = &e->rng;
    const struct text *a = &e->base[some_base(e)].key, *b = &e->base[some_base(e)].key;
    switch (way) {
    case 0:
        flip_bits(key, 1, rng);
        break;
    case 1:
        flip_bits(key, 2 + (unsigned)rng_below(rng, 3), rng);
        break;
    case 2:
        count_on(key, rng);
        break;
    case 3:
        splice(key, a, key->nbytes / 2);
        break;
    case 4:
        splice(key, a, (size_t)rng_below(rng, key->nbytes));
        break;
    case 5:
        add_bits(key, a, b);
        break;
    case 6:
        repeat(key);
        break;
    case 7:
        key->nbytes -= key->nbytes > 8;
        break;
    default:
        extend(key, way == 8, rng);
    }
}

/* ---- Questions --------------------------------------------------------------------------- */

struct question {
    struct text key;
    size_t base;
    unsigned way;
};

/* Makes a key that was never asked nor added.  One that was is changed further. */
static void make_question(struct enemy *e, struct question *q)
{
    q->base = choose_base(e);
    q->way = choose_way(e);
    q->key = e->base[q->base].key;
    do
        change(e, &q->key, q->way);
    while (!see(&e->seen, &q->key) && (flip_bits(&q->key, 1, &e->rng), true));
}

static void learn(struct enemy *e, const struct question *q, bool found)
{
    struct score *of_base = &e->base[q->base].score, *of_way = &e->way[q->way];
    of_base->asked++;
    of_way->asked++;
    of_base->found += found;
    of_way->found += found;
    e->asked++;
    e->found += found;
}

static void ask_batch(struct enemy *e, const perhaps_filter *f)
{
    static struct question question[BATCH];
    struct perhaps_key key[BATCH];
    bool present[BATCH];
    for (size_t i = 0; i < BATCH; i++) {
        make_question(e, &question[i]);
        key[i] = (struct perhaps_key){ question[i].key.bytes, question[i].key.nbytes };
    }
    struct perhaps_keys keys = perhaps_keys_each(key, BATCH);
    perhaps_contains_many(f, &keys, present);
    for (size_t i = 0; i < BATCH; i++)
        learn(e, &question[i], present[i]);
    for (size_t i = 0; i < BATCH; i++)
        if (present[i])
            take_base(e, &question[i].key);
}

/* Begins with keys that were added, of which the enemy knows the first hundred. */
static void begin_enemy(struct enemy *e, const struct perhaps_keys *added, bool fixed)
{
    *e = (struct enemy){ .rng = rng_for("enemy"), .fixed = fixed };
    e->seen.slot = calloc((size_t)1 << SEEN_BITS, sizeof *e->seen.slot);
    expect(e->seen.slot);
    for (size_t i = 0; i < added->count; i++) {
        struct text key = { .nbytes = added->key_nbytes };
        memcpy(key.bytes, key_at(added, i), key.nbytes);
        see(&e->seen, &key);
        if (i < 100)
            take_base(e, &key);
    }
}

/* Returns how many false positives an enemy finds with so many questions. */
static uint64_t ask(const perhaps_filter *f, const struct perhaps_keys *added, bool fixed,
                    uint64_t questions)
{
    static struct enemy e;
    begin_enemy(&e, added, fixed);
    while (e.asked < questions)
        ask_batch(&e, f);
    free(e.seen.slot);
    return e.found;
}

/* ---- Tests ------------------------------------------------------------------------------- */

/* Makes a filter of these keys; one that grows has grown. */
static perhaps_filter *victim(const struct perhaps_kind *kind, enum perhaps_hash hash,
                              const struct perhaps_keys *keys)
{
    uint64_t capacity = grows(kind) ? keys->count / 16 : keys->count;
    struct perhaps_options options = options_for(kind, capacity, asked_fpr, 0);
    options.hashing.hash = hash;
    if (is_built(kind))
        return built_filter(&options, keys);
    perhaps_filter *f = make_with(&options);
    fill(f, keys);
    return f;
}

TEST_EACH(test_answers_teach_nothing, every_kind)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, ADDED);
    scoped_filter *f = victim(kind, PERHAPS_HASH_SIP, &keys);
    uint64_t questions = many(QUESTIONS), found = ask(f, &keys, false, questions);
    double p = stats_of(f).fpr_now, mean = p * (double)questions, sd = sqrt(mean * (1 - p));
    scene("%s: %.0f questions find %.0f, expected %.0f +- %.0f: %+.2f deviations", kind->name,
          (double)questions, (double)found, mean, sd, ((double)found - mean) / sd);
    print_message("%s\n", scene_text());
    expect(p <= asked_fpr);
    expect((double)found <= most_by_chance(mean));
    expect((double)found >= mean / 5); /* else he asked something else than new keys */
}

/* The same enemy, where the hash hides nothing. */
TEST_EACH(test_answers_teach_where_the_hash_is_known, every_kind)
{
    scoped_keys keys = make_keys(HASH_KEYS, test_seed(), 0, ADDED);
    scoped_filter *f = victim(kind, PERHAPS_HASH_NONE, &keys);
    uint64_t questions = many(QUESTIONS) / 5, found = ask(f, &keys, true, questions);
    double p = stats_of(f).fpr_now, mean = p * (double)questions, sd = sqrt(mean * (1 - p));
    scene("%s: %.0f questions find %.0f, by chance %.0f +- %.0f", kind->name, (double)questions,
          (double)found, mean, sd);
    print_message("%s\n", scene_text());
    expect((double)found > most_by_chance(mean));
}
