/* huge_test.c - proves that sizes and offsets beyond 4 GiB are not cut to 32 bits, in memory
 * and in files.  The bodies are sparse, and the files lie in memory, so only the pages that are
 * touched take memory.  It fails when keys crowd into the first 4 GiB, or when a key is not
 * found behind them. */
#include "support.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "filter/filter.h"
#include "store/container.h"

/* Few keys are enough. */
enum { KEYS = 40, OS_PAGE_NBYTES = 4096 };
static const uint64_t four_gib = UINT64_C(1) << 32;

/* Bodies are larger, also those of parts; other allocations are smaller. */
enum { LARGE_NBYTES = 1 << 24 };

/* Returns options for more than 2^32 keys, which need more than 4 GiB. */
static struct perhaps_options huge_options(const struct perhaps_kind *kind)
{
    scene("%s, huge", kind->name);
    return options_for(kind, four_gib + 12345, 0.0005, 1);
}

/* Returns whether the kind has one large body.  The parts of composites are filters of other
 * kinds, so for them only the offsets in the file are tested. */
static bool has_one_body(const struct perhaps_kind *kind)
{
    return any_kind(kind) && !has_parts(kind) && !grows(kind);
}

static void *allocate_sparse(void *context, size_t nbytes)
{
    (void)context;
    void *memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, nbytes, MADV_NOHUGEPAGE); /* else each key would take 2 MiB */
    return memory;
}

static void release_sparse(void *context, void *memory, size_t nbytes)
{
    (void)context;
    munmap(memory, nbytes);
}

static const struct perhaps_allocator sparse = { allocate_sparse, release_sparse, NULL, false };

/* The library sets what a caller's allocator returns to zero, which would touch every page.
 * The large bodies of this test are zero already, so they pass by that code. */
void *__real_allocate(const struct perhaps_allocator *allocator, uint64_t nbytes);
void *__wrap_allocate(const struct perhaps_allocator *allocator, uint64_t nbytes);
void __real_release(const struct perhaps_allocator *allocator, void *memory, uint64_t nbytes);
void __wrap_release(const struct perhaps_allocator *allocator, void *memory, uint64_t nbytes);

void *__wrap_allocate(const struct perhaps_allocator *allocator, uint64_t nbytes)
{
    return allocator->allocate && nbytes >= LARGE_NBYTES
               ? allocator->allocate(allocator->context, (size_t)nbytes)
               : __real_allocate(allocator, nbytes);
}

void __wrap_release(const struct perhaps_allocator *allocator, void *memory, uint64_t nbytes)
{
    if (allocator->release && memory && nbytes >= LARGE_NBYTES)
        allocator->release(allocator->context, memory, (size_t)nbytes);
    else
        __real_release(allocator, memory, nbytes);
}

/* Returns whether a stretch of the body holds a byte that is not 0.  Reads only pages that are
 * in memory, since reading others would take memory. */
static bool is_used(const uint8_t *body, uint64_t from, uint64_t end)
{
    unsigned char resident[1024];
    for (uint64_t at = from; at < end; at += sizeof resident * OS_PAGE_NBYTES) {
        uint64_t size = end - at < sizeof resident * OS_PAGE_NBYTES
                            ? end - at
                            : sizeof resident * OS_PAGE_NBYTES;
        expect(!mincore((void *)(body + at), size, resident));
        for (uint64_t page = 0; page < size / OS_PAGE_NBYTES; page++)
            for (uint64_t i = 0; resident[page] & 1 && i < OS_PAGE_NBYTES; i++)
                if (body[at + page * OS_PAGE_NBYTES + i])
                    return true;
    }
    return false;
}

static void check_answers(const perhaps_filter *f, size_t nkeys)
{
    scoped_keys keys = make_keys(TEXT_KEYS, 1, 0, nkeys);
    scoped_keys others = make_keys(TEXT_KEYS, 1, nkeys, 2 * nkeys);
    expect_all_found(f, &keys);
    expect(perhaps_contains_many(f, &others, NULL) == 0); /* it is nearly empty */
}

TEST(test_in_memory)
{
    scoped_keys keys = make_keys(TEXT_KEYS, 1, 0, KEYS);
    EACH_KIND(kind, has_one_body) {
        struct perhaps_options options = huge_options(kind);
        options.allocator = &sparse;
        scoped_filter *f = make_with(&options);
        uint64_t nbytes = f->body.geometry.body_nbytes;
        expect(nbytes > four_gib && f->body.geometry.key_limit > four_gib / 100 * 99);
        fill(f, &keys);
        check_answers(f, KEYS);
        for (uint64_t part = 0; part < 4; part++) /* keys lie in each quarter */
            expect(is_used(f->body.bytes, nbytes / 4 * part / OS_PAGE_NBYTES * OS_PAGE_NBYTES,
                           nbytes / 4 * (part + 1) / OS_PAGE_NBYTES * OS_PAGE_NBYTES));
        expect(is_used(f->body.bytes, four_gib, nbytes / OS_PAGE_NBYTES * OS_PAGE_NBYTES));
        struct perhaps_stats stats = stats_of(f);
        expect(stats.keys == KEYS && stats.load < 1e-4);
        if (removes(kind)) {
            size_t removed;
            expect_success(perhaps_remove_many(f, &keys, NULL, &removed, NULL));
            expect(removed == KEYS && perhaps_contains_many(f, &keys, NULL) == 0);
        }
    }
}

/* ---- In a file --------------------------------------------------------------------------- */

