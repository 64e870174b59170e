/* files_test.c - filters in files: replaced, missing, forbidden; and several connections. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "database.h"

/* Saves a filter that has this key alone. */
static void save(const char *path, const char *key)
{
    const struct perhaps_options options = { .capacity = 1000, .fpr = 1e-9 };
    scoped_filter *f = make_with(&options);
    expect_success(perhaps_add(f, key, strlen(key)));
    expect_success(perhaps_save(f, path));
}

TEST(test_replaced)
{
    scoped_database *db = open_database(NULL);
    const struct path path = temp_path("it's a filter");
    sqlite3_stmt *s;
    char *statement = sqlite3_mprintf("SELECT perhaps_contains(%Q, ?1)", path.text);
    expect(!sqlite3_prepare_v2(db, statement, -1, &s, NULL));
    sqlite3_free(statement);
    for (int i = 0; i < 20; i++) {
        char key[20], last[20];
        snprintf(key, sizeof key, "key %d", i);
        snprintf(last, sizeof last, "key %d", i - 1);
        save(path.text, key);
        sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
        expect(sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) == 1);
        sqlite3_reset(s);
        sqlite3_bind_text(s, 1, last, -1, SQLITE_STATIC);
        expect(sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) == 0);
        sqlite3_reset(s);
    }
    unlink(path.text);
    expect(sqlite3_step(s) == SQLITE_ERROR && strstr(sqlite3_errmsg(db), "No such file"));
    sqlite3_finalize(s);
}

/* A statement has one filter from its first row to its last, and the next one the new one. */
TEST(test_replaced_meanwhile)
{
    scoped_database *db = open_database(NULL);
    const struct path path = temp_path("f");
    sqlite3_stmt *s;
    make_table(db, 100);
    save(path.text, "old");
    char *statement = sqlite3_mprintf("SELECT perhaps_contains(%Q, 'old') FROM t", path.text);
    expect(!sqlite3_prepare_v2(db, statement, -1, &s, NULL));
    for (int i = 0; i < 100; i++) {
        expect(sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) == 1);
        if (i == 50) {
            save(path.text, "new");
            expect_sql(db, "1", "SELECT perhaps_contains('%s', 'new')", path.text);
        }
    }
    expect(sqlite3_step(s) == SQLITE_DONE);
    expect(sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) == 0);
    sqlite3_finalize(s);
    sqlite3_free(statement);
}

TEST(test_saved)
{
    scoped_database *db = open_database(NULL), *other = open_database(NULL);
    const struct path path = temp_path("saved");
    make_table(db, 1000);
    scoped_bytes blob = blob_of(db, "SELECT perhaps_build(name, 0.001, 'seed=3') FROM t");
    expect_sql(db, "1",
               "SELECT perhaps_save(b, '%s') = length(b) FROM "
               "(SELECT perhaps_build(name, 0.001, 'seed=3') AS b FROM t)",
               path.text);
    scoped_bytes file = read_file(path.text);
    expect_same_bytes(&blob, &file);
    make_table(other, 1000);
    expect_sql(other, "1000", "SELECT sum(perhaps_contains('%s', name)) FROM t", path.text);
    expect_sql(other, "1000",
               "SELECT sum(perhaps_contains((SELECT perhaps_open('%s')), name)) "
               "FROM t",
               path.text);
    expect_sql(other, "1", "SELECT perhaps_info('%s') ->> 'keys' > 990", path.text);
    expect_refusal(db, "is a BLOB here", "SELECT perhaps_save('text', '%s')", path.text);
    expect_refusal(db, "not a filter file", "SELECT perhaps_save(x'00', '%s')", path.text);
    expect_refusal(db, "the path must be text", "SELECT perhaps_save(x'00', NULL)");
    struct path notes = temp_path("notes.txt");
    write_file(notes.text, "mine", 4);
    expect_refusal(db, "notes.txt: not a filter file",
                   "SELECT perhaps_save(perhaps_build(name, 0.1), '%s') FROM t", notes.text);
    expect_refusal(db, "No such file",
                   "SELECT perhaps_save(perhaps_build(name, 0.1), '/nonexistent/f') FROM t");
}

TEST(test_no_filters)
{
    scoped_database *db = open_database(NULL);
    const struct path path = temp_path("text");
    write_file(path.text, "no filter", 9);
    expect_refusal(db, "not a filter file", "SELECT perhaps_contains('%s', 'a')", path.text);
    expect_refusal(db, path.text, "SELECT perhaps_info('%s')", path.text);
    expect_refusal(db, "No such file", "SELECT perhaps_contains('', 'a')");
    expect_refusal(db, "No such file", "SELECT perhaps_contains('/nonexistent/f', 'a')");
    expect_refusal(db, "Is a directory", "SELECT perhaps_contains('/', 'a')");
    expect_refusal(db, "not a filter file", "SELECT perhaps_contains('/dev/null', 'a')");
    expect_refusal(db, "has a NUL", "SELECT perhaps_contains('a' || char(0) || 'b', 'a')");
}

