/* compare.c - whether two values are equal, their order, and a hash of them: what DISTINCT,
 * GROUP BY, joins, indexes and logical replication ask.
 *
 * Two values are equal if their bytes are.  Most that differ do so in their size, or in one of
 * two checksums, which are read without the rest of a large value: that of the header, which
 * has the counts, and that of the other checksums.  (A small value has one, and counts at its
 * end.)  The bytes have the last word. */
#include "extension.h"

#include "access/detoast.h"
#include "common/hashfn.h"
#include "utils/builtins.h"

#include <string.h>

/* What is known of a value at once. */
struct outline {
    uint64 nbytes, header, table;
};

/* Copies bytes at this place, without the rest where that lies elsewhere. */
static void bytes_at(struct varlena *value, size_t at, void *bytes, size_t nbytes)
{
    const bool is_here = value_is_plain(value);
    struct varlena *slice =
        is_here ? value : pg_detoast_datum_slice(value, (int32)at, (int32)nbytes);
    memcpy(bytes, VARDATA_ANY(slice) + (is_here ? at : 0), nbytes);
    if (!is_here)
        pfree(slice);
}

static struct outline outline_of(struct varlena *value)
{
    struct outline o = { .nbytes = toast_raw_datum_size(PointerGetDatum(value)) - VARHDRSZ };
    if (o.nbytes >= FILE_NBYTES_LEAST) {
        char begin[BEGIN_NBYTES];
        bytes_at(value, 0, begin, sizeof begin);
        o.header = checksum_in(begin);
        bytes_at(value, o.nbytes - CHECKSUM_NBYTES, &o.table, CHECKSUM_NBYTES);
    }
    return o;
}

static int order_of(uint64 a, uint64 b)
{
    return (a > b) - (a < b);
}

/* Whether both are the same chunks of the same TOAST table. */
static bool is_same_place(const struct varlena *a, const struct varlena *b)
{
    return VARATT_IS_EXTERNAL_ONDISK(a) && VARATT_IS_EXTERNAL_ONDISK(b) &&
           !memcmp(a, b, VARSIZE_EXTERNAL(a));
}

static int order_of_bytes(struct varlena *a, struct varlena *b)
{
    struct varlena *one = pg_detoast_datum_packed(a), *other = pg_detoast_datum_packed(b);
    const int order = memcmp(VARDATA_ANY(one), VARDATA_ANY(other), value_nbytes(one));
    if (one != a)
        pfree(one);
    if (other != b)
        pfree(other);
    return order;
}

/* Returns less than 0, 0, or more.  The order means nothing but that equal values are equal. */
static int compare_values(Datum left, Datum right)
{
    struct varlena *a = (struct varlena *)DatumGetPointer(left);
    struct varlena *b = (struct varlena *)DatumGetPointer(right);
    struct outline one, other;
    int order;
    if (a == b || is_same_place(a, b))
        return 0;
    order = order_of(toast_raw_datum_size(left), toast_raw_datum_size(right));
    if (order)
        return order;
    one = outline_of(a);
    other = outline_of(b);
    order = order_of(one.header, other.header);
    if (!order)
        order = order_of(one.table, other.table);
    return order ? order : order_of_bytes(a, b);
}

PG_FUNCTION_INFO_V1(pg_perhaps_eq);
Datum pg_perhaps_eq(PG_FUNCTION_ARGS)
{
    PG_RETURN_BOOL(compare_values(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) == 0);
}

PG_FUNCTION_INFO_V1(pg_perhaps_ne);
Datum pg_perhaps_ne(PG_FUNCTION_ARGS)
{
    PG_RETURN_BOOL(compare_values(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) != 0);
}

PG_FUNCTION_INFO_V1(pg_perhaps_lt);
Datum pg_perhaps_lt(PG_FUNCTION_ARGS)
{
    PG_RETURN_BOOL(compare_values(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) < 0);
}

PG_FUNCTION_INFO_V1(pg_perhaps_le);
Datum pg_perhaps_le(PG_FUNCTION_ARGS)
{
    PG_RETURN_BOOL(compare_values(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) <= 0);
}

PG_FUNCTION_INFO_V1(pg_perhaps_ge);
Datum pg_perhaps_ge(PG_FUNCTION_ARGS)
{
    PG_RETURN_BOOL(compare_values(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) >= 0);
}

PG_FUNCTION_INFO_V1(pg_perhaps_gt);
Datum pg_perhaps_gt(PG_FUNCTION_ARGS)
{
    PG_RETURN_BOOL(compare_values(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) > 0);
}

PG_FUNCTION_INFO_V1(pg_perhaps_cmp);
Datum pg_perhaps_cmp(PG_FUNCTION_ARGS)
{
    PG_RETURN_INT32(compare_values(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)));
}

/* The outline is of the bytes alone, and so the same for equal values. */
PG_FUNCTION_INFO_V1(pg_perhaps_hash);
Datum pg_perhaps_hash(PG_FUNCTION_ARGS)
{
    const struct outline o = outline_of((struct varlena *)PG_GETARG_POINTER(0));
    return hash_any((const unsigned char *)&o, sizeof o);
}

PG_FUNCTION_INFO_V1(pg_perhaps_hash_extended);
Datum pg_perhaps_hash_extended(PG_FUNCTION_ARGS)
{
    const struct outline o = outline_of((struct varlena *)PG_GETARG_POINTER(0));
    return hash_any_extended((const unsigned char *)&o, sizeof o, (uint64)PG_GETARG_INT64(1));
}
