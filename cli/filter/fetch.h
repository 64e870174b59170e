/* fetch.h - brings ranges of a file on a web server, by libcurl.
 *
 * libcurl and what it needs take longer to load than a filter to ask.  So what uses it
 * (web/fetch.c) lies in a file of its own, which web.c loads when it meets an address. */
#ifndef FETCH_H
#define FETCH_H

#include <perhaps_remote.h>

struct fetch;

struct fetch_options {
    const char *url;         /* copied */
    unsigned connections;    /* how many at most at once */
    bool (*stopped)(void *); /* returns whether to give up; called now and then */
    void *context;           /* for 'stopped' */
};

/* Prepares to ask a server, and connects to none yet.  Returns 0, PERHAPS_ERR_MEMORY, or
 * PERHAPS_ERR_IO if libcurl cannot begin. */
int fetch_new(const struct fetch_options *options, struct fetch **fetch);

/* Brings all that is needed, round by round, until nothing is.  Looks whether all answers are
 * of one file.  Returns 0; an error of perhaps_remote_next(); PERHAPS_ERR_STOPPED; or
 * PERHAPS_ERR_IO, and fetch_problem() tells why.  For one thread at a time. */
int fetch_bring(struct fetch *fetch, perhaps_remote *remote);

/* Returns why the last call returned PERHAPS_ERR_IO, as a sentence without a full stop. */
const char *fetch_problem(const struct fetch *fetch);

/* Closes all connections.  NULL is allowed. */
void fetch_free(struct fetch *fetch);

#endif
