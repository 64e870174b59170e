/* cluster.c - the handle: its address, its description, its layers. */
#include "cluster.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "work.h"

enum { TIMEOUT_MS = 3000, PATIENCE_MS = 30000 };

/* ---- What went wrong ------------------------------------------------------------------- */

int cluster_fail(perhaps_cluster *c, int error, const char *format, ...)
{
    char text[700];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return nodes_fail(&c->nodes, error, "%s", text);
}

int cluster_fail_plainly(perhaps_cluster *c, int error)
{
    return cluster_fail(c, error, "%s", perhaps_strerror(error));
}

const char *perhaps_cluster_problem(const perhaps_cluster *cluster)
{
    return cluster ? cluster->nodes.problem : perhaps_strerror(PERHAPS_ERR_MEMORY);
}

const char *perhaps_cluster_name(const perhaps_cluster *cluster)
{
    return cluster->shown;
}

/* ---- The handle ------------------------------------------------------------------------ */

static void take_settings(perhaps_cluster *c, const struct perhaps_cluster_options *options)
{
    const struct address *a = &c->address;
    struct nodes *nodes = &c->nodes;
    nodes->user = a->user || a->password ? a->user : options->user;
    nodes->password = a->password ? a->password : options->password;
    nodes->timeout_ms = a->timeout_ms ? a->timeout_ms : options->timeout_ms;
    nodes->patience_ms = a->patience_ms ? a->patience_ms : options->patience_ms;
    if (!nodes->timeout_ms)
        nodes->timeout_ms = TIMEOUT_MS;
    if (!nodes->patience_ms)
        nodes->patience_ms = PATIENCE_MS;
    c->replicas = a->replicas_given ? a->replicas : options->replicas;
    c->acknowledge = a->acknowledge_given ? a->acknowledge : options->acknowledge;
    c->without_secret = options->without_secret;
    c->hashing = options->hashing;
    if (c->hashing.secret) {
        memcpy(c->secret, c->hashing.secret, sizeof c->secret);
        c->hashing.secret = c->secret;
    }
    nodes->stopped = options->stopped;
    nodes->context = c->context = options->context;
    c->progress = options->progress;
}

static void take_names(perhaps_cluster *c)
{
    const struct address *a = &c->address;
    snprintf(c->nodes.seed.host, sizeof c->nodes.seed.host, "%s", a->host);
    c->nodes.seed.port = a->port;
    if (a->redisson)
        snprintf(c->key, sizeof c->key, "%s", a->name);
    else
        snprintf(c->key, sizeof c->key, "perhaps:{%s}", a->name);
    c->slot = slot_of(c->key, strlen(c->key));
    c->prefix_nbytes = (size_t)snprintf(c->prefix, sizeof c->prefix, "perhaps:{%s/", a->name);
}

/* The address without its password; of one that is none, what is surely behind a password. */
static char *show(const struct address *a, const char *url)
{
    char *shown;
    const char *at = strrchr(url, '@');
    if (!a->host)
        return strdup(at ? at + 1 : url);
    bool is_ipv6 = strchr(a->host, ':');
    int length = asprintf(&shown, "redis://%s%s%s:%u/%s", is_ipv6 ? "[" : "", a->host,
                          is_ipv6 ? "]" : "", a->port, a->name);
    return length < 0 ? NULL : shown;
}

int perhaps_cluster_new(const struct perhaps_cluster_options *options,
                        perhaps_cluster **cluster)
{
    perhaps_cluster *c = *cluster = calloc(1, sizeof *c);
    if (!c)
        return PERHAPS_ERR_MEMORY;
    slot_map_init(&c->nodes.map);
    const char *problem = address_read(options->url, &c->address);
    if (!problem) {
        take_settings(c, options);
        take_names(c);
    }
    c->shown = show(&c->address, options->url);
    c->work = calloc(1, sizeof *c->work);
    if (problem == no_memory || !c->work || !c->shown) {
        perhaps_cluster_free(c);
        *cluster = NULL;
        return PERHAPS_ERR_MEMORY;
    }
    return problem ? cluster_fail(c, PERHAPS_ERR_ADDRESS, "%s", problem) : 0;
}

void cluster_close(perhaps_cluster *c)
{
    for (unsigned i = 0; i < c->nlayers; i++)
        perhaps_layout_free(c->layer[i].layout);
    memset(c->layer, 0, sizeof c->layer);
    c->nlayers = 0;
    c->open = false;
}

