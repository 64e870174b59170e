/* layers.c - reads the description of a filter, and opens its layers one after the other. */
#include "layers.h"
#include <perhaps_fast.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partitions.h"
#include "room.h"

/* ---- The description ------------------------------------------------------------------- */

/* An empty array means that there is no such Redis hash. */
static int take_description(const struct request *request, const struct reply *reply)
{
    perhaps_cluster *c = request->context;
    struct nodes *nodes = &c->nodes;
    if (reply->type == REDIS_REPLY_ARRAY && reply->count == 0)
        return nodes_fail(nodes, PERHAPS_ERR_MISSING,
                          "there is no filter of that name: make it with 'perhaps create', or "
                          "is it on another server?");
    const char *problem = description_read(reply->tree, &c->there);
    if (problem == description_unfinished)
        return nodes_fail(nodes, PERHAPS_ERR_UNFINISHED, "%s", problem);
    return problem ? nodes_fail(nodes, PERHAPS_ERR_VERSION, "%s", problem) : 0;
}

/* Counts that are lost are no error here: the filter can still be asked, mended and deleted. */
static int take_counts(const struct request *request, const struct reply *reply)
{
    perhaps_cluster *c = request->context;
    counts_read(reply->tree, &c->there);
    return 0;
}

/* Something of another type has taken the place of the counts. */
static int take_counts_error(const struct request *request, const struct reply *reply)
{
    return strncmp(reply->text, "WRONGTYPE", 9) == 0 ? take_counts(request, reply) : 1;
}

/* Reads one of the two Redis hashes, all its fields. */
static int read_hash(perhaps_cluster *c, const char *key,
                     int (*take)(const struct request *request, const struct reply *reply),
                     int (*take_error)(const struct request *request,
                                       const struct reply *reply))
{
    struct exchange exchange = { .count = 1,
                                 .command = (const char *const[]){ "HGETALL", key, NULL },
                                 .take = take,
                                 .take_error = take_error,
                                 .context = c,
                                 .tree = true,
                                 .early = key == c->key };
    return exchange_run(&c->nodes, &exchange);
}

/* The requests for both at once, and whether the counts came behind the description. */
enum { DESCRIPTION, COUNTS };
struct reading {
    perhaps_cluster *c;
    bool in_order;
};

static void write_either(const struct request *request, struct resp *out)
{
    const struct reading *reading = request->context;
    const perhaps_cluster *c = reading->c;
    const char *key = request->i == DESCRIPTION ? c->key : c->counts;
    resp_texts(out, (const char *const[]){ "HGETALL", key, NULL });
}

static int take_either(const struct request *request, const struct reply *reply)
{
    struct reading *reading = request->context;
    perhaps_cluster *c = reading->c;
    const struct request of = { .context = c, .link = request->link };
    reading->in_order = request->i == COUNTS && strcmp(c->there.id, c->about.id) == 0;
    return request->i == DESCRIPTION ? take_description(&of, reply) : take_counts(&of, reply);
}

static int take_either_error(const struct request *request, const struct reply *reply)
{
    return request->i == COUNTS && strncmp(reply->text, "WRONGTYPE", 9) == 0
               ? take_either(request, reply)
               : 1;
}

/* Reads both at once: the Redis key of the counts is known while the filter is open. */
static int read_both(perhaps_cluster *c, bool *done)
{
    struct reading reading = { .c = c };
    struct exchange exchange = { .count = 2,
                                 .write = write_either,
                                 .take = take_either,
                                 .take_error = take_either_error,
                                 .context = &reading,
                                 .tree = true };
    int error = exchange_run(&c->nodes, &exchange);
    *done = reading.in_order;
    return error;
}

/* It may take two exchanges, because the Redis key of the counts has the ID in it.  So the
 * counts of a filter that was deleted can never count for one that was made anew.  Who opens a
 * second layer must know whether somebody has added to it. */
int layers_describe(perhaps_cluster *c, bool counts_too)
{
    char counts[sizeof c->counts];
    bool done = false;
    memset(&c->there, 0, sizeof c->there);
    int error = c->open && counts_too ? read_both(c, &done)
                                      : read_hash(c, c->key, take_description, NULL);
    if (error || done || !(counts_too || c->there.layer[1].ready))
        return error;
    handle_name_counts(c, c->there.id, counts);
    return read_hash(c, counts, take_counts, take_counts_error);
}

