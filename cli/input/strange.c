/* strange.c - texts from Windows, texts in UTF-16, and packed formats that are not unpacked.
 *
 * All are taken as they are: their bytes may be what is meant.  So they are known by bytes that
 * keys hardly have: a whole block, or a magic number. */
#include "strange.h"

#include <ctype.h>
#include <string.h>

/* The rows below that are no magic numbers. */
enum { CARRIAGE_RETURNS, COUNTS, BYTE_ORDER_MARK, UTF_16_MARK };

#define AS_KEYS ", whose packed bytes are taken for keys: unpack it first, with "

static const struct strange {
    const char *words;
    size_t at, nbytes; /* of the magic number */
    const char *bytes;
} rows[] = {
    [CARRIAGE_RETURNS] = { .words = "lines end in a carriage return, which is part of the key: "
                                    "give --crlf to leave it off" },
    [COUNTS] = { .words =
                     "lines are hashes with a colon and a count behind them, which are part "
                     "of the key: give --field 1 --delimiter : to leave them off" },
    [BYTE_ORDER_MARK] = { .words = "begins with a byte order mark, which is part of the first "
                                   "key: take it off first, with 'tail -c +4'" },
    [UTF_16_MARK] = { .words = "is text in UTF-16, whose bytes are taken for keys: convert it "
                               "first, with 'iconv -f UTF-16 -t UTF-8'" },
    { "is packed by lzip" AS_KEYS "'lzip -dc'", 0, 5, "LZIP\1" },
    { "is packed by compress" AS_KEYS "'gzip -dc'", 0, 2, "\x1f\x9d" },
    { "is packed by lzop" AS_KEYS "'lzop -dc'", 0, 9, "\x89LZO\0\r\n\x1a\n" },
    { "is a 7z archive" AS_KEYS "'7z x -so'", 0, 6, "7z\xbc\xaf\x27\x1c" },
    { "is a packed filter, whose bytes are taken for keys", 0, 8, "\x89perh\r\n\x1a" },
    { "is a tar archive, whose bytes are taken for keys: unpack it first, with 'tar -xO'", 257,
      5, "ustar" },
};

enum { NROWS = sizeof rows / sizeof *rows };
_Static_assert(NROWS <= 32, "each row has a bit");

static bool has_magic(const struct block *block, const struct strange *row)
{
    return row->bytes && block->nbytes >= row->at + row->nbytes &&
           memcmp(block->text + row->at, row->bytes, row->nbytes) == 0;
}

/* Returns whether at least half of the keys end in a carriage return. */
static bool ends_in_returns(const struct block *block)
{
    size_t count = 0;
    for (size_t i = 0; i < block->count; i++) {
        const struct perhaps_key *key = &block->key[i];
        count += key->nbytes && ((const char *)key->bytes)[key->nbytes - 1] == '\r';
    }
    return count && count >= block->count - count;
}

/* Returns whether the key is a hash of 128 bits or more in hexadecimal digits, a colon, and a
 * number, as in lists of passwords. */
static bool is_counted(const struct perhaps_key *key)
{
    const unsigned char *text = key->bytes;
    const size_t least = 32;
    size_t at = 0;
    while (at < key->nbytes && isxdigit(text[at]))
        at++;
    if (at < least || at + 1 >= key->nbytes || text[at++] != ':')
        return false;
    while (at < key->nbytes && isdigit(text[at]))
        at++;
    return at == key->nbytes || (at + 1 == key->nbytes && text[at] == '\r');
}

/* Returns whether the beginning is a list of hashes with counts: all of the first keys are. */
static bool has_counts(const struct block *block)
{
    const size_t most = 100, n = block->count < most ? block->count : most;
    for (size_t i = 0; i < n; i++)
        if (!is_counted(&block->key[i]))
            return false;
    return n > 0;
}

/* Returns the one row about the characters of the text that is true; NROWS if none is. */
static unsigned encoding_of(const struct block *block)
{
    const char *text = block->text;
    if (block->nbytes > 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return BYTE_ORDER_MARK;
    if (block->nbytes > 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2)))
        return UTF_16_MARK;
    return NROWS;
}

uint32_t strange_block(const struct block *block, const struct key_form *form)
{
    uint32_t found = 0;
    for (unsigned i = 0; i < NROWS; i++)
        if (has_magic(block, &rows[i]))
            return UINT32_C(1) << i;
    if (form->end != '\n')
        return 0;
    unsigned encoding = encoding_of(block);
    if (encoding < NROWS)
        found |= UINT32_C(1) << encoding;
    if (ends_in_returns(block))
        found |= UINT32_C(1) << CARRIAGE_RETURNS;
    if (has_counts(block))
        found |= UINT32_C(1) << COUNTS;
    return found;
}

const char *strange_words(unsigned bit)
{
    return rows[bit].words;
}
