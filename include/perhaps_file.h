/* perhaps_file.h - filters in files, pipes and memory: modes of opening, and checks of damage.
 *
 * A filter that perhaps_save() wrote is mapped by perhaps_open(), and so is open at once,
 * however large it is.  Several processes can write one file in place: those of a kind with
 * PERHAPS_CAN_SHARE, by PERHAPS_MODE_IN_PLACE.  All of them then add to the same mapped file,
 * while any number of others have it open read-only.  For a file that is safe at every moment,
 * with a journal, see perhaps_live.h. */
#ifndef PERHAPS_FILE_H
#define PERHAPS_FILE_H

#include <perhaps.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Save --------------------------------------------------------------------------- */

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
 * bodies.  So does each call for a filter with fewer bytes than such a page.  Returns what
 * perhaps_write() returns. */
PERHAPS_API int perhaps_write_range(const perhaps_filter *filter, uint64_t first,
                                    uint64_t nbytes, const struct perhaps_sink *sink);

/* ---- Open --------------------------------------------------------------------------- */

enum perhaps_mode {
    PERHAPS_MODE_READ = 0, /* mapped, and read only: nothing is copied */
    PERHAPS_MODE_LOAD,     /* copied to memory, and may be changed there */
    PERHAPS_MODE_IN_PLACE, /* mapped and written in place, with other processes: see below */
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

/* What perhaps_open() does in its modes.  Mapping a file (PERHAPS_MODE_READ, the default)
 * checks its header and checksum table, and perhaps_verify() the rest; loading it checks every
 * byte, and so does each mode with a file of less than PERHAPS_PAGE_NBYTES.  If somebody else
 * writes into a mapped file, its answers change; if somebody truncates it, the process ends
 * with SIGBUS.  (perhaps_save() does neither: it replaces the file.)
 *
 * PERHAPS_MODE_IN_PLACE maps the file and writes it in place.  Any number of threads and
 * processes may do so at once: what one has added all find at once, those that read only, too.
 * The first to open the file checks every byte.  As long as it is open in this mode its body
 * has no checksums (perhaps_verify() returns PERHAPS_ERR_UNSUPPORTED): the last process to
 * close it writes them, or after a crash the next.  If a process dies, nothing that it added is
 * lost; if the system dies, what was added after the last perhaps_sync() is.  perhaps_save() to
 * the same path replaces the file: those that have it open go on with the old one.  Opening
 * reserves room on the disk for holes, and for blocks that another file shares (cp --sparse,
 * --reflink), or fails with PERHAPS_ERR_IO (ENOSPC).  Where the file system cannot reserve
 * room, or takes new room for each write as btrfs does, a full disk ends the process with
 * SIGBUS.
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
 * _VERSION, _DAMAGED, _SECRET, _MEMORY, _UNSUPPORTED (in place, for a kind without
 * PERHAPS_CAN_SHARE; or 'check', for a file that is being written in place), or _ARGUMENT for
 * an unknown mode. */
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
 * are, a header that claims more is refused before any body is allocated.  If it does not, an
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
 * PERHAPS_MODE_READ copies nothing, and checks what it checks of a file: the filter reads the
 * bytes where they are.  They must begin at a multiple of PERHAPS_ALIGNMENT, and may not change
 * before the filter is freed.
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

/* ---- Files that are not in memory ----------------------------------------------------- */

/* Returns whether a large mapped file is not in memory (in the page cache of the system), so
 * that the disk will be read for most keys.  Batches of many keys, 100,000 and more, then take
 * a fraction of the time a key: their pages are read many at once, and none twice.  Looks at
 * some pages, and reads up to 16 from the disk.  False for all other filters. */
PERHAPS_API bool perhaps_is_cold(const perhaps_filter *filter);

/* ---- Damage ------------------------------------------------------------------------- */

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

/* ---- Notes --------------------------------------------------------------------------- */

/* Returns the note of a filter, as it was given when the filter was made: a text of up to
 * PERHAPS_NOTE_MAX bytes without control characters, empty if there is none.  It goes into
 * every copy and every file.  The library does nothing with it; a filter that was made of two
 * has the note of the first.  Notes of the command line begin with "keys: ", and tell what was
 * done to lines to make keys of them (doc/FORMAT.md).  Valid as long as the filter. */
PERHAPS_API const char *perhaps_note(const perhaps_filter *filter);

/* Returns whether a note of the command line has this word.  One matters to all who take texts
 * as keys: "ignore-case".  Then the letters A to Z of all keys were made small, and a text with
 * others would never be found: do the same to it, by perhaps_fold_case().  False for notes of
 * others. */
PERHAPS_API bool perhaps_note_says(const char *note, const char *word);

/* Copies a text with its letters A to Z made small, and nothing else, as --ignore-case does.
 * 'to' may be 'from', and may else not overlap it. */
PERHAPS_API void perhaps_fold_case(void *to, const void *from, size_t nbytes);

#ifdef __cplusplus
}
#endif
#endif
