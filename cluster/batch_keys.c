/* batch_keys.c - the keys of a batch: which of them are different, and which are pending. */
#include <string.h>

#include "batch.h"

/* Returns the first key of the batch with the hash of key i, which may be i, by a table with
 * 'places', a power of two.  Both halves are mixed, since a caller may hash its keys itself. */
static uint32_t find_first(struct batch *batch, uint32_t i, size_t places)
{
    const uint64_t odd = 0x9e3779b97f4a7c15; /* 2^64 divided by the golden ratio */
    uint64_t half[2];
    memcpy(half, batch->hash[i].bytes, sizeof half);
    for (uint64_t at = ((half[0] ^ half[1] * odd) * odd) >> 32;; at++) {
        uint32_t *place = &batch->place[at & (places - 1)];
        if (!*place)
            *place = i + 1;
        if (memcmp(&batch->hash[*place - 1], &batch->hash[i], sizeof *batch->hash) == 0)
            return *place - 1;
    }
}

/* Makes the keys pending, of those with the same hash the first. */
static void find_different(struct batch *batch)
{
    size_t places = 2;
    while (places < 2 * batch->count)
        places *= 2;
    memset(batch->place, 0, places * sizeof *batch->place);
    for (uint32_t i = 0; i < batch->count; i++) {
        batch->first[i] = find_first(batch, i, places);
        if (batch->first[i] == i)
            batch->pending[batch->npending++] = i;
    }
}

int batch_begin(perhaps_cluster *c, const struct perhaps_keys *keys)
{
    struct batch *batch = c->batch;
    batch->count = batch->npending = 0;
    int error = perhaps_layout_hash_many(c->layer[0].layout, keys, batch->hash);
    if (error)
        return nodes_fail_plainly(&c->nodes, error);
    memset(batch->answer, UNKNOWN, keys->count);
    memset(batch->unsure, 0, keys->count);
    batch->count = keys->count;
    find_different(batch);
    return 0;
}

void batch_end(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->first[i] != i) {
            uint8_t answer = batch->answer[batch->first[i]];
            batch->answer[i] = answer == ADDED ? PRESENT : answer;
        }
}

void batch_sift(struct batch *batch)
{
    size_t n = 0;
    for (size_t i = 0; i < batch->npending; i++)
        if (batch->answer[batch->pending[i]] == UNKNOWN)
            batch->pending[n++] = batch->pending[i];
    batch->npending = n;
}
