/* arrays.c - keys from items of one size: numbers, bytes, and text as numpy has it. */
#include "source.h"

#include <string.h>

/* Reads an integer of 1, 2, 4 or 8 bytes, which has the bits of a Python int of this value. */
static inline uint64_t number_at(const char *item, Py_ssize_t nbytes, bool is_signed)
{
    uint64_t number = 0;
    memcpy(&number, item, (size_t)nbytes);
    if (is_signed && nbytes < (Py_ssize_t)sizeof number) {
        const uint64_t sign = UINT64_C(1) << (8 * nbytes - 1);
        number = (number ^ sign) - sign;
    }
    return number;
}

static int make_numbers(const struct array *array, size_t first, size_t count,
                        struct scratch *scratch, struct perhaps_keys *made)
{
    const char *item = array->items + (Py_ssize_t)first * array->stride;
    const Py_ssize_t stride = array->stride, nbytes = array->item_nbytes;
    const bool is_signed = array->is_signed;
    uint64_t *number = scratch->number;
    count = count < CHUNK_NUMBERS ? count : CHUNK_NUMBERS;
    switch (nbytes) { /* a loop for each, with a constant in it */
    case 1:
        for (size_t i = 0; i < count; i++, item += stride)
            number[i] = number_at(item, 1, is_signed);
        break;
    case 2:
        for (size_t i = 0; i < count; i++, item += stride)
            number[i] = number_at(item, 2, is_signed);
        break;
    case 4:
        for (size_t i = 0; i < count; i++, item += stride)
            number[i] = number_at(item, 4, is_signed);
        break;
    default:
        for (size_t i = 0; i < count; i++, item += stride)
            number[i] = number_at(item, sizeof *number, is_signed);
        break;
    }
    *made = perhaps_keys_packed(number, sizeof *number, count);
    return 0;
}

/* For a bitmap.  What is below 0 gets bytes that no integer of a bitmap has. */
static int make_integers(const struct array *array, size_t first, size_t count,
                         struct scratch *scratch, struct perhaps_keys *made)
{
    count = count < CHUNK_KEYS ? count : CHUNK_KEYS;
    memset(scratch->hashed, 0, count * sizeof *scratch->hashed);
    for (size_t i = 0; i < count; i++) {
        const char *item = array->items + (Py_ssize_t)(first + i) * array->stride;
        uint64_t number = number_at(item, array->item_nbytes, array->is_signed);
        memcpy(scratch->hashed[i].bytes, &number, sizeof number);
        scratch->hashed[i].bytes[sizeof number] = array->is_signed && number >> 63;
    }
    *made = perhaps_keys_hashed(scratch->hashed, count);
    return 0;
}

void array_of_numbers(struct source *source, const void *items, size_t count, Py_ssize_t nbytes,
                      Py_ssize_t stride, bool is_signed)
{
    bool as_they_lie =
        nbytes == sizeof(uint64_t) && stride == nbytes && source->form != KEYS_INTEGERS;
    source->array = (struct array){
        .count = count,
        .keys = perhaps_keys_packed(items, sizeof(uint64_t), count),
        .make = as_they_lie                     ? NULL
                : source->form == KEYS_INTEGERS ? make_integers
                                                : make_numbers,
        .items = items,
        .stride = stride,
        .item_nbytes = nbytes,
        .is_signed = is_signed,
        .is_numbers = true,
    };
}

/* numpy fills up what is shorter than its items with zeros, and takes them off again. */
static int make_stripped(const struct array *array, size_t first, size_t count,
                         struct scratch *scratch, struct perhaps_keys *made)
{
    count = count < CHUNK_KEYS ? count : CHUNK_KEYS;
    for (size_t i = 0; i < count; i++) {
        const char *item = array->items + (Py_ssize_t)(first + i) * array->stride;
        size_t nbytes = (size_t)array->item_nbytes;
        while (nbytes > 0 && !item[nbytes - 1])
            nbytes--;
        scratch->each[i] = (struct perhaps_key){ item, nbytes };
    }
    *made = perhaps_keys_each(scratch->each, count);
    return 0;
}

void array_of_bytes(struct source *source, const void *items, size_t count, Py_ssize_t nbytes,
                    Py_ssize_t stride)
{
    source->array = (struct array){
        .count = count,
        .make = make_stripped,
        .items = items,
        .stride = stride,
        .item_nbytes = nbytes,
    };
}

/* Writes a character in UTF-8, and returns how many bytes that takes; 0 for a surrogate, or
 * what is no character. */
static size_t write_utf8(uint32_t c, char *to)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c >> 11 == 0xd800 >> 11 || c > 0x10ffff)
        return 0;
    if (c < 0x10000) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 0x3f));
        to[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 0x3f));
    to[2] = (char)(0x80 | (c >> 6 & 0x3f));
    to[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* numpy's text has 4 bytes a character, and so its UTF-8 at most as many. */
static int make_text(const struct array *array, size_t first, size_t count,
                     struct scratch *scratch, struct perhaps_keys *made)
{
    size_t fit = array->item_nbytes ? scratch->text_nbytes / (size_t)array->item_nbytes : count;
    char *to = scratch->text;
    count = count < CHUNK_KEYS ? count : CHUNK_KEYS;
    count = count < fit ? count : fit;
    for (size_t i = 0; i < count; i++) {
        const char *item = array->items + (Py_ssize_t)(first + i) * array->stride;
        char *end = to; /* behind the last character that is not 0 */
        scratch->each[i].bytes = to;
        for (Py_ssize_t at = 0; at < array->item_nbytes; at += (Py_ssize_t)sizeof(uint32_t)) {
            uint32_t c;
            memcpy(&c, item + at, sizeof c);
            size_t nbytes = write_utf8(c, to);
            if (nbytes == 0)
                return BAD_TEXT;
            to += nbytes;
            end = c ? to : end;
        }
        to = end;
        scratch->each[i].nbytes = (size_t)(end - (const char *)scratch->each[i].bytes);
    }
    *made = perhaps_keys_each(scratch->each, count);
    return 0;
}

bool array_of_text(struct source *source, const void *items, size_t count, Py_ssize_t nbytes,
                   Py_ssize_t stride)
{
    struct scratch *scratch = &source->scratch;
    array_of_bytes(source, items, count, nbytes, stride);
    source->array.make = make_text;
    scratch->text_nbytes = nbytes > CHUNK_TEXT_NBYTES ? (size_t)nbytes : CHUNK_TEXT_NBYTES;
    scratch->text = PyMem_Malloc(scratch->text_nbytes);
    return scratch->text || PyErr_NoMemory();
}
