/* lines.h - splits the text of a block into lines, and finds the key of each line.
 *
 * These are stages between the reader and the verb: block_split() finds records and keys, and
 * block_hash() hashes the keys.  They need no order, so all threads can work in them at
 * once. */
#ifndef LINES_H
#define LINES_H

#include "blocks.h"

/* Limits of --field: the highest number of a field, and the number of ranges. */
#define FIELD_MAX   1000000
#define FIELDS_MOST 32

/* The fields that make the key, in the order in which the key has them; the first field of a
 * line is 1.  No range overlaps another one. */
struct fields {
    size_t count; /* 0: the key is the whole line */
    struct field_range {
        uint64_t first, last; /* UINT64_MAX: up to the end of the line */
    } range[FIELDS_MOST];
};

/* Reads "2", "1,3-5" or "2-".  Returns false, and leaves *fields alone, for anything else and
 * where a field is named twice. */
bool fields_read(const char *text, struct fields *fields);

/* How the key of a line is found. */
struct key_form {
    struct fields fields;
    char delimiter;   /* between fields */
    char end;         /* of a line: a newline or NUL */
    bool crlf;        /* a carriage return at the end of the line is not part of the key */
    bool ignore_case; /* A to Z become a to z */
};

/* Narrows a line to its key.  The form must have at most one range and no 'ignore_case', so
 * that the key is a piece of the line.  Returns false if the line lacks the field. */
bool line_narrow(const struct key_form *form, struct perhaps_key *line);

/* Narrows a line to its key, by any form.  The key may be written to 'room', as many bytes as
 * the line has at most.  Returns false if the line lacks the field. */
bool line_key(const struct key_form *form, struct perhaps_key *line, char *room);

/* Returns whether line_key() writes to its room. */
bool line_key_is_written(const struct key_form *form);

/* Returns whether the key is the whole line. */
bool line_is_key(const struct key_form *form);

/* Returns how many lines end in the text. */
size_t lines_count(const char *text, size_t nbytes, char end);

/* A stage, with a struct key_form: finds the records of a block, and their keys. */
bool block_split(void *form, struct block *block);

/* A stage, with a perhaps_filter: hashes the keys as the filter does.  If a key cannot be
 * hashed, block_keys() returns the keys themselves, and the filter then finds which one is
 * wrong. */
bool block_hash(void *filter, struct block *block);

/* Notes the error that a stage met (0: none), and returns what the stage has to return.  Does
 * not overwrite an earlier error with 0. */
static inline bool block_met(struct block *block, int error)
{
    if (error)
        block->error = error;
    return !error;
}

/* Counts record 'i' as skipped, for what it lacks.  The caller then closes the gap: it moves
 * later records down with block_keep(), and sets 'count'.  Returns false if there is no
 * memory. */
bool block_skip(struct block *block, size_t i, const char *lacks);

/* Moves record 'from' to the place 'to', with its key and its number of lines before it. */
static inline void block_keep(struct block *block, size_t to, size_t from)
{
    block->record[to] = block->record[from];
    block->key[to] = block->key[from];
    if (block->nskipped)
        block->place[to] = block->place[from];
}

/* Returns how many lines of the block stand before record 'i', or with 'count' all of them. */
size_t block_lines(const struct block *block, size_t i);

/* Returns the number of the line of record 'i' in its file.  'i' may be 'count': the line
 * behind the last record.  For blocks that have gone through all stages. */
uint64_t block_line(const struct block *block, size_t i);

/* Makes room for a number for each record.  Returns false if there is no memory. */
bool block_make_numbers(struct block *block);

/* Returns 'count' keys from number 'at' on, as hashes if they are hashed. */
struct perhaps_keys block_keys(const struct block *block, size_t at, size_t count);

#endif
