/* remote.c - opens a filter file that is far away, by its header. */
#include <string.h>

#include "../base/bytes.h"
#include "remote.h"

/* Bodies of composites are held in memory.  Larger ones, with many millions of groups, are for
 * those who load the file. */
#define BODIES_NBYTES_MOST (UINT64_C(64) << 20)

enum { GAP_NBYTES = 4096 };

/* ---- Header ------------------------------------------------------------------------------ */

/* Wants the bytes of the file up to this one, of which those of the head are there. */
static int want_head(perhaps_remote *r, uint64_t nbytes)
{
    uint8_t *bytes = allocate(&r->allocator, nbytes);
    if (!bytes)
        return PERHAPS_ERR_MEMORY;
    const uint64_t before = r->head.nbytes;
    if (before)
        memcpy(bytes, r->head.bytes, before);
    head_release(&r->head, &r->allocator);
    r->head.bytes = bytes;
    r->head.nbytes = nbytes;
    int error = rounds_want_bare(r, before, nbytes - before);
    return error ? error : rounds_begin(r);
}

/* Copies what came to the head. */
static void take_head(perhaps_remote *r)
{
    const struct round *round = &r->round[r->rounds - 1];
    const struct perhaps_range *range = &round->range[0];
    memcpy(r->head.bytes + range->at, round->bytes, range->nbytes);
}

/* Returns how many bytes of the head there are: a file may be shorter than what was wanted. */
static uint64_t there_nbytes(const perhaps_remote *r)
{
    return r->head.nbytes < r->file_nbytes ? r->head.nbytes : r->file_nbytes;
}

/* A head that is too short for the fields that tell its size is no file. */
static int measure_head(const perhaps_remote *r, uint64_t *nbytes)
{
    const uint8_t *bytes = r->head.bytes;
    if (r->file_nbytes < MAGIC_NBYTES || !container_has_magic(bytes))
        return PERHAPS_ERR_FORMAT;
    if (r->file_nbytes < BEGIN_NBYTES)
        return PERHAPS_ERR_DAMAGED;
    return container_measure(bytes, r->file_nbytes, nbytes);
}

/* ---- Filter ------------------------------------------------------------------------------ */

/* The bytes of the head, for filter_read(). */
struct supply {
    perhaps_remote *r;
    uint64_t at;
};

static int supply_read(void *context, void *bytes, size_t nbytes)
{
    struct supply *s = context;
    if (nbytes > there_nbytes(s->r) - s->at)
        return PERHAPS_ERR_DAMAGED;
    memcpy(bytes, s->r->head.bytes + s->at, nbytes);
    s->at += nbytes;
    return 0;
}

static uint64_t held_nbytes(const struct section *s)
{
    return s->kind->composite ? round_up(s->geometry.body_nbytes, LINE_NBYTES) : 0;
}

/* Notes where the bodies are, and gives composites theirs, which came.  The other bodies are
 * nowhere. */
static int fill_nodes(struct reading *reading)
{
    perhaps_remote *r = ((struct supply *)reading->source->context)->r;
    uint64_t held = 0;
    for (uint32_t i = 0; i < reading->head.header.sections; i++) {
        const struct section *s = &reading->sections[i];
        perhaps_filter *f = reading->made[i];
        r->node[i] = (struct node){ .f = f, .at = s->body_offset, .parent = s->parent };
        if (held_nbytes(s))
            f->body.bytes = r->bodies + held;
        held += held_nbytes(s);
    }
    for (uint32_t i = 1; i < reading->head.header.sections; i++) {
        uint32_t index = 0;
        const perhaps_filter *parent = reading->made[r->node[i].parent];
        while (parent->parts->part[index] != r->node[i].f)
            index++;
        r->node[i].index = index;
    }
    return 0;
}

static int make_filter(perhaps_remote *r)
{
    struct supply supply = { .r = r };
    const struct perhaps_source source = { supply_read, &supply, r->file_nbytes };
    const struct way way = { .fill = fill_nodes, .read_only = true };
    return filter_read(&source, &r->how, &way, NULL, &r->filter);
}

/* A small file is there as a whole. */
static int make_small(perhaps_remote *r)
{
    int error = perhaps_from_bytes(r->head.bytes, (size_t)there_nbytes(r), &r->how, &r->filter);
    if (!error)
        r->stage = STAGE_OPEN;
    return error;
}

/* ---- Bodies of composites ---------------------------------------------------------------- */

