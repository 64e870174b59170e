/* recount.c - sets the count of each layer by its bits.
 *
 *     the counts as they are -> STRLEN, BITCOUNT of each partition -> the difference
 *
 *     the count    | added | left behind by clients that are gone | held by clients that live |
 *     the bits     | added | of that, what was used  |
 *
 * The counts are read before the bits, and changed by a difference.  So a key that is added
 * meanwhile is counted, or counted twice: the count is rather too high than too low.  Counts
 * that were lost have nothing to change, and are written anew. */
#include "recount.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "estimate.h"
#include "layers.h"
#include "operations.h"
#include "partitions.h"
#include "room.h"
#include "script.h"

/* How many partitions are counted at once.  A server takes up to 2 ms for one of 16 MiB, and
 * other clients wait meanwhile. */
enum { COUNTED_AT_ONCE = 64 };

/* How many standard deviations are added to what the bits tell, or taken off. */
enum { DEVIATIONS = 3 };

/* The recounting of a filter, and the context of its exchanges. */
struct recounting {
    perhaps_cluster *c;
    const struct layer *layer;                /* the one that is worked on */
    uint64_t first;                           /* the partition of the first request */
    struct estimate found;                    /* the keys of its partitions so far */
    uint64_t done_nbytes, all_nbytes;         /* of all layers; 0: no progress is shown */
    uint64_t count[PERHAPS_LAYERS_MAX];       /* what the counts shall be */
    struct room_told was[PERHAPS_LAYERS_MAX]; /* what they were */
};

/* ---- Bits ------------------------------------------------------------------------------ */

static unsigned slot_of_string(const struct request *request)
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
    const uint64_t nbits = 8 * (uint64_t)partition_nbytes(r->layer, r->first + request->i);
    if (reply->type != REDIS_REPLY_INTEGER || reply->number < 0 ||
        (uint64_t)reply->number > nbits)
        return nodes_fail(&r->c->nodes, PERHAPS_ERR_PROTOCOL,
                          "a server gave an answer to BITCOUNT that makes no sense");
    estimate_add(&r->found, r->layer, (uint64_t)reply->number, nbits);
    return 0;
}

/* Counts the bits of a layer. */
static int count_layer_bits(struct recounting *r)
{
    perhaps_cluster *c = r->c;
    struct exchange exchange = {
        .slot = slot_of_string, .write = write_bitcount, .take = take_bitcount, .context = r
    };
    int error = 0;
    r->found = (struct estimate){ 0 };
    for (r->first = 0; r->first < r->layer->partitions && !error; r->first += exchange.count) {
        uint64_t left = r->layer->partitions - r->first;
        exchange.count = left < COUNTED_AT_ONCE ? (size_t)left : COUNTED_AT_ONCE;
        error = exchange_run(&c->nodes, &exchange);
        r->done_nbytes += exchange.count * partition_nbytes(r->layer, r->first);
        if (!error && c->progress && r->all_nbytes)
            c->progress(c->context, r->done_nbytes, r->all_nbytes);
    }
    return error;
}

/* Returns the count of a layer: rather too high than too low, as the rate must not be higher
 * than was asked.  But the margin alone makes no layer full that has room. */
static uint64_t count_of(const struct recounting *r)
{
    const struct estimate *e = &r->found;
    double limit = (double)r->layer->key_limit;
    double count = e->counted + (double)DEVIATIONS * e->deviation;
    return (uint64_t)fmin(ceil(fmin(count, fmax(e->counted, limit))), (double)COUNT_MOST);
}

/* ---- Counts ---------------------------------------------------------------------------- */

/* It takes: layer, a token, the change of the count, how much was abandoned when the counts
 * were read, and whether it is done only if it still is that much: of several clients that
 * count the bits at once one gives room back.  Sent again, it finds the token, and does
 * nothing. */
