/* exchange.c - requests go to whoever holds their slots, all servers work at once, and what
 * came to nothing is tried again: elsewhere, or later. */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "nodes.h"

/* So much is sent while more is written, so that servers have something to do meanwhile. */
enum { SEND_NBYTES = 32 << 10 };

enum { POLL_MS = 100, BACKOFF_MS = 10, BACKOFF_MOST_MS = 500, HOPS_MOST = 16 };

/* What is known of a request. */
enum {
    SENT = 1, /* over a connection that broke */
    TAKEN = 2,
};

struct run {
    struct nodes *nodes;
    struct exchange *exchange;
    uint8_t *state;  /* of each request */
    uint32_t *later; /* those to be sent again */
    size_t nlater;
    uint64_t hops;     /* redirections that were followed */
    int64_t failed_ms; /* when something failed first; 0: nothing has */
    int error;
    bool ending;       /* after an error: only what is on its way is taken */
    char trouble[600]; /* what failed last, for the message when patience ends */
};

/* ---- Sending --------------------------------------------------------------------------- */

static void note(struct run *run, const struct link *link, const char *what)
{
    snprintf(run->trouble, sizeof run->trouble, "%s:%u: %s", link->at.host, link->at.port,
             what);
}

static bool is_needed(const struct run *run, uint32_t i)
{
    return i < run->exchange->count - run->exchange->noptional;
}

static void put_off(struct run *run, uint32_t i)
{
    if (is_needed(run, i))
        run->later[run->nlater++] = i;
}

/* What it had been sent is put off; nobody knows whether that was done, unless nothing was sent
 * at all. */
static void give_up_link(struct run *run, struct link *link)
{
    uint32_t entry;
    note(run, link, link->trouble);
    run->nodes->stale = true;
    while (link_forget(link, &entry)) {
        if (entry >= QUEUE_ASKING)
            continue;
        run->state[entry] |= link->sent ? SENT : 0;
        put_off(run, entry);
    }
}

/* false: it cannot be reached now. */
static bool is_open(struct run *run, struct link *link)
{
    bool open = nodes_open(run->nodes, link);
    if (!open)
        give_up_link(run, link);
    return open;
}

static void send_to(struct run *run, struct link *link, uint32_t i, bool asking)
{
    if (!link) {
        run->error = nodes_fail(run->nodes, PERHAPS_ERR_MEMORY, "no memory");
        return;
    }
    if (!is_open(run, link)) {
        put_off(run, i);
        return;
    }
    if (asking) {
        resp_command(&link->out, 1, 16);
        resp_text(&link->out, "ASKING");
        if (!link_queue(link, QUEUE_ASKING)) {
            give_up_link(run, link);
            put_off(run, i);
            return;
        }
    }
    run->exchange->write(run->exchange->context, i, &link->out);
    run->nodes->commands++;
    if (!link_queue(link, i)) {
        give_up_link(run, link);
        put_off(run, i);
    } else if (link->out.nbytes - link->out_tried >= SEND_NBYTES && !link_send(link)) {
        give_up_link(run, link);
    }
}

/* Nobody has the slot: a master died a moment ago, or its part of the cluster is lost. */
static void put_off_slot(struct run *run, unsigned slot, uint32_t i)
{
    const struct endpoint *seed = &run->nodes->seed;
    snprintf(run->trouble, sizeof run->trouble, "%s:%u: the cluster has nobody for slot %u",
             seed->host, seed->port, slot);
    run->nodes->stale = true;
    put_off(run, i);
}

static void send_request(struct run *run, uint32_t i)
{
    const struct exchange *exchange = run->exchange;
    if (!exchange->slot) {
        send_to(run, exchange->only, i, false);
        return;
    }
    unsigned slot = exchange->slot(exchange->context, i);
    if (run->nodes->map.master[slot] == NOBODY)
        put_off_slot(run, slot, i);
    else
        send_to(run,
                exchange->replicas ? nodes_any(run->nodes, slot)
                                   : nodes_master(run->nodes, slot),
                i, false);
}

/* ---- Taking ---------------------------------------------------------------------------- */

