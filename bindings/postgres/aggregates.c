/* aggregates.c - perhaps_build() and perhaps_merge().
 *
 * perhaps_build(key, fpr) gives all keys to a builder, which makes the smallest filter of them
 * at the end.  All others work on a filter: its bytes are what parallel workers hand over, and
 * the union of two filters is how their work comes together. */
#include "extension.h"

#include "catalog/pg_tablespace_d.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/builtins.h"

#include <perhaps_build.h>
#include <perhaps_sets.h>

/* What an aggregate has so far. */
struct pool {
    struct sizes sizes;
    struct loaded loaded;     /* the filter, or none where a builder makes it */
    perhaps_builder *builder; /* made when it gets its first keys */
    struct gathered *gathered;
    MemoryContextCallback at_end;
};

static void release(void *context)
{
    struct pool *pool = context;
    perhaps_builder_free(pool->builder);
    perhaps_free(pool->loaded.filter);
    pool->builder = NULL;
    pool->loaded.filter = NULL;
}

static struct pool *pool_create(MemoryContext context)
{
    struct pool *pool = MemoryContextAllocZero(context, sizeof *pool);
    pool->at_end = (MemoryContextCallback){ .func = release, .arg = pool };
    MemoryContextRegisterResetCallback(context, &pool->at_end);
    return pool;
}

static MemoryContext aggregate_context(FunctionCallInfo call)
{
    MemoryContext context;
    if (!AggCheckCallContext(call, &context))
        elog(ERROR, "called outside of an aggregate");
    return context;
}

/* ---- The builder --------------------------------------------------------------------- */

/* The builder has one thread, which is ours, so this is not called by another one. */
static bool is_cancelled(void *context)
{
    (void)context;
    return QueryCancelPending || ProcDiePending;
}

/* Keys for which there is no memory go to where the temporary files of the server are. */
static void make_builder(struct pool *pool)
{
    char folder[MAXPGPATH];
    const struct perhaps_build_options how = { .memory_nbytes = get_hash_memory_limit(),
                                               .folder = folder,
                                               .threads = 1,
                                               .stopped = is_cancelled };
    struct perhaps_options options;
    int error;
    TempTablespacePath(folder, DEFAULTTABLESPACE_OID);
    (void)MakePGDirectory(folder); /* it may be there, or the error comes when it is needed */
    options_of(&pool->sizes, &options);
    options.needs = PERHAPS_CAN_BUILD;
    error = perhaps_builder_create(&options, &how, &pool->builder);
    if (error)
        fail(error, "perhaps_build");
}

/* ---- Keys to the pool ---------------------------------------------------------------- */

static void flush(struct pool *pool)
{
    struct perhaps_keys keys;
    int error;
    if (!pool->gathered || !pool->gathered->count)
        return;
    if (!pool->loaded.filter && !pool->builder)
        make_builder(pool);
    keys = gathered_keys(pool->gathered, false);
    error = pool->builder ? perhaps_builder_add_many(pool->builder, &keys)
                          : perhaps_add_many(pool->loaded.filter, &keys, NULL);
    if (error)
        fail(error, "perhaps_build");
    pool->gathered->count = 0;
}

/* Reads the arguments behind the key: fpr, capacity, kind and seed; the last two may be
 * null.  Sets *kind only, since the text is needed once. */
static struct sizes sizes_of(FunctionCallInfo call, const struct varlena **kind)
{
    struct sizes sizes = { 0 };
    if (call->args[2].isnull || (call->nargs > 3 && call->args[3].isnull))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("perhaps_build: fpr and capacity may not be null")));
    sizes.fpr = DatumGetFloat8(call->args[2].value);
    if (call->nargs > 3)
        sizes.capacity = DatumGetInt64(call->args[3].value);
    if (call->nargs > 4 && !call->args[4].isnull)
        *kind = PG_DETOAST_DATUM_PACKED(call->args[4].value);
    if (call->nargs > 5 && !call->args[5].isnull)
        sizes.seed = seed_of(call->args[5].value);
    return sizes;
}

static struct pool *begin(FunctionCallInfo call, const struct sizes *sizes,
                          const struct varlena *kind)
{
    MemoryContext context = aggregate_context(call);
    struct pool *pool = pool_create(context);
    struct perhaps_options options;
    pool->sizes = *sizes;
    if (kind)
        pool->sizes.kind = text_to_cstring(kind);
    pool->gathered = gathered_create(context);
    if (call->nargs > 3)
        make_filter(&pool->sizes, &pool->loaded);
    else
        options_of(&pool->sizes, &options); /* raises what is wrong with them */
    pool->sizes.kind = NULL;
    return pool;
}

static bool is_same(const struct sizes *a, const struct sizes *b)
{
    return a->fpr == b->fpr && a->capacity == b->capacity && a->seed == b->seed;
}

