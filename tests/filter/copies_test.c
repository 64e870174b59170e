/* copies_test.c - proves that filters which store copies hold as many of each key as perhaps.h
 * says, in rounds and at once, and that they refuse more only by the error that says so.
 *
 * It fails when a copy is refused that should find room, when the error is another one, and
 * when a count is less than the copies that are in.  PERHAPS_TEST_EVERY tries larger sets. */
#include "support.h"

/* A kind, and the kind of its parts. */
struct storing {
    const char *kind, *base;
    unsigned sure; /* copies of each key that find room */
    bool counts;
};

static const struct storing storing[] = {
    { "elastic", NULL, PERHAPS_COPIES_SURE, true },
    { "chain", "cuckoo", PERHAPS_COPIES_SURE, true },
    { "chain", "strided", 2, false },
    { "chain", "counting", PERHAPS_COUNT_MAX, true },
};

struct copies_case {
    const struct storing *storing;
    double fpr;
    size_t nkeys;
    uint64_t capacity;
    unsigned copies;
    bool in_rounds;
};

/* Adds the copies until one is refused, and sets in[] to how many of each key are in.  Returns
 * the error of the first that was refused. */
static int add_copies(perhaps_filter *f, const struct copies_case *c,
                      const struct perhaps_keys *keys, uint8_t *in)
{
    for (size_t i = 0; i < c->nkeys * c->copies; i++) {
        size_t key = c->in_rounds ? i % c->nkeys : i / c->copies;
        int error = perhaps_add(f, key_at(keys, key), keys->key_nbytes);
        if (error)
            return error;
        in[key]++;
    }
    return 0;
}

static void try_copies(const struct copies_case *c)
{
    const unsigned needs = PERHAPS_CAN_REMOVE | (c->storing->counts ? PERHAPS_CAN_COUNT : 0U);
    struct perhaps_options options = { .capacity = c->capacity,
                                       .fpr = c->fpr,
                                       .kind = c->storing->kind,
                                       .base = c->storing->base,
                                       .needs = needs,
                                       .hashing.seed = mix64(test_seed() + c->copies) };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, c->nkeys);
    scoped_memory *in = calloc(c->nkeys, 1);
    scene("%s over %s, fpr %g, %zu keys, made for %llu, %u copies %s", c->storing->kind,
          c->storing->base ? c->storing->base : "none", c->fpr, c->nkeys,
          (unsigned long long)c->capacity, c->copies, c->in_rounds ? "in rounds" : "at once");
    scoped_filter *f = make_with(&options);
    int error = add_copies(f, c, &keys, in);
    if (error)
        expect_error(error, PERHAPS_ERR_COPIES);
    expect(!error || c->copies > c->storing->sure);
    uint64_t sum = 0;
    for (size_t key = 0; key < c->nkeys; sum += in[key++]) {
        expect(!in[key] || perhaps_contains(f, key_at(&keys, key), keys.key_nbytes));
        if (c->storing->counts)
            expect(count_of(f, key_at(&keys, key), keys.key_nbytes) >= in[key]);
    }
    expect(stats_of(f).keys == sum);
}

TEST(test_copies)
{
    static const double rates[] = { 0.3, 0.01, 1e-6 };
    static const size_t sizes[] = { 10, 300, 3000, 50000 };
    const size_t nsizes = sizeof sizes / sizeof *sizes - !(every_case() && !SANITIZED);
    for (size_t s = 0; s < sizeof storing / sizeof *storing; s++)
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
            for (size_t n = 0; n < nsizes; n++)
                for (unsigned i = 0; i < 2 * 2 * (PERHAPS_COPIES_MAX + 1); i++) {
                    struct copies_case c = { .storing = &storing[s],
                                             .fpr = rates[r],
                                             .nkeys = sizes[n],
                                             .capacity = i & 2 ? 4 * sizes[n] : 100,
                                             .copies = 1 + i / 4,
                                             .in_rounds = i & 1 };
                    if (rates[r] > 0.1 && storing[s].base && storing[s].counts)
                        continue; /* keys that look alike share the slots of one */
                    try_copies(&c);
                }
}

int main(void)
{
    return run_all_tests();
}
