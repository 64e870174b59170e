/* recount.c - sets the count of each layer by its bits.
 *
 *     the counts as they are -> STRLEN, BITCOUNT of all partitions -> HINCRBY, the difference
 *
 * The counts are read before the bits, and changed by a difference.  So a key that is added
 * meanwhile is counted, or counted twice: the count is rather too high than too low.  Counts
 * that were lost have nothing to change, and are written anew. */
#include <math.h>
#include <stdio.h>

#include "estimate.h"
#include "layers.h"
#include "operations.h"
#include "partitions.h"

/* How many partitions are counted at once.  A server takes up to 2 ms for one of 16 MiB, and
 * other clients wait meanwhile. */
enum { COUNTED_AT_ONCE = 64 };

/* How many standard deviations are added to what the bits tell. */
enum { DEVIATIONS = 3 };

/* The recounting of a filter, and the context of its exchanges. */
struct recounting {
    perhaps_cluster *c;
    const struct layer *layer;          /* the one that is worked on */
    uint64_t first;                     /* the partition of the first request */
    uint64_t nset;                      /* how many bits are set in its partitions so far */
    uint64_t done_nbytes, all_nbytes;   /* of all layers */
    uint64_t count[PERHAPS_LAYERS_MAX]; /* what the counts shall be */
};

/* ---- Bits ------------------------------------------------------------------------------ */

static unsigned slot_of_request(const struct request *request)
{
    const struct recounting *r = request->context;
    return partition_slot(r->c, r->first + request->i);
}

/* The footer is not counted. */
static void write_bitcount(const struct request *request, struct resp *out)
{
    const struct recounting *r = request->context;
    uint64_t partition = r->first + request->i;
    partition_command(r->c, r->layer, partition, "BITCOUNT", 3, 32, out);
    resp_number(out, 0);
    resp_number(out, partition_nbytes(r->layer, partition) - 1);
}

static int take_bitcount(const struct request *request, const struct reply *reply)
{
    struct recounting *r = request->context;
    uint64_t partition = r->first + request->i;
    if (reply->type != REDIS_REPLY_INTEGER || reply->number < 0 ||
        (uint64_t)reply->number > 8 * (uint64_t)partition_nbytes(r->layer, partition))
        return nodes_fail(&r->c->nodes, PERHAPS_ERR_PROTOCOL,
                          "a server gave an answer to BITCOUNT that makes no sense");
    r->nset += (uint64_t)reply->number;
    return 0;
}

/* Counts the bits of a layer. */
static int count_bits(struct recounting *r)
{
    perhaps_cluster *c = r->c;
    struct exchange exchange = {
        .slot = slot_of_request, .write = write_bitcount, .take = take_bitcount, .context = r
    };
    int error = 0;
    r->nset = 0;
    for (r->first = 0; r->first < r->layer->partitions && !error; r->first += exchange.count) {
        uint64_t left = r->layer->partitions - r->first;
        exchange.count = left < COUNTED_AT_ONCE ? (size_t)left : COUNTED_AT_ONCE;
        error = exchange_run(&c->nodes, &exchange);
        r->done_nbytes += exchange.count * partition_nbytes(r->layer, r->first);
        if (!error && c->progress)
            c->progress(c->context, r->done_nbytes, r->all_nbytes);
    }
    return error;
}

/* Returns the count of a layer: rather too high than too low, as the rate must not be higher
 * than was asked.  But the margin alone makes no layer full that has room. */
static uint64_t count_of(const struct recounting *r)
{
    const struct perhaps_plan *plan = &r->layer->plan;
    struct estimate e = estimate_keys(r->layer, r->nset, 8 * plan->body_nbytes);
    double capacity = (double)plan->capacity;
    double count = e.counted + (double)DEVIATIONS * e.deviation;
    return (uint64_t)fmin(ceil(fmin(count, fmax(e.counted, capacity))), (double)COUNT_MOST);
}

/* ---- Counts ---------------------------------------------------------------------------- */

/* The context of the change of one count. */
struct correction {
    perhaps_cluster *c;
    unsigned layer;
    long long change;
    unsigned nwritten; /* how often it was written */
    long long count;   /* the count after it */
};

