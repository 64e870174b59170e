/* small_test.c - proves that small filters take small files, that these are refused wherever
 * they are cut or changed, and that those of an enemy are refused or safe to use; that old
 * files of small filters, which have the form of large ones, stay as they are; and that files
 * around the largest small one have the right form. */
#include "support.h"

#include <math.h>
#include <string.h>

#include "hostile.h"
#include "kinds/kinds.h"

enum { ROOM = 1 << 16 }; /* for a small file */

static struct bytes file_of(const struct perhaps_kind *kind, size_t nkeys)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, nkeys);
    scoped_filter *f = full_filter(kind, nkeys, 0.01, &keys);
    return saved_bytes(f);
}

/* Opens these bytes as a file that is mapped, or that is loaded, and where they lie. */
enum { WAYS = 3 };

static int open_in_way(const uint8_t *bytes, size_t nbytes, unsigned way, perhaps_filter **f,
                       uint8_t **memory)
{
    *memory = NULL;
    if (way < 2)
        return open_bytes(bytes, nbytes, ways_to_open[way], f);
    *memory = aligned_alloc(PERHAPS_ALIGNMENT, nbytes / 64 * 64 + 64);
    expect(*memory);
    memcpy(*memory, bytes, nbytes);
    return perhaps_from_bytes(*memory, nbytes, &map_it, f);
}

/* Returns the error of opening, which is the same in all ways; uses what opens. */
static int open_all(const uint8_t *bytes, size_t nbytes)
{
    int error[WAYS];
    for (unsigned way = 0; way < WAYS; way++) {
        perhaps_filter *f;
        scoped_memory *memory;
        error[way] = open_in_way(bytes, nbytes, way, &f, &memory);
        if (!error[way])
            exercise(f, nbytes);
        perhaps_free(f);
        expect(error[way] == error[0]);
    }
    return error[0];
}

static void expect_refused(const uint8_t *bytes, size_t nbytes)
{
    for (unsigned way = 0; way < WAYS; way++) {
        perhaps_filter *f;
        scoped_memory *memory;
        expect(is_refusal(open_in_way(bytes, nbytes, way, &f, &memory)));
    }
}

/* ---- Sizes ------------------------------------------------------------------------------- */

TEST(test_sizes)
{
    const struct {
        uint64_t capacity, nbytes;
    } wanted[] = { { 10, 160 }, { 1000, 1600 }, { 20000, 25650 } };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        scoped_filter *f = make_filter(perhaps_kind_at(0), wanted[i].capacity, 0.01, 0);
        const uint64_t nbytes = perhaps_write_nbytes(f);
        scene("%ju keys take %ju bytes", (uintmax_t)wanted[i].capacity, (uintmax_t)nbytes);
        expect(nbytes <= wanted[i].nbytes);
        expect(nbytes - stats_of(f).plan.body_nbytes <= 128);
    }
}

/* From a certain size on files have the form of large ones.  Both sides of it open. */
TEST(test_largest)
{
    unsigned small = 0;
    for (uint64_t capacity = 48000; capacity < 54000; capacity += 100) {
        scoped_keys keys = make_keys(SEQUENTIAL_KEYS, test_seed(), 0, 300);
        scoped_filter *f = make_filter(perhaps_kind_at(0), capacity, 0.01, 1);
        perhaps_filter *again;
        fill(f, &keys);
        scoped_bytes file = saved_bytes(f);
        const bool is_small = is_small_file(file.at, file.nbytes);
        scene("%ju keys, %zu bytes", (uintmax_t)capacity, file.nbytes);
        expect(is_small == (stats_of(f).plan.body_nbytes + 64 + 24 < ROOM));
        expect(is_small == (file.nbytes < ROOM));
        small += is_small;
        for (unsigned way = 0; way < WAYS; way++) {
            scoped_memory *memory;
            expect_success(open_in_way(file.at, file.nbytes, way, &again, &memory));
            expect(perhaps_equal(again, f));
            expect_same_counters(again, f);
            perhaps_free(again);
        }
    }
    expect(small > 10 && small < 50);
}

/* What an earlier version wrote of a small filter opens; written in place it stays as it is;
 * saved anew it becomes small. */
