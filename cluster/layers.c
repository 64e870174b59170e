/* layers.c - reads the description of a filter, and opens its layers one after the other. */
#include "layers.h"

#include <stdio.h>
#include <string.h>

#include "partitions.h"

/* ---- The description ------------------------------------------------------------------- */

/* The context of reading the description and the counts. */
struct describing {
    perhaps_cluster *c;
    struct description *about;
};

/* An empty array means that there is no such Redis hash. */
static int take_description(const struct request *request, const struct reply *reply)
{
    const struct describing *describing = request->context;
    struct nodes *nodes = &describing->c->nodes;
    if (reply->type == REDIS_REPLY_ARRAY && reply->count == 0)
        return nodes_fail(nodes, PERHAPS_ERR_MISSING,
                          "there is no filter of that name: make it with 'perhaps create', or "
                          "is it on another server?");
    const char *problem = description_read(reply->tree, describing->about);
    if (problem == description_unfinished)
        return nodes_fail(nodes, PERHAPS_ERR_UNFINISHED, "%s", problem);
    return problem ? nodes_fail(nodes, PERHAPS_ERR_VERSION, "%s", problem) : 0;
}

/* Counts that are lost are no error here: the filter can still be asked, mended and deleted. */
static int take_counts(const struct request *request, const struct reply *reply)
{
    const struct describing *describing = request->context;
    counts_read(reply->tree, describing->about);
    return 0;
}

/* Something of another type has taken the place of the counts. */
static int take_counts_error(const struct request *request, const struct reply *reply)
{
    return strncmp(reply->text, "WRONGTYPE", 9) == 0 ? take_counts(request, reply) : 1;
}

/* Reads one of the two Redis hashes, all its fields. */
static int read_hash(struct describing *describing, const char *key,
                     int (*take)(const struct request *request, const struct reply *reply),
                     int (*take_error)(const struct request *request,
                                       const struct reply *reply))
{
    struct exchange exchange = { .count = 1,
                                 .command = (const char *const[]){ "HGETALL", key, NULL },
                                 .take = take,
                                 .take_error = take_error,
                                 .context = describing,
                                 .tree = true };
    return exchange_run(&describing->c->nodes, &exchange);
}

/* It takes two exchanges, because the Redis key of the counts has the ID in it.  So the counts
 * of a filter that was deleted can never count for one that was made anew. */
int layers_describe(perhaps_cluster *c, struct description *about)
{
    struct describing describing = { c, about };
    char counts[sizeof c->counts];
    *about = (struct description){ 0 };
    int error = read_hash(&describing, c->key, take_description, NULL);
    layers_name_counts(c, about->id, counts);
    return error ? error : read_hash(&describing, counts, take_counts, take_counts_error);
}

int layers_check_counts(perhaps_cluster *c)
{
    return c->about.counts_lost ? nodes_fail(&c->nodes, PERHAPS_ERR_LOST, "%s", counts_problem)
                                : 0;
}

void layers_name_counts(const perhaps_cluster *c, const char *id, char counts[sizeof c->counts])
{
    snprintf(counts, sizeof c->counts, "%s:%s", c->key, id);
}

void layers_write_question(const perhaps_cluster *c, enum question question, unsigned layer,
                           struct resp *out)
{
    char ready[FIELD_NBYTES];
    description_field(ready, "ready", layer);
    if (question == ASK_READY)
        resp_texts(out, (const char *const[]){ "HEXISTS", c->key, ready, NULL });
    else
        resp_texts(out, (const char *const[]){ "HGET", c->key, "id", NULL });
}

int layers_take_answer(perhaps_cluster *c, enum question question, const struct reply *reply,
                       bool *ready)
{
    if (question == ASK_READY) {
        *ready = reply->number != 0;
        return 0;
    }
    if (reply->type != REDIS_REPLY_STRING)
        return nodes_fail(&c->nodes, PERHAPS_ERR_MISSING, "was deleted since it was opened");
    return strcmp(reply->text, c->about.id) == 0
               ? 0
               : nodes_fail(&c->nodes, PERHAPS_ERR_CHANGED,
                            "was deleted and made anew since it was opened");
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

/* The description may come from an enemy, so numbers out of range are an error. */
int layers_measure(perhaps_cluster *c, struct layer *layer, unsigned index, uint64_t partitions)
{
    perhaps_layout_plan(layer->layout, &layer->plan);
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
    return partitions_find_slots(c, layer->partitions);
}

/* Opens one layer.  On failure the layers before it stay open. */
static int open_layer(perhaps_cluster *c, const struct description *about, unsigned index)
{
    struct layer *layer = &c->layer[index];
    const struct layer_description *d = &about->layer[index];
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
        return 0;
    }
    perhaps_layout_free(layer->layout);
    *layer = (struct layer){ 0 };
    return nodes_fail_plainly(&c->nodes, error);
}

/* Stops at the first layer that is not ready: layers behind it are not asked or added to, as
 * long as it is not. */
int layers_open_ready(perhaps_cluster *c, const struct description *about)
{
    if (about->state != STATE_READY)
        return nodes_fail(&c->nodes, PERHAPS_ERR_UNFINISHED,
                          "is half %s: if nobody is at it now, 'perhaps delete' it",
                          about->state == STATE_CREATING ? "made" : "deleted");
    if (c->open && strcmp(about->id, c->about.id) != 0)
        return nodes_fail(&c->nodes, PERHAPS_ERR_CHANGED,
                          "was deleted and made anew since it was opened: open it again");
    c->about = *about;
    layers_name_counts(c, about->id, c->counts);
    while (c->nlayers < PERHAPS_LAYERS_MAX && about->layer[c->nlayers].ready) {
        int error = open_layer(c, about, c->nlayers);
        if (error)
            return error;
    }
    return c->nlayers
               ? 0
               : nodes_fail(&c->nodes, PERHAPS_ERR_UNFINISHED, "has no layer that is ready");
}

int layers_renew(perhaps_cluster *c)
{
    struct description about;
    int error = layers_describe(c, &about);
    return error ? error : layers_open_ready(c, &about);
}

/* Looks at the partitions at once, so that a filter that has lost some is not opened. */
int layers_open(perhaps_cluster *c)
{
    layers_close(c);
    int error = layers_renew(c);
    if (!error)
        error = partitions_check_reachable(c);
    if (error)
        layers_close(c);
    c->open = !error;
    return error;
}

void layers_close(perhaps_cluster *c)
{
    for (unsigned i = 0; i < c->nlayers; i++)
        perhaps_layout_free(c->layer[i].layout);
    memset(c->layer, 0, sizeof c->layer);
    c->nlayers = 0;
    c->open = false;
}
