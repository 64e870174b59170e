/* portable.c - uses the library where there is no system, for portable_test.sh. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <perhaps.h>
#include <perhaps_build.h>
#include <perhaps_embed.h>
#include <perhaps_file.h>
#include <perhaps_plan.h>
#include <perhaps_sets.h>

#define EXPECT(condition)                                                                      \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            printf("not so: %s (%s)\n", #condition, scene);                                    \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

enum { KEYS = 30000 };

static const char *scene = "";
static unsigned drawn;

int perhaps_entropy(void *bytes, size_t nbytes)
{
    memset(bytes, (int)++drawn, nbytes);
    return 0;
}

static perhaps_filter *made(struct perhaps_options options, uint64_t *keys)
{
    perhaps_filter *f;
    perhaps_builder *builder;
    options.capacity = KEYS;
    if (options.needs & PERHAPS_CAN_BUILD) {
        EXPECT(!perhaps_builder_create(&options, NULL, &builder));
        struct perhaps_keys all = perhaps_keys_packed(keys, sizeof *keys, KEYS);
        EXPECT(!perhaps_builder_add_many(builder, &all));
        EXPECT(!perhaps_builder_finish(builder, &f));
        perhaps_builder_free(builder);
        return f;
    }
    EXPECT(!perhaps_create(&options, &f));
    for (unsigned i = 0; i < KEYS; i++)
        EXPECT(!perhaps_add(f, &keys[i], sizeof *keys));
    return f;
}

/* A filter of each kind is made, leaves as bytes, and comes back. */
static void try_kind(const struct perhaps_kind *kind, uint64_t *keys)
{
    struct perhaps_options options = { .fpr = 0.001, .kind = kind->name };
    struct perhaps_open_options load = { .mode = PERHAPS_MODE_LOAD };
    perhaps_filter *f, *again;
    unsigned found = 0;
    scene = kind->name;
    if (!strcmp(kind->name, "ribbon"))
        options.needs = PERHAPS_CAN_BUILD;
    f = made(options, keys);
    const size_t nbytes = (size_t)perhaps_write_nbytes(f);
    void *bytes = malloc(nbytes);
    EXPECT(bytes && !perhaps_to_bytes(f, bytes, nbytes));
    EXPECT(!perhaps_from_bytes(bytes, nbytes, &load, &again));
    EXPECT(perhaps_equal(f, again));
    for (unsigned i = 0; i < KEYS; i++) {
        const uint64_t other = keys[i] + KEYS;
        EXPECT(perhaps_contains(again, &keys[i], sizeof *keys));
        found += perhaps_contains(again, &other, sizeof other);
    }
    EXPECT(found < KEYS / 100);
    free(bytes);
    perhaps_free(f);
    perhaps_free(again);
}

int main(void)
{
    static uint64_t keys[KEYS];
    const struct perhaps_kind *kind;
    perhaps_filter *f;
    for (uint64_t i = 0; i < KEYS; i++)
        keys[i] = i;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        if (strcmp(kind->name, "bitmap") != 0 && strcmp(kind->name, "window") != 0 &&
            strcmp(kind->name, "against") != 0)
            try_kind(kind, keys);
    scene = "what there is not";
    struct perhaps_options secret = { .capacity = 10,
                                      .fpr = .1,
                                      .hashing.hash = PERHAPS_HASH_SIP };
    EXPECT(perhaps_create(&secret, &f) == PERHAPS_ERR_UNSUPPORTED && !f);
    EXPECT(perhaps_open("/dev/null", NULL, &f) == PERHAPS_ERR_IO && !f);
    EXPECT(perhaps_host_threads() == 1 && drawn > 0);
    return 0;
}
