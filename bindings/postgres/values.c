/* values.c - the type perhaps: its text and bytes, filters of values, and values of filters. */
#include "extension.h"
#include <perhaps_file.h>
#include <perhaps_plan.h>

#include "libpq/pqformat.h"
#include "utils/builtins.h"

#include <math.h>
#include <string.h>

PG_MODULE_MAGIC;

void _PG_init(void)
{
    files_define_settings();
}

/* ---- Filters of values --------------------------------------------------------------- */

struct owner {
    struct loaded loaded; /* first */
    MemoryContextCallback at_end;
};

void owned_free(struct loaded *owned)
{
    perhaps_free(owned->filter);
    owned->filter = NULL;
}

static void release(void *context)
{
    owned_free(context);
}

struct loaded *owned(void)
{
    struct owner *owner = palloc0(sizeof *owner);
    owner->at_end = (MemoryContextCallback){ .func = release, .arg = &owner->loaded };
    MemoryContextRegisterResetCallback(CurrentMemoryContext, &owner->at_end);
    return &owner->loaded;
}

void load_bytes(const void *bytes, size_t nbytes, const char *doing, struct loaded *loaded)
{
    int error = perhaps_from_bytes(bytes, nbytes, NULL, &loaded->filter);
    if (error)
        fail(error, doing);
    loaded->is_bitmap = !strcmp(perhaps_kind_of(loaded->filter)->name, "bitmap");
    loaded->ignores_case = perhaps_note_says(perhaps_note(loaded->filter), "ignore-case");
}

void load_value(Datum value, struct loaded *loaded)
{
    struct varlena *bytes = PG_DETOAST_DATUM_PACKED(value);
    load_bytes(VARDATA_ANY(bytes), value_nbytes(bytes), "a value of type perhaps", loaded);
    if ((Pointer)bytes != DatumGetPointer(value))
        pfree(bytes);
}

static _Noreturn void refuse_size(double nbytes)
{
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("a filter of %.3g GB is no value: values have less than 1 GB",
                           nbytes / (1 << 30)),
                    errhint("Ask for fewer keys or a higher fpr, divide the keys by "
                            "perhaps_shard(), or build a file and ask it by "
                            "perhaps_contains_file().")));
    pg_unreachable();
}

static void check_size(const perhaps_filter *filter)
{
    const uint64 nbytes = perhaps_write_nbytes(filter);
    if (nbytes > MaxAllocSize - VARHDRSZ)
        refuse_size((double)nbytes);
}

Datum value_of(const perhaps_filter *filter)
{
    const size_t nbytes = perhaps_write_nbytes(filter);
    struct varlena *value;
    int error;
    check_size(filter);
    value = palloc(nbytes + VARHDRSZ);
    SET_VARSIZE(value, nbytes + VARHDRSZ);
    error = perhaps_to_bytes(filter, VARDATA(value), nbytes);
    if (error)
        fail(error, "a value of type perhaps");
    return PointerGetDatum(value);
}

/* Checks bytes that come from somewhere, and returns them as a value.  They are written anew,
 * so that each value is as this library writes it. */
static Datum admit(const void *bytes, size_t nbytes)
{
    struct loaded *loaded = owned();
    Datum value;
    load_bytes(bytes, nbytes, "invalid value for type perhaps", loaded);
    value = value_of(loaded->filter);
    owned_free(loaded);
    return value;
}

/* ---- Empty filters ------------------------------------------------------------------- */

/* Filters that are made in different places and at different times can be united, since they
 * have this seed unless somebody gives another one: "perhaps", as ASCII. */
#define DEFAULT_SEED UINT64_C(0x70657268617073)

/* From this rate on, keys whose hashes of 64 bits are equal make no difference: values have
 * room for at most 2^29 keys of so low a rate, which makes 3e-11. */
#define RATE_OF_64_BITS 1e-6

/* Refuses a kind that nobody knows, or of which no empty filter can be made. */
static void check_kind(const char *name)
{
    const struct perhaps_kind *kind;
    StringInfoData names;
    initStringInfo(&names);
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++) {
        if (kind->abilities & PERHAPS_CAN_BUILD || !strcmp(kind->name, "bitmap"))
            continue;
        if (!strcmp(kind->name, name))
            return;
        appendStringInfo(&names, "%s%s", names.len ? ", " : "", kind->name);
    }
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("no empty filter can be made of the kind \"%s\"", name),
                    errhint("These kinds take keys as they come: %s.", names.data)));
}

/* Reads the name of a kind, and what the filter is to be able to do: words with blanks or
 * commas between them.  Returns the name, or NULL if the library chooses. */
static const char *read_kind(const char *text, unsigned *needs)
{
    static const char between[] = ", ";
    const char *name = NULL;
    char *words = pstrdup(text), *rest = NULL;
    for (char *word = strtok_r(words, between, &rest); word;
         word = strtok_r(NULL, between, &rest)) {
        if (!strcmp(word, "removable"))
            *needs |= PERHAPS_CAN_REMOVE;
        else if (!strcmp(word, "count"))
            *needs |= PERHAPS_CAN_COUNT;
        else if (!name)
            check_kind(name = word);
        else
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("\"%s\" names two kinds", text)));
    }
    return name;
}

