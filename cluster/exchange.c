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
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "discover.h"

/* The pauses between tries, the first and the longest. */
enum { BACKOFF_MS = 10, BACKOFF_MOST_MS = 500 };

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

static bool is_silent(const struct nodes *nodes, const struct link *link, int64_t now)
{
    return link_is_open(link) && now - link->heard_ms >= SILENCE_MS &&
           !nodes_is_sentinel(nodes, link);
}

/* Lists the links that the requests need and that were silent for a while.  '*links' is to be
 * released by the caller; NULL: there are none, or there is no memory.  Returns how many. */
static size_t find_silent(struct round *round, struct link ***links)
{
    struct nodes *nodes = round->nodes;
    int64_t now = now_ms();
    bool any = false;
    size_t n = 0;
    *links = NULL;
    for (size_t i = 0; i < nodes->nlinks && !any; i++)
        any = is_silent(nodes, nodes->links[i], now);
    nodes->stale |= any && nodes->master; /* sentinels know who is the master now */
    if (!any || !nodes->cluster)
        return 0;
    round_mark_needed(round);
    *links = calloc(nodes->nlinks, sizeof **links);
    for (size_t i = 0; *links && i < nodes->nlinks; i++) {
        struct link *link = nodes->links[i];
        if (link->needed && is_silent(nodes, link, now))
            (*links)[n++] = link;
    }
    return n;
}

/* Sentinels are asked again for a master that was silent for a while: it may be none any more,
 * and PINGs would not tell. */
static void doubt_master(struct nodes *nodes)
{
    int64_t now = now_ms();
    for (size_t i = 0; nodes->master && i < nodes->nlinks; i++) {
        const struct link *link = nodes->links[i];
        nodes->stale |= link_is_open(link) && now - link->heard_ms >= SILENCE_MS &&
                        !nodes_is_sentinel(nodes, link);
    }
}

/* Sends PINGs to the servers that are needed and were silent for a while, to all at once.  A
 * link whose server does not answer is closed; the round opens it again. */
static int fence(struct round *round)
{
    struct link **links;
    int error = 0;
    doubt_master(round->nodes);
    size_t n = find_silent(round, &links);
    for (int k = 0; k < FENCE_PINGS && n && !error; k++) {
        size_t nopen = 0;
        for (size_t i = 0; i < n; i++)
            if (link_is_open(links[i]))
                links[nopen++] = links[i];
        n = nopen;
        struct exchange ping = { .count = n,
                                 .command = (const char *const[]){ "PING", NULL },
                                 .each = links };
        error = round_alone(round->nodes, &ping);
        if (error == PERHAPS_ERR_UNREACHABLE)
            error = 0;
    }
    free(links);
    return error;
}

/* ---- Replicas -------------------------------------------------------------------------- */

/* The context of a WAIT on each of some links. */
struct acks {
    struct nodes *nodes;
    struct link *const *links;
    unsigned timeout_ms;
    long long fewest;         /* how many replicas have acknowledged, where these are fewest */
    const struct link *where; /* the link of that server; NULL: there were enough everywhere */
};

static void write_wait(const struct request *request, struct resp *out)
{
    const struct acks *acks = request->context;
    resp_command(out, 3, 32);
    resp_text(out, "WAIT");
    resp_number(out, acks->nodes->acknowledge);
    resp_number(out, acks->timeout_ms);
}

/* WAIT replies how many replicas have all that this connection has written so far. */
static int take_wait(const struct request *request, const struct reply *reply)
{
    struct acks *acks = request->context;
    struct link *link = acks->links[request->i];
    long long n = reply->type == REDIS_REPLY_INTEGER ? reply->number : 0;
    if (n >= (long long)acks->nodes->acknowledge) {
        link->unacknowledged = false;
    } else if (!acks->where || n < acks->fewest) {
        acks->fewest = n;
        acks->where = link;
    }
    return 0;
}

/* A master that has just become a replica refuses WAIT, or breaks it off.  What it took may be
 * lost, so this counts as a server that cannot be reached.  One who may not use WAIT never
 * may. */
static int take_wait_error(const struct request *request, const struct reply *reply)
{
    const struct acks *acks = request->context;
    const struct link *link = acks->links[request->i];
    if (strncmp(reply->text, "NOPERM", strlen("NOPERM")) == 0)
        return 1;
    acks->nodes->stale = true;
    return nodes_fail(acks->nodes, PERHAPS_ERR_UNREACHABLE, "%s: %.200s", link->name,
                      reply->text);
}

/* Notes which server has too few replicas.  Returns PERHAPS_ERR_REPLICAS. */
static int fail_replicas(struct nodes *nodes, const struct acks *acks)
{
    return nodes_fail(nodes, PERHAPS_ERR_REPLICAS,
                      "%s: %lld of %u replicas have acknowledged within %u ms: look after "
                      "its replicas, or ask for fewer (acknowledge=)",
                      acks->where->name, acks->fewest, nodes->acknowledge, acks->timeout_ms);
}

/* Asks all servers at once, over the links that took something, whether replicas have it; those
 * that have enough are no longer 'unacknowledged'.  Returns PERHAPS_ERR_UNREACHABLE if one of
 * these links has broken, and PERHAPS_ERR_REPLICAS if there are too few. */
