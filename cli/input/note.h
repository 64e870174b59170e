/* note.h - how the lines of an input became keys, as it is noted with a filter: doc/FORMAT.md.
 *
 * A filter that was built with --ignore-case and asked without answers "no" in silence.  So
 * what was done to keys goes with the filter, and is done again by all verbs. */
#ifndef NOTE_H
#define NOTE_H

#include "lines.h"
#include <perhaps.h>

/* Writes the note for keys that are made so.  Returns false if it is too long. */
bool note_write(const struct key_form *form, char note[PERHAPS_NOTE_MAX + 1]);

enum noted { NOTED, NOT_NOTED, NOT_UNDERSTOOD };

/* Reads a note.  Sets the fields, 'delimiter', 'crlf' and 'ignore_case' of the form; without
 * fields the delimiter is 0.  NOT_NOTED: the note does not tell of keys. */
enum noted note_read(const char *note, struct key_form *form);

#endif
