/* sections_test.c - proves that a file of a filter with parts is refused if an enemy has
 * changed how its sections belong together: wrong parents, parts of a wrong kind or number,
 * bodies that lie elsewhere, wrong sizes of the header.  The checksums are right each time, so
 * only the checks of the reader stand against it.  What is not refused must be safe to use. */
#include "support.h"
#include <perhaps_window.h>

#include <string.h>

#include "hostile.h"
#include "kinds/composite/parts.h"
#include "kinds/kinds.h"

enum { CHAIN_ID = 6, WINDOW_ID = 7 }; /* the ids of these kinds in files */

/* Puts the checksums right and opens the file in both ways.  Returns the error, which must be
 * the same for both. */
static int open_resealed(struct bytes *file)
{
    int error[2];
    reseal(file->at, file->nbytes);
    for (unsigned way = 0; way < 2; way++) {
        scoped_filter *f;
        error[way] = open_bytes(file->at, file->nbytes, ways_to_open[way], &f);
        if (!error[way])
            exercise(f, file->nbytes);
    }
    expect(error[0] == error[1]);
    return error[0];
}

/* The same for a copy with one number of the header changed. */
static int open_with(const struct bytes *file, size_t at, uint64_t value, size_t nbytes)
{
    scoped_bytes copy = copy_bytes(file);
    scene("%llu at %zu", (unsigned long long)value, at);
    put_number(copy.at + at, value, nbytes);
    return open_resealed(&copy);
}

static void expect_refused(int error)
{
    expect(error == PERHAPS_ERR_DAMAGED || error == PERHAPS_ERR_VERSION);
}

/* Makes a chain of so many layers, all of the same size (factor 1). */
static perhaps_filter *chain_of(const char *base, uint64_t capacity, unsigned layers)
{
    struct perhaps_options options = { .kind = "chain",
                                       .base = base,
                                       .capacity = capacity,
                                       .fpr = 0.01,
                                       .chain.factor = 1,
                                       .hashing = { .seed = 7 } };
    perhaps_filter *f = make_with(&options);
    for (uint64_t key = 0; f->parts->count < layers; key++)
        expect_success(perhaps_add(f, &key, sizeof key));
    return f;
}

static perhaps_filter *window_of(const char *base, uint64_t time)
{
    struct perhaps_options options = { .kind = "window",
                                       .base = base,
                                       .capacity = 30,
                                       .fpr = 0.01,
                                       .window = { .generations = 3, .time = time },
                                       .hashing = { .seed = 7 } };
    perhaps_filter *f = make_with(&options);
    for (uint64_t key = 0; key < 30; key++) {
        expect_success(perhaps_add(f, &key, sizeof key));
        if (key % 10 == 9)
            expect_success(perhaps_rotate(f));
    }
    return f;
}

/* Saves and frees a filter, and checks that its file opens before anything is changed. */
static struct bytes file_of(perhaps_filter *f)
{
    struct bytes file = large_bytes(f);
    perhaps_free(f);
    expect_success(open_resealed(&file));
    return file;
}

/* ---- Trees ------------------------------------------------------------------------------ */

/* A part's parent is a section before it; the first section has none. */
TEST(test_parents)
{
    scoped_bytes file = file_of(chain_of("blocked", 20, 4));
    expect(get_number(file.at + AT_SECTIONS, 4) == 5);
    const uint32_t wrong[] = { 1, 2, 3, 4, 5, 100, UINT32_MAX };
    for (size_t section = 1; section < 5; section++)
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++)
            expect_refused(open_with(&file, at_section(AT_PARENT, section), wrong[w], 4));
    for (uint32_t parent = 0; parent < 6; parent++) /* for the first, each number is wrong */
        expect_refused(open_with(&file, AT_PARENT, parent, 4));
}

