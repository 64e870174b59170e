/* exchange.c - runs rounds until all requests are answered, and as many replicas have what was
 * done as must.
 *
 *     exchange_run():  pause -> fence -> map, if stale -> round -> WAIT, if asked for -.
 *                        ^                                                              |
 *                        '--- while something is put off, and patience lasts -----------'
 *
 * No other file tries anything again: if two did, their times would multiply.  Patience begins
 * with the first failure, so an exchange may go on for hours as long as nothing fails. */
#include "exchange.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "discover.h"

/* The pauses between tries, the first and the longest. */
enum { BACKOFF_MS = 10, BACKOFF_MOST_MS = 500 };

/* The context of WAIT. */
struct inquiry {
    struct nodes *nodes;
    struct link *link;
    unsigned timeout_ms;
};

/* ---- The map --------------------------------------------------------------------------- */

/* Reads the map.  If no server can be reached, this is no error yet, and is tried again as long
 * as patience lasts.  It is an error if no server has ever answered and none was there when it
 * was tried: then the address is wrong rather than the server down. */
static int refresh(struct round *round)
{
    struct nodes *nodes = round->nodes;
    int error = discover(nodes);
    if (error != PERHAPS_ERR_UNREACHABLE || !(nodes->known || nodes->passing))
        return error;
    if (nodes->problem[0])
        snprintf(round->trouble, sizeof round->trouble, "%.599s", nodes->problem);
    return 0;
}

/* ---- Fences ---------------------------------------------------------------------------- */

/* A master that hung may have been replaced by its replica meanwhile.  When it goes on, it
 * first answers what it finds in its connections, as if it were still a master.  Adds that it
 * takes then are lost.  Measured on Redis 7.0: it so answers one PING, and in one case of three
 * what came behind that, but never what came behind two PINGs of which each was awaited.  So
 * two PINGs go before the requests.  A master is replaced only after a silence of the cluster's
 * node timeout (15 s by default), so one that was heard in the last second needs none. */
enum { SILENCE_MS = 1000, FENCE_PINGS = 2 };

/* Sends PINGs to the servers that were silent for a while.  A link whose server does not answer
 * is closed; the round opens it again if it needs it. */
static int fence(struct nodes *nodes)
{
    int64_t now = now_ms();
    for (size_t i = 0; (nodes->cluster || nodes->master) && i < nodes->nlinks; i++) {
        struct link *link = nodes->links[i];
        struct exchange ping = { .count = 1,
                                 .command = (const char *const[]){ "PING", NULL },
                                 .only = link };
        if (!link_is_open(link) || now - link->heard_ms < SILENCE_MS ||
            nodes_is_sentinel(nodes, link))
            continue;
        nodes->stale |= nodes->master != NULL; /* sentinels know who is the master now */
        for (int k = 0; nodes->cluster && k < FENCE_PINGS && link_is_open(link); k++) {
            int error = round_alone(nodes, &ping);
            if (error && error != PERHAPS_ERR_UNREACHABLE)
                return error;
        }
    }
    return 0;
}

/* ---- Replicas -------------------------------------------------------------------------- */

static void write_wait(const struct request *request, struct resp *out)
{
    const struct inquiry *inquiry = request->context;
    resp_command(out, 3, 32);
    resp_text(out, "WAIT");
    resp_number(out, inquiry->nodes->acknowledge);
    resp_number(out, inquiry->timeout_ms);
}

/* WAIT replies how many replicas have all that this connection has written so far. */
static int take_wait(const struct request *request, const struct reply *reply)
{
    const struct inquiry *inquiry = request->context;
    struct nodes *nodes = inquiry->nodes;
    if (reply->type == REDIS_REPLY_INTEGER && reply->number >= (long long)nodes->acknowledge)
        return 0;
    return nodes_fail(nodes, PERHAPS_ERR_REPLICAS,
                      "%s: %lld of %u replicas have acknowledged within %u ms: look after "
                      "its replicas, or ask for fewer (acknowledge=)",
                      inquiry->link->name, reply->number, nodes->acknowledge,
                      inquiry->timeout_ms);
}

/* A master that has just become a replica refuses WAIT, or breaks it off.  What it took may be
 * lost, so this counts as a server that cannot be reached. */
