/* create.c - makes and deletes filters, and makes their further layers.
 *
 *     make    description and counts, if there are none             state=creating
 *             all partitions of layer 0, zero or filled
 *             from now on others can open it                        state=ready, ready.0=1
 *     grow    description of layer I, if there is none              layer.I
 *             all its partitions
 *             from now on clients ask it and add to it              ready.I=1
 *             or, if the filter was deleted meanwhile, removes what it has made
 *     delete  from now on nobody can open it                        state=deleting
 *             all partitions of all layers that were planned
 *             counts and description
 *
 * Invariant: no partition is ever there without a description that names it.  So a client that
 * breaks off at any moment leaves a description that tells what there may be, and
 * perhaps_cluster_delete() can remove all of it.  The order of the steps follows from this:
 * the description comes first and goes last.
 *
 * Who writes to a description or removes it does so by a script, which looks at ID and state at
 * once: so nothing is written to a filter that was deleted or made anew meanwhile. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "layers.h"
#include "operations.h"
#include "partitions.h"
#include "room.h"
#include "script.h"

/* Fewer partitions than PARTITIONS_USUAL do not spread evenly over the nodes.  Partitions that
 * are smaller than PARTITION_NBYTES_USUAL are mostly overhead. */
enum { PARTITIONS_USUAL = 1024, PARTITION_NBYTES_USUAL = 4096 };

/* ---- Planning -------------------------------------------------------------------------- */

/* Returns the next smaller size of jemalloc, the allocator of most servers.  It has four sizes
 * to each doubling. */
static uint64_t smaller_size(uint64_t nbytes)
{
    uint64_t power = UINT64_C(1) << (63 - __builtin_clzll(nbytes - 1));
    return nbytes - power / 4;
}

/* Returns how many partitions a filter should have at least.  It tries the allocator's sizes
 * from 16 MiB down, so that strings just fill the memory that they take, until there are as
 * many as wanted. */
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
    return usual_partitions(plan.body_nbytes, layers_block_nbytes(layout));
}

/* Fails because of a number of partitions that cannot be, and says which ones can. */
static int fail_partitions(perhaps_cluster *c, const struct layer *layer)
{
    uint64_t most = layer->blocks < PARTITIONS_MOST ? layer->blocks : PARTITIONS_MOST;
    const uint64_t room = PARTITION_NBYTES_MOST - PARTITION_NBYTES_BESIDE;
    uint64_t least = (layer->blocks - 1) / (room / layer->block_nbytes) + 1;
    return nodes_fail(&c->nodes, PERHAPS_ERR_ARGUMENT,
                      "a filter of %ju bytes takes %ju to %ju partitions, so that none is "
                      "larger than 16 MiB or smaller than a block",
                      (uintmax_t)layer->plan.body_nbytes, (uintmax_t)least, (uintmax_t)most);
}

/* Plans the first layer, which has its layout: its size, and its description. */
static int plan_first(perhaps_cluster *c, uint64_t partitions)
{
    struct layer *layer = &c->layer[0];
    struct layer_description *d = &c->about.layer[0];
    d->planned = true;
    d->partitions = partitions ? partitions : partitions_of(layer->layout);
    int error = layers_measure(c, layer, 0, d->partitions);
    if (error == PERHAPS_ERR_LIMIT)
        return fail_partitions(c, layer);
    if (error)
        return nodes_fail_plainly(&c->nodes, error);
    d->partitions = layer->partitions;
    perhaps_layout_describe(layer->layout, &d->layout);
    return 0;
}

/* The ID is random, so that partitions and counts of a filter that is made anew have other
 * names than those of the one before. */
static int make_id(perhaps_cluster *c)
{
    uint8_t random[ID_DIGITS / 2];
    if (getentropy(random, sizeof random) != 0)
        return nodes_fail(&c->nodes, PERHAPS_ERR_IO, "no random bytes: %s", strerror(errno));
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(c->about.id + 2 * i, 3, "%02x", random[i]);
    return 0;
}

