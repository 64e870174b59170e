/* hooks.h - what a store hangs on a filter: the file that it is mapped from, checks of its
 * pages, and the journal that records what is done. */
#ifndef HOOKS_H
#define HOOKS_H

#include "../base/keyhash.h"
#include <perhaps.h>

/* How a file is mapped: as it was saved; or what is written to it stays in memory, and the file
 * as it was saved is mapped a second time, behind it; or what is written goes to the file. */
enum mapped_how { MAPPED_AS_SAVED, MAPPED_IN_MEMORY, MAPPED_IN_PLACE };

/* A file that the body is mapped from.  That of a filter whose body lies in allocated memory is
 * nothing_mapped, to which nobody writes. */
struct mapping {
    uint8_t *file; /* NULL: nothing is mapped, or not yet */
    size_t file_nbytes;
    size_t pages_offset; /* where the pages begin that have checksums */
    size_t table_offset; /* where they end and the table of checksums begins; or counters */
    int fd;              /* MAPPED_IN_PLACE: of the file; its lock is held by it */
    long process;        /* which process opened it */
    enum mapped_how how : 8;
    bool small : 1; /* one checksum is for the whole file, and it has one page */
    bool large : 1; /* so batches have the system read pages before */
    uint8_t sound;  /* 1: all pages have their checksums; by atomics: threads look at once */
    uint8_t warm_steps;    /* so many of them need not, since it was in memory; by atomics */
    uint32_t singles_left; /* so many keys are asked for singly, and then the system reads more
                            * than the page of each; by atomics (src/store/cold.c) */
    const struct mapping_calls *calls;
};

/* Keys in the order in which they lie in a file. */
enum { FETCHED_NBITS = 17 };

struct fetched {
    struct keyhash *hash; /* of the keys as they came */
    uint64_t *order;      /* the low FETCHED_NBITS bits are the number of the next key */
    size_t count;         /* of keys */
    void *memory;         /* in which all that lies; NULL: nothing */
    size_t memory_nbytes;
};

struct mapping_calls {
    /* Compares all pages with their checksums; if 'once', not where they were found sound
     * before.  Returns 0 or PERHAPS_ERR_DAMAGED. */
    int (*check)(const perhaps_filter *f, bool once);

    /* Unmaps the file, and releases all that belongs to the mapping. */
    void (*release)(perhaps_filter *f);

    /* Has the system read the pages of a large file that n keys need, which the hash takes, if
     * they are not in memory: keys first .. first+n-1.  Returns for how many of these keys it
     * has done so, or need not: at least one of them.  For a file that is not in memory it
     * also sorts these keys, if 'sorted' is not NULL; it begins as zeros, and the caller has
     * forget() release it. */
    size_t (*fetch)(const perhaps_filter *f, const struct perhaps_keys *keys, size_t first,
                    size_t n, struct fetched *sorted);
    void (*forget)(struct fetched *sorted);

    /* Has the system read the bytes of a large file that perhaps_stats_of() looks at. */
    void (*fetch_sample)(const perhaps_filter *f);

    /* Is told of n keys that are asked for one by one, while 'singles_left' is not 0. */
    void (*count_singles)(const perhaps_filter *f, uint32_t n);
};

/* Checks bytes of the body before an answer is read from them: pages of a file that may be
 * damaged (src/store/check.c). */
struct guard {
    /* Returns whether all bytes from which the answer for a key is read are sound. */
    bool (*is_sound)(const perhaps_filter *f, const struct keyhash *key);

    /* Asks the kind, and sets the answer to true for a key whose answer would be read from
     * damaged bytes.  Returns how many answers are true. */
    size_t (*contains)(const perhaps_filter *f, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool *answer);

    /* Widens a range of bytes of the file, from 'at' to before 'end', by what is read to check
     * them. */
    void (*widen)(const perhaps_filter *f, uint64_t *at, uint64_t *end);

    /* Returns for how many bytes f->checked was allocated. */
    uint64_t (*checked_nbytes)(const perhaps_filter *f);
};

/* What a guard knows. */
struct checked {
    const struct guard *guard;
    uint64_t count;  /* of pages */
    uint8_t unsure;  /* a process began to write the file in place: its checksums are void */
    uint8_t state[]; /* of each page */
};

/* What is done with a filter, as a journal records it (src/store/journal.h).  The numbers never
 * change. */
enum deed {
    DEED_ADD = 1,        /* of a hashed key, and so are the next two */
    DEED_ADD_ABSENT = 2, /* unless it is present */
    DEED_REMOVE = 3,
    DEED_CLEAR = 4,
    DEED_ROTATE = 5,
    DEED_ADVANCE = 6,  /* to a time: the place of the hash */
    DEED_BRANCH = 7,   /* none: a writer begins a branch of the journal (journal.h) */
    DEED_SET_BACK = 8, /* to a time, too */
};

/* How a filter is changed: at once (filter_plain, change.c), or by a journal, which records
 * what is done (store/record.c).  On an error nothing was done, or as much as the error
 * says. */
struct changer {
    /* Adds n hashed keys and counts them, for a public call: filter_add_keys() (filter.h). */
    int (*add)(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
               size_t n, bool unless_present, bool *answer, size_t *done);

    /* Removes n hashed keys, for a public call, and sets *removed to how many there were:
     * filter_remove_keys() (filter.h).  Returns 0, or an error with which none was removed. */
    int (*remove)(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
                  size_t n, bool *answer, size_t *removed);

    /* Clears the filter, or moves a window: filter_change() (filter.h). */
    int (*change)(perhaps_filter *f, enum deed deed, uint64_t time);

    /* Ends all that, before anything of the filter is released.  NULL: there is nothing to
     * end. */
    void (*close)(perhaps_filter *f);

    /* It has a lock of its own, under which several threads change the filter key by key, one
     * after the other.  Whoever does not hold it looks at nothing that they change. */
    bool locked;
};

extern const struct changer filter_plain;
extern const struct mapping nothing_mapped;

#endif
