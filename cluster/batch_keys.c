/* batch_keys.c - the keys of a batch: which of them are different, which are pending, and what
 * their bits tell. */
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
    memset(batch->forgotten, 0, keys->count);
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

/* ---- Bits that are sent by number -------------------------------------------------------- */

void batch_put_bits(struct resp *out, bool sets, const uint64_t *bit, unsigned nbits)
{
    for (unsigned k = 0; k < nbits; k++) {
        resp_text(out, sets ? "SET" : "GET");
        resp_text(out, "u1");
        resp_number(out, bit[k]);
        if (sets)
            resp_text(out, "1");
    }
}

int batch_take_bits(perhaps_cluster *c, uint8_t *answer, const struct reply *reply,
                    size_t nbits, size_t more, bool again)
{
    int nset = 0;
    if (reply->type != REDIS_REPLY_ARRAY || reply->count != nbits + more)
        return nodes_fail(&c->nodes, PERHAPS_ERR_PROTOCOL,
                          "a server answered strangely to BITFIELD");
    for (size_t k = 0; k < nbits; k++)
        nset += reply->numbers[k] == 1;
    bool all = nset == (int)nbits;
    if (*answer == UNKNOWN) {
        *answer = all && !again ? PRESENT : ADDED;
        c->doubtful += all && again;
    } else if (*answer == PRESENT && !all) {
        *answer = ADDED_TOO;
    }
    return nset;
}
