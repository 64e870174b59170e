/* functions_test.c - what each SQL function does, of what types, and where it may be called. */
#include <stdio.h>
#include <string.h>

#include "database.h"
#include <perhaps_sets.h>

#define SEEN "(SELECT filter FROM f WHERE name = 'seen')"
#define OPEN "(SELECT perhaps_open(filter) FROM f WHERE name = 'seen')"

/* A database with a table of so many rows, and a filter of them. */
static sqlite3 *database(unsigned rows, const char *options)
{
    sqlite3 *db = open_database(NULL);
    make_table(db, rows);
    expect_sql(db, "",
               "CREATE TABLE f(name TEXT PRIMARY KEY, filter BLOB);"
               "INSERT INTO f SELECT 'seen', perhaps_build(name, 0.001, '%s') FROM t",
               options);
    return db;
}

/* ---- What is found ------------------------------------------------------------------- */

/* All keys are found in every way to name the filter, and few others. */
static void try_options(const char *options, unsigned rows)
{
    scoped_database *db = database(rows, options);
    char all[32];
    snprintf(all, sizeof all, "%u", rows);
    expect_sql(db, all, "SELECT count(*) FROM t WHERE perhaps_contains(" OPEN ", name)");
    unsigned long wrong =
        strtoul(sql(db, "SELECT count(*) FROM t WHERE perhaps_contains(" OPEN ", 'x' || name)"),
                NULL, 10);
    double mean = 0.001 * rows;
    scene("%s: %lu of %u", options, wrong, rows);
    expect((double)wrong < mean + 7 * 1.1 * (1 + mean / 7));
    expect_sql(db, "1", "SELECT perhaps_info(filter) ->> 'keys' >= %u * 0.99 FROM f", rows);
}

TEST(test_found)
{
    try_options("seed=1", many(200000));
    try_options("seed=1 static", many(50000));
    try_options("seed=1 removable", many(50000));
    try_options("seed=1,grow", many(50000));
    try_options("seed=1 grow removable", many(20000));
    try_options("seed=1, capacity=300000", many(50000));
    try_options("seed=1 kind=bloom", many(20000));
    try_options("seed=1 kind=ribbon", many(20000));
}

TEST(test_ways_to_name_a_filter)
{
    scoped_database *db = database(1000, "seed=1");
    expect_sql(db, "1000", "SELECT sum(perhaps_contains(" SEEN ", name)) FROM t");
    expect_sql(db, "1000", "SELECT sum(perhaps_contains(" OPEN ", name)) FROM t");
    expect_sql(db, "1000", "SELECT sum(perhaps_contains(filter, t.name)) FROM t, f");
    scoped_bytes blob = blob_of(db, "SELECT filter FROM f");
    expect_result("1000", sql_with(db, "SELECT sum(perhaps_contains(?1, name)) FROM t", &blob),
                  __LINE__);
    expect_refusal(db, "the filter is NULL", "SELECT perhaps_contains(NULL, 'a')");
    expect_refusal(db, "the filter is NULL",
                   "SELECT perhaps_contains((SELECT filter FROM f WHERE name = 'none'), 'a')");
    expect_refusal(db, "a filter is a BLOB", "SELECT perhaps_contains(1.5, 'a')");
    expect_refusal(db, "no filter has this handle", "SELECT perhaps_contains(17, 'a')");
    expect_refusal(db, "not a filter file", "SELECT perhaps_contains(x'', 'a')");
}

/* A batch is 4096 keys or 256 KiB: keys at its edges are not lost. */
TEST(test_batches)
{
    scoped_database *db = open_database(NULL);
    expect_sql(db, "",
               "CREATE TABLE t(k); INSERT INTO t VALUES (zeroblob(262143)), (x'01'), (x''), "
               "(zeroblob(262144)), (zeroblob(262145)), (''), (zeroblob(700000)), ('a'), "
               "(zeroblob(131072)), (zeroblob(131073)), (zeroblob(5));"
               "CREATE TABLE f AS SELECT perhaps_build(k, 1e-9) AS filter FROM t");
    expect_sql(db, "11", "SELECT sum(perhaps_contains(filter, k)) FROM t, f");
    expect_sql(db, "10", "SELECT perhaps_info(filter) ->> 'keys' FROM f"); /* '' is x'' */
    for (unsigned rows = 4095; rows <= 4097; rows++) {
        scoped_database *other = database(rows, "seed=1");
        expect_sql(other,
                   rows == 4095   ? "4095"
                   : rows == 4096 ? "4096"
                                  : "4097",
                   "SELECT sum(perhaps_contains(" OPEN ", name)) FROM t");
    }
}

