/* cluster_crowd_test.c - asynchronous calls while a master is killed.
 *
 *     cluster_crowd_test CLUSTER_PORT
 *
 * lets a crowd of calls add and ask until standard input ends; then no key that was added may
 * be denied. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "async_support.h"

enum { CROWD = 300, NUMBERS = 1 << 22 };

struct member {
    struct crowd *crowd;
    uint64_t number; /* the key of its call */
    bool adds;
};

/* Each member has one call under way: it adds a key, asks for it, adds the next one, ... */
struct crowd {
    perhaps_cluster_async *async;
    struct member member[CROWD];
    bool is_in[NUMBERS]; /* whose add succeeded */
    uint64_t nasked, nerrors, ndenied;
    bool ending;
};

static perhaps_cluster_callback go_on_as_member;

static void submit_as_member(struct member *m)
{
    struct perhaps_keys keys = perhaps_keys_packed(&m->number, sizeof m->number, 1);
    expect_success((m->adds ? add : ask)(m->crowd->async, &keys, 0, go_on_as_member, m, NULL));
}

/* An add may fail, since after a failover the new master has no replica.  A question must be
 * answered, and rightly if the add before it succeeded. */
static void go_on_as_member(void *context, const struct perhaps_cluster_result *result)
{
    struct member *m = context;
    struct crowd *crowd = m->crowd;
    bool *is_in = &crowd->is_in[m->number];
    if (m->adds) {
        *is_in = !result->error;
    } else {
        crowd->nasked++;
        crowd->nerrors += result->error != 0;
        if (result->error && crowd->nerrors == 1)
            fprintf(stderr, "%s\n", result->problem);
        crowd->ndenied += *is_in && result->answers[0] == PERHAPS_ANSWER_NO;
        m->number += CROWD;
    }
    m->adds = !m->adds;
    if (!m->adds || (!crowd->ending && m->number < NUMBERS))
        submit_as_member(m);
}

/* Asks for all keys whose add succeeded, in one call. */
static void ask_for_all(struct crowd *crowd, struct asked *asked, size_t *n)
{
    uint64_t *number = calloc(NUMBERS, sizeof *number);
    *n = 0;
    for (uint64_t i = 0; i < NUMBERS; i++)
        if (crowd->is_in[i])
            number[(*n)++] = i;
    struct perhaps_keys keys = perhaps_keys_packed(number, sizeof *number, *n);
    expect_success(ask(crowd->async, &keys, 0, note, asked, NULL));
    free(number);
    loop_until_all_ended(crowd->async);
}

static int run_crowd(unsigned port)
{
    static struct crowd crowd;
    struct asked all = { 0 };
    struct url url = url_of(port, "crowd?acknowledge=1&patience=60s");
    struct pollfd events[2] = { { .events = POLLIN }, { STDIN_FILENO, POLLIN, 0 } };
    bool told = false;
    size_t n;
    make(url, NUMBERS, PERHAPS_HASH_XXH3);
    crowd.async = client_of(url);
    events[0].fd = perhaps_cluster_async_fd(crowd.async);
    for (uint64_t i = 0; i < CROWD; i++) {
        crowd.member[i] = (struct member){ .crowd = &crowd, .number = i, .adds = true };
        submit_as_member(&crowd.member[i]);
    }
    while (perhaps_cluster_async_step(crowd.async)) {
        poll(events, crowd.ending ? 1 : 2, -1);
        crowd.ending |= events[1].revents != 0;
        if (!told && crowd.nasked > CROWD)
            told = printf("ready\n") && fflush(stdout) == 0;
    }
    ask_for_all(&crowd, &all, &n);
    if (all.error)
        fprintf(stderr, "%s\n", all.problem);
    perhaps_cluster_async_free(crowd.async);
    fprintf(stderr,
            "%zu added, %zu of them found; asked %" PRIu64 " times: %" PRIu64
            " errors, %" PRIu64 " denied\n",
            n, all.npresent, crowd.nasked, crowd.nerrors, crowd.ndenied);
    return crowd.ndenied || crowd.nerrors || n < CROWD || all.error || all.npresent != n;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    return run_crowd((unsigned)strtoul(argv[1], NULL, 10));
}
