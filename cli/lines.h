/* lines.h - what of a line is its key: the lines of a block, and the keys that are in them. */
#ifndef LINES_H
#define LINES_H

#include "blocks.h"

#define FIELD_MAX   1000000
#define FIELDS_MOST 32

/* Ranges of fields, of which the first is 1; 'last' UINT64_MAX: up to the end of the line.
 * None: all of the line. */
struct fields {
    size_t count;
    struct field_range {
        uint64_t first, last;
    } range[FIELDS_MOST];
};

/* Reads "2", "1,3-5" or "2-".  false, leaving *fields alone, for anything else, and where a
 * field is named twice. */
bool fields_read(const char *text, struct fields *fields);

/* How keys are made of lines. */
struct key_form {
    struct fields fields;
    char delimiter;   /* between fields */
    char end;         /* of the line */
    bool crlf;        /* a carriage return at the end is not part of the key */
    bool ignore_case; /* of the letters A to Z */
};

/* Narrows a line to what the form says, which must be one piece of it.  false: it lacks a
 * field. */
bool line_narrow(const struct key_form *form, struct perhaps_key *line);

/* How many lines end in the text. */
size_t lines_count(const char *text, size_t nbytes, char end);

/* A stage, with a struct key_form: finds the records of a block that was read, and their
 * keys. */
bool block_split(void *form, struct block *block);

/* A stage, with a perhaps_filter: hashes the keys as it does.  Where it cannot, block_keys()
 * gives the keys themselves, and the filter will find out which one is wrong. */
bool block_hash(void *filter, struct block *block);

/* Notes the error (0: none) that a stage met, and returns what the stage is to return.  An
 * error before stays. */
static inline bool block_met(struct block *block, int error)
{
    if (error)
        block->error = error;
    return !error;
}

/* Record 'i' is skipped for what it lacks: those behind it, which the caller goes on to, are
 * moved with block_keep(), and 'count' is set to how many were.  false: no memory. */
bool block_skip(struct block *block, size_t i, const char *lacks);

static inline void block_keep(struct block *block, size_t to, size_t from)
{
    block->record[to] = block->record[from];
    block->key[to] = block->key[from];
    if (block->nskipped)
        block->place[to] = block->place[from];
}

/* The line in its file of record 'i'. */
uint64_t block_line(const struct block *block, size_t i);

/* Makes room for the numbers.  false: no memory. */
bool block_make_numbers(struct block *block);

/* 'count' keys from number 'at' on, hashed if they are. */
struct perhaps_keys block_keys(const struct block *block, size_t at, size_t count);

#endif