/* A mapped file of the right size, which is one hole at first.  It has no name but that of its
 * descriptor.  On a disk, each page that is read may read some MiB of holes ahead. */
struct sparse_file {
    char path[64];
    int fd;
    uint8_t *map;
    struct header header;
};

/* An allocator that gives the place of the body in the mapped file. */
static void *give_body(void *context, size_t nbytes)
{
    const struct sparse_file *file = context;
    if (nbytes < four_gib)
        return calloc(1, nbytes);
    return file->map + HEADER_NBYTES;
}

static void keep_body(void *context, void *memory, size_t nbytes)
{
    (void)context;
    if (nbytes < four_gib)
        free(memory);
}

/* Makes the file.  Its size follows from the geometry alone. */
static void plan_file(struct sparse_file *file, const struct perhaps_options *options)
{
    struct perhaps_options sparse_options = *options;
    sparse_options.allocator = &sparse;
    perhaps_filter *f = make_with(&sparse_options);
    container_plan(f, &file->header);
    perhaps_free(f);
    file->fd = memfd_create("huge", MFD_CLOEXEC);
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
    expect(file->fd >= 0 && !ftruncate(file->fd, (off_t)file->header.file_nbytes));
    file->map =
        mmap(NULL, file->header.file_nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
    expect(file->map != MAP_FAILED);
}

/* Writes the checksums of the pages that have bytes.  Those of holes stay 0: they would be the
 * checksums of gigabytes, and no call of this test asks for them, since opening a file compares
 * only the checksum of the table. */
static void write_table(struct sparse_file *file)
{
    const uint64_t nbytes = file->header.table_offset - HEADER_NBYTES;
    const uint64_t pages = container_page_count(nbytes);
    uint8_t *table = file->map + file->header.table_offset;
    off_t data = HEADER_NBYTES;
    while ((data = lseek(file->fd, data, SEEK_DATA)) >= 0 &&
           (uint64_t)data < file->header.table_offset) {
        uint64_t page = ((uint64_t)data - HEADER_NBYTES) / PAGE_NBYTES;
        uint64_t at = page * PAGE_NBYTES, left = nbytes - at;
        uint64_t sum = XXH3_64bits_withSeed(file->map + HEADER_NBYTES + at,
                                            left < PAGE_NBYTES ? left : PAGE_NBYTES, page);
        memcpy(table + page * sizeof sum, &sum, sizeof sum);
        data = (off_t)(HEADER_NBYTES + at + PAGE_NBYTES);
    }
    uint64_t sum = XXH3_64bits_withSeed(table, (size_t)pages * sizeof sum, pages);
    memcpy(table + pages * sizeof sum, &sum, sizeof sum);
}

static void write_filter(struct sparse_file *file, const struct perhaps_options *options)
{
    struct perhaps_options in_file = *options;
    struct perhaps_allocator allocator = { give_body, keep_body, file, false };
    struct perhaps_keys keys = make_keys(TEXT_KEYS, 1, 0, KEYS);
    in_file.allocator = &allocator;
    perhaps_filter *f = make_with(&in_file);
    fill(f, &keys);
    container_plan(f, &file->header);
    container_encode(f, &file->header, file->map);
    perhaps_free(f);
    free_keys(&keys);
    write_table(file);
}

static void check_opened(const struct sparse_file *file)
{
    struct ledger ledger = { 0 };
    struct perhaps_allocator allocator = ledger_allocator(&ledger);
    struct perhaps_open_options options = { .allocator = &allocator };
    scoped_filter *f = open_file(file->path, &options);
    expect(ledger.largest_nbytes <= 2 * HEADER_NBYTES); /* it is mapped, not copied */
    struct perhaps_stats stats = stats_of(f);
    expect(stats.mapped && stats.keys == KEYS);
    check_answers(f, KEYS);
}

TEST_EACH(test_in_file, has_one_body)
{
    struct perhaps_options options = huge_options(kind);
    struct sparse_file file;
    plan_file(&file, &options);
    write_filter(&file, &options);
    check_opened(&file);
    expect(!munmap(file.map, file.header.file_nbytes));
    expect(!ftruncate(file.fd, (off_t)four_gib)); /* cut, but still very long */
    perhaps_filter *f;
    expect_error(perhaps_open(file.path, NULL, &f), PERHAPS_ERR_DAMAGED);
    close(file.fd);
}

/* In a file of a filter with parts each body lies behind the one before it, some of them beyond
 * 4 GiB. */
TEST_EACH(test_offsets_of_parts, has_parts)
{
    struct perhaps_options options = huge_options(kind);
    struct header header, decoded;
    uint64_t end = 0;
    options.allocator = &sparse;
    scoped_filter *f = make_with(&options);
    container_plan(f, &header);
    uint8_t *bytes = calloc(1, header.nbytes);
    expect(bytes && header.sections == f->parts->count + 1);
    container_encode(f, &header, bytes);
    expect_success(container_decode(bytes, header.file_nbytes, &decoded));
    expect_error(container_decode(bytes, header.file_nbytes - four_gib, &decoded),
                 PERHAPS_ERR_DAMAGED);
    struct section *sections = calloc(header.sections, sizeof *sections);
    expect_success(container_sections(bytes, &decoded, true, sections));
    for (uint32_t s = 0; s < header.sections; s++) {
        expect(sections[s].body_offset >= end && sections[s].geometry.body_nbytes > 0);
        end = sections[s].body_offset + sections[s].geometry.body_nbytes;
    }
    free(sections);
    expect(end > four_gib && end == header.table_offset);
    free(bytes);
}
