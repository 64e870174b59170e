/* perhaps_file.h - filters in files, pipes and elsewhere: save, open, check.
 *
 *     int error = perhaps_save(seen, "seen.perhaps");
 *     perhaps_filter *again;
 *     if (!error)
 *         error = perhaps_open("seen.perhaps", NULL, &again);
 *
 * A saved filter is mapped, and so is open at once, however large it is.  Several processes can
 * open a filter of a kind with PERHAPS_CAN_SHARE in PERHAPS_MODE_LIVE at once.  All of them
 * then add to the same mapped file, while any number of others have it open read-only.
 *
 * perhaps.h, which includes this header, tells of errors, threads and reserved members. */
#ifndef PERHAPS_FILE_H
#define PERHAPS_FILE_H

#include "perhaps.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the filter to 'path' (doc/FORMAT.md): to a temporary file beside it, which is then
 * synced and renamed, so that at every moment the old or the new filter is there as a whole.
 * Keeps the mode of an existing file, and a symbolic link, even one that leads nowhere yet.
 * Writes straight to a device or pipe.  Returns 0; or PERHAPS_ERR_IO (errno),
 * PERHAPS_ERR_MEMORY, or PERHAPS_ERR_DAMAGED for a damaged file that is mapped: the old file
 * is as it was, unless all was done but syncing the folder.  A live file (below) stays one,
 * with the new filter: that fails with PERHAPS_ERR_UNSUPPORTED if the filter takes no keys
 * later, and with an error of opening the old file to write.  If two save to one path at once,
 * each saves its filter whole, and the later one stays. */
PERHAPS_API int perhaps_save(const perhaps_filter *filter, const char *path);

/* Saves like perhaps_save(), but only if nothing is at 'path' yet.  Otherwise what is there
 * stays, and the error is PERHAPS_ERR_IO with errno EEXIST: of two that do this at once, one
 * succeeds. */
PERHAPS_API int perhaps_save_new(const perhaps_filter *filter, const char *path);

/* Returns whether perhaps_save() to 'path' replaces nothing but a filter: false if a regular
 * file is there that has other bytes.  perhaps_save() replaces that, too: ask before where a
 * person gives the path. */
PERHAPS_API bool perhaps_may_replace(const char *path);

/* Writes the bytes of the file to a descriptor, such as a pipe or socket, and does not sync it.
 * Returns 0; PERHAPS_ERR_IO (errno), and may have written a part; or PERHAPS_ERR_MEMORY. */
PERHAPS_API int perhaps_save_to(const perhaps_filter *filter, int fd);

/* Where the bytes of a filter go to: a file, a pipe, a blob in a database. */
struct perhaps_sink {
    /* Takes all 'nbytes' bytes and returns 0; or ends the writing with a negative error, of
     * enum perhaps_error or of its own. */
    int (*write)(void *context, const void *bytes, size_t nbytes);
    void *context;
};

/* Writes the bytes of the file to a sink, in their order.  Returns 0, PERHAPS_ERR_MEMORY, or
 * the error of the sink, which may have taken a part by then. */
PERHAPS_API int perhaps_write(const perhaps_filter *filter, const struct perhaps_sink *sink);

/* Returns how many bytes perhaps_write() writes. */
PERHAPS_API uint64_t perhaps_write_nbytes(const perhaps_filter *filter);

/* Writes some of the bytes of perhaps_write(): those from number 'first' on, at most 'nbytes'
 * of them; none if there are no more.  So a filter can be sent in pieces, which together are
 * the filter if it was not changed meanwhile.  Bodies before and behind these bytes are not
 * read, once a mapped file was checked.  But the checksums are the last bytes, 8 for each page
 * of PERHAPS_PAGE_NBYTES and 8 for themselves, and a call that writes any of them reads all
 * bodies.  Returns what perhaps_write() returns. */
PERHAPS_API int perhaps_write_range(const perhaps_filter *filter, uint64_t first,
                                    uint64_t nbytes, const struct perhaps_sink *sink);

