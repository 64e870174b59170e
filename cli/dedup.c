/* The verb dedup prints as it reads, so what was printed can no more be taken back: after a full
 * filter, a bad input or a signal the state is saved and matches what was printed.  If printing
 * fails it is not saved: lines that nobody saw come again in the next run. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "input.h"
#include "messages.h"
#include "numbers.h"
#include "output.h"
#include "stop.h"
#include "target.h"
#include "window.h"

/* ---- The lines that were seen ---------------------------------------------------------- */

#define SHARDS_MAX      8
#define SEEN_STAGES_MAX (SHARDS_MAX + 2)

struct seen {
    struct target target; /* the state, or one filter that forgets or whose hash was asked */
    struct window window;
    uint64_t nkeys_before; /* that it held at the start; not of one on servers */
    uint64_t nunsure;      /* lines of which servers that failed did not tell: taken for new */

    /* Else: each shard is told the keys whose hash says so, all in order, in a stage of its own;
     * so several threads add at once. */
    size_t nshards;
    struct shard {
        size_t index;
        struct target target;
    } shard[SHARDS_MAX];
    uint64_t seed;
};

/* ---- One filter, which hashes ------------------------------------------------------ */

static bool add_block(void *context, struct block *block)
{
    struct seen *seen = context;
    perhaps_filter *filter = seen->target.filter;
    size_t at = 0, done;
    if (block->error)
        return false;
    for (int error = 0; at < block->count && !error; at += done) {
        size_t count = window_advance(&seen->window, filter, block, at);
        struct perhaps_keys keys = block_keys(block, at, count);
        error = perhaps_add_unless_present_many(filter, &keys, block->answer + at, &done);
        block_met(block, error);
    }
    block->ndone = at;
    return !block->error;
}

/* Lines whose keys may be in, and were not told to be new, would be lost: they count as new. */
static bool add_to_servers(void *context, struct block *block)
{
    struct seen *seen = context;
    if (remote_add(seen->target.remote, block))
        return true;
    if (!remote_blames_key(block)) {
        seen->nunsure = block->count - block->ndone;
        block->ndone = block->count;
    }
    return false;
}

/* ---- Shards ------------------------------------------------------------------------- */

/* The keys of a block by shards, in its room for the verb.  What belongs to shard s begins at
 * s * room. */
struct sharded {
    size_t room; /* for so many keys in each shard */
    size_t count[SHARDS_MAX];
    struct perhaps_hashed *hash;
    uint32_t *record; /* which one of the block has this hash */
    bool *answer;     /* of one shard at a time */
};

static struct sharded *make_room(struct block *block, size_t nshards)
{
    size_t room = (block->count + 63) / 64 * 64;
    size_t each_nbytes =
        nshards * (sizeof(struct perhaps_hashed) + sizeof(uint32_t)) + sizeof(bool);
    struct sharded *sharded =
        room_for(&block->room[FOR_VERB], sizeof *sharded + room * each_nbytes, 1);
    if (!sharded)
        return NULL;
    sharded->room = room;
    sharded->hash = (struct perhaps_hashed *)(sharded + 1);
    sharded->record = (uint32_t *)(sharded->hash + nshards * room);
    sharded->answer = (bool *)(sharded->record + nshards * room);
    return sharded;
}

/* The shard is taken from bits of the hash that no kind gives a weight of their own.  What does
 * not change is read before the loop: for all that compilers know, writing a hash might change
 * anything. */
static void shard_keys(const struct seen *seen, const struct block *block,
                       struct sharded *sharded)
{
    const uint64_t seed = seen->seed, mask = seen->nshards - 1;
    const struct perhaps_key *key = block->key;
    const size_t count = block->count, room = sharded->room;
    struct perhaps_hashed *hashes = sharded->hash;
    uint32_t *records = sharded->record;
    size_t used[SHARDS_MAX] = { 0 };
    for (size_t i = 0; i < count; i++) {
        XXH128_hash_t hash = XXH3_128bits_withSeed(key[i].bytes, key[i].nbytes, seed);
        uint64_t shard = hash.high64 & mask;
        size_t at = shard * room + used[shard]++;
        memcpy(&hashes[at], &hash, sizeof hash);
        records[at] = (uint32_t)i;
    }
    memcpy(sharded->count, used, sizeof used);
}

