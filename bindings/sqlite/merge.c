/* merge.c - perhaps_merge(filter), an aggregate. */
#include "extension.h"
#include <perhaps_sets.h>

static const char merge_name[] = "perhaps_merge";

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

/* Unites what there is with the filter of a BLOB.  If they differ, tells in what. */
static int unite(struct uniting *u, sqlite3_value *value,
                 char difference[PERHAPS_DIFFERENCE_NBYTES])
{
    perhaps_filter *other;
    int error = load(value, &other);
    *difference = '\0';
    if (error)
        return error;
    if (!u->filter) {
        u->filter = other;
        return 0;
    }
    error = perhaps_merge(u->filter, other);
    if (error == PERHAPS_ERR_MISMATCH)
        perhaps_difference(u->filter, other, difference);
    perhaps_free(other);
    return error;
}

void merge_step(sqlite3_context *context, int nargs, sqlite3_value **args)
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
    char difference[PERHAPS_DIFFERENCE_NBYTES] = "";
    int error = 0;
    if (type != SQLITE_BLOB)
        fail(context, merge_name, "a filter is a BLOB here");
    else
        error = unite(u, args[0], difference);
    u->failed = error || type != SQLITE_BLOB;
    if (*difference)
        fail(context, merge_name,
             "the filters differ (%s): make both with the same fpr, and options such as "
             "'capacity=1000000 seed=7' of perhaps_build()",
             difference);
    else if (error)
        fail_with(context, merge_name, "the BLOB", error);
}

void merge_final(sqlite3_context *context)
{
    struct uniting *u = sqlite3_aggregate_context(context, 0);
    if (u && u->filter && !u->failed)
        result_filter(context, merge_name, u->filter);
    if (u)
        perhaps_free(u->filter);
}