/* Returns 0 if all kinds can be asked, and sets *nbytes to what is held of their bodies. */
static int look_at_kinds(const perhaps_remote *r, uint64_t *nbytes)
{
    *nbytes = 0;
    for (uint32_t i = 0; i < r->head.header.sections; i++) {
        const struct section *s = &r->sections[i];
        if (!s->kind->composite && !(s->kind->answer && s->kind->reads))
            return PERHAPS_ERR_UNSUPPORTED;
        if (s->kind->composite && s->geometry.body_nbytes > BODIES_NBYTES_MOST)
            return PERHAPS_ERR_UNSUPPORTED;
        *nbytes += held_nbytes(s);
        if (*nbytes > BODIES_NBYTES_MOST)
            return PERHAPS_ERR_UNSUPPORTED;
    }
    return 0;
}

/* Reads the sections, and makes room for all that is kept of them. */
static int read_sections(perhaps_remote *r)
{
    const uint32_t count = r->head.header.sections;
    const struct perhaps_allocator *allocator = &r->allocator;
    r->sections = allocate(allocator, count * sizeof *r->sections);
    r->node = allocate(allocator, count * sizeof *r->node);
    if (!r->sections || !r->node)
        return PERHAPS_ERR_MEMORY;
    int error = container_sections(r->head.bytes, &r->head.header, false, r->sections);
    if (!error)
        error = look_at_kinds(r, &r->bodies_nbytes);
    if (!error && r->bodies_nbytes) {
        r->bodies = allocate(allocator, r->bodies_nbytes);
        error = r->bodies ? 0 : PERHAPS_ERR_MEMORY;
    }
    return error;
}

static int want_bodies(perhaps_remote *r)
{
    int error = 0;
    for (uint32_t i = 0; i < r->head.header.sections && !error; i++) {
        const struct section *s = &r->sections[i];
        if (held_nbytes(s))
            error = rounds_want(r, s->body_offset, s->geometry.body_nbytes);
    }
    return error ? error : rounds_begin(r);
}

static int take_bodies(perhaps_remote *r)
{
    uint64_t held = 0;
    for (uint32_t i = 0; i < r->head.header.sections; i++) {
        const struct section *s = &r->sections[i];
        const uint64_t nbytes = s->geometry.body_nbytes;
        const uint8_t *bytes = held_nbytes(s) ? rounds_find(r, s->body_offset, nbytes) : NULL;
        if (held_nbytes(s) && !bytes)
            return PERHAPS_ERR_DAMAGED;
        if (bytes)
            memcpy(r->bodies + held, bytes, nbytes);
        held += held_nbytes(s);
    }
    return 0;
}

/* ---- From stage to stage ----------------------------------------------------------------- */

static int end_opening(perhaps_remote *r)
{
    int error = make_filter(r);
    if (error)
        return error;
    rounds_forget(r);
    r->stage = STAGE_OPEN;
    return 0;
}

static int go_on_header(perhaps_remote *r)
{
    uint64_t nbytes;
    take_head(r);
    rounds_forget(r);
    int error = measure_head(r, &nbytes);
    if (!error && nbytes > r->head.nbytes)
        return want_head(r, nbytes);
    if (!error)
        error = container_decode(r->head.bytes, r->file_nbytes, &r->head.header);
    if (!error && r->head.header.journal.branch)
        error = PERHAPS_ERR_JOURNAL; /* which is not here: keys may be missing */
    if (!error && r->check && r->head.header.in_place)
        error = PERHAPS_ERR_UNSUPPORTED;
    if (!error && r->head.header.small)
        return make_small(r);
    if (!error)
        error = read_sections(r);
    if (error)
        return error;
    if (!r->bodies_nbytes)
        return end_opening(r);
    r->stage = STAGE_BODIES;
    return want_bodies(r);
}

static int go_on(perhaps_remote *r)
{
    int error = rounds_check(r);
    if (error)
        return error;
    if (r->stage == STAGE_HEADER)
        return go_on_header(r);
    if (r->stage == STAGE_ASKED)
        return ask_on(r);
    error = take_bodies(r);
    return error ? error : end_opening(r);
}

static bool is_waiting(const perhaps_remote *r)
{
    return r->stage == STAGE_HEADER || r->stage == STAGE_BODIES || r->stage == STAGE_ASKED;
}

int perhaps_remote_next(perhaps_remote *r)
{
    if (!is_waiting(r))
        return r->stage == STAGE_FAILED ? PERHAPS_ERR_ARGUMENT : 0;
    if (r->file_nbytes == NBYTES_UNKNOWN || !rounds_complete(r))
        return PERHAPS_ERR_ARGUMENT;
    int error = go_on(r);
    if (error) {
        rounds_forget(r);
        r->stage = r->stage == STAGE_ASKED ? STAGE_OPEN : STAGE_FAILED;
    }
    return error;
}

/* ---- Calls ------------------------------------------------------------------------------- */

