/* async_support.c - see async_support.h. */
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "async_support.h"

struct url url_of(unsigned port, const char *name)
{
    struct url url;
    snprintf(url.text, sizeof url.text, "redis://127.0.0.1:%u/%s", port, name);
    return url;
}

void free_cluster(perhaps_cluster **c)
{
    perhaps_cluster_free(*c);
}

void free_async(perhaps_cluster_async **async)
{
    perhaps_cluster_async_free(*async);
}

perhaps_cluster *handle_of(struct url url)
{
    perhaps_cluster *c;
    expect_success(
        perhaps_cluster_new(&(struct perhaps_cluster_options){ .url = url.text }, &c));
    return c;
}

void make(struct url url, uint64_t capacity, enum perhaps_hash hash)
{
    struct perhaps_options options = { .capacity = capacity,
                                       .fpr = 1e-9,
                                       .hashing = { .seed = 1, .hash = hash } };
    scoped_cluster *c = handle_of(url);
    perhaps_cluster_delete(c); /* there may be none */
    expect_success(perhaps_cluster_create(c, &options, 0));
}

perhaps_cluster_async *client_of(struct url url)
{
    perhaps_cluster_async *async;
    expect_success(perhaps_cluster_async_new(
        &(struct perhaps_cluster_options){ .url = url.text, .timeout_ms = 60000 }, &async));
    return async;
}

perhaps_cluster_async *client_of_new(unsigned port, const char *name, uint64_t capacity)
{
    struct url url = url_of(port, name);
    make(url, capacity, PERHAPS_HASH_XXH3);
    return client_of(url);
}

void note(void *context, const struct perhaps_cluster_result *result)
{
    struct asked *asked = context;
    asked->nended++;
    asked->error = result->error;
    asked->count = result->count;
    asked->nunknown = asked->npresent = 0;
    for (size_t i = 0; i < result->count; i++) {
        asked->nunknown += result->answers[i] == PERHAPS_ANSWER_UNKNOWN;
        asked->npresent += result->answers[i] == PERHAPS_ANSWER_PERHAPS;
    }
    snprintf(asked->problem, sizeof asked->problem, "%s", result->problem);
    if (asked->id && asked->id != result->id)
        asked->nended += 1000;
}

void submit(perhaps_cluster_async *async, submit_call *call, uint64_t number,
            unsigned deadline_ms, struct asked *asked)
{
    struct perhaps_keys keys = perhaps_keys_packed(&number, sizeof number, 1);
    *asked = (struct asked){ 0 };
    expect_success(call(async, &keys, deadline_ms, note, asked, &asked->id));
    expect(asked->id);
}

void loop_until_all_ended(perhaps_cluster_async *async)
{
    struct epoll_event event = { .events = EPOLLIN };
    int loop = epoll_create1(0);
    expect(loop >= 0);
    expect(!epoll_ctl(loop, EPOLL_CTL_ADD, perhaps_cluster_async_fd(async), &event));
    while (perhaps_cluster_async_step(async))
        epoll_wait(loop, &event, 1, -1);
    close(loop);
}

void loop_until(perhaps_cluster_async *async, const struct asked *asked)
{
    struct pollfd events = { perhaps_cluster_async_fd(async), POLLIN, 0 };
    while (perhaps_cluster_async_step(async) && !asked->nended)
        poll(&events, 1, -1);
}

void expect_answers(const struct asked *asked, size_t n, size_t npresent)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        scene("call %zu: %d: %s", i, asked[i].error, asked[i].problem);
        expect(asked[i].nended == 1 && !asked[i].error && !asked[i].nunknown);
        sum += asked[i].npresent;
    }
    scene("%zu of %zu keys are present, not %zu", sum, n, npresent);
    expect(sum == npresent);
}

void expect_ended(const struct asked *asked, int error)
{
    scene("%d: %s", asked->error, asked->problem);
    expect(asked->nended == 1);
    expect_error(asked->error, error);
    expect(!error || asked->problem[0]);
}
