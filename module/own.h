/* own.h - our filters behind a key: what the commands need beyond struct form. */
#ifndef OWN_H
#define OWN_H

#include "form.h"
#include "pieces.h"

/* What a filter is to be. */
struct wish {
    enum family family;
    uint64_t capacity;
    double fpr;           /* cuckoo: 0 takes fingerprints of 16 bits */
    unsigned expansion;   /* a further layer has so many times the capacity; 0: none */
    bool reserved;        /* cuckoo: the capacity was asked for, and is held at once */
    uint64_t window_ms;   /* 0: forgets nothing */
    unsigned bucket_size; /* cuckoo: told as they were asked for */
    unsigned max_iterations;
};

enum { SECRET_NBYTES = 16 };

/* Makes an empty filter.  'secret' NULL draws a new one.  Returns NULL and sets *error to a
 * negative enum perhaps_error. */
void *own_create(const struct wish *wish, const uint8_t *secret, int *error);

/* Tells from which wish and with which secret a filter was made, to make it again. */
void own_describe(const void *filter, struct wish *wish, uint8_t secret[SECRET_NBYTES]);

/* Returns how long a window remembers an item; 0 for other filters. */
uint64_t own_window_ms(const void *filter);

/* Moves a window on to the time 'now_ms'.  Returns whether that changed anything. */
bool own_advance(void *filter, uint64_t now_ms);

/* Returns whether the newest generation of a window began so much later than 'now_ms' that a
 * clock must have been wrong: by more than the window. */
bool own_is_ahead(const void *filter, uint64_t now_ms);

/* Brings the time of a window back to 'now_ms', if it is later, as perhaps_set_back().  Returns
 * whether that changed anything. */
bool own_set_back(void *filter, uint64_t now_ms);

/* Adds items to a window.  All of them are remembered from now on, also those that were there:
 * is_change[i] tells whether that changed anything.  Otherwise as add() of struct form. */
int own_add_to_window(void *filter, const struct perhaps_key *items, size_t n,
                      bool *was_present, bool *is_change, size_t *done);

/* Makes a Bloom filter smaller, as far as its rate stays at most 'fpr' (0: what it was asked
 * for).  Returns 0, and sets *freed_nbytes; or an error, having changed nothing. */
int own_shrink(void *filter, double fpr, uint64_t *freed_nbytes);

/* Exchanges two filters, so that a key keeps its value, and with it its time to live. */
void own_exchange(void *filter, void *other);

/* Adds all items of another Bloom filter.  Returns 0 or an error of perhaps_merge(), having
 * changed nothing. */
int own_merge(void *filter, const void *other);

/* ---- Of own.c, own_bytes.c and forms.c --------------------------------------------------- */

/* What LOADCHUNK has taken of a filter until all is there. */
struct loading {
    struct pieces pieces;
    uint8_t secret[SECRET_NBYTES];
};

struct own {
    perhaps_filter *filter;  /* NULL: not all pieces are there */
    struct loading *loading; /* what is there; NULL for a complete filter */
    struct wish wish;
    uint64_t items, deleted;
    uint64_t period_ms, began_ms; /* window: its newest generation, as the filter has it */
    bool told;                    /* it was logged that its time is ahead of the clock */
    uint64_t changes;             /* tells a dump that the filter is not what it was */
};

struct own *own_new(void); /* NULL: too little memory */

/* Copies the secret of a filter, complete or not. */
void own_secret(const struct own *own, uint8_t secret[SECRET_NBYTES]);

/* Releases what LOADCHUNK has taken. */
void own_end_loading(struct own *own);

/* Returns the time from one generation of a window to the next. */
uint64_t own_period_ms(uint64_t window_ms);

/* Returns a field of the geometry of a filter, or 0 if it has none of this name. */
uint64_t own_field(const struct perhaps_stats *stats, const char *name);

/* Operations of struct form: of own.c */
int own_add(void *filter, const struct perhaps_key *items, size_t n, bool unless_present,
            bool *was_present, size_t *done);
void own_contains(const void *filter, const struct perhaps_key *items, size_t n,
                  uint64_t now_ms, bool *present);
uint64_t own_count(const void *filter, const struct perhaps_key *item);
bool own_remove(void *filter, const struct perhaps_key *item);
void own_info(const void *filter, struct info *info);
bool own_layer(const void *filter, size_t index, struct layer *layer);
uint64_t own_items(const void *filter);
size_t own_memory_nbytes(const void *filter);
void own_digest(RedisModuleDigest *digest, const void *filter);
void own_release(void *filter);
void *own_copy(const void *filter);
void own_defrag(RedisModuleDefragCtx *ctx, void **filter);

/* and of own_bytes.c */
enum { OWN_ENCODING = 1 };
bool own_is_complete(const void *filter);
bool own_is_bloom_header(const char *bytes, size_t nbytes);
bool own_is_cuckoo_header(const char *bytes, size_t nbytes);
void *own_begin_load(const char *bytes, size_t nbytes, const char **why);
int own_load(void *filter, uint64_t position, const char *bytes, size_t nbytes,
             const char **why);
int own_dump(const void *filter, uint64_t position, struct dump *piece);
void *own_read(RedisModuleIO *rdb, int encoding);
void own_save(RedisModuleIO *rdb, const void *filter);

#endif
