/* texts.h - the inputs as texts in memory, for verbs that read them several times, and at any
 * place.
 *
 * Files are mapped.  What cannot be mapped, such as a pipe, and what is packed is first copied,
 * unpacked, to a temporary file without a name, which is then mapped.  So each byte of the
 * inputs has an address, and its place is that address less the first one. */
#ifndef TEXTS_H
#define TEXTS_H

#include "input.h"

struct texts;

/* Maps the inputs, after it has copied those that cannot be mapped.  Ends the program if an
 * input cannot be read, if there is no room for a copy, or if a signal came. */
struct texts *texts_open(const struct settings *settings);

/* Returns the texts: one for each input. */
const struct piece *texts_pieces(const struct texts *texts);

/* Returns how far the place of a record is behind its address, for a block that was read from
 * these. */
uint64_t texts_shift(const struct texts *texts, const struct block *block);

/* Returns the number of places: each is less. */
uint64_t texts_nplaces(const struct texts *texts);

/* Returns what is at place 0; the others follow. */
const char *texts_begin(const struct texts *texts);

/* Returns the line that begins at a place, without its delimiter. */
struct perhaps_key texts_line(const struct texts *texts, uint64_t place);

/* Returns whether these bytes are the whole line that begins at the place. */
bool texts_same(const struct texts *texts, uint64_t place, const struct perhaps_key *line);

/* Ends the program if what was mapped has changed since texts_open(), and not if something was
 * appended to a file.  The message ends in 'outcome'. */
void texts_check(const struct texts *texts, const char *outcome);

/* Says so if a file has grown since texts_open(), or another one has its name. */
void texts_tell_changes(const struct texts *texts, const struct settings *settings);

/* Returns how many bytes were copied. */
uint64_t texts_ncopied(const struct texts *texts);

void texts_close(struct texts *texts);

#endif