/* A group has its own memory for keys, which grows: groups at the edges of its sizes have all
 * their keys, of all lengths, and no others. */
TEST(test_batches_of_groups)
{
    scoped_database *db = open_database(NULL);
    expect_sql(
        db, "",
        "CREATE TABLE t(g, k);"
        "WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < 69) "
        "INSERT INTO t SELECT n.column1, n.column1 || ':' || i || char(0) || "
        "zeroblob(CASE i WHEN 3 THEN n.column2 ELSE i END) FROM s, "
        "(VALUES (0, 1000), (1, 1024), (63, 1025), (64, 4096), (65, 5000), (70, 70000)) n "
        "WHERE i < n.column1;"
        "CREATE TABLE f AS SELECT g, perhaps_build(k, 1e-12, 'capacity=70') AS filter "
        "FROM t GROUP BY g;");
    expect_sql(db, "263", "SELECT sum(perhaps_contains(filter, k)) FROM t JOIN f USING (g)");
    expect_sql(db, "263", "SELECT sum(perhaps_contains(filter, k)) FROM t, f");
    expect_sql(db, "263", "SELECT sum(perhaps_info(filter) ->> 'keys') FROM f");
}

/* What a small filter is of, where nothing names it. */
TEST(test_kinds)
{
    static const char *const kinds[][2] = {
        { "capacity=1000", "bloom" },
        { "capacity=1001", "blocked" },
        { "", "blocked" },
        { "capacity=100 kind=blocked", "blocked" },
        { "capacity=100 removable", "strided" },
        { "capacity=100 static", "ribbon" },
    };
    scoped_database *db = open_database(NULL);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        expect_sql(db, kinds[i][1],
                   "SELECT perhaps_info(perhaps_build(1, 0.01, '%s')) ->> 'kind'", kinds[i][0]);
    expect_sql(db, "2",
               "SELECT perhaps_info(perhaps_merge(f)) ->> 'keys' FROM (SELECT "
               "perhaps_build(column1, 0.01, 'capacity=10 seed=7') AS f FROM (VALUES (1), (2)) "
               "GROUP BY column1)");
}

/* ---- Types --------------------------------------------------------------------------- */

TEST(test_types)
{
    scoped_database *db = open_database(NULL);
    expect_sql(db, "",
               "CREATE TABLE f AS SELECT perhaps_build(column1, 1e-9) AS filter FROM "
               "(VALUES (42), ('text'), (x'00ff'), (NULL), (-1), (9223372036854775807), "
               "('a' || char(0) || 'b'))");
    expect_sql(db, "1", "SELECT perhaps_contains(filter, 42) FROM f");
    expect_sql(db, "0", "SELECT perhaps_contains(filter, '42') FROM f");
    expect_sql(db, "1", "SELECT perhaps_contains(filter, x'2a00000000000000') FROM f");
    expect_sql(db, "1", "SELECT perhaps_contains(filter, x'ffffffffffffffff') FROM f");
    expect_sql(db, "1", "SELECT perhaps_contains(filter, x'74657874') FROM f");
    expect_sql(db, "1", "SELECT perhaps_contains(filter, x'00ff') FROM f");
    expect_sql(db, "1", "SELECT perhaps_contains(filter, 'a' || char(0) || 'b') FROM f");
    expect_sql(db, "0", "SELECT perhaps_contains(filter, 'a') FROM f");
    expect_sql(db, "NULL", "SELECT perhaps_contains(filter, NULL) FROM f");
    expect_sql(db, "6", "SELECT perhaps_info(filter) ->> 'keys' FROM f");
    expect_refusal(db, "no REAL", "SELECT perhaps_contains(filter, 1.0) FROM f");
    expect_refusal(db, "no REAL", "SELECT perhaps_build(1.0, 0.1)");
    expect_refusal(db, "no REAL", "SELECT perhaps_add(filter, 1.0) FROM f");
}

