/* own.h - our filters behind a key: what the commands need beyond struct form. */
#ifndef OWN_H
#define OWN_H

#include "form.h"

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

/* Tells from which wish and with which secret a filter was made, so that it can be made again. */
void own_describe(const void *filter, struct wish *wish, uint8_t secret[SECRET_NBYTES]);

/* Returns how long a window remembers an item; 0 for other filters. */
uint64_t own_window_ms(const void *filter);

/* Moves a window on to the time 'now_ms'.  Returns whether that changed anything. */
bool own_advance(void *filter, uint64_t now_ms);

/* Adds items to a window.  All of them are remembered from now on, also those that were there:
 * is_change[i] tells whether that changed anything.  Otherwise as add() of struct form. */
int own_add_to_window(void *filter, const struct perhaps_key *items, size_t n,
                      bool *was_present, bool *is_change, size_t *done);

/* Makes a Bloom filter smaller, as far as its rate stays at most 'fpr' (0: what it was asked for).
 * Returns 0, and sets *freed_nbytes; or an error, having changed nothing. */
int own_shrink(void *filter, double fpr, uint64_t *freed_nbytes);

/* Adds all items of another Bloom filter.  Returns 0 or an error of perhaps_merge(), having
 * changed nothing. */
int own_merge(void *filter, const void *other);

/* ---- Between own.c and own_bytes.c -------------------------------------------------------- */

/* Pieces of a dump that LOADCHUNK has taken, until all are there. */
struct pieces {
    struct piece *first, *last;
    uint64_t nbytes; /* of all pieces */
    uint64_t of;     /* how many bytes the whole dump has */
};

struct own {
    perhaps_filter *filter; /* NULL: not all pieces are there */
    struct wish wish;
    uint8_t secret[SECRET_NBYTES];
    uint64_t items, deleted;
    uint64_t period_ms, began_ms; /* window: its newest generation, as the filter has it */
    uint64_t changes;             /* tells a dump that the filter is not what it was */
    struct pieces pieces;
};

struct own *own_new(void); /* NULL: too little memory */
void own_release(void *filter);
size_t own_memory_nbytes(const void *filter);

/* own_bytes.c: the operations of struct form */
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
void pieces_release(struct pieces *pieces);

#endif