PG_FUNCTION_INFO_V1(pg_perhaps_build_add);
Datum pg_perhaps_build_add(PG_FUNCTION_ARGS)
{
    struct pool *pool = PG_ARGISNULL(0) ? NULL : (struct pool *)PG_GETARG_POINTER(0);
    struct key_type *type = fcinfo->flinfo->fn_extra;
    const struct varlena *kind = NULL;
    const struct sizes sizes = sizes_of(fcinfo, &kind);
    struct key key;
    if (!type) {
        type = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof *type);
        key_type_of_argument(fcinfo, 1, false, type);
        fcinfo->flinfo->fn_extra = type;
    }
    if (!pool)
        pool = begin(fcinfo, &sizes, kind);
    else if (!is_same(&sizes, &pool->sizes))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("perhaps_build: fpr, capacity and seed must be the same in all "
                               "rows")));
    if (!PG_ARGISNULL(1)) {
        key_of(type, PG_GETARG_DATUM(1), &key);
        if (gathered_append(pool->gathered, &key))
            flush(pool);
    }
    PG_RETURN_POINTER(pool);
}

/* ---- Unions -------------------------------------------------------------------------- */

static void unite(struct pool *pool, const perhaps_filter *other)
{
    int error = pool->loaded.filter ? perhaps_merge(pool->loaded.filter, other)
                                    : perhaps_clone(other, &pool->loaded.filter);
    if (error)
        fail_merge(error, pool->loaded.filter, other);
}

PG_FUNCTION_INFO_V1(pg_perhaps_merge_add);
Datum pg_perhaps_merge_add(PG_FUNCTION_ARGS)
{
    MemoryContext context = aggregate_context(fcinfo);
    struct pool *pool = PG_ARGISNULL(0) ? NULL : (struct pool *)PG_GETARG_POINTER(0);
    if (PG_ARGISNULL(1)) {
        if (!pool)
            PG_RETURN_NULL();
        PG_RETURN_POINTER(pool);
    }
    if (!pool)
        pool = pool_create(context);
    if (!pool->loaded.filter) {
        load_value(PG_GETARG_DATUM(1), &pool->loaded);
    } else {
        struct loaded *other = owned();
        load_value(PG_GETARG_DATUM(1), other);
        unite(pool, other->filter);
        owned_free(other);
    }
    PG_RETURN_POINTER(pool);
}

/* ---- Parallel workers ---------------------------------------------------------------- */

PG_FUNCTION_INFO_V1(pg_perhaps_build_combine);
Datum pg_perhaps_build_combine(PG_FUNCTION_ARGS)
{
    MemoryContext context = aggregate_context(fcinfo);
    struct pool *pool = PG_ARGISNULL(0) ? NULL : (struct pool *)PG_GETARG_POINTER(0);
    struct pool *other = PG_ARGISNULL(1) ? NULL : (struct pool *)PG_GETARG_POINTER(1);
    if (!pool && !other)
        PG_RETURN_NULL();
    if (!pool)
        pool = pool_create(context);
    flush(pool);
    if (other) {
        flush(other);
        unite(pool, other->loaded.filter);
    }
    PG_RETURN_POINTER(pool);
}

PG_FUNCTION_INFO_V1(pg_perhaps_build_serialize);
Datum pg_perhaps_build_serialize(PG_FUNCTION_ARGS)
{
    struct pool *pool = (struct pool *)PG_GETARG_POINTER(0);
    (void)aggregate_context(fcinfo);
    flush(pool);
    return value_of(pool->loaded.filter);
}

PG_FUNCTION_INFO_V1(pg_perhaps_build_deserialize);
Datum pg_perhaps_build_deserialize(PG_FUNCTION_ARGS)
{
    struct pool *pool;
    (void)aggregate_context(fcinfo);
    pool = pool_create(CurrentMemoryContext);
    load_value(PG_GETARG_DATUM(0), &pool->loaded);
    PG_RETURN_POINTER(pool);
}

/* ---- The result ---------------------------------------------------------------------- */

PG_FUNCTION_INFO_V1(pg_perhaps_build_final);
Datum pg_perhaps_build_final(PG_FUNCTION_ARGS)
{
    struct pool *pool = PG_ARGISNULL(0) ? NULL : (struct pool *)PG_GETARG_POINTER(0);
    Datum value;
    int error = 0;
    (void)aggregate_context(fcinfo);
    if (!pool)
        PG_RETURN_NULL();
    flush(pool);
    if (pool->loaded.filter)
        return value_of(pool->loaded.filter);
    if (!pool->builder)
        make_builder(pool); /* of no key at all */
    error = perhaps_builder_finish(pool->builder, &pool->loaded.filter);
    if (error)
        fail(error, "perhaps_build");
    value = value_of(pool->loaded.filter);
    release(pool);
    return value;
}
