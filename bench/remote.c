/* remote.c - how long a question to a file on a web server takes, beside a bare GET of the same
 * range:  perhaps-bench-remote URL [ROUNDS]
 *
 * Both use libcurl and keep their connection.  They take turns, since other work on the machine
 * disturbs both.  The URL is of a filter of the kind blocked, of 80 KB and more. */
#include <curl/curl.h>
#include <perhaps.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../cli/filter/fetch.h"

enum { ASKED_AT_ONCE = 50, LINE_NBYTES = 64 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t take(char *bytes, size_t size, size_t n, void *context)
{
    (void)bytes;
    *(size_t *)context += size * n;
    return size * n;
}

static void must(int error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "remote_bench: %s: %d\n", what, error);
    exit(2);
}

/* Returns the microseconds of a bare GET of 64 bytes. */
static double bare(CURL *easy, unsigned *number)
{
    size_t got = 0;
    char range[64];
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &got);
    const double begin = now();
    for (unsigned i = 0; i < ASKED_AT_ONCE; i++) {
        const unsigned at = 4096 + ++*number % 1000 * LINE_NBYTES;
        snprintf(range, sizeof range, "%u-%u", at, at + LINE_NBYTES - 1);
        curl_easy_setopt(easy, CURLOPT_RANGE, range);
        must((int)curl_easy_perform(easy), "GET");
    }
    const double us = (now() - begin) * 1e6 / ASKED_AT_ONCE;
    must(got != (size_t)ASKED_AT_ONCE * LINE_NBYTES, "bytes");
    return us;
}

/* Returns those of a question for a key. */
static double asked(struct fetch *fetch, perhaps_remote *remote, unsigned *number)
{
    bool present;
    size_t done;
    const double begin = now();
    for (unsigned i = 0; i < ASKED_AT_ONCE; i++) {
        char key[24];
        const size_t length = (size_t)snprintf(key, sizeof key, "%u", ++*number);
        const struct perhaps_key one = { key, length };
        const struct perhaps_keys keys = perhaps_keys_each(&one, 1);
        must(perhaps_remote_ask(remote, &keys, 0, 1, &done), "ask");
        must(fetch_bring(fetch, remote), "bring");
        must(perhaps_remote_answers(remote, &present), "answers");
    }
    return (now() - begin) * 1e6 / ASKED_AT_ONCE;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    const unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 40;
    if (argc < 2 || !rounds)
        return fprintf(stderr, "usage: remote_bench URL [ROUNDS]\n"), 2;
    const struct fetch_options how = { .url = argv[1], .connections = 8 };
    struct fetch *fetch;
    perhaps_remote *remote;
    double *get = calloc(rounds, sizeof *get), *ask = calloc(rounds, sizeof *ask);
    unsigned number = 0;
    must(fetch_new(&how, &fetch), "begin");
    must(perhaps_remote_new(NULL, &remote), "begin");
    must(fetch_bring(fetch, remote), "open");
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
    for (unsigned i = 0; i < rounds; i++) {
        get[i] = bare(easy, &number);
        ask[i] = asked(fetch, remote, &number);
    }
    qsort(get, rounds, sizeof *get, compare);
    qsort(ask, rounds, sizeof *ask, compare);
    printf("a bare GET of 64 bytes  %.1f us (least %.1f)\n", get[rounds / 2], get[0]);
    printf("a question for a key    %.1f us (least %.1f)\n", ask[rounds / 2], ask[0]);
    printf("ratio of the medians    %.3f\n", ask[rounds / 2] / get[rounds / 2]);
    curl_easy_cleanup(easy);
    fetch_free(fetch);
    perhaps_remote_free(remote);
    free(get);
    free(ask);
    return 0;
}
