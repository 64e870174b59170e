/* strange_server.h - a server in a thread of the test, which answers commands as it is told. */
#ifndef STRANGE_SERVER_H
#define STRANGE_SERVER_H

#include <pthread.h>
#include <stdbool.h>

#include "support.h"

enum { ANSWER_NBYTES = 1 << 16 };

struct answer {
    char bytes[ANSWER_NBYTES];
    size_t nbytes;
};

/* A command as it was received. */
struct command {
    const char *bytes;
    size_t nbytes;
    char name[32]; /* in capitals */
};

/* Writes the answer to a command. */
typedef void answer_function(struct answer *answer, const struct command *command,
                             unsigned port, struct rng *rng);

struct server {
    int listening;
    unsigned port;
    pthread_t thread;
    answer_function *answering;
    bool hangs_up, dribbles; /* ends a connection after each answer; sends byte by byte */
    const char *greeting;    /* is sent as soon as a client is there; NULL: nothing is */
    const char *flood;       /* is sent again and again after an answer; NULL: nothing is */
    bool drips;              /* that is sent byte by byte, slowly */
    size_t flooded_nbytes;   /* how much of that was sent */
    struct rng rng;
};

void answer_put(struct answer *answer, const char *text);

/* Makes the server, which listens then.  Its thread begins with strange_run(); the caller may
 * set members between the two. */
void strange_start(struct server *server, answer_function *answering);
void strange_run(struct server *server);
void strange_stop(struct server *server);

#endif
