/* ask.c - questions to a filter, and what it tells of itself. */
#include "extension.h"
#include <perhaps_file.h>
#include <perhaps_plan.h>

#include "common/hashfn.h"
#include "utils/builtins.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* A key as one of many, for the calls that take many. */
static struct perhaps_keys as_keys(const struct site *site, const struct loaded *loaded,
                                   const struct key *key, struct perhaps_hashed *integer)
{
    if (!loaded->is_bitmap || !key_is_integer(site_key_type(site)))
        return perhaps_keys_packed(key->bytes, key->nbytes, 1);
    *integer = (struct perhaps_hashed){ { 0 } };
    memcpy(integer->bytes, key->bytes, sizeof key->integer);
    return perhaps_keys_hashed(integer, 1);
}

static inline void take(const struct site *site, const struct loaded *loaded, Datum value,
                        struct key *key)
{
    key_of(site_key_type(site), value, key);
    if (unlikely(loaded->ignores_case))
        key_fold(site_key_type(site), key);
}

bool ask(const struct site *site, const struct loaded *loaded, Datum value)
{
    struct perhaps_hashed integer;
    struct perhaps_keys keys;
    struct key key;
    take(site, loaded, value, &key);
    if (likely(!loaded->is_bitmap))
        return perhaps_contains(loaded->filter, key.bytes, key.nbytes);
    keys = as_keys(site, loaded, &key, &integer);
    return perhaps_contains_many(loaded->filter, &keys, NULL) == 1;
}

PG_FUNCTION_INFO_V1(pg_perhaps_contains);
Datum pg_perhaps_contains(PG_FUNCTION_ARGS)
{
    struct site *site = site_of(fcinfo, 1);
    const struct loaded *loaded = site_load(site, PG_GETARG_DATUM(0));
    PG_RETURN_BOOL(ask(site, loaded, PG_GETARG_DATUM(1)));
}

PG_FUNCTION_INFO_V1(pg_perhaps_count);
Datum pg_perhaps_count(PG_FUNCTION_ARGS)
{
    struct site *site = site_of(fcinfo, 1);
    const struct loaded *loaded = site_load(site, PG_GETARG_DATUM(0));
    struct perhaps_hashed integer;
    struct perhaps_keys keys;
    struct key key;
    uint64 count;
    int error;
    take(site, loaded, PG_GETARG_DATUM(1), &key);
    keys = as_keys(site, loaded, &key, &integer);
    error = perhaps_count_many(loaded->filter, &keys, &count);
    if (error)
        fail(error, "perhaps_count");
    PG_RETURN_INT64((int64)count);
}

/* A number from 0 to n-1 that depends on the key alone, and not on the hash of any filter. */
PG_FUNCTION_INFO_V1(pg_perhaps_shard);
Datum pg_perhaps_shard(PG_FUNCTION_ARGS)
{
    const struct key_type *type = site_key_type(site_of(fcinfo, 0));
    const int32 n = PG_GETARG_INT32(1);
    struct key key;
    uint64 hash;
    if (n < 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("the number of shards must be at least 1")));
    key_of(type, PG_GETARG_DATUM(0), &key);
    if (key.nbytes > INT_MAX)
        fail(PERHAPS_ERR_ARGUMENT, "perhaps_shard");
    hash = hash_bytes_extended(key.bytes, (int)key.nbytes, 0);
    PG_RETURN_INT32((int32)((hash >> 32) * (uint64)n >> 32));
}

/* ---- perhaps_info -------------------------------------------------------------------- */

static void tell_text(StringInfo json, const char *name, const char *text)
{
    if (text)
        appendStringInfo(json, "%s\"%s\": \"%s\"", json->len > 1 ? ", " : "", name, text);
}

static void tell_number(StringInfo json, const char *name, uint64 number)
{
    appendStringInfo(json, "%s\"%s\": %llu", json->len > 1 ? ", " : "", name,
                     (unsigned long long)number);
}

/* JSON has no infinite numbers. */
static void tell_share(StringInfo json, const char *name, double share)
{
    appendStringInfo(json, isfinite(share) ? ", \"%s\": %.6g" : ", \"%s\": null", name, share);
}

PG_FUNCTION_INFO_V1(pg_perhaps_info);
Datum pg_perhaps_info(PG_FUNCTION_ARGS)
{
    struct loaded *loaded = owned();
    struct perhaps_stats stats;
    StringInfoData json;
    uint64 nbytes;
    unsigned abilities;
    load_value(PG_GETARG_DATUM(0), loaded);
    nbytes = perhaps_write_nbytes(loaded->filter);
    abilities = perhaps_abilities_of(loaded->filter);
    perhaps_stats_of(loaded->filter, &stats);
    owned_free(loaded);
    initStringInfo(&json);
    appendStringInfoChar(&json, '{');
    tell_text(&json, "kind", stats.plan.kind);
    tell_text(&json, "base", stats.plan.base);
    tell_text(&json, "hash", stats.hash);
    tell_number(&json, "capacity", stats.plan.capacity);
    tell_number(&json, "keys", stats.keys);
    tell_number(&json, "keys_different", stats.keys_different);
    tell_share(&json, "fpr_asked", stats.plan.fpr);
    tell_share(&json, "fpr_predicted", stats.plan.fpr_predicted);
    tell_share(&json, "fpr_now", stats.fpr_now);
    tell_share(&json, "load", stats.load);
    tell_share(&json, "bits_per_key", stats.bits_per_key);
    tell_number(&json, "body_bytes", stats.memory_nbytes);
    tell_number(&json, "file_bytes", nbytes);
    tell_number(&json, "parts", stats.parts);
    tell_number(&json, "stale", stats.stale);
    tell_number(&json, "failed_adds", stats.failed_adds);
    tell_number(&json, "unmatched_removals", stats.unmatched_removals);
    appendStringInfo(&json, ", \"adds\": %s, \"removes\": %s, \"counts\": %s}",
                     abilities & PERHAPS_CAN_BUILD ? "false" : "true",
                     abilities & PERHAPS_CAN_REMOVE ? "true" : "false",
                     abilities & PERHAPS_CAN_COUNT ? "true" : "false");
    return DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data));
}