/* A window of chains nests as deep as a file may; a chain in a chain, or deeper, is refused. */
TEST(test_depth)
{
    scoped_bytes file = file_of(window_of("chain", 100));
    uint64_t sections = get_number(file.at + AT_SECTIONS, 4);
    size_t chain = 0, layer = 0;
    for (size_t s = 1; s < sections; s++) {
        bool is_chain = get_number(file.at + at_section(AT_KIND, s), 4) == CHAIN_ID;
        chain = is_chain ? s : chain;
        layer = is_chain ? layer : s;
        expect((get_number(file.at + at_section(AT_PARENT, s), 4) == 0) == is_chain);
    }
    expect(chain && layer);
    expect_refused(open_with(&file, at_section(AT_PARENT, chain), chain - 1, 4));
    expect_refused(open_with(&file, at_section(AT_PARENT, chain), 1, 4));
    expect_refused(open_with(&file, at_section(AT_PARENT, layer), 0, 4));
    expect_refused(open_with(&file, at_section(AT_PARENT, layer), layer, 4));
    expect_refused(open_with(&file, at_section(AT_KIND, layer), CHAIN_ID, 4));
    expect_refused(open_with(&file, at_section(AT_KIND, layer), WINDOW_ID, 4));
    expect_refused(open_with(&file, at_section(AT_KIND, 0), CHAIN_ID, 4));
}

TEST(test_parts_of_a_wrong_kind)
{
    perhaps_filter *of_bloom = chain_of("bloom", 20, 2), *of_cuckoo = chain_of("cuckoo", 20, 2);
    scoped_bytes file = file_of(of_bloom), other = file_of(of_cuckoo);
    for (uint64_t base = 0; base < 12; base++)
        if (base != get_number(file.at + at_section(AT_KIND, 1), 4))
            expect_refused(open_with(&file, AT_FIELDS + 8, base, 8));
    expect_refused(open_with(&file, AT_FIELDS + 8, UINT64_C(1) << 32, 8));
    expect_refused(open_with(&file, AT_FIELDS + 8, UINT64_MAX, 8));
    expect_refused(open_with(&file, at_section(AT_KIND, 2),
                             get_number(other.at + at_section(AT_KIND, 2), 4), 4));
    expect_refused(open_with(&file, AT_FIELDS, 0, 8)); /* factor */
    expect_refused(open_with(&file, AT_FIELDS, 32769, 8));
    expect_refused(open_with(&file, AT_FIELDS + 16, 0, 8)); /* preference */
    expect_refused(open_with(&file, AT_FIELDS + 16, 4, 8));
}

/* A chain or window whose file has only the first section, with a table that fits. */
TEST(test_without_parts)
{
    perhaps_filter *const filters[] = { chain_of("blocked", 20, 3), window_of("blocked", 0) };
    for (unsigned i = 0; i < 2; i++) {
        scoped_bytes file = file_of(filters[i]);
        size_t end = at_section(AT_KIND, get_number(file.at + AT_SECTIONS, 4));
        memset(file.at + FIELDS_END, 0, end - FIELDS_END);
        put_number(file.at + AT_SECTIONS, 1, 4);
        put_number(file.at + AT_TABLE_OFFSET, BODY_OFFSET + 64, 8);
        file.nbytes = BODY_OFFSET + 64 + 16;
        put_number(file.at + AT_FILE_NBYTES, file.nbytes, 8);
        scene("without parts, %u", i);
        expect_error(open_resealed(&file), PERHAPS_ERR_DAMAGED);
    }
}

/* The number of generations must be that of the parts in the file, which is 3. */
TEST(test_generations_that_miss)
{
    scoped_bytes file = file_of(window_of("blocked", 0));
    const uint64_t wrong[] = { 0, 1, 2, 4, 64, 65, UINT64_MAX };
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++)
        expect_refused(open_with(&file, AT_FIELDS, wrong[w], 8));
}

/* The body of a window is its clock: any numbers there are taken, and advancing is safe. */
TEST(test_any_clock)
{
    scoped_bytes file = file_of(window_of("blocked", 10));
    const uint64_t times[] = { 0, 1, 2, UINT64_MAX, UINT64_MAX / 2 };
    for (size_t set = 0; set < 5; set++)
        for (size_t began = 0; began < 5; began++) {
            scoped_bytes copy = copy_bytes(&file);
            scoped_filter *f;
            put_number(copy.at + BODY_OFFSET, times[set], 8);
            put_number(copy.at + BODY_OFFSET + 8, times[began], 8);
            expect_success(open_resealed(&copy));
            expect_success(open_bytes(copy.at, copy.nbytes, &load_it, &f));
            for (size_t now = 0; now < 5; now++)
                expect_success(perhaps_advance(f, times[now]));
        }
}

