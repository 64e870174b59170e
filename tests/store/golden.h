/* golden.h - how the filters were made whose files are frozen in tests/golden/: there in the
 * form of large files, in which early versions wrote all, and in small/ as small files.  A file
 * there is replaced in two cases only: together with the format version; or when a kind that
 * may choose the place of an entry begins to choose better, which changes bytes but not their
 * meaning. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stdio.h>
#include <string.h>

#include "perhaps_build.h"
#include "perhaps_plan.h"
#include "perhaps_window.h"

/* The folders: of large files, and of small ones. */
static const char *const golden_forms[] = { "", "small/" };
enum { GOLDEN_FORMS = 2 };

enum { GOLDEN_KEYS = 100, GOLDEN_KEY_NBYTES = 20 };

/* What needs copies of keys. */
enum { GOLDEN_COPIES = PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT };

/* The first of the integers that are keys of a bitmap. */
#define GOLDEN_LOW UINT64_C(1000000000000000000)

/* Writes a key such as "golden key 00000042", or for a bitmap an integer of as many digits, and
 * a zero behind it. */
static inline void golden_key(const struct perhaps_options *options, unsigned number,
                              char key[GOLDEN_KEY_NBYTES])
{
    const char *format = options->bitmap.high ? "10000000000%08u" : "golden key %08u";
    snprintf(key, GOLDEN_KEY_NBYTES, format, number % 100000000);
}

/* Returns how many keys such a filter has. */
static inline unsigned golden_count(const struct perhaps_options *options)
{
    return options->needs & PERHAPS_CAN_BUILD ? (unsigned)options->capacity : GOLDEN_KEYS;
}

/* Adds a hundred keys one by one, three units of time apart, to a set each of them twice; and
 * then removes a key that is not there: filters with removals count that, so this counter in
 * the file is not 0.  Returns 0 or the error of an add. */
static inline int golden_fill(const struct perhaps_options *options, perhaps_filter *f)
{
    const bool set = (perhaps_kind_of(f)->abilities & ~perhaps_abilities_of(f)) != 0;
    char key[GOLDEN_KEY_NBYTES];
    int error = 0;
    for (unsigned i = 0; i < GOLDEN_KEYS && !error; i++) {
        golden_key(options, i, key);
        perhaps_advance(f, 3 * i);
        error = perhaps_add(f, key, GOLDEN_KEY_NBYTES - 1);
        if (set && !error)
            error = perhaps_add(f, key, GOLDEN_KEY_NBYTES - 1);
    }
    golden_key(options, GOLDEN_KEYS, key);
    if (!error && !perhaps_contains(f, key, GOLDEN_KEY_NBYTES - 1))
        perhaps_remove(f, key, GOLDEN_KEY_NBYTES - 1);
    return error;
}

/* Builds a filter of all its keys at once; and if these have groups, of 9,900 others, too.
 * Returns 0 or an error of the builder. */
static inline int golden_build(const struct perhaps_options *options, perhaps_filter **f)
{
    perhaps_builder *builder;
    char key[GOLDEN_KEY_NBYTES];
    int error = perhaps_builder_create(options, NULL, &builder);
    for (unsigned i = 0; i < golden_count(options) && !error; i++) {
        struct perhaps_keys keys = perhaps_keys_packed(key, GOLDEN_KEY_NBYTES - 1, 1);
        golden_key(options, i, key);
        error = perhaps_builder_add_many(builder, &keys);
    }
    const unsigned others = options->against.group_nbytes ? 99 * GOLDEN_KEYS : 0;
    for (unsigned i = 0; i < others && !error; i++) {
        struct perhaps_keys keys = perhaps_keys_packed(key, GOLDEN_KEY_NBYTES - 1, 1);
        golden_key(options, golden_count(options) + i, key);
        error = perhaps_builder_add_others(builder, &keys);
    }
    if (!error)
        error = perhaps_builder_finish(builder, f);
    perhaps_builder_free(builder);
    return error;
}

/* Makes the filter of these options.  Returns 0 or an error. */
static inline int golden_filter(const struct perhaps_options *options, perhaps_filter **f)
{
    if (options->needs & PERHAPS_CAN_BUILD)
        return golden_build(options, f);
    int error = perhaps_create(options, f);
    return error ? error : golden_fill(options, *f);
}

/* Makes the options those of this kind. */
static inline void golden_kind(const struct perhaps_kind *kind, struct perhaps_options *options)
{
    options->kind = kind->name;
    options->needs = kind->abilities & GOLDEN_COPIES;
    if (!strcmp(kind->name, "bitmap")) {
        options->fpr = 0;
        options->bitmap.low = GOLDEN_LOW;
        options->bitmap.high = GOLDEN_LOW + 2 * GOLDEN_KEYS - 1;
    } else if (kind->abilities & PERHAPS_CAN_BUILD) {
        options->capacity = GOLDEN_KEYS;
        options->needs = PERHAPS_CAN_BUILD;
    } else if (kind->abilities & PERHAPS_CAN_FORGET) {
        options->window.keys = GOLDEN_KEYS * 8 / 5;
    } else if (kind->abilities & PERHAPS_CAN_GROW) {
        options->capacity = GOLDEN_KEYS / 5;
    }
}

/* Makes the options those of a file behind the kinds, and returns its name; NULL behind the
 * last. */
static inline const char *golden_other(size_t index, struct perhaps_options *options)
{
    options->kind = "blocked";
    switch (index) {
    case 0:
        options->kind = "window"; /* of chains */
        options->capacity = GOLDEN_KEYS / 5;
        options->window.time = 4 * GOLDEN_KEYS;
        return "window-of-chains";
    case 1:
        options->preference = PERHAPS_PREFER_COMPACT;
        options->blocked.together = true;
        return "blocked-together";
    case 2:
        options->hashing.hash = PERHAPS_HASH_XXH3_64;
        return "blocked-xxh3-64";
    case 3:
        options->kind = "ribbon";
        options->capacity = 60 * GOLDEN_KEYS;
        options->needs = PERHAPS_CAN_BUILD;
        return "ribbon-of-layers";
    case 4:
        options->hashing.note = "a hundred golden keys";
        return "blocked-noted";
    case 5:
        options->kind = "cuckoo";
        return "cuckoo-set";
    case 6:
        options->kind = "bloom";
        options->shared = true;
        return "bloom-estimated";
    case 7:
        options->kind = "against"; /* groups of 10,000: of one 1,100 are in, of the next none */
        options->capacity = 11 * GOLDEN_KEYS;
        options->fpr = 0.999;
        options->needs = PERHAPS_CAN_BUILD;
        options->against.group_nbytes = 15;
        return "against-groups";
    default:
        return NULL;
    }
}

/* Sets the options and the name of the golden file of this index: one for each kind, and behind
 * them others.  The capacities are so small that kinds that grow have to grow, and windows so
 * large that they rotate twice and forget nothing.  Returns false behind the last. */
static inline bool golden_options(size_t index, struct perhaps_options *options,
                                  const char **name)
{
    const struct perhaps_kind *kind = perhaps_kind_at(index);
    size_t nkinds = 0;
    while (perhaps_kind_at(nkinds))
        nkinds++;
    *options = (struct perhaps_options){ .capacity = 2 * GOLDEN_KEYS,
                                         .fpr = 0.001,
                                         .hashing = { .seed = 42 } };
    if (kind)
        golden_kind(kind, options);
    *name = kind ? kind->name : golden_other(index - nkinds, options);
    return *name != NULL;
}

#endif
