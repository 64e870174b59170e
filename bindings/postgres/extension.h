/* extension.h - what the files of the extension share.
 *
 * A value of the type perhaps is a varlena whose bytes are a filter file, as this library wrote
 * it: whatever comes in is loaded, which checks all of it, and written again.  Filters live
 * outside of PostgreSQL's memory, so each has an owner that frees it when a memory context
 * ends.  No error is raised while the library is on the stack: it returns first. */
#ifndef PERHAPS_EXTENSION_H
#define PERHAPS_EXTENSION_H

#include "postgres.h" /* before all others */

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/memutils.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#include <perhaps.h>
#include <perhaps_fast.h>

/* Returns the size of a value that is neither compressed nor outside of its row.
 * VARSIZE_ANY_EXHDR() does so, too, but mixes signed and unsigned numbers (PostgreSQL 17). */
static inline size_t value_nbytes(const struct varlena *value)
{
    return VARATT_IS_SHORT(value) ? VARSIZE_SHORT(value) - VARHDRSZ_SHORT
                                  : VARSIZE(value) - VARHDRSZ;
}

/* Whether the bytes of a value lie behind its header.  (VARATT_IS_SHORT() is true for pointers
 * to bytes that lie elsewhere, too.) */
static inline bool value_is_plain(const struct varlena *value)
{
    return !VARATT_IS_EXTERNAL(value) && !VARATT_IS_COMPRESSED(value);
}

/* The first bytes of a file have the checksum of all of the header, and the last 8 that of all
 * other checksums; small files have one for all of the file (doc/FORMAT.md).  Values have gone
 * through the library, so theirs are right. */
enum { BEGIN_NBYTES = 40, CHECKSUM_NBYTES = 8, FILE_NBYTES_LEAST = 64 };

static inline uint64 checksum_in(const char begin[BEGIN_NBYTES])
{
    enum { FEATURES_AT = 16, SMALL = 16, SMALL_AT = 24, HEADER_AT = 32 };
    uint64 checksum;
    memcpy(&checksum, begin + (begin[FEATURES_AT] & SMALL ? SMALL_AT : HEADER_AT),
           sizeof checksum);
    return checksum;
}

/* ---- errors.c ------------------------------------------------------------------------ */

/* Raises an error of the library; 'doing' tells what failed.  errno is that of the error. */
_Noreturn void fail(int error, const char *doing);

/* The same for two filters that could not be merged: tells in what they differ. */
_Noreturn void fail_merge(int error, const perhaps_filter *a, const perhaps_filter *b);

/* ---- keys.c: values to keys (bindings/README.md) ------------------------------------- */

enum key_form {
    KEY_TEXT,
    KEY_BLANKED,
    KEY_NAME,
    KEY_BYTES,
    KEY_INT2,
    KEY_INT4,
    KEY_INT8,
    KEY_UUID
};

/* How the values of an SQL type become keys. */
struct key_type {
    enum key_form form;
    bool is_array;
    Oid element; /* of an array */
    int16 element_nbytes;
    bool element_by_value;
    char element_align;
};

/* A key, which may lie in the value it was made of. */
struct key {
    const void *bytes;
    size_t nbytes;
    uint8 integer[8];
};

/* Finds out the type of an argument of a call; arrays are taken where 'arrays' says so.  Raises
 * an error for types whose values are no keys. */
void key_type_of_argument(FunctionCallInfo call, int argument, bool arrays,
                          struct key_type *type);

/* Makes a key of a value.  What that takes is allocated in the current memory context. */
void key_of(const struct key_type *type, Datum value, struct key *key);

/* Makes the letters A to Z of a key small, in a copy, if it is a text or bytea. */
void key_fold(const struct key_type *type, struct key *key);

/* Returns whether keys of this type are integers to a bitmap, which does not hash them. */
bool key_is_integer(const struct key_type *type);

/* Keys that wait to be added together. */
enum { GATHERED_MOST = 256 };
struct gathered {
    MemoryContext context; /* of 'bytes' */
    char *bytes;           /* of all keys, one after the other */
    uint32 room;
    uint32 count;
    uint32 offset[GATHERED_MOST + 1];
    struct perhaps_hashed *integers; /* the same keys for a bitmap */
};

struct gathered *gathered_create(MemoryContext context);

/* Appends a copy of a key.  Returns whether they are to be used now, before the next one. */
bool gathered_append(struct gathered *keys, const struct key *key);

/* Returns the keys, as a bitmap takes them if they are integers to it. */
struct perhaps_keys gathered_keys(struct gathered *keys, bool integers);

/* ---- values.c: values to filters and back -------------------------------------------- */

/* A filter of a value. */
struct loaded {
    perhaps_filter *filter;
    bool is_bitmap;
    bool ignores_case; /* the letters of its keys are small */
};

/* Returns a place for a filter, which is freed with the current memory context, or before. */
struct loaded *owned(void);
void owned_free(struct loaded *owned);

/* Makes a filter of the bytes of a filter file, all of which are checked.  'doing' is for the
 * message of an error. */
void load_bytes(const void *bytes, size_t nbytes, const char *doing, struct loaded *loaded);

/* Makes a filter of a value. */
void load_value(Datum value, struct loaded *loaded);

/* Returns a value with the bytes of the filter.  Raises an error if a value cannot have so
 * many. */
Datum value_of(const perhaps_filter *filter);

/* Makes an empty filter. */
struct sizes {
    int64 capacity; /* 0: unknown */
    double fpr;
    int64 seed; /* 0: DEFAULT_SEED */
    const char *kind;
};
int64 seed_of(Datum seed); /* of an argument, which may not be 0 */
void options_of(const struct sizes *sizes, struct perhaps_options *options);
void make_filter(const struct sizes *sizes, struct loaded *loaded);

/* ---- site.c: what a place in a query remembers --------------------------------------- */

struct site;

/* Returns what this call in the query knows from the last time, and finds out the type of the
 * argument that is a key, the first time. */
struct site *site_of(FunctionCallInfo call, int key_argument);
const struct key_type *site_key_type(const struct site *site);

/* Returns the filter of a value, which is loaded only if the site does not know it yet.  It is
 * there until the next call. */
const struct loaded *site_load(struct site *site, Datum value);

/* ---- ask.c --------------------------------------------------------------------------- */

/* Returns whether the filter perhaps contains the key that a value is. */
bool ask(const struct site *site, const struct loaded *loaded, Datum value);

#endif
