/* build.c - makes a filter of keys that are all given before the first query.
 *
 * For a kind that is built once the hashes of the keys go to a pile.  At the end it is known
 * how many different keys there are; a filter of exactly that size is planned, and the kind
 * writes its body from the pile, to memory or to a file.  So do the keys of another kind if it
 * is not known how many there will be (sized.c). */
#include "builder.h"

#include <string.h>

#include "../base/memory.h"

/* ---- Begin ----------------------------------------------------------------------------- */

/* Returns whether each add must store a copy: yes if keys will be removed or counted.
 * Otherwise a key that was dropped, because another key has an equal entry, would be lost when
 * that other key is removed. */
static bool wants_copies(unsigned needs)
{
    return needs & (PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT);
}

/* If keys of two sides have groups, chooses the hash that tells them, and draws its seed.
 * Returns 0, PERHAPS_ERR_ARGUMENT or PERHAPS_ERR_IO. */
static int choose_groups(const struct perhaps_options *options, struct perhaps_hashing *hashing)
{
    const unsigned nbytes = options->against.group_nbytes;
    const bool grouped = hashing->hash == PERHAPS_HASH_GROUPED;
    if (!nbytes && !grouped)
        return 0;
    if (!nbytes || nbytes > UINT8_MAX || hashing->hash != PERHAPS_HASH_XXH3)
        return PERHAPS_ERR_ARGUMENT;
    if (!hashing->seed && random_bytes(&hashing->seed, sizeof hashing->seed))
        return PERHAPS_ERR_IO;
    hashing->hash = PERHAPS_HASH_GROUPED;
    hashing->seed = (hashing->seed & ~(uint64_t)UINT8_MAX) | nbytes;
    return 0;
}

/* Prepares for keys that wait until all are there. */
static int begin_waiting(perhaps_builder *b, const struct geometry *g)
{
    struct perhaps_hashing hashing = b->options.hashing;
    const char *folder = b->how.folder;
    struct geometry likely = *g;
    if (!b->knows_capacity)
        likely.capacity = UINT64_C(1) << 36;
    if (hashing.hash == PERHAPS_HASH_XXH3 && (b->kind->builds || !hashing.seed) &&
        plan_64_suffices(b->kind, &likely))
        hashing.hash = PERHAPS_HASH_XXH3_64;
    int error = plan_hash(b->kind, g, &hashing);
    if (has_others(b)) /* two keys of 64 bits that are equal may be on both sides */
        hashing.hash = b->options.hashing.hash;
    if (!error)
        error = has_others(b) ? choose_groups(&b->options, &hashing) : 0;
    if (!error)
        error = hasher_create(&b->hasher, &hashing);
    if (error)
        return error;
    memcpy(b->note, b->hasher.note, strlen(b->hasher.note) + 1);
    b->hasher.note = b->note;
    if (folder) {
        b->folder = allocate(&b->allocator, strlen(folder) + 1);
        if (!b->folder)
            return PERHAPS_ERR_MEMORY;
        memcpy(b->folder, folder, strlen(folder) + 1);
    }
    builder_begin_pile(b);
    rwlock_begin(&b->moving);
    if (has_others(b))
        against_begin(b);
    return 0;
}

int perhaps_builder_create(const struct perhaps_options *options,
                           const struct perhaps_build_options *how, perhaps_builder **builder)
{
    struct perhaps_allocator allocator = allocator_or_system(options->allocator);
    struct perhaps_options all = *options;
    const struct filter_kind *kind = NULL;
    struct geometry g = { 0 };
    char why[WHY_NBYTES];
    *builder = NULL;
    if (how && !is_unused(how->reserved))
        return PERHAPS_ERR_ARGUMENT;
    all.needs |= PERHAPS_CAN_BUILD;
    if (!all.capacity && !plan_is_exact(&all))
        all.capacity = 1;
    int error = plan_choose(&all, &kind, &g, why);
    bool waits = !error && (kind->builds || (!kind->exact && !options->capacity));
    if (waits && kind->about.abilities & PERHAPS_CAN_FORGET)
        error = PERHAPS_ERR_ARGUMENT; /* the order of the keys counts */
    perhaps_builder *b = error ? NULL : allocate(&allocator, sizeof *b);
    if (!b)
        return error ? error : PERHAPS_ERR_MEMORY;
    *b = (perhaps_builder){ .options = all,
                            .how = how ? *how : (struct perhaps_build_options){ 0 },
                            .allocator = allocator,
                            .kind = waits ? kind : NULL,
                            .knows_capacity = options->capacity > 0,
                            .stores_copies = wants_copies(options->needs) };
    b->options.allocator = &b->allocator;
    if (b->how.memory_nbytes && b->how.memory_nbytes < MEMORY_NBYTES_LEAST)
        b->how.memory_nbytes = MEMORY_NBYTES_LEAST;
    error = b->kind ? begin_waiting(b, &g) : sized_begin(b, &all);
    if (error) {
        b->kind = NULL; /* there is no pile yet */
        perhaps_builder_free(b);
        return error;
    }
    *builder = b;
    return 0;
}

void perhaps_builder_free(perhaps_builder *b)
{
    if (!b)
        return;
    sized_end(b);
    if (has_others(b))
        against_end(b);
    if (b->kind) {
        pile_end(&b->pile);
        rwlock_end(&b->moving);
    }
    if (b->folder)
        release(&b->allocator, b->folder, strlen(b->folder) + 1);
    struct perhaps_allocator allocator = b->allocator;
    wipe(b->hasher.secret, sizeof b->hasher.secret);
    release(&allocator, b, sizeof *b);
}

