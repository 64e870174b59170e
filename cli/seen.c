#include "seen.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "input.h"
#include "report.h"

/* ---- One filter, which hashes ------------------------------------------------------ */

static bool add_batch(void *context, struct batch *batch)
{
    const struct seen *seen = context;
    struct perhaps_keys keys = { .count = batch->count, .each = batch->key };
    int error = perhaps_add_unless_present_many(seen->target.filter, &keys, batch->answer,
                                                &batch->ndone);
    return batch_met(batch, error);
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
static void hash_keys(const struct seen *seen, const struct batch *batch, struct parted *parted)
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

static bool hash_batch(void *context, struct batch *batch)
{
    const struct seen *seen = context;
    if (!make_room(batch, seen->nparts)) {
        batch->ndone = 0;
        return batch_met(batch, PERHAPS_ERR_MEMORY);
    }
    hash_keys(seen, batch, batch->scratch);
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
    struct perhaps_keys keys = { .count = parted->count[part->index],
                                 .packed = parted->hash + begin,
                                 .key_nbytes = sizeof(hash_bytes) };
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
    if (seen->nparts == 0) {
        stages[0] = (struct stage){ .run = add_batch, .context = seen, .in_order = true };
        return 1;
    }
    stages[0] = (struct stage){ .run = hash_batch, .context = seen };
    for (size_t i = 0; i < seen->nparts; i++)
        stages[i + 1] =
            (struct stage){ .run = add_to_part, .context = &seen->part[i], .in_order = true };
    return seen->nparts + 1;
}

/* ---- Opening ----------------------------------------------------------------------- */

/* A power of two, no more than there are threads, and none of less than a million keys. */
static size_t choose_nparts(const struct settings *settings, uint64_t capacity)
{
    size_t nparts = 1;
    while (nparts < SEEN_PARTS_MAX && 2 * nparts <= input_nthreads(settings) &&
           capacity / (2 * nparts) >= 1000000)
        nparts *= 2;
    return nparts;
}

static int make_part(struct seen_part *part, const struct settings *settings, uint64_t capacity)
{
    struct settings hashed = *settings;
    hashed.hash = "none";
    int status = target_reserve(&part->target, NULL);
    return status ? status : target_create(&part->target, &hashed, capacity);
}

/* Keys do not fall into the parts quite evenly: six deviations more, for each. */
static int make_parts(struct seen *seen, const struct settings *settings, uint64_t capacity)
{
    int status = 0;
    if (getentropy(&seen->seed, sizeof seen->seed) != 0)
        return complain("no random bytes: %s", strerror(errno));
    size_t nparts = choose_nparts(settings, capacity);
    double mean = (double)capacity / (double)nparts;
    if (nparts > 1)
        capacity = (uint64_t)(mean + 6 * sqrt(mean));
    while (!status && seen->nparts < nparts) {
        struct seen_part *part = &seen->part[seen->nparts];
        *part = (struct seen_part){ .index = seen->nparts++, .target = TARGET_NONE };
        status = make_part(part, settings, capacity);
    }
    return status;
}

int seen_open(struct seen *seen, const struct settings *settings)
{
    struct perhaps_stats stats;
    uint64_t capacity;
    int status = target_reserve(&seen->target, settings->state);
    if (!status && settings->state && access(settings->state, F_OK) == 0) {
        status = target_load(&seen->target, settings->state, settings, WITH_SECRET);
    } else if (!status && !(status = input_capacity(settings, &capacity))) {
        if (!settings->state && !settings->hash && !settings->key_file)
            return make_parts(seen, settings, capacity);
        status = target_create(&seen->target, settings, capacity);
    }
    if (status)
        return status;
    perhaps_stats(seen->target.filter, &stats);
    seen->nkeys_before = stats.keys;
    return 0;
}

void seen_close(struct seen *seen)
{
    for (size_t i = 0; i < seen->nparts; i++)
        target_close(&seen->part[i].target);
    target_close(&seen->target);
}

/* ---- What may have been lost ------------------------------------------------------- */

/* Before each new line that got in, with k keys there, p/(1-p) did not, for p the rate at k.
 * Simpson's rule over k. */
static double expected_losses(const perhaps_filter *filter, uint64_t before, uint64_t nnew)
{
    enum { INTERVALS = 16 };
    double sum = 0, width = (double)nnew / INTERVALS;
    for (int i = 0; i <= INTERVALS; i++) {
        double p = perhaps_predict_fpr(filter, before + (uint64_t)(i * width));
        double weight = i == 0 || i == INTERVALS ? 1 : i % 2 ? 4 : 2;
        sum += weight * p / (p < 1 ? 1 - p : 1e-9);
    }
    return sum * width / 3;
}

double seen_expected_losses(const struct seen *seen, uint64_t nnew)
{
    double sum = 0;
    if (seen->nparts == 0)
        return expected_losses(seen->target.filter, seen->nkeys_before, nnew);
    for (size_t i = 0; i < seen->nparts; i++)
        sum += expected_losses(seen->part[i].target.filter, 0, nnew / seen->nparts);
    return sum;
}
