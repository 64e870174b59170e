/* ask.c - which bytes of a file that is far away the answers for keys are read from, and the
 * answers. */
#include <string.h>

#include "../base/bytes.h"
#include "../filter/counters.h"
#include "remote.h"

/* So much is wanted for the keys of one question. */
enum { WANTED_MOST = 1 << 18 };
#define WANTED_NBYTES_MOST (UINT64_C(64) << 20)

/* ---- The way of a key -------------------------------------------------------------------- */

/* A filter that tells what it reads. */
struct place {
    const perhaps_remote *r;
    const struct node *node;
};

static const uint8_t *look(void *context, uint64_t at, uint64_t nbytes)
{
    const struct place *place = context;
    return rounds_find(place->r, place->node->at + at, nbytes);
}

static bool list_reads(const perhaps_remote *r, const struct node *node, struct reads *reads)
{
    struct place place = { r, node };
    *reads = (struct reads){ .look = look, .context = &place };
    node->f->kind->reads(node->f, node->key, reads);
    return !reads->more;
}

/* Finds out whether a part is asked for the key that its composite is asked for.  Parts to
 * which nothing was ever added are not asked, as in parts_contain(). */
static void pass_key(const perhaps_remote *r, struct node *node)
{
    const struct node *parent = &r->node[node->parent];
    const perhaps_filter *f = parent->f;
    const struct composite *composite = f->kind->composite;
    node->key = parent->key;
    node->asked = parent->asked &&
                  (!composite->asks_part || composite->asks_part(f, node->index, &node->key));
    if (!composite->joins && !f->removes && !counter_get(&node->f->counters->keys))
        node->asked = false;
}

static void pass_keys(const perhaps_remote *r, const struct keyhash *key)
{
    r->node[0].key = *key;
    r->node[0].asked = true;
    for (uint32_t i = 0; i < r->head.header.sections; i++) {
        r->node[i].says = false;
        if (i)
            pass_key(r, &r->node[i]);
    }
}

static bool is_read(const struct node *node)
{
    return node->asked && !node->f->kind->composite;
}

/* Wants what is not there of the ranges that a filter reads. */
static int want_reads(perhaps_remote *r, const struct node *node)
{
    const uint64_t body_nbytes = node->f->body.geometry.body_nbytes;
    struct reads reads;
    int error = 0;
    list_reads(r, node, &reads);
    for (size_t i = 0; i < reads.count && !error; i++) {
        const uint64_t at = reads.at[i], nbytes = reads.nbytes[i];
        if (at > body_nbytes || nbytes > body_nbytes - at)
            error = PERHAPS_ERR_DAMAGED;
        else if (!rounds_find(r, node->at + at, nbytes))
            error = rounds_want(r, node->at + at, nbytes);
    }
    return error;
}

static int want_key(perhaps_remote *r, size_t i)
{
    int error = 0;
    if (!r->takes[i])
        return 0;
    pass_keys(r, &r->hash[i]);
    for (uint32_t n = 0; n < r->head.header.sections && !error; n++)
        if (is_read(&r->node[n]))
            error = want_reads(r, &r->node[n]);
    return error;
}

/* ---- Answers ----------------------------------------------------------------------------- */

static bool node_says(const perhaps_remote *r, const struct node *node)
{
    const uint8_t *bytes[READS_MOST];
    struct reads reads;
    list_reads(r, node, &reads);
    for (size_t i = 0; i < reads.count; i++)
        bytes[i] = rounds_find(r, node->at + reads.at[i], reads.nbytes[i]);
    return node->f->kind->answer(node->f, node->key, bytes);
}

/* Returns what a composite says whose parts have been asked. */
static bool parts_say(const perhaps_remote *r, uint32_t number)
{
    const struct node *node = &r->node[number];
    const struct composite *composite = node->f->kind->composite;
    bool says[PARTS_MOST], any = false;
    for (uint32_t i = number + 1; i < r->head.header.sections; i++) {
        if (r->node[i].parent != number)
            continue;
        says[r->node[i].index] = r->node[i].says;
        any |= r->node[i].says;
    }
    return composite->joins ? composite->joins(node->f, node->key, says) : any;
}

