/* layout.c - layouts: filters whose bytes somebody else keeps.
 *
 * A layout is a filter without body and counters: (kind, geometry, hash).  A description of one
 * may come from an enemy's server, just as a header may come from an enemy's file.  The same
 * two validators check both: the kind's set_geometry() and hasher_restore(). */
#include <math.h>
#include <string.h>

#include "../base/bytes.h"
#include "../base/memory.h"
#include "../base/sizing.h"
#include "../core/plan.h"
#include "../kinds/kinds.h"
#include "../store/store.h"

struct perhaps_layout {
    const struct filter_kind *kind;
    struct geometry geometry;
    struct hasher hasher;
    char note[PERHAPS_NOTE_MAX + 1]; /* of the hasher */
    struct perhaps_allocator allocator;
};

/* ---- Making ---------------------------------------------------------------------------- */

/* Makes a layout.  Returns 0; or PERHAPS_ERR_MEMORY, and sets *layout to NULL. */
static int make(const struct filter_kind *kind, const struct geometry *g,
                const struct hasher *hasher, const struct perhaps_allocator *allocator,
                perhaps_layout **layout)
{
    struct perhaps_allocator a = allocator_or_system(allocator);
    perhaps_layout *l = *layout = allocate(&a, sizeof *l);
    if (!l)
        return PERHAPS_ERR_MEMORY;
    l->kind = kind;
    l->geometry = *g;
    l->hasher = *hasher; /* not by a compound literal, which leaves a copy on the stack */
    memcpy(l->note, hasher->note, strlen(hasher->note) + 1);
    l->hasher.note = l->note;
    l->allocator = a;
    l->hasher.cpu = cpu_choose();
    return 0;
}

/* Returns whether filters of this kind with this geometry have a layout. */
static bool has_layout(const struct filter_kind *kind, const struct geometry *g)
{
    return kind->places && kind->places->in_blocks(g);
}

/* The lines of a key lie together, so that one request to one server reaches all its bits. */
int perhaps_layout_create(const struct perhaps_options *options, perhaps_layout **layout)
{
    const struct filter_kind *kind;
    struct perhaps_options blocked = *options;
    struct geometry g = { 0 };
    struct hasher hasher;
    char why[WHY_NBYTES];
    *layout = NULL;
    if (plan_is_exact(options))
        return PERHAPS_ERR_UNSUPPORTED;
    blocked.kind = "blocked";
    blocked.base = NULL;
    blocked.needs &= ~(unsigned)PERHAPS_CAN_GROW;
    blocked.blocked.together = true;
    int error = plan_choose(&blocked, &kind, &g, why);
    if (!error && !has_layout(kind, &g))
        error = PERHAPS_ERR_UNSUPPORTED;
    if (!error && !kind_takes_hash(kind, options->hashing.hash))
        error = PERHAPS_ERR_ARGUMENT;
    if (error)
        return error;
    error = hasher_create(&hasher, &options->hashing);
    if (!error)
        error = make(kind, &g, &hasher, options->allocator, layout);
    wipe(hasher.secret, sizeof hasher.secret);
    return error;
}

/* Checks a description as store/container.c checks a section of a file, and sets
 * kind and geometry. */
static int check_description(const struct perhaps_description *d,
                             const struct filter_kind **kind, struct geometry *g)
{
    if (!d->kind || !is_unused(d->reserved))
        return PERHAPS_ERR_ARGUMENT;
    *kind = kind_by_name(d->kind);
    if (!*kind)
        return PERHAPS_ERR_VERSION;
    if (!(*kind)->places)
        return PERHAPS_ERR_UNSUPPORTED;
    if (!sizing_in_range(d->capacity, d->fpr))
        return PERHAPS_ERR_LIMIT;
    for (unsigned i = kind_field_count(*kind); i < PERHAPS_FIELDS_MAX; i++)
        if (d->field[i])
            return PERHAPS_ERR_VERSION;
    *g = (struct geometry){ .capacity = d->capacity, .fpr = d->fpr };
    memcpy(g->field, d->field, sizeof g->field);
    int error = kind_set_geometry(*kind, g);
    if (!error)
        error = geometry_limit(*kind, g);
    return error ? error : has_layout(*kind, g) ? 0 : PERHAPS_ERR_UNSUPPORTED;
}

int perhaps_layout_restore(const struct perhaps_description *d,
                           const struct perhaps_hashing *hashing, perhaps_layout **layout)
{
    static const struct perhaps_hashing nothing;
    const struct filter_kind *kind;
    struct geometry g;
    struct hasher hasher;
    *layout = NULL;
    int error = check_description(d, &kind, &g);
    if (!error && !kind_takes_hash(kind, (uint32_t)d->hash))
        error = PERHAPS_ERR_ARGUMENT;
    const char *end = memchr(d->note, '\0', sizeof d->note);
    if (!error && (!end || !is_note(d->note, (size_t)(end - d->note))))
        error = PERHAPS_ERR_ARGUMENT;
    if (error)
        return error;
    error = hasher_restore(&hasher, (uint32_t)d->hash, d->seed, &d->check,
                           hashing ? hashing : &nothing, !hashing);
    hasher.note = d->note;
    if (!error)
        error = make(kind, &g, &hasher, NULL, layout);
    wipe(hasher.secret, sizeof hasher.secret);
    return error;
}