static const char correct_text[] =
    "if state ~= 'ready' then return { 3 } end\n"
    "if not has_counts() then return { 4 } end\n"
    "local layer, token, change = ARGV[4], ARGV[5], tonumber(ARGV[6])\n"
    "local was, alone = tonumber(ARGV[7]), ARGV[8] == '1'\n"
    "local total = tonumber(redis.call('HGET', counts, 'keys.' .. layer) or '0')\n"
    "local left = tonumber(redis.call('HGET', counts, 'abandoned.' .. layer) or '0') or 0\n"
    "if not total then return { 4 } end\n"
    "if again and redis.call('HGET', counts, 'recounted.' .. layer) == token then\n"
    "  return { 0 }\n"
    "end\n"
    "if alone and left ~= was then return { 0 } end\n"
    "local done = redis.pcall('HSET', counts, 'recounted.' .. layer, token,\n"
    "  'keys.' .. layer, string.format('%.0f', total + change),\n"
    "  'abandoned.' .. layer, string.format('%.0f', math.max(0, left - was)))\n"
    "if type(done) == 'table' and done.err then return done end\n"
    "return { 0 }\n";

/* Changes the count of a layer to 'count' and what living clients hold. */
static int correct(perhaps_cluster *c, unsigned layer, const struct room_told *was,
                   long long count, bool alone)
{
    struct script script = { .text = correct_text };
    uint64_t token;
    if (getentropy(&token, sizeof token) != 0)
        return nodes_fail_plainly(&c->nodes, PERHAPS_ERR_IO);
    script_put(&script, "%u", layer);
    script_put(&script, "%016jx", (uintmax_t)token);
    script_put(&script, "%lld", count - (was->total - was->held));
    script_put(&script, "%lld", was->abandoned);
    script_put(&script, "%d", alone);
    return script_run(c, &script);
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

/* Reads the counts.  Those that make no sense count as lost. */
static int read_counts(struct recounting *r)
{
    perhaps_cluster *c = r->c;
    int error = 0;
    for (unsigned i = 0; i < c->nlayers && !error && !c->about.counts_lost; i++)
        error = room_look(c, i, &r->was[i]);
    return c->about.counts_lost ? 0 : error;
}

static int set_counts(struct recounting *r)
{
    int error = 0;
    if (r->c->about.counts_lost)
        return replace_counts(r);
    for (unsigned i = 0; i < r->c->nlayers && !error; i++)
        error = correct(r->c, i, &r->was[i], (long long)r->count[i], false);
    return error;
}

int recount(perhaps_cluster *c, uint64_t *was, uint64_t *now)
{
    struct recounting r = { .c = c };
    struct census census;
    if (!c->open)
        layers_close(c);
    int error = layers_renew(c, true);
    if (!error)
        error = read_counts(&r);
    if (!error)
        error = partitions_check(c, &census);
    for (unsigned i = 0; i < c->nlayers; i++)
        r.all_nbytes += c->layer[i].plan.body_nbytes;
    for (unsigned i = 0; i < c->nlayers && !error; i++) {
        r.layer = &c->layer[i];
        error = count_layer_bits(&r);
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

/* What is known without the bits bounds what they tell: that all was used which was left
 * behind, or none of it.  Here the doubt is on the other side than in count_of(): mostly
 * nothing was used, and there must be room for as many keys as the layer was planned for.  So
 * it may get some keys more: of 100,000 at 1 % some 300, for which the plan has a margin. */
int recount_abandoned(perhaps_cluster *c, unsigned layer)
{
    struct recounting r = { .c = c, .layer = &c->layer[layer] };
    struct room_told *was = &r.was[layer];
    struct census census;
    int error = room_look(c, layer, was);
    if (error || !was->abandoned)
        return error;
    error = partitions_check(c, &census);
    if (!error)
        error = count_layer_bits(&r);
    if (error)
        return error;
    double counted = r.found.counted - (double)DEVIATIONS * r.found.deviation;
    long long most = was->total - was->held, least = most - was->abandoned;
    long long count = counted < (double)least  ? least
                      : counted > (double)most ? most
                                               : (long long)counted;
    return correct(c, layer, was, count, true);
}