/* The keys of text are UTF-8 in databases of every encoding, and filters are the same. */
TEST(test_encodings)
{
    scoped_database *db = open_database(NULL), *wide = open_database(NULL),
                    *big = open_database(NULL);
    sqlite3 *each[] = { db, wide, big };
    expect_sql(db, "UTF-8", "PRAGMA encoding");
    expect_sql(wide, "UTF-16le", "PRAGMA encoding = 'UTF-16le'; PRAGMA encoding");
    expect_sql(big, "UTF-16be", "PRAGMA encoding = 'UTF-16be'; PRAGMA encoding");
    scoped_bytes first = { 0 };
    for (size_t i = 0; i < 3; i++) {
        expect_sql(each[i], "",
                   "CREATE TABLE t(k); INSERT INTO t VALUES ('\u00e4\u20ac\U0001f600'), "
                   "('plain'), ('')");
        struct bytes blob = blob_of(each[i], "SELECT perhaps_build(k, 0.001, 'seed=5') FROM t");
        expect_result("3",
                      sql_with(each[i], "SELECT sum(perhaps_contains(?1, k)) FROM t", &blob),
                      __LINE__);
        expect_result(
            "1", sql_with(each[i], "SELECT perhaps_contains(?1, x'c3a4e282acf09f9880')", &blob),
            __LINE__);
        if (i)
            expect_same_bytes(&first, &blob);
        else
            first = copy_bytes(&blob);
        free_bytes(&blob);
    }
}

/* ---- The aggregates ------------------------------------------------------------------ */

TEST(test_build_errors)
{
    scoped_database *db = open_database(NULL);
    make_table(db, 40);
    expect_refusal(db, "the fpr must be", "SELECT perhaps_build(name, 0) FROM t");
    expect_refusal(db, "the fpr must be", "SELECT perhaps_build(name, 1) FROM t");
    expect_refusal(db, "the fpr must be", "SELECT perhaps_build(name, NULL) FROM t");
    expect_refusal(db, "the fpr must be", "SELECT perhaps_build(name, 'x') FROM t");
    expect_refusal(db, "the same for all", "SELECT perhaps_build(name, 0.1 / id) FROM t");
    expect_refusal(db, "the same for all",
                   "SELECT perhaps_build(name, 0.1, iif(id < 5, 'seed=1', 'seed=2')) FROM t");
    expect_refusal(db, "no option 'foo'",
                   "SELECT perhaps_build(name, 0.1, 'capacity=5 foo') FROM t");
    expect_refusal(db, "no option 'capacity=0'",
                   "SELECT perhaps_build(name, 0.1, 'capacity=0') FROM t");
    expect_refusal(db, "no option", "SELECT perhaps_build(name, 0.1, 'kind=none') FROM t");
    expect_refusal(db, "too long", "SELECT perhaps_build(name, 0.1, hex(zeroblob(99))) FROM t");
    expect_refusal(db, "must be text", "SELECT perhaps_build(name, 0.1, 7) FROM t");
    expect_refusal(
        db, "is full",
        "SELECT perhaps_build(a.id * 99 + b.id, 0.1, 'capacity=1') FROM t AS a, t AS b");
    expect_refusal(db, "'static' goes with neither",
                   "SELECT perhaps_build(name, 0.1, 'static removable') FROM t");
    expect_refusal(db, "wrong number", "SELECT perhaps_build(name) FROM t");
    expect_refusal(db, "window function",
                   "SELECT perhaps_build(name, 0.1) OVER (ORDER BY id) FROM t");
}

/* Without a row nothing is known of the arguments: the filter is empty, and strict. */
TEST(test_no_rows)
{
    scoped_database *db = open_database(NULL);
    make_table(db, 10);
    expect_sql(
        db, "0",
        "SELECT perhaps_contains((SELECT perhaps_build(name, 0.1) FROM t WHERE 0), 'a')");
    expect_sql(db, "1",
               "SELECT perhaps_contains(perhaps_add((SELECT perhaps_build(name, 0.1) FROM t "
               "WHERE 0), 'a'), 'a')");
    expect_sql(db, "0",
               "SELECT perhaps_contains((SELECT perhaps_build(NULL, 0.1) FROM t), 'a')");
    expect_sql(db, "NULL", "SELECT perhaps_merge(name) FROM t WHERE 0");
    expect_sql(db, "NULL", "SELECT perhaps_merge(NULL) FROM t");
}

