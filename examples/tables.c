/* tables.c - immutable tables on a disk, as a storage engine has them, each with a filter.
 * Shows: a filter that is built once for each table; mapped files; which reads filters save.
 * Run: build/examples/tables   (returns 0 if no key is missed, and most reads are saved) */
#include <perhaps_build.h>
#include <perhaps_embed.h>
#include <stdio.h>
#include <stdlib.h>

enum { TABLES = 8, KEYS = 100000, QUESTIONS = 100000 };

/* A table has its keys in order; reading it is what costs.  Its filter is a mapped file. */
struct table {
    uint64_t key[KEYS];
    perhaps_filter *filter;
};

static const char path[] = "tables.perhaps";
static struct table tables[TABLES];
static unsigned long found, reads, reads_without; /* of tables: with filters, and without any */

static uint64_t random64(uint64_t i)
{
    i = (i ^ i >> 30) * 0xBF58476D1CE4E5B9;
    return i ^ i >> 31;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Writes the filter of a table to a file, and maps it.  Returns 0 or an error. */
static int make_filter(struct table *table)
{
    struct perhaps_options options = { .fpr = 0.004, .needs = PERHAPS_CAN_BUILD };
    struct perhaps_keys keys = perhaps_keys_packed(table->key, sizeof *table->key, KEYS);
    perhaps_builder *builder;
    int error = perhaps_builder_create(&options, NULL, &builder);
    error = error ? error : perhaps_builder_add_many(builder, &keys);
    error = error ? error : perhaps_builder_save(builder, path);
    perhaps_builder_free(builder);
    return error ? error : perhaps_open(path, NULL, &table->filter);
}

/* Looks for a key; reads a table only if its filter says "perhaps". */
static void find(uint64_t key)
{
    for (const struct table *table = tables; table < tables + TABLES; table++) {
        reads_without++;
        if (!perhaps_contains(table->filter, &key, sizeof key))
            continue;
        reads++;
        if (bsearch(&key, table->key, KEYS, sizeof key, compare) && ++found)
            return;
    }
}

int main(void)
{
    int error = 0;
    for (uint64_t t = 0; t < TABLES && !error; t++) {
        for (uint64_t i = 0; i < KEYS; i++)
            tables[t].key[i] = random64(t * KEYS + i);
        qsort(tables[t].key, KEYS, sizeof *tables[t].key, compare);
        error = make_filter(&tables[t]); /* replaces the file; the old one stays mapped */
    }
    if (error)
        return puts(perhaps_strerror(error)), 1;
    remove(path);
    for (uint64_t i = 0; i < QUESTIONS; i++) /* a half of the keys are in one of the tables */
        find(random64(i % 2 * TABLES * KEYS + i * 7));
    printf("%d questions to %d tables: %lu reads instead of %lu, for %.2f bits a key\n",
           QUESTIONS, TABLES, reads, reads_without,
           8.0 * (double)perhaps_memory_nbytes(tables->filter) / (double)KEYS);
    for (int t = 0; t < TABLES; t++)
        perhaps_free(tables[t].filter);
    return found != QUESTIONS / 2 || reads > reads_without / 10;
}
