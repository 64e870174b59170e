#include "seen.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "facts.h"
#include "input.h"
#include "report.h"

/* ---- One filter, which hashes ------------------------------------------------------ */

static bool hash_for_filter(void *context, struct batch *batch)
{
    const struct seen *seen = context;
    return batch_hash(seen->target.filter, batch);
}

static bool add_batch(void *context, struct batch *batch)
{
    struct seen *seen = context;
    perhaps_filter *filter = seen->target.filter;
    size_t at = 0, done;
    if (batch->error)
        return false;
    for (int error = 0; at < batch->count && !error; at += done) {
        size_t count = window_advance(&seen->window, filter, batch, at);
        struct perhaps_keys keys = batch_keys(batch, at, count);
        error = perhaps_add_unless_present_many(filter, &keys, batch->answer + at, &done);
        batch_met(batch, error);
    }
    batch->ndone = at;
    return !batch->error;
}

/* Lines whose keys may be in, and were not told to be new, would be lost: they count as new. */
static bool add_to_servers(void *context, struct batch *batch)
{
    struct seen *seen = context;
    if (remote_add(seen->target.remote, batch))
        return true;
    if (!remote_blames_key(batch)) {
        seen->nunsure = batch->count - batch->ndone;
        batch->ndone = batch->count;
    }
    return false;
}

/* ---- Parts ------------------------------------------------------------------------- */

typedef uint8_t hash_bytes[PERHAPS_HASH_NBYTES];

/* The keys of a batch by parts: its scratch, one piece of memory.  What belongs to part p
 * begins at p * room. */
struct parted {
    size_t room; /* for so many keys in each part */
    size_t count[SEEN_PARTS_MAX];
    hash_bytes *hash;
    uint32_t *record; /* which one of the batch has this hash */
    bool *answer;     /* of one part at a time */
};

static bool make_room(struct batch *batch, size_t nparts)
{
    struct parted *parted = batch->scratch;
    if (parted && parted->room >= batch->count)
        return true;
    free(parted);
    size_t room = (batch->count + 63) / 64 * 64;
    size_t each_nbytes = nparts * (sizeof(hash_bytes) + sizeof(uint32_t)) + sizeof(bool);
    batch->scratch = parted = malloc(sizeof *parted + room * each_nbytes);
    if (!parted)
        return false;
    parted->room = room;
    parted->hash = (hash_bytes *)(parted + 1);
    parted->record = (uint32_t *)(parted->hash + nparts * room);
    parted->answer = (bool *)(parted->record + nparts * room);
    return true;
}

/* The part is taken from bits of the hash that no kind gives a weight of their own.  What does
 * not change is read before the loop: for all that compilers know, writing a hash might change
 * anything. */
static void part_keys(const struct seen *seen, const struct batch *batch, struct parted *parted)
{
    const uint64_t seed = seen->seed, mask = seen->nparts - 1;
    const struct perhaps_key *key = batch->key;
    const size_t count = batch->count, room = parted->room;
    hash_bytes *hashes = parted->hash;
    uint32_t *records = parted->record;
    size_t used[SEEN_PARTS_MAX] = { 0 };
    for (size_t i = 0; i < count; i++) {
        XXH128_hash_t hash = XXH3_128bits_withSeed(key[i].bytes, key[i].nbytes, seed);
        uint64_t part = hash.high64 & mask;
        size_t at = part * room + used[part]++;
        memcpy(hashes[at], &hash, sizeof hash);
        records[at] = (uint32_t)i;
    }
    memcpy(parted->count, used, sizeof used);
}

static bool part_batch(void *context, struct batch *batch)
{
    const struct seen *seen = context;
    if (!make_room(batch, seen->nparts)) {
        batch->ndone = 0;
        return batch_met(batch, PERHAPS_ERR_MEMORY);
    }
    part_keys(seen, batch, batch->scratch);
    return true;
}

static bool add_to_part(void *context, struct batch *batch)
{
    const struct seen_part *part = context;
    struct parted *parted = batch->scratch;
    if (batch->error == PERHAPS_ERR_MEMORY)
        return false;
    size_t begin = part->index * parted->room;
    const uint32_t *record = parted->record + begin;
    struct perhaps_keys keys = perhaps_keys_packed(parted->hash + begin, sizeof(hash_bytes),
                                                   parted->count[part->index]);
    size_t done;
    int error =
        perhaps_add_unless_present_many(part->target.filter, &keys, parted->answer, &done);
    for (size_t i = 0; i < done; i++)
        batch->answer[record[i]] = parted->answer[i];
    if (error && record[done] < batch->ndone)
        batch->ndone = record[done];
    return batch_met(batch, error);
}

