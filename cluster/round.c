/* round.c - sends requests to the nodes that own their slots, takes the replies as they come,
 * and puts off the requests that failed.
 *
 *     request -> slot -> node, by the map -> its link:  out    bytes to be sent
 *                                                       queue  requests whose replies are due
 *
 *     reply                                what becomes of the request at the queue's front
 *     an answer                            taken
 *     MOVED                                sent at once to the node that it names; the map says
 *                                          so at once, and is read anew before the next round
 *     ASK                                  the same, behind ASKING; the map stays as it is
 *     TRYAGAIN, LOADING, CLUSTERDOWN, ...  put off
 *     NOPERM, OOM, ...                     the round ends with an error
 *     none: the connection broke           all in its queue are put off, and marked as SENT
 *
 * A server answers in the order in which it was asked, so the queue tells whose reply it is.
 *
 * This much is certain after a connection broke: a request whose reply was taken was done.  A
 * request that was put off may be done, or not, or will be done in a moment; it is surely not
 * done only if not a byte was sent.  So a request that is marked as SENT is sent once more as
 * 'again'.  Its reply shows a state which it may have made itself the first time: take() must
 * not conclude that somebody else did.
 *
 * Invariant: until the round ends, each request that must be answered is in the queue of one
 * link, or put off, or answered. */
#include "round.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

/* As soon as this much is written it is sent, so that servers work while more is written. */
enum { SEND_NBYTES = 32 << 10 };

/* POLL_MS: how often stopped() is called while servers are silent.  MOMENT_MS: how long replies
 * that are on their way are waited for then, so that it is known what was done.  HOPS_MOST: how
 * many redirections a request takes at most, on average.  There must be a limit, since two
 * servers may each say that the other owns the slot. */
enum { POLL_MS = 100, MOMENT_MS = 300, HOPS_MOST = 16 };

enum { SENT = BEFORE_SENT, TAKEN = BEFORE_DONE };

static struct request request_of(const struct round *round, uint32_t i)
{
    return (struct request){ .context = round->exchange->context,
                             .i = i,
                             .again = round->state[i] & SENT };
}

/* Returns whether requests have links of their own: the map, PING, WAIT. */
static bool is_alone(const struct exchange *exchange)
{
    return exchange->only || exchange->each;
}

/* ---- Sending --------------------------------------------------------------------------- */

/* Notes what failed at a server. */
static void note_trouble(struct round *round, const struct link *link, const char *what)
{
    snprintf(round->trouble, sizeof round->trouble, "%s: %s", link->name, what);
}

/* Returns whether the request must be answered: it is not one of the optional ones. */
static bool is_needed(const struct round *round, uint32_t i)
{
    return i < round->exchange->count - round->exchange->noptional;
}

/* Puts off a request, to be sent in the next run.  An optional one is dropped instead. */
static void put_off(struct round *round, uint32_t i)
{
    const struct exchange *exchange = round->exchange;
    struct request request = request_of(round, i);
    if (is_needed(round, i))
        round->later[round->nlater++] = i;
    else if (exchange->doubt && round->state[i] == SENT)
        exchange->doubt(&request);
}

/* Puts off all requests in the queue of a link that has failed.  The map is read again: where a
 * server fails, another may have taken its slots. */
static void give_up_link(struct round *round, struct link *link)
{
    uint32_t entry;
    note_trouble(round, link, link->trouble);
    round->nodes->stale = true;
    while (link_forget(link, &entry)) {
        if (entry >= QUEUE_ASKING)
            continue;
        round->state[entry] |= link->sent ? SENT : 0;
        put_off(round, entry);
    }
}

/* Opens a link if it is closed.  Returns false if the server cannot be reached now. */
static bool is_open(struct round *round, struct link *link)
{
    bool open = nodes_open(round->nodes, link);
    if (!open)
        give_up_link(round, link);
    return open;
}

static void write_request(struct round *round, struct link *link, uint32_t i)
{
    const struct exchange *exchange = round->exchange;
    struct request request = request_of(round, i);
    round->nodes->commands++;
    if (exchange->command)
        resp_texts(&link->out, exchange->command);
    else
        exchange->write(&request, &link->out);
}

/* Writes a request to a link, behind ASKING if that is needed, and sends what has piled up.  If
 * the link fails, the request is put off with all others in its queue. */
