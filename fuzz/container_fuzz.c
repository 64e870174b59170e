/* container_fuzz.c - fuzzes the opening of filter files: any bytes are refused, or give a
 * filter that is safe to use.
 *
 * The bytes are opened as a file and read as a stream: first as they are, then with their
 * checksums corrected, and then with all sizes and offsets made to agree with the header, too.
 * Random mutations alone would almost never get past these checks. */
#include <stdlib.h>
#include <string.h>

#include "kinds/kinds.h"
#include "support/hostile.h"
#include <perhaps.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { BODY_MAX = 1 << 16, FILE_MAX = BODY_OFFSET + BODY_MAX + 64, SECTIONS_MAX = 24 };

/* What is left of the bytes that a source gives. */
struct stream {
    const uint8_t *at;
    size_t left;
};

static int read_stream(void *context, void *bytes, size_t nbytes)
{
    struct stream *s = context;
    if (nbytes > s->left)
        return PERHAPS_ERR_DAMAGED;
    memcpy(bytes, s->at, nbytes);
    s->at += nbytes;
    s->left -= nbytes;
    return 0;
}

/* Refuses large sizes: if a source does not tell its size, a header may claim a huge body. */
static void *allocate_little(void *context, size_t nbytes)
{
    (void)context;
    return nbytes > 16 * FILE_MAX ? NULL : calloc(1, (nbytes + 63) / 64 * 64);
}

static void release_it(void *context, void *memory, size_t nbytes)
{
    (void)context;
    (void)nbytes;
    free(memory);
}

/* Reads the bytes as a stream, with and without telling its size. */
static void read_and_use(const uint8_t *file, size_t nbytes)
{
    const struct perhaps_allocator little = { .allocate = allocate_little,
                                              .release = release_it };
    for (int known = 0; known < 2; known++) {
        struct stream s = { .at = file, .left = nbytes };
        const struct perhaps_source source = { .read = read_stream,
                                               .context = &s,
                                               .nbytes = known ? nbytes : 0 };
        const struct perhaps_open_options options = { .mode = PERHAPS_MODE_LOAD,
                                                      .allocator = known ? NULL : &little };
        perhaps_filter *f;
        if (!perhaps_read(&source, &options, &f))
            exercise(f, nbytes);
        perhaps_free(f);
    }
}

/* Opens the bytes in all ways: mapped, loaded, and mapped without the secret; then reads
 * them. */
static void open_and_use(const uint8_t *file, size_t nbytes)
{
    for (int way = 0; way < 3; way++) {
        struct perhaps_open_options options = { .mode = way == 1 ? PERHAPS_MODE_LOAD
                                                                 : PERHAPS_MODE_READ,
                                                .without_secret = way == 2 };
        perhaps_filter *f;
        if (!open_bytes(file, nbytes, &options, &f))
            exercise(f, nbytes);
        perhaps_free(f);
    }
    read_and_use(file, nbytes);
}

static uint64_t read_field(const uint8_t *file, size_t at, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, file + at, size);
    return value;
}

static void write_field(uint8_t *file, size_t at, uint64_t value)
{
    memcpy(file + at, &value, sizeof value);
}

/* Sets *body_nbytes to the size of a section's body, which follows from its fields.  Returns
 * false if the kind is unknown, the fields are refused, or the body is too large to try. */
static bool derive_body(const uint8_t *file, size_t section, uint64_t *body_nbytes)
{
    const struct filter_kind *kind =
        kind_by_id((uint32_t)read_field(file, at_section(AT_KIND, section), 4));
    struct geometry g = { .capacity = 1, .fpr = 0.5 };
    if (!kind)
        return false;
    for (unsigned i = 0; i < kind_field_count(kind); i++)
        g.field[i] = read_field(file, at_section(AT_FIELDS, section) + 8 * i, 8);
    if (kind_set_geometry(kind, &g) || g.body_nbytes > BODY_MAX)
        return false;
    *body_nbytes = g.body_nbytes;
    return true;
}

/* Writes sizes and offsets that agree with the fields of all sections; the bodies are the bytes
 * that happen to lie there.  Returns the size of the file, or 0 if that is not possible. */
static size_t fit(uint8_t file[FILE_MAX])
{
    uint64_t sections = read_field(file, AT_SECTIONS, 4), end = BODY_OFFSET, body;
    if (sections < 1 || sections > SECTIONS_MAX)
        return 0;
    for (size_t i = 0; i < sections; i++) {
        if (!derive_body(file, i, &body))
            return 0;
        uint64_t offset = (end + BODY_OFFSET - 1) / BODY_OFFSET * BODY_OFFSET;
        write_field(file, at_section(AT_BODY_OFFSET, i), offset);
        write_field(file, at_section(AT_BODY_NBYTES, i), body);
        end = body ? offset + body : end;
        if (end > BODY_OFFSET + BODY_MAX)
            return 0;
    }
    uint64_t pages = (end - BODY_OFFSET + PERHAPS_PAGE_NBYTES - 1) / PERHAPS_PAGE_NBYTES;
    uint64_t nbytes = end + (pages + 1) * 8;
    write_field(file, AT_TABLE_OFFSET, end);
    write_field(file, AT_FILE_NBYTES, nbytes);
    return (size_t)nbytes;
}

/* Does so with a small file, whose numbers are packed: with its checksum corrected, and then
 * with its sizes, too. */
static void use_small(const uint8_t *data, size_t nbytes)
{
    static uint8_t file[1 << 16];
    static struct numbers numbers;
    if (nbytes > sizeof file)
        return;
    memcpy(file, data, nbytes);
    reseal(file, nbytes);
    open_and_use(file, nbytes);
    if (read_numbers(data, nbytes, &numbers)) {
        const size_t fitting = write_numbers(&numbers, data, nbytes, file);
        open_and_use(file, fitting);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    open_and_use(data, nbytes);
    if (is_small_file(data, nbytes))
        use_small(data, nbytes);
    if (nbytes < BODY_OFFSET || nbytes > FILE_MAX)
        return 0;
    uint8_t *file = calloc(1, FILE_MAX);
    if (!file)
        return 0;
    memcpy(file, data, nbytes);
    reseal(file, nbytes);
    open_and_use(file, nbytes);
    size_t fitting = fit(file);
    if (fitting) {
        reseal(file, fitting);
        open_and_use(file, fitting);
    }
    free(file);
    return 0;
}
