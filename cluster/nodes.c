/* nodes.c - finds links to servers by slot or by address, opens them, and keeps the last
 * problem. */
#include "nodes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* How many servers are remembered, the longest texts of a login, and room for both of them. */
enum { SEEN_MOST = 4 * NODES_MOST, USER_NBYTES = 256, PASSWORD_NBYTES = 4096 };

int nodes_fail(struct nodes *nodes, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(nodes->problem, sizeof nodes->problem, format, arguments);
    va_end(arguments);
    return error;
}

int nodes_fail_plainly(struct nodes *nodes, int error)
{
    return nodes_fail(nodes, error, "%s", perhaps_strerror(error));
}

void nodes_release(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->nlinks; i++) {
        link_release(nodes->links[i]);
        free(nodes->links[i]);
    }
    free(nodes->links);
    free(nodes->seen);
    tls_free(nodes->tls);
    slot_map_release(&nodes->map);
    nodes->links = NULL;
    nodes->seen = NULL;
    nodes->tls = NULL;
    nodes->nlinks = nodes->nseen = 0;
}

/* ---- Links ----------------------------------------------------------------------------- */

/* Returns where a server is reached that is announced at an endpoint.  The address has the
 * first word. */
static struct endpoint endpoint_to_reach(const struct nodes *nodes, const struct endpoint *at)
{
    struct endpoint to = { .port = at->port };
    for (size_t i = 0; i < nodes->nmaps; i++) {
        const struct address_map *map = &nodes->maps[i];
        if (strcmp(map->from.host, at->host) != 0 ||
            (map->from.port && map->from.port != at->port))
            continue;
        to = map->to;
        to.port = to.port ? to.port : at->port;
        return to;
    }
    bool mapped = nodes->reach && nodes->reach(nodes->context, at->host, at->port, to.host,
                                               sizeof to.host, &to.port);
    to.host[sizeof to.host - 1] = '\0';
    return mapped ? to : *at;
}

/* Each link is allocated by itself, so that it stays where it is when the list grows. */
static struct link *new_link(struct nodes *nodes, const struct endpoint *at, bool replica)
{
    struct link **links = realloc(nodes->links, (nodes->nlinks + 1) * sizeof *links);
    struct link *link = links ? calloc(1, sizeof *link) : NULL;
    if (links)
        nodes->links = links;
    if (!link)
        return NULL;
    link->at = *at;
    link->reached_at = endpoint_to_reach(nodes, at);
    endpoint_show(at, link->name);
    link->replica = replica;
    return links[nodes->nlinks++] = link;
}

/* Goes through all links: a cluster has few, and a request has one look-up. */
struct link *nodes_link(struct nodes *nodes, const struct endpoint *at, bool replica)
{
    for (size_t i = 0; i < nodes->nlinks; i++)
        if (endpoint_equal(&nodes->links[i]->at, at) && nodes->links[i]->replica == replica)
            return nodes->links[i];
    return new_link(nodes, at, replica);
}

struct link *nodes_master(struct nodes *nodes, unsigned slot)
{
    uint16_t master = nodes->map.master[slot];
    return master == NOBODY ? NULL : nodes_link(nodes, &nodes->map.nodes[master].at, false);
}

/* The turn is that of all masters together, which spreads requests well enough. */
struct link *nodes_any(struct nodes *nodes, unsigned slot)
{
    uint16_t master = nodes->map.master[slot];
    if (master == NOBODY)
        return NULL;
    unsigned turn = nodes->turn++ % (1U + nodes->map.nodes[master].nreplicas);
    uint16_t node = turn ? slot_map_replica(&nodes->map, master, turn - 1) : master;
    if (node == NOBODY)
        node = master;
    return nodes_link(nodes, &nodes->map.nodes[node].at, node != master);
}

static bool was_seen(const struct nodes *nodes, const struct endpoint *at)
{
    for (size_t i = 0; i < nodes->nseen; i++)
        if (endpoint_equal(&nodes->seen[i], at))
            return true;
    return false;
}

