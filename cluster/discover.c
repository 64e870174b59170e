/* discover.c - asks servers which node owns which slot; or sentinels, which server is the
 * master.
 *
 *     seeds: servers     CLUSTER SLOTS                             -> the map
 *     seeds: sentinels   SENTINEL get-master-addr-by-name, ROLE    -> the map of one server
 */
#include "discover.h"

#include <poll.h>
#include <string.h>

#include "numbers.h"
#include "round.h"

/* The context of a question to one server. */
struct inquiry {
    struct nodes *nodes;
    struct link *link;
    struct endpoint told; /* by a sentinel */
};

/* ---- Servers ----------------------------------------------------------------------------- */

static int refuse_database(struct nodes *nodes, const struct link *link)
{
    return nodes_fail(nodes, PERHAPS_ERR_REFUSED,
                      "%s: this is a cluster, and db= is for single servers: leave it out",
                      link->name);
}

/* Takes the reply to CLUSTER SLOTS.  The map stays as it is if the reply is wrong. */
static int take_map(const struct request *request, const struct reply *reply)
{
    const struct inquiry *inquiry = request->context;
    struct nodes *nodes = inquiry->nodes;
    const struct link *link = inquiry->link;
    if (nodes->access.database)
        return refuse_database(nodes, link);
    const char *problem = slot_map_read(&nodes->map, reply->tree, &link->at);
    if (problem)
        return nodes_fail(nodes, PERHAPS_ERR_PROTOCOL, "%s: %s", link->name, problem);
    nodes->cluster = true;
    return 0;
}

/* Returns whether a server does not know the command that it was asked. */
static bool is_unknown(const struct reply *reply)
{
    return strncmp(reply->text, "ERR unknown command", strlen("ERR unknown command")) == 0;
}

/* A server that belongs to no cluster says so.  It then owns all slots.  A sentinel does not
 * know of clusters. */
static int take_map_error(const struct request *request, const struct reply *reply)
{
    static const char alone[] = "ERR This instance has cluster support disabled";
    const struct inquiry *inquiry = request->context;
    struct nodes *nodes = inquiry->nodes;
    if (is_unknown(reply))
        return nodes_fail(nodes, PERHAPS_ERR_ADDRESS,
                          "%s does not know CLUSTER: if it is a sentinel, write "
                          "redis+sentinel://...?master=NAME",
                          inquiry->link->name);
    if (strncmp(reply->text, alone, strlen(alone)) != 0)
        return 1;
    nodes->cluster = false;
    if (slot_map_single(&nodes->map, &inquiry->link->at))
        return nodes_fail(nodes, PERHAPS_ERR_MEMORY, "no memory");
    return 0;
}

/* The question for the map, and those that go along with it: one that a caller has, and whether
 * the server has our module. */
enum { MAP, EARLY, MODULE, NQUESTIONS };

static void write_map(const struct request *request, struct resp *out)
{
    const struct inquiry *inquiry = request->context;
    const char *const *const commands[] = {
        [MAP] = (const char *const[]){ "CLUSTER", "SLOTS", NULL },
        [EARLY] = request->i == EARLY ? inquiry->nodes->early->command : NULL,
        [MODULE] = (const char *const[]){ "PERHAPS.TEST", NULL },
    };
    resp_texts(out, commands[request->i]);
}

static int take_either(const struct request *request, const struct reply *reply)
{
    const struct inquiry *inquiry = request->context;
    struct nodes *nodes = inquiry->nodes;
    if (request->i != EARLY)
        return request->i == MAP ? take_map(request, reply) : 0;
    const struct request early = { .context = nodes->early->context, .link = request->link };
    nodes->answer = nodes->early->take(&early, reply);
    nodes->answered = true;
    return 0;
}

/* A server that does not own the slot says so, and the right one is asked then.  One that has
 * the module says that the command lacks arguments. */
static int take_either_error(const struct request *request, const struct reply *reply)
{
    const struct inquiry *inquiry = request->context;
    if (request->i == MODULE && is_unknown(reply))
        inquiry->link->plain_until_ms = INT64_MAX;
    return request->i == MAP ? take_map_error(request, reply) : 0;
}

/* Reads the map from one server. */
static int ask_map(struct nodes *nodes, struct link *link)
{
    struct inquiry inquiry = { .nodes = nodes, .link = link };
    struct exchange exchange = { .count = nodes->early && !nodes->answered ? NQUESTIONS : 1,
                                 .write = write_map,
                                 .take = take_either,
                                 .take_error = take_either_error,
                                 .context = &inquiry,
                                 .tree = true,
                                 .only = link };
    return round_alone(nodes, &exchange);
}

/* ---- Sentinels --------------------------------------------------------------------------- */

static bool is_text(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_STRING;
}

/* Takes the address of the master: host and port, both as texts.  A sentinel that knows no
 * master of this name says nil. */
