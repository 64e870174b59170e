/* foreign.c - asks filters that Redisson made, and adds to them.
 *
 * Such a filter is one Redis string of bits, NAME, and a Redis hash {NAME}:config that says how
 * large it is.  Redisson and this client see each other's keys.  Only Redisson makes and
 * deletes such filters.  All bits lie in one string, and so on one server; those of a key may
 * lie anywhere in it, so a BITFIELD names each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "codec.h"
#include "layers.h"

/* The context of an exchange. */
struct foreign {
    perhaps_cluster *c;
    const struct perhaps_keys *keys; /* the batch */
    bool adds;                       /* false: keys are asked for */
    unsigned char *coded;            /* room for a key as the codec writes it; NULL: as it is */
    unsigned config_slot;            /* may differ from that of the bits */
    double nset;                     /* how many bits are set: from BITCOUNT */
    long long nbytes;                /* of the string of bits: from STRLEN */
};

/* ---- The config ------------------------------------------------------------------------ */

static unsigned config_slot(const struct request *request)
{
    const struct foreign *f = request->context;
    return f->config_slot;
}

/* Reads the config into c->redisson.  A filter that was opened must not change its size. */
static int take_config(const struct request *request, const struct reply *reply)
{
    const struct foreign *f = request->context;
    perhaps_cluster *c = f->c;
    struct redisson_value value[REDISSON_FIELDS] = { { 0 } };
    struct redisson config;
    bool missing = true;
    if (reply->type != REDIS_REPLY_ARRAY || reply->count != REDISSON_FIELDS)
        return nodes_fail(&c->nodes, PERHAPS_ERR_PROTOCOL,
                          "a server answered strangely to HMGET");
    for (size_t i = 0; i < REDISSON_FIELDS; i++) {
        const redisReply *element = reply->tree->element[i];
        if (element->type != REDIS_REPLY_STRING)
            continue;
        value[i] = (struct redisson_value){ element->str, (size_t)element->len };
        missing = false;
    }
    if (missing)
        return nodes_fail(&c->nodes, PERHAPS_ERR_MISSING,
                          "Redisson has no filter of that name there");
    const char *problem = redisson_read(value, &config);
    if (problem)
        return nodes_fail(&c->nodes, PERHAPS_ERR_VERSION, "%s", problem);
    if (c->open && (config.nbits != c->redisson.nbits || config.nhashes != c->redisson.nhashes))
        return nodes_fail(&c->nodes, PERHAPS_ERR_CHANGED,
                          "was made anew with another size since it was opened");
    c->redisson = config;
    return 0;
}

/* Reads the config again, and fails if the size has changed.  This is done before and after
 * each batch: if the size changed in between, the answers would be wrong.  Redisson's own
 * scripts do the same. */
static int check_config(perhaps_cluster *c)
{
    char key[NAME_NBYTES_MOST + 16];
    size_t nbytes = redisson_config_key(c->address.name, key);
    struct foreign f = { .c = c, .config_slot = slot_of(key, nbytes) };
    const char *command[2 + REDISSON_FIELDS + 1] = { "HMGET", key };
    memcpy(command + 2, redisson_field, sizeof redisson_field);
    struct exchange exchange = { .count = 1,
                                 .slot = config_slot,
                                 .command = command,
                                 .take = take_config,
                                 .context = &f,
                                 .tree = true };
    return exchange_run(&c->nodes, &exchange);
}

static int foreign_open(perhaps_cluster *c)
{
    layers_close(c);
    int error = check_config(c);
    c->open = !error;
    return error;
}

/* ---- The codec ------------------------------------------------------------------------- */

static int take_length(const struct request *request, const struct reply *reply)
{
    struct foreign *f = request->context;
    f->nbytes = reply->type == REDIS_REPLY_INTEGER ? reply->number : 0;
    return 0;
}

/* A client without the right to look cannot know that the filter has no keys.  It warns, since
 * its answers do not depend on this. */
static int take_length_error(const struct request *request, const struct reply *reply)
{
    struct foreign *f = request->context;
    bool is_refused = strncmp(reply->text, "NOPERM", strlen("NOPERM")) == 0;
    if (is_refused)
        f->nbytes = 1;
    return is_refused ? 0 : 1;
}

