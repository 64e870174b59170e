/* info.c - perhaps_info(filter): what 'perhaps info --json' tells, under the same names. */
#include <string.h>

#include "extension.h"
#include <perhaps_file.h>
#include <perhaps_plan.h>

static const char info_name[] = "perhaps_info";

/* Opens the filter of a BLOB or a file, without its secret.  Returns false after it has failed
 * the call. */
static bool open_to_inspect(sqlite3_context *context, sqlite3_value *value,
                            perhaps_filter **filter)
{
    struct perhaps_open_options options = { .without_secret = true };
    int error;
    *filter = NULL;
    if (sqlite3_value_type(value) == SQLITE_TEXT) {
        const char *path = take_text(context, info_name, "the path of a filter", value);
        if (!path || !may_use_file(context, info_name, path))
            return false;
        error = perhaps_open(path, &options, filter);
        if (error)
            fail_with(context, info_name, path, error);
    } else if (sqlite3_value_type(value) == SQLITE_BLOB) {
        const void *bytes = sqlite3_value_blob(value);
        options.mode = PERHAPS_MODE_LOAD;
        error = perhaps_from_bytes(bytes, (size_t)sqlite3_value_bytes(value), &options, filter);
        if (error)
            fail_with(context, info_name, "the BLOB", error);
    } else {
        fail(context, info_name, "a filter is a BLOB, or as text the path of a file");
        return false;
    }
    return !error;
}

/* Adds what is told of layers and generations, as of the filter. */
static void append_numbers(sqlite3_str *json, const struct perhaps_stats *stats)
{
    sqlite3_str_appendf(
        json,
        "\"keys\":%llu,\"keys_different\":%llu,\"capacity\":%llu,\"fpr_now\":%!.15g,"
        "\"bits_per_key\":%!.15g,\"body_bytes\":%llu",
        (unsigned long long)stats->keys, (unsigned long long)stats->keys_different,
        (unsigned long long)stats->plan.capacity, stats->fpr_now, stats->bits_per_key,
        (unsigned long long)stats->memory_nbytes);
}

static void append_parts(sqlite3_str *json, const perhaps_filter *filter)
{
    struct perhaps_stats part;
    for (size_t i = 0; perhaps_part(filter, i, &part); i++) {
        sqlite3_str_appendf(json, "%s{\"age\":%d,", i ? "," : ",\"parts\":[", (int)i);
        append_numbers(json, &part);
        sqlite3_str_appendall(json, "}");
    }
    if (perhaps_part(filter, 0, &part))
        sqlite3_str_appendall(json, "]");
}

static char *json_of(sqlite3_context *context, const perhaps_filter *filter)
{
    sqlite3_str *json = sqlite3_str_new(sqlite3_context_db_handle(context));
    struct perhaps_stats stats;
    perhaps_stats_of(filter, &stats);
    sqlite3_str_appendf(json, "{\"kind\":\"%s\",\"hash\":\"%s\",", stats.plan.kind, stats.hash);
    append_numbers(json, &stats);
    sqlite3_str_appendf(
        json,
        ",\"load\":%!.15g,\"fpr_asked\":%!.15g,\"fpr_predicted\":%!.15g,\"file_bytes\":%llu,"
        "\"removes\":%s,\"counts\":%s",
        stats.load, stats.plan.fpr, stats.plan.fpr_predicted,
        (unsigned long long)perhaps_write_nbytes(filter),
        perhaps_abilities_of(filter) & PERHAPS_CAN_REMOVE ? "true" : "false",
        perhaps_abilities_of(filter) & PERHAPS_CAN_COUNT ? "true" : "false");
    append_parts(json, filter);
    sqlite3_str_appendall(json, "}");
    return sqlite3_str_finish(json);
}

void info_function(sqlite3_context *context, int nargs, sqlite3_value **args)
{
    perhaps_filter *filter;
    (void)nargs;
    if (sqlite3_value_type(args[0]) == SQLITE_NULL ||
        !open_to_inspect(context, args[0], &filter))
        return;
    char *json = json_of(context, filter);
    if (json)
        sqlite3_result_text(context, json, -1, sqlite3_free);
    else
        sqlite3_result_error_nomem(context);
    perhaps_free(filter);
}
