/* pairs.c - measures calls with two filters: perhaps_compare() and perhaps_intersect(), beside
 * memcmp() of as many bytes. */
#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include <perhaps_plan.h>
#include <perhaps_sets.h>

/* Two filters of one kind that are half full, and have half of their keys in common. */
struct pair {
    perhaps_filter *a, *b;
    uint64_t keys; /* of each */
};

/* Adds keys from number 'first' on. */
static void add_keys(perhaps_filter *filter, uint64_t first, uint64_t count, bool integers)
{
    enum { PIECE = 4096 };
    struct key_buffer buffer = integers ? key_buffer_of_integers(integers_for(2 * count), PIECE)
                                        : key_buffer_open(8, PIECE);
    for (uint64_t done = 0; done < count; done += PIECE) {
        struct perhaps_keys keys =
            keys_added(&buffer, first + done, piece_of(count - done, PIECE));
        if (perhaps_add_many(filter, &keys, NULL))
            errx(2, "a filter did not take its keys");
    }
    key_buffer_close(&buffer);
}

/* Makes a pair.  Returns false if the kind has no comparison. */
static bool pair_make(const struct perhaps_kind *kind, uint64_t capacity, double fpr,
                      struct pair *pair)
{
    struct perhaps_options options = { .kind = kind->name, .capacity = capacity, .fpr = fpr };
    struct perhaps_comparison c;
    bool integers = !strcmp(kind->name, "bitmap");
    *pair = (struct pair){ .keys = capacity / 2 };
    if (integers)
        options.bitmap =
            (struct perhaps_bitmap_options){ INTEGER_LOW,
                                             INTEGER_LOW + integers_for(capacity) - 1 };
    else
        options.hashing.seed = 1;
    if (perhaps_create(&options, &pair->a) || perhaps_create(&options, &pair->b) ||
        perhaps_compare(pair->a, pair->b, &c)) {
        perhaps_free(pair->a);
        perhaps_free(pair->b);
        return false;
    }
    add_keys(pair->a, 0, pair->keys, integers);
    add_keys(pair->b, pair->keys / 2, pair->keys, integers);
    return true;
}

/* Returns the seconds of memcmp() of two pieces of memory of so many bytes, which are alike. */
static double time_of_memcmp(uint64_t nbytes)
{
    uint8_t *memory = malloc(2 * nbytes);
    if (!memory)
        errx(2, "out of memory");
    memset(memory, 1, 2 * nbytes);
    double start = seconds_now();
    if (memcmp(memory, memory + nbytes, nbytes) != 0)
        errx(2, "memory that was written differs");
    double seconds = seconds_now() - start;
    free(memory);
    return seconds;
}

/* Measures a pair, and releases it.  Every pass compares; then the pair is intersected.
 * Returns the row; sets *wrong if the number of common keys is far off. */
static json_t *measure_pair(const struct settings *settings, const struct perhaps_kind *kind,
                            struct pair *pair, bool *wrong)
{
    struct perhaps_comparison c = { .reserved = { 0 } };
    struct perhaps_stats stats;
    double best = INFINITY, bare = INFINITY, nbytes;
    perhaps_stats_of(pair->a, &stats);
    nbytes = 2 * (double)stats.plan.body_nbytes;
    for (unsigned pass = 0; pass < (unsigned)settings->repeat.at[0]; pass++) {
        bare = fmin(bare, time_of_memcmp(stats.plan.body_nbytes));
        double start = seconds_now();
        perhaps_compare(pair->a, pair->b, &c);
        best = fmin(best, seconds_now() - start);
    }
    uint64_t common = pair->keys - pair->keys / 2;
    double off = fabs(c.both.value - (double)common);
    *wrong |= !(off <= 10 * c.both.error + 20);
    double start = seconds_now();
    perhaps_intersect(pair->a, pair->b);
    double intersected = seconds_now() - start;
    perhaps_free(pair->a);
    perhaps_free(pair->b);
    return json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "filter", kind->name,
                     "keys", (json_int_t)pair->keys, "both_bytes", nbytes, "compare_s", best,
                     "compare_gb_s", nbytes / best / 1e9, "memcmp_gb_s", nbytes / bare / 1e9,
                     "intersect_gb_s", nbytes / intersected / 1e9, "both", c.both.value,
                     "both_error", c.both.error);
}

static const char columns[] =
    "filter filter -14s; keys keys 6n; bytes both_bytes 6n; compare_s compare_s 10.6; "
    "GB/s compare_gb_s 6.2; memcmp_GB/s memcmp_gb_s 11.2; intersect_GB/s intersect_gb_s 14.2; "
    "|in_both both 10.0; error both_error 8.1;";

bool pairs_all(const struct settings *settings, json_t *facts)
{
    const struct perhaps_kind *kind;
    json_t *rows = json_array();
    struct pair pair;
    bool wrong = false;
    printf(
        "\ntwo half full filters with half of their keys in common, in one thread; bytes and "
        "GB/s of both together\n\n");
    table_head(columns);
    putchar('\n');
    for (size_t n = 0; n < settings->keys.count; n++)
        for (size_t k = 0; (kind = perhaps_kind_at(k)); k++) {
            if (!has_name(settings->kind, kind->name) ||
                !pair_make(kind, (uint64_t)settings->keys.at[n], settings->fpr.at[0], &pair))
                continue;
            json_t *row = measure_pair(settings, kind, &pair, &wrong);
            table_row(columns, row);
            putchar('\n');
            json_array_append_new(rows, row);
        }
    json_object_set_new(facts, "pairs", rows);
    return wrong;
}
