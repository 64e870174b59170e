/* live_files.h - what the tests of live files share. */
#ifndef LIVE_FILES_H
#define LIVE_FILES_H

#include "support.h"
#include <perhaps_embed.h>
#include <perhaps_file.h>

/* PERHAPS_MODE_JOURNAL, with memory that has no huge pages: those take long to be cleared, and
 * these tests open files very often. */
extern const struct perhaps_open_options to_write;

/* An allocator of such memory, which counts, and fails once. */
struct failing_allocator {
    uint64_t calls;
    uint64_t fail_at; /* the number of the call that returns NULL, from 1 on; 0: none */
    uint64_t live;    /* blocks that were not released yet */
};
struct perhaps_allocator allocator_that_fails(struct failing_allocator *failing);

/* Writes a file, which becomes a new one: to write over an old one can mean to wait for the
 * disk. */
void put_file(struct path path, const void *bytes, size_t nbytes);

/* Ends a filter as the end of its process does: what was not written is lost. */
void die(perhaps_filter *f);

#endif
