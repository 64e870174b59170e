/* client.c - the public calls, and the table of the two ways in which a filter may lie on
 * servers.  A call is checked here, cut into batches, and handed on to the dialect. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "layers.h"
#include "operations.h"
#include "room.h"

/* Used where neither the address nor the options give a time. */
enum { TIMEOUT_MS = 3000, PATIENCE_MS = 30000 };

/* ---- Dialects -------------------------------------------------------------------------- */

/* Our own layout: everything can be done with it. */
static const struct dialect own_dialect = { .layout = "perhaps",
                                            .before = "perhaps:{",
                                            .behind = "}",
                                            .is_opened = true,
                                            .open = layers_open,
                                            .ask = keys_ask,
                                            .add = keys_add,
                                            .settle = keys_settle,
                                            .stats = stats_collect,
                                            .create = create_empty,
                                            .delete = delete_filter,
                                            .upload = transfer_up,
                                            .download = transfer_down,
                                            .verify = stats_verify,
                                            .recount = recount };

/* Returns 0 if the operation can be done; else PERHAPS_ERR_UNSUPPORTED, and says why.  Only
 * filters of Redisson lack any. */
static int check_can(perhaps_cluster *c, bool can, const char *why)
{
    return can ? 0 : nodes_fail(&c->nodes, PERHAPS_ERR_UNSUPPORTED, "%s", why);
}

/* A filter of Redisson need not be opened, since each batch reads its config anyway. */
static int check_open(perhaps_cluster *c)
{
    return c->open || !c->dialect->is_opened
               ? 0
               : nodes_fail(&c->nodes, PERHAPS_ERR_ARGUMENT, "is not open");
}

/* Begins a public call that asks servers: its deadline, and patience that is whole again. */
static void begin_call(perhaps_cluster *c)
{
    c->nodes.impatient = false;
    c->nodes.ends_ms = c->nodes.deadline_ms ? now_ms() + c->nodes.deadline_ms : 0;
}

int perhaps_cluster_create(perhaps_cluster *c, const struct perhaps_options *options,
                           uint64_t partitions)
{
    begin_call(c);
    int error = check_can(c, c->dialect->create,
                          "let Redisson make its filters (tryInit), or leave out "
                          "layout=redisson");
    return error ? error : c->dialect->create(c, options, partitions);
}

int perhaps_cluster_open(perhaps_cluster *c)
{
    begin_call(c);
    return c->dialect->open(c);
}

int perhaps_cluster_delete(perhaps_cluster *c)
{
    begin_call(c);
    int error = check_can(c, c->dialect->delete,
                          "let Redisson delete its filters, or leave out layout=redisson");
    return error ? error : c->dialect->delete (c);
}

int perhaps_cluster_upload(perhaps_cluster *c, const perhaps_filter *filter,
                           uint64_t partitions)
{
    begin_call(c);
    int error = check_can(c, c->dialect->upload,
                          "a filter of ours is none of Redisson's: leave out "
                          "layout=redisson");
    return error ? error : c->dialect->upload(c, filter, partitions);
}

int perhaps_cluster_download(perhaps_cluster *c, const char *path)
{
    begin_call(c);
    int error =
        check_can(c, c->dialect->download, "a filter of Redisson's has no file of ours");
    if (!error)
        error = check_open(c);
    return error ? error : c->dialect->download(c, path);
}

/* Returns how many keys the next batch has.  With keys that are hashed already, one of a wrong
 * length becomes the first of a batch, which fails as a whole.  So all keys before it have been
 * dealt with. */
static size_t batch_size(const perhaps_cluster *c, const struct perhaps_keys *keys, size_t at)
{
    size_t left = keys->count - at, n = 1;
    if (left > BATCH_KEYS)
        left = BATCH_KEYS;
    size_t only = perhaps_hash_takes(c->about.hash);
    if (!only || (!keys->each && !keys->offsets))
        return left;
    while (n < left && perhaps_keys_at(keys, at + n).nbytes == only)
        n++;
    return n;
}

/* Copies the answers of the batch, which has n keys; NULL is allowed.  Returns how many are
 * "perhaps". */
