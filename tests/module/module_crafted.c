/* module_crafted.c - finds items that meet in one place of a filter without a secret.  Tests of
 * the module send them to filters with one, where they must be items like any others.
 *
 *     module_crafted pair BUCKETS WIDTH ITEMS    one pair of buckets of a cuckoo filter
 *     module_crafted segment DEPTH ITEMS         one segment of this depth, elastic filter
 *     module_crafted positives FPR KEYS ITEMS    false positives of a blocked filter with
 *                                                the keys "item 0", "item 1", ...
 *
 * Prints ITEMS items, one a line. */
#include <perhaps.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xxh3.h"
#include "kinds/slots/segments.h"

enum { LETTERS = 8 };

static uint64_t number(const char *text)
{
    return strtoull(text, NULL, 10);
}

/* Writes candidate 'i' in LETTERS letters, and returns its hash without a secret. */
static struct keyhash candidate(uint64_t i, char text[LETTERS + 1])
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (unsigned at = 0; at < LETTERS; at++)
        text[at] = letters[i >> 6 * at & 63];
    text[LETTERS] = '\0';
    return xxh3_short(text, LETTERS, 0);
}

static void find_pair(uint64_t nbuckets, unsigned width, uint64_t items)
{
    char text[LETTERS + 1];
    const struct entry target = cuckoo_entry(candidate(0, text), nbuckets, width);
    for (uint64_t i = 0; items; i++) {
        const struct entry e = cuckoo_entry(candidate(i, text), nbuckets, width);
        if ((e.first == target.first && e.second == target.second) ||
            (e.first == target.second && e.second == target.first)) {
            puts(text);
            items--;
        }
    }
}

static void find_segment(unsigned depth, uint64_t items)
{
    char text[LETTERS + 1];
    const struct keyhash target = candidate(0, text);
    for (uint64_t i = 0; items; i++) {
        const struct keyhash key = candidate(i, text);
        if (key.mark >> (64 - depth) == target.mark >> (64 - depth) &&
            elastic_base(key.place) == elastic_base(target.place)) {
            puts(text);
            items--;
        }
    }
}

static int find_positives(double fpr, uint64_t keys, uint64_t items)
{
    const struct perhaps_options options = { .kind = "blocked",
                                             .capacity = keys,
                                             .fpr = fpr,
                                             .hashing = { .hash = PERHAPS_HASH_XXH3,
                                                          .seed = 1 } };
    perhaps_filter *filter;
    char text[32];
    if (perhaps_create(&options, &filter))
        return 1;
    for (uint64_t i = 0; i < keys; i++) {
        snprintf(text, sizeof text, "item %llu", (unsigned long long)i);
        if (perhaps_add(filter, text, strlen(text)))
            return 1;
    }
    for (uint64_t i = 0; items; i++) {
        candidate(i, text);
        if (perhaps_contains(filter, text, strlen(text))) {
            puts(text);
            items--;
        }
    }
    perhaps_free(filter);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "pair") && argc == 5)
        find_pair(number(argv[2]), (unsigned)number(argv[3]), number(argv[4]));
    else if (!strcmp(what, "segment") && argc == 4)
        find_segment((unsigned)number(argv[2]), number(argv[3]));
    else if (!strcmp(what, "positives") && argc == 5)
        return find_positives(atof(argv[2]), number(argv[3]), number(argv[4]));
    else
        return 2;
    return 0;
}
