/* store.h - what the files of this folder offer each other: filters as bytes that go out one
 * after the other and come in so, as files, and as files that are mapped. */
#ifndef STORE_H
#define STORE_H

#include "../filter/filter.h"
#include "../system/system.h"
#include "container.h"
#include <perhaps_embed.h>
#include <perhaps_file.h>
#include <perhaps_layout.h>

/* ---- file.c ---------------------------------------------------------------------------- */

/* Return a sink or source for an open descriptor, which the caller keeps and closes; 'fd' must
 * stay valid as long as the sink or source is in use.  Both go on when a signal interrupts the
 * system call, and return PERHAPS_ERR_IO (errno) when it fails.  A file that ends too early is
 * PERHAPS_ERR_DAMAGED, since it had 'nbytes' bytes when it was opened. */
struct perhaps_sink file_sink(int *fd);
struct perhaps_source file_source(int *fd, uint64_t nbytes);

/* Reads the first bytes of a file, without any checks; they are zeros where there are none. */
void glance(const char *path, uint8_t bytes[HEADER_NBYTES]);

/* What goes to a file from its begin on, in pieces of 2 MiB.  The page cache keeps what was
 * written at once in one large folio, and a process that maps the file has all of that with one
 * page fault.  With pages of 64 KiB 100,000 queries in a new process take ten times as long. */
struct pieces {
    int *fd;
    uint8_t *bytes; /* what is not written yet */
    size_t nbytes, room;
    uint64_t written;
};

/* A file of fewer bytes is one piece.  pieces_end() writes what is left, unless there was an
 * error, and returns the first error. */
int pieces_begin(struct pieces *p, const struct perhaps_allocator *allocator, int *fd,
                 uint64_t file_nbytes);
struct perhaps_sink pieces_sink(struct pieces *p);
int pieces_end(struct pieces *p, const struct perhaps_allocator *allocator, int error);

/* ---- draft.c --------------------------------------------------------------------------- */

/* A file in the folder of the target, on its way to the target's name. */
struct draft {
    int fd; /* negative: not open */
    char folder[PATH_NBYTES_MOST];
    char name[PATH_NBYTES_MOST]; /* "": nameless: gone if the process dies */
};

/* Opens a draft for 'target': a nameless file, or a named one where the system has no nameless
 * files.  Returns 0 or PERHAPS_ERR_IO; either way the caller calls draft_failed(), or one of
 * the two below. */
int draft_open(struct draft *draft, const char *target);

/* Closes and removes a draft, and leaves errno alone.  Returns PERHAPS_ERR_IO. */
int draft_failed(struct draft *draft);

/* Syncs the draft and renames it to the target, which may exist.  Or with 'fresh' gives it the
 * target's name, and fails with EEXIST if a file has it.  Returns 0 or PERHAPS_ERR_IO.  The
 * draft stays open, and its name is not on the disk before sync_folder(). */
int draft_finish(struct draft *draft, const char *target, bool fresh);

/* Sets 'target' to the path to which a symbolic link leads, so that the file is replaced
 * and not the link.  The link may lead to a file that does not exist yet.  Other paths
 * stay as they are.  Returns 0 or PERHAPS_ERR_IO. */
int follow_links(const char *path, char target[PATH_NBYTES_MOST]);

/* ---- write.c --------------------------------------------------------------------------- */

/* What is written: a filter.  If the filter has neither body nor parts, because somebody else
 * keeps its bytes, 'reader' gives the bytes of its body. */
struct content {
    const perhaps_filter *f;
    perhaps_reader *reader; /* NULL: the filter has its bytes */

    /* If it has no bytes yet: writes the whole body, and completes counters and fields.  The
     * header that was written before is then not the right one, but in a small file.  NULL: it
     * has them. */
    int (*produce)(void *context, const struct perhaps_sink *body);
    void *context; /* for these two */

    /* Of the file of a journal, which the caller has locked.  NULL: it has none. */
    const struct journal_point *point;
};

/* Lays out the file, as content_write() writes it. */
void content_plan(const struct content *content, struct header *header);

/* Writes to a sink as perhaps_write() does.  Returns 0, or an error of perhaps_write() or
 * of the reader. */
int content_write(const struct content *content, const struct perhaps_sink *sink);

/* ---- save.c, replace.c ------------------------------------------------------------------- */

/* Saves to 'path' as perhaps_save() does.  Returns 0, or an error of perhaps_save() or of the
 * content's reader. */
int content_save(const struct content *content, const char *path);
int content_save_new(const struct content *content, const char *path);

/* Does the same for a file that is not live, or whose journal the caller has locked. */
int content_put(const struct content *content, const char *path);

/* ---- read.c ---------------------------------------------------------------------------- */

/* The header of a file, or all of a small file: its bytes, and what they say. */
struct head {
    struct header header;
    uint8_t *bytes;  /* of a small file: all its bytes */
    uint64_t nbytes; /* how many were allocated; 0: they lie in the caller's memory */
};

/* Reads and checks a header.  Returns 0 or an error of perhaps_read(); either way the caller
 * calls head_release().  head is { 0 } before. */
int head_read(const struct perhaps_source *source, const struct perhaps_allocator *allocator,
              struct head *head);
void head_release(struct head *head, const struct perhaps_allocator *allocator);

struct reading;

/* How a filter is read. */
struct way {
    int (*fill)(struct reading *r); /* gives all filters their bodies; returns 0 or an error */
    bool with_body;                 /* in allocated memory */
    bool shared;
    bool read_only;
    bool in_place;  /* it is written where it lies in the file */
    bool to_record; /* keys will be added, and a journal will tell of them */

