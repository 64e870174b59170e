/* web.c - a filter file on a web server: see web.h. */
#include "web.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../base/messages.h"
#include "../base/stop.h"
#include "fetch.h"
#include "modules.h"
#include "secret.h"

enum { CONNECTIONS = 8 };

struct web {
    const struct settings *settings;
    const char *address;
    perhaps_remote *remote;
    struct fetch *fetch;
    pthread_mutex_t lock; /* of both */
};

/* The calls of the module. */
static struct {
    __typeof__(fetch_new) *new;
    __typeof__(fetch_bring) *bring;
    __typeof__(fetch_problem) *problem;
    __typeof__(fetch_free) *free;
} calls;

bool is_web(const char *path)
{
    return strncmp(path, "https://", 8) == 0 || strncmp(path, "http://", 7) == 0;
}

#ifdef FETCH_FILE

static void load_calls(void)
{
    static const char what[] = "what asks web servers";
    if (calls.new)
        return;
    void *module = module_load(FETCH_FILE, what);
    module_find(module, what, "fetch_bring", &calls.bring);
    module_find(module, what, "fetch_problem", &calls.problem);
    module_find(module, what, "fetch_free", &calls.free);
    module_find(module, what, "fetch_new", &calls.new);
}

#else

static void load_calls(void)
{
    fail(
        "filters on web servers are not in this build: build perhaps with -DPERHAPS_REMOTE=ON");
}

#endif

/* Returns what an error means here. */
static const char *meaning(const struct web *web, int error)
{
    switch (error) {
    case PERHAPS_ERR_IO:
        return calls.problem(web->fetch);
    case PERHAPS_ERR_JOURNAL:
        return "is a live file, whose journal would be missed: publish a copy (perhaps copy)";
    case PERHAPS_ERR_UNSUPPORTED:
        return web->settings->check
                   ? "is being written in place, or of a kind that cannot be asked without "
                     "loading it: leave out --check, or download it"
                   : "is of a kind that cannot be asked without loading it: download it";
    default:
        return why(error);
    }
}

static bool stopped(void *unused)
{
    (void)unused;
    return stop_signal() != 0;
}

static void settle(struct web *web, int error)
{
    if (!error)
        return;
    if (error == PERHAPS_ERR_STOPPED)
        fail_interrupted("");
    if (error == PERHAPS_ERR_SECRET)
        hashing_fail(web->settings, web->address);
    fail("%s: %s", web->address, meaning(web, error));
}

void web_open(struct web **web, const struct settings *settings,
              const struct perhaps_hashing *hashing, const char *address)
{
    load_calls();
    const struct fetch_options how = { .url = address,
                                       .connections = CONNECTIONS,
                                       .stopped = stopped };
    const struct perhaps_remote_options options = { .check = settings->check,
                                                    .without_secret = !needs_secret(settings),
                                                    .hashing = *hashing };
    struct web *w = *web = allocate_zeroed(1, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    w->settings = settings;
    w->address = address;
    int error = calls.new(&how, &w->fetch);
    if (error)
        fail("%s: %s", address, why(error));
    error = perhaps_remote_new(&options, &w->remote);
    if (!error)
        error = calls.bring(w->fetch, w->remote);
    settle(w, error);
}

void web_close(struct web *web)
{
    if (!web)
        return;
    if (calls.free)
        calls.free(web->fetch);
    perhaps_remote_free(web->remote);
    pthread_mutex_destroy(&web->lock);
    free(web);
}

/* Asks for the keys, in as many questions as it takes. */
static int ask_keys(struct web *web, const struct perhaps_keys *keys, bool *present,
                    size_t *ndone)
{
    int error = 0;
    for (size_t at = 0, asked; at < keys->count && !error; at += asked) {
        error = perhaps_remote_ask(web->remote, keys, at, keys->count - at, &asked);
        if (!error)
            error = calls.bring(web->fetch, web->remote);
        if (!error)
            error = perhaps_remote_answers(web->remote, present + at);
        if (!error)
            *ndone = at + asked;
    }
    return error;
}

bool web_ask(struct web *web, struct block *block, size_t *npresent)
{
    const struct perhaps_keys keys = perhaps_keys_each(block->key, block->count);
    bool *present = block_bools(block);
    *npresent = 0;
    block->ndone = 0;
    if (!block->count)
        return true;
    pthread_mutex_lock(&web->lock);
    int error = ask_keys(web, &keys, present, &block->ndone);
    if (error)
        block->problem = meaning(web, error);
    pthread_mutex_unlock(&web->lock);
    for (size_t i = 0; i < block->ndone; i++)
        *npresent += present[i];
    return block_met(block, error);
}

void web_stats(const struct web *web, struct perhaps_stats *stats)
{
    perhaps_remote_stats_of(web->remote, stats);
}

const char *web_note(const struct web *web)
{
    return perhaps_remote_note(web->remote);
}

uint64_t web_nbytes(const struct web *web)
{
    return perhaps_remote_nbytes(web->remote);
}