void perhaps_cluster_free(perhaps_cluster *c)
{
    if (!c)
        return;
    cluster_close(c);
    nodes_release(&c->nodes);
    address_release(&c->address);
    free(c->partition_slot);
    free(c->shown);
    free(c->work);
    explicit_bzero(c->secret, sizeof c->secret);
    free(c);
}

/* ---- The description ------------------------------------------------------------------- */

struct talking {
    perhaps_cluster *c;
    const struct talk *talk;
};

static unsigned description_slot(void *context, size_t i)
{
    const struct talking *talking = context;
    (void)i;
    return talking->c->slot;
}

static void write_talk(void *context, size_t i, struct resp *out)
{
    const struct talking *talking = context;
    talking->talk->write(talking->talk->context, i, out);
}

static int take_talk(void *context, size_t i, const struct reply *reply, bool again)
{
    const struct talking *talking = context;
    const struct talk *talk = talking->talk;
    return talk->take ? talk->take(talk->context, i, reply->tree, again) : 0;
}

static int refuse_talk(void *context, size_t i, const struct reply *reply)
{
    const struct talking *talking = context;
    const struct talk *talk = talking->talk;
    return talk->refuse ? talk->refuse(talk->context, i, reply->tree) : 1;
}

static void doubt_talk(void *context, size_t i)
{
    const struct talking *talking = context;
    talking->talk->doubt(talking->talk->context, i);
}

int cluster_talk(perhaps_cluster *c, const struct talk *talk)
{
    struct talking talking = { c, talk };
    struct exchange exchange = { .count = talk->count,
                                 .slot = description_slot,
                                 .write = write_talk,
                                 .take = take_talk,
                                 .refuse = refuse_talk,
                                 .doubt = talk->doubt ? doubt_talk : NULL,
                                 .context = &talking,
                                 .acknowledge = c->acknowledge,
                                 .tree = true };
    return exchange_run(&c->nodes, &exchange);
}

void cluster_begin_aside(perhaps_cluster *c, struct aside *aside)
{
    struct nodes *nodes = &c->nodes;
    memcpy(aside->problem, nodes->problem, sizeof aside->problem);
    aside->stopped = nodes->stopped;
    aside->patience_ms = nodes->patience_ms;
    nodes->stopped = NULL;
    nodes->patience_ms = nodes->timeout_ms;
}

void cluster_end_aside(perhaps_cluster *c, const struct aside *aside)
{
    struct nodes *nodes = &c->nodes;
    memcpy(nodes->problem, aside->problem, sizeof aside->problem);
    nodes->stopped = aside->stopped;
    nodes->patience_ms = aside->patience_ms;
}

struct describing {
    perhaps_cluster *c;
    struct description *about;
};

static void write_describe(void *context, size_t i, struct resp *out)
{
    const struct describing *describing = context;
    (void)i;
    resp_command(out, 2, 64);
    resp_text(out, "HGETALL");
    resp_text(out, describing->c->key);
}

static int take_description(void *context, size_t i, const redisReply *reply, bool again)
{
    const struct describing *describing = context;
    perhaps_cluster *c = describing->c;
    (void)i;
    (void)again;
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 0)
        return cluster_fail(c, PERHAPS_ERR_MISSING,
                            "there is no filter of that name: make it with 'perhaps create', "
                            "or is it on another server?");
    const char *problem = description_read(reply, describing->about);
    if (problem == description_unfinished)
        return cluster_fail(c, PERHAPS_ERR_UNFINISHED, "%s", problem);
    return problem ? cluster_fail(c, PERHAPS_ERR_VERSION, "%s", problem) : 0;
}

static void write_counts(void *context, size_t i, struct resp *out)
{
    const struct describing *describing = context;
    char counts[sizeof describing->c->counts];
    (void)i;
    cluster_counts_key(describing->c, describing->about->id, counts);
    resp_command(out, 2, 64);
    resp_text(out, "HGETALL");
    resp_text(out, counts);
}

static int take_counts(void *context, size_t i, const redisReply *reply, bool again)
{
    const struct describing *describing = context;
    (void)i;
    (void)again;
    const char *problem = counts_read(reply, describing->about);
    return problem ? cluster_fail(describing->c, PERHAPS_ERR_VERSION, "%s", problem) : 0;
}

void cluster_counts_key(const perhaps_cluster *c, const char *id, char *counts)
{
    snprintf(counts, sizeof c->counts, "%s:%s", c->key, id);
}