enum perhaps_mode {
    PERHAPS_MODE_READ = 0, /* mapped, and read only: nothing is copied */
    PERHAPS_MODE_LOAD,     /* copied to memory, and may be changed there */
    PERHAPS_MODE_LIVE,     /* mapped and written in place, with other processes: see below */
    PERHAPS_MODE_JOURNAL,  /* changed in memory, and on the disk by a journal: "Live files" */
};

struct perhaps_open_options {
    enum perhaps_mode mode;
    bool check; /* PERHAPS_MODE_READ: checks each page before its first use, see below */
    bool without_secret; /* to inspect, verify or merge: perhaps_contains() is always true */
    bool shared;         /* PERHAPS_MODE_LOAD, _JOURNAL: as in struct perhaps_options */
    struct perhaps_hashing hashing; /* secret, or function and context; the file has the rest */
    const struct perhaps_allocator *allocator;

    /* PERHAPS_MODE_JOURNAL: the size of the journal at which the file is saved anew, in the
     * background.  0: 64 MiB, or the size of the file if that is more. */
    uint64_t journal_nbytes;

    /* PERHAPS_MODE_JOURNAL, for those who do something else before what they added may be
     * remembered: so many records, at most 2^25, are kept in memory until perhaps_sync() writes
     * them, and then the file is saved anew if it is time for that.  perhaps_journal_of() tells
     * how many still have room; where none has, some are written before.  perhaps_free()
     * writes none.  0: records are written when there are many. */
    uint64_t journal_records;
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Opens a saved filter; 'options' NULL: PERHAPS_MODE_READ.  Mapping a file (PERHAPS_MODE_READ)
 * checks its header and checksum table, and perhaps_verify() the rest; loading it checks every
 * byte.  If somebody else writes into a mapped file, its answers change; if somebody truncates
 * it, the process ends with SIGBUS.  (perhaps_save() does neither: it replaces the file.)
 *
 * PERHAPS_MODE_LIVE maps the file and writes it in place.  Any number of threads and processes
 * may do so at once: what one has added all find at once, those that read only, too.  The first
 * to open the file checks every byte.  As long as it is open in this mode its body has no
 * checksums (perhaps_verify() returns PERHAPS_ERR_UNSUPPORTED): the last process to close it
 * writes them, or after a crash the next.  If a process dies, nothing that it added is lost; if
 * the system dies, what was added after the last perhaps_sync() is.  perhaps_save() to the same
 * path replaces the file: those that have it open go on with the old one.  Opening reserves
 * room on the disk for holes, and for blocks that another file shares (cp --sparse, --reflink),
 * or fails with PERHAPS_ERR_IO (ENOSPC).  Where the file system cannot reserve room, or takes
 * new room for each write as btrfs does, a full disk ends the process with SIGBUS.
 *
 * 'check' is for files that somebody may overwrite, and for disks that are not to be trusted.
 * perhaps_contains*() and perhaps_count*() compare each page with its checksum before they
 * first read from it.  For a key on a damaged page the answer is "perhaps" and the count
 * PERHAPS_ERR_DAMAGED, and perhaps_checked() tells of the page.  A page takes about 10
 * microseconds, once, and each question a little more.
 *
 * With or without 'check', what is copied from a mapped file gets new checksums, and must not
 * hide damage.  So perhaps_clone(), _save*(), _write(), _to_bytes(), _shrink(), _compare(),
 * _merge() and _intersect() with such a file as 'other', and the first of _write_range() and
 * _body_read(), compare all pages with their checksums, and return PERHAPS_ERR_DAMAGED, having
 * done nothing, if one differs.
 *
 * Returns 0 and sets *filter; or sets it to NULL and returns PERHAPS_ERR_IO (errno), _FORMAT,
 * _VERSION, _DAMAGED, _SECRET, _MEMORY, _UNSUPPORTED (live, for a kind without
 * PERHAPS_CAN_SHARE; or 'check', for a file that is being written in place), or _ARGUMENT for
 * an unknown mode. */
PERHAPS_API int perhaps_open(const char *path, const struct perhaps_open_options *options,
                             perhaps_filter **filter);

/* Where the bytes of a filter come from. */
struct perhaps_source {
    /* Gives the next 'nbytes' bytes, all of them, and returns 0; or ends the reading with a
     * negative error: PERHAPS_ERR_DAMAGED if there are fewer, or another one. */
    int (*read)(void *context, void *bytes, size_t nbytes);
    void *context;
    uint64_t nbytes; /* how many bytes there are in all; 0: not known */
};

/* Reads into memory what perhaps_write() or perhaps_save() wrote, and checks every byte.  Reads
 * no byte behind the last one of the filter: others may follow.  'options' NULL:
 * PERHAPS_MODE_LOAD, the only mode that there is for a source.
 *
 * The header tells how much memory the filter takes.  If the source tells how many bytes there
 * are, a header that claims more is refused before anything is allocated.  If it does not, an
 * enemy's header may claim a huge body: the allocator of the options can refuse it.
 *
 * Returns 0 and sets *filter; or returns the error of the source or one of perhaps_open(), and
 * sets *filter to NULL. */
PERHAPS_API int perhaps_read(const struct perhaps_source *source,
                             const struct perhaps_open_options *options,
                             perhaps_filter **filter);

/* Makes a filter of bytes in memory, which are what perhaps_write() or perhaps_save() wrote:
 * all of it, and nothing more.  'options' NULL: PERHAPS_MODE_LOAD, which copies the bytes and
 * checks them all.
 *
 * PERHAPS_MODE_READ copies nothing, and checks the header and the checksum table, as it does
 * with a file: the filter reads the bytes where they are.  They must begin at a multiple of
 * PERHAPS_ALIGNMENT, and may not change before the filter is freed.
 *
 * Returns 0 and sets *filter; or sets it to NULL and returns PERHAPS_ERR_FORMAT, _DAMAGED (also
 * for bytes that are too many), _VERSION, _SECRET, _MEMORY, _UNSUPPORTED ('check'), or
 * _ARGUMENT for another mode or bytes that are not aligned. */
PERHAPS_API int perhaps_from_bytes(const void *bytes, size_t nbytes,
                                   const struct perhaps_open_options *options,
                                   perhaps_filter **filter);
#define PERHAPS_ALIGNMENT 64

/* Writes the bytes of the file to memory: 'nbytes' is what perhaps_write_nbytes() returns.
 * Returns 0; PERHAPS_ERR_MEMORY; or PERHAPS_ERR_ARGUMENT for another number of bytes. */
PERHAPS_API int perhaps_to_bytes(const perhaps_filter *filter, void *bytes, size_t nbytes);

/* Makes sure that all that was done to the filter by calls that have returned is on the disk.
 * For filters that are open in PERHAPS_MODE_JOURNAL or _LIVE; any thread or process may add
 * meanwhile, and of threads that sync at once one waits for the disk and the others for it.
 * Returns 0; PERHAPS_ERR_IO (errno); PERHAPS_ERR_JOURNAL if a live file or its journal was
 * removed, renamed or replaced meanwhile, which is final; or PERHAPS_ERR_UNSUPPORTED for other
 * filters. */
PERHAPS_API int perhaps_sync(perhaps_filter *filter);

/* ---- Live files ---------------------------------------------------------------------- */

/* A live file F has a journal beside it, F.journal, in which all that is done to the filter is
 * recorded before perhaps_sync() returns.  What perhaps_sync() has acknowledged survives the
 * end of the process and of the system at any moment: whoever opens F next finds F as it was
 * saved last, and does to it what the journal records, in memory.  What was not acknowledged
 * is there up to some moment, or not at all.  It is a write-ahead log with redo records only
 * (Mohan et al.: ARIES, TODS 1992), and group commit (Gawlick, Kinkade: Varieties of
 * Concurrency Control in IMS/VS Fast Path, 1985).
 *
 * perhaps_open() with PERHAPS_MODE_JOURNAL makes a saved file live, once, by saving it anew; or
 * opens a live one.  For every kind that takes keys as they come.  The keys, removals, clears
 * and rotations of the filter are recorded; perhaps_merge() and perhaps_intersect() are
 * PERHAPS_ERR_UNSUPPORTED.  A key takes 8 or 16 bytes of the journal, by the hash, and one
 * that changes nothing takes none.
 * - One process writes: another one gets PERHAPS_ERR_IO with EBUSY.
 * - Any number of processes read (PERHAPS_MODE_READ, _LOAD, even without the right to write).
 *   They find what was acknowledged before they called perhaps_open() or perhaps_refresh().
 * - Any number of threads may add, remove and sync at once: they change the filter one after
 *   the other.  To ask it meanwhile, open it 'shared'.
 * - An add or removal fails with PERHAPS_ERR_IO (errno) if the journal has no room on the disk,
 *   and then has done nothing (of many keys, *done were added or removed before).  Room is
 *   reserved before a call returns, so a full disk is not met later; but some file systems
 *   cannot do that, such as ext2, and there writing meets it.
 * - Once the system has failed to write or sync, it is not known what is on the disk: all
 *   later changes and syncs fail with the same errno.  Close the filter, and open it again.
 * - When the journal has grown to 'journal_nbytes' the file is saved anew in the background,
 *   for which the filter is copied, and a new journal begins.  If that fails, it is tried
 *   again, and the journal grows to twice that size; then adds fail.
 * - A process that is killed while it saves may leave a file .F.XXXXXXXX, which can be removed.
 * - perhaps_free() writes and syncs what is left ('journal_records': drops it).  A child of
 *   fork() may only free the filter.
 *
 * - Opening the file to write after a crash copies the journal, for which there must be room.
 * - F and F.journal are renamed, copied and removed together, while nobody writes.  Copies of
 *   both may go on separately: the file of one with the journal of the other is refused.
 * - The journal gets the owner and mode of F when F is opened to write or saved anew.
 *
 * Errors of perhaps_open() beyond its others: PERHAPS_ERR_JOURNAL if the journal is missing or
 * belongs to another file, or another copy; PERHAPS_ERR_DAMAGED if it has a hole or lacks
 * records; and PERHAPS_ERR_IO with EEXIST if the file is to become live, and F.journal is there
 * and may be of use to somebody: to a file that was renamed. */

/* Returns whether the file at 'path' is live.  Reads its header, and checks nothing: false for
 * what is no filter file, too. */
PERHAPS_API bool perhaps_is_live(const char *path);

/* Returns whether a file at 'path', which need not be there yet, can become live, or is:
 * nothing lies at the place of its journal that may be of use to somebody.  For those who work
 * long before they save it.  Another process may change that at any time. */
PERHAPS_API bool perhaps_may_become_live(const char *path);

/* Saves a live file anew, with all that was done, and begins a new journal: then the next one
 * to open it has nothing to do again.  Other calls wait meanwhile.  Returns 0; or an error of
 * perhaps_save() or perhaps_sync(), PERHAPS_ERR_DAMAGED if a page of the file is damaged, or
 * PERHAPS_ERR_UNSUPPORTED for a filter that is not open in PERHAPS_MODE_JOURNAL; then file and
 * journal are as they were, or as good. */
PERHAPS_API int perhaps_checkpoint(perhaps_filter *filter);

/* Has a filter that was opened from a live file in PERHAPS_MODE_READ find what was acknowledged
 * since: does what the journal records meanwhile, or opens the file again if it was saved anew.
 * 'path' and 'options' are those that it was opened with; *filter may become another one.  No
 * other call may run meanwhile.  Returns 0, an error of perhaps_open(), or
 * PERHAPS_ERR_UNSUPPORTED for other filters.  On an error *filter has some of it, or none. */
PERHAPS_API int perhaps_refresh(perhaps_filter **filter, const char *path,
                                const struct perhaps_open_options *options);

/* What there is to tell of a journal. */
struct perhaps_journal {
    uint64_t nbytes;  /* its size */
    uint64_t records; /* those that the file does not have yet */
    uint64_t last;    /* the number of the last record since the file became live */
    uint64_t synced;  /* the number of the last one that perhaps_sync() has acknowledged */
    uint64_t room;    /* how many more fit in memory before some are written; readers: 0 */
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Tells of the journal of a live file that is open in PERHAPS_MODE_READ or _JOURNAL.  For
 * readers 'synced' is 'last'.  Returns 0, or PERHAPS_ERR_UNSUPPORTED for other filters. */
PERHAPS_API int perhaps_journal_of(const perhaps_filter *filter,
                                   struct perhaps_journal *journal);

/* ---- Smaller files ------------------------------------------------------------------- */

/* How a file is made smaller.  Zero is the default in every member. */
struct perhaps_shrink_options {
    double fpr; /* that the small filter shall keep; 0: that of the filter */

