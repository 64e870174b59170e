/* secretive.h - filters with a secret that tests know, and a search for it: for the tests that
 * it is nowhere else. */
#ifndef SECRETIVE_H
#define SECRETIVE_H

#include <pthread.h>

#include "support.h"
#include <perhaps_embed.h>
#include <perhaps_plan.h>

enum { SECRET_NBYTES = 16 };
extern const uint8_t known_secret[SECRET_NBYTES];

/* Returns whether these bytes hold a half of the secret, or what SipHash makes of a half before
 * it begins. */
bool holds_secret(const void *memory, size_t nbytes);

/* ---- Filters ----------------------------------------------------------------------------- */

enum { SECRETIVE_KEYS = 300 };

/* Returns options for so many keys, with the hash sip and the secret. */
struct perhaps_hashing secretive_hashing(void);
struct perhaps_options secretive_options(const struct perhaps_kind *kind);

/* Makes a filter of these options and keys, or builds one. */
perhaps_filter *secretive_filter(const struct perhaps_kind *kind,
                                 const struct perhaps_keys *keys);

/* ---- An allocator that looks at what is released ----------------------------------------- */

enum { BLOCKS_MOST = 4096 };

/* Keeps what is released, so that it can be looked at once more when all is over. */
struct watch {
    pthread_mutex_t lock; /* a builder calls from several threads */
    struct {
        uint8_t *memory;
        size_t nbytes;
        bool released;
    } block[BLOCKS_MOST];
    size_t nblocks, calls, fail_at; /* which call returns NULL, from 1 on; 0: none */
    bool leaked;                    /* something that was released held the secret */
    bool blind;                     /* looks at nothing: a search leaves traces on the stack */
};

void watch_begin(struct watch *w);
struct perhaps_allocator watch_allocator(struct watch *w);

/* Gives another block for this one and releases it, for perhaps_relocate(); 'context' is the
 * watch. */
void *watch_move(void *context, void *memory, size_t nbytes);

/* Forgets the blocks from number 'first' on.  Returns whether all of them were released, and
 * none of them holds the secret or ever did. */
bool watch_is_clean(struct watch *w, size_t first);

#endif