void options_of(const struct sizes *sizes, struct perhaps_options *options)
{
    if (!(sizes->fpr >= PERHAPS_FPR_MIN && sizes->fpr < 1))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("the fpr is %g: it must be at least %g and less than 1",
                               sizes->fpr, PERHAPS_FPR_MIN)));
    if (sizes->capacity < 0 || (uint64)sizes->capacity > PERHAPS_CAPACITY_MAX)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("the capacity is %lld: it must be from 1 to 2^48",
                               (long long)sizes->capacity)));
    *options = (struct perhaps_options){
        .capacity = (uint64)sizes->capacity,
        .fpr = sizes->fpr,
        .hashing = { .hash = sizes->fpr >= RATE_OF_64_BITS ? PERHAPS_HASH_XXH3_64
                                                           : PERHAPS_HASH_XXH3,
                     .seed = sizes->seed ? (uint64)sizes->seed : DEFAULT_SEED },
    };
    if (sizes->kind)
        options->kind = read_kind(sizes->kind, &options->needs);
}

int64 seed_of(Datum seed)
{
    if (!DatumGetInt64(seed))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("the seed is 0: it must be another number"),
                        errhint("Without a seed, or with NULL, filters have one fixed seed.")));
    return DatumGetInt64(seed);
}

/* No filter takes fewer bits a key than the logarithm of its rate. */
static void check_need(const struct perhaps_options *options)
{
    const double nbytes = (double)options->capacity * -log2(options->fpr) / 8;
    if (nbytes > MaxAllocSize)
        refuse_size(nbytes);
}

void make_filter(const struct sizes *sizes, struct loaded *loaded)
{
    struct perhaps_options options;
    int error;
    options_of(sizes, &options);
    if (!options.capacity)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("the capacity must be at least 1")));
    check_need(&options);
    error = perhaps_create(&options, &loaded->filter);
    if (error)
        fail(error, "no filter can be made");
    check_size(loaded->filter); /* nothing was written to it yet, so it takes no memory */
}

PG_FUNCTION_INFO_V1(pg_perhaps_create);
Datum pg_perhaps_create(PG_FUNCTION_ARGS)
{
    struct sizes sizes = { 0 };
    struct loaded *loaded;
    Datum value;
    if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
        PG_RETURN_NULL();
    sizes.capacity = PG_GETARG_INT64(0);
    sizes.fpr = PG_GETARG_FLOAT8(1);
    if (!PG_ARGISNULL(2))
        sizes.kind = text_to_cstring(PG_GETARG_TEXT_PP(2));
    if (!PG_ARGISNULL(3))
        sizes.seed = seed_of(PG_GETARG_DATUM(3));
    loaded = owned();
    make_filter(&sizes, loaded);
    value = value_of(loaded->filter);
    owned_free(loaded);
    return value;
}

/* ---- Text and bytes ------------------------------------------------------------------ */

/* The text is that of bytea: \x and two hexadecimal digits a byte. */
PG_FUNCTION_INFO_V1(pg_perhaps_in);
Datum pg_perhaps_in(PG_FUNCTION_ARGS)
{
    const char *text = PG_GETARG_CSTRING(0);
    const size_t length = strlen(text);
    char *bytes;
    uint64 nbytes;
    Datum value;
    if (text[0] != '\\' || text[1] != 'x')
        ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                        errmsg("invalid input syntax for type perhaps"),
                        errhint("It is the bytes of a filter, written as those of a bytea: \\x "
                                "and hexadecimal digits.")));
    bytes = palloc(length / 2 + 1);
    nbytes = hex_decode(text + 2, length - 2, bytes);
    value = admit(bytes, nbytes);
    pfree(bytes);
    return value;
}

PG_FUNCTION_INFO_V1(pg_perhaps_out);
Datum pg_perhaps_out(PG_FUNCTION_ARGS)
{
    const struct varlena *value = PG_GETARG_VARLENA_PP(0);
    const size_t nbytes = value_nbytes(value);
    char *text;
    if (2 * (uint64)nbytes + 3 > MaxAllocSize)
        ereport(ERROR,
                (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                 errmsg("a filter of %zu bytes has no text: texts have less than 1 GB", nbytes),
                 errhint("Use the binary format: COPY ... WITH (FORMAT binary).")));
    text = palloc(2 * nbytes + 3);
    text[0] = '\\';
    text[1] = 'x';
    text[2 + hex_encode(VARDATA_ANY(value), nbytes, text + 2)] = '\0';
    PG_RETURN_CSTRING(text);
}

PG_FUNCTION_INFO_V1(pg_perhaps_recv);
Datum pg_perhaps_recv(PG_FUNCTION_ARGS)
{
    StringInfo message = (StringInfo)PG_GETARG_POINTER(0);
    const int nbytes = message->len - message->cursor;
    return admit(pq_getmsgbytes(message, nbytes), (size_t)nbytes);
}

PG_FUNCTION_INFO_V1(pg_perhaps_send);
Datum pg_perhaps_send(PG_FUNCTION_ARGS)
{
    PG_RETURN_BYTEA_P(PG_GETARG_BYTEA_P_COPY(0));
}

PG_FUNCTION_INFO_V1(pg_perhaps_from_bytea);
Datum pg_perhaps_from_bytea(PG_FUNCTION_ARGS)
{
    const struct varlena *bytes = PG_GETARG_VARLENA_PP(0);
    return admit(VARDATA_ANY(bytes), value_nbytes(bytes));
}