static int take_wait_error(const struct request *request, const struct reply *reply)
{
    const struct inquiry *inquiry = request->context;
    inquiry->nodes->stale = true;
    return nodes_fail(inquiry->nodes, PERHAPS_ERR_UNREACHABLE, "%s: %.200s",
                      inquiry->link->name, reply->text);
}

/* Waits until the replicas of a server have what it took in this round.  Returns 0, or an error
 * if that takes longer than the timeout. */
static int wait_for_replicas(struct nodes *nodes, struct link *link)
{
    struct inquiry inquiry = { nodes, link, nodes->timeout_ms };
    struct exchange wait = { .count = 1,
                             .write = write_wait,
                             .take = take_wait,
                             .take_error = take_wait_error,
                             .context = &inquiry,
                             .only = link };
    nodes->timeout_ms += nodes->timeout_ms / 2; /* longer than the timeout of WAIT itself */
    int error = round_alone(nodes, &wait);
    nodes->timeout_ms = inquiry.timeout_ms;
    return error;
}

/* Asks each server that took something.  If one of them cannot be reached before it has told,
 * all requests of the exchange are done again.  Only its own would suffice, but nobody knows
 * which these are: some may have been redirected. */
static void acknowledge(struct round *round)
{
    struct nodes *nodes = round->nodes;
    bool broken = false;
    for (size_t i = 0; i < nodes->nlinks && !round->error; i++) {
        struct link *link = nodes->links[i];
        if (!link->unacknowledged)
            continue;
        link->unacknowledged = false;
        int error = link_is_open(link) ? wait_for_replicas(nodes, link)
                                       : nodes_fail(nodes, PERHAPS_ERR_UNREACHABLE, "%s: %s",
                                                    link->name, link->trouble);
        broken |= error == PERHAPS_ERR_UNREACHABLE;
        if (error != PERHAPS_ERR_UNREACHABLE)
            round->error = error;
    }
    if (!broken || round->error)
        return;
    snprintf(round->trouble, sizeof round->trouble, "%.599s", nodes->problem);
    round_repeat(round);
}

/* ---- Again ----------------------------------------------------------------------------- */

/* Returns the pause before the next try: between a half of BACKOFF_MS and all of it, doubled
 * with each try.  The clock serves as a source of chance, so that clients that failed together
 * do not come back together. */
static int64_t backoff_ms(unsigned tries)
{
    int64_t most = BACKOFF_MS;
    while (tries-- > 1 && most < BACKOFF_MOST_MS)
        most *= 2;
    return most / 2 + now_ms() % (most / 2 + 1);
}

/* Waits before the next try.  Returns an error if patience has ended or the caller wants to
 * stop. */
static int wait_a_while(struct round *round, unsigned tries)
{
    struct nodes *nodes = round->nodes;
    int64_t now = now_ms(), pause_ms = backoff_ms(tries);
    if (!round->failed_ms)
        round->failed_ms = now;
    if (now - round->failed_ms >= (int64_t)nodes->patience_ms)
        return nodes_fail(nodes, PERHAPS_ERR_UNREACHABLE,
                          "%s, and %u ms of trying again did not help", round->trouble,
                          nodes->patience_ms);
    struct timespec pause = { pause_ms / 1000, pause_ms % 1000 * 1000000 };
    nanosleep(&pause, NULL);
    return round_check_stopped(nodes);
}

/* The order of a try matters.  The fence comes before the map, since a server that does not
 * answer a PING makes the map stale.  WAIT comes behind the round, since it counts what was
 * written before it. */
int exchange_run(struct nodes *nodes, const struct exchange *exchange)
{
    struct round round;
    if (exchange->count == 0)
        return 0;
    round_begin(&round, nodes, exchange);
    for (size_t i = 0; i < nodes->nlinks; i++)
        nodes->links[i]->unacknowledged = nodes->links[i]->used = false;
    for (unsigned tries = 0; round.nlater && !round.error; tries++) {
        if (tries) {
            round.error = wait_a_while(&round, tries);
            nodes->retries += round.nlater;
        }
        if (!round.error)
            round.error = fence(nodes);
        if (!round.error)
            round.error = refresh(&round);
        if (round.error || !nodes->known)
            continue;
        round_run(&round);
        if (!round.error && exchange->acknowledged && nodes->acknowledge)
            acknowledge(&round);
    }
    return round_end(&round);
}