TEST_EACH(test_old_form, every_kind)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 30);
    scoped_filter *f = full_filter(kind, 30, 0.01, &keys);
    scoped_bytes old = large_bytes(f), file = saved_bytes(f);
    struct path path = temp_path("old");
    for (unsigned way = 0; way < WAYS; way++) {
        perhaps_filter *again;
        scoped_memory *memory;
        expect_success(open_in_way(old.at, old.nbytes, way, &again, &memory));
        expect(perhaps_equal(again, f));
        expect_same_counters(again, f);
        expect_saves_as(again, &file);
        perhaps_free(again);
    }
    write_file(path.text, old.at, old.nbytes);
    if (!(kind->abilities & PERHAPS_CAN_SHARE))
        return;
    perhaps_filter *shared = open_file(path.text, &in_place);
    fill(shared, &keys);
    perhaps_free(shared);
    scoped_bytes again = read_file(path.text);
    expect(again.nbytes == old.nbytes && !is_small_file(again.at, again.nbytes));
    scoped_filter *loaded = open_file(path.text, &load_it);
    expect_all_found(loaded, &keys);
}

/* ---- Accidents --------------------------------------------------------------------------- */

TEST_EACH(test_every_length, every_kind)
{
    scoped_bytes file = file_of(kind, 30);
    expect(is_small_file(file.at, file.nbytes) || grows(kind));
    file.at = realloc(file.at, file.nbytes + 64);
    expect(file.at);
    memset(file.at + file.nbytes, 0, 64);
    for (size_t nbytes = 0; nbytes <= file.nbytes + 64;
         nbytes += nbytes < 300 || nbytes + 300 > file.nbytes || every_case() ? 1 : 97)
        if (nbytes != file.nbytes && is_tried(nbytes, FILES_APART))
            expect_refused(file.at, nbytes);
    expect_success(open_all(file.at, file.nbytes));
}

TEST_EACH(test_every_byte, every_kind)
{
    struct rng rng = rng_for(__func__);
    scoped_bytes file = file_of(kind, 30);
    if (!is_small_file(file.at, file.nbytes))
        return;
    const size_t some = every_case() ? 1 : 1 + file.nbytes / 1000;
    for (size_t at = 0; at < file.nbytes; at += at < 300 ? 1 : some) {
        const uint8_t flip = (uint8_t)(1 << rng_below(&rng, 8));
        scene("%s, byte %zu", kind->name, at);
        file.at[at] ^= flip;
        if (is_tried(at, FILES_APART))
            expect_refused(file.at, file.nbytes);
        file.at[at] ^= flip;
    }
}

/* A mapped file that is changed after it was opened. */
TEST(test_changed_while_mapped)
{
    scoped_bytes file = file_of(perhaps_kind_at(0), 100);
    struct path path = temp_path("changed");
    struct perhaps_verdict verdict;
    write_file(path.text, file.at, file.nbytes);
    scoped_filter *f = open_file(path.text, &map_it),
                  *checked = open_file(path.text, &checking);
    expect_success(perhaps_verify(f, &verdict));
    expect(verdict.pages == 1 && verdict.damaged == 0);
    FILE *writing = fopen(path.text, "r+b");
    expect(writing && !fseek(writing, 70, SEEK_SET) && fputc(~file.at[70], writing) >= 0);
    expect(!fclose(writing));
    expect_error(perhaps_verify(f, &verdict), PERHAPS_ERR_DAMAGED);
    expect(verdict.pages == 1 && verdict.damaged == 1 && verdict.first_damaged == 64);
    perhaps_filter *copy;
    expect_error(perhaps_clone(f, &copy), PERHAPS_ERR_DAMAGED);
    expect(perhaps_contains(checked, "any", 3)); /* in doubt perhaps */
    expect_error(perhaps_checked(checked, &verdict), PERHAPS_ERR_DAMAGED);
}

/* ---- Right checksums --------------------------------------------------------------------- */

/* Opens a copy with one number of the header changed, and everything made to agree again. */
static int open_with(const struct bytes *file, size_t at, uint64_t value, size_t nbytes)
{
    scoped_bytes copy = copy_bytes(file);
    scene("%llu at %zu", (unsigned long long)value, at);
    put_number(copy.at + at, value, nbytes);
    reseal(copy.at, copy.nbytes);
    return open_all(copy.at, copy.nbytes);
}