int cluster_describe(perhaps_cluster *c, struct description *about)
{
    struct describing describing = { c, about };
    *about = (struct description){ 0 };
    struct talk talk = {
        .count = 1, .write = write_describe, .take = take_description, .context = &describing
    };
    struct talk counts = {
        .count = 1, .write = write_counts, .take = take_counts, .context = &describing
    };
    int error = cluster_talk(c, &talk);
    return error ? error : cluster_talk(c, &counts);
}

/* ---- Layers ---------------------------------------------------------------------------- */

void cluster_name_layer(const perhaps_cluster *c, struct layer *layer, unsigned index)
{
    int nbytes = index ? snprintf(layer->suffix, sizeof layer->suffix, "}:%s.%u", c->about.id,
                                  index % PERHAPS_LAYERS_MAX)
                       : snprintf(layer->suffix, sizeof layer->suffix, "}:%s", c->about.id);
    layer->suffix_nbytes = (size_t)nbytes;
}

size_t cluster_block_nbytes(const perhaps_layout *layout)
{
    struct perhaps_hashed any = { { 0 } };
    struct perhaps_bits bits;
    perhaps_layout_locate(layout, &any, &bits);
    return (size_t)bits.nlines * PERHAPS_LINE_NBYTES;
}

int cluster_measure_layer(perhaps_cluster *c, struct layer *layer, unsigned index,
                          uint64_t partitions)
{
    perhaps_layout_plan(layer->layout, &layer->plan);
    layer->block_nbytes = cluster_block_nbytes(layer->layout);
    layer->blocks = layer->plan.body_nbytes / layer->block_nbytes;
    const uint64_t most =
        (PARTITION_NBYTES_MOST - PARTITION_NBYTES_BESIDE) / layer->block_nbytes;
    if (partitions < 1 || partitions > PARTITIONS_MOST || partitions > layer->blocks ||
        (layer->blocks + partitions - 1) / partitions > most)
        return PERHAPS_ERR_LIMIT;
    layer->partition_blocks = (layer->blocks + partitions - 1) / partitions;
    layer->partitions = (layer->blocks + layer->partition_blocks - 1) / layer->partition_blocks;
    cluster_name_layer(c, layer, index);
    return partitions_find_slots(c, layer->partitions);
}

static int open_layer(perhaps_cluster *c, const struct description *about, unsigned index)
{
    struct layer *layer = &c->layer[index];
    const struct layer_description *d = &about->layer[index];
    int error = perhaps_layout_restore(&d->layout, c->without_secret ? NULL : &c->hashing,
                                       &layer->layout);
    if (error == PERHAPS_ERR_SECRET)
        return cluster_fail(c, error,
                            c->hashing.secret
                                ? "the secret is not the one that it was made with"
                                : "was made with a secret: give it (--key-file)");
    if (error)
        return cluster_fail_plainly(c, error);
    c->nlayers = index + 1;
    error = cluster_measure_layer(c, layer, index, d->partitions);
    return error ? cluster_fail_plainly(c, error) : 0;
}

int cluster_open_layers(perhaps_cluster *c, const struct description *about)
{
    if (about->state != STATE_READY)
        return cluster_fail(c, PERHAPS_ERR_UNFINISHED,
                            "is half %s: if nobody is at it now, 'perhaps delete' it",
                            about->state == STATE_CREATING ? "made" : "deleted");
    if (c->open && strcmp(about->id, c->about.id) != 0)
        return cluster_fail(c, PERHAPS_ERR_CHANGED,
                            "was deleted and made anew since it was opened: open it again");
    c->about = *about;
    cluster_counts_key(c, about->id, c->counts);
    while (c->nlayers < PERHAPS_LAYERS_MAX && about->layer[c->nlayers].ready) {
        int error = open_layer(c, about, c->nlayers);
        if (error)
            return error;
    }
    return c->nlayers ? 0
                      : cluster_fail(c, PERHAPS_ERR_UNFINISHED, "has no layer that is ready");
}

int perhaps_cluster_open(perhaps_cluster *c)
{
    struct description about;
    cluster_close(c);
    if (c->address.redisson)
        return foreign_open(c);
    int error = cluster_describe(c, &about);
    if (!error)
        error = cluster_open_layers(c, &about);
    if (!error)
        error = partitions_check_reachable(c);
    if (error) {
        cluster_close(c);
        return error;
    }
    c->open = true;
    return 0;
}