static const char no_codec[] =
    "the address names no codec, so keys are taken as Redisson's StringCodec writes them; if "
    "Redisson has its default, Kryo5Codec, all answers are \"no\": write codec=string, "
    "codec=kryo5 or codec=json";

/* Warns if nothing tells which codec wrote the keys of a filter that has any.  Looks at the
 * filter only once, before the first keys. */
static int warn_of_codec(perhaps_cluster *c)
{
    struct foreign f = { .c = c };
    struct exchange exchange = { .count = 1,
                                 .command = (const char *const[]){ "STRLEN", c->key, NULL },
                                 .take = take_length,
                                 .take_error = take_length_error,
                                 .context = &f };
    if (c->address.codec != CODEC_NOT_GIVEN || !c->warn || c->warned)
        return 0;
    int error = exchange_run(&c->nodes, &exchange);
    c->warned = !error;
    if (f.nbytes > 0)
        c->warn(c->context, no_codec);
    return error;
}

/* ---- Keys ------------------------------------------------------------------------------ */

/* Checks the keys, and makes room for the longest one as the codec writes it.  Returns NULL; or
 * what is wrong with the key behind the first *ngood keys, which are good; or no_memory. */
static const char *prepare_keys(struct foreign *f, size_t *ngood)
{
    const char *problem = NULL;
    size_t most = 0;
    *ngood = f->keys->count;
    if (codec_is_plain(f->c->address.codec))
        return NULL;
    for (size_t i = 0; i < *ngood; i++) {
        struct perhaps_key key = perhaps_keys_at(f->keys, i);
        if ((problem = codec_check(key.bytes, key.nbytes)))
            *ngood = i;
        else
            most = key.nbytes > most ? key.nbytes : most;
    }
    f->coded = malloc(CODEC_ROOM(most));
    return f->coded ? problem : no_memory;
}

/* Finds the bits of key i of the batch. */
static void find_bits(const struct foreign *f, size_t i, uint64_t *bits)
{
    struct perhaps_key key = perhaps_keys_at(f->keys, i);
    if (f->coded) {
        key.nbytes = codec_write(f->c->address.codec, key.bytes, key.nbytes, f->coded);
        key.bytes = f->coded;
    }
    redisson_bits(&f->c->redisson, key.bytes, key.nbytes, bits);
}

/* Writes a command that asks for the bits of a key, or sets them and tells what they were.
 * BITFIELD_RO may go to replicas, BITFIELD may not. */
static void write_bits(const struct request *request, struct resp *out)
{
    const struct foreign *f = request->context;
    unsigned n = f->c->redisson.nhashes, nargs = f->adds ? 4 : 3;
    uint64_t bits[REDISSON_HASHES_MOST];
    find_bits(f, request->i, bits);
    resp_command(out, 2 + nargs * n, 128 + 48 * (size_t)n);
    resp_text(out, f->adds ? "BITFIELD" : "BITFIELD_RO");
    resp_text(out, f->c->key);
    batch_put_bits(out, f->adds, bits, n);
}

static int take_bits(const struct request *request, const struct reply *reply)
{
    const struct foreign *f = request->context;
    perhaps_cluster *c = f->c;
    int nset = batch_take_bits(c, &c->batch->answer[request->i], reply, c->redisson.nhashes, 0,
                               f->adds && request->again);
    return nset < 0 ? nset : 0;
}

/* Sends the first keys of a batch.  All or nothing counts as done: after an error nobody knows
 * by which size the answers were computed. */
static int send_keys(struct foreign *f, size_t count)
{
    perhaps_cluster *c = f->c;
    struct exchange exchange = { .count = count,
                                 .write = write_bits,
                                 .take = take_bits,
                                 .context = f,
                                 .nreplicas = c->replicas && !f->adds ? count : 0,
                                 .acknowledged = f->adds };
    int error = warn_of_codec(c);
    if (!error)
        error = check_config(c);
    if (!error)
        error = exchange_run(&c->nodes, &exchange);
    return error ? error : check_config(c);
}

