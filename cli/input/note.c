/* note.c - how lines became keys, as a note. */
#include "note.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "keys:";

/* ---- Writing --------------------------------------------------------------------------- */

/* Appends a word.  Returns false if there is no room for it. */
__attribute__((format(printf, 2, 3))) static bool append_word(char *note, const char *format,
                                                              ...)
{
    const size_t used = strlen(note), room = PERHAPS_NOTE_MAX + 1 - used;
    va_list arguments;
    va_start(arguments, format);
    const int nbytes = vsnprintf(note + used, room, format, arguments);
    va_end(arguments);
    return nbytes >= 0 && (size_t)nbytes < room;
}

static bool append_fields(char *note, const struct fields *fields)
{
    bool ok = append_word(note, " field=");
    for (size_t i = 0; i < fields->count; i++) {
        const struct field_range *range = &fields->range[i];
        ok = ok && append_word(note, "%s%ju", i ? "," : "", (uintmax_t)range->first);
        if (range->last == UINT64_MAX)
            ok = ok && append_word(note, "-");
        else if (range->last != range->first)
            ok = ok && append_word(note, "-%ju", (uintmax_t)range->last);
    }
    return ok;
}

bool note_write(const struct key_form *form, char note[PERHAPS_NOTE_MAX + 1])
{
    const bool plain = !form->fields.count && !form->crlf && !form->ignore_case;
    const uint8_t byte = (uint8_t)form->delimiter;
    note[0] = '\0';
    bool ok = append_word(note, "%s%s", prefix, plain ? " lines" : "");
    if (form->fields.count) {
        ok = ok && append_fields(note, &form->fields);
        ok = ok && append_word(note,
                               byte > ' ' && byte < 127 && byte != '\\' ? " delimiter=%c"
                                                                        : " delimiter=\\x%02x",
                               byte);
    }
    if (form->crlf)
        ok = ok && append_word(note, " crlf");
    if (form->ignore_case)
        ok = ok && append_word(note, " ignore-case");
    return ok;
}

/* ---- Reading --------------------------------------------------------------------------- */

/* Returns what follows the name and '=' in a word; NULL if it is another word. */
static const char *value_in_word(const char *word, const char *name)
{
    const size_t nbytes = strlen(name);
    return strncmp(word, name, nbytes) == 0 && word[nbytes] == '=' ? word + nbytes + 1 : NULL;
}

/* Reads "," or "\\x2c". */
static bool read_delimiter(const char *text, char *delimiter)
{
    if (strlen(text) == 1 && *text != '\\') {
        *delimiter = *text;
        return true;
    }
    if (strlen(text) != 4 || strncmp(text, "\\x", 2) != 0 || !isxdigit((uint8_t)text[2]) ||
        !isxdigit((uint8_t)text[3]))
        return false;
    *delimiter = (char)strtoul(text + 2, NULL, 16);
    return true;
}

static bool read_note_word(const char *word, struct key_form *form)
{
    const char *value;
    if ((value = value_in_word(word, "field")))
        return fields_read(value, &form->fields);
    if ((value = value_in_word(word, "delimiter")))
        return read_delimiter(value, &form->delimiter);
    form->crlf |= strcmp(word, "crlf") == 0;
    form->ignore_case |= strcmp(word, "ignore-case") == 0;
    return !strcmp(word, "crlf") || !strcmp(word, "ignore-case") || !strcmp(word, "lines");
}

enum noted note_read(const char *note, struct key_form *form)
{
    char copy[PERHAPS_NOTE_MAX + 1], *rest = copy;
    *form = (struct key_form){ 0 };
    if (strncmp(note, prefix, strlen(prefix)) != 0)
        return NOT_NOTED;
    snprintf(copy, sizeof copy, "%s", note + strlen(prefix));
    for (char *word; (word = strsep(&rest, " "));)
        if (*word && !read_note_word(word, form))
            return NOT_UNDERSTOOD;
    return (form->fields.count > 0) == (form->delimiter != 0) ? NOTED : NOT_UNDERSTOOD;
}
