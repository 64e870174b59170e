/* fields.h - what of a line is its key. */
#ifndef FIELDS_H
#define FIELDS_H

#include <perhaps.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    char delimiter;
    bool crlf;        /* a carriage return at the end is not part of the key */
    bool ignore_case; /* of the letters A to Z */
};

/* Narrows a line to what the form says, which must be one piece of it.  false: it lacks a
 * field. */
bool fields_narrow(const struct key_form *form, struct perhaps_key *line);

/* Whether keys of this form are not pieces of their lines, but must be written. */
bool fields_written(const struct key_form *form);

/* The same as fields_narrow(), for any form: writes the key to *room, which it moves on by at
 * most as many bytes as the line has. */
bool fields_write(const struct key_form *form, struct perhaps_key *line, char **room);

#endif