/* Flags that are unknown, or that go with no small file, or not with this kind. */
TEST_EACH(test_every_flag, every_kind)
{
    scoped_bytes file = file_of(kind, 30);
    if (!is_small_file(file.at, file.nbytes))
        return;
    const uint64_t flags = get64(file.at + AT_FEATURES);
    const bool shares = kind->abilities & PERHAPS_CAN_SHARE;
    for (unsigned bit = 5; bit < 64; bit++)
        expect_error(open_with(&file, AT_FEATURES, flags | UINT64_C(1) << bit, 8),
                     PERHAPS_ERR_VERSION);
    expect_error(open_with(&file, AT_FEATURES, flags | 2, 8),
                 PERHAPS_ERR_DAMAGED); /* journal */
    expect_error(open_with(&file, AT_FEATURES, flags ^ FEATURE_SMALL_FILE, 8),
                 PERHAPS_ERR_DAMAGED);
    expect_error(open_with(&file, AT_FEATURES, flags | 1, 8), shares ? 0 : PERHAPS_ERR_DAMAGED);
    for (uint64_t some = 0; some < 16; some++) /* refused or safe */
        open_with(&file, AT_FEATURES, some | FEATURE_SMALL_FILE, 8);
    expect_error(open_with(&file, AT_VERSION, 2, 4), PERHAPS_ERR_VERSION);
    expect_error(open_with(&file, AT_VERSION, 0, 4), PERHAPS_ERR_DAMAGED);
}

/* All sizes of header and file but the right ones.  A header with 64 zeros more is refused,
 * too: each filter has one file. */
TEST(test_wrong_sizes)
{
    scoped_bytes file = file_of(perhaps_kind_at(0), 30);
    const uint64_t head = header_size(file.at, file.nbytes);
    for (uint64_t size = 0; size < ROOM; size += 16)
        if (size != head && is_tried(size / 16, FILES_APART))
            expect_error(open_with(&file, SMALL_AT_HEADER_NBYTES, size, 2),
                         PERHAPS_ERR_DAMAGED);
    for (uint64_t size = 0; size < ROOM; size += 8)
        if (size != file.nbytes && is_tried(size / 8, FILES_APART))
            expect_error(open_with(&file, SMALL_AT_FILE_NBYTES, size, 2), PERHAPS_ERR_DAMAGED);
    scoped_bytes longer = { .at = calloc(1, file.nbytes + 64), .nbytes = file.nbytes + 64 };
    expect(longer.at);
    memcpy(longer.at, file.at, head);
    memcpy(longer.at + head + 64, file.at + head, file.nbytes - head);
    put_number(longer.at + SMALL_AT_FILE_NBYTES, longer.nbytes, 2);
    expect_error(open_with(&longer, SMALL_AT_HEADER_NBYTES, head + 64, 2), PERHAPS_ERR_DAMAGED);
}

/* Opens the file with one of its numbers changed. */
static int open_with_number(const struct bytes *file, const char *what, size_t nth,
                            uint64_t value)
{
    struct numbers n;
    uint8_t changed[ROOM];
    expect(read_numbers(file->at, file->nbytes, &n));
    for (size_t i = 0; i < n.count; i++)
        if (!strcmp(n.what[i], what) && nth-- == 0)
            n.value[i] = value;
    scene("%llu as %s", (unsigned long long)value, what);
    size_t nbytes = write_numbers(&n, file->at, file->nbytes, changed);
    expect(nbytes);
    return open_all(changed, nbytes);
}