int perhaps_remote_new(const struct perhaps_remote_options *options, perhaps_remote **remote)
{
    static const struct perhaps_remote_options usual = { 0 };
    options = options ? options : &usual;
    *remote = NULL;
    if (!is_unused(options->reserved))
        return PERHAPS_ERR_ARGUMENT;
    const struct perhaps_allocator allocator = allocator_or_system(options->allocator);
    perhaps_remote *r = allocate(&allocator, sizeof *r);
    if (!r)
        return PERHAPS_ERR_MEMORY;
    *r = (struct perhaps_remote){ .allocator = allocator,
                                  .check = options->check,
                                  .gap_nbytes =
                                      options->gap_nbytes ? options->gap_nbytes : GAP_NBYTES,
                                  .file_nbytes = NBYTES_UNKNOWN };
    r->how = (struct perhaps_open_options){ .mode = PERHAPS_MODE_LOAD,
                                            .without_secret = options->without_secret,
                                            .hashing = options->hashing,
                                            .allocator = options->allocator };
    int error = want_head(r, HEADER_NBYTES);
    if (error)
        perhaps_remote_free(r);
    else
        *remote = r;
    return error;
}

void perhaps_remote_free(perhaps_remote *r)
{
    if (!r)
        return;
    const struct perhaps_allocator allocator = r->allocator;
    const uint32_t count = r->head.header.sections;
    perhaps_free(r->filter);
    ask_end(r);
    rounds_forget(r);
    release(&allocator, r->sections, count * sizeof *r->sections);
    release(&allocator, r->node, count * sizeof *r->node);
    release(&allocator, r->bodies, r->bodies_nbytes);
    head_release(&r->head, &allocator);
    release(&allocator, r, sizeof *r);
}

const struct perhaps_range *perhaps_remote_needs(const perhaps_remote *r, size_t *count)
{
    const bool waits = is_waiting(r) && r->rounds;
    *count = waits ? r->round[r->rounds - 1].count : 0;
    return waits ? r->round[r->rounds - 1].range : NULL;
}

/* Only the first range may reach behind the end of a file. */
int perhaps_remote_size(perhaps_remote *r, uint64_t file_nbytes)
{
    if (r->file_nbytes != NBYTES_UNKNOWN)
        return file_nbytes == r->file_nbytes ? 0 : PERHAPS_ERR_DAMAGED;
    if (file_nbytes == NBYTES_UNKNOWN)
        return PERHAPS_ERR_DAMAGED;
    r->file_nbytes = file_nbytes;
    struct round *round = &r->round[0];
    if (round->range[0].nbytes > file_nbytes)
        round->range[0].nbytes = file_nbytes;
    return 0;
}

int perhaps_remote_take(perhaps_remote *r, size_t number, const void *bytes, size_t nbytes)
{
    size_t count;
    perhaps_remote_needs(r, &count);
    if (number >= count)
        return PERHAPS_ERR_ARGUMENT;
    struct round *round = &r->round[r->rounds - 1];
    if (nbytes > round->range[number].nbytes - round->got[number])
        return PERHAPS_ERR_ARGUMENT;
    if (nbytes)
        memcpy(round->bytes + round->offset[number] + round->got[number], bytes, nbytes);
    round->got[number] += nbytes;
    return 0;
}

/* A body that is not here cannot be measured. */
int perhaps_remote_stats_of(const perhaps_remote *r, struct perhaps_stats *stats)
{
    if (r->stage < STAGE_OPEN || r->stage == STAGE_FAILED)
        return PERHAPS_ERR_ARGUMENT;
    const perhaps_filter *f = r->filter;
    if (r->head.header.small) {
        perhaps_stats_of(f, stats);
        return 0;
    }
    const struct geometry *g = &f->body.geometry;
    uint64_t nbytes = 0;
    for (uint32_t i = 0; i < r->head.header.sections; i++)
        nbytes += r->sections[i].geometry.body_nbytes;
    *stats = (struct perhaps_stats){
        .hash = perhaps_hash_name(f->hasher.id),
        .keys = f->counters->keys,
        .keys_different = f->counters->keys,
        .keys_estimated = r->head.header.estimated,
        .memory_nbytes = nbytes,
        .fpr_now = f->kind->predict(g, (double)f->counters->keys),
        .parts = parts_count(f),
        .failed_adds = f->counters->failed_adds,
        .unmatched_removals = f->counters->unmatched_removals,
        .cpu = cpu_name(f->cpu),
    };
    geometry_describe(f->kind, g, f->kind->predict(g, (double)g->capacity), &stats->plan);
    stats->plan.body_nbytes = nbytes;
    if (stats->keys)
        stats->bits_per_key = 8.0 * (double)nbytes / (double)stats->keys;
    return 0;
}

const char *perhaps_remote_note(const perhaps_remote *r)
{
    return r->filter ? perhaps_note(r->filter) : "";
}

uint64_t perhaps_remote_nbytes(const perhaps_remote *r)
{
    return r->file_nbytes == NBYTES_UNKNOWN ? 0 : r->file_nbytes;
}
