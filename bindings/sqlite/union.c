/* union.c - perhaps_union(filter), an aggregate. */
#include "extension.h"

static const char union_name[] = "perhaps_union";

struct uniting {
    perhaps_filter *filter; /* of the rows so far; NULL: there was none */
    bool failed;
};

/* Makes a filter of a BLOB to be copied or merged, which needs no secret. */
static int load(sqlite3_value *value, perhaps_filter **filter)
{
    const struct perhaps_open_options options = { .mode = PERHAPS_MODE_LOAD,
                                                  .without_secret = true };
    const void *bytes = sqlite3_value_blob(value);
    return perhaps_from_bytes(bytes, (size_t)sqlite3_value_bytes(value), &options, filter);
}

static int unite(struct uniting *u, sqlite3_value *value)
{
    perhaps_filter *other;
    int error = load(value, &other);
    if (error)
        return error;
    if (!u->filter) {
        u->filter = other;
        return 0;
    }
    error = perhaps_merge(u->filter, other);
    perhaps_free(other);
    return error;
}

void union_step(sqlite3_context *context, int nargs, sqlite3_value **args)
{
    struct uniting *u = sqlite3_aggregate_context(context, sizeof *u);
    (void)nargs;
    int type = sqlite3_value_type(args[0]);
    if (!u) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (u->failed || type == SQLITE_NULL)
        return;
    int error = 0;
    if (type != SQLITE_BLOB)
        fail(context, union_name, "a filter is a BLOB here");
    else
        error = unite(u, args[0]);
    u->failed = error || type != SQLITE_BLOB;
    if (error == PERHAPS_ERR_MISMATCH)
        fail(context, union_name,
             "%s, as with the options 'n=1000000 seed=7' of perhaps_build()",
             perhaps_strerror(error));
    else if (error)
        fail_with(context, union_name, "the BLOB", error);
}

void union_final(sqlite3_context *context)
{
    struct uniting *u = sqlite3_aggregate_context(context, 0);
    if (u && u->filter && !u->failed)
        result_filter(context, union_name, u->filter);
    if (u)
        perhaps_free(u->filter);
}