static void send_to(struct round *round, struct link *link, uint32_t i, bool asking)
{
    if (!link) {
        round->error = nodes_fail(round->nodes, PERHAPS_ERR_MEMORY, "no memory");
        return;
    }
    if (!is_open(round, link)) {
        put_off(round, i);
        return;
    }
    if (asking)
        resp_texts(&link->out, (const char *const[]){ "ASKING", NULL });
    if (!asking || link_queue(link, QUEUE_ASKING))
        write_request(round, link, i);
    if (!link_is_open(link) || !link_queue(link, i)) {
        give_up_link(round, link);
        put_off(round, i);
    } else if (link->out.nbytes - link->out_tried >= SEND_NBYTES && !link_send(link)) {
        give_up_link(round, link);
    }
}

/* Puts off a request whose slot has no owner: a master died a moment ago, or its part of the
 * cluster is lost. */
static void put_off_slot(struct round *round, unsigned slot, uint32_t i)
{
    char seed[ENDPOINT_NBYTES];
    endpoint_show(round->nodes->seeds, seed);
    snprintf(round->trouble, sizeof round->trouble, "%s: the cluster has nobody for slot %u",
             seed, slot);
    round->nodes->stale = true;
    put_off(round, i);
}

static unsigned slot_of_entry(const struct round *round, uint32_t i)
{
    const struct exchange *exchange = round->exchange;
    struct request request = request_of(round, i);
    return exchange->slot ? exchange->slot(&request) : round->nodes->home;
}

/* Sends a request to the node that owns its slot, by the map as it is now. */
static void send_request(struct round *round, uint32_t i)
{
    const struct exchange *exchange = round->exchange;
    struct nodes *nodes = round->nodes;
    if (is_alone(exchange)) {
        send_to(round, exchange->each ? exchange->each[i] : exchange->only, i, false);
        return;
    }
    unsigned slot = slot_of_entry(round, i);
    if (nodes->map.master[slot] == NOBODY)
        put_off_slot(round, slot, i);
    else
        send_to(round,
                i < exchange->nreplicas ? nodes_any(nodes, slot) : nodes_master(nodes, slot), i,
                false);
}

/* A request that may go to a replica may need any of them. */
void round_mark_needed(struct round *round)
{
    struct nodes *nodes = round->nodes;
    for (size_t i = 0; i < nodes->nlinks; i++)
        nodes->links[i]->needed = round->exchange->nreplicas > 0;
    for (size_t k = 0; k < round->nlater && !round->exchange->nreplicas; k++) {
        unsigned slot = slot_of_entry(round, round->later[k]);
        struct link *link = nodes_master(nodes, slot);
        if (link)
            link->needed = true;
    }
}

/* ---- Taking ---------------------------------------------------------------------------- */

/* Notes an error reply as what failed last. */
static void note_reply(struct round *round, const struct link *link, const struct reply *reply)
{
    snprintf(round->trouble, sizeof round->trouble, "%s: %.200s", link->name, reply->text);
    for (char *at = round->trouble; *at; at++) /* a problem is one line, whatever is replied */
        if (iscntrl((unsigned char)*at))
            *at = '?';
}

static bool begins_with(const struct reply *reply, const char *word)
{
    return strncmp(reply->text, word, strlen(word)) == 0;
}

/* Ends the round with an error, whose problem is noted; or only one of its requests, if the
 * exchange is partial. */
static void fail_round(struct round *round, int error)
{
    if (!round->exchange->partial) {
        round->error = error;
    } else if (!round->failure) {
        round->failure = error;
        snprintf(round->why, sizeof round->why, "%.599s", round->nodes->problem);
    }
}

/* Fails with the error reply that was noted, without the full stop of some, and advice. */
static void fail_reply(struct round *round, int error, const char *advice)
{
    size_t nbytes = strlen(round->trouble);
    if (nbytes && round->trouble[nbytes - 1] == '.')
        round->trouble[nbytes - 1] = '\0';
    fail_round(round, nodes_fail(round->nodes, error, "%s%s", round->trouble, advice));
}

/* Fails because a server does not let this client do what it asks. */
static void refuse_access(struct round *round, const struct reply *reply)
{
    bool secret = begins_with(reply, "NOAUTH") || begins_with(reply, "WRONGPASS");
    fail_reply(round, PERHAPS_ERR_REFUSED,
               secret ? ": give user and password in the address, or REDISCLI_AUTH" : "");
}

