/* main.c - what SQLite calls when it loads the extension. */
#include "extension.h"
#include <perhaps_embed.h>
#include <perhaps_sets.h>

SQLITE_EXTENSION_INIT1

/* The flags that functions have below came with SQLite 3.31. */
enum { LEAST_VERSION = 3031000 };

/* Functions that have no effect and get all from their arguments.  Those that take a path read
 * no file for a schema that is not trusted (may_use_file()). */
#define PURE (SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS)

/* Functions that no view, trigger or other part of a schema can call. */
#define DIRECT (SQLITE_UTF8 | SQLITE_DIRECTONLY)

static const struct registered {
    const char *name;
    int nargs; /* -1: any number */
    int flags;
    sql_function *function, *step;
    sql_final *final;
} registered[] = {
    /* a random seed, unless it is told */
    { "perhaps_build", 2, SQLITE_UTF8 | SQLITE_INNOCUOUS, NULL, build_step, build_final },
    { "perhaps_build", 3, SQLITE_UTF8 | SQLITE_INNOCUOUS, NULL, build_step, build_final },
    { "perhaps_merge", 1, PURE, NULL, merge_step, merge_final },
    { "perhaps_contains", 2, PURE, contains_function, NULL, NULL },
    { "perhaps_count", 2, PURE, count_function, NULL, NULL },
    { "perhaps_add", -1, PURE, add_function, NULL, NULL },
    { "perhaps_remove", 2, PURE, remove_function, NULL, NULL },
    { "perhaps_info", 1, PURE, info_function, NULL, NULL },
    /* another handle each time */
    { "perhaps_open", 1, SQLITE_UTF8 | SQLITE_INNOCUOUS, open_function, NULL, NULL },
    { "perhaps_allow", 1, DIRECT, allow_function, NULL, NULL },
    { "perhaps_save", 2, DIRECT, save_function, NULL, NULL },
    { "perhaps_secret", 1, DIRECT, secret_function, NULL, NULL },
    { "perhaps_version", 0, PURE, version_function, NULL, NULL },
};

__attribute__((visibility("default"))) int
sqlite3_perhapssqlite_init(sqlite3 *db, char **error_text, const sqlite3_api_routines *api);

int sqlite3_perhapssqlite_init(sqlite3 *db, char **error_text, const sqlite3_api_routines *api)
{
    SQLITE_EXTENSION_INIT2(api)
    if (sqlite3_libversion_number() < LEAST_VERSION) {
        *error_text = sqlite3_mprintf("perhaps needs SQLite 3.31 or later, and this is %s",
                                      sqlite3_libversion());
        return SQLITE_ERROR;
    }
    struct connection *c = connection_create();
    int status = c ? SQLITE_OK : SQLITE_NOMEM;
    for (size_t i = 0; !status && i < sizeof registered / sizeof *registered; i++) {
        const struct registered *r = &registered[i];
        c->references++; /* which SQLite gives back, also if it cannot register the function */
        status = sqlite3_create_function_v2(db, r->name, r->nargs, r->flags, c, r->function,
                                            r->step, r->final, connection_release);
    }
    if (c)
        connection_release(c);
    return status;
}