static const char *text_of(const struct reply *reply, size_t *nbytes)
{
    *nbytes = reply->tree ? (size_t)reply->tree->len : reply->text_nbytes;
    return reply->tree ? reply->tree->str : reply->text;
}

static void note_reply(struct run *run, const struct link *link, const struct reply *reply)
{
    size_t nbytes;
    const char *text = text_of(reply, &nbytes);
    snprintf(run->trouble, sizeof run->trouble, "%s:%u: %.*s", link->at.host, link->at.port,
             (int)(nbytes < 200 ? nbytes : 200), text);
    for (char *at = run->trouble; *at; at++) /* one line, whatever a server says */
        if (iscntrl((unsigned char)*at))
            *at = '?';
}

static int fail_reply(struct run *run, int error, const char *advice)
{
    return nodes_fail(run->nodes, error, "%s%s", run->trouble, advice);
}

static bool begins_with(const char *text, size_t nbytes, const char *word)
{
    size_t length = strlen(word);
    return nbytes >= length && memcmp(text, word, length) == 0;
}

static int refused(struct run *run, const struct reply *reply)
{
    size_t nbytes;
    const char *text = text_of(reply, &nbytes);
    bool secret = begins_with(text, nbytes, "NOAUTH") || begins_with(text, nbytes, "WRONGPASS");
    return fail_reply(run, PERHAPS_ERR_REFUSED,
                      secret ? ": give user and password in the address, or REDISCLI_AUTH"
                             : "");
}

/* Follows what an error reply asks for. */
static void redirect(struct run *run, struct link *link, uint32_t i, const struct reply *reply)
{
    struct redirection to;
    size_t nbytes;
    const char *text = text_of(reply, &nbytes);
    redirection_read(text, nbytes, &to);
    note_reply(run, link, reply);
    run->nodes->stale |= to.refresh;
    if (!to.to.host[0])
        memcpy(to.to.host, link->at.host, sizeof to.to.host);
    bool follows = (to.verdict == REPLY_MOVED || to.verdict == REPLY_ASK) &&
                   !run->exchange->only &&
                   run->hops < HOPS_MOST * (uint64_t)run->exchange->count;
    if (follows) {
        run->hops++;
        run->nodes->redirections++;
        if (to.verdict == REPLY_MOVED)
            slot_map_move(&run->nodes->map, to.slot, &to.to);
        send_to(run, nodes_link(run->nodes, &to.to, false), i, to.verdict == REPLY_ASK);
        return;
    }
    if (!run->nodes->cluster && begins_with(text, nbytes, "READONLY")) {
        run->error = fail_reply(run, PERHAPS_ERR_REFUSED, ": it is a replica: give its master");
        return;
    }
    switch (to.verdict) {
    case REPLY_FULL:
        run->error = fail_reply(run, PERHAPS_ERR_SERVER_FULL,
                                ": raise its maxmemory or add servers to the cluster");
        break;
    case REPLY_REFUSED:
        run->error = refused(run, reply);
        break;
    case REPLY_WRONGTYPE:
        run->error = fail_reply(run, PERHAPS_ERR_TAKEN,
                                ": something else has that name: choose another one");
        break;
    case REPLY_STRANGE:
        run->error = fail_reply(run, PERHAPS_ERR_PROTOCOL, "");
        break;
    default:
        put_off(run, i);
    }
}

/* 0: taken; else it is an error that redirect() is to deal with. */
static bool is_dealt_with(struct run *run, uint32_t i, const struct reply *reply)
{
    struct exchange *exchange = run->exchange;
    int refusal = exchange->refuse ? exchange->refuse(exchange->context, i, reply) : 1;
    if (refusal < 0)
        run->error = refusal;
    return refusal <= 0;
}