static size_t tell_answers(const perhaps_cluster *c, uint8_t *answers, size_t n)
{
    static const uint8_t told[] = { [UNKNOWN] = PERHAPS_ANSWER_UNKNOWN,
                                    [ABSENT] = PERHAPS_ANSWER_NO,
                                    [PRESENT] = PERHAPS_ANSWER_PERHAPS,
                                    [ADDED] = PERHAPS_ANSWER_NO,
                                    [ADDED_TOO] = PERHAPS_ANSWER_PERHAPS };
    size_t npresent = 0;
    for (size_t i = 0; i < n; i++) {
        npresent += told[c->batch->answer[i]] == PERHAPS_ANSWER_PERHAPS;
        if (answers)
            answers[i] = told[c->batch->answer[i]];
    }
    return npresent;
}

/* Tells the servers what was used.  All keys are in: what cannot be told now stays reserved,
 * and is no error unless the filter is gone. */
static int settle_room(perhaps_cluster *c)
{
    int error = c->dialect->settle ? c->dialect->settle(c) : 0;
    return handle_is_gone(error) || error == PERHAPS_ERR_LOST ? error : 0;
}

int perhaps_cluster_add_many(perhaps_cluster *c, const struct perhaps_keys *keys,
                             uint8_t *answers, size_t *done)
{
    size_t ndone = 0;
    begin_call(c);
    int error = check_open(c);
    if (answers)
        memset(answers, PERHAPS_ANSWER_UNKNOWN, keys->count);
    while (ndone < keys->count && !error) {
        size_t n = batch_size(c, keys, ndone), some_done;
        struct perhaps_keys some = perhaps_keys_slice(keys, ndone, n);
        c->more = keys->count - ndone - n;
        error = c->dialect->add(c, &some, &some_done);
        tell_answers(c, answers ? answers + ndone : NULL, c->batch->count);
        ndone += some_done;
    }
    if (done)
        *done = ndone;
    return error || !ndone ? error : settle_room(c);
}

void perhaps_cluster_rest(perhaps_cluster *c)
{
    begin_call(c);
    room_give_back(c);
}

/* Adds to the problem how many keys have no answer. */
static void tell_unknown(perhaps_cluster *c, size_t nunknown, size_t count)
{
    struct nodes *nodes = &c->nodes;
    size_t nbytes = strlen(nodes->problem);
    if (nunknown && count > 1)
        snprintf(nodes->problem + nbytes, sizeof nodes->problem - nbytes,
                 "; %zu of %zu keys are unknown", nunknown, count);
}

/* Returns whether an error concerns all later keys, too: so the call ends. */
static bool ends_call(int error)
{
    return error == PERHAPS_ERR_STOPPED || error == PERHAPS_ERR_DEADLINE ||
           error == PERHAPS_ERR_MEMORY || error == PERHAPS_ERR_MISSING ||
           error == PERHAPS_ERR_CHANGED || error == PERHAPS_ERR_ARGUMENT;
}

/* A batch that fails does not keep the others from being asked: other servers may be well.  The
 * first error is that of the call. */
int perhaps_cluster_contains_many(perhaps_cluster *c, const struct perhaps_keys *keys,
                                  uint8_t *answers, size_t *npresent)
{
    char problem[sizeof c->nodes.problem];
    size_t nknown = 0, npresent_all = 0, n;
    begin_call(c);
    int first = 0, error = check_open(c);
    if (answers)
        memset(answers, PERHAPS_ANSWER_UNKNOWN, keys->count);
    if (npresent)
        *npresent = 0;
    if (error)
        return error;
    room_give_back_idle(c);
    for (size_t at = 0; at < keys->count && !ends_call(error); at += n) {
        n = batch_size(c, keys, at);
        struct perhaps_keys some = perhaps_keys_slice(keys, at, n);
        size_t done;
        error = c->dialect->ask(c, &some, &done);
        if (error && !first) {
            first = error;
            memcpy(problem, c->nodes.problem, sizeof problem);
        }
        npresent_all += tell_answers(c, answers ? answers + at : NULL, c->batch->count);
        for (size_t i = 0; i < c->batch->count; i++)
            nknown += c->batch->answer[i] != UNKNOWN;
    }
    if (npresent)
        *npresent = npresent_all;
    if (first) {
        memcpy(c->nodes.problem, problem, sizeof problem);
        tell_unknown(c, keys->count - nknown, keys->count);
    }
    return first;
}

