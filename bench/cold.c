/* cold.c - measures questions to a file that is not in memory: 'perhaps-bench cold'.
 *
 * Before each measurement the file is taken from memory.  In the same run the disk is measured:
 * a page that is read alone, one of 64 pages that are asked for at once, and the file from its
 * begin to its end; so each row can be compared with what the disk allows.
 *
 * The bytes that are zeros take no room on the disk where --sparse is given, and no time to be
 * read: then only memory is looked at. */
#define _GNU_SOURCE 1

#include <err.h>
#include <fcntl.h>
#include <perhaps_embed.h>
#include <perhaps_fast.h>
#include <perhaps_file.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"

enum { PAGE = 4096, CAT_NBYTES = 128 << 10, AT_ONCE = 64, ALONE = 200, TOGETHER = 50 };

static const double rate = 0.01;

/* The file, and the disk that it lies on: seconds. */
struct cold {
    const char *path;
    int fd;
    uint64_t nbytes;
    double page_alone, page_of_many, all;
    bool sparse;
    void *memory; /* of the filter while it is written: zeros */
    size_t memory_nbytes;
};

/* ---- The file ---------------------------------------------------------------------------- */

/* Memory for a filter that has no keys, and may be larger than the machine's. */
static void *reserve(void *context, size_t nbytes)
{
    struct cold *c = context;
    void *memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (nbytes > c->memory_nbytes) {
        c->memory = memory;
        c->memory_nbytes = nbytes;
    }
    return memory;
}

static void unreserve(void *context, void *memory, size_t nbytes)
{
    (void)context;
    munmap(memory, nbytes);
}

static bool is_zero(const uint8_t *bytes, size_t nbytes)
{
    return !nbytes || (!bytes[0] && !memcmp(bytes, bytes + 1, nbytes - 1));
}

/* A sink: writes what is not zero, or with 'sparse' false everything. */
static int put(void *context, const void *bytes, size_t nbytes)
{
    struct cold *c = context;
    if (!c->sparse || !is_zero(bytes, nbytes))
        for (size_t done = 0; done < nbytes;) {
            ssize_t n = pwrite(c->fd, (const char *)bytes + done, nbytes - done,
                               (off_t)(c->nbytes + done));
            if (n < 0)
                err(2, "%s", c->path);
            done += (size_t)n;
        }
    const uint64_t piece = 256 << 20;
    if (c->nbytes / piece != (c->nbytes + nbytes) / piece) /* they stay zeros */
        madvise(c->memory, c->memory_nbytes, MADV_DONTNEED);
    c->nbytes += nbytes;
    return 0;
}

/* Makes the file of an empty filter of so many bytes: absent keys read as much as others. */
static void make_file(struct cold *c, double body_nbytes)
{
    const struct perhaps_allocator allocator = { reserve, unreserve, c, .zeroes = true };
    const struct perhaps_options options = {
        .allocator = &allocator,
        .capacity = (uint64_t)(body_nbytes * 8 / 10.6),
        .fpr = rate,
        .kind = "blocked",
        .hashing = { .hash = PERHAPS_HASH_XXH3_64, .seed = 1 },
    };
    const struct perhaps_sink sink = { put, c };
    perhaps_filter *filter;
    int error = perhaps_create(&options, &filter);
    if (!error)
        error = perhaps_write(filter, &sink);
    if (error)
        errx(2, "%s: %s", c->path, perhaps_strerror(error));
    perhaps_free(filter);
    if (ftruncate(c->fd, (off_t)c->nbytes) || fsync(c->fd))
        err(2, "%s", c->path);
}

/* Ends the program with the status of a test that cannot run here. */
static _Noreturn void give_up(const struct cold *c)
{
    enum { CANNOT_TRY = 77 };
    unlink(c->path);
    errx(CANNOT_TRY, "%s: this file system keeps files in memory", c->path);
}

/* Takes the file from memory; ends the program where the system does not do that. */
static void drop(const struct cold *c)
{
    const size_t pages = (size_t)(c->nbytes / PAGE);
    unsigned char *there = calloc(pages + 1, 1);
    size_t n = 0;
    posix_fadvise(c->fd, 0, 0, POSIX_FADV_DONTNEED);
    void *map = mmap(NULL, (size_t)c->nbytes, PROT_READ, MAP_SHARED, c->fd, 0);
    if (!there || map == MAP_FAILED || mincore(map, (size_t)c->nbytes, there))
        err(2, "%s", c->path);
    for (size_t i = 0; i < pages; i++)
        n += there[i] & 1;
    munmap(map, (size_t)c->nbytes);
    free(there);
    if (n > pages / 4)
        give_up(c);
}

/* ---- The disk ---------------------------------------------------------------------------- */

static off_t random_page(const struct cold *c, uint64_t *state)
{
    const uint64_t pages = c->nbytes / PAGE;
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (off_t)((*state >> 33) % (pages ? pages : 1) * PAGE);
}

