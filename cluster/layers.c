/* layers.c - filters and their layers come and go. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "layers.h"

/* Fewer partitions than this would not spread evenly; smaller ones would be mostly overhead. */
enum { PARTITIONS_USUAL = 1024, PARTITION_NBYTES_USUAL = 4096 };

/* ---- Planning -------------------------------------------------------------------------- */

/* The next smaller size of memory that jemalloc has, the allocator of most servers: four to
 * each doubling. */
static uint64_t smaller_size(uint64_t nbytes)
{
    uint64_t power = UINT64_C(1) << (63 - __builtin_clzll(nbytes - 1));
    return nbytes - power / 4;
}

/* The fewest that there should be, and for which strings just fill the memory that they
 * take. */
static uint64_t usual_partitions(uint64_t body_nbytes, size_t block_nbytes)
{
    uint64_t wanted = body_nbytes / PARTITION_NBYTES_USUAL, size = PARTITION_NBYTES_MOST;
    if (wanted > PARTITIONS_USUAL)
        wanted = PARTITIONS_USUAL;
    for (; size >= PARTITION_NBYTES_USUAL; size = smaller_size(size)) {
        uint64_t room = (size - PARTITION_NBYTES_BESIDE) / block_nbytes * block_nbytes;
        uint64_t partitions = (body_nbytes + room - 1) / room;
        if (partitions >= wanted)
            return partitions;
    }
    return wanted;
}

static uint64_t partitions_of(const perhaps_layout *layout)
{
    struct perhaps_plan plan;
    perhaps_layout_plan(layout, &plan);
    return usual_partitions(plan.body_nbytes, cluster_block_nbytes(layout));
}

static int fail_partitions(perhaps_cluster *c, const struct layer *layer)
{
    uint64_t most = layer->blocks < PARTITIONS_MOST ? layer->blocks : PARTITIONS_MOST;
    const uint64_t room = PARTITION_NBYTES_MOST - PARTITION_NBYTES_BESIDE;
    uint64_t least = (layer->blocks - 1) / (room / layer->block_nbytes) + 1;
    return cluster_fail(c, PERHAPS_ERR_ARGUMENT,
                        "a filter of %ju bytes takes %ju to %ju partitions, so that none is "
                        "larger than 16 MiB or smaller than a block",
                        (uintmax_t)layer->plan.body_nbytes, (uintmax_t)least, (uintmax_t)most);
}

/* The first layer: measured, and written down. */
static int plan_first(perhaps_cluster *c, perhaps_layout *layout, uint64_t partitions)
{
    struct layer *layer = &c->layer[0];
    struct layer_description *d = &c->about.layer[0];
    layer->layout = layout;
    c->nlayers = 1;
    d->planned = true;
    d->partitions = partitions ? partitions : partitions_of(layout);
    int error = cluster_measure_layer(c, layer, 0, d->partitions);
    if (error == PERHAPS_ERR_LIMIT)
        return fail_partitions(c, layer);
    if (error)
        return cluster_fail_plainly(c, error);
    d->partitions = layer->partitions;
    perhaps_layout_describe(layout, &d->layout);
    return 0;
}

static int make_id(perhaps_cluster *c)
{
    uint8_t random[ID_DIGITS / 2];
    if (getentropy(random, sizeof random) != 0)
        return cluster_fail(c, PERHAPS_ERR_IO, "no random bytes: %s", strerror(errno));
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(c->about.id + 2 * i, 3, "%02x", random[i]);
    return 0;
}

static unsigned factor_of(const struct perhaps_options *options)
{
    if (!(options->needs & PERHAPS_CAN_GROW))
        return 0;
    return options->chain.factor ? options->chain.factor : 2;
}

static struct perhaps_options chain_of(const struct description *about,
                                       const struct perhaps_hashing *hashing)
{
    struct perhaps_options chain = { .capacity = about->capacity,
                                     .fpr = about->fpr,
                                     .preference = (enum perhaps_preference)about->preference,
                                     .chain.factor = about->factor,
                                     .hashing = *hashing };
    chain.hashing.hash = about->hash;
    chain.hashing.seed = about->seed;
    return chain;
}

/* ---- Servers that would lose parts of it ------------------------------------------------ */

struct asking_policy {
    bool limited, evicts;
};

static void write_info(void *context, size_t i, struct resp *out)
{
    (void)context;
    (void)i;
    resp_command(out, 2, 32);
    resp_text(out, "INFO");
    resp_text(out, "memory");
}