int perhaps_layout_of(const perhaps_filter *f, perhaps_layout **layout)
{
    *layout = NULL;
    if (!has_layout(f->kind, &f->body.geometry))
        return PERHAPS_ERR_UNSUPPORTED;
    if (!f->hasher.ready)
        return PERHAPS_ERR_SECRET;
    return make(f->kind, &f->body.geometry, &f->hasher, &f->allocator, layout);
}

void perhaps_layout_free(perhaps_layout *layout)
{
    if (!layout)
        return;
    wipe(layout->hasher.secret, sizeof layout->hasher.secret);
    struct perhaps_allocator allocator = layout->allocator;
    release(&allocator, layout, sizeof *layout);
}

/* ---- What it tells --------------------------------------------------------------------- */

void perhaps_layout_describe(const perhaps_layout *layout, struct perhaps_description *d)
{
    const struct geometry *g = &layout->geometry;
    *d = (struct perhaps_description){
        .kind = layout->kind->about.name,
        .capacity = g->capacity,
        .fpr = g->fpr,
        .hash = layout->hasher.id,
        .seed = layout->hasher.seed,
        .check = hasher_check(&layout->hasher),
    };
    memcpy(d->field, g->field, sizeof d->field);
    memcpy(d->note, layout->note, sizeof d->note);
}

void perhaps_layout_plan(const perhaps_layout *layout, struct perhaps_plan *plan)
{
    const struct geometry *g = &layout->geometry;
    geometry_describe(layout->kind, g, layout->kind->predict(g, (double)g->capacity), plan);
}

int perhaps_layout_hash_many(const perhaps_layout *layout, const struct perhaps_keys *keys,
                             struct perhaps_hashed *hashed)
{
    return hasher_run_all(&layout->hasher, keys, hashed);
}

double perhaps_layout_predict_fpr(const perhaps_layout *layout, uint64_t keys)
{
    return layout->kind->predict(&layout->geometry, (double)keys);
}

uint64_t perhaps_layout_key_limit(const perhaps_layout *layout)
{
    return layout->geometry.key_limit;
}

/* If all bits are set, any larger number of keys would explain it.  The estimate then takes
 * half a bit for free, so that it stays finite. */
double perhaps_layout_estimate_keys(const perhaps_layout *layout, double load)
{
    double most = 1 - 0.5 / (8.0 * (double)layout->geometry.body_nbytes);
    if (!(load > 0)) /* NaN, too */
        return 0;
    return layout->kind->places->keys_from_load(&layout->geometry, fmin(load, most));
}

void perhaps_layout_locate(const perhaps_layout *layout, const struct perhaps_hashed *key,
                           struct perhaps_bits *bits)
{
    struct keyhash hash;
    memcpy(&hash, key->bytes, sizeof hash);
    layout->kind->places->locate(&layout->geometry, hash, bits);
}

/* ---- The bytes of a filter in memory ----------------------------------------------------- */

/* Copies bytes of a body while other threads may be adding.  Each byte is the old or the new
 * one: they are read atomically, in aligned words where possible. */
static void copy_beside(uint8_t *to, const uint8_t *from, size_t nbytes)
{
    while (nbytes) {
        size_t n = 1;
        if ((uintptr_t)from % sizeof(uint64_t) == 0 && nbytes >= sizeof(uint64_t)) {
            n = sizeof(uint64_t);
            store64(to,
                    __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_RELAXED));
        } else {
            *to = __atomic_load_n(from, __ATOMIC_RELAXED);
        }
        to += n;
        from += n;
        nbytes -= n;
    }
}

int perhaps_body_read(const perhaps_filter *f, uint64_t offset, void *buffer, size_t nbytes)
{
    if (!has_layout(f->kind, &f->body.geometry))
        return PERHAPS_ERR_UNSUPPORTED;
    uint64_t body_nbytes = f->body.geometry.body_nbytes;
    if (offset > body_nbytes || nbytes > body_nbytes - offset)
        return PERHAPS_ERR_ARGUMENT;
    int error = filter_check_once(f);
    if (error)
        return error;
    copy_beside(buffer, f->body.bytes + offset, nbytes);
    return 0;
}

/* ---- Saving a filter whose bytes somebody else keeps ------------------------------------- */

/* Saves a filter that is made for this purpose and has no body: the reader gives its bytes. */
int perhaps_layout_save(const perhaps_layout *layout, uint64_t keys, perhaps_reader *reader,
                        void *context, const char *path)
{
    perhaps_filter *f;
    if (!geometry_may_hold(&layout->geometry, keys))
        return PERHAPS_ERR_ARGUMENT;
    int error = filter_make(layout->kind, &layout->geometry, &layout->hasher,
                            &layout->allocator, false, false, &f);
    if (error)
        return error;
    f->counters->keys = keys;
    struct content content = { .f = f, .reader = reader, .context = context };
    error = content_save(&content, path);
    perhaps_free(f);
    return error;
}