void nodes_see(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->map.nnodes && nodes->nseen < SEEN_MOST; i++) {
        const struct endpoint *at = &nodes->map.nodes[i].at;
        struct endpoint *seen = was_seen(nodes, at)
                                    ? NULL
                                    : realloc(nodes->seen, (nodes->nseen + 1) * sizeof *seen);
        if (!seen)
            continue;
        nodes->seen = seen;
        nodes->seen[nodes->nseen++] = *at;
    }
}

bool nodes_is_sentinel(const struct nodes *nodes, const struct link *link)
{
    for (size_t i = 0; nodes->master && i < nodes->nseeds; i++)
        if (endpoint_equal(&nodes->seeds[i], &link->at))
            return true;
    return false;
}

const struct link *nodes_hide(const struct nodes *nodes)
{
    const struct link *told = NULL;
    for (size_t i = 0; nodes->known && nodes->cluster && i < nodes->nlinks; i++) {
        const struct link *link = nodes->links[i];
        if (link->answered && slot_map_find(&nodes->map, &link->at) != NOBODY)
            return NULL;
        told = link->answered ? link : told;
    }
    return told;
}

/* ---- Opening --------------------------------------------------------------------------- */

/* A user and a password for one connection. */
struct login {
    char user[USER_NBYTES], password[PASSWORD_NBYTES];
};

/* Reads the first line of a file as the password.  Returns false if there is none, and notes
 * why. */
static bool read_password(struct login *login, const char *path, struct failure *failure)
{
    FILE *file = fopen(path, "re");
    bool read = file && fgets(login->password, sizeof login->password, file);
    if (read)
        login->password[strcspn(login->password, "\r\n")] = '\0';
    else
        failure_note(failure, "%.150s: %s", path,
                     file ? "there is no password in it" : strerror(errno));
    if (file)
        fclose(file);
    return read;
}

/* Fills in the greeting of a server, by the file or the function that has the password.  Texts
 * that are not there yet are put into *login.  Returns false if there is no password now. */
static bool fill_greeting(const struct nodes *nodes, struct login *login,
                          struct greeting *greeting, struct failure *failure)
{
    const struct access *access = &nodes->access;
    *greeting = (struct greeting){ .user = access->user,
                                   .password = access->password,
                                   .client = access->client,
                                   .database = access->database };
    if (access->password_file) {
        greeting->password = login->password;
        return read_password(login, access->password_file, failure);
    }
    if (!access->login)
        return true;
    bool known = access->login(nodes->context, login->user, sizeof login->user, login->password,
                               sizeof login->password);
    greeting->user = login->user[0] ? login->user : NULL;
    greeting->password = login->password;
    if (!known)
        failure_note(failure, "there is no password for it now");
    return known;
}

/* A sentinel has a password of its own, or none. */
static bool fill_greeting_of_sentinel(const struct nodes *nodes, struct login *login,
                                      struct greeting *greeting, struct failure *failure)
{
    const char *path = nodes->access.sentinel_password_file;
    *greeting = (struct greeting){ .password = path ? login->password : NULL };
    return !path || read_password(login, path, failure);
}

/* Makes what all connections by TLS share, unless it is there. */
static bool prepare_tls(struct nodes *nodes, struct failure *failure)
{
    if (nodes->access.secure && !nodes->tls)
        nodes->tls = tls_new(&nodes->access.settings, failure);
    return !nodes->access.secure || nodes->tls;
}

static bool open_link(struct nodes *nodes, struct link *link, struct login *login)
{
    struct failure failure;
    struct greeting greeting;
    bool ready = prepare_tls(nodes, &failure) &&
                 (nodes_is_sentinel(nodes, link) ? fill_greeting_of_sentinel : fill_greeting)(
                     nodes, login, &greeting, &failure);
    if (!ready) {
        link_fail(link, "%s", failure.text);
        return false;
    }
    if (++nodes->connections == 0)
        nodes->connections++; /* 0 is the number of a link that is closed */
    return link_open(link, &greeting, nodes->connections, nodes->tls);
}

/* The password is wiped, so that it does not stay on the stack. */
bool nodes_open(struct nodes *nodes, struct link *link)
{
    struct login login = { .user = "" };
    if (link_is_open(link))
        return true;
    bool opened = now_ms() >= link->rest_ms && open_link(nodes, link, &login);
    explicit_bzero(&login, sizeof login);
    return opened;
}