int perhaps_cluster_add(perhaps_cluster *c, const void *key, size_t nbytes)
{
    struct perhaps_keys keys = perhaps_keys_packed(key, nbytes, 1);
    uint8_t answer;
    int error = perhaps_cluster_add_many(c, &keys, &answer, NULL);
    return error ? error : answer;
}

int perhaps_cluster_contains(perhaps_cluster *c, const void *key, size_t nbytes)
{
    struct perhaps_keys keys = perhaps_keys_packed(key, nbytes, 1);
    uint8_t answer;
    int error = perhaps_cluster_contains_many(c, &keys, &answer, NULL);
    return error ? error : answer;
}

/* The counters of the handle are added here, since both dialects have them. */
const char *perhaps_cluster_note(const perhaps_cluster *c)
{
    return c->about.note;
}

int perhaps_cluster_stats_of(perhaps_cluster *c, struct perhaps_cluster_stats *stats)
{
    *stats = (struct perhaps_cluster_stats){ .layout = c->dialect->layout };
    begin_call(c);
    int error = check_open(c);
    room_give_back(c);
    if (!error)
        error = c->dialect->stats(c, stats);
    if (error)
        return error;
    stats->commands = c->nodes.commands;
    stats->retries = c->nodes.retries;
    stats->redirections = c->nodes.redirections;
    stats->trips = c->nodes.trips;
    stats->doubtful = c->doubtful;
    return 0;
}

int perhaps_cluster_verify(perhaps_cluster *c, struct perhaps_cluster_verdict *verdict)
{
    *verdict = (struct perhaps_cluster_verdict){ 0 };
    begin_call(c);
    int error = check_can(c, c->dialect->verify,
                          "a filter of Redisson's has nothing to compare its bits with");
    return error ? error : c->dialect->verify(c, verdict);
}

int perhaps_cluster_recount(perhaps_cluster *c, uint64_t *was, uint64_t *now)
{
    uint64_t ignored[2];
    was = was ? was : &ignored[0];
    now = now ? now : &ignored[1];
    *was = *now = 0;
    begin_call(c);
    int error = check_can(c, c->dialect->recount, "a filter of Redisson's has no counts");
    return error ? error : c->dialect->recount(c, was, now);
}

/* ---- The handle ------------------------------------------------------------------------ */

/* A password in the address counts more than the options, and so does a file.  A user in the
 * address goes with any password. */
static void take_login(struct access *access, const struct address *a,
                       const struct perhaps_cluster_options *options)
{
    bool is_given = a->user || a->password || a->password_file;
    access->user = is_given ? a->user : options->user;
    access->password_file = a->password_file;
    access->sentinel_password_file = a->sentinel_password_file;
    if (a->password || a->password_file)
        access->password = a->password;
    else if (options->login)
        access->login = options->login;
    else
        access->password = options->password;
}

static void take_access(struct nodes *nodes, const struct address *a)
{
    struct access *access = &nodes->access;
    access->client = a->client;
    access->database = a->database;
    access->secure = a->secure;
    access->settings = (struct tls_settings){ .cacert = a->cacert,
                                              .cert = a->cert,
                                              .key = a->key,
                                              .sni = a->sni,
                                              .insecure = a->insecure };
    nodes->seeds = a->servers;
    nodes->nseeds = a->nservers;
    nodes->master = a->master;
    nodes->maps = a->maps;
    nodes->nmaps = a->nmaps;
}

/* A setting in the address counts more than one in the options.  Texts of the options are not
 * copied: the caller keeps them as long as the handle. */