/* Returns the growth factor; 0 if the filter is not to grow. */
static unsigned factor_of(const struct perhaps_options *options)
{
    if (!(options->needs & PERHAPS_CAN_GROW))
        return 0;
    return options->chain.factor ? options->chain.factor : 2;
}

/* Returns the options of a chain in memory that is like this filter: its layers are planned in
 * the same way. */
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

/* ---- Claiming the name ----------------------------------------------------------------- */

/* Returns an error that says whose name it is. */
static int fail_taken(perhaps_cluster *c)
{
    int error = layers_describe(c, false);
    if (error == PERHAPS_ERR_TAKEN || error == PERHAPS_ERR_MISSING)
        return error;
    if (!error && c->there.state == STATE_CREATING)
        return nodes_fail(&c->nodes, PERHAPS_ERR_TAKEN,
                          "somebody is making a filter of that name; if nobody is any more, "
                          "'perhaps delete' it first");
    return nodes_fail(&c->nodes, PERHAPS_ERR_TAKEN,
                      "there is a filter of that name: choose another one, or 'perhaps "
                      "delete' it first");
}

/* ---- Writing to the description -------------------------------------------------------- */

/* It takes: the state that the filter must have, or nothing; a field and its value; a state
 * that is set, too, or nothing; and whether a field that is there stays as it is. */
static const char describe_text[] =
    "local done = again and ARGV[7] ~= '' and state == ARGV[7]\n"
    "if ARGV[4] ~= '' and state ~= ARGV[4] and not done then return { 3 } end\n"
    "local field, value = ARGV[5], ARGV[6]\n"
    "if ARGV[8] == '1' and redis.call('HEXISTS', about, field) == 1 then return { 0 } end\n"
    "local set = { 'HSET', about, field, value }\n"
    "if ARGV[7] ~= '' then set[5] = 'state' set[6] = ARGV[7] end\n"
    "local told = redis.pcall(unpack(set))\n"
    "if type(told) == 'table' and told.err then return told end\n"
    "return { 0 }\n";

static const char remove_text[] = "redis.call('UNLINK', about, counts)\n"
                                  "return { 0 }\n";

/* Sets a field of the description of the filter with this ID, if it is in a state. */
static int set_field(perhaps_cluster *c, const char *id, const char *if_state,
                     const char *field, const char *value, const char *state, bool keep)
{
    struct script script = { .text = describe_text, .id = id };
    script_put(&script, "%s", if_state);
    script_put(&script, "%s", field);
    script_put(&script, "%s", value);
    script_put(&script, "%s", state);
    script_put(&script, "%d", keep);
    return script_run(c, &script);
}

/* Marks a layer as ready, and with the first layer the filter. */
static int mark_ready(perhaps_cluster *c, unsigned layer)
{
    char ready[FIELD_NBYTES];
    description_field(ready, "ready", layer);
    return set_field(c, c->about.id, state_name[layer ? STATE_READY : STATE_CREATING], ready,
                     "1", layer ? "" : state_name[STATE_READY], false);
}

/* Removes the description and the counts of the filter with this ID.  If they are gone already,
 * that is as good; counts that somebody has written since are removed in any case. */
static int remove_description(perhaps_cluster *c, const char *id)
{
    struct script script = { .text = remove_text, .id = id };
    char counts[sizeof c->counts];
    handle_name_counts(c, id, counts);
    int error = script_run(c, &script);
    if (error == PERHAPS_ERR_MISSING || error == PERHAPS_ERR_CHANGED)
        error = handle_tell(c, (const char *const[]){ "UNLINK", counts, NULL });
    return error;
}

/* ---- Make ------------------------------------------------------------------------------ */

/* Removes a filter that could not be finished, as far as the servers can be reached.  The
 * description goes last, and only if all partitions are gone, since they could not be found
 * without it. */
static void take_back(perhaps_cluster *c, bool has_partitions)
{
    struct aside aside;
    handle_begin_aside(c, &aside);
    if (!has_partitions || !partitions_remove(c, &c->layer[0]))
        remove_description(c, c->about.id);
    handle_end_aside(c, &aside);
}