static bool shard_block(void *context, struct block *block)
{
    const struct seen *seen = context;
    struct sharded *sharded = make_room(block, seen->nshards);
    if (sharded)
        shard_keys(seen, block, sharded);
    else
        block->ndone = 0;
    return block_met(block, sharded ? 0 : PERHAPS_ERR_MEMORY);
}

static bool add_to_shard(void *context, struct block *block)
{
    const struct shard *shard = context;
    struct sharded *sharded = block->room[FOR_VERB].memory;
    if (block->error == PERHAPS_ERR_MEMORY)
        return false;
    size_t begin = shard->index * sharded->room;
    const uint32_t *record = sharded->record + begin;
    struct perhaps_keys keys = perhaps_keys_packed(sharded->hash + begin, sizeof *sharded->hash,
                                                   sharded->count[shard->index]);
    size_t done;
    int error =
        perhaps_add_unless_present_many(shard->target.filter, &keys, sharded->answer, &done);
    for (size_t i = 0; i < done; i++)
        block->answer[record[i]] = sharded->answer[i];
    if (error && record[done] < block->ndone)
        block->ndone = record[done];
    return block_met(block, error);
}

/* Writes the stages that find out, for each record of a block, whether it was seen before.
 * Returns how many. */
static size_t seen_stages(struct seen *seen, struct stage stages[SEEN_STAGES_MAX])
{
    if (seen->target.remote) {
        stages[0] = (struct stage){ .run = add_to_servers, .context = seen, .in_order = true };
        return 1;
    }
    if (seen->nshards == 0) {
        size_t n = 0;
        if (window_reads(&seen->window))
            stages[n++] = (struct stage){ .run = window_read_times, .context = &seen->window };
        stages[n++] = (struct stage){ .run = block_hash, .context = seen->target.filter };
        stages[n++] = (struct stage){ .run = add_block, .context = seen, .in_order = true };
        return n;
    }
    stages[0] = (struct stage){ .run = shard_block, .context = seen };
    for (size_t i = 0; i < seen->nshards; i++)
        stages[i + 1] =
            (struct stage){ .run = add_to_shard, .context = &seen->shard[i], .in_order = true };
    return seen->nshards + 1;
}

/* ---- Opening ----------------------------------------------------------------------- */

/* A power of two, no more than there are threads, and none of less than a million keys; how
 * many will come to one that grows is not known. */
static size_t choose_nshards(const struct settings *settings, struct size size)
{
    size_t nshards = 1;
    while (nshards < SHARDS_MAX && 2 * nshards <= input_nthreads(settings) &&
           (size.grows || size.capacity / (2 * nshards) >= 1000000))
        nshards *= 2;
    return nshards;
}

static int make_shard(struct shard *shard, const struct settings *settings, struct size size)
{
    struct settings hashed = *settings;
    hashed.hash = "none";
    int status = target_reserve(&shard->target, NULL, settings);
    return status ? status : target_create(&shard->target, &hashed, size);
}

/* Keys do not fall into the shards quite evenly: six deviations more, for each. */
static int make_shards(struct seen *seen, const struct settings *settings, struct size size)
{
    int status = 0;
    if (getentropy(&seen->seed, sizeof seen->seed) != 0)
        return complain("no random bytes: %s", strerror(errno));
    size_t nshards = choose_nshards(settings, size);
    double mean = (double)size.capacity / (double)nshards;
    if (nshards > 1)
        size.capacity = (uint64_t)(mean + 6 * sqrt(mean));
    while (!status && seen->nshards < nshards) {
        struct shard *shard = &seen->shard[seen->nshards];
        *shard = (struct shard){ .index = seen->nshards++, .target = TARGET_NONE };
        status = make_shard(shard, settings, size);
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
        status = target_stats(target, &stats, NULL, "");
    if (status)
        return status;
    seen->nkeys_before = stats.keys;
    if (!target->remote)
        status = window_open(&seen->window, settings, target->filter, path);
    if (!status)
        tell_ignored(settings, &stats);
    return status;
}

/* Opens the state, or makes filters.  Returns 0 or the exit status, having complained. */
static int seen_open(struct seen *seen, const struct settings *settings)
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
    return one ? make_one(seen, settings, size) : make_shards(seen, settings, size);
}