static void take_settings(perhaps_cluster *c, const struct perhaps_cluster_options *options)
{
    const struct address *a = &c->address;
    struct nodes *nodes = &c->nodes;
    take_login(&nodes->access, a, options);
    take_access(nodes, a);
    nodes->timeout_ms = a->timeout_ms ? a->timeout_ms : options->timeout_ms;
    nodes->patience_ms = a->patience_ms ? a->patience_ms : options->patience_ms;
    nodes->deadline_ms = a->deadline_ms ? a->deadline_ms : options->deadline_ms;
    if (!nodes->timeout_ms)
        nodes->timeout_ms = TIMEOUT_MS;
    if (!nodes->patience_ms)
        nodes->patience_ms = PATIENCE_MS;
    c->replicas = a->replicas_given ? a->replicas : options->replicas;
    nodes->acknowledge = a->acknowledge_given ? a->acknowledge : options->acknowledge;
    c->without_secret = options->without_secret;
    handle_take_hashing(c, &options->hashing);
    nodes->reach = options->reach;
    nodes->stopped = options->stopped;
    nodes->context = c->context = options->context;
    c->progress = options->progress;
    c->warn = options->warn;
}

/* Sets what follows from the address: the dialect, the Redis keys, and the slot of the
 * description. */
static void take_names(perhaps_cluster *c)
{
    const struct address *a = &c->address;
    if (a->redisson)
        c->dialect = &redisson_dialect;
    snprintf(c->key, sizeof c->key, "%s%s%s", c->dialect->before, a->name, c->dialect->behind);
    c->nodes.home = slot_of(c->key, strlen(c->key));
    c->prefix_nbytes = (size_t)snprintf(c->prefix, sizeof c->prefix, "perhaps:{%s/", a->name);
}

/* Returns the address without its password and settings, for messages; NULL if there is no
 * memory.  Of a text that is no address it shows only what stands behind the last '@', since a
 * password may stand before it. */
static char *show(const struct address *a, const char *url)
{
    char server[ENDPOINT_NBYTES], *shown = NULL;
    size_t nbytes;
    const char *at = strrchr(url, '@');
    if (!a->servers)
        return strdup(at ? at + 1 : url);
    FILE *out = open_memstream(&shown, &nbytes);
    if (!out)
        return NULL;
    fputs(a->scheme, out);
    for (unsigned i = 0; i < a->nservers; i++) {
        endpoint_show(&a->servers[i], server);
        fprintf(out, "%s%s", i ? "," : "", server);
    }
    fprintf(out, "/%s", a->name);
    if (fclose(out) == 0)
        return shown;
    free(shown);
    return NULL;
}

/* A wrong address is an error with a handle, which tells what is wrong; without memory there is
 * no handle. */
int perhaps_cluster_new(const struct perhaps_cluster_options *options,
                        perhaps_cluster **cluster)
{
    static const uint64_t unused[PERHAPS_RESERVED];
    *cluster = NULL;
    if (memcmp(options->reserved, unused, sizeof unused) != 0)
        return PERHAPS_ERR_ARGUMENT;
    perhaps_cluster *c = *cluster = calloc(1, sizeof *c);
    if (!c)
        return PERHAPS_ERR_MEMORY;
    slot_map_init(&c->nodes.map);
    c->dialect = &own_dialect;
    const char *problem = address_read(options->url, &c->address);
    if (!problem) {
        take_settings(c, options);
        take_names(c);
    }
    c->shown = show(&c->address, options->url);
    c->batch = calloc(1, sizeof *c->batch);
    if (problem == no_memory || !c->batch || !c->shown) {
        perhaps_cluster_free(c);
        *cluster = NULL;
        return PERHAPS_ERR_MEMORY;
    }
    return problem ? nodes_fail(&c->nodes, PERHAPS_ERR_ADDRESS, "%s", problem) : 0;
}

/* The secret is wiped, so that it does not stay in memory that is given to others. */
void perhaps_cluster_free(perhaps_cluster *c)
{
    if (!c)
        return;
    c->nodes.ends_ms = 0;
    c->parting = true;
    layers_close(c);
    nodes_release(&c->nodes);
    address_release(&c->address);
    free(c->slot);
    free(c->shown);
    free(c->batch);
    explicit_bzero(c->secret, sizeof c->secret);
    free(c);
}

const char *perhaps_cluster_problem(const perhaps_cluster *cluster)
{
    return cluster ? cluster->nodes.problem : perhaps_strerror(PERHAPS_ERR_MEMORY);
}

const char *perhaps_cluster_name(const perhaps_cluster *cluster)
{
    return cluster->shown;
}
