/* builder.h - a builder, for the files of this folder. */
#ifndef BUILDER_H
#define BUILDER_H

#include <errno.h>
#include <perhaps_build.h>
#include <perhaps_embed.h>
#include <perhaps_file.h>

#include "../core/plan.h"
#include "../pile/pile.h"
#include "../store/store.h"
#include "groups.h"

struct perhaps_builder {
    struct perhaps_options options;
    struct perhaps_build_options how;
    struct perhaps_allocator allocator;
    struct hasher hasher;
    char note[PERHAPS_NOTE_MAX + 1]; /* of the hasher */
    const struct filter_kind *kind; /* whose keys wait in the pile; NULL: 'filter' takes them */
    bool knows_capacity;            /* the caller told how many keys there will be */
    bool finished;
    int error, reason; /* the first error, and its errno: since then keys are missing */

    perhaps_filter *filter; /* with the keys so far */
    bool stores_copies;
    perhaps_bulk *bulk; /* adds them; NULL: unless they are there */

    struct pile pile; /* of their hashes */

    /* If there is no file, the keys of the pile go to 'filter' when it takes too much memory.
     * Those who put keys on the pile share this lock; who uses the filter has it alone. */
    struct rwlock moving;
    uint64_t moved;  /* how many keys were given to that filter, or from the pile to it */
    uint64_t folded; /* by what factor it was folded */

    char *folder;
    uint64_t done, total; /* for progress() */

    /* For a kind that is exact against others. */
    struct mutex lock;
    perhaps_filter *first; /* part of all listed keys; NULL: not built yet */
    struct pile others;    /* those that the first part takes for listed; a value of 1 */
    uint64_t nothers;

    /* If keys have groups, all of these keys are on the pile. */
    struct groups groups;
    uint64_t nlisted;
    bool counted; /* the groups of listed keys are: no more of them may come */
};

/* Returns whether the kind has two parts, the second of which is built against other keys. */
static inline bool has_others(const perhaps_builder *b)
{
    return b->kind && b->kind->builds && b->kind->composite;
}

/* Returns whether the keys wait in the pile only until it is known how many there are: the kind
 * is not built once, and takes them then. */
static inline bool is_sized(const perhaps_builder *b)
{
    return b->kind && !b->kind->builds;
}

/* Notes the first error, with its errno.  Returns that one, and sets errno. */
static inline int builder_note(perhaps_builder *b, int error)
{
    if (error && !b->error) {
        b->error = error;
        b->reason = errno;
    }
    if (b->error)
        errno = b->reason;
    return b->error;
}

/* ---- make.c ---------------------------------------------------------------------------- */

/* Begins an empty pile. */
void builder_begin_pile(perhaps_builder *b);

/* Hashes keys and puts them on a pile, with their values if it takes any; 'value' NULL: 0. */
int builder_pile_keys(perhaps_builder *b, struct pile *pile, const struct perhaps_keys *keys,
                      const uint32_t *value);

/* Sets *keys to how many different keys a settled pile has, or to up to a 2000th more. */
int builder_count(perhaps_builder *b, const struct pile *pile, uint64_t *keys);

/* What is built: of which pile, and how. */
struct plan {
    const struct filter_kind *kind;
    const struct pile *pile;
    struct geometry g;
    bool flips; /* the value of a record is added to its row */
};

/* Makes a filter by calling put() to build it, again and again if crafted keys need a larger
 * one.  Returns 0 or an error. */
int builder_make(perhaps_builder *b, struct plan *plan, bool with_body,
                 int (*put)(void *context, perhaps_filter *f, struct plan *plan), void *context,
                 perhaps_filter **filter);

/* Writes the body of a filter that was made for the plan, to a sink or, if that is NULL, to its
 * memory; and completes its fields and counters. */
int builder_build_body(perhaps_builder *b, perhaps_filter *f, const struct plan *plan,
                       const struct perhaps_sink *sink);

/* A put() that builds the filter in memory; 'context' is the builder. */
int builder_put_in_memory(void *context, perhaps_filter *f, struct plan *plan);

/* Plans a ribbon of 'keys' keys with 'bits' bits each, a part of a filter, and builds it. */
int builder_make_part(perhaps_builder *b, const struct pile *pile, uint64_t keys, unsigned bits,
                      bool flips, perhaps_filter **part);

/* Gives a part to the filter, or releases it.  Returns 0 or PERHAPS_ERR_MEMORY. */
int builder_adopt(perhaps_filter *f, perhaps_filter *part);

/* Runs tasks whose hands are for pile_take(), by so many threads. */
int builder_take(perhaps_builder *b, const struct tasks *tasks, unsigned threads);

/* Tells the caller that so many more keys are dealt with, of b->total.  Returns 0 or
 * PERHAPS_ERR_STOPPED. */
int builder_tell(perhaps_builder *b, uint64_t nkeys);

/* ---- sized.c --------------------------------------------------------------------------- */

/* Begins the filter of these options, to which the keys are added as they come; releases it. */
int sized_begin(perhaps_builder *b, const struct perhaps_options *options);
void sized_end(perhaps_builder *b);

/* Adds keys to it, each once, or every time if copies are stored. */
int sized_add(perhaps_builder *b, const struct perhaps_keys *keys);

/* Adds keys to the pile where it has no file: keys that are too many for the memory go to a
 * filter that will be folded. */
int sized_pile_keys(perhaps_builder *b, const struct perhaps_keys *keys, const uint32_t *value);

/* Makes a filter that has room for the keys of the pile, and adds these; or folds the one that
 * already has them. */
int sized_finish(perhaps_builder *b);

/* ---- against.c ------------------------------------------------------------------------- */

/* Begins the pile of the others; releases it, and the first part. */
void against_begin(perhaps_builder *b);
void against_end(perhaps_builder *b);

/* Returns how many bytes of that pile go to the disk if so many keys are listed and as many
 * others come as the options say. */
uint64_t against_disk_nbytes(const perhaps_builder *b, uint64_t listed);

/* Makes the filter of both lists. */
int against_finish(perhaps_builder *b, perhaps_filter **filter);

/* ---- grouped.c ------------------------------------------------------------------------- */

/* Returns whether the keys have groups. */
static inline bool has_groups(const perhaps_builder *b)
{
    return b->options.against.group_nbytes > 0;
}

/* Do the same where they have. */
void grouped_begin(perhaps_builder *b);
void grouped_end(perhaps_builder *b);
int grouped_finish(perhaps_builder *b, perhaps_filter **filter);

/* Counts the groups of the listed keys, unless that is done.  Under the lock.  Returns 0, or
 * the first error of the builder. */
int grouped_count_listed(perhaps_builder *b);

/* Counts the groups of others, at most BATCH_STEP, and keeps them. */
int grouped_add_others(perhaps_builder *b, const struct keyhash *keys, size_t n);

#endif