static int wait_for_replicas(struct nodes *nodes)
{
    struct link **links = calloc(nodes->nlinks + 1, sizeof *links);
    struct acks acks = { .nodes = nodes, .links = links, .timeout_ms = nodes->timeout_ms };
    struct exchange wait = { .write = write_wait,
                             .take = take_wait,
                             .take_error = take_wait_error,
                             .context = &acks,
                             .each = links };
    int error = 0;
    if (!links)
        return nodes_fail(nodes, PERHAPS_ERR_MEMORY, "no memory");
    for (size_t i = 0; i < nodes->nlinks && !error; i++) {
        struct link *link = nodes->links[i];
        if (link->unacknowledged && !link_is_open(link))
            error =
                nodes_fail(nodes, PERHAPS_ERR_UNREACHABLE, "%s: %s", link->name, link->trouble);
        else if (link->unacknowledged)
            links[wait.count++] = link;
    }
    nodes->timeout_ms += nodes->timeout_ms / 2; /* longer than the timeout of WAIT itself */
    if (!error)
        error = round_alone(nodes, &wait);
    nodes->timeout_ms = acks.timeout_ms;
    free(links);
    return !error && acks.where ? fail_replicas(nodes, &acks) : error;
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

/* Returns whether patience, which begins with the first failure, has ended. */
static bool has_lost_patience(struct round *round)
{
    int64_t now = now_ms();
    if (!round->failed_ms)
        round->failed_ms = now;
    return round->nodes->impatient ||
           now - round->failed_ms >= (int64_t)round->nodes->patience_ms;
}

static int pause_before(struct nodes *nodes, unsigned tries)
{
    int64_t pause_ms = backoff_ms(tries);
    struct timespec pause = { pause_ms / 1000, pause_ms % 1000 * 1000000 };
    nanosleep(&pause, NULL);
    return round_check_stopped(nodes);
}

/* Fails because no address that a server has told can be reached. */
static int fail_hidden(struct round *round, const struct link *told)
{
    return nodes_fail(
        round->nodes, PERHAPS_ERR_UNREACHABLE,
        "%s; %s announced this address, which may be known only to the servers (in "
        "containers, behind a NAT): write ?map=OLD:PORT/NEW:PORT behind the name, for each",
        round->trouble, told->name);
}

/* Waits before the next try.  Returns an error if patience has ended or the caller wants to
 * stop. */
static int wait_a_while(struct round *round, unsigned tries)
{
    struct nodes *nodes = round->nodes;
    const struct link *told = discover_hidden(nodes);
    if (told)
        return fail_hidden(round, told);
    return has_lost_patience(round) ? nodes_fail(nodes, PERHAPS_ERR_UNREACHABLE,
                                                 "%s, and %u ms of trying again did not help",
                                                 round->trouble, nodes->patience_ms)
                                    : pause_before(nodes, tries);
}

/* Asks the servers that took something whether their replicas have it, again and again while
 * patience lasts.  If one of them cannot be reached before it has told, all requests of the
 * exchange are done again.  Only its own would suffice, but nobody knows which these are: some
 * may have been redirected. */
static void acknowledge(struct round *round)
{
    struct nodes *nodes = round->nodes;
    int error;
    for (unsigned tries = 1;; tries++) {
        error = wait_for_replicas(nodes);
        if (error != PERHAPS_ERR_REPLICAS || has_lost_patience(round) ||
            (error = pause_before(nodes, tries)))
            break;
    }
    if (error != PERHAPS_ERR_UNREACHABLE) {
        round->error = error;
        return;
    }
    for (size_t i = 0; i < nodes->nlinks; i++)
        nodes->links[i]->unacknowledged = false;
    snprintf(round->trouble, sizeof round->trouble, "%.599s", nodes->problem);
    round_repeat(round);
}

/* The order of a try matters.  The fence comes before the map, since a server that does not
 * answer a PING makes the map stale.  WAIT comes behind the round, since it counts what was
 * written before it; for what an exchange before this one has done it comes first, while its
 * connections are still open. */
int exchange_run(struct nodes *nodes, const struct exchange *exchange)
{
    struct round round;
    if (exchange->count == 0)
        return 0;
    round_begin(&round, nodes, exchange);
    for (size_t i = 0; i < nodes->nlinks && !exchange->nbefore; i++)
        nodes->links[i]->unacknowledged = false;
    if (!round.error && exchange->nbefore && exchange->acknowledged && nodes->acknowledge)
        acknowledge(&round);
    for (unsigned tries = 0; round.nlater && !round.error; tries++) {
        if (tries) {
            round.error = wait_a_while(&round, tries);
            nodes->retries += round.nlater;
        }
        if (!round.error)
            round.error = fence(&round);
        nodes->early = exchange->early && !nodes->known ? exchange : NULL;
        nodes->answered = false;
        if (!round.error)
            round.error = refresh(&round);
        nodes->early = NULL;
        if (round.error || !nodes->known)
            continue;
        if (nodes->answered) {
            round_answered(&round, nodes->answer);
            continue;
        }
        round_run(&round);
        if (!round.error && exchange->acknowledged && nodes->acknowledge)
            acknowledge(&round);
    }
    return round_end(&round);
}