TEST(test_room)
{
    scoped_database *db = database(100, "seed=1");
    expect_sql(db, "1125", "SELECT perhaps_info(filter) ->> 'capacity' FROM f");
    expect_sql(db, "500",
               "SELECT perhaps_info(perhaps_build(name, 0.1, 'capacity=500')) ->> 'capacity' "
               "FROM t");
    expect_sql(db, "1",
               "SELECT (SELECT perhaps_build(name, 0.1, 'seed=3') FROM t) = (SELECT "
               "perhaps_build(name, 0.1, 'seed=3') FROM (SELECT name FROM t UNION ALL SELECT "
               "name FROM t ORDER BY name DESC))");
    expect_sql(db, "0",
               "SELECT (SELECT perhaps_build(name, 0.1) FROM t) = "
               "(SELECT perhaps_build(name, 0.1) FROM t)");
}

TEST(test_groups)
{
    scoped_database *db = open_database(NULL);
    make_table(db, 300);
    expect_sql(db, "",
               "CREATE TABLE g AS SELECT id %% 3 AS part, perhaps_build(name, 1e-6, "
               "'capacity=1000 seed=7') "
               "AS filter FROM t GROUP BY id %% 3");
    expect_sql(db, "3", "SELECT count(*) FROM g");
    expect_sql(db, "300", "SELECT count(*) FROM t, g WHERE perhaps_contains(filter, name)");
    expect_sql(db, "300",
               "SELECT count(*) FROM t, g WHERE part = id %% 3 AND "
               "perhaps_contains(filter, name)");
    expect_sql(db, "", "CREATE TABLE u AS SELECT perhaps_merge(filter) AS filter FROM g");
    expect_sql(db, "300", "SELECT count(*) FROM t, u WHERE perhaps_contains(filter, name)");
    expect_refusal(
        db, "the filters differ (capacity ",
        "SELECT perhaps_merge(filter) FROM (SELECT perhaps_build(name, 0.1, 'seed=7') AS "
        "filter FROM t GROUP BY id < 100)");
    expect_refusal(db, "not a filter file", "SELECT perhaps_merge(x'00')");
    expect_refusal(db, "is a BLOB here", "SELECT perhaps_merge(name) FROM t");
    expect_refusal(db, "the filters differ (seed 7 and 8): make both with the same",
                   "SELECT perhaps_merge(filter) FROM (SELECT filter FROM g UNION ALL SELECT "
                   "perhaps_build(name, 1e-6, 'capacity=1000 seed=8') FROM t)");
}

/* ---- Changes ------------------------------------------------------------------------- */

TEST(test_changes)
{
    scoped_database *db = database(100, "seed=1 removable");
    expect_sql(db, "1", "SELECT perhaps_count(filter, 'key7') FROM f");
    expect_sql(db, "", "UPDATE f SET filter = perhaps_add(filter, 'key7', 'new', NULL, 5)");
    expect_sql(db, "2", "SELECT perhaps_count(filter, 'key7') FROM f");
    expect_sql(db, "1", "SELECT perhaps_contains(filter, 5) FROM f");
    expect_sql(db, "", "UPDATE f SET filter = perhaps_remove(filter, 'new')");
    expect_sql(db, "0", "SELECT perhaps_contains(filter, 'new') FROM f");
    expect_refusal(db, "to remove is not there", "SELECT perhaps_remove(filter, 'new') FROM f");
    expect_refusal(db, "a filter and one key", "SELECT perhaps_add(filter) FROM f");
    expect_refusal(db, "is a BLOB here", "SELECT perhaps_add(NULL, 'a')");
    expect_refusal(db, "is a BLOB here", "SELECT perhaps_remove('path', 'a')");
    expect_refusal(db, "cannot do that",
                   "SELECT perhaps_remove(perhaps_build(name, 0.1), 'key1') "
                   "FROM t");
    expect_refusal(db, "cannot do that",
                   "SELECT perhaps_count(perhaps_build(name, 0.1), 'key1') "
                   "FROM t");
    expect_refusal(db, "cannot do that",
                   "SELECT perhaps_add(perhaps_build(name, 0.1, 'static'), 'a') FROM t");
    expect_refusal(
        db, "is full",
        "WITH RECURSIVE s(i, b) AS (SELECT 1, perhaps_build(name, 0.1, 'capacity=100') FROM t "
        "UNION ALL SELECT i + 1, perhaps_add(b, -i) FROM s WHERE i < 100) "
        "SELECT max(i) FROM s");
}

