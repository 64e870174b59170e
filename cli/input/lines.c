/* lines.c - finds the lines in the text of a block, and the key of each line.
 *
 * Both are needed for every byte of the input, so lines are found many bytes at a time, and a
 * key that is a piece of its line is not copied. */
#include "lines.h"

#include <ctype.h>
#include <perhaps_fast.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* ---- Finding the delimiters, many bytes at a time ---------------------------------- */

#if defined(__SSE2__)

/* The mask has one bit for each of 64 bytes. */
enum { GROUP_NBYTES = 64, BITS_A_BYTE = 1 };

static inline uint64_t mask16(const char *text, char delimiter)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)text);
    return (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(delimiter)));
}

/* Returns a mask of the bytes of a group that are delimiters. */
static inline uint64_t mask_of(const char *text, char delimiter)
{
    return mask16(text, delimiter) | mask16(text + 16, delimiter) << 16 |
           mask16(text + 32, delimiter) << 32 | mask16(text + 48, delimiter) << 48;
}

#else

/* The mask has the highest bit of each of 8 bytes.  Little-endian machines load the first byte
 * into the lowest bits. */
enum { GROUP_NBYTES = 8, BITS_A_BYTE = 8 };

/* Returns a mask of the bytes of a group that are delimiters.  Adding 0x7f to the low 7 bits of
 * a byte sets its highest bit unless they are all 0, and never carries into the next byte. */
static inline uint64_t mask_of(const char *text, char delimiter)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), low = ones * 0x7f;
    uint64_t bytes;
    memcpy(&bytes, text, sizeof bytes);
    bytes ^= ones * (uint8_t)delimiter; /* 0 where the delimiter is */
    return ~(((bytes & low) + low) | bytes | low);
}

#endif

/* The count of a chunk fits into a byte, so compilers compare and add many bytes at a time. */
size_t lines_count(const char *text, size_t nbytes, char end)
{
    enum { CHUNK = 128 };
    size_t count = 0, i = 0;
    for (; i + CHUNK <= nbytes; i += CHUNK) {
        uint8_t some = 0;
        for (size_t k = i; k < i + CHUNK; k++)
            some = (uint8_t)(some + (text[k] == end));
        count += some;
    }
    for (; i < nbytes; i++)
        count += text[i] == end;
    return count;
}

/* Splits the text, which ends in a delimiter, into its records: as many as lines_count()
 * tells.
 *
 * Each delimiter of a group is a bit of its mask, and finding the next bit costs the same for
 * every record.  Calling memchr() for each record costs several times that on short lines. */
static void split_records(const char *text, size_t nbytes, char delimiter,
                          struct perhaps_key *record)
{
    const char *begin = text, *end = text + nbytes;
    for (; end - text >= GROUP_NBYTES; text += GROUP_NBYTES)
        for (uint64_t mask = mask_of(text, delimiter); mask; mask &= mask - 1) {
            const char *stop = text + __builtin_ctzll(mask) / BITS_A_BYTE;
            *record++ = (struct perhaps_key){ begin, (size_t)(stop - begin) };
            begin = stop + 1;
        }
    for (; text < end; text++)
        if (*text == delimiter) {
            *record++ = (struct perhaps_key){ begin, (size_t)(text - begin) };
            begin = text + 1;
        }
}

/* ---- Which fields ----------------------------------------------------------------- */

/* Reads "3".  Returns what follows it, or NULL. */
static const char *read_one(const char *text, uint64_t *field)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return NULL;
    *field = strtoull(text, &end, 10);
    return *field >= 1 && *field <= FIELD_MAX ? end : NULL;
}

/* Reads "3", "3-5" or "3-".  Returns what follows it, or NULL. */
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

/* Returns whether the range has a field that another range has, too. */
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

/* ---- The key of a line ------------------------------------------------------------ */

/* Finds a range of fields in a line.  Returns false, and leaves *found alone, if the line lacks
 * one of them.  'found' may be 'line'. */
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

/* Takes the carriage return off the end of the line, if the form says so. */
static void strip_return(const struct key_form *form, struct perhaps_key *line)
{
    const char *bytes = line->bytes;
    if (form->crlf && line->nbytes && bytes[line->nbytes - 1] == '\r')
        line->nbytes--;
}

bool line_narrow(const struct key_form *form, struct perhaps_key *line)
{
    strip_return(form, line);
    return !form->fields.count ||
           find_range(line, form->delimiter, &form->fields.range[0], line);
}

bool line_key_is_written(const struct key_form *form)
{
    return form->fields.count > 1 || form->ignore_case;
}

bool line_is_key(const struct key_form *form)
{
    return !form->crlf && !form->fields.count && !line_key_is_written(form);
}

