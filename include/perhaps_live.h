/* perhaps_live.h - live files: what was synced survives a crash of the system.
 *
 *     struct perhaps_open_options options = { .mode = PERHAPS_MODE_JOURNAL };
 *     int error = perhaps_open("seen.perhaps", &options, &seen);
 *     if (!error)
 *         error = perhaps_add(seen, url, strlen(url));
 *     if (!error)
 *         error = perhaps_sync(seen);
 *
 * A file becomes live when it is opened so for the first time. */
#ifndef PERHAPS_LIVE_H
#define PERHAPS_LIVE_H

#include <perhaps_file.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* Makes sure that all that was done to the filter by calls that have returned is on the disk.
 * For filters that are open in PERHAPS_MODE_JOURNAL or _LIVE; any thread or process may add
 * meanwhile, and of threads that sync at once one waits for the disk and the others for it.
 * Returns 0; PERHAPS_ERR_IO (errno); PERHAPS_ERR_JOURNAL if a live file or its journal was
 * removed, renamed or replaced meanwhile, which is final; or PERHAPS_ERR_UNSUPPORTED for other
 * filters. */
PERHAPS_API int perhaps_sync(perhaps_filter *filter);

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

#ifdef __cplusplus
}
#endif
#endif