    /* NULL, or where in memory all bytes of the source lie: what can be used there is not
     * copied. */
    const uint8_t *lying;
};

/* A filter while it is read. */
struct reading {
    const struct perhaps_source *source;
    const struct perhaps_open_options *options;
    const struct way *way;
    struct perhaps_allocator allocator;
    struct head head;
    struct hasher hasher;
    struct section *sections;
    perhaps_filter **made; /* the filter of each section; its parent owns it, but the first */
};

/* Reads the header, makes the filter and its parts as the way says, and fills them.  Sets
 * *point to what the file says of its journal; NULL: it may not have one.  Returns 0, or an
 * error of perhaps_open(). */
int filter_read(const struct perhaps_source *source, const struct perhaps_open_options *options,
                const struct way *way, struct journal_point *point, perhaps_filter **filter);

/* A fill() for bodies in allocated memory: reads them from the source, and compares every page
 * with its checksum.  (Those of a small file are there, and were compared.) */
int read_bodies(struct reading *r);

/* ---- map.c ----------------------------------------------------------------------------- */

/* Open a file as it was saved: they do not look at its journal, and set *point to what the
 * header says of that.  Return 0 or an error of perhaps_open().  open_as_saved() opens in the
 * mode of the options; the filter of a live file may be changed in memory.  open_to_record()
 * makes a filter that may be changed in memory: it reads the file (PERHAPS_MODE_LOAD) or, if
 * that is large and not 'shared', maps it (PERHAPS_MODE_READ). */
int open_as_saved(const char *path, const struct perhaps_open_options *options,
                  struct journal_point *point, perhaps_filter **filter);
int open_to_record(const char *path, const struct perhaps_open_options *options,
                   struct journal_point *point, perhaps_filter **filter);

/* Returns how far behind such a file it is mapped once more, as it was saved: a multiple of a
 * huge page. */
static inline uint64_t saved_distance(uint64_t file_nbytes)
{
    const uint64_t huge = 2 << 20;
    return (file_nbytes + huge - 1) & ~(huge - 1);
}

/* Returns whether map_to_pages() pays for a filter whose file is mapped to be written in
 * memory, and gets so many records.  Each of the first ones writes to a page of its own, which
 * takes the system as long as copying some pages at once: so not many are waited for. */
static inline bool pays_in_memory(const perhaps_filter *f, uint64_t records)
{
    return f->mapping->how == MAPPED_IN_MEMORY &&
           16 * records >= f->mapping->file_nbytes / HEADER_NBYTES;
}

/* Returns whether the bodies lie in a file that is mapped, and not in the caller's memory. */
bool is_mapped_file(const perhaps_filter *f);

/* ---- in_place.c ------------------------------------------------------------------------ */

/* Locks and flags the file of a filter that is mapped from 'fd', and keeps a descriptor of its
 * own for the lock.  Returns 0, or an error of perhaps_open(): then the file is as it was. */
int in_place_begin(perhaps_filter *f, int fd);

/* Releases the lock, and writes the checksums if no other process has the file open.  To be
 * called before the file is unmapped and closed. */
void in_place_end(perhaps_filter *f);

/* Waits until all that this process has written to such a file is on the disk.  Returns 0 or
 * an error of perhaps_sync(). */
int in_place_sync(const perhaps_filter *f);

/* ---- cold.c ------------------------------------------------------------------------------ */

/* Visits the bytes that contains() and count() of a filter, and of its parts, read for a key:
 * range by range. */
typedef void visit_bytes(void *context, const uint8_t *at, uint64_t nbytes);
void reads_each(const perhaps_filter *f, const struct keyhash *key, visit_bytes *visit,
                void *context);

/* Finds out whether a file that has just been mapped is large. */
void cold_begin(perhaps_filter *f);

/* Has the system read, of a large file, no more than the page that a key needs; until many keys
 * were asked for one by one. */
void cold_be_patient(perhaps_filter *f);

/* Has it read more again: for those who read all of the file. */
void cold_read_through(const perhaps_filter *f);

/* The 'fetch', 'forget', 'fetch_sample' and 'count_singles' of struct mapping_calls. */
size_t cold_fetch(const perhaps_filter *f, const struct perhaps_keys *keys, size_t first,
                  size_t n, struct fetched *sorted);
void cold_forget(struct fetched *keys);
void cold_fetch_sample(const perhaps_filter *f);
void cold_count_singles(const perhaps_filter *f, uint32_t n);

/* Has the system begin to read these bytes of a large file. */
void cold_fetch_bytes(const perhaps_filter *f, const uint8_t *at, uint64_t nbytes);

/* ---- check.c --------------------------------------------------------------------------- */

/* Sets the guard of a mapped filter, which from now on checks each page before its first use.
 * Returns 0 or PERHAPS_ERR_MEMORY. */
int check_begin(perhaps_filter *f);

/* Releases what check_begin() allocated, if it was called. */
void check_end(perhaps_filter *f);

/* Compares the pages from number 'first' to before 'end' with their checksums.  Returns 0,
 * PERHAPS_ERR_DAMAGED, or PERHAPS_ERR_UNSUPPORTED if a process writes the file in place. */
int check_pages(const perhaps_filter *f, uint64_t first, uint64_t end);

/* Does that with all pages; if 'once', only until they were found sound.  Returns 0 for a
 * filter that is not mapped, too. */
int check_all_pages(const perhaps_filter *f, bool once);

/* The 'check' of struct mapping. */
int check_saved_pages(const perhaps_filter *f, bool once);

#endif
