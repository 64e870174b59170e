/* form.h - what a filter can be, behind a key of the server.
 *
 * A key holds a filter in one of five forms, each with a data type of its own:
 *
 *     own_bloom      own_cuckoo        ours: filters of libperhaps, keyed by a secret (own.c)
 *     redis_bloom    redis_cuckoo      as RedisBloom has them, to read and to give back what it
 *                                      wrote; their hash is public (redisbloom_*.c)
 *     valkey_bloom                     as valkey-bloom has them, for the same (valkeybloom.c)
 *
 * The commands (bloom.c, cuckoo.c) and what the server asks of a data type (types.c) are
 * written once, over this table. */
#ifndef FORM_H
#define FORM_H

#include "server.h"
#include <perhaps.h>

enum family { FAMILY_BLOOM, FAMILY_CUCKOO };

/* What BF.INFO and CF.INFO tell. */
struct info {
    uint64_t capacity; /* items, of all its filters together */
    uint64_t size_nbytes;
    uint64_t filters;
    uint64_t items;
    uint64_t deleted;
    uint64_t buckets; /* cuckoo, as the next two */
    unsigned bucket_size;
    unsigned max_iterations;
    long long expansion; /* -1: does not grow */
    double fpr_asked, fpr_now;
    double bits_per_item; /* 0: no item is in */
    const char *hash;     /* "sip (secret)", or "murmur64a (public: anybody can craft items)" */
    uint64_t window_ms;   /* 0: forgets nothing */
};

/* What BF.DEBUG tells of one of its filters. */
struct layer {
    uint64_t nbytes, bits, capacity, items;
    unsigned hashes;
    double ratio; /* asked fpr of this layer */
};

/* A piece of SCANDUMP. */
struct dump {
    uint64_t next; /* what the caller asks for next; 0: this was behind the end */
    const char *bytes;
    size_t nbytes;
    void *memory; /* NULL, or where 'bytes' lie: to be released with memory_give() */
};
enum { DUMP_MOST_NBYTES = 16 << 20 };

/* Functions return 0 or a negative enum perhaps_error unless they say otherwise.  'why' gets
 * the text of an error reply, which is a constant.  Those that may be NULL say so.  Memory
 * comes from the server's allocator (memory.h), so that it is counted. */
struct form {
    char type_name[10]; /* of the data type: 9 characters */
    int encoding;       /* the version in which it is saved */
    enum family family;
    RedisModuleType *type; /* filled in when the module is loaded */

    /* Adds items in order.  was_present[i]: item i was perhaps there already, and so was not
     * stored; a cuckoo filter stores copies unless 'unless_present'.  Stops at the first error:
     * the first *done items are in, and the next one has changed nothing.  PERHAPS_ERR_FULL: it
     * does not grow, or refuses to; _LAYERS: it has grown as often as it may; _COPIES: the item
     * fills all its slots; _MEMORY. */
    int (*add)(void *filter, const struct perhaps_key *items, size_t n, bool unless_present,
               bool *was_present, size_t *done);

    /* Tells of each item whether it is perhaps there, at the time 'now_ms' if the filter
     * forgets; 0: as of its last change. */
    void (*contains)(const void *filter, const struct perhaps_key *items, size_t n,
                     uint64_t now_ms, bool *present);

    /* Cuckoo only, else NULL.  How many copies of an item are perhaps there; and takes one out,
     * and returns whether there was one. */
    uint64_t (*count)(const void *filter, const struct perhaps_key *item);
    bool (*remove)(void *filter, const struct perhaps_key *item);

    /* Cuckoo only, may be NULL: moves items from newer filters to room in older ones. */
    void (*compact)(void *filter);

    void (*info)(const void *filter, struct info *info);

    /* Bloom only, else NULL.  Returns false if there is no layer of this index; 0 is the
     * oldest. */
    bool (*layer)(const void *filter, size_t index, struct layer *layer);

    /* Tells how many items were added, those not counted that were perhaps there: in O(1). */
    uint64_t (*items)(const void *filter);

    /* Returns whether all chunks of a filter that LOADCHUNK makes are there.  While they are
     * not, no question is answered, since "no" would be a guess. */
    bool (*is_complete)(const void *filter);

    /* -- SCANDUMP and LOADCHUNK.  Position 0 is the header; others are what 'next' said. -- */

    /* Gives the piece at a position.  Returns 0 (an end, too: nbytes 0, next 0), or a negative
     * error: _ARGUMENT for a position that no dump has; _MEMORY. */
    int (*dump)(const void *filter, uint64_t position, struct dump *piece);

    /* Returns whether these bytes are the header of a dump in this form. */
    bool (*is_header)(const char *bytes, size_t nbytes);

    /* Makes an empty, incomplete filter from a header.  Returns NULL and sets *why if an enemy
     * wrote it, or there is too little memory. */
    void *(*begin_load)(const char *bytes, size_t nbytes, const char **why);

    /* Takes the piece that LOADCHUNK gives with this position: what dump() returned as 'next'
     * beside it.  Pieces come in order; one that came already may come again.  Returns 0;
     * PERHAPS_ERR_DAMAGED if this was the last piece, and they make no filter: then all are
     * lost, and it is as behind begin_load(); or another error, having changed nothing.
     * Errors set *why. */
    int (*load)(void *filter, uint64_t position, const char *bytes, size_t nbytes,
                const char **why);

    /* -- What the server asks of a data type -- */

    /* Reads what save() wrote, which an enemy may have changed.  Returns NULL if it is damaged
     * or there is too little memory.  IsIOError() tells when the bytes end; everything read by
     * then must be released. */
    void *(*read)(RedisModuleIO *rdb, int encoding);
    void (*save)(RedisModuleIO *rdb, const void *filter);

    size_t (*memory_nbytes)(const void *filter); /* in O(1) */
    void (*digest)(RedisModuleDigest *digest, const void *filter);
    void (*release)(void *filter);     /* in any thread */
    void *(*copy)(const void *filter); /* NULL: too little memory */

    /* Moves its memory where the server wants it: each block goes through server.DefragAlloc(),
     * which returns NULL or where the block is now.  *filter may move, too.  May be NULL. */
    void (*defrag)(RedisModuleDefragCtx *ctx, void **filter);
};

extern struct form own_bloom, own_cuckoo, redis_bloom, redis_cuckoo, valkey_bloom;

/* All forms, those that new filters get first in their family; ends in NULL. */
extern struct form *const forms[];

#endif