/* Sends a request to where a redirection says.  Returns false if it says nothing, or if too
 * many were followed already.  The map is changed by MOVED at once, so that the requests behind
 * this one go to the right node; if there is no memory for that, they are redirected, too. */
static bool follow_redirection(struct round *round, uint32_t i, const struct redirection *to)
{
    if ((to->verdict != REPLY_MOVED && to->verdict != REPLY_ASK) || is_alone(round->exchange) ||
        round->hops >= HOPS_MOST * (uint64_t)round->exchange->count)
        return false;
    round->hops++;
    round->nodes->redirections++;
    if (to->verdict == REPLY_MOVED)
        slot_map_move(&round->nodes->map, to->slot, &to->to);
    send_to(round, nodes_link(round->nodes, &to->to, false), i, to->verdict == REPLY_ASK);
    return true;
}

/* Does what an error reply asks for: sends the request elsewhere, puts it off, or ends the
 * round. */
static void obey(struct round *round, struct link *link, uint32_t i, const struct reply *reply)
{
    struct redirection to;
    redirection_read(reply->text, &to);
    note_reply(round, link, reply);
    round->nodes->stale |= to.refresh;
    if (!to.to.host[0])
        memcpy(to.to.host, link->at.host, sizeof to.to.host);
    if (follow_redirection(round, i, &to))
        return;
    if (!round->nodes->cluster && !round->nodes->master && begins_with(reply, "READONLY"))
        fail_reply(round, PERHAPS_ERR_REFUSED, ": it is a replica: give its master");
    else if (to.verdict == REPLY_FULL)
        fail_reply(round, PERHAPS_ERR_SERVER_FULL,
                   ": raise its maxmemory or add servers to the cluster");
    else if (to.verdict == REPLY_REFUSED)
        refuse_access(round, reply);
    else if (to.verdict == REPLY_WRONGTYPE)
        fail_reply(round, PERHAPS_ERR_TAKEN,
                   ": something else has that name: choose another one");
    else if (to.verdict == REPLY_STRANGE)
        fail_reply(round, PERHAPS_ERR_PROTOCOL, "");
    else
        put_off(round, i);
}

/* Returns whether the exchange itself has dealt with an error reply. */
static bool is_dealt_with(struct round *round, const struct link *link, uint32_t i,
                          const struct reply *reply)
{
    const struct exchange *exchange = round->exchange;
    struct request request = request_of(round, i);
    request.link = link;
    int dealt = exchange->take_error ? exchange->take_error(&request, reply) : 1;
    if (dealt < 0)
        fail_round(round, dealt);
    return dealt <= 0;
}

/* Takes a reply, which belongs to entry 'i' of the queue. */
static void take_reply(struct round *round, struct link *link, uint32_t i,
                       const struct reply *reply)
{
    const struct exchange *exchange = round->exchange;
    bool is_error = reply->type == REDIS_REPLY_ERROR;
    if (i >= QUEUE_ASKING) {
        if (!is_error)
            return;
        note_reply(round, link, reply);
        if (i == QUEUE_GREETING)
            refuse_access(round, reply);
        return; /* without ASKING the request itself will be redirected again */
    }
    if (is_error) {
        if (!round->ending && !is_dealt_with(round, link, i, reply))
            obey(round, link, i, reply);
        return;
    }
    struct request request = request_of(round, i);
    request.link = link;
    int error = exchange->take ? exchange->take(&request, reply) : 0;
    if (error)
        fail_round(round, error);
    round->state[i] |= TAKEN;
    link->unacknowledged |= !is_alone(exchange);
}

/* Takes all replies that have come over a link. */
static void take_all(struct round *round, struct link *link)
{
    bool failed = false;
    const struct reply *reply;
    uint32_t entry;
    while (!round->error && link_is_open(link) && (reply = link_next(link, &entry, &failed)))
        take_reply(round, link, entry, reply);
    if (failed)
        give_up_link(round, link);
}

/* ---- Waiting --------------------------------------------------------------------------- */

int round_check_stopped(struct nodes *nodes)
{
    if (nodes->stopped && nodes->stopped(nodes->context))
        return nodes_fail(nodes, PERHAPS_ERR_STOPPED, "interrupted");
    if (nodes->ends_ms && now_ms() >= nodes->ends_ms)
        return nodes_fail(nodes, PERHAPS_ERR_DEADLINE, "no answer within %u ms (deadline=)",
                          nodes->deadline_ms);
    return 0;
}