static void seen_close(struct seen *seen)
{
    for (size_t i = 0; i < seen->nshards; i++)
        target_close(&seen->shard[i].target);
    target_close(&seen->target);
}

/* ---- What may have been lost ------------------------------------------------------- */

/* What all filters together are, and what they did. */
struct seen_facts {
    uint64_t keys, capacity, memory_nbytes;
    double fpr_now, fpr;
    bool forgets;
    bool over;              /* more keys came than the asked rate was to be kept for */
    double expected_losses; /* lines that were taken for old though they were new */
    uint64_t doubtful;      /* that were taken for new and may have been old: see
                               perhaps_cluster_add_many() */
};

static int add_facts(struct seen_facts *facts, const struct target *target)
{
    struct perhaps_stats stats;
    struct perhaps_cluster_stats servers;
    int status = target_stats(target, &stats, &servers, "; all lines are done and remembered");
    if (status)
        return status;
    double keys = (double)stats.keys, all = (double)facts->keys + keys;
    if (all > 0) /* as often as keys go there */
        facts->fpr_now += (stats.fpr_now - facts->fpr_now) * keys / all;
    facts->keys += stats.keys;
    facts->capacity += stats.plan.capacity;
    facts->memory_nbytes += stats.memory_nbytes;
    facts->fpr = stats.plan.fpr;
    facts->over |= stats.keys > stats.plan.fpr_until && stats.fpr_now > stats.plan.fpr;
    facts->forgets = kind_can(stats.plan.kind, PERHAPS_CAN_FORGET);
    facts->doubtful = servers.doubtful;
    return 0;
}

/* What a window holds in the end tells nothing about how much it held before, and others add to
 * what servers hold: both are taken to have been as full all the time. */
static double expected_losses_of(const struct seen *seen, const struct seen_facts *facts,
                                 uint64_t nnew)
{
    double sum = 0;
    if (seen->target.remote || facts->forgets)
        return (double)nnew * facts->fpr_now;
    if (seen->nshards == 0)
        return expected_unseen(seen->target.filter, seen->nkeys_before, nnew);
    for (size_t i = 0; i < seen->nshards; i++)
        sum += expected_unseen(seen->shard[i].target.filter, 0, nnew / seen->nshards);
    return sum;
}

/* When 'nnew' lines were found to be new.  Returns 0 or the exit status, having complained. */
static int find_facts(const struct seen *seen, uint64_t nnew, struct seen_facts *facts)
{
    *facts = (struct seen_facts){ 0 };
    int status = seen->nshards ? 0 : add_facts(facts, &seen->target);
    for (size_t i = 0; i < seen->nshards && !status; i++)
        status = add_facts(facts, &seen->shard[i].target);
    if (!status)
        facts->expected_losses = expected_losses_of(seen, facts, nnew);
    return status;
}

/* ---- The verb -------------------------------------------------------------------------- */

struct dedup {
    const struct settings *settings;
    struct seen seen;
    struct input *input;
    struct output output;
    uint64_t nlines;
    uint64_t nnew;
};

static bool keep_block(void *context, struct block *block)
{
    const struct dedup *dedup = context;
    const struct settings *s = dedup->settings;
    size_t nkept = output_keep(block, s->repeated);
    block->nselected = s->repeated ? block->ndone - nkept : nkept;
    if (s->count)
        block->output_nbytes = 0;
    return true;
}

static bool print_block(void *context, struct block *block)
{
    struct dedup *dedup = context;
    dedup->nlines += block->ndone;
    dedup->nnew += block->nselected;
    return output_write(&dedup->output, block);
}

static bool is_saved(const struct dedup *dedup)
{
    return dedup->settings->state && !dedup->seen.target.remote;
}

/* Saves the state, if it is a file.  Returns 0 or the exit status. */
static int remember(struct dedup *dedup)
{
    return is_saved(dedup) ? target_save(&dedup->seen.target, dedup->settings) : 0;
}

/* What an error leaves, once remember() has made it true. */
static int complain_of(const struct dedup *dedup, const struct block *last)
{
    uint64_t nunsure = dedup->seen.nunsure;
    char outcome[160];
    snprintf(outcome, sizeof outcome, "; the lines so far are done%s%s%s%s",
             dedup->settings->state ? " and remembered" : "", nunsure ? ", but the last " : "",
             nunsure ? grouped(nunsure).s : "", nunsure ? " may come again" : "");
    return target_complain(&dedup->seen.target, dedup->input, last, outcome);
}