/* Parts that can hold no key, since the rate is too low for their fingerprints, are refused.
 * If they were not, an add must still end: it once went from one generation to the next for
 * ever. */
TEST(test_parts_without_room)
{
    struct perhaps_options options = { .kind = "window",
                                       .base = "cuckoo",
                                       .capacity = 30,
                                       .fpr = 0.01,
                                       .window = { .keys = 30 },
                                       .hashing = { .seed = 7 } };
    scoped_filter *f = make_with(&options);
    scoped_bytes file = large_bytes(f);
    double fpr = PERHAPS_FPR_MIN;
    for (size_t part = 0; part < f->parts->count; part++) {
        memcpy(file.at + at_section(AT_FPR, part + 1), &fpr, sizeof fpr);
        f->parts->part[part]->body.geometry.key_limit = 0; /* as if the file had been opened */
        filter_reset_room(f->parts->part[part]);
    }
    expect_error(open_resealed(&file), PERHAPS_ERR_DAMAGED);
    expect_error(perhaps_add(f, "key", 3), PERHAPS_ERR_FULL);
}

/* ---- Bodies ------------------------------------------------------------------------------ */

/* Offsets and sizes of each body: before it, behind it, beyond the file, and such that sums
 * overflow. */
TEST(test_bodies_elsewhere)
{
    scoped_bytes file = file_of(chain_of("bloom", 20, 4));
    for (size_t section = 0; section < 5; section++) {
        size_t at = at_section(AT_BODY_OFFSET, section),
               size = at_section(AT_BODY_NBYTES, section);
        uint64_t usual = get_number(file.at + at, 8), nbytes = get_number(file.at + size, 8);
        const uint64_t offsets[] = {
            0,          64,          4095,       usual - 4096, usual + 4096,     usual + 64,
            usual - 64, file.nbytes, UINT64_MAX, -usual,       UINT64_MAX - 4095
        };
        for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++)
            expect_refused(open_with(&file, at, offsets[o], 8));
        const uint64_t sizes[] = { 0,          nbytes - 64, nbytes + 64,    nbytes + 4096,
                                   UINT64_MAX, -usual,      UINT64_MAX - 63 };
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            expect_refused(open_with(&file, size, sizes[s], 8));
    }
}

/* ---- Headers of more than one page ------------------------------------------------------- */

/* 31 sections need a header of two pages.  Every flipped bit and every cut must be found. */
TEST(test_thirty_layers)
{
    perhaps_filter *opened;
    scoped_filter *f = chain_of("blocked", 20, 30);
    scoped_bytes file = large_bytes(f);
    expect(header_size(file.at, file.nbytes) == 2 * 4096 &&
           get_number(file.at + AT_SECTIONS, 4) == 31);
    for (unsigned way = 0; way < 2; way++) {
        expect_success(open_bytes(file.at, file.nbytes, ways_to_open[way], &opened));
        expect(perhaps_equal(f, opened) && stats_of(opened).parts == 30);
        expect_same_counters(f, opened);
        scoped_bytes again = large_bytes(opened);
        expect_same_bytes(&again, &file);
        perhaps_free(opened);
    }
    for (size_t bit = 0; bit < 8 * file.nbytes; bit += SANITIZED ? 4001 : 401) {
        scene("bit %zu", bit);
        file.at[bit / 8] = (uint8_t)(file.at[bit / 8] ^ 1U << bit % 8);
        int error = open_bytes(file.at, file.nbytes, &load_it, &opened);
        expect(is_refusal(error));
        file.at[bit / 8] = (uint8_t)(file.at[bit / 8] ^ 1U << bit % 8);
    }
    for (size_t nbytes = 0; nbytes < file.nbytes; nbytes += 97)
        for (unsigned way = 0; way < 2; way++) {
            int error = open_bytes(file.at, nbytes, ways_to_open[way], &opened);
            expect(error == PERHAPS_ERR_FORMAT || error == PERHAPS_ERR_DAMAGED);
        }
}

/* The linker sends the library's calls of kind_set_geometry() here, where they are counted
 * (--wrap, see CMakeLists.txt). */
int __real_kind_set_geometry(const struct filter_kind *kind, struct geometry *g);
int __wrap_kind_set_geometry(const struct filter_kind *kind, struct geometry *g);
static unsigned nderived;