size_t seen_stages(struct seen *seen, struct stage stages[SEEN_STAGES_MAX])
{
    if (seen->target.remote) {
        stages[0] = (struct stage){ .run = add_to_servers, .context = seen, .in_order = true };
        return 1;
    }
    if (seen->nparts == 0) {
        size_t n = 0;
        if (window_reads(&seen->window))
            stages[n++] = (struct stage){ .run = window_read_times, .context = &seen->window };
        stages[n++] = (struct stage){ .run = hash_for_filter, .context = seen };
        stages[n++] = (struct stage){ .run = add_batch, .context = seen, .in_order = true };
        return n;
    }
    stages[0] = (struct stage){ .run = part_batch, .context = seen };
    for (size_t i = 0; i < seen->nparts; i++)
        stages[i + 1] =
            (struct stage){ .run = add_to_part, .context = &seen->part[i], .in_order = true };
    return seen->nparts + 1;
}

/* ---- Opening ----------------------------------------------------------------------- */

/* A power of two, no more than there are threads, and none of less than a million keys; how
 * many will come to one that grows is not known. */
static size_t choose_nparts(const struct settings *settings, struct size size)
{
    size_t nparts = 1;
    while (nparts < SEEN_PARTS_MAX && 2 * nparts <= input_nthreads(settings) &&
           (size.grows || size.capacity / (2 * nparts) >= 1000000))
        nparts *= 2;
    return nparts;
}

static int make_part(struct seen_part *part, const struct settings *settings, struct size size)
{
    struct settings hashed = *settings;
    hashed.hash = "none";
    int status = target_reserve(&part->target, NULL, settings);
    return status ? status : target_create(&part->target, &hashed, size);
}

/* Keys do not fall into the parts quite evenly: six deviations more, for each. */
static int make_parts(struct seen *seen, const struct settings *settings, struct size size)
{
    int status = 0;
    if (getentropy(&seen->seed, sizeof seen->seed) != 0)
        return complain("no random bytes: %s", strerror(errno));
    size_t nparts = choose_nparts(settings, size);
    double mean = (double)size.capacity / (double)nparts;
    if (nparts > 1)
        size.capacity = (uint64_t)(mean + 6 * sqrt(mean));
    while (!status && seen->nparts < nparts) {
        struct seen_part *part = &seen->part[seen->nparts];
        *part = (struct seen_part){ .index = seen->nparts++, .target = TARGET_NONE };
        status = make_part(part, settings, size);
    }
    return status;
}

/* One filter for all: a window is full of what came last, wherever its hash would put it. */
static int make_one(struct seen *seen, const struct settings *settings, struct size size)
{
    int status = target_create(&seen->target, settings, size);
    return status ? status : window_open(&seen->window, settings, seen->target.filter, NULL);
}

static bool differs(const char *asked, const char *is)
{
    return asked && (!is || strcmp(asked, is) != 0);
}

/* A state stays as it was made.  Of the options that say otherwise, --window is refused. */
static void tell_ignored(const struct settings *s, const struct perhaps_stats *state)
{
    const struct perhaps_plan *plan = &state->plan;
    uint64_t factor;
    bool has_factor = planned_field(plan, "factor", &factor);
    bool grows = kind_can(plan->kind, PERHAPS_CAN_GROW) || plan->fpr_until == UINT64_MAX;
    const struct {
        const char *name;
        bool ignored;
    } options[] = {
        { "-n", s->capacity && s->capacity != plan->capacity },
        { "-p", s->fpr > 0 && s->fpr != plan->fpr },
        { "--kind", differs(s->kind, plan->kind) },
        { "--base", differs(s->base, plan->base) },
        { "--grow", s->grow && !grows },
        { "--until", s->until && s->until != plan->fpr_until },
        { "--factor", s->factor && !(has_factor && s->factor == factor) },
        { "--fast", s->fast },
        { "--compact", s->compact },
        { "--hash", differs(s->hash, state->hash) },
    };
    char names[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].ignored)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     used ? ", " : "", options[i].name);
    if (*names && !s->quiet && !s->json)
        complain("%s: is there already and stays as it was made: ignored: %s", s->state, names);
}