static int take_info(void *context, size_t i, const struct reply *reply, bool again)
{
    struct asking_policy *asking = context;
    const redisReply *tree = reply->tree;
    (void)i;
    (void)again;
    if (tree->type != REDIS_REPLY_STRING)
        return 0;
    asking->limited = !strstr(tree->str, "maxmemory:0\r");
    asking->evicts = strstr(tree->str, "maxmemory_policy:allkeys") != NULL;
    return 0;
}

/* Who may not ask is not told. */
static int refuse_info(void *context, size_t i, const struct reply *reply)
{
    (void)context;
    (void)i;
    (void)reply;
    return 0;
}

static int check_policy(perhaps_cluster *c, struct link *link)
{
    struct asking_policy asking = { 0 };
    struct exchange exchange = { .count = 1,
                                 .write = write_info,
                                 .take = take_info,
                                 .refuse = refuse_info,
                                 .context = &asking,
                                 .tree = true,
                                 .only = link };
    int error = exchange_run(&c->nodes, &exchange);
    if (error || !asking.evicts || !asking.limited)
        return error;
    return cluster_fail(c, PERHAPS_ERR_REFUSED,
                        "%s:%u: would throw parts of a filter away when its memory is full: "
                        "set its maxmemory-policy to noeviction, or to one of volatile-*",
                        link->at.host, link->at.port);
}

static int check_policies(perhaps_cluster *c)
{
    int error = nodes_refresh(&c->nodes);
    for (unsigned slot = 0; slot < SLOTS && !error; slot++) {
        const uint16_t *master = c->nodes.map.master;
        if (master[slot] == NOBODY || (slot && master[slot] == master[slot - 1]))
            continue;
        struct link *link = nodes_master(&c->nodes, slot);
        error = link ? check_policy(c, link) : cluster_fail_plainly(c, PERHAPS_ERR_MEMORY);
        if (error == PERHAPS_ERR_UNREACHABLE)
            error = 0; /* it may come back; if not, making its partitions will tell */
    }
    return error;
}

/* ---- Claiming the name ----------------------------------------------------------------- */

/* The description is written beside its place and renamed, so that it is there whole or not at
 * all, and of several who want the name one gets it. */
struct claim {
    perhaps_cluster *c;
    char beside[REDIS_KEY_NBYTES + ID_DIGITS + 8];
    bool taken;
};

enum { CLAIM_WRITE, CLAIM_LAYER, CLAIM_RENAME, CLAIM_CLEAN, CLAIMS };

static void write_claim(void *context, size_t i, struct resp *out)
{
    const struct claim *claim = context;
    const perhaps_cluster *c = claim->c;
    char layer[LAYER_NBYTES], field[FIELD_NBYTES];
    switch (i) {
    case CLAIM_WRITE:
        description_write(&c->about, claim->beside, out);
        break;
    case CLAIM_LAYER:
        description_layer(layer, &c->about.layer[0]);
        description_field(field, "layer", 0);
        resp_command(out, 4, 1024);
        resp_text(out, "HSET");
        resp_text(out, claim->beside);
        resp_text(out, field);
        resp_text(out, layer);
        break;
    case CLAIM_RENAME:
        resp_command(out, 3, 512);
        resp_text(out, "RENAMENX");
        resp_text(out, claim->beside);
        resp_text(out, c->key);
        break;
    default:
        resp_command(out, 2, 512);
        resp_text(out, "UNLINK");
        resp_text(out, claim->beside);
    }
}

static int take_claim(void *context, size_t i, const redisReply *reply, bool again)
{
    struct claim *claim = context;
    (void)again;
    if (i == CLAIM_RENAME)
        claim->taken = reply->type != REDIS_REPLY_INTEGER || reply->integer != 1;
    return 0;
}

/* Sent again, the renaming finds nothing to rename: who has the name will tell. */
static int refuse_claim(void *context, size_t i, const redisReply *error)
{
    struct claim *claim = context;
    if (i != CLAIM_RENAME || strcmp(error->str, "ERR no such key") != 0)
        return 1;
    claim->taken = true;
    return 0;
}

/* Whether the description that is there is the one that we have written: a claim whose answer
 * was lost on the way. */
static int who_has_it(perhaps_cluster *c)
{
    struct description there;
    int error = cluster_describe(c, &there);
    if (error == PERHAPS_ERR_TAKEN || error == PERHAPS_ERR_MISSING)
        return error;
    if (!error && strcmp(there.id, c->about.id) == 0)
        return 0;
    if (!error && there.state == STATE_CREATING)
        return cluster_fail(c, PERHAPS_ERR_TAKEN,
                            "somebody is making a filter of that name; if nobody is any more, "
                            "'perhaps delete' it first");
    return cluster_fail(c, PERHAPS_ERR_TAKEN,
                        "there is a filter of that name: choose another one, or 'perhaps "
                        "delete' it first");
}