/* Sends what is written on the links on which replies are due. */
static void send_written(struct round *round)
{
    for (size_t i = 0; i < round->nodes->nlinks; i++) {
        struct link *link = round->nodes->links[i];
        if (link_is_open(link) && link->waiting && link->out.nbytes > link->out_tried &&
            !link_send(link))
            give_up_link(round, link);
    }
}

/* Returns how long poll() may wait, in milliseconds. */
static int poll_ms(const struct round *round, const struct waiting *waiting)
{
    int64_t ends_ms = round->nodes->ends_ms, most = POLL_MS;
    if (waiting->more)
        return 0;
    if (ends_ms && ends_ms - now_ms() < most)
        most = ends_ms - now_ms();
    return most > 0 ? (int)most : 0;
}

/* Returns how long the server may be silent. */
static int64_t silence_most(const struct round *round, const struct link *link)
{
    const unsigned timeout_ms = round->nodes->timeout_ms;
    bool hides = !link->answered && timeout_ms > HIDDEN_MS && nodes_hide(round->nodes);
    return hides ? HIDDEN_MS : timeout_ms;
}

/* Does what poll() says can be done on a link.  The link is given up if it fails, or if nothing
 * was heard of its server for the timeout although a reply is due. */
static void serve(struct round *round, struct link *link, short happened)
{
    if (link_has_more(link))
        happened |= POLLIN;
    if (happened & (POLLOUT | POLLERR | POLLHUP) && !link_send(link)) {
        give_up_link(round, link);
        return;
    }
    if (happened & (POLLIN | POLLHUP)) {
        bool received = link_receive(link, round->exchange->tree);
        if (received)
            take_all(round, link);
        else
            give_up_link(round, link);
    }
    if (link_is_open(link) && link->waiting &&
        now_ms() - link->heard_ms > silence_most(round, link)) {
        link_fail(link, "did not answer for %jd ms", (intmax_t)silence_most(round, link));
        give_up_link(round, link);
    }
}

/* Sends what is written, and takes replies as they come, until none is due: then each request
 * was answered or put off. */
static void pump(struct round *round)
{
    struct nodes *nodes = round->nodes;
    struct waiting waiting;
    do {
        send_written(round);
        if (!waiting_find(&waiting, nodes->links, nodes->nlinks))
            round->error = nodes_fail(nodes, PERHAPS_ERR_MEMORY, "no memory");
        else if (waiting.n && poll(waiting.events, waiting.n, poll_ms(round, &waiting)) < 0 &&
                 errno != EINTR)
            round->error = nodes_fail(nodes, PERHAPS_ERR_IO, "poll: %m");
        for (size_t i = 0; i < waiting.n && !round->error; i++)
            serve(round, waiting.links[i], waiting.events[i].revents);
        waiting_release(&waiting);
        if (!round->error && waiting.n)
            round->error = round_check_stopped(nodes);
    } while (waiting.n && !round->error);
}

/* ---- Running --------------------------------------------------------------------------- */

/* Tells the caller again of the requests that were in doubt before: there is no memory to do it
 * in the end. */
static void doubt_before(const struct round *round)
{
    const struct exchange *exchange = round->exchange;
    for (size_t i = 0; exchange->doubt && i < exchange->nbefore; i++)
        if (exchange->before[i] == SENT)
            exchange->doubt(
                &(struct request){ .context = exchange->context, .i = i, .again = true });
}

/* 'later' has room for two lists: round_run() copies the first one, which is filled anew as it
 * goes through the copy. */
int round_begin(struct round *round, struct nodes *nodes, const struct exchange *exchange)
{
    bool few = exchange->count <= FEW_REQUESTS;
    memset(round, 0, sizeof *round);
    round->nodes = nodes;
    round->exchange = exchange;
    round->state = few ? round->few_state : calloc(exchange->count, sizeof *round->state);
    round->later = few ? round->few_later : calloc(2 * exchange->count, sizeof *round->later);
    if (!round->state || !round->later) {
        doubt_before(round);
        return round->error = nodes_fail(nodes, PERHAPS_ERR_MEMORY, "no memory");
    }
    if (exchange->nbefore)
        memcpy(round->state, exchange->before, exchange->nbefore);
    for (uint32_t i = 0; i < exchange->count; i++)
        if (!(round->state[i] & TAKEN))
            round->later[round->nlater++] = i;
    return 0;
}

