/* remote.h - a filter file that is far away: which of its bytes are needed, those that came,
 * and the filter that is made of its header.
 *
 * Work goes in rounds.  In a round ranges are wanted, sorted and joined; the caller brings
 * their bytes; and then it is looked at what is known now, which may want others.  All rounds
 * of a question are kept until the next one.
 *
 * Invariant: rounds before the last are complete, and with 'check' all their pages that were
 * wanted have their checksums. */
#ifndef REMOTE_H
#define REMOTE_H

#include "../filter/filter.h"
#include "../store/store.h"
#include <perhaps_remote.h>

/* No kind needs more: six layers of a ribbon, each seen after the one before, and its words. */
enum { ROUNDS_MOST = 10 };

/* The ranges of a round and their bytes, which lie one after the other. */
struct round {
    struct perhaps_range *range; /* sorted; none meets another */
    uint64_t *got;               /* how many bytes of each have come */
    uint64_t *offset;            /* where those of each begin in 'bytes' */
    size_t count;
    uint8_t *bytes, *memory; /* 'memory' has all that */
    uint64_t memory_nbytes;
};

/* Ranges that are wanted for the next round. */
struct wanted {
    struct perhaps_range *range;
    size_t count, room;
    uint64_t nbytes; /* of all of them */
};

enum stage {
    STAGE_HEADER, /* reads the header; 'head' grows */
    STAGE_BODIES, /* reads the bodies of composites, which tell of their parts */
    STAGE_OPEN,   /* can be asked */
    STAGE_ASKED,  /* keys wait for bytes */
    STAGE_ANSWERED,
    STAGE_FAILED, /* while it was opened */
};

/* A filter or a part, in the order of the file: behind the composite that it belongs to. */
struct node {
    const perhaps_filter *f;
    uint64_t at;     /* where in the file its body begins */
    uint32_t parent; /* the number of that composite */
    uint32_t index;  /* which part of it this is */

    /* Of the key that is asked for: */
    struct keyhash key;
    bool asked, says;
};

struct perhaps_remote {
    struct perhaps_allocator allocator;
    struct perhaps_open_options how; /* to open the header with */
    bool check;
    uint64_t gap_nbytes, file_nbytes; /* the file may be NBYTES_UNKNOWN */
    enum stage stage;

    struct head head; /* as in store.h; of a small file it has all bytes */
    struct section *sections;
    struct node *node; /* as many as sections */
    uint8_t *bodies;   /* of composites, one after the other, each in whole lines */
    uint64_t bodies_nbytes;
    perhaps_filter *filter;

    struct round round[ROUNDS_MOST];
    size_t rounds;
    struct wanted wanted;

    struct keyhash *hash; /* of the keys that are asked for */
    bool *takes;          /* whether the hash takes each */
    size_t nkeys, nkeys_room;
};

/* ---- rounds.c ---------------------------------------------------------------------------- */

/* Wants bytes of the file for the next round; with 'check', where they are in pages, these
 * pages and their checksums.  Returns 0 or PERHAPS_ERR_MEMORY. */
int rounds_want(perhaps_remote *r, uint64_t at, uint64_t nbytes);

/* Wants exactly these bytes, which nothing checks. */
int rounds_want_bare(perhaps_remote *r, uint64_t at, uint64_t nbytes);

/* Sorts and joins what is wanted, so that r->wanted tells how much that is.  Returns 0 or
 * PERHAPS_ERR_MEMORY. */
int rounds_join(perhaps_remote *r);

/* Begins a round with what is wanted.  Returns 0, PERHAPS_ERR_MEMORY, or PERHAPS_ERR_DAMAGED if
 * there were too many rounds. */
int rounds_begin(perhaps_remote *r);

/* Returns whether all bytes of the last round have come. */
bool rounds_complete(const perhaps_remote *r);

/* Compares the pages of the last round with their checksums, with 'check'.  Returns 0 or
 * PERHAPS_ERR_DAMAGED. */
int rounds_check(const perhaps_remote *r);

/* Returns bytes of the file that have come, or NULL. */
const uint8_t *rounds_find(const perhaps_remote *r, uint64_t at, uint64_t nbytes);

/* Forgets all rounds, and what is wanted. */
void rounds_forget(perhaps_remote *r);

/* ---- ask.c ------------------------------------------------------------------------------- */

/* Begins the next round for the keys, or finds that all is there.  Returns 0 or an error of
 * rounds_begin(). */
int ask_on(perhaps_remote *r);

/* Releases what was allocated to ask. */
void ask_end(perhaps_remote *r);

#endif
