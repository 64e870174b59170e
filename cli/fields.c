#include "fields.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- What is asked ----------------------------------------------------------------- */

/* Reads "3".  Returns what follows, or NULL. */
static const char *read_one(const char *text, uint64_t *field)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return NULL;
    *field = strtoull(text, &end, 10);
    return *field >= 1 && *field <= FIELD_MAX ? end : NULL;
}

/* Reads "3", "3-5" or "3-".  Returns what follows, or NULL. */
static const char *read_range(const char *text, struct field_range *range)
{
    if (!(text = read_one(text, &range->first)))
        return NULL;
    range->last = range->first;
    if (*text != '-')
        return text;
    if (!isdigit((unsigned char)*++text)) {
        range->last = UINT64_MAX;
        return text;
    }
    text = read_one(text, &range->last);
    return text && range->first <= range->last ? text : NULL;
}

static bool overlaps(const struct fields *fields, const struct field_range *range)
{
    for (size_t i = 0; i < fields->count; i++)
        if (range->first <= fields->range[i].last && fields->range[i].first <= range->last)
            return true;
    return false;
}

bool fields_read(const char *text, struct fields *fields)
{
    struct fields read = { 0 };
    struct field_range range;
    do {
        text = read_range(text, &range);
        if (!text || read.count == FIELDS_MOST || overlaps(&read, &range))
            return false;
        read.range[read.count++] = range;
    } while (*text++ == ',');
    if (text[-1])
        return false;
    *fields = read;
    return true;
}

/* ---- What of a line it is ---------------------------------------------------------- */

static bool find_range(const struct perhaps_key *line, char delimiter,
                       const struct field_range *range, struct perhaps_key *found)
{
    const char *at = line->bytes, *end = at + line->nbytes, *begin = NULL;
    for (uint64_t field = 1;; field++) {
        const char *stop = memchr(at, delimiter, (size_t)(end - at));
        if (field == range->first)
            begin = at;
        if (begin && (field == range->last || (!stop && range->last == UINT64_MAX))) {
            *found = (struct perhaps_key){ begin, (size_t)((stop ? stop : end) - begin) };
            return true;
        }
        if (!stop)
            return false;
        at = stop + 1;
    }
}

static void strip_return(const struct key_form *form, struct perhaps_key *line)
{
    const char *bytes = line->bytes;
    if (form->crlf && line->nbytes && bytes[line->nbytes - 1] == '\r')
        line->nbytes--;
}

bool fields_narrow(const struct key_form *form, struct perhaps_key *line)
{
    strip_return(form, line);
    return !form->fields.count ||
           find_range(line, form->delimiter, &form->fields.range[0], line);
}

bool fields_written(const struct key_form *form)
{
    return form->fields.count > 1 || form->ignore_case;
}

static char *append(char *to, const struct perhaps_key *piece)
{
    memcpy(to, piece->bytes, piece->nbytes);
    return to + piece->nbytes;
}

bool fields_write(const struct key_form *form, struct perhaps_key *line, char **room)
{
    struct perhaps_key piece = *line;
    char *begin = *room, *to = begin;
    strip_return(form, &piece);
    *line = piece;
    if (!form->fields.count)
        to = append(to, &piece);
    for (size_t i = 0; i < form->fields.count; i++) {
        if (!find_range(line, form->delimiter, &form->fields.range[i], &piece))
            return false;
        if (i > 0)
            *to++ = form->delimiter;
        to = append(to, &piece);
    }
    for (char *c = begin; form->ignore_case && c < to; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c);
    *line = (struct perhaps_key){ begin, (size_t)(to - begin) };
    *room = to;
    return true;
}
