/* build.c - makes a filter of keys that are all given before the first query. */
#include <perhaps_build.h>

#include "../base/memory.h"

/* All kinds of today take keys as they come, so a builder adds them to a filter at once.  A
 * kind that needs all keys together would collect them here. */
struct perhaps_builder {
    perhaps_filter *filter; /* NULL: perhaps_builder_finish() has given it away */
    struct perhaps_allocator allocator;
    bool stores_copies;
    int error; /* the first one: since then keys are missing */
};

/* Returns whether each add must store a copy: yes if keys will be removed or counted.
 * Otherwise a key that was dropped, because another key has an equal entry, would be lost when
 * that other key is removed. */
static bool wants_copies(unsigned needs)
{
    return needs & (PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT);
}

int perhaps_builder_create(const struct perhaps_options *options, perhaps_builder **builder)
{
    struct perhaps_options at_once = *options;
    struct perhaps_allocator allocator = allocator_or_system(options->allocator);
    perhaps_filter *filter;
    *builder = NULL;
    at_once.needs |= PERHAPS_CAN_BUILD;
    int error = perhaps_create(&at_once, &filter);
    if (error)
        return error;
    perhaps_builder *b = allocate(&allocator, sizeof *b);
    if (!b) {
        perhaps_free(filter);
        return PERHAPS_ERR_MEMORY;
    }
    *b = (perhaps_builder){ .filter = filter,
                            .allocator = allocator,
                            .stores_copies = wants_copies(options->needs) };
    *builder = b;
    return 0;
}

int perhaps_builder_add_many(perhaps_builder *b, const struct perhaps_keys *keys)
{
    if (!b->filter)
        return PERHAPS_ERR_ARGUMENT;
    if (!b->error)
        b->error = b->stores_copies
                       ? perhaps_add_many(b->filter, keys, NULL)
                       : perhaps_add_unless_present_many(b->filter, keys, NULL, NULL);
    return b->error;
}

int perhaps_builder_finish(perhaps_builder *b, perhaps_filter **filter)
{
    *filter = NULL;
    if (!b->filter)
        return PERHAPS_ERR_ARGUMENT;
    if (b->error)
        return b->error;
    *filter = b->filter;
    b->filter = NULL;
    return 0;
}

void perhaps_builder_free(perhaps_builder *b)
{
    if (!b)
        return;
    perhaps_free(b->filter);
    struct perhaps_allocator allocator = b->allocator;
    release(&allocator, b, sizeof *b);
}
