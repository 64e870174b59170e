/* errors.c - errors of the library to errors of PostgreSQL. */
#include "extension.h"
#include <perhaps_sets.h>

#include "miscadmin.h"

static int code_of(int error)
{
    switch (error) {
    case PERHAPS_ERR_ARGUMENT:
    case PERHAPS_ERR_MISMATCH:
    case PERHAPS_ERR_VALUES:
        return ERRCODE_INVALID_PARAMETER_VALUE;
    case PERHAPS_ERR_UNSUPPORTED:
    case PERHAPS_ERR_SET:
    case PERHAPS_ERR_SECRET:
    case PERHAPS_ERR_VERSION:
        return ERRCODE_FEATURE_NOT_SUPPORTED;
    case PERHAPS_ERR_MEMORY:
        return ERRCODE_OUT_OF_MEMORY;
    case PERHAPS_ERR_FULL:
    case PERHAPS_ERR_COPIES:
    case PERHAPS_ERR_LIMIT:
    case PERHAPS_ERR_LAYERS:
        return ERRCODE_PROGRAM_LIMIT_EXCEEDED;
    case PERHAPS_ERR_FORMAT:
        return ERRCODE_INVALID_BINARY_REPRESENTATION;
    case PERHAPS_ERR_DAMAGED:
        return ERRCODE_DATA_CORRUPTED;
    case PERHAPS_ERR_STOPPED:
        return ERRCODE_QUERY_CANCELED;
    default:
        return ERRCODE_INTERNAL_ERROR;
    }
}

/* What helps in SQL, beside what perhaps_strerror() says. */
static const char *hint_of(int error)
{
    switch (error) {
    case PERHAPS_ERR_UNSUPPORTED:
    case PERHAPS_ERR_SET:
        return "Keys can be added to what perhaps_build(key, fpr, capacity) and "
               "perhaps_create(capacity, fpr) make, and also removed in what "
               "perhaps_create(capacity, fpr, 'removable') makes, and counted with 'count'.";
    case PERHAPS_ERR_FULL:
        return "Give a higher capacity, or make it by perhaps_create(capacity, fpr, 'chain'), "
               "which grows.";
    case PERHAPS_ERR_SECRET:
        return "Filters with a secret or a hash of their own cannot be asked in SQL.";
    default:
        return NULL;
    }
}

_Noreturn void fail(int error, const char *doing)
{
    const char *hint = hint_of(error);
    if (error == PERHAPS_ERR_STOPPED)
        CHECK_FOR_INTERRUPTS(); /* raises the better error */
    if (error == PERHAPS_ERR_IO)
        ereport(ERROR, (errcode_for_file_access(), errmsg("%s: %m", doing)));
    ereport(ERROR, (errcode(code_of(error)), errmsg("%s: %s", doing, perhaps_strerror(error)),
                    hint ? errhint("%s", hint) : 0));
    pg_unreachable();
}

_Noreturn void fail_merge(int error, const perhaps_filter *a, const perhaps_filter *b)
{
    char difference[PERHAPS_DIFFERENCE_NBYTES];
    if (error == PERHAPS_ERR_MISMATCH && perhaps_difference(a, b, difference))
        ereport(ERROR, (errcode(code_of(error)),
                        errmsg("perhaps_merge: the filters differ: %s", difference),
                        errhint("Make both with the same capacity, fpr, kind and seed.")));
    fail(error, "perhaps_merge");
}