/* ---- Keys ------------------------------------------------------------------------------ */

static int add_keys(perhaps_builder *b, const struct perhaps_keys *keys, const uint32_t *value)
{
    if (b->finished)
        return PERHAPS_ERR_ARGUMENT;
    if (b->kind && (b->first || b->counted))
        return PERHAPS_ERR_ARGUMENT;
    if (b->kind)
        return b->how.in_memory ? sized_pile_keys(b, keys, value)
                                : builder_pile_keys(b, &b->pile, keys, value);
    if (!b->error)
        b->error = sized_add(b, keys);
    return b->error;
}

int perhaps_builder_add_many(perhaps_builder *b, const struct perhaps_keys *keys)
{
    return add_keys(b, keys, NULL);
}

int perhaps_builder_add_values(perhaps_builder *b, const struct perhaps_keys *keys,
                               const uint32_t *value)
{
    unsigned bits = b->options.ribbon.value_bits;
    if (!b->kind || !b->pile.options.valued)
        return PERHAPS_ERR_UNSUPPORTED;
    for (size_t i = 0; i < keys->count; i++)
        if (value[i] >> bits)
            return PERHAPS_ERR_ARGUMENT;
    return add_keys(b, keys, value);
}

uint64_t perhaps_builder_keys(const perhaps_builder *b)
{
    return b->kind ? b->moved + b->pile.nrecords : b->filter ? b->filter->counters->keys : 0;
}

uint64_t perhaps_builder_disk_nbytes(const perhaps_builder *b, uint64_t keys)
{
    uint64_t nbytes = b->kind ? pile_disk_nbytes(&b->pile, keys) : 0;
    return has_others(b) ? nbytes + against_disk_nbytes(b, keys) : nbytes;
}

const char *perhaps_builder_folder(const perhaps_builder *b)
{
    return b->kind && !b->how.in_memory ? pile_folder(&b->pile) : NULL;
}

uint64_t perhaps_builder_folded(const perhaps_builder *b)
{
    return b->folded;
}

/* ---- Finish ---------------------------------------------------------------------------- */

/* Plans a filter for the keys of the pile, and makes it. */
static int build_filter(perhaps_builder *b, bool with_body,
                        int (*put)(void *context, perhaps_filter *f, struct plan *plan),
                        void *context, perhaps_filter **filter)
{
    struct plan plan = { .kind = b->kind, .pile = &b->pile, .g.fpr = b->options.fpr };
    char why[WHY_NBYTES];
    int error = pile_settle(&b->pile);
    *filter = NULL;
    if (!error)
        error = builder_count(b, &b->pile, &plan.g.capacity);
    if (!plan.g.capacity)
        plan.g.capacity = 1;
    if (!error)
        error = geometry_plan(b->kind, &b->options, &plan.g, why);
    return error ? error : builder_make(b, &plan, with_body, put, context, filter);
}

/* Ends the adding.  Returns 0, or why there will be no filter. */
static int finish(perhaps_builder *b)
{
    if (b->finished)
        return PERHAPS_ERR_ARGUMENT;
    if (b->error)
        return builder_note(b, 0);
    b->finished = true;
    return 0;
}

int perhaps_builder_finish(perhaps_builder *b, perhaps_filter **filter)
{
    *filter = NULL;
    int error = finish(b);
    if (error)
        return error;
    if (has_others(b))
        return against_finish(b, filter);
    if (b->kind && b->kind->builds)
        return build_filter(b, true, builder_put_in_memory, b, filter);
    error = is_sized(b) ? sized_finish(b) : 0;
    if (error)
        return error;
    perhaps_bulk_end(b->bulk);
    *filter = b->filter;
    b->bulk = NULL;
    b->filter = NULL;
    return 0;
}

/* ---- The file -------------------------------------------------------------------------- */

/* A filter on its way to a file. */
struct saving {
    perhaps_builder *b;
    const char *path;
    bool fresh;
};

/* The body of a filter on its way to a file. */
struct produced {
    perhaps_builder *b;
    perhaps_filter *f;
    const struct plan *plan;
};

static int produce(void *context, const struct perhaps_sink *sink)
{
    const struct produced *produced = context;
    return builder_build_body(produced->b, produced->f, produced->plan, sink);
}

static int put_in_file(void *context, perhaps_filter *f, struct plan *plan)
{
    const struct saving *saving = context;
    struct produced produced = { saving->b, f, plan };
    const struct content content = { .f = f, .produce = produce, .context = &produced };
    return saving->fresh ? content_save_new(&content, saving->path)
                         : content_save(&content, saving->path);
}

/* Returns whether the header can be written last: there is no file, or a regular one. */
static bool can_seek(const char *path)
{
    struct file_info file;
    return look_at_path(path, &file) || file.type == FILE_REGULAR;
}

static int save(perhaps_builder *b, const char *path, bool fresh)
{
    struct saving saving = { .b = b, .path = path, .fresh = fresh };
    perhaps_filter *filter = NULL;
    int error;
    if (b->kind && b->kind->builds && !has_others(b) && can_seek(path)) {
        error = finish(b);
        if (!error)
            error = build_filter(b, false, put_in_file, &saving, &filter);
    } else {
        error = perhaps_builder_finish(b, &filter);
        if (!error)
            error = fresh ? perhaps_save_new(filter, path) : perhaps_save(filter, path);
    }
    perhaps_free(filter);
    return error;
}

int perhaps_builder_save(perhaps_builder *b, const char *path)
{
    return save(b, path, false);
}

int perhaps_builder_save_new(perhaps_builder *b, const char *path)
{
    return save(b, path, true);
}
