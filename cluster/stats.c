/* stats.c - collects statistics of a filter on servers and verifies it: from its description,
 * the lengths of its partitions, and samples of its bits.
 *
 * Reading all bits would take minutes and load the servers, so the number of keys is estimated
 * from a sample.  Bits lie evenly, since a hash chooses the block of each key. */
#include <math.h>
#include <string.h>

#include "estimate.h"
#include "layers.h"
#include "operations.h"
#include "partitions.h"

/* What is sampled of a layer: the first SAMPLE_NBYTES of up to SAMPLES partitions, which are
 * spread evenly. */
enum { SAMPLES = 64, SAMPLE_NBYTES = 64 << 10 };

/* The context of an exchange that samples a layer, and what it has found. */
struct sampling {
    perhaps_cluster *c;
    const struct layer *layer;
    size_t count;         /* how many partitions are sampled */
    uint64_t nbits, nset; /* how many bits were read, and how many of these were set */
};

/* Returns the partition of a sample. */
static uint64_t sample_partition(const struct request *request)
{
    const struct sampling *s = request->context;
    return request->i * s->layer->partitions / s->count;
}

static unsigned sample_slot(const struct request *request)
{
    const struct sampling *s = request->context;
    return partition_slot(s->c, sample_partition(request));
}

/* Returns how many bytes are sampled of a partition. */
static size_t sample_nbytes(const struct request *request)
{
    const struct sampling *s = request->context;
    size_t nbytes = partition_nbytes(s->layer, sample_partition(request));
    return nbytes < SAMPLE_NBYTES ? nbytes : SAMPLE_NBYTES;
}

static void write_sample(const struct request *request, struct resp *out)
{
    const struct sampling *s = request->context;
    partition_getrange(s->c, s->layer, sample_partition(request), 0, sample_nbytes(request),
                       out);
}

/* Counts the bits of a sample. */
static int take_sample(const struct request *request, const struct reply *reply)
{
    struct sampling *s = request->context;
    if (reply->type != REDIS_REPLY_STRING || reply->text_nbytes != sample_nbytes(request))
        return partitions_fail_lost(s->c, s->layer, sample_partition(request));
    for (size_t k = 0; k < reply->text_nbytes; k++)
        s->nset += (unsigned)__builtin_popcount((unsigned char)reply->text[k]);
    s->nbits += 8 * reply->text_nbytes;
    return 0;
}

static int sample(struct sampling *s)
{
    struct exchange exchange = {
        .slot = sample_slot, .write = write_sample, .take = take_sample, .context = s
    };
    s->count = s->layer->partitions < SAMPLES ? (size_t)s->layer->partitions : SAMPLES;
    exchange.count = s->count;
    return exchange_run(&s->c->nodes, &exchange);
}

/* Returns the share of the sampled bits that is set. */
static double load_of(const struct sampling *s)
{
    return s->nbits ? (double)s->nset / (double)s->nbits : 0;
}

/* ---- Statistics ------------------------------------------------------------------------ */

/* Adds how many masters there are, and how much memory the filter takes on the one where it
 * takes most and on the one where it takes least. */
static void add_nodes(perhaps_cluster *c, struct perhaps_cluster_stats *stats)
{
    const struct slot_map *map = &c->nodes.map;
    uint64_t held[NODES_MOST];
    bool is_master[NODES_MOST] = { false };
    partitions_share_out(c, held);
    for (unsigned slot = 0; slot < SLOTS; slot++)
        if (map->master[slot] != NOBODY)
            is_master[map->master[slot]] = true;
    stats->smallest_nbytes = UINT64_MAX;
    for (size_t n = 0; n < map->nnodes; n++) {
        if (!is_master[n])
            continue;
        stats->nodes++;
        if (held[n] > stats->largest_nbytes)
            stats->largest_nbytes = held[n];
        if (held[n] < stats->smallest_nbytes)
            stats->smallest_nbytes = held[n];
    }
}

/* Adds up the layers.  A key is falsely found if any layer finds it. */
static void add_layers(const perhaps_cluster *c, struct perhaps_cluster_stats *stats)
{
    double none = 1; /* the chance that no layer gives a false positive */
    for (unsigned i = 0; i < c->nlayers; i++) {
        const struct layer *layer = &c->layer[i];
        uint64_t keys = layer_keys(&c->about.layer[i]);
        double different = estimate_different(layer, keys);
        stats->keys += keys;
        stats->keys_different += (uint64_t)(different / none); /* older layers took some */
        stats->keys_reserved += (uint64_t)c->about.layer[i].reserved;
        stats->partitions += layer->partitions;
        stats->memory_nbytes += layer->plan.body_nbytes + layer->partitions * FOOTER_NBYTES;
        none *= 1 - perhaps_layout_predict_fpr(layer->layout, (uint64_t)different);
    }
    stats->fpr_now = 1 - none;
}