static void read_at(const struct cold *c, void *bytes, off_t at)
{
    if (pread(c->fd, bytes, PAGE, at) < 0)
        err(2, "%s", c->path);
}

/* With 'at_once' pages asked for before the first is read; returns seconds a page. */
static double time_pages(const struct cold *c, size_t rounds, size_t at_once)
{
    static uint64_t state = 1;
    char bytes[PAGE];
    off_t at[AT_ONCE];
    drop(c);
    posix_fadvise(c->fd, 0, 0, POSIX_FADV_RANDOM);
    const double begin = seconds_now();
    for (size_t r = 0; r < rounds; r++) {
        for (size_t i = 0; i < at_once; i++)
            at[i] = random_page(c, &state);
        for (size_t i = 0; at_once > 1 && i < at_once; i++)
            posix_fadvise(c->fd, at[i], PAGE, POSIX_FADV_WILLNEED);
        for (size_t i = 0; i < at_once; i++)
            read_at(c, bytes, at[i]);
    }
    return (seconds_now() - begin) / (double)(rounds * at_once);
}

static double time_all(const struct cold *c)
{
    static char bytes[CAT_NBYTES];
    ssize_t n;
    drop(c);
    posix_fadvise(c->fd, 0, 0, POSIX_FADV_NORMAL);
    const double begin = seconds_now();
    for (off_t at = 0; (n = pread(c->fd, bytes, sizeof bytes, at)) > 0;)
        at += n;
    return seconds_now() - begin;
}

/* ---- Questions --------------------------------------------------------------------------- */

/* Returns how many bytes this process had read from a disk; 0 if the system does not tell. */
static double nbytes_read(void)
{
    char line[256];
    unsigned long long n, found = 0;
    FILE *file = fopen("/proc/self/io", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "read_bytes: %llu", &n) == 1)
            found = n;
    if (file)
        fclose(file);
    return (double)found;
}

static const char columns[] =
    "questions questions 9n; seconds seconds 8.4; us_each us 9.2; "
    "KB_read kbytes 10.0; x_page page_ratio 7.2; x_cat cat_ratio 6.2;";

/* Asks once for so many keys, others each time. */
static void measure_questions(const struct cold *c, uint64_t questions, json_t *rows)
{
    static uint64_t first = UINT64_C(1) << 40;
    struct key_buffer buffer = key_buffer_open(sizeof(uint64_t), (size_t)questions);
    const struct perhaps_keys keys = keys_added(&buffer, first, (size_t)questions);
    bool *present = calloc((size_t)questions, sizeof *present);
    perhaps_filter *filter;
    first += questions;
    drop(c);
    int error = present ? perhaps_open(c->path, NULL, &filter) : PERHAPS_ERR_MEMORY;
    if (error)
        errx(2, "%s: %s", c->path, perhaps_strerror(error));
    const double before = nbytes_read(), begin = seconds_now();
    if (questions == 1)
        present[0] = perhaps_contains(filter, keys.packed, keys.key_nbytes);
    else
        perhaps_contains_many(filter, &keys, present);
    const double seconds = seconds_now() - begin, n = (double)questions;
    json_t *row = json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "questions",
                            (json_int_t)questions, "seconds", seconds, "us", 1e6 * seconds / n,
                            "kbytes", (nbytes_read() - before) / 1e3, "page_ratio",
                            seconds / n / (n > 1 ? c->page_of_many : c->page_alone),
                            "cat_ratio", c->all > 0 ? seconds / c->all : 0);
    table_row(columns, row);
    putchar('\n');
    json_array_append_new(rows, row);
    perhaps_free(filter);
    key_buffer_close(&buffer);
    free(present);
}

bool cold_all(const struct settings *settings, json_t *facts)
{
    char path[4096];
    struct cold c = { .path = path, .sparse = settings->sparse };
    json_t *rows = json_array();
    snprintf(path, sizeof path, "%s/perhaps-cold.XXXXXX",
             settings->folder ? settings->folder : ".");
    c.fd = mkstemp(path);
    if (c.fd < 0)
        err(2, "%s", path);
    make_file(&c, settings->body_nbytes.at[0]);
    for (int turn = 0; turn < (int)settings->repeat.at[0]; turn++) {
        c.page_alone = time_pages(&c, ALONE, 1);
        c.page_of_many = time_pages(&c, TOGETHER, AT_ONCE);
        c.all = c.sparse ? 0 : time_all(&c);
        printf(
            "%.0f MB; the disk reads a page in %.1f us, one of %d in %.1f us, all in %.3f s\n",
            (double)c.nbytes / 1e6, 1e6 * c.page_alone, AT_ONCE, 1e6 * c.page_of_many, c.all);
        table_head(columns);
        putchar('\n');
        for (uint64_t questions = 1; questions <= 1000000; questions *= 10)
            measure_questions(&c, questions, rows);
    }
    json_object_set_new(facts, "cold", rows);
    close(c.fd);
    unlink(path);
    return false;
}