/* Asks for a batch of keys, or adds it.  Keys before one that the codec does not take are dealt
 * with. */
static int run_batch(perhaps_cluster *c, const struct perhaps_keys *keys, bool adds,
                     size_t *done)
{
    struct foreign f = { .c = c, .keys = keys, .adds = adds };
    size_t ngood;
    *done = 0;
    if (!keys->each && keys->hashed)
        return nodes_fail(&c->nodes, PERHAPS_ERR_UNSUPPORTED,
                          "Redisson's filters hash keys in their own way");
    int error = 0;
    const char *problem = prepare_keys(&f, &ngood);
    memset(c->batch->answer, UNKNOWN, keys->count);
    c->batch->count = keys->count;
    if (problem == no_memory)
        error = nodes_fail_plainly(&c->nodes, PERHAPS_ERR_MEMORY);
    else if (ngood)
        error = send_keys(&f, ngood);
    *done = error ? 0 : ngood;
    if (error)
        memset(c->batch->answer, UNKNOWN, keys->count);
    free(f.coded);
    if (error || !problem)
        return error;
    return nodes_fail(&c->nodes, PERHAPS_ERR_ARGUMENT, "%s", problem);
}

static int foreign_ask(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done)
{
    return run_batch(c, keys, false, done);
}

static int foreign_add(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done)
{
    return run_batch(c, keys, true, done);
}

/* ---- Statistics ------------------------------------------------------------------------ */

static int take_bitcount(const struct request *request, const struct reply *reply)
{
    struct foreign *f = request->context;
    f->nset =
        reply->type == REDIS_REPLY_INTEGER && reply->number > 0 ? (double)reply->number : 0;
    return 0;
}

/* Redisson keeps no count.  It estimates the number of keys from the bits that are set, and
 * this does the same (Swamidass and Baldi, Mathematical Correction for Fingerprint Similarity
 * Measures, 2007).  If all bits are set, half a bit is taken off: the estimate would be
 * infinite. */
static int estimate(perhaps_cluster *c, struct perhaps_cluster_stats *stats)
{
    struct foreign f = { .c = c };
    struct exchange exchange = { .count = 1,
                                 .command = (const char *const[]){ "BITCOUNT", c->key, NULL },
                                 .take = take_bitcount,
                                 .context = &f };
    double nbits = (double)c->redisson.nbits, nhashes = c->redisson.nhashes;
    int error = exchange_run(&c->nodes, &exchange);
    stats->load = fmin(f.nset / nbits, 1);
    stats->fpr_now = pow(stats->load, nhashes);
    stats->keys =
        (uint64_t)(-nbits / nhashes * log1p(-fmin(stats->load, 1 - 0.5 / nbits)) + .5);
    stats->keys_different = stats->keys;
    return error;
}

static int foreign_stats(perhaps_cluster *c, struct perhaps_cluster_stats *stats)
{
    int error = check_config(c);
    if (!error)
        error = estimate(c, stats);
    if (error)
        return error;
    const struct redisson *config = &c->redisson;
    stats->hash = "highway";
    stats->layers = stats->partitions = 1;
    stats->plan = (struct perhaps_plan){ .kind = "bloom",
                                         .capacity = config->capacity,
                                         .fpr = config->fpr,
                                         .fpr_predicted = config->fpr,
                                         .fpr_until = config->capacity,
                                         .body_nbytes = (config->nbits + 7) / 8,
                                         .nfields = 2,
                                         .field_name = { "nbits", "key_bits" },
                                         .field = { config->nbits, config->nhashes } };
    stats->memory_nbytes = stats->plan.body_nbytes;
    stats->largest_nbytes = stats->smallest_nbytes = stats->memory_nbytes;
    if (config->capacity)
        stats->plan.bits_per_key = (double)config->nbits / (double)config->capacity;
    stats->nodes = 1;
    return 0;
}

/* ---- All of it ------------------------------------------------------------------------- */

const struct dialect redisson_dialect = { .layout = "redisson",
                                          .before = "",
                                          .behind = "",
                                          .open = foreign_open,
                                          .ask = foreign_ask,
                                          .add = foreign_add,
                                          .stats = foreign_stats };