/* What keeps a filter up to date: with a schema that nobody trusts, too. */
TEST(test_schema)
{
    scoped_database *db = database(100, "seed=1");
    expect_sql(db, "0", "PRAGMA trusted_schema = OFF; PRAGMA trusted_schema");
    expect_sql(db, "",
               "CREATE TRIGGER keep AFTER INSERT ON t BEGIN UPDATE f SET filter = "
               "perhaps_add(filter, NEW.name) WHERE name = 'seen'; END;"
               "CREATE VIEW known AS SELECT name, perhaps_contains(" OPEN
               ", name) AS known FROM t;"
               "CREATE TABLE c(filter BLOB, name TEXT, "
               "known INT GENERATED ALWAYS AS (perhaps_contains(filter, name)) STORED, "
               "CHECK (perhaps_contains(filter, name) OR name <> 'bad'));"
               "CREATE INDEX i ON c(perhaps_contains(filter, name));"
               "INSERT INTO t(name) VALUES ('new')");
    expect_sql(db, "1", "SELECT perhaps_contains(filter, 'new') FROM f");
    expect_sql(db, "101", "SELECT sum(known) FROM known");
    expect_sql(db, "1",
               "INSERT INTO c(filter, name) SELECT filter, 'key1' FROM f; SELECT known FROM c");
    expect_refusal(db, "CHECK constraint",
                   "INSERT INTO c(filter, name) SELECT filter, 'bad' FROM f");
    expect_sql(db, "1", "SELECT count(*) FROM c WHERE perhaps_contains(filter, name)");
    expect_sql(db, "", "CREATE VIEW w AS SELECT perhaps_save(filter, '/nonexistent/x') FROM f");
    expect_refusal(db, "unsafe use of perhaps_save", "SELECT * FROM w");
    expect_sql(db, "", "CREATE VIEW s AS SELECT perhaps_secret(zeroblob(16))");
    expect_refusal(db, "unsafe use of perhaps_secret", "SELECT * FROM s");
}

/* ---- Kept filters -------------------------------------------------------------------- */

/* Filters of the same size are not mistaken for each other, however many take turns. */
TEST(test_turns)
{
    scoped_database *db = open_database(NULL);
    make_table(db, 50);
    expect_sql(db, "",
               "CREATE TABLE g AS SELECT id, perhaps_build(name, 1e-6, 'capacity=100 seed=7') "
               "AS filter "
               "FROM t GROUP BY id");
    expect_sql(db, "1", "SELECT count(DISTINCT length(filter)) FROM g");
    expect_sql(db, "50", "SELECT count(*) FROM t, g WHERE perhaps_contains(filter, name)");
    expect_sql(db, "50",
               "SELECT count(*) FROM g, t WHERE perhaps_contains(filter, name) AND "
               "g.id = t.id");
    expect_sql(
        db, "50",
        "SELECT count(*) FROM t AS a, t AS b WHERE perhaps_contains((SELECT filter FROM g "
        "WHERE g.id = b.id), a.name)");
}

/* A handle is good as long as its filter is among the last ones that were used. */
TEST(test_handles)
{
    scoped_database *db = database(100, "seed=1");
    expect_sql(db, "1", "SELECT perhaps_open(filter) = perhaps_open(filter) FROM f");
    expect_sql(db, "1",
               "CREATE TABLE h AS SELECT perhaps_open(filter) AS h FROM f; "
               "SELECT perhaps_contains(h, 'key1') FROM h");
    expect_sql(db, "16",
               "WITH o AS MATERIALIZED (SELECT perhaps_open(b) AS h, n FROM (SELECT id AS n, "
               "perhaps_build(name, 0.001) AS b FROM t WHERE id <= 16 GROUP BY id)) "
               "SELECT sum(perhaps_contains(h, 'key' || n)) FROM o");
    expect_refusal(db, "no filter has this handle",
                   "SELECT perhaps_contains(h, 'key1') FROM h");
    expect_refusal(
        db, "no filter has this handle",
        "WITH o AS MATERIALIZED (SELECT perhaps_open(b) AS h, n FROM (SELECT id AS n, "
        "perhaps_build(name, 0.001) AS b FROM t WHERE id <= 17 GROUP BY id)) "
        "SELECT sum(perhaps_contains(h, 'key' || n)) FROM o");
    expect_refusal(db, "not a filter file", "SELECT perhaps_open(x'00')");
}