/* What is changed back gives the same file: so the tests read what the library writes. */
TEST_EACH(test_numbers, every_kind)
{
    scoped_bytes file = file_of(kind, 30);
    struct numbers n;
    uint8_t again[ROOM];
    if (!is_small_file(file.at, file.nbytes))
        return;
    expect(read_numbers(file.at, file.nbytes, &n));
    expect(write_numbers(&n, file.at, file.nbytes, again) == file.nbytes);
    expect(!memcmp(again, file.at, file.nbytes));
    expect_error(open_with_number(&file, "hash", 0, PERHAPS_HASH_COUNT), PERHAPS_ERR_VERSION);
    expect_error(open_with_number(&file, "hash", 0, UINT64_C(1) << 32), PERHAPS_ERR_DAMAGED);
    expect_error(open_with_number(&file, "kind", 0, 9), PERHAPS_ERR_VERSION);
    expect_error(open_with_number(&file, "kind", 0, 4711), PERHAPS_ERR_VERSION);
    expect_error(open_with_number(&file, "capacity", 0, 0), PERHAPS_ERR_DAMAGED);
    expect_error(open_with_number(&file, "sections", 0, 0), PERHAPS_ERR_DAMAGED);
    expect_error(open_with_number(&file, "sections", 0, UINT64_MAX), PERHAPS_ERR_DAMAGED);
    expect_error(open_with_number(&file, "note", 0, PERHAPS_NOTE_MAX + 1), PERHAPS_ERR_DAMAGED);
    expect_error(open_with_number(&file, "note", 0, UINT64_MAX), PERHAPS_ERR_DAMAGED);
}

/* Zeros behind the last section are those of a later version if they are none. */
TEST(test_behind_sections)
{
    scoped_bytes file = file_of(perhaps_kind_at(0), 30);
    const size_t last = header_size(file.at, file.nbytes) - 1;
    expect(!file.at[last] && !file.at[last - 1]);
    for (uint64_t value = 1; value < 256; value *= 2)
        expect_error(open_with(&file, last, value, 1), PERHAPS_ERR_VERSION);
}

/* Each number has one form only: none ends with a byte of zeros, or has more than 64 bits. */
TEST(test_other_forms)
{
    scoped_bytes file = file_of(perhaps_kind_at(0), 30);
    const size_t head = header_size(file.at, file.nbytes), longest = 11;
    for (size_t more = 1; more <= longest; more++) {
        scoped_bytes copy = { .at = calloc(1, file.nbytes + 64), .nbytes = file.nbytes + 64 };
        expect(copy.at && file.at[SMALL_AT_FIELDS] == 1);
        memcpy(copy.at, file.at, SMALL_AT_FIELDS);
        memcpy(copy.at + SMALL_AT_FIELDS + 1 + more, file.at + SMALL_AT_FIELDS + 1,
               head - SMALL_AT_FIELDS - 1);
        memcpy(copy.at + head + 64, file.at + head, file.nbytes - head);
        memset(copy.at + SMALL_AT_FIELDS, 0x80, more);
        copy.at[SMALL_AT_FIELDS] |= 1;
        put_number(copy.at + SMALL_AT_HEADER_NBYTES, head + 64, 2);
        put_number(copy.at + SMALL_AT_FILE_NBYTES, copy.nbytes, 2);
        reseal(copy.at, copy.nbytes);
        scene("%zu bytes of zeros", more);
        expect_error(open_all(copy.at, copy.nbytes), PERHAPS_ERR_DAMAGED);
    }
}

/* Up to three numbers are extreme, and counters are anything. */
TEST_EACH(test_hostile_numbers, every_kind)
{
    struct rng rng = rng_for(kind->name);
    scoped_bytes file = file_of(kind, 30);
    struct numbers intact, n;
    uint8_t changed[ROOM];
    if (!is_small_file(file.at, file.nbytes))
        return;
    expect(read_numbers(file.at, file.nbytes, &intact));
    for (unsigned round = 0; round < many(has_parts(kind) || grows(kind) ? 50 : 500); round++) {
        n = intact;
        for (uint64_t changes = 1 + rng_below(&rng, 3); changes > 0; changes--) {
            const size_t i = (size_t)rng_below(&rng, n.count);
            n.value[i] = rng_below(&rng, 2) ? n.value[i] + rng_below(&rng, 5) - 2
                                            : rng_next(&rng) >> rng_below(&rng, 64);
        }
        size_t nbytes = write_numbers(&n, file.at, file.nbytes, changed);
        for (unsigned way = 0; nbytes && way < WAYS; way++) {
            perhaps_filter *f;
            scoped_memory *memory;
            put64(changed + nbytes - COUNTERS_NBYTES, rng_next(&rng) >> rng_below(&rng, 64));
            reseal(changed, nbytes);
            scene("%s, hostile numbers %u, way %u", kind->name, round, way);
            if (!open_in_way(changed, nbytes, way, &f, &memory))
                exercise(f, round);
            perhaps_free(f);
        }
    }
}
