/* foreign.c - filters that Redisson made: one string of bits, and a hash that says what they
 * mean.  Both clients see each other's keys. */
#include <math.h>
#include <string.h>

#include "work.h"

enum { VALUE_NBYTES = 4096 };

struct foreign {
    perhaps_cluster *c;
    const struct perhaps_keys *keys;
    size_t first;
    char config_key[NAME_NBYTES_MOST + 16];
    size_t config_key_nbytes;
    bool adds;
    double nset; /* bits */
};

static int read_config(perhaps_cluster *c, const redisReply *values)
{
    struct redisson_value value[REDISSON_FIELDS] = { { 0 } };
    struct redisson config;
    bool missing = true;
    if (values->type != REDIS_REPLY_ARRAY || values->elements != REDISSON_FIELDS)
        return cluster_fail(c, PERHAPS_ERR_PROTOCOL, "a server answered strangely to HMGET");
    for (size_t i = 0; i < REDISSON_FIELDS; i++) {
        const redisReply *element = values->element[i];
        if (element->type != REDIS_REPLY_STRING)
            continue;
        value[i] = (struct redisson_value){ element->str, (size_t)element->len };
        missing = false;
    }
    if (missing)
        return cluster_fail(c, PERHAPS_ERR_MISSING,
                            "Redisson has no filter of that name there");
    const char *problem = redisson_read(value, &config);
    if (problem)
        return cluster_fail(c, PERHAPS_ERR_VERSION, "%s", problem);
    if (c->open && (config.nbits != c->redisson.nbits || config.nhashes != c->redisson.nhashes))
        return cluster_fail(c, PERHAPS_ERR_CHANGED,
                            "was made anew with another size since it was opened");
    c->redisson = config;
    return 0;
}

static unsigned config_slot(void *context, size_t i)
{
    const struct foreign *f = context;
    (void)i;
    return slot_of(f->config_key, f->config_key_nbytes);
}

static void write_config(void *context, size_t i, struct resp *out)
{
    const struct foreign *f = context;
    (void)i;
    resp_command(out, 2 + REDISSON_FIELDS, 256);
    resp_text(out, "HMGET");
    resp_bytes(out, f->config_key, f->config_key_nbytes);
    for (unsigned k = 0; k < REDISSON_FIELDS; k++)
        resp_text(out, redisson_field[k]);
}

static int take_config(void *context, size_t i, const struct reply *reply, bool again)
{
    const struct foreign *f = context;
    (void)i;
    (void)again;
    return read_config(f->c, reply->tree);
}

/* Before and after each batch, as Redisson's own scripts do: sizes that change in between would
 * make the answers wrong. */
static int check_config(perhaps_cluster *c)
{
    struct foreign f = { .c = c };
    f.config_key_nbytes = redisson_config_key(c->address.name, f.config_key);
    struct exchange exchange = { .count = 1,
                                 .slot = config_slot,
                                 .write = write_config,
                                 .take = take_config,
                                 .context = &f,
                                 .tree = true };
    return exchange_run(&c->nodes, &exchange);
}

int foreign_open(perhaps_cluster *c)
{
    int error = check_config(c);
    c->open = !error;
    return error;
}

/* ---- Keys ------------------------------------------------------------------------------ */

static unsigned bits_slot(void *context, size_t i)
{
    const struct foreign *f = context;
    (void)i;
    return f->c->slot;
}

static void find_bits(const struct foreign *f, size_t i, uint64_t *bits)
{
    const struct perhaps_keys *keys = f->keys;
    const void *bytes = keys->each
                            ? keys->each[f->first + i].bytes
                            : (const char *)keys->packed + (f->first + i) * keys->key_nbytes;
    size_t nbytes = keys->each ? keys->each[f->first + i].nbytes : keys->key_nbytes;
    redisson_bits(&f->c->redisson, bytes, nbytes, bits);
}

/* The bits of a key: asked for, or set, which tells what they were. */
static void write_bits(void *context, size_t i, struct resp *out)
{
    const struct foreign *f = context;
    unsigned n = f->c->redisson.nhashes, nargs = f->adds ? 4 : 3;
    uint64_t bits[REDISSON_HASHES_MOST];
    find_bits(f, i, bits);
    resp_command(out, 2 + nargs * n, 128 + 48 * (size_t)n);
    resp_text(out, f->adds ? "BITFIELD" : "BITFIELD_RO");
    resp_text(out, f->c->key);
    for (unsigned k = 0; k < n; k++) {
        resp_text(out, f->adds ? "SET" : "GET");
        resp_text(out, "u1");
        resp_number(out, bits[k]);
        if (f->adds)
            resp_text(out, "1");
    }
}