static int claim_name(perhaps_cluster *c)
{
    struct claim claim = { .c = c };
    struct talk talk = { .count = CLAIMS,
                         .write = write_claim,
                         .take = take_claim,
                         .context = &claim,
                         .refuse = refuse_claim };
    snprintf(claim.beside, sizeof claim.beside, "%s:%s.new", c->key, c->about.id);
    int error = cluster_talk(c, &talk);
    if (error)
        return error;
    return claim.taken ? who_has_it(c) : 0;
}

/* ---- Ready, or not --------------------------------------------------------------------- */

struct marking {
    perhaps_cluster *c;
    enum state state;
    unsigned layer; /* that is ready */
    bool remove;    /* the description */
};

static void write_mark(void *context, size_t i, struct resp *out)
{
    const struct marking *marking = context;
    char ready[FIELD_NBYTES];
    (void)i;
    if (marking->remove) {
        char counts[sizeof marking->c->counts];
        cluster_counts_key(marking->c, marking->c->about.id, counts);
        resp_command(out, 3, 128);
        resp_text(out, "UNLINK");
        resp_text(out, marking->c->key);
        resp_text(out, counts);
        return;
    }
    bool is_ready = marking->state == STATE_READY;
    resp_command(out, is_ready ? 6 : 4, 128);
    resp_text(out, "HSET");
    resp_text(out, marking->c->key);
    resp_text(out, "state");
    resp_text(out, state_name[marking->state]);
    if (!is_ready)
        return;
    description_field(ready, "ready", marking->layer);
    resp_text(out, ready);
    resp_text(out, "1");
}

static int mark(perhaps_cluster *c, struct marking marking)
{
    marking.c = c;
    struct talk talk = { .count = 1, .write = write_mark, .context = &marking };
    return cluster_talk(c, &talk);
}

/* ---- Make ------------------------------------------------------------------------------ */

/* What was begun is taken back, as far as the servers can be reached. */
static void take_back(perhaps_cluster *c)
{
    struct aside aside;
    cluster_begin_aside(c, &aside);
    if (!partitions_remove(c, &c->layer[0]))
        mark(c, (struct marking){ .remove = true });
    cluster_end_aside(c, &aside);
}

int layers_make_first(perhaps_cluster *c, perhaps_layout *layout,
                      const struct perhaps_options *options, uint64_t partitions,
                      int (*fill)(perhaps_cluster *c, void *context), void *context)
{
    struct perhaps_description d;
    perhaps_layout_describe(layout, &d);
    cluster_close(c);
    c->about = (struct description){ .state = STATE_CREATING,
                                     .created = (uint64_t)time(NULL),
                                     .capacity = options->capacity,
                                     .fpr = options->fpr,
                                     .factor = factor_of(options),
                                     .preference = options->preference,
                                     .hash = d.hash,
                                     .seed = d.seed,
                                     .check = d.check };
    int error = make_id(c);
    if (error)
        perhaps_layout_free(layout);
    else
        error = plan_first(c, layout, partitions);
    if (!error)
        error = check_policies(c);
    if (!error)
        error = claim_name(c);
    if (error) {
        cluster_close(c);
        return error;
    }
    error = partitions_make(c, &c->layer[0]);
    if (!error && fill)
        error = fill(c, context);
    if (!error)
        error = mark(c, (struct marking){ .state = STATE_READY });
    if (error) {
        take_back(c);
        cluster_close(c);
        return error;
    }
    return perhaps_cluster_open(c);
}

int perhaps_cluster_create(perhaps_cluster *c, const struct perhaps_options *options,
                           uint64_t partitions)
{
    perhaps_layout *layout;
    struct perhaps_options first = *options;
    if (c->address.redisson)
        return cluster_fail(c, PERHAPS_ERR_UNSUPPORTED,
                            "let Redisson make its filters (tryInit), or leave out "
                            "layout=redisson");
    int error = 0;
    if (options->needs & PERHAPS_CAN_GROW)
        error = perhaps_layer_options(options, 0, &first);
    if (!error)
        error = perhaps_layout_create(&first, &layout);
    if (error)
        return cluster_fail_plainly(c, error);
    c->hashing = options->hashing;
    if (c->hashing.secret) {
        memcpy(c->secret, c->hashing.secret, sizeof c->secret);
        c->hashing.secret = c->secret;
    }
    return layers_make_first(c, layout, options, partitions, NULL, NULL);
}

