/* perhaps_remote.h - asks a filter file that is far away, and of which little is read.
 *
 * A file of 30 GB on a web server is asked for the few bytes in which a key would lie: a line
 * of 64 bytes, or two places.  The library does no networking: it tells which ranges of the
 * file it needs, and the caller brings their bytes from wherever they are.
 *
 *     perhaps_remote_new(NULL, &remote);
 *     perhaps_remote_bring(remote)            the caller's loop: see perhaps_remote_needs()
 *     perhaps_remote_ask(remote, &keys, 0, keys.count, &asked);
 *     perhaps_remote_bring(remote)
 *     perhaps_remote_answers(remote, present)
 *
 * Any bytes are safe: what makes no filter is refused, as by perhaps_open(), and wrong bytes of
 * a body can only give wrong answers.  With 'check' whole pages of PERHAPS_PAGE_NBYTES are
 * brought, and compared with their checksums.  The caller looks whether all bytes are of the
 * same file (by ETag, for example): a file that was changed meanwhile answers wrongly.
 *
 * Kinds: all but elastic (and what is made of it), which keeps in its body where its segments
 * are.  A live file (perhaps_live.h) is refused with PERHAPS_ERR_JOURNAL, since what its
 * journal has would be missed.
 *
 * The calls for one remote filter are made one after the other; different ones may be used by
 * different threads at once. */
#ifndef PERHAPS_REMOTE_H
#define PERHAPS_REMOTE_H

#include <perhaps_file.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct perhaps_remote perhaps_remote;

struct perhaps_remote_options {
    bool check;                     /* compare all bytes with the checksums of the file */
    bool without_secret;            /* to inspect: nothing can be asked */
    struct perhaps_hashing hashing; /* secret, or function and context; the file has the rest */
    const struct perhaps_allocator *allocator; /* NULL: the system's; else it must outlive it */

    /* Ranges that lie no further apart than so many bytes become one.  0: 4 KiB, which takes a
     * usual connection less time than the headers of one more request. */
    uint64_t gap_nbytes;
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Bytes of the file: 'nbytes' of them, from number 'at' on. */
struct perhaps_range {
    uint64_t at;
    uint64_t nbytes;
};

/* Begins to open a file, of which nothing is known.  'options' NULL: all as said above.
 * Returns 0 and sets *remote; or sets it to NULL and returns PERHAPS_ERR_MEMORY, or
 * PERHAPS_ERR_ARGUMENT for reserved members that are not 0. */
PERHAPS_API int perhaps_remote_new(const struct perhaps_remote_options *options,
                                   perhaps_remote **remote);

/* Releases all that.  NULL is allowed. */
PERHAPS_API void perhaps_remote_free(perhaps_remote *remote);

/* Returns the ranges that are needed next, and sets *count to how many they are: sorted, and
 * none meets another.  Valid until perhaps_remote_next() or perhaps_remote_ask().  *count is 0
 * if nothing is needed: the file is open, or the keys are answered, or a call has failed. */
PERHAPS_API const struct perhaps_range *perhaps_remote_needs(const perhaps_remote *remote,
                                                             size_t *count);

/* Tells how many bytes the file has, as soon as that is known: at the latest before the first
 * perhaps_remote_next().  Shortens the first range, if the file is shorter.  Returns 0, or
 * PERHAPS_ERR_DAMAGED for another number than before. */
PERHAPS_API int perhaps_remote_size(perhaps_remote *remote, uint64_t file_nbytes);

/* Takes the next 'nbytes' bytes of the needed range of this number, which may come in pieces,
 * beside pieces of other ranges.  Returns 0; or PERHAPS_ERR_ARGUMENT, having taken nothing, if
 * the range has not so many bytes more, or if there is no such range. */
PERHAPS_API int perhaps_remote_take(perhaps_remote *remote, size_t number, const void *bytes,
                                    size_t nbytes);

/* Goes on, when all bytes of all ranges were taken: other ranges may be needed now, in a few
 * rounds at most.  Returns 0; PERHAPS_ERR_ARGUMENT, and nothing has changed, if bytes are
 * missing or the size of the file is not known; or PERHAPS_ERR_MEMORY or _DAMAGED.  While the
 * file is opened also PERHAPS_ERR_FORMAT, _VERSION, _SECRET, _JOURNAL for a live file, or
 * _UNSUPPORTED for a kind that cannot be asked so, or with 'check' for a file that is being
 * written in place.  If the file was open, it can be asked again after an error; if not, it can
 * only be freed. */
PERHAPS_API int perhaps_remote_next(perhaps_remote *remote);

/* Begins to ask for keys first .. first+n-1, once the file is open; what was asked for before
 * is forgotten.  Sets *asked to for how many of them, from the first on, it does so: fewer
 * where their bytes would be too many at once, but at least one.  The keys are hashed at once,
 * and need not stay.  Returns 0; PERHAPS_ERR_ARGUMENT if the file is not open, or n is 0;
 * PERHAPS_ERR_SECRET if it was opened without its secret; or PERHAPS_ERR_MEMORY or
 * _DAMAGED. */
PERHAPS_API int perhaps_remote_ask(perhaps_remote *remote, const struct perhaps_keys *keys,
                                   size_t first, size_t n, size_t *asked);

/* Sets present[i] to what perhaps_contains() would answer for key first + i, when no ranges are
 * needed any more.  Returns 0, or PERHAPS_ERR_ARGUMENT if some are, or no keys were asked
 * for. */
PERHAPS_API int perhaps_remote_answers(const perhaps_remote *remote, bool *present);

/* Tells what the header of the file does, once it is open: 'load' and what else is measured in
 * a body is 0, and 'fpr_now' is predicted from the number of keys.  Returns 0, or
 * PERHAPS_ERR_ARGUMENT if it is not open. */
PERHAPS_API int perhaps_remote_stats_of(const perhaps_remote *remote,
                                        struct perhaps_stats *stats);

/* Returns the note of the file (perhaps_note()), once it is open; before that "".  Valid as
 * long as the remote filter. */
PERHAPS_API const char *perhaps_remote_note(const perhaps_remote *remote);

/* Returns the size of the file, or 0 if it is not known. */
PERHAPS_API uint64_t perhaps_remote_nbytes(const perhaps_remote *remote);

#ifdef __cplusplus
}
#endif
#endif