/* Sends what is written, as far as that can be done at once, and puts off nothing. */
static void send_and_leave(struct round *round)
{
    const struct nodes *nodes = round->nodes;
    for (size_t i = 0; i < nodes->nlinks; i++)
        if (link_is_open(nodes->links[i]))
            link_send(nodes->links[i]);
    round->nlater = 0;
}

void round_run(struct round *round)
{
    round->nodes->trips++;
    size_t n = round->nlater;
    uint32_t *now = round->later, *later = round->later + round->exchange->count;
    memcpy(later, now, n * sizeof *now);
    round->nlater = 0;
    for (size_t k = 0; k < n && !round->error; k++)
        send_request(round, later[k]);
    if (round->exchange->parting)
        send_and_leave(round);
    else
        pump(round);
}

void round_answered(struct round *round, int error)
{
    round->state[0] = TAKEN;
    round->nlater = 0;
    if (error)
        fail_round(round, error);
}

void round_repeat(struct round *round)
{
    for (uint32_t i = 0; i < round->exchange->count; i++)
        if (round->state[i] & TAKEN) {
            round->state[i] = SENT;
            put_off(round, i);
        }
}

/* After an error, takes the replies that are still on their way.  The first error stays the
 * error of the round, even if another one happens meanwhile.  It waits only for a moment if the
 * caller wants to stop, and not at all if there is no time or no memory. */
static void await_rest(struct round *round)
{
    struct nodes *nodes = round->nodes;
    int error = round->error;
    char problem[sizeof nodes->problem];
    bool (*stopped)(void *context) = nodes->stopped;
    const int64_t ends_ms = nodes->ends_ms;
    if (error == PERHAPS_ERR_DEADLINE || error == PERHAPS_ERR_MEMORY)
        return;
    if (error == PERHAPS_ERR_STOPPED) {
        nodes->stopped = NULL;
        nodes->ends_ms = now_ms() + MOMENT_MS;
    }
    memcpy(problem, nodes->problem, sizeof problem);
    round->ending = true;
    round->error = 0;
    for (size_t i = 0; i < nodes->nlinks; i++)
        take_all(round, nodes->links[i]); /* replies that were received before the error */
    pump(round);
    round->error = error;
    memcpy(nodes->problem, problem, sizeof problem);
    nodes->stopped = stopped;
    nodes->ends_ms = ends_ms;
}

/* Closes the links on which replies are still due, so that the next exchange does not take them
 * for its own. */
static void hang_up(struct round *round)
{
    uint32_t entry;
    for (size_t i = 0; i < round->nodes->nlinks; i++) {
        struct link *link = round->nodes->links[i];
        if (!link->waiting)
            continue;
        link_fail(link, "hung up");
        link->rest_ms = 0; /* nothing is wrong with the server */
        while (link_forget(link, &entry))
            if (entry < round->exchange->count)
                round->state[entry] |= link->sent ? SENT : 0;
    }
}

/* Ends a round that has an error.  The order matters: replies on their way first, so that few
 * requests are in doubt; then the links, which marks the others as SENT; then doubt(). */
static void end_early(struct round *round)
{
    const struct exchange *exchange = round->exchange;
    if (exchange->doubt)
        await_rest(round);
    hang_up(round);
    for (uint32_t i = 0; exchange->doubt && i < exchange->count; i++) {
        struct request request = request_of(round, i);
        if (round->state[i] == SENT)
            exchange->doubt(&request);
    }
}

int round_end(struct round *round)
{
    if (round->error && round->state && round->later)
        end_early(round);
    if (round->state != round->few_state)
        free(round->state);
    if (round->later != round->few_later)
        free(round->later);
    if (!round->error && round->failure)
        return nodes_fail(round->nodes, round->failure, "%s", round->why);
    return round->error;
}

int round_alone(struct nodes *nodes, const struct exchange *exchange)
{
    struct round round;
    round_begin(&round, nodes, exchange);
    if (!round.error)
        round_run(&round);
    if (!round.error && round.nlater)
        round.error = nodes_fail(nodes, PERHAPS_ERR_UNREACHABLE, "%s", round.trouble);
    return round_end(&round);
}