/* Fills in the description of a new filter, but for its ID and its layer. */
static void describe(perhaps_cluster *c, const perhaps_layout *layout,
                     const struct perhaps_options *options)
{
    struct perhaps_description d;
    perhaps_layout_describe(layout, &d);
    memset(&c->about, 0, sizeof c->about); /* an assignment could take as much of the stack */
    c->about.state = STATE_CREATING;
    c->about.created = (uint64_t)time(NULL);
    c->about.capacity = options->capacity;
    c->about.fpr = options->fpr;
    c->about.factor = factor_of(options);
    c->about.preference = options->preference;
    c->about.hash = d.hash;
    c->about.seed = d.seed;
    c->about.check = d.check;
    memcpy(c->about.note, d.note, sizeof c->about.note);
    c->about.counted = true;
}

/* Opens the filter that was just made: all of it is known. */
static int open_made(perhaps_cluster *c)
{
    c->about.state = STATE_READY;
    c->about.layer[0].ready = true;
    c->layer[0].sparse = true;
    handle_name_counts(c, c->about.id, c->counts);
    if (room_join(c))
        return nodes_fail_plainly(&c->nodes, PERHAPS_ERR_MEMORY);
    room_layers(c, c->nlayers);
    c->open = true;
    return 0;
}

/* Makes the filter whose name is claimed. */
static int make_claimed(perhaps_cluster *c, int (*fill)(perhaps_cluster *c, void *context),
                        void *context)
{
    int error = partitions_make(c, &c->layer[0]);
    if (!error && fill)
        error = fill(c, context);
    if (!error)
        error = mark_ready(c, 0);
    return error;
}

/* What is removed after an error has the ID of this filter: what is there under the name may
 * belong to another client. */
int create_from(perhaps_cluster *c, perhaps_layout *layout,
                const struct perhaps_options *options, uint64_t partitions,
                int (*fill)(perhaps_cluster *c, void *context), void *context)
{
    bool taken = false, claimed = false;
    layers_close(c);
    c->layer[0].layout = layout;
    c->nlayers = 1;
    describe(c, layout, options);
    int error = make_id(c);
    if (!error)
        error = plan_first(c, partitions);
    bool planned = !error;
    if (!error)
        error = checks_and_claim(c, &taken);
    if (!error && taken)
        error = fail_taken(c);
    claimed = !error;
    if (!error)
        error = make_claimed(c, fill, context);
    if (!error)
        error = open_made(c);
    if (!error)
        return 0;
    if (planned && !taken)
        take_back(c, claimed);
    layers_close(c);
    return error;
}

int create_empty(perhaps_cluster *c, const struct perhaps_options *options, uint64_t partitions)
{
    perhaps_layout *layout;
    struct perhaps_options first = *options;
    int error = 0;
    if (options->needs & PERHAPS_CAN_GROW)
        error = perhaps_layer_options(options, 0, &first);
    if (!error)
        error = perhaps_layout_create(&first, &layout);
    if (error)
        return nodes_fail_plainly(&c->nodes, error);
    handle_take_hashing(c, &options->hashing);
    return create_from(c, layout, options, partitions, NULL, NULL);
}

/* ---- Grow ------------------------------------------------------------------------------ */

/* Proposes the next layer.  Several clients may find a layer full at once.  Each proposes the
 * next one; the first proposal is kept, and all of them make that layer.  Making a
 * partition twice changes nothing. */
static int propose_layer(perhaps_cluster *c, unsigned index)
{
    struct perhaps_options chain = chain_of(&c->about, &c->hashing), options;
    struct layer_description d = { .planned = true };
    perhaps_layout *layout;
    char field[FIELD_NBYTES], text[LAYER_NBYTES];
    int error = perhaps_layer_options(&chain, index, &options);
    if (!error)
        error = perhaps_layout_create(&options, &layout);
    if (error)
        return nodes_fail_plainly(&c->nodes, error);
    perhaps_layout_describe(layout, &d.layout);
    d.partitions = partitions_of(layout);
    perhaps_layout_free(layout);
    description_layer(text, &d);
    description_field(field, "layer", index);
    return set_field(c, c->about.id, state_name[STATE_READY], field, text, "", true);
}