static int open_state(struct seen *seen, const struct settings *settings)
{
    struct perhaps_stats stats;
    const char *path = settings->state;
    struct target *target = &seen->target;
    int status = is_remote(path) ? target_open(target, path, settings, WITH_SECRET)
                                 : target_load(target, path, settings, WITH_SECRET);
    if (!status)
        status = target_stats(target, &stats);
    if (status)
        return status;
    seen->nkeys_before = stats.keys;
    if (!target->remote)
        status = window_open(&seen->window, settings, target->filter, path);
    if (!status)
        tell_ignored(settings, &stats);
    return status;
}

int seen_open(struct seen *seen, const struct settings *settings)
{
    struct size size;
    if (settings->state && is_remote(settings->state))
        return open_state(seen, settings);
    int status = target_reserve(&seen->target, settings->state, settings);
    if (!status && settings->state && !seen->target.fresh)
        return open_state(seen, settings);
    if (!status)
        status = input_size(settings, &size);
    if (status)
        return status;
    bool one =
        settings->state || settings->hash || settings->key_file || request_window(settings);
    return one ? make_one(seen, settings, size) : make_parts(seen, settings, size);
}

void seen_close(struct seen *seen)
{
    for (size_t i = 0; i < seen->nparts; i++)
        target_close(&seen->part[i].target);
    target_close(&seen->target);
}

/* ---- What may have been lost ------------------------------------------------------- */

static void add_facts(struct seen_facts *facts, const struct target *target)
{
    struct perhaps_stats stats;
    perhaps_stats_of(target->filter, &stats);
    double keys = (double)stats.keys, all = (double)facts->keys + keys;
    if (all > 0) /* as often as keys go there */
        facts->fpr_now += (stats.fpr_now - facts->fpr_now) * keys / all;
    facts->keys += stats.keys;
    facts->capacity += stats.plan.capacity;
    facts->memory_nbytes += stats.memory_nbytes;
    facts->fpr = stats.plan.fpr;
    facts->over |= stats.keys > stats.plan.fpr_until && stats.fpr_now > stats.plan.fpr;
}

/* What a window holds in the end tells nothing about how much it held before: it is taken to
 * have been as full all the time. */
static double expected_losses_of(const struct seen *seen, uint64_t nnew)
{
    double sum = 0;
    struct perhaps_stats stats;
    if (seen->nparts == 0) {
        perhaps_stats_of(seen->target.filter, &stats);
        if (kind_can(stats.plan.kind, PERHAPS_CAN_FORGET))
            return (double)nnew * stats.fpr_now;
        return expected_unseen(seen->target.filter, seen->nkeys_before, nnew);
    }
    for (size_t i = 0; i < seen->nparts; i++)
        sum += expected_unseen(seen->part[i].target.filter, 0, nnew / seen->nparts);
    return sum;
}

/* Others add to it, too: it is taken to have been as full all the time. */
static int facts_of_servers(const struct remote *remote, uint64_t nnew,
                            struct seen_facts *facts)
{
    struct perhaps_cluster_stats stats;
    int error = perhaps_cluster_stats_of(remote_handle(remote), &stats);
    if (!error)
        *facts = (struct seen_facts){ .keys = stats.keys,
                                      .capacity = stats.plan.capacity,
                                      .memory_nbytes = stats.memory_nbytes,
                                      .fpr_now = stats.fpr_now,
                                      .fpr = stats.plan.fpr,
                                      .over = stats.keys > stats.plan.fpr_until &&
                                              stats.fpr_now > stats.plan.fpr,
                                      .expected_losses = (double)nnew * stats.fpr_now,
                                      .doubtful = stats.doubtful };
    return remote_settle(remote, error, "; all lines are done and remembered");
}

int seen_facts(const struct seen *seen, uint64_t nnew, struct seen_facts *facts)
{
    *facts = (struct seen_facts){ 0 };
    if (seen->target.remote)
        return facts_of_servers(seen->target.remote, nnew, facts);
    if (seen->nparts == 0)
        add_facts(facts, &seen->target);
    for (size_t i = 0; i < seen->nparts; i++)
        add_facts(facts, &seen->part[i].target);
    facts->expected_losses = expected_losses_of(seen, nnew);
    return 0;
}
