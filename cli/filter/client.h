/* client.h - the client of servers, which is loaded when it is needed first.
 *
 * It needs hiredis and OpenSSL, and to load them takes longer than to ask a filter in a file.
 * So the client lies in a file of its own, and finds the library in the program. */
#ifndef CLIENT_H
#define CLIENT_H

#include <perhaps_cluster.h>

/* The calls of the client that are used: CALL(note) is perhaps_cluster_note(). */
#define CLIENT_CALLS(CALL)                                                                     \
    CALL(add_many)                                                                             \
    CALL(contains_many)                                                                        \
    CALL(create)                                                                               \
    CALL(delete)                                                                               \
    CALL(download)                                                                             \
    CALL(free)                                                                                 \
    CALL(name)                                                                                 \
    CALL(new)                                                                                  \
    CALL(note)                                                                                 \
    CALL(open)                                                                                 \
    CALL(problem)                                                                              \
    CALL(recount)                                                                              \
    CALL(rest)                                                                                 \
    CALL(stats_of)                                                                             \
    CALL(upload)                                                                               \
    CALL(verify)

struct client {
#define CLIENT_CALL(name) __typeof__(perhaps_cluster_##name) *(name);
    CLIENT_CALLS(CLIENT_CALL)
#undef CLIENT_CALL
};

/* Of NULLs until client_load() was called. */
extern struct client client;

/* Loads the client, or ends the program.  For the thread of main(), and may be called again. */
void client_load(void);

#endif
