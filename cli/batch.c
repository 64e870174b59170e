#include "batch.h"

#include <stdlib.h>

/* For 'count' members: what was there before is not kept. */
static void *renew(void *old, size_t count, size_t each_nbytes, size_t *room)
{
    free(old);
    void *memory = malloc(count * each_nbytes);
    *room = memory ? count : 0;
    return memory;
}

bool batch_hash(const perhaps_filter *filter, struct batch *batch)
{
    struct perhaps_keys keys = perhaps_keys_each(batch->key, batch->count);
    if (batch->count > batch->nhashed)
        batch->hashed =
            renew(batch->hashed, batch->nrecords, sizeof *batch->hashed, &batch->nhashed);
    if (batch->count > batch->nhashed) {
        batch->ndone = 0;
        return batch_met(batch, PERHAPS_ERR_MEMORY);
    }
    batch->is_hashed = perhaps_hash_many(filter, &keys, batch->hashed) == 0;
    return true;
}

bool batch_make_numbers(struct batch *batch)
{
    if (batch->count > batch->nnumbers)
        batch->number =
            renew(batch->number, batch->nrecords, sizeof *batch->number, &batch->nnumbers);
    return batch->count <= batch->nnumbers;
}

bool batch_skip(struct batch *batch, size_t i, const char *lacks)
{
    if (!batch->nskipped && batch->count > batch->nplaces)
        batch->place =
            renew(batch->place, batch->nrecords, sizeof *batch->place, &batch->nplaces);
    if (batch->count > batch->nplaces)
        return false;
    for (size_t k = 0; !batch->nskipped && k < batch->count; k++)
        batch->place[k] = k;
    if (!batch->nskipped++ || batch->place[i] < batch->first_skipped) {
        batch->first_skipped = batch->place[i];
        batch->lacks = lacks;
    }
    return true;
}

uint64_t batch_line(const struct batch *batch, size_t i)
{
    return batch->line +
           (batch->nskipped && i < batch->count ? batch->place[i] : i + batch->nskipped);
}

struct perhaps_keys batch_keys(const struct batch *batch, size_t at, size_t count)
{
    if (batch->is_hashed)
        return perhaps_keys_hashed(count ? batch->hashed + at : NULL, count);
    return perhaps_keys_each(count ? batch->key + at : NULL, count);
}

void batch_release(struct batch *batch)
{
    free(batch->hashed);
    free(batch->number);
    free(batch->written);
    free(batch->place);
    free(batch->scratch);
    free(batch->room);
    free(batch->block.text);
}