/* Adds the plan.  A filter that grows is described as the chain that it is: its capacity is
 * that of its first layer, and its rate is kept however many keys there are. */
static void add_plan(const perhaps_cluster *c, struct perhaps_cluster_stats *stats)
{
    const struct description *about = &c->about;
    stats->plan = c->layer[c->nlayers - 1].plan;
    stats->plan.fpr = about->fpr;
    stats->plan.capacity = about->capacity;
    if (!about->factor)
        return;
    stats->plan.base = stats->plan.kind;
    stats->plan.kind = "chain";
    stats->plan.fpr_until = UINT64_MAX;
    stats->plan.fpr_predicted = about->fpr;
}

/* Only the newest layer is sampled: the others are full, and their counts are right. */
int stats_collect(perhaps_cluster *c, struct perhaps_cluster_stats *stats)
{
    int error = layers_renew(c, true);
    struct sampling s = { .c = c, .layer = &c->layer[c->nlayers - 1] };
    if (!error)
        error = handle_check_counts(c);
    if (!error)
        error = sample(&s);
    if (error)
        return error;
    stats->hash = perhaps_hash_name(c->about.hash);
    stats->layers = c->nlayers;
    stats->created = c->about.created;
    stats->load = load_of(&s);
    add_layers(c, stats);
    add_plan(c, stats);
    add_nodes(c, stats);
    return 0;
}

/* ---- Verify ---------------------------------------------------------------------------- */

static int check_partitions(perhaps_cluster *c, struct perhaps_cluster_verdict *verdict)
{
    struct census census = { 0 };
    int error = partitions_check(c, &census);
    if (error && error != PERHAPS_ERR_LOST)
        return error;
    verdict->partitions = census.looked_at;
    verdict->lost = census.lost;
    verdict->first_lost = census.first_lost;
    if (!error)
        return 0;
    error = layers_renew(c, true); /* perhaps it was deleted meanwhile */
    return error ? error
                 : partitions_fail_lost(c, &c->layer[census.first_layer], census.first_lost);
}

/* Samples all layers, and adds up what that tells. */
static int sample_layers(perhaps_cluster *c, struct estimate estimate[PERHAPS_LAYERS_MAX],
                         struct perhaps_cluster_verdict *verdict)
{
    double variance = 0;
    for (unsigned i = 0; i < c->nlayers; i++) {
        struct sampling s = { .c = c, .layer = &c->layer[i] };
        int error = sample(&s);
        if (error)
            return error;
        estimate[i] = estimate_keys(s.layer, s.nset, s.nbits);
        verdict->sampled_nbytes += s.nbits / 8;
        verdict->keys_estimated += estimate[i].keys;
        variance += estimate[i].deviation * estimate[i].deviation;
    }
    verdict->keys_deviation = sqrt(variance);
    return 0;
}

/* Compares the counts of the layers with what their samples tell. */
static int check_counts(perhaps_cluster *c, const struct estimate *estimate, unsigned nlayers,
                        struct perhaps_cluster_verdict *verdict)
{
    int error = handle_check_counts(c);
    verdict->miscounted = error != 0;
    for (unsigned i = 0; i < nlayers; i++) {
        uint64_t count = layer_keys(&c->about.layer[i]);
        verdict->keys += count;
        if (error || !estimate_contradicts(&c->layer[i], &estimate[i], count))
            continue;
        verdict->miscounted = true;
        error = nodes_fail(&c->nodes, PERHAPS_ERR_LOST,
                           "the count of layer %u is %ju, and its bits tell of %.0f keys, give "
                           "or take %.0f: 'perhaps recount' it when nobody adds",
                           i, (uintmax_t)count, estimate[i].counted,
                           ceil(2 * estimate[i].deviation));
    }
    return error;
}

/* The counts are read behind the samples: keys that are added meanwhile are counted before they
 * are in. */
static int verify_open(perhaps_cluster *c, struct perhaps_cluster_verdict *verdict)
{
    struct estimate estimate[PERHAPS_LAYERS_MAX] = { { 0 } };
    unsigned nlayers = c->nlayers;
    int error = check_partitions(c, verdict);
    if (!error)
        error = sample_layers(c, estimate, verdict);
    if (!error)
        error = layers_renew(c, true);
    return error ? error : check_counts(c, estimate, nlayers, verdict);
}

/* A handle that is not open is opened meanwhile, so that it stays with the same filter. */
int stats_verify(perhaps_cluster *c, struct perhaps_cluster_verdict *verdict)
{
    bool was_open = c->open;
    int error = was_open ? layers_renew(c, true) : layers_open(c);
    if (!error)
        error = verify_open(c, verdict);
    c->open &= was_open;
    return error;
}