static int take_bits(void *context, size_t i, const struct reply *reply, bool again)
{
    const struct foreign *f = context;
    uint8_t *answer = &f->c->work->answer[i];
    size_t nset = 0;
    if (reply->type != REDIS_REPLY_ARRAY || reply->count != f->c->redisson.nhashes)
        return cluster_fail(f->c, PERHAPS_ERR_PROTOCOL,
                            "a server answered strangely to BITFIELD");
    for (size_t k = 0; k < reply->count; k++)
        nset += reply->numbers[k] == 1;
    if (*answer != UNKNOWN)
        return 0;
    bool all = nset == reply->count;
    *answer = all && !(f->adds && again) ? PRESENT : ADDED;
    f->c->doubtful += all && f->adds && again;
    return 0;
}

static int run_chunk(perhaps_cluster *c, const struct perhaps_keys *keys, size_t first,
                     size_t count, bool adds)
{
    struct foreign f = { .c = c, .keys = keys, .first = first, .adds = adds };
    struct exchange exchange = { .count = count,
                                 .slot = bits_slot,
                                 .write = write_bits,
                                 .take = take_bits,
                                 .context = &f,
                                 .replicas = c->replicas && !adds,
                                 .acknowledge = adds ? c->acknowledge : 0 };
    memset(c->work->answer, UNKNOWN, count);
    int error = check_config(c);
    if (!error)
        error = exchange_run(&c->nodes, &exchange);
    return error ? error : check_config(c);
}

static int run_all(perhaps_cluster *c, const struct perhaps_keys *keys, bool adds, bool *answer,
                   size_t *npresent, size_t *done)
{
    size_t at = 0, found = 0;
    int error = 0;
    if (!keys->each && keys->hashed)
        return cluster_fail(c, PERHAPS_ERR_UNSUPPORTED,
                            "Redisson's filters hash keys in their own way");
    while (at < keys->count && !error) {
        size_t n = keys->count - at < CHUNK_KEYS ? keys->count - at : CHUNK_KEYS;
        error = run_chunk(c, keys, at, n, adds);
        for (size_t i = 0; i < n && !error; i++) {
            bool present = c->work->answer[i] == PRESENT;
            found += present;
            if (answer)
                answer[at + i] = present;
        }
        at += error ? 0 : n;
    }
    if (npresent)
        *npresent = found;
    if (done)
        *done = at;
    return error;
}

int foreign_add(perhaps_cluster *c, const struct perhaps_keys *keys, bool *was_present,
                size_t *done)
{
    return run_all(c, keys, true, was_present, NULL, done);
}

int foreign_contains(perhaps_cluster *c, const struct perhaps_keys *keys, bool *present,
                     size_t *npresent)
{
    return run_all(c, keys, false, present, npresent, NULL);
}

/* ---- Statistics ------------------------------------------------------------------------ */

static void write_bitcount(void *context, size_t i, struct resp *out)
{
    const struct foreign *f = context;
    (void)i;
    resp_command(out, 2, 256);
    resp_text(out, "BITCOUNT");
    resp_text(out, f->c->key);
}

static int take_bitcount(void *context, size_t i, const struct reply *reply, bool again)
{
    struct foreign *f = context;
    (void)i;
    (void)again;
    f->nset =
        reply->type == REDIS_REPLY_INTEGER && reply->number > 0 ? (double)reply->number : 0;
    return 0;
}

/* Redisson counts nothing; it estimates the number of keys from the bits as this does
 * (Swamidass and Baldi, Mathematical Correction for Fingerprint Similarity Measures, 2007). */
static int estimate(perhaps_cluster *c, struct perhaps_cluster_stats *stats)
{
    struct foreign f = { .c = c };
    struct exchange exchange = { .count = 1,
                                 .slot = bits_slot,
                                 .write = write_bitcount,
                                 .take = take_bitcount,
                                 .context = &f };
    double nbits = (double)c->redisson.nbits, nhashes = c->redisson.nhashes;
    int error = exchange_run(&c->nodes, &exchange);
    stats->load = fmin(f.nset / nbits, 1);
    stats->fpr_now = pow(stats->load, nhashes);
    stats->keys =
        (uint64_t)(-nbits / nhashes * log1p(-fmin(stats->load, 1 - 0.5 / nbits)) + .5);
    stats->keys_estimated = stats->keys;
    return error;
}

int foreign_stats(perhaps_cluster *c, struct perhaps_cluster_stats *stats)
{
    int error = check_config(c);
    if (!error)
        error = estimate(c, stats);
    if (error)
        return error;
    const struct redisson *config = &c->redisson;
    stats->layout = "redisson";
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
    cluster_count_work(c, stats);
    return 0;
}