/* Makes the partitions of a layer that is planned, and marks it as ready.  If the filter was
 * deleted meanwhile, who deleted it may not have seen them all: so they are removed here.
 * c->layer[index] is used meanwhile and emptied again: layers_renew() then opens it like any
 * other. */
static int make_layer(perhaps_cluster *c, unsigned index)
{
    struct layer *layer = &c->layer[index];
    const struct layer_description *d = &c->there.layer[index];
    struct aside aside;
    int error = perhaps_layout_restore(&d->layout, &c->hashing, &layer->layout);
    if (!error)
        error = layers_measure(c, layer, index, d->partitions);
    error = error ? nodes_fail_plainly(&c->nodes, error) : partitions_make(c, layer);
    if (!error)
        error = mark_ready(c, index);
    if (handle_is_gone(error)) {
        handle_begin_aside(c, &aside);
        partitions_remove(c, layer);
        handle_end_aside(c, &aside);
    }
    layers_release(layer);
    return error;
}

/* Plans and makes a layer.  Reads the description between the two, since the proposal of
 * another client may have been kept, or the filter may have been deleted. */
static int add_layer(perhaps_cluster *c, unsigned index)
{
    int error = propose_layer(c, index);
    if (!error)
        error = layers_describe(c, false);
    if (!error && c->there.state != STATE_READY)
        error = layers_open_ready(c); /* which says why not */
    return error ? error : make_layer(c, index);
}

int create_layer(perhaps_cluster *c)
{
    unsigned index = c->nlayers;
    int error = layers_renew(c, false);
    if (error || c->nlayers > index)
        return error; /* another client has made it */
    if (index == PERHAPS_LAYERS_MAX)
        return nodes_fail_plainly(&c->nodes, PERHAPS_ERR_LAYERS);
    error = add_layer(c, index);
    return error ? error : layers_renew(c, false);
}

/* ---- Delete ---------------------------------------------------------------------------- */

/* Removes all layers that were planned, also those that never became ready.  Their names are
 * enough for this, so it needs no secret. */
static int remove_layers(perhaps_cluster *c)
{
    int error = 0;
    for (unsigned i = 0; i < PERHAPS_LAYERS_MAX && !error; i++) {
        const struct layer_description *d = &c->about.layer[i];
        struct layer layer = { .partitions = d->partitions };
        if (!d->planned || d->partitions > PARTITIONS_MOST)
            continue;
        layers_name(c, &layer, i);
        error = partitions_make_room(c, NULL, layer.partitions);
        error = error ? nodes_fail_plainly(&c->nodes, error) : partitions_remove(c, &layer);
    }
    return error;
}

/* The state comes first, so that no client opens the filter while its partitions go, and none
 * plans a further layer: then the description tells all that there may be.  Until it is set,
 * the handle stays as it was. */
int delete_filter(perhaps_cluster *c)
{
    char id[ID_DIGITS + 1];
    int error = layers_describe(c, false);
    if (error == PERHAPS_ERR_UNFINISHED) { /* what earlier versions left of a deletion */
        layers_close(c);
        return handle_tell(c, (const char *const[]){ "UNLINK", c->key, NULL });
    }
    if (error)
        return error;
    memcpy(id, c->there.id, sizeof id);
    error = set_field(c, id, "", "state", state_name[STATE_DELETING], "", false);
    if (error)
        return error;
    layers_close(c);
    error = layers_describe(c, false);
    if (error == PERHAPS_ERR_MISSING || (!error && strcmp(id, c->there.id) != 0))
        return 0; /* somebody else has deleted it meanwhile */
    if (error)
        return error;
    c->about = c->there;
    error = remove_layers(c);
    return error ? error : remove_description(c, id);
}
