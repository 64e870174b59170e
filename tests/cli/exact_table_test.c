/* exact_table_test.c - the table of dedup --exact, with hashes that collide in all their bits.
 *
 * The lines here are numbers, and line p is the number at place p of an array. */
#include "exact_table.h"

#include <string.h>

#include "support.h"

enum { LINES = 3000 };

struct lines {
    uint32_t number[LINES];
    uint64_t ncompared;
};

static bool same_number(void *context, uint64_t place, const struct perhaps_key *key)
{
    struct lines *lines = context;
    lines->ncompared++;
    return memcmp(&lines->number[place], key->bytes, key->nbytes) == 0;
}

/* Makes a hash with these halves. */
static struct perhaps_hashed hash_of(uint64_t first, uint64_t second)
{
    const uint64_t halves[2] = { first, second };
    struct perhaps_hashed hash;
    memcpy(&hash, halves, sizeof hash);
    return hash;
}

static enum exact_met meet(struct exact_table *table, struct lines *lines, uint64_t place,
                           const struct perhaps_hashed *hash)
{
    const struct perhaps_key key = { &lines->number[place], sizeof lines->number[0] };
    exact_table_fetch(table, hash);
    return exact_table_meet(table, &(struct exact_line){ .hash = hash,
                                                         .seek = exact_table_seek(table, hash),
                                                         .place = place,
                                                         .same = same_number,
                                                         .context = lines,
                                                         .key = &key });
}

/* The hash of a number, of which only some bits count: so few that most numbers share a slot,
 * or a tag, or both. */
static struct perhaps_hashed weak_hash(uint32_t number, unsigned first_bits,
                                       unsigned second_bits)
{
    uint64_t mixed = number * UINT64_C(0x9e3779b97f4a7c15);
    return hash_of(first_bits ? mixed >> (64 - first_bits) << (64 - first_bits) : 0,
                   second_bits ? mixed << (64 - second_bits) : 0);
}

/* Meets random numbers and compares with an array that knows which came how often. */
static void check_model(unsigned first_bits, unsigned second_bits, uint32_t ndifferent)
{
    struct lines lines = { .ncompared = 0 };
    uint8_t came[LINES] = { 0 };
    struct exact_table table;
    struct rng rng = rng_for("exact_table");
    assert_true(exact_table_make(&table, LINES, true));
    for (uint64_t i = 0; i < LINES; i++) {
        uint32_t number = lines.number[i] = (uint32_t)rng_below(&rng, ndifferent);
        struct perhaps_hashed hash = weak_hash(number, first_bits, second_bits);
        enum exact_met met = meet(&table, &lines, i, &hash);
        assert_int_equal(met, came[number] ? EXACT_REPEATED : EXACT_NEW);
        came[number] = came[number] ? 2 : 1;
    }
    for (uint64_t i = 0; i < LINES; i++) {
        uint32_t number = lines.number[i];
        struct perhaps_hashed hash = weak_hash(number, first_bits, second_bits);
        assert_int_equal(exact_table_came_once(&table, &hash, i), came[number] == 1);
    }
    exact_table_free(&table);
}

TEST(hashes_that_collide)
{
    check_model(64, 64, LINES);
    check_model(64, 0, LINES); /* one tag */
    check_model(0, 64, LINES); /* one slot */
    check_model(0, 0, 300);    /* both */
    check_model(3, 2, LINES);
}

/* A search that was begun before other lines were put in is still right. */
TEST(seek_before_others)
{
    struct lines lines = { .number = { 7, 8, 7 } };
    struct exact_table table;
    const struct perhaps_hashed hash = hash_of(UINT64_MAX, UINT64_MAX);
    const struct perhaps_key key = { &lines.number[2], sizeof lines.number[0] };
    assert_true(exact_table_make(&table, 10, false));
    size_t seek = exact_table_seek(&table, &hash);
    assert_int_equal(exact_table_place(&table, seek), EXACT_NONE);
    assert_int_equal(meet(&table, &lines, 0, &hash), EXACT_NEW);
    assert_int_equal(meet(&table, &lines, 1, &hash), EXACT_NEW);
    struct exact_line line = { &hash, seek, 2, same_number, &lines, &key };
    assert_int_equal(exact_table_meet(&table, &line), EXACT_REPEATED);
    assert_int_equal(exact_table_place(&table, exact_table_seek(&table, &hash)), 0);
    exact_table_free(&table);
}

/* It takes as many lines as it was made for, and then says that it is full; what is in stays
 * in.  Searches go from the last slot on to the first. */
TEST(full)
{
    struct lines lines = { .ncompared = 0 };
    struct exact_table table;
    uint64_t n = 0;
    const struct perhaps_hashed last = hash_of(UINT64_MAX, 0);
    assert_true(exact_table_make(&table, 100, false));
    assert_true(exact_table_nbytes(100) >= 100 * sizeof(uint64_t));
    for (uint64_t i = 0; i < LINES; i++)
        lines.number[i] = (uint32_t)i;
    while (n < LINES && meet(&table, &lines, n, &last) == EXACT_NEW)
        n++;
    assert_true(n >= 100 && n < LINES);
    assert_int_equal(meet(&table, &lines, n, &last), EXACT_FULL);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(meet(&table, &lines, i, &last), EXACT_REPEATED);
    exact_table_free(&table);
}

/* Places up to the last one are kept whole. */
TEST(places)
{
    struct lines lines = { .ncompared = 0 };
    struct exact_table table;
    const struct perhaps_key key = { lines.number, 0 };
    assert_true(exact_table_make(&table, 10, true));
    const uint64_t place[] = { 0, 1, EXACT_PLACES - 1 };
    for (uint64_t i = 0; i < 3; i++) {
        const struct perhaps_hashed hash = hash_of(i << 62, i << 45);
        struct exact_line line = { &hash,    exact_table_seek(&table, &hash),
                                   place[i], same_number,
                                   &lines,   &key };
        assert_int_equal(exact_table_meet(&table, &line), EXACT_NEW);
        assert_true(exact_table_place(&table, exact_table_seek(&table, &hash)) == place[i]);
        assert_true(exact_table_came_once(&table, &hash, place[i]));
        assert_false(exact_table_came_once(&table, &hash, place[i] ^ 1));
    }
    exact_table_free(&table);
}