/* The change is sent only once.  If it is written again, nobody knows whether it was done, and
 * it adds 0, and so only tells the count. */
static void write_correction(const struct request *request, struct resp *out)
{
    struct correction *k = request->context;
    char field[FIELD_NBYTES], number[24];
    description_field(field, "keys", k->layer);
    snprintf(number, sizeof number, "%lld", k->nwritten++ ? 0 : k->change);
    resp_texts(out, (const char *const[]){ "HINCRBY", k->c->counts, field, number, NULL });
}

static int take_correction(const struct request *request, const struct reply *reply)
{
    struct correction *k = request->context;
    k->count = reply->number;
    return handle_take_number(k->c, reply, "HINCRBY");
}

/* Changes the count of a layer; and again, as long as it is seen not to be done. */
static int correct(perhaps_cluster *c, unsigned layer, uint64_t count)
{
    const long long was = c->about.layer[layer].count;
    struct correction k = { .c = c, .layer = layer, .change = (long long)count - was };
    struct exchange exchange = { .count = 1,
                                 .write = write_correction,
                                 .take = take_correction,
                                 .context = &k,
                                 .acknowledged = true };
    int error;
    do {
        k.nwritten = 0;
        error = exchange_run(&c->nodes, &exchange);
    } while (!error && k.nwritten > 1 && k.change && k.count == was);
    if (!error && k.nwritten > 1 && k.count != was + k.change)
        return nodes_fail(&c->nodes, PERHAPS_ERR_UNREACHABLE,
                          "a connection broke while keys were added, and nobody knows whether "
                          "the count is right: 'perhaps recount' it again");
    return error;
}

static void write_counts(const struct request *request, struct resp *out)
{
    const struct recounting *r = request->context;
    const perhaps_cluster *c = r->c;
    char field[FIELD_NBYTES];
    resp_command(out, 4 + 2 * c->nlayers, 256 + 32 * c->nlayers);
    resp_text(out, "HSET");
    resp_text(out, c->counts);
    resp_text(out, counts_marker);
    resp_text(out, c->about.id);
    for (unsigned i = 0; i < c->nlayers; i++) {
        description_field(field, "keys", i);
        resp_text(out, field);
        resp_number(out, r->count[i]);
    }
}

static int take_counts(const struct request *request, const struct reply *reply)
{
    const struct recounting *r = request->context;
    return handle_take_number(r->c, reply, "HSET");
}

/* Writes the counts anew, whatever is there. */
static int replace_counts(struct recounting *r)
{
    perhaps_cluster *c = r->c;
    struct exchange exchange = { .count = 1,
                                 .write = write_counts,
                                 .take = take_counts,
                                 .context = r,
                                 .acknowledged = true };
    int error = handle_tell(c, (const char *const[]){ "UNLINK", c->counts, NULL });
    return error ? error : exchange_run(&c->nodes, &exchange);
}

static int set_counts(struct recounting *r)
{
    int error = 0;
    if (r->c->about.counts_lost)
        return replace_counts(r);
    for (unsigned i = 0; i < r->c->nlayers && !error; i++)
        error = correct(r->c, i, r->count[i]);
    return error;
}

int recount(perhaps_cluster *c, uint64_t *was, uint64_t *now)
{
    struct recounting r = { .c = c };
    struct census census;
    if (!c->open)
        layers_close(c);
    int error = layers_renew(c);
    if (!error)
        error = partitions_check(c, &census);
    for (unsigned i = 0; i < c->nlayers; i++)
        r.all_nbytes += c->layer[i].plan.body_nbytes;
    for (unsigned i = 0; i < c->nlayers && !error; i++) {
        r.layer = &c->layer[i];
        error = count_bits(&r);
        r.count[i] = error ? 0 : count_of(&r);
    }
    if (!error)
        error = set_counts(&r);
    for (unsigned i = 0; i < c->nlayers && !error; i++) {
        *was += layer_keys(&c->about.layer[i]);
        *now += r.count[i];
    }
    return error;
}