    /* From where the filter is mapped.  The file is then read instead of its mapping, which is
     * up to four times as quick.  NULL, or another file, or one that cannot be opened: the
     * mapping is read. */
    const char *file;

    /* Are called often meanwhile. */
    bool (*stopped)(void *context); /* true ends the call with PERHAPS_ERR_STOPPED */
    void (*progress)(void *context, uint64_t done_nbytes, uint64_t total_nbytes); /* read */
    void *context;
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Write the file that perhaps_save(), perhaps_save_new() and perhaps_write() would write of
 * what perhaps_shrink() makes, byte for byte, but never have that as a whole in memory: they
 * fold the filter piece by piece, first to find how small it may be, and once more to write it.
 * 'options' may be NULL.  If the filter is mapped from a file (PERHAPS_MODE_READ), every page
 * is compared with its checksum before anything is written, and its memory given back to the
 * system after it was read; 'path' may be that of this file, which is replaced.
 *
 * Return 0, or an error of perhaps_shrink(), perhaps_save() or the sink; PERHAPS_ERR_DAMAGED;
 * PERHAPS_ERR_STOPPED; or PERHAPS_ERR_IO (errno), also for pages that the disk does not give,
 * and with EBUSY for a file that was opened to be read while somebody writes it in place.  On
 * failure there is no new file, and the old one is as it was; a sink takes nothing before all
 * pages were found to be sound. */
PERHAPS_API int perhaps_shrink_save(const perhaps_filter *filter,
                                    const struct perhaps_shrink_options *options,
                                    const char *path);
PERHAPS_API int perhaps_shrink_save_new(const perhaps_filter *filter,
                                        const struct perhaps_shrink_options *options,
                                        const char *path);
PERHAPS_API int perhaps_shrink_write(const perhaps_filter *filter,
                                     const struct perhaps_shrink_options *options,
                                     const struct perhaps_sink *sink);

/* Sets *fpr to the least one with which perhaps_shrink() makes the filter smaller, computed
 * from all its bits; 0 if it becomes smaller with none.  It is the fpr of half the filter, or
 * of the next smaller one that there is.  Reads the whole filter.  'fpr' of the options is not
 * used.  Returns 0; an error of perhaps_shrink_save(); or PERHAPS_ERR_UNSUPPORTED for chains,
 * too. */
PERHAPS_API int perhaps_shrink_least_fpr(const perhaps_filter *filter,
                                         const struct perhaps_shrink_options *options,
                                         double *fpr);

#define PERHAPS_PAGE_NBYTES 65536

/* What checksums have shown. */
struct perhaps_verdict {
    uint64_t pages;         /* how many pages of PERHAPS_PAGE_NBYTES were checked */
    uint64_t damaged;       /* how many of these have a wrong checksum */
    uint64_t first_damaged; /* where in the file the first of these begins, in bytes */
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Compares every page of a mapped filter with its checksum.  Returns 0, PERHAPS_ERR_DAMAGED, or
 * PERHAPS_ERR_UNSUPPORTED for a filter that is not mapped, or that is being written in
 * place. */
PERHAPS_API int perhaps_verify(const perhaps_filter *filter, struct perhaps_verdict *verdict);

/* Tells what 'check' has found so far: how many pages were read, and which are damaged.
 * Returns 0; PERHAPS_ERR_DAMAGED, and then answers "perhaps" may be due to the damage; or
 * PERHAPS_ERR_UNSUPPORTED for a filter that was not opened with 'check', or that somebody
 * opened to write in place meanwhile, so that nothing is certain. */
PERHAPS_API int perhaps_checked(const perhaps_filter *filter, struct perhaps_verdict *verdict);

#ifdef __cplusplus
}
#endif
#endif