static void take(struct run *run, struct link *link, uint32_t i, const struct reply *reply)
{
    struct exchange *exchange = run->exchange;
    bool is_error = reply->type == REDIS_REPLY_ERROR;
    if (i >= QUEUE_ASKING) {
        if (!is_error)
            return;
        note_reply(run, link, reply);
        if (i == QUEUE_GREETING)
            run->error = refused(run, reply);
        return; /* without ASKING the request itself will be redirected again */
    }
    if (is_error) {
        if (!run->ending && !is_dealt_with(run, i, reply))
            redirect(run, link, i, reply);
        return;
    }
    if (exchange->take)
        run->error = exchange->take(exchange->context, i, reply, run->state[i] & SENT);
    run->state[i] |= TAKEN;
    if (!exchange->only && is_needed(run, i)) /* 'only' asks for the map, and such */
        link->chosen = link->used = true;
}

static void take_all(struct run *run, struct link *link)
{
    bool failed = false;
    const struct reply *reply;
    uint32_t entry;
    while (!run->error && link->context && (reply = link_next(link, &entry, &failed)))
        take(run, link, entry, reply);
    if (failed)
        give_up_link(run, link);
}

/* ---- Waiting --------------------------------------------------------------------------- */

static bool stopped(const struct nodes *nodes)
{
    return nodes->stopped && nodes->stopped(nodes->context);
}

static int fail_stopped(struct nodes *nodes)
{
    return nodes_fail(nodes, PERHAPS_ERR_STOPPED, "interrupted");
}

/* The links that wait for something, and what for.  Returns how many; 0: none. */
static size_t watch(struct nodes *nodes, struct pollfd *events, struct link **watched)
{
    size_t n = 0;
    for (size_t i = 0; i < nodes->nlinks; i++) {
        struct link *link = nodes->links[i];
        if (!link->context || link->waiting == 0)
            continue;
        bool sends = link->out_sent < link->out.nbytes;
        events[n] = (struct pollfd){ .fd = link->context->fd,
                                     .events = (short)(POLLIN | (sends ? POLLOUT : 0)) };
        watched[n++] = link;
    }
    return n;
}

static void serve(struct run *run, struct link *link, short happened)
{
    if (happened & (POLLOUT | POLLERR | POLLHUP) && !link_send(link)) {
        give_up_link(run, link);
        return;
    }
    if (happened & (POLLIN | POLLHUP)) {
        bool received = link_receive(link, run->exchange->tree);
        if (received)
            take_all(run, link);
        else
            give_up_link(run, link);
    }
    if (link->context && link->waiting &&
        now_ms() - link->heard_ms > (int64_t)run->nodes->timeout_ms) {
        link_fail(link, "did not answer for %u ms", run->nodes->timeout_ms);
        give_up_link(run, link);
    }
}

/* Until every request was answered or put off.  The servers get what fits, then what they send
 * is taken as it comes. */
static void pump(struct run *run)
{
    struct nodes *nodes = run->nodes;
    while (!run->error) {
        size_t most = nodes->nlinks + 1; /* a redirection may make more: for the next round */
        struct pollfd *events = calloc(most, sizeof *events);
        struct link **watched = calloc(most, sizeof *watched);
        size_t n = events && watched ? watch(nodes, events, watched) : 0;
        if (!events || !watched)
            run->error = nodes_fail(nodes, PERHAPS_ERR_MEMORY, "no memory");
        else if (n && poll(events, n, POLL_MS) < 0 && errno != EINTR)
            run->error = nodes_fail(nodes, PERHAPS_ERR_IO, "poll: %m");
        for (size_t i = 0; i < n && !run->error; i++)
            serve(run, watched[i], events[i].revents);
        free(events);
        free(watched);
        if (!run->error && n && stopped(nodes))
            run->error = fail_stopped(nodes);
        if (n == 0)
            return;
    }
}

/* ---- Replicas -------------------------------------------------------------------------- */

struct acknowledgement {
    struct nodes *nodes;
    struct link *link;
    unsigned wanted, timeout_ms;
};

static void write_wait(void *context, size_t i, struct resp *out)
{
    const struct acknowledgement *a = context;
    (void)i;
    resp_command(out, 3, 32);
    resp_text(out, "WAIT");
    resp_number(out, a->wanted);
    resp_number(out, a->timeout_ms);
}