/* ---- Secrets ------------------------------------------------------------------------- */

TEST(test_secret)
{
    scoped_database *db = open_database(NULL), *other = open_database(NULL);
    const char *ask = "SELECT perhaps_contains(?1, 'key1')";
    make_table(db, 10);
    expect_refusal(db, "tell the secret first",
                   "SELECT perhaps_build(name, 0.1, 'secret') FROM t");
    expect_refusal(db, "BLOB of 16 bytes", "SELECT perhaps_secret('0123456789abcdef')");
    expect_refusal(db, "BLOB of 16 bytes", "SELECT perhaps_secret(x'00')");
    expect_sql(db, "NULL", "SELECT perhaps_secret(x'000102030405060708090a0b0c0d0e0f')");
    scoped_bytes blob = blob_of(db, "SELECT perhaps_build(name, 0.1, 'secret') FROM t");
    expect_result("1", sql_with(db, ask, &blob), __LINE__);
    expect_part("secret key is missing", sql_with(other, ask, &blob), __LINE__);
    expect_part("perhaps_secret()", sql_with(other, "SELECT perhaps_add(?1, 'a')", &blob),
                __LINE__);
    expect_result("sip", sql_with(other, "SELECT perhaps_info(?1) ->> 'hash'", &blob),
                  __LINE__);
    scoped_bytes same = blob_of(db, "SELECT perhaps_build(name, 0.1, 'secret') FROM t");
    expect_same_bytes(&blob, &same);
    for (int i = 0; i < 7; i++) /* the last 8 secrets are known */
        expect_sql(db, "NULL", "SELECT perhaps_secret(randomblob(16))");
    expect_result("1",
                  sql_with(db, "SELECT perhaps_contains(perhaps_add(?1, 'b'), 'b')", &blob),
                  __LINE__);
    expect_result("NULL", sql_with(other, "SELECT perhaps_secret(substr(?1, 1, 16))", &blob),
                  __LINE__);
    expect_part("secret key is missing", sql_with(other, ask, &blob), __LINE__);
}

/* Keys of a bitmap are integers, as text or as numbers; those of other hashes have a length. */
TEST(test_other_hashes)
{
    const uint64_t numbers[] = { 42, 1000 };
    const struct perhaps_options bitmap = { .bitmap = { .low = 0, .high = 2000 } };
    const struct perhaps_options none = { .capacity = 10,
                                          .fpr = 0.01,
                                          .hashing.hash = PERHAPS_HASH_NONE };
    scoped_database *db = open_database(NULL);
    scoped_filter *f = make_with(&bitmap), *g = make_with(&none);
    expect_success(perhaps_add(f, "42", 2));
    expect_success(perhaps_add(g, numbers, 16));
    scoped_bytes bits = saved_bytes(f), hashes = saved_bytes(g);
    expect_result("1", sql_with(db, "SELECT perhaps_contains(?1, 42)", &bits), __LINE__);
    expect_result("1", sql_with(db, "SELECT perhaps_contains(?1, '42')", &bits), __LINE__);
    expect_result("0", sql_with(db, "SELECT perhaps_contains(?1, 43)", &bits), __LINE__);
    expect_result("0", sql_with(db, "SELECT perhaps_contains(?1, -42)", &bits), __LINE__);
    expect_result("1", sql_with(db, "SELECT perhaps_contains(perhaps_add(?1, 7), '7')", &bits),
                  __LINE__);
    expect_part("out of range", sql_with(db, "SELECT perhaps_add(?1, 3000)", &bits), __LINE__);
    expect_part("keys of 16 bytes", sql_with(db, "SELECT perhaps_contains(?1, 42)", &hashes),
                __LINE__);
    expect_result("1",
                  sql_with(db,
                           "SELECT perhaps_contains(?1, x'2a00000000000000e803000000000000')",
                           &hashes),
                  __LINE__);
}

TEST(test_version)
{
    scoped_database *db = open_database(NULL);
    expect_sql(db, PERHAPS_VERSION, "SELECT perhaps_version()");
}