/* ---- Grow ------------------------------------------------------------------------------ */

struct proposal {
    perhaps_cluster *c;
    unsigned index;
    char text[LAYER_NBYTES];
};

static void write_proposal(void *context, size_t i, struct resp *out)
{
    const struct proposal *proposal = context;
    char field[FIELD_NBYTES];
    (void)i;
    description_field(field, "layer", proposal->index);
    resp_command(out, 4, 1024);
    resp_text(out, "HSETNX");
    resp_text(out, proposal->c->key);
    resp_text(out, field);
    resp_text(out, proposal->text);
}

/* Several clients find a layer full at once: each proposes the next one, and all make what was
 * written down first, which makes no difference but in time. */
static int propose_layer(perhaps_cluster *c, unsigned index)
{
    struct proposal proposal = { .c = c, .index = index };
    struct perhaps_options chain = chain_of(&c->about, &c->hashing), options;
    struct layer_description d = { .planned = true };
    perhaps_layout *layout;
    int error = perhaps_layer_options(&chain, index, &options);
    if (!error)
        error = perhaps_layout_create(&options, &layout);
    if (error)
        return cluster_fail_plainly(c, error);
    perhaps_layout_describe(layout, &d.layout);
    d.partitions = partitions_of(layout);
    perhaps_layout_free(layout);
    description_layer(proposal.text, &d);
    struct talk talk = { .count = 1, .write = write_proposal, .context = &proposal };
    return cluster_talk(c, &talk);
}

static int make_layer(perhaps_cluster *c, const struct description *about, unsigned index)
{
    struct layer *layer = &c->layer[index];
    const struct layer_description *d = &about->layer[index];
    int error = perhaps_layout_restore(&d->layout, &c->hashing, &layer->layout);
    if (!error)
        error = cluster_measure_layer(c, layer, index, d->partitions);
    error = error ? cluster_fail_plainly(c, error) : partitions_make(c, layer);
    perhaps_layout_free(layer->layout);
    *layer = (struct layer){ 0 };
    return error ? error : mark(c, (struct marking){ .state = STATE_READY, .layer = index });
}

static int add_layer(perhaps_cluster *c, unsigned index)
{
    struct description about;
    int error = propose_layer(c, index);
    if (!error)
        error = cluster_describe(c, &about);
    if (!error && about.state != STATE_READY)
        error = cluster_open_layers(c, &about); /* which says why not */
    return error ? error : make_layer(c, &about, index);
}

int layers_grow(perhaps_cluster *c)
{
    unsigned index = c->nlayers;
    int error = layers_renew(c);
    if (error || c->nlayers > index)
        return error; /* somebody else has done it */
    if (index == PERHAPS_LAYERS_MAX)
        return cluster_fail_plainly(c, PERHAPS_ERR_LAYERS);
    error = add_layer(c, index);
    return error ? error : layers_renew(c);
}

int layers_renew(perhaps_cluster *c)
{
    struct description about;
    int error = cluster_describe(c, &about);
    return error ? error : cluster_open_layers(c, &about);
}

/* ---- Delete ---------------------------------------------------------------------------- */

/* The layers that were written down, also those that never became ready.  Names suffice: no
 * secret is needed to remove one. */
static int remove_layers(perhaps_cluster *c, const struct description *about)
{
    int error = 0;
    for (unsigned i = 0; i < PERHAPS_LAYERS_MAX && !error; i++) {
        const struct layer_description *d = &about->layer[i];
        struct layer layer = { .partitions = d->partitions };
        if (!d->planned || d->partitions > PARTITIONS_MOST)
            continue;
        cluster_name_layer(c, &layer, i);
        error = partitions_find_slots(c, layer.partitions);
        error = error ? cluster_fail_plainly(c, error) : partitions_remove(c, &layer);
    }
    return error;
}

int perhaps_cluster_delete(perhaps_cluster *c)
{
    struct description about;
    cluster_close(c);
    if (c->address.redisson)
        return cluster_fail(c, PERHAPS_ERR_UNSUPPORTED,
                            "let Redisson delete its filters, or leave out layout=redisson");
    int error = cluster_describe(c, &about);
    if (error == PERHAPS_ERR_UNFINISHED) /* deleted while it was made: no more than that */
        return mark(c, (struct marking){ .remove = true });
    if (error)
        return error;
    c->about = about;
    error = mark(c, (struct marking){ .state = STATE_DELETING });
    if (!error)
        error = remove_layers(c, &about);
    return error ? error : mark(c, (struct marking){ .remove = true });
}