/* Servers remember at once. */
static int complain_of_output(const struct dedup *dedup)
{
    return output_complain(&dedup->output,
                           is_saved(dedup) ? dedup->seen.target.outcome
                           : dedup->seen.target.remote
                               ? "; what could not be printed is remembered all the same"
                               : "");
}

static int dedup_all(struct dedup *dedup)
{
    struct stage stages[SEEN_STAGES_MAX + 2];
    size_t n = seen_stages(&dedup->seen, stages);
    stages[n++] = (struct stage){ .run = keep_block, .context = dedup };
    stages[n++] = (struct stage){ .run = print_block, .context = dedup, .in_order = true };
    const struct block *last = input_run(dedup->input, stages, n);
    if (dedup->output.error)
        return complain_of_output(dedup);
    int status = remember(dedup);
    return status ? status : complain_of(dedup, last);
}

static int report(const struct dedup *dedup, double seconds)
{
    const struct settings *s = dedup->settings;
    uint64_t nrepeated = dedup->nlines - dedup->nnew;
    struct seen_facts seen;
    if (s->count)
        printf("lines\t%ju\nnew\t%ju\nrepeated\t%ju\n", (uintmax_t)dedup->nlines,
               (uintmax_t)dedup->nnew, (uintmax_t)nrepeated);
    int status = s->quiet ? 0 : find_facts(&dedup->seen, dedup->nnew, &seen);
    if (status || s->quiet)
        return status;
    double bits = seen.keys ? 8.0 * (double)seen.memory_nbytes / (double)seen.keys : 0;
    json_t *facts = json_pack(
        "{s:s, s:o*, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:f}", "verb",
        s->verb->name, "state", s->state ? json_path(dedup->seen.target.path) : NULL, "lines",
        (json_int_t)dedup->nlines, "new", (json_int_t)dedup->nnew, "repeated",
        (json_int_t)nrepeated, "skipped", (json_int_t)input_nskipped(dedup->input),
        "keys_in_filter", (json_int_t)seen.keys, "body_bytes", (json_int_t)seen.memory_nbytes,
        "bits_per_key", bits, "fpr_asked", seen.fpr, "fpr_now", seen.fpr_now, "expected_lost",
        seen.expected_losses, "doubtful", (json_int_t)seen.doubtful, "seconds", seconds);
    return summarize(
        s, facts,
        "%s, %s new, %s repeated; %s new lines may have been taken "
        "for old; %s%s%s%s, %s%s%s%s%s%s",
        counted(dedup->nlines, "line").s, grouped(dedup->nnew).s, grouped(nrepeated).s,
        expectation(seen.expected_losses).s, seen.doubtful ? grouped(seen.doubtful).s : "",
        seen.doubtful ? " old ones for new, since connections broke; " : "",
        scaled((double)seen.memory_nbytes, "B").s,
        bits_of(seen.capacity, seen.keys, seen.memory_nbytes).s, duration(seconds).s,
        speed(dedup->nlines, seconds, " lines/s").s, seen.over ? "; the rate is now " : "",
        seen.over ? share(seen.fpr_now).s : "", seen.over ? ", above the " : "",
        seen.over ? share(seen.fpr).s : "");
}

static int refuse_overlap(const struct settings *settings)
{
    struct stat file;
    int status = 0;
    if (settings->state && stat(settings->state, &file) == 0)
        status = input_refuse(settings, &file, settings->state);
    if (!status && !settings->count && fstat(STDOUT_FILENO, &file) == 0)
        status = input_refuse(settings, &file, "standard output");
    return status;
}

int verb_dedup(const struct settings *settings)
{
    struct dedup dedup = { .settings = settings, .seen.target = TARGET_NONE };
    double started = seconds_now();
    stop_on_signals();
    int status = refuse_overlap(settings);
    if (!status)
        status = seen_open(&dedup.seen, settings);
    if (!status)
        status = input_open(settings, "reading", !settings->count, &dedup.input);
    if (!status)
        status = dedup_all(&dedup);
    if (!status)
        status = report(&dedup, seconds_now() - started);
    input_close(dedup.input);
    seen_close(&dedup.seen);
    return status;
}
