/* hostile_test.c - BLOBs that are no filters or damaged ones, limits, and memory that ends. */
#include <stdio.h>
#include <string.h>

#include "database.h"
#include <perhaps_sets.h>

/* Every function that takes a BLOB. */
static const char *const calls[] = {
    "SELECT perhaps_contains(?1, 'key1')",    "SELECT perhaps_contains(perhaps_open(?1), 'a')",
    "SELECT perhaps_add(?1, 'key1') IS NULL", "SELECT perhaps_remove(?1, 'key1') IS NULL",
    "SELECT perhaps_count(?1, 'key1')",       "SELECT perhaps_info(?1)",
    "SELECT perhaps_merge(?1) IS NULL",       "SELECT perhaps_open(?1)",
};
enum { CALLS = sizeof calls / sizeof *calls };

static struct bytes filter_of(const char *options)
{
    scoped_database *db = open_database(NULL);
    char statement[200];
    make_table(db, 100);
    snprintf(statement, sizeof statement,
             "SELECT perhaps_build(name, 0.001, 'seed=%d %s') FROM t",
             1 + (int)(test_seed() % 9), options);
    return blob_of(db, statement);
}

/* All functions refuse these bytes with one line. */
static void expect_refused(sqlite3 *db, const struct bytes *bytes, size_t i)
{
    const char *result = sql_with(db, calls[i], bytes);
    scene("%s: %s", calls[i], result);
    expect(!strncmp(result, "error: perhaps_", 15) && !strchr(result, '\n'));
}

/* A changed byte, anywhere, is found; the filter was asked before, so that it is kept. */
static void flip(const char *options)
{
    scoped_database *db = open_database(NULL);
    scoped_bytes good = filter_of(options);
    scoped_bytes bad = copy_bytes(&good);
    const size_t header_nbytes = 4096, step = SANITIZED ? good.nbytes / 50 : good.nbytes / 500;
    for (size_t at = 0; at < bad.nbytes; at += at < header_nbytes ? 1 + at / 300 : 1 + step) {
        bad.at[at] ^= (uint8_t)(1 << at % 8);
        expect_refused(db, &bad, at % CALLS);
        bad.at[at] = good.at[at];
    }
    expect_result("1", sql_with(db, calls[0], &good), __LINE__);
}

TEST(test_flipped_bytes)
{
    flip("");
    flip("removable");
    flip("static");
    flip("grow");
    flip("kind=counting");
}

TEST(test_other_lengths)
{
    scoped_database *db = open_database(NULL);
    scoped_bytes good = filter_of("");
    struct bytes longer = { calloc(1, good.nbytes + 8), good.nbytes };
    memcpy(longer.at, good.at, good.nbytes);
    expect_result("1", sql_with(db, calls[0], &good), __LINE__);
    for (size_t nbytes = 0; nbytes <= good.nbytes + 8; nbytes += nbytes < 300 ? 1 : 61) {
        longer.nbytes = nbytes;
        if (nbytes != good.nbytes)
            expect_refused(db, &longer, nbytes % CALLS);
    }
    free_bytes(&longer);
}

TEST(test_random_bytes)
{
    scoped_database *db = open_database(NULL);
    struct rng rng = rng_for("random bytes");
    uint8_t bytes[6000];
    for (unsigned i = 0; i < many(2000); i++) {
        struct bytes blob = { bytes, rng_below(&rng, sizeof bytes) };
        for (size_t j = 0; j < blob.nbytes; j++)
            bytes[j] = (uint8_t)rng_next(&rng);
        expect_refused(db, &blob, i % CALLS);
    }
}

/* Bytes of a file that somebody was writing in place have no checksums that tell them apart. */
TEST(test_live)
{
    scoped_database *db = open_database(NULL);
    const struct path path = temp_path("live");
    scoped_bytes empty = filter_of("capacity=1000");
    perhaps_filter *f;
    write_file(path.text, empty.at, empty.nbytes);
    expect_success(perhaps_open(path.text, &in_place, &f));
    scoped_bytes before = read_file(path.text);
    expect_result("0", sql_with(db, "SELECT perhaps_contains(?1, 'new')", &before), __LINE__);
    for (unsigned i = 0; i < 50; i++)
        expect_success(perhaps_add(f, "new", 3));
    scoped_bytes after = read_file(path.text);
    expect_result("1", sql_with(db, "SELECT perhaps_contains(?1, 'new')", &after), __LINE__);
    expect_result("0", sql_with(db, "SELECT perhaps_contains(?1, 'new')", &before), __LINE__);
    perhaps_free(f);
}

/* ---- Limits -------------------------------------------------------------------------- */

TEST(test_largest_blob)
{
    scoped_database *db = open_database(NULL);
    make_table(db, 1000);
    expect_refusal(db, "a BLOB can have 1000000000 here",
                   "SELECT perhaps_build(name, 0.01, 'capacity=1000000000') FROM t");
    expect(sqlite3_errcode(db) == SQLITE_TOOBIG);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1500);
    expect_refusal(db, "a BLOB can have 1500 here", "SELECT perhaps_build(name, 0.001) FROM t");
    expect(sqlite3_errcode(db) == SQLITE_TOOBIG);
    expect_sql(db, "1", "SELECT length(perhaps_build(name, 0.1)) > 0 FROM t WHERE id < 9");
}

/* ---- Memory -------------------------------------------------------------------------- */

/* SQLite gets ever more memory, until a statement succeeds.  Until then it fails. */
static void starve(sqlite3 *db, const char *statement, const struct bytes *blob)
{
    bool done = false;
    unsigned failures = 0;
    for (sqlite3_int64 more = 1; !done; more += more / 16 + 256) {
        sqlite3_hard_heap_limit64(sqlite3_memory_used() + more);
        sqlite3_stmt *s = NULL;
        int status = sqlite3_prepare_v2(db, statement, -1, &s, NULL);
        if (!status && blob)
            status = sqlite3_bind_blob64(s, 1, blob->at, blob->nbytes, SQLITE_STATIC);
        if (!status)
            status = sqlite3_step(s);
        sqlite3_finalize(s);
        sqlite3_hard_heap_limit64(0);
        scene("%s: %d with %lld bytes", statement, status, (long long)more);
        expect(status == SQLITE_ROW || status == SQLITE_NOMEM);
        done = status == SQLITE_ROW;
        failures += !done;
    }
    expect(failures > 0);
}

TEST(test_no_memory)
{
    scoped_bytes blob = filter_of("");
    static const char *const builds[] = {
        "SELECT perhaps_build(name, 0.001, 'capacity=10000') FROM t",
        "SELECT perhaps_merge(b) FROM (SELECT perhaps_build(name, 0.01, 'capacity=500 seed=1') "
        "AS b "
        "FROM t "
        "GROUP BY id < 9)",
    };
    for (size_t i = 0; i < CALLS + 2; i++) {
        scoped_database *db = open_database(NULL);
        make_table(db, 100);
        if (i < 2)
            starve(db, builds[i], NULL);
        else if (i - 2 != 3 && i - 2 != 4) /* such a filter removes and counts no key */
            starve(db, calls[i - 2], &blob);
    }
}