/* A schema that is not trusted reads only files that the program has allowed. */
TEST(test_not_trusted)
{
    scoped_database *db = open_database(NULL);
    const struct path path = temp_path("private"), second = temp_path("second");
    save(path.text, "key");
    save(second.text, "key");
    expect_sql(db, "", "CREATE VIEW v AS SELECT perhaps_contains('%s', 'key')", path.text);
    expect_sql(db, "1", "SELECT * FROM v");
    expect_sql(db, "", "PRAGMA trusted_schema = OFF");
    expect_refusal(db, "must be allowed first: SELECT perhaps_allow(path)", "SELECT * FROM v");
    expect_refusal(db, "must be allowed first", "SELECT perhaps_contains('%s', 'key')",
                   second.text);
    expect_refusal(db, "must be allowed first", "SELECT perhaps_info('%s')", second.text);
    expect_refusal(db, "must be allowed first", "SELECT perhaps_open('%s')", second.text);
    expect_sql(db, path.text, "SELECT perhaps_allow('%s')", path.text);
    expect_sql(db, "1", "SELECT * FROM v");
    save(path.text, "other");
    expect_sql(db, "0", "SELECT * FROM v");
    expect_sql(db, "", "CREATE VIEW w AS SELECT perhaps_allow('%s')", second.text);
    expect_refusal(db, "unsafe use of perhaps_allow", "SELECT * FROM w");
    expect_refusal(db, "No such file", "SELECT perhaps_allow('/nonexistent/f')");
}

/* More files than are kept at once. */
TEST(test_many_files)
{
    scoped_database *db = open_database(NULL);
    make_table(db, 30);
    expect_sql(db, "", "CREATE TABLE p(id INTEGER PRIMARY KEY, path TEXT)");
    for (int i = 1; i <= 30; i++) {
        char name[20], key[20];
        snprintf(name, sizeof name, "many%d", i);
        snprintf(key, sizeof key, "key%d", i);
        const struct path path = temp_path(name);
        save(path.text, key);
        expect_sql(db, "", "INSERT INTO p VALUES (%d, '%s')", i, path.text);
    }
    expect_sql(db, "30", "SELECT count(*) FROM t, p WHERE perhaps_contains(path, name)");
    expect_sql(db, "30",
               "SELECT count(*) FROM t, p WHERE perhaps_contains(path, name) AND "
               "t.id = p.id");
    expect_sql(db, "30",
               "PRAGMA trusted_schema = OFF; SELECT count(perhaps_allow(path)) FROM p");
    expect_sql(db, "30", "SELECT count(*) FROM t, p WHERE perhaps_contains(path, name)");
}

/* ---- Connections --------------------------------------------------------------------- */

static struct path shared_path;

/* Asks a filter of the database, and changes it. */
static void *work(void *element)
{
    scoped_database *db = open_database(shared_path.text);
    const int number = *(int *)element;
    for (int i = 0; i < 20; i++) {
        expect_sql(db, "500",
                   "SELECT sum(perhaps_contains((SELECT perhaps_open(filter) FROM f), name)) "
                   "FROM t");
        expect_sql(db, "",
                   "BEGIN IMMEDIATE; UPDATE f SET filter = perhaps_add(filter, %d); COMMIT",
                   100 * number + i);
    }
    return NULL;
}

TEST(test_threads)
{
    int numbers[3] = { 1, 2, 3 };
    shared_path = temp_path("database");
    scoped_database *db = open_database(shared_path.text);
    make_table(db, 500);
    expect_sql(db, "wal", "PRAGMA journal_mode = wal");
    expect_sql(db, "",
               "CREATE TABLE f AS SELECT perhaps_build(name, 0.001, 'capacity=1000') AS filter "
               "FROM t");
    run_threads(3, work, numbers, sizeof *numbers);
    for (int i = 0; i < 20; i++)
        for (int j = 1; j <= 3; j++)
            expect_sql(db, "1", "SELECT perhaps_contains(filter, %d) FROM f", 100 * j + i);
}

/* The extension can be loaded again, and by a connection of its own. */
TEST(test_loaded_twice)
{
    scoped_database *db = open_database(NULL);
    const struct path path = temp_path("twice");
    save(path.text, "key");
    expect_sql(db, "1", "SELECT perhaps_contains('%s', 'key')", path.text);
    expect(!sqlite3_load_extension(db, EXTENSION, NULL, NULL));
    expect_sql(db, "1", "SELECT perhaps_contains('%s', 'key')", path.text);
}