static int take_wait(void *context, size_t i, const struct reply *reply, bool again)
{
    const struct acknowledgement *a = context;
    (void)i;
    (void)again;
    if (reply->type == REDIS_REPLY_INTEGER && reply->number >= (long long)a->wanted)
        return 0;
    return nodes_fail(a->nodes, PERHAPS_ERR_REPLICAS,
                      "%s:%u: %lld of %u replicas have acknowledged within %u ms: look after "
                      "its replicas, or ask for fewer (acknowledge=)",
                      a->link->at.host, a->link->at.port, reply->number, a->wanted,
                      a->timeout_ms);
}

/* A master that has just become a replica refuses, or breaks off what it waited for. */
static int refuse_wait(void *context, size_t i, const struct reply *reply)
{
    const struct acknowledgement *a = context;
    (void)i;
    size_t nbytes = reply->text_nbytes < 200 ? reply->text_nbytes : 200;
    a->nodes->stale = true;
    return nodes_fail(a->nodes, PERHAPS_ERR_UNREACHABLE, "%s:%u: %.*s", a->link->at.host,
                      a->link->at.port, (int)nbytes, reply->text);
}

/* Whether the replicas of a server have what it took in this round. */
static int wait_for_replicas(struct run *run, struct link *link)
{
    unsigned timeout_ms = run->nodes->timeout_ms;
    struct acknowledgement a = { run->nodes, link, run->exchange->acknowledge, timeout_ms };
    struct exchange wait = {
        .count = 1,
        .write = write_wait,
        .take = take_wait,
        .refuse = refuse_wait,
        .context = &a,
        .only = link,
    };
    run->nodes->timeout_ms = timeout_ms + timeout_ms / 2; /* beyond that of WAIT itself */
    int error = exchange_run(run->nodes, &wait);
    run->nodes->timeout_ms = timeout_ms;
    return error;
}

/* A server broke off before it could tell.  What was redirected may have been taken by another
 * than the map says now, so all is done again. */
static void repeat(struct run *run)
{
    snprintf(run->trouble, sizeof run->trouble, "%.599s", run->nodes->problem);
    for (size_t i = 0; i < run->exchange->count; i++)
        if (run->state[i] & TAKEN) {
            run->state[i] = SENT;
            put_off(run, (uint32_t)i);
        }
}

static void acknowledge(struct run *run)
{
    struct nodes *nodes = run->nodes;
    if (!run->exchange->acknowledge)
        return;
    bool broken = false;
    for (size_t i = 0; i < nodes->nlinks && !run->error; i++) {
        struct link *link = nodes->links[i];
        if (!link->chosen)
            continue;
        link->chosen = false;
        int error = link->context ? wait_for_replicas(run, link)
                                  : nodes_fail(nodes, PERHAPS_ERR_UNREACHABLE, "%s:%u: %s",
                                               link->at.host, link->at.port, link->trouble);
        broken |= error == PERHAPS_ERR_UNREACHABLE;
        if (error != PERHAPS_ERR_UNREACHABLE)
            run->error = error;
    }
    if (broken && !run->error)
        repeat(run);
}

/* ---- Again ----------------------------------------------------------------------------- */

static void sleep_ms(int64_t ms)
{
    struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    nanosleep(&time, NULL);
}

/* Doubles with each try, and differs from client to client. */
static int64_t backoff_ms(unsigned tries)
{
    int64_t most = BACKOFF_MS;
    while (tries-- > 1 && most < BACKOFF_MOST_MS)
        most *= 2;
    return most / 2 + now_ms() % (most / 2 + 1);
}

/* Waits a while before the next try.  Returns an error when patience is at its end. */
static int wait_a_while(struct run *run, unsigned tries)
{
    struct nodes *nodes = run->nodes;
    int64_t now = now_ms();
    if (!run->failed_ms)
        run->failed_ms = now;
    if (now - run->failed_ms >= (int64_t)nodes->patience_ms)
        return nodes_fail(nodes, PERHAPS_ERR_UNREACHABLE,
                          "%s, and %u ms of trying again did not help", run->trouble,
                          nodes->patience_ms);
    sleep_ms(backoff_ms(tries));
    return stopped(nodes) ? fail_stopped(nodes) : 0;
}

