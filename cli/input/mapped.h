/* mapped.h - files in memory, one behind the other, that may be cut off while they are read.
 *
 * Reading a mapped file that has become shorter, or whose disk fails, raises SIGBUS.  Here it
 * reads as zeros instead, and mapped_torn() tells so from then on.  So whoever uses what he has
 * read asks mapped_torn() first. */
#ifndef MAPPED_H
#define MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reserves addresses for files of so many bytes together, of which there are 'nfiles'; behind
 * each file zeros can be read.  Call it once.  Returns false (errno) if it fails. */
bool mapped_reserve(uint64_t nbytes, size_t nfiles);

/* Maps bytes of an open file, from the offset 'at' on, behind the files before it.  Returns
 * where they begin; NULL (errno) if the file cannot be mapped. */
const char *mapped_add(int fd, off_t at, uint64_t nbytes);

/* Returns an address that no file begins before, and where there is room for the next one. */
const char *mapped_begin(void);
const char *mapped_end(void);

/* Returns the first address of a file that could not be read any more; NULL if there is none,
 * so that all that was read so far is what the files hold. */
const char *mapped_torn(void);

#endif