static int take_master(const struct request *request, const struct reply *reply)
{
    struct inquiry *inquiry = request->context;
    struct nodes *nodes = inquiry->nodes;
    const redisReply *tree = reply->tree;
    if (tree->type == REDIS_REPLY_NIL)
        return nodes_fail(
            nodes, PERHAPS_ERR_ADDRESS,
            "%s: this sentinel knows no master of the name in master=", inquiry->link->name);
    uint64_t port = 0;
    if (tree->type != REDIS_REPLY_ARRAY || tree->elements != 2 || !is_text(tree->element[0]) ||
        !is_text(tree->element[1]) || !tree->element[0]->len ||
        !endpoint_set_host(&inquiry->told, tree->element[0]->str, tree->element[0]->len) ||
        !read_digits(tree->element[1]->str, tree->element[1]->len, UINT16_MAX, &port) || !port)
        return nodes_fail(nodes, PERHAPS_ERR_PROTOCOL,
                          "%s: this sentinel tells no address of a master",
                          inquiry->link->name);
    inquiry->told.port = (unsigned)port;
    return 0;
}

static int take_master_error(const struct request *request, const struct reply *reply)
{
    const struct inquiry *inquiry = request->context;
    return is_unknown(reply)
               ? nodes_fail(inquiry->nodes, PERHAPS_ERR_ADDRESS,
                            "%s is no sentinel: write redis:// and leave out master=",
                            inquiry->link->name)
               : 1;
}

/* Takes the reply to ROLE.  A sentinel may not know yet that its master was replaced. */
static int take_role(const struct request *request, const struct reply *reply)
{
    const struct inquiry *inquiry = request->context;
    const redisReply *tree = reply->tree;
    bool is_master = tree->type == REDIS_REPLY_ARRAY && tree->elements > 0 &&
                     is_text(tree->element[0]) && strcmp(tree->element[0]->str, "master") == 0;
    return is_master ? 0
                     : nodes_fail(inquiry->nodes, PERHAPS_ERR_UNREACHABLE,
                                  "%s: sentinels call it the master, and it is none",
                                  inquiry->link->name);
}

/* Looks whether the server that a sentinel has told is there, and a master.  If so, it owns all
 * slots. */
static int take_over(struct nodes *nodes, const struct endpoint *at)
{
    struct inquiry inquiry = { .nodes = nodes, .link = nodes_link(nodes, at, false) };
    struct exchange exchange = { .count = 1,
                                 .command = (const char *const[]){ "ROLE", NULL },
                                 .take = take_role,
                                 .context = &inquiry,
                                 .tree = true,
                                 .only = inquiry.link };
    if (!inquiry.link)
        return nodes_fail(nodes, PERHAPS_ERR_MEMORY, "no memory");
    int error = round_alone(nodes, &exchange);
    if (!error && slot_map_single(&nodes->map, at))
        return nodes_fail(nodes, PERHAPS_ERR_MEMORY, "no memory");
    return error;
}

/* Asks one sentinel. */
static int ask_sentinel(struct nodes *nodes, struct link *link)
{
    struct inquiry inquiry = { .nodes = nodes, .link = link };
    const char *command[] = { "SENTINEL", "get-master-addr-by-name", nodes->master, NULL };
    struct exchange exchange = { .count = 1,
                                 .command = command,
                                 .take = take_master,
                                 .take_error = take_master_error,
                                 .context = &inquiry,
                                 .tree = true,
                                 .only = link };
    int error = round_alone(nodes, &exchange);
    return error ? error : take_over(nodes, &inquiry.told);
}

/* ---- All of them ----------------------------------------------------------------------- */

/* A search for a server that answers. */
struct search {
    struct nodes *nodes;
    int error;    /* the first that is more than a server that cannot be reached */
    bool tried;   /* a server was asked */
    bool passing; /* a server was there */
    bool ended;   /* a server has answered, or it makes no sense to ask another one */
    int64_t started_ms;
    char problem[sizeof((struct nodes *)NULL)->problem]; /* that of the error */
};

/* Returns whether a server that closes plain connections at once speaks TLS.  Its certificate
 * does not matter here, since nothing is sent over this connection. */
static bool speaks_tls(const struct nodes *nodes, const struct endpoint *at)
{
    struct failure failure;
    struct stream stream = { .state = STREAM_CLOSED };
    struct tls *tls = tls_new(&(struct tls_settings){ .insecure = true }, &failure);
    int64_t until = now_ms() + nodes->timeout_ms;
    if (nodes->ends_ms && nodes->ends_ms < until)
        until = nodes->ends_ms;
    bool open = tls && stream_open(&stream, at, tls);
    while (open && stream.state != STREAM_READY && now_ms() < until &&
           !(nodes->stopped && nodes->stopped(nodes->context))) {
        struct pollfd event = stream_wants(&stream, false);
        open = poll(&event, 1, 100) >= 0 && stream_send(&stream, "", 0) >= 0;
    }
    bool ready = open && stream.state == STREAM_READY;
    stream_close(&stream);
    tls_free(tls);
    return ready;
}