static char *append_bytes(char *to, const struct perhaps_key *piece)
{
    memcpy(to, piece->bytes, piece->nbytes);
    return to + piece->nbytes;
}

/* Narrows a line to its key, by any form: writes the key to *room, and moves *room on by at
 * most as many bytes as the line has.  Returns false if the line lacks the field. */
static bool write_key_bytes(const struct key_form *form, struct perhaps_key *line, char **room)
{
    struct perhaps_key piece = *line;
    char *begin = *room, *to = begin;
    strip_return(form, &piece);
    *line = piece;
    if (!form->fields.count)
        to = append_bytes(to, &piece);
    for (size_t i = 0; i < form->fields.count; i++) {
        if (!find_range(line, form->delimiter, &form->fields.range[i], &piece))
            return false;
        if (i > 0)
            *to++ = form->delimiter;
        to = append_bytes(to, &piece);
    }
    for (char *c = begin; form->ignore_case && c < to; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c);
    *line = (struct perhaps_key){ begin, (size_t)(to - begin) };
    *room = to;
    return true;
}

bool line_key(const struct key_form *form, struct perhaps_key *line, char *room)
{
    return line_key_is_written(form) ? write_key_bytes(form, line, &room)
                                     : line_narrow(form, line);
}

/* ---- Blocks ------------------------------------------------------------------------ */

/* The first record to be skipped makes the table of places, in which no record is missing yet.
 * Two stages may skip records, so a later call may find an earlier line. */
bool block_skip(struct block *block, size_t i, const char *lacks)
{
    if (!block->nskipped) {
        block->place = room_for(&block->room[FOR_PLACES], block->count, sizeof *block->place);
        for (size_t k = 0; block->place && k < block->count; k++)
            block->place[k] = k;
    }
    if (!block->place)
        return false;
    if (!block->nskipped++ || block->place[i] < block->first_skipped) {
        block->first_skipped = block->place[i];
        block->lacks = lacks;
    }
    return true;
}

/* Finds the keys, and skips records that lack a field.  Returns false if there is no memory. */
static bool make_keys(struct block *block, const struct key_form *form)
{
    bool written = line_key_is_written(form);
    char *room = written ? room_for(&block->room[FOR_WRITTEN], block->nbytes, 1) : NULL;
    size_t kept = 0;
    if (written && !room)
        return false;
    for (size_t i = 0; i < block->count; i++) {
        struct perhaps_key key = block->record[i];
        if (written ? write_key_bytes(form, &key, &room) : line_narrow(form, &key)) {
            block_keep(block, kept, i);
            block->key[kept++] = key;
        } else if (!block_skip(block, i, "has no such field")) {
            return false;
        }
    }
    block->count = kept;
    return true;
}

/* Without fields and such, the keys are the records: they share one array. */
bool block_split(void *context, struct block *block)
{
    const struct key_form *form = context;
    bool narrowed = !line_is_key(form);
    size_t count = lines_count(block->text, block->nbytes, form->end);
    if (count == 0)
        return true;
    block->record = room_for(&block->room[FOR_RECORDS], count, sizeof *block->record);
    block->answer = room_for(&block->room[FOR_ANSWERS], count, sizeof *block->answer);
    block->key =
        narrowed ? room_for(&block->room[FOR_KEYS], count, sizeof *block->key) : block->record;
    if (!block->record || !block->answer || !block->key)
        return block_met(block, PERHAPS_ERR_MEMORY);
    split_records(block->text, block->nbytes, form->end, block->record);
    block->count = count;
    if (narrowed && !make_keys(block, form)) {
        block->count = 0;
        return block_met(block, PERHAPS_ERR_MEMORY);
    }
    block->ndone = block->count;
    return true;
}

bool block_hash(void *filter, struct block *block)
{
    struct perhaps_keys keys = perhaps_keys_each(block->key, block->count);
    block->hashed = room_for(&block->room[FOR_HASHES], block->count, sizeof *block->hashed);
    if (!block->hashed) {
        block->ndone = 0;
        return block_met(block, PERHAPS_ERR_MEMORY);
    }
    block->is_hashed = perhaps_hash_many(filter, &keys, block->hashed) == 0;
    return true;
}

bool block_make_numbers(struct block *block)
{
    block->number = room_for(&block->room[FOR_NUMBERS], block->count, sizeof *block->number);
    return block->number;
}

size_t block_lines(const struct block *block, size_t i)
{
    return block->nskipped && i < block->count ? block->place[i] : i + block->nskipped;
}

uint64_t block_line(const struct block *block, size_t i)
{
    return block->line + block_lines(block, i);
}

struct perhaps_keys block_keys(const struct block *block, size_t at, size_t count)
{
    if (block->is_hashed)
        return perhaps_keys_hashed(block->hashed + at, count);
    return perhaps_keys_each(count ? block->key + at : NULL, count);
}
