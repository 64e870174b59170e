/* add_kind.c - does with the kind of doc/ADD_A_KIND.md what a user would: creates, adds, asks,
 * saves, opens and compares.  Returns 0 if all of it is right; else prints what is not. */
#include <perhaps.h>
#include <perhaps_file.h>
#include <perhaps_plan.h>
#include <perhaps_sets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPECT(condition)                                                                      \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "add_kind.c:%d: not so: %s\n", __LINE__, #condition);              \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

enum { KEYS = 5000 };

/* Asks for all keys that are in and as many that are not, one by one and together.  Returns how
 * many are there. */
static size_t count_present(const perhaps_filter *f)
{
    static uint64_t key[2 * KEYS];
    size_t found = 0;
    for (uint64_t i = 0; i < 2 * KEYS; i++) {
        key[i] = i;
        found += perhaps_contains(f, &i, sizeof i);
    }
    struct perhaps_keys keys = perhaps_keys_packed(key, sizeof *key, 2 * KEYS);
    EXPECT(perhaps_contains_many(f, &keys, NULL) == found);
    return found;
}

int main(void)
{
    struct perhaps_options options = {
        .kind = "hashset", .capacity = KEYS, .fpr = 1e-12, .hashing.seed = 1
    };
    const struct perhaps_open_options checked = { .check = true };
    struct perhaps_verdict verdict;
    perhaps_filter *f, *again;
    EXPECT(!perhaps_create(&options, &f));
    EXPECT(!strcmp(perhaps_kind_of(f)->name, "hashset"));
    for (uint64_t i = 0; i < KEYS; i++)
        EXPECT(!perhaps_add(f, &i, sizeof i));
    const uint64_t more = KEYS;
    EXPECT(perhaps_add(f, &more, sizeof more) == PERHAPS_ERR_FULL);
    EXPECT(count_present(f) == KEYS);
    EXPECT(!perhaps_save(f, "toy.perhaps"));
    EXPECT(!perhaps_open("toy.perhaps", NULL, &again));
    EXPECT(perhaps_equal(f, again) && count_present(again) == KEYS);
    EXPECT(!perhaps_verify(again, &verdict) && verdict.pages > 0);
    perhaps_free(again);
    EXPECT(!perhaps_open("toy.perhaps", &checked, &again)); /* this one asks reads() */
    EXPECT(count_present(again) == KEYS);
    perhaps_free(again);
    perhaps_free(f);
    return unlink("toy.perhaps");
}