/* Asks one server, and notes what comes of it. */
static void ask_server(struct search *search, struct link *link)
{
    struct nodes *nodes = search->nodes;
    int error = nodes->master ? ask_sentinel(nodes, link) : ask_map(nodes, link);
    bool is_there = link_is_open(link) || link->closed;
    if (error == PERHAPS_ERR_REFUSED && strstr(nodes->problem, "SELECT is not allowed"))
        error = refuse_database(nodes, link);
    if (error == PERHAPS_ERR_UNREACHABLE && !nodes->known && link->mute &&
        !nodes->access.secure && speaks_tls(nodes, &link->at)) {
        error =
            nodes_fail(nodes, PERHAPS_ERR_UNREACHABLE,
                       "%s: it speaks TLS: write rediss:// instead of redis://", link->name);
        is_there = false;
    }
    search->tried = true;
    search->passing |= is_there;
    search->ended = !error || error == PERHAPS_ERR_STOPPED || error == PERHAPS_ERR_MEMORY ||
                    error == PERHAPS_ERR_DEADLINE;
    if (search->ended || search->error == PERHAPS_ERR_UNREACHABLE) {
        search->error = error;
        memcpy(search->problem, nodes->problem, sizeof search->problem);
    }
}

/* Asks the servers of a list, except those that are connected, which were asked before, and
 * those that have failed a moment ago.  This takes no longer than patience lasts. */
static void ask_list(struct search *search, const struct endpoint *list, size_t n)
{
    struct nodes *nodes = search->nodes;
    for (size_t i = 0; i < n && !search->ended; i++) {
        struct link *link = nodes_link(nodes, &list[i], false);
        if (!link) {
            search->error = nodes_fail(nodes, PERHAPS_ERR_MEMORY, "no memory");
            search->ended = true;
        } else if (!link_is_open(link) && now_ms() >= link->rest_ms &&
                   now_ms() - search->started_ms <= (int64_t)nodes->patience_ms) {
            ask_server(search, link);
        }
    }
}

/* Fails because all servers failed a moment ago, so that none was asked. */
static int fail_resting(struct nodes *nodes)
{
    const struct link *link = nodes->nlinks ? nodes->links[0] : NULL;
    return nodes_fail(nodes, PERHAPS_ERR_UNREACHABLE, "%s: %s",
                      link ? link->name : "the servers",
                      link && link->trouble[0] ? link->trouble : "failed a moment ago");
}

/* Asks one server after the other: those that are connected first, since they answer at once;
 * then the seeds; then all that were ever seen.  The first reply will do, although in a cluster
 * that has lost a slot one server may know more than another: a request whose slot has no owner
 * is put off, and the map is read again. */
int discover(struct nodes *nodes)
{
    struct search search = { .nodes = nodes,
                             .error = PERHAPS_ERR_UNREACHABLE,
                             .started_ms = now_ms() };
    if (nodes->known && !nodes->stale)
        return 0;
    nodes_see(nodes);
    for (size_t i = 0, n = nodes->nlinks; i < n && !search.ended; i++)
        if (link_is_open(nodes->links[i]) &&
            nodes_is_sentinel(nodes, nodes->links[i]) == (nodes->master != NULL))
            ask_server(&search, nodes->links[i]);
    ask_list(&search, nodes->seeds, nodes->nseeds);
    if (!nodes->master)
        ask_list(&search, nodes->seen, nodes->nseen);
    if (search.tried)
        nodes->passing = search.passing;
    else if (!search.ended)
        return fail_resting(nodes);
    if (search.error) {
        memcpy(nodes->problem, search.problem, sizeof nodes->problem);
        return search.error;
    }
    nodes->known = true;
    nodes->stale = false;
    return 0;
}

/* ---- Addresses that are known only elsewhere --------------------------------------------- */

/* The server that has told the map is in it, unless it calls itself by another address.  So if
 * no server of the map answers, and another one does, they are elsewhere. */
const struct link *discover_hidden(struct nodes *nodes)
{
    enum { TRIED_MOST = 16 };
    struct link *each[TRIED_MOST];
    struct exchange ping = { .command = (const char *const[]){ "PING", NULL }, .each = each };
    const unsigned timeout_ms = nodes->timeout_ms;
    const struct link *told = nodes_hide(nodes);
    if (!told)
        return NULL;
    for (size_t i = 0; i < nodes->map.nnodes && ping.count < TRIED_MOST; i++) {
        struct link *link = nodes_link(nodes, &nodes->map.nodes[i].at, false);
        if (!link)
            continue;
        link->rest_ms = 0;
        each[ping.count++] = link;
    }
    nodes->timeout_ms = timeout_ms < HIDDEN_MS ? timeout_ms : HIDDEN_MS;
    round_alone(nodes, &ping);
    nodes->timeout_ms = timeout_ms;
    return nodes_hide(nodes);
}
