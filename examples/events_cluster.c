/* events_cluster.c - drops repeated events from a pipe, one on each line, that any number of
 * such programs share through a filter on servers.  It never waits for a server: an event loop
 * (epoll; libuv and libev do the same) waits for the pipe and for answers at once.
 * Shows: perhaps_cluster_async_fd() and _step(), a deadline for each call.
 * Run: cat events | build/examples/events_cluster redis://127.0.0.1:7000/events
 *      prints each event the first time; returns 0 if all were dealt with */
#include <perhaps_cluster_async.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { CAPACITY = 1000000, DEADLINE_MS = 30000, CALLS_MOST = 20000 };

static unsigned failures;

/* Prints an event that is new.  One that may be new comes through as well: better twice than
 * never. */
static void when_added(void *context, const struct perhaps_cluster_result *result)
{
    char *event = context;
    if (result->error && !failures++)
        fprintf(stderr, "%s\n", result->problem);
    if (result->answers[0] != PERHAPS_ANSWER_PERHAPS)
        puts(event);
    free(event);
}

/* Submits an event. */
static void add(perhaps_cluster_async *filter, const char *event, size_t nbytes)
{
    char *copy = strndup(event, nbytes);
    struct perhaps_keys key = perhaps_keys_packed(event, nbytes, 1);
    if (!copy ||
        perhaps_cluster_async_add(filter, &key, DEADLINE_MS, when_added, copy, NULL) != 0) {
        fprintf(stderr, "no memory\n");
        exit(2);
    }
}

/* Reads what is in the pipe, and submits the lines in it.  Returns false at its end. */
static bool read_events(perhaps_cluster_async *filter)
{
    static char text[1 << 16];
    static size_t nbytes;
    ssize_t got = read(STDIN_FILENO, text + nbytes, sizeof text - nbytes);
    char *line = text, *end;
    nbytes += got > 0 ? (size_t)got : 0;
    while ((end = memchr(line, '\n', nbytes))) {
        add(filter, line, (size_t)(end - line));
        nbytes -= (size_t)(end + 1 - line);
        line = end + 1;
    }
    memmove(text, line, nbytes);
    if (nbytes && (got <= 0 || nbytes == sizeof text)) {
        add(filter, text, nbytes); /* the last line has no end, or this one is too long */
        nbytes = 0;
    }
    return got > 0;
}

/* The event loop.  It leaves the pipe alone while many calls are under way. */
static void run(perhaps_cluster_async *filter, int loop)
{
    struct epoll_event event, pipe = { .data.fd = STDIN_FILENO };
    struct epoll_event answers = { .events = EPOLLIN, .data.fd = -1 };
    bool reading = !epoll_ctl(loop, EPOLL_CTL_ADD, STDIN_FILENO, &pipe);
    if (!reading && ++failures)
        perror("standard input must be a pipe or a socket");
    epoll_ctl(loop, EPOLL_CTL_ADD, perhaps_cluster_async_fd(filter), &answers);
    for (size_t left = 0; reading || left; left = perhaps_cluster_async_step(filter)) {
        pipe.events = left < CALLS_MOST ? EPOLLIN : 0;
        epoll_ctl(loop, reading ? EPOLL_CTL_MOD : EPOLL_CTL_DEL, STDIN_FILENO, &pipe);
        if (epoll_wait(loop, &event, 1, -1) == 1 && event.data.fd == STDIN_FILENO)
            reading = read_events(filter);
    }
}

/* Makes the filter if there is none. */
int main(int argc, char **argv)
{
    struct perhaps_cluster_options where = { .url = argc == 2 ? argv[1] : "" };
    struct perhaps_options options = { .capacity = CAPACITY, .fpr = 1e-6 };
    perhaps_cluster *once;
    perhaps_cluster_async *filter;
    int error = perhaps_cluster_new(&where, &once);
    if (!error)
        error = perhaps_cluster_create(once, &options, 0);
    if (error && error != PERHAPS_ERR_TAKEN)
        fprintf(stderr, "%s: %s\n", argv[0], perhaps_cluster_problem(once));
    else if (!(error = perhaps_cluster_async_new(&where, &filter))) {
        run(filter, epoll_create1(0));
        perhaps_cluster_async_free(filter);
    }
    perhaps_cluster_free(once);
    return error || failures;
}
