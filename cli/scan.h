/* scan.h - finding the delimiters in a block of text, many bytes at a time. */
#ifndef SCAN_H
#define SCAN_H

#include <perhaps.h>
#include <stddef.h>

size_t scan_count(const char *text, size_t nbytes, char delimiter);

/* Splits the text, which ends in a delimiter, into its records: as many as scan_count(). */
void scan_records(const char *text, size_t nbytes, char delimiter, struct perhaps_key *record);

#endif