int __wrap_kind_set_geometry(const struct filter_kind *kind, struct geometry *g)
{
    nderived++;
    return __real_kind_set_geometry(kind, g);
}

/* Deriving a geometry takes long.  So the geometry of the window, that of its chains, and that
 * of each layer is derived once, however many generations have it. */
TEST(test_geometries_are_derived_once)
{
    enum { GENERATIONS = 40, LAYERS = 12 };
    struct perhaps_options options = { .kind = "window",
                                       .base = "chain",
                                       .capacity = GENERATIONS - 1,
                                       .fpr = 0.01,
                                       .window = { .generations = GENERATIONS, .time = 1 },
                                       .chain.factor = 1,
                                       .hashing = { .seed = 7 } };
    perhaps_filter *opened;
    scoped_filter *f = make_with(&options);
    for (uint64_t key = 0; f->parts->part[0]->parts->count < LAYERS; key++) {
        expect_success(perhaps_add(f, &key, sizeof key));
        if (f->parts->part[GENERATIONS - 1]->parts->count == LAYERS)
            expect_success(perhaps_rotate(f));
    }
    scoped_bytes file = large_bytes(f);
    expect(get_number(file.at + AT_SECTIONS, 4) > 400);
    for (unsigned way = 0; way < 2; way++) {
        nderived = 0;
        expect_success(open_bytes(file.at, file.nbytes, ways_to_open[way], &opened));
        scene("%u derived", nderived);
        expect(nderived > 2 && nderived <= 2 + LAYERS);
        expect(perhaps_equal(f, opened));
        perhaps_free(opened);
    }
}

/* A chain takes keys until its last possible layer is full; one key more is refused and
 * counted.  The file of such a chain opens. */
TEST(test_all_layers)
{
    perhaps_filter *f = chain_of("blocked", 5, 1);
    int error = 0;
    while (f->parts->count < PERHAPS_LAYERS_MAX) /* late ones double, so none would get there */
        expect_success(parts_append_like(f, f->parts->part[0]));
    for (uint64_t key = 1 << 20; !error && key < (1 << 20) + 10000; key++)
        error = perhaps_add(f, &key, sizeof key);
    expect_error(error, PERHAPS_ERR_LAYERS);
    expect(stats_of(f).failed_adds == 1 && stats_of(f).parts == PERHAPS_LAYERS_MAX);
    expect(stats_of(f).fpr_now <= 0.01);
    scoped_bytes file = file_of(f);
    expect(file.nbytes > 0);
}

/* Numbers of sections, and sizes of the header, that do not fit the file.  Headers with room
 * for thousands of sections are read, and then refused. */
TEST(test_many_sections)
{
    scoped_bytes file = file_of(chain_of("blocked", 20, 2));
    const uint64_t counts[] = { 0, 1, 2, 4, 25, 8192, 8193, UINT32_MAX };
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        expect_refused(open_with(&file, AT_SECTIONS, counts[c], 4));
    for (uint64_t nbytes = 0; nbytes < 6 * 4096; nbytes += 4096 / 2)
        if (nbytes != BODY_OFFSET)
            expect_refused(open_with(&file, AT_HEADER_NBYTES, nbytes, 4));
    for (size_t count = 8191; count <= 8193; count++) { /* the header has room for all */
        size_t head = (120 + count * SECTION_NBYTES + 4095) / 4096 * 4096;
        scoped_bytes large = { .at = calloc(1, head + 4096), .nbytes = head + 4096 };
        expect(large.at);
        memcpy(large.at, file.at, FIELDS_END);
        for (size_t s = 1; s < count; s++)
            memcpy(large.at + at_section(AT_KIND, s), file.at + at_section(AT_KIND, 1),
                   SECTION_NBYTES);
        put_number(large.at + AT_SECTIONS, count, 4);
        put_number(large.at + AT_HEADER_NBYTES, head, 4);
        put_number(large.at + AT_PAGES_OFFSET, head, 8);
        put_number(large.at + AT_TABLE_OFFSET, head + 64, 8);
        put_number(large.at + AT_FILE_NBYTES, large.nbytes, 8);
        scene("%zu sections", count);
        expect_refused(open_resealed(&large));
    }
}