/* Parts come behind the composite to which they belong, and so are asked before it. */
static bool key_is_there(const perhaps_remote *r, const struct keyhash *key)
{
    pass_keys(r, key);
    for (uint32_t i = r->head.header.sections; i > 0; i--) {
        struct node *node = &r->node[i - 1];
        if (node->asked)
            node->says = node->f->kind->composite ? parts_say(r, i - 1) : node_says(r, node);
    }
    return r->node[0].says;
}

int perhaps_remote_answers(const perhaps_remote *r, bool *present)
{
    if (r->stage != STAGE_ANSWERED)
        return PERHAPS_ERR_ARGUMENT;
    for (size_t i = 0; i < r->nkeys; i++)
        if (!r->head.header.small)
            present[i] = r->takes[i] && key_is_there(r, &r->hash[i]);
        else
            r->filter->kind->contains(r->filter, &r->hash[i], &r->hash[i], 1, &present[i]);
    for (size_t i = 0; i < r->nkeys; i++)
        present[i] &= r->takes[i];
    return 0;
}

/* ---- Questions --------------------------------------------------------------------------- */

static uint64_t keys_nbytes(size_t n)
{
    return n * (sizeof(struct keyhash) + sizeof(bool));
}

void ask_end(perhaps_remote *r)
{
    release(&r->allocator, r->hash, keys_nbytes(r->nkeys_room));
    r->hash = NULL;
    r->nkeys = r->nkeys_room = 0;
}

static int make_room(perhaps_remote *r, size_t n)
{
    if (n <= r->nkeys_room)
        return 0;
    ask_end(r);
    r->hash = allocate_scratch(&r->allocator, keys_nbytes(n));
    if (!r->hash)
        return PERHAPS_ERR_MEMORY;
    r->nkeys_room = n;
    return 0;
}

/* Hashes n keys; those that the hash refuses are in no filter. */
static void hash_keys(perhaps_remote *r, const struct perhaps_keys *keys, size_t first,
                      size_t n)
{
    const struct perhaps_keys all = perhaps_keys_slice(keys, first, n);
    r->takes = (bool *)(r->hash + r->nkeys_room);
    memset(r->takes, true, n);
    if (filter_count_hashable(r->filter, &all) == n) {
        hasher_run(&r->filter->hasher, keys, first, n, r->hash);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct perhaps_keys one = perhaps_keys_slice(keys, first + i, 1);
        r->takes[i] = filter_count_hashable(r->filter, &one) == 1;
        r->hash[i] = (struct keyhash){ 0 };
        if (r->takes[i])
            hasher_run(&r->filter->hasher, keys, first + i, 1, &r->hash[i]);
    }
}

static bool is_much(const struct wanted *wanted, unsigned share)
{
    return wanted->count >= WANTED_MOST / share || wanted->nbytes >= WANTED_NBYTES_MOST / share;
}

/* Stops with key i if it is enough: many keys may want the same. */
static int limit_keys(perhaps_remote *r, size_t i)
{
    if (!is_much(&r->wanted, 1))
        return 0;
    int error = rounds_join(r);
    if (is_much(&r->wanted, 2))
        r->nkeys = i + 1;
    return error;
}

/* The first round decides for how many keys it asks. */
int ask_on(perhaps_remote *r)
{
    int error = 0;
    for (size_t i = 0; i < r->nkeys && !error && !r->head.header.small; i++) {
        error = want_key(r, i);
        if (!error && !r->rounds)
            error = limit_keys(r, i);
    }
    if (!error && r->wanted.count)
        error = rounds_begin(r);
    else if (!error)
        r->stage = STAGE_ANSWERED;
    return error;
}

int perhaps_remote_ask(perhaps_remote *r, const struct perhaps_keys *keys, size_t first,
                       size_t n, size_t *asked)
{
    *asked = 0;
    if (r->stage < STAGE_OPEN || r->stage == STAGE_FAILED || !n || first > keys->count ||
        n > keys->count - first)
        return PERHAPS_ERR_ARGUMENT;
    if (!r->filter->hasher.ready)
        return PERHAPS_ERR_SECRET;
    if (n > WANTED_MOST)
        n = WANTED_MOST;
    rounds_forget(r);
    r->stage = STAGE_OPEN;
    int error = make_room(r, n);
    if (error)
        return error;
    hash_keys(r, keys, first, n);
    r->nkeys = n;
    r->stage = STAGE_ASKED;
    error = ask_on(r);
    if (error) {
        rounds_forget(r);
        r->stage = STAGE_OPEN;
        return error;
    }
    *asked = r->nkeys;
    return 0;
}