/* Nobody who could tell the map is reached: what was tried counts as put off, as all else; but
 * an address where nobody answers from the first is wrong rather than down. */
static int refresh(struct run *run)
{
    struct nodes *nodes = run->nodes;
    int error = nodes_refresh(nodes);
    if (error != PERHAPS_ERR_UNREACHABLE || !(nodes->known || nodes->passing))
        return error;
    if (nodes->problem[0])
        snprintf(run->trouble, sizeof run->trouble, "%.599s", nodes->problem);
    return 0;
}

/* ---- Running --------------------------------------------------------------------------- */

static void send_all(struct run *run)
{
    size_t n = run->nlater;
    uint32_t *now = run->later, *later = run->later + run->exchange->count;
    memcpy(later, now, n * sizeof *now);
    run->nlater = 0;
    for (size_t k = 0; k < n && !run->error; k++)
        send_request(run, later[k]);
}

static int run_alone(struct run *run)
{
    struct link *link = run->exchange->only;
    if (is_open(run, link))
        send_all(run);
    pump(run);
    if (run->error)
        return run->error;
    return run->nlater ? nodes_fail(run->nodes, PERHAPS_ERR_UNREACHABLE, "%s", run->trouble)
                       : 0;
}

static int run_until_done(struct run *run)
{
    struct nodes *nodes = run->nodes;
    for (size_t i = 0; i < nodes->nlinks; i++)
        nodes->links[i]->chosen = nodes->links[i]->used = false;
    for (unsigned tries = 0; run->nlater && !run->error; tries++) {
        if (tries) {
            run->error = wait_a_while(run, tries);
            nodes->retries += run->nlater;
        }
        if (!run->error)
            run->error = nodes_fence(nodes);
        if (!run->error)
            run->error = refresh(run);
        if (run->error || !nodes->known)
            continue;
        send_all(run);
        pump(run);
        if (!run->error)
            acknowledge(run);
    }
    return run->error;
}

/* After an error what is still on its way is waited for only where it matters. */
static void await_rest(struct run *run)
{
    struct nodes *nodes = run->nodes;
    int error = run->error;
    char problem[sizeof nodes->problem];
    if (error == PERHAPS_ERR_STOPPED || error == PERHAPS_ERR_MEMORY)
        return;
    memcpy(problem, nodes->problem, sizeof problem);
    run->ending = true;
    run->error = 0;
    for (size_t i = 0; i < nodes->nlinks; i++)
        take_all(run, nodes->links[i]); /* of what was received before the error */
    pump(run);
    run->error = error;
    memcpy(nodes->problem, problem, sizeof problem);
}

static void hang_up(struct run *run)
{
    uint32_t entry;
    for (size_t i = 0; i < run->nodes->nlinks; i++) {
        struct link *link = run->nodes->links[i];
        if (!link->waiting)
            continue;
        link_fail(link, "hung up");
        link->rest_ms = 0;
        while (link_forget(link, &entry))
            if (entry < run->exchange->count)
                run->state[entry] |= link->sent ? SENT : 0;
    }
}

static void end_early(struct run *run)
{
    const struct exchange *exchange = run->exchange;
    if (exchange->doubt)
        await_rest(run);
    hang_up(run);
    for (size_t i = 0; exchange->doubt && i < exchange->count; i++)
        if (run->state[i] == SENT)
            exchange->doubt(exchange->context, i);
}

int exchange_run(struct nodes *nodes, struct exchange *exchange)
{
    struct run run = { .nodes = nodes, .exchange = exchange };
    if (exchange->count == 0)
        return 0;
    run.state = calloc(exchange->count, sizeof *run.state);
    run.later = calloc(2 * exchange->count, sizeof *run.later);
    if (!run.state || !run.later) {
        run.error = nodes_fail(nodes, PERHAPS_ERR_MEMORY, "no memory");
    } else {
        for (uint32_t i = 0; i < exchange->count; i++)
            run.later[run.nlater++] = i;
        run.error = exchange->only ? run_alone(&run) : run_until_done(&run);
        if (run.error)
            end_early(&run);
    }
    free(run.state);
    free(run.later);
    return run.error;
}
