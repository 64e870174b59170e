/* change.c - filters with keys added or removed, and unions.  Each makes a new value. */
#include "extension.h"
#include <perhaps_sets.h>

#include "miscadmin.h"
#include "utils/array.h"

/* What is done with keys, and how an error names it. */
struct change {
    int (*run)(perhaps_filter *filter, const struct perhaps_keys *keys);
    const char *name;
};

static int run_add(perhaps_filter *filter, const struct perhaps_keys *keys)
{
    return perhaps_add_many(filter, keys, NULL);
}

/* A key that is not there is no error. */
static int run_remove(perhaps_filter *filter, const struct perhaps_keys *keys)
{
    return perhaps_remove_many(filter, keys, NULL, NULL, NULL);
}

/* Does it with the keys that were gathered. */
static void flush(const struct change *change, const struct loaded *loaded,
                  const struct key_type *type, struct gathered *gathered)
{
    struct perhaps_keys keys =
        gathered_keys(gathered, loaded->is_bitmap && key_is_integer(type));
    int error = keys.count ? change->run(loaded->filter, &keys) : 0;
    if (error)
        fail(error, change->name);
    gathered->count = 0;
    CHECK_FOR_INTERRUPTS();
}

static void gather(const struct change *change, const struct loaded *loaded,
                   const struct key_type *type, Datum value, struct gathered *gathered)
{
    struct key key;
    key_of(type, value, &key);
    if (loaded->ignores_case)
        key_fold(type, &key);
    if (gathered_append(gathered, &key))
        flush(change, loaded, type, gathered);
}

static void gather_array(const struct change *change, const struct loaded *loaded,
                         const struct key_type *type, Datum value, struct gathered *gathered)
{
    Datum *element;
    bool *is_null;
    int n;
    deconstruct_array(DatumGetArrayTypeP(value), type->element, type->element_nbytes,
                      type->element_by_value, type->element_align, &element, &is_null, &n);
    for (int i = 0; i < n; i++)
        if (!is_null[i])
            gather(change, loaded, type, element[i], gathered);
}

static const struct key_type *key_type_of(FunctionCallInfo call)
{
    struct key_type *type = call->flinfo->fn_extra;
    if (!type) {
        type = MemoryContextAlloc(call->flinfo->fn_mcxt, sizeof *type);
        key_type_of_argument(call, 1, true, type);
        call->flinfo->fn_extra = type;
    }
    return type;
}

/* Changes the filter by the key, or by each key of an array. */
static Datum change_value(FunctionCallInfo call, const struct change *change)
{
    const struct key_type *type = key_type_of(call);
    const Datum value = call->args[1].value;
    struct loaded *loaded;
    struct gathered *gathered;
    Datum changed;
    if (call->args[0].isnull) {
        call->isnull = true;
        return (Datum)0;
    }
    if (call->args[1].isnull)
        return call->args[0].value;
    loaded = owned();
    gathered = gathered_create(CurrentMemoryContext);
    load_value(call->args[0].value, loaded);
    (type->is_array ? gather_array : gather)(change, loaded, type, value, gathered);
    flush(change, loaded, type, gathered);
    changed = value_of(loaded->filter);
    owned_free(loaded);
    return changed;
}

PG_FUNCTION_INFO_V1(pg_perhaps_add);
Datum pg_perhaps_add(PG_FUNCTION_ARGS)
{
    return change_value(fcinfo, &(struct change){ run_add, "perhaps_add" });
}

PG_FUNCTION_INFO_V1(pg_perhaps_remove);
Datum pg_perhaps_remove(PG_FUNCTION_ARGS)
{
    return change_value(fcinfo, &(struct change){ run_remove, "perhaps_remove" });
}

PG_FUNCTION_INFO_V1(pg_perhaps_merge);
Datum pg_perhaps_merge(PG_FUNCTION_ARGS)
{
    struct loaded *a = owned(), *b = owned();
    Datum both;
    int error;
    load_value(PG_GETARG_DATUM(0), a);
    load_value(PG_GETARG_DATUM(1), b);
    error = perhaps_merge(a->filter, b->filter);
    if (error)
        fail_merge(error, a->filter, b->filter);
    both = value_of(a->filter);
    owned_free(a);
    owned_free(b);
    return both;
}
