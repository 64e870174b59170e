/* heavy_table_test.c - the table of dedup --count-each, in too little memory.
 *
 * The lines are numbers, which are their own places. */
#include "heavy_table.h"

#include "support.h"

enum { LINES = 200000, DIFFERENT = 60000 };

static bool same_number(void *context, uint64_t place, const struct perhaps_key *key)
{
    (void)context;
    return place == *(const uint64_t *)key->bytes;
}

/* The hashes collide in pairs. */
static struct heavy_line line_of(const struct perhaps_key *key)
{
    uint64_t number = *(const uint64_t *)key->bytes;
    return (struct heavy_line){ .hash = (number / 2 + 1) * UINT64_C(0x9e3779b97f4a7c15),
                                .place = number,
                                .same = same_number,
                                .key = key };
}

/* Returns a number of which small ones come often, from a seed that is the same each time. */
static uint64_t draw(struct rng *rng)
{
    uint64_t most = 1 + rng_below(rng, DIFFERENT);
    return rng_below(rng, most) % (1 + rng_below(rng, most));
}

static uint64_t counted(const struct heavy_table *table, uint64_t number)
{
    for (size_t i = 0; i < table->nslots; i++)
        if (table->slot[i].behind == number + 1)
            return table->slot[i].count;
    return 0;
}

/* Counts in so many bytes.  Checks the promise: who came more than 'cut' times is there, no
 * count is too high or too low by more than that, and 'cut' is as low as was promised. */
static struct heavy_table check_counts(uint64_t nbytes, uint32_t came[DIFFERENT])
{
    struct heavy_table table = heavy_table_new(nbytes);
    struct rng rng = rng_for("heavy_table");
    uint64_t number;
    const struct perhaps_key key = { &number, sizeof number };
    for (unsigned i = 0; i < LINES; i++) {
        number = draw(&rng);
        came[number]++;
        struct heavy_line line = line_of(&key);
        assert_true(heavy_table_count(&table, &line));
    }
    for (number = 0; number < DIFFERENT; number += number < 200 ? 1 : 97) {
        uint64_t count = counted(&table, number);
        assert_true(count <= came[number]);
        assert_true(came[number] <= count + table.cut);
    }
    assert_true(table.nslots * sizeof *table.slot <= nbytes);
    assert_true(table.cut <= 2 * LINES / (table.nslots / 4 * 3));
    return table;
}

TEST(too_little_memory)
{
    static uint32_t came[DIFFERENT];
    struct heavy_table table = check_counts(HEAVY_LEAST_NBYTES, came);
    struct rng rng = rng_for("heavy_table");
    uint64_t number;
    const struct perhaps_key key = { &number, sizeof number };
    assert_true(table.cut > 0);
    heavy_table_restart(&table);
    for (unsigned i = 0; i < LINES; i++) {
        number = draw(&rng);
        struct heavy_line line = line_of(&key);
        heavy_table_recount(&table, &line);
    }
    for (size_t i = 0; i < table.nslots; i++)
        if (table.slot[i].behind)
            assert_int_equal(table.slot[i].count, came[table.slot[i].behind - 1]);
    heavy_table_free(&table);
}

TEST(enough_memory)
{
    static uint32_t came[DIFFERENT];
    struct heavy_table table = check_counts(UINT64_C(64) << 20, came);
    assert_int_equal(table.cut, 0);
    heavy_table_free(&table);
}

/* Every line comes once: each cut drops all of them, and the table goes on. */
TEST(all_alike)
{
    struct heavy_table table = heavy_table_new(HEAVY_LEAST_NBYTES);
    for (uint64_t number = 0; number < 5000; number++) {
        const struct perhaps_key key = { &number, sizeof number };
        struct heavy_line line = line_of(&key);
        assert_true(heavy_table_count(&table, &line));
    }
    assert_true(table.cut >= 1 && table.cut <= 2 * 5000 / (table.nslots / 4 * 3));
    heavy_table_free(&table);
}
