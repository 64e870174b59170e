/* pages.h - large memory that is zero at first. */
#ifndef PAGES_H
#define PAGES_H

#include <stdint.h>

/* The size of a large page.  Reads at random places of those miss the TLB less: with pages of
 * 4 KiB, each may wait for its own entry of the page table, too. */
#define HUGE_NBYTES ((uint64_t)2 << 20)

/* Returns at least so many bytes, which fill their pages: large ones, if there are many. */
uint64_t pages_nbytes(uint64_t nbytes);

/* Returns zeros, in large pages where the system has them; NULL if there is no memory. */
void *pages_new(uint64_t nbytes);

/* Gives back what pages_new() returned for so many bytes; NULL is nothing. */
void pages_free(void *pages, uint64_t nbytes);

/* Gives back the memory up to 'end', but not its addresses.  What is read there then is zero.
 * Returns up to where it did, which is 'begin' or behind it: it takes large pages. */
char *pages_drop(char *begin, char *end);

#endif