/* ---- Layers ---------------------------------------------------------------------------- */

/* Only layers behind the first have their number in the name. */
void layers_name(const perhaps_cluster *c, struct layer *layer, unsigned index)
{
    int nbytes = index ? snprintf(layer->suffix, sizeof layer->suffix, "}:%s.%u", c->about.id,
                                  index % PERHAPS_LAYERS_MAX)
                       : snprintf(layer->suffix, sizeof layer->suffix, "}:%s", c->about.id);
    layer->suffix_nbytes = (size_t)nbytes;
}

/* All keys of a layout have the same number of lines, so any key tells it. */
size_t layers_block_nbytes(const perhaps_layout *layout)
{
    struct perhaps_hashed any = { { 0 } };
    struct perhaps_bits bits;
    perhaps_layout_locate(layout, &any, &bits);
    return (size_t)bits.nlines * PERHAPS_LINE_NBYTES;
}

/* Adding to a partition that is lost makes a new one, which is short and empty.  Its blocks
 * answer "no" until the client that added finds that it is too short, and removes it.  Other
 * clients must not believe such a "no" meanwhile.  In that moment it has no more keys than all
 * clients have under way, about BATCHES_AT_ONCE batches, and a block has its share of these.
 * So a "no" from a block with the bits of a few more keys than that share is believed, and of
 * others the client looks at the length of the partition first.  In a filter that is a third
 * full, of which a batch is a small part, that is one "no" in some hundreds. */
enum { BATCHES_AT_ONCE = 4, KEYS_DOUBTED = 3 };

static void find_doubts(struct layer *layer)
{
    struct perhaps_hashed any = { { 0 } };
    struct perhaps_bits bits;
    perhaps_layout_locate(layer->layout, &any, &bits);
    double share = (double)(BATCHES_AT_ONCE * BATCH_KEYS) / (double)layer->blocks;
    layer->key_nbits = bits.nbits;
    double doubted = bits.nbits * ((double)KEYS_DOUBTED + share + 4 * sqrt(share));
    double all = 8.0 * (double)layer->block_nbytes;
    layer->bits_doubted = (unsigned)(doubted < all ? doubted : all);
}

/* The description may come from an enemy, so numbers out of range are an error. */
int layers_measure(perhaps_cluster *c, struct layer *layer, unsigned index, uint64_t partitions)
{
    perhaps_layout_plan(layer->layout, &layer->plan);
    layer->key_limit = perhaps_layout_key_limit(layer->layout);
    layer->block_nbytes = layers_block_nbytes(layer->layout);
    layer->blocks = layer->plan.body_nbytes / layer->block_nbytes;
    const uint64_t most =
        (PARTITION_NBYTES_MOST - PARTITION_NBYTES_BESIDE) / layer->block_nbytes;
    if (partitions < 1 || partitions > PARTITIONS_MOST || partitions > layer->blocks ||
        (layer->blocks + partitions - 1) / partitions > most)
        return PERHAPS_ERR_LIMIT;
    layer->partition_blocks = (layer->blocks + partitions - 1) / partitions;
    layer->partitions = (layer->blocks + layer->partition_blocks - 1) / layer->partition_blocks;
    layers_name(c, layer, index);
    find_doubts(layer);
    return partitions_make_room(c, layer, layer->partitions);
}

/* Opens one layer.  On failure the layers before it stay open. */
static int open_layer(perhaps_cluster *c, unsigned index)
{
    struct layer *layer = &c->layer[index];
    const struct layer_description *d = &c->about.layer[index];
    int error = perhaps_layout_restore(&d->layout, c->without_secret ? NULL : &c->hashing,
                                       &layer->layout);
    if (error == PERHAPS_ERR_SECRET)
        return nodes_fail(&c->nodes, error,
                          c->hashing.secret ? "the secret is not the one that it was made with"
                                            : "was made with a secret: give it (--key-file)");
    if (!error)
        error = layers_measure(c, layer, index, d->partitions);
    if (!error) {
        c->nlayers = index + 1;
        layer->sparse = true; /* nothing is known of its blocks yet */
        layer->opened_ms = now_ms();
        if (index > 0 && d->count == 0)
            layer->usable_ms = now_ms() + LAYER_PAUSE_MS;
        return 0;
    }
    layers_release(layer);
    return nodes_fail_plainly(&c->nodes, error);
}

/* Stops at the first layer that is not ready: layers behind it are not asked or added to, as
 * long as it is not. */
int layers_open_ready(perhaps_cluster *c)
{
    const struct description *about = &c->there;
    if (about->state != STATE_READY)
        return nodes_fail(&c->nodes, PERHAPS_ERR_UNFINISHED,
                          "is half %s: if nobody is at it now, 'perhaps delete' it",
                          about->state == STATE_CREATING ? "made" : "deleted");
    if (c->open && strcmp(about->id, c->about.id) != 0)
        return nodes_fail(&c->nodes, PERHAPS_ERR_CHANGED,
                          "was deleted and made anew since it was opened: open it again");
    c->about = *about;
    handle_name_counts(c, about->id, c->counts);
    while (c->nlayers < PERHAPS_LAYERS_MAX && about->layer[c->nlayers].ready) {
        int error = open_layer(c, c->nlayers);
        if (error)
            return error;
    }
    if (!c->nlayers)
        return nodes_fail(&c->nodes, PERHAPS_ERR_UNFINISHED, "has no layer that is ready");
    if (room_join(c))
        return nodes_fail_plainly(&c->nodes, PERHAPS_ERR_MEMORY);
    room_layers(c, c->nlayers);
    return 0;
}

int layers_renew(perhaps_cluster *c, bool counts_too)
{
    int64_t asked_ms = now_ms();
    int error = layers_describe(c, counts_too);
    if (!error)
        error = layers_open_ready(c);
    if (!error)
        c->leased_ms = asked_ms + LEASE_MS;
    return error;
}

/* ---- Newer layers ---------------------------------------------------------------------- */

/* The context of the question whether there is a newer layer. */
struct looking {
    perhaps_cluster *c;
    int64_t asked_ms;
};

static int take_newer(const struct request *request, const struct reply *reply)
{
    const struct looking *looking = request->context;
    return layers_take_newer(looking->c, reply, looking->asked_ms);
}

int layers_take_newer(perhaps_cluster *c, const struct reply *reply, int64_t asked_ms)
{
    if (reply->type != REDIS_REPLY_INTEGER)
        return nodes_fail(&c->nodes, PERHAPS_ERR_PROTOCOL,
                          "a server answered strangely to HEXISTS");
    if (reply->number == 0)
        c->leased_ms = asked_ms + LEASE_MS;
    return 0;
}

void layers_write_newer(const perhaps_cluster *c, struct resp *out)
{
    char ready[FIELD_NBYTES];
    description_field(ready, "ready", c->nlayers);
    resp_texts(out, (const char *const[]){ "HEXISTS", c->key, ready, NULL });
}

static void write_newer(const struct request *request, struct resp *out)
{
    const struct looking *looking = request->context;
    layers_write_newer(looking->c, out);
}

int layers_ask_newer(perhaps_cluster *c, bool *changed)
{
    struct looking looking = { c, now_ms() };
    struct exchange exchange = {
        .count = 1, .write = write_newer, .take = take_newer, .context = &looking
    };
    int error = exchange_run(&c->nodes, &exchange);
    *changed = c->leased_ms != looking.asked_ms + LEASE_MS;
    return error;
}

/* ---- Opening and closing --------------------------------------------------------------- */

/* Looks at no partition yet: that is done when the first key needs it. */
int layers_open(perhaps_cluster *c)
{
    layers_close(c);
    int error = layers_renew(c, false);
    if (error)
        layers_close(c);
    c->open = !error;
    return error;
}

int layers_explain_loss(perhaps_cluster *c, int error)
{
    struct aside aside;
    if (error != PERHAPS_ERR_LOST)
        return error;
    handle_begin_aside(c, &aside);
    int why = layers_renew(c, false);
    if (why == PERHAPS_ERR_MISSING)
        nodes_fail(&c->nodes, why, "was deleted since it was opened");
    if (handle_is_gone(why)) {
        memcpy(aside.problem, c->nodes.problem, sizeof aside.problem);
        error = why;
    }
    handle_end_aside(c, &aside);
    return error;
}

void layers_release(struct layer *layer)
{
    perhaps_layout_free(layer->layout);
    free(layer->seen);
    free(layer->marked);
    *layer = (struct layer){ 0 };
}

void layers_close(perhaps_cluster *c)
{
    room_leave(c);
    for (unsigned i = 0; i < c->nlayers; i++)
        layers_release(&c->layer[i]);
    c->nlayers = 0;
    c->open = false;
}
