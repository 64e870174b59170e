/* guard.c - the filter in front: it is asked and added to.  guard.h tells. */
#include "guard.h"

#include <stdio.h>
#include <string.h>

#include "guard_struct.h"

enum {
    BATCH = 1000,  /* addresses that go to the filter at once */
    SILENCE_S = 1, /* servers that have not answered are not asked for so long */
};

/* ---- Asking ------------------------------------------------------------------------------ */

static time_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

static void key_of_each(struct perhaps_key *keys, const char *const *emails, size_t count)
{
    for (size_t i = 0; i < count; i++)
        keys[i] = (struct perhaps_key){ emails[i], strlen(emails[i]) };
}

/* Servers that do not answer hold nobody up twice within a second. */
static void ask_servers(struct guard *guard, const struct perhaps_keys *keys, bool *perhaps)
{
    if (now_s() >= guard->silent_until_s) {
        int error = guard_find(guard);
        if (!error)
            error = perhaps_cluster_contains_many(guard->cluster, keys, perhaps, NULL);
        if (!error)
            return;
        guard->silent_until_s = now_s() + SILENCE_S;
        snprintf(guard->problem, sizeof guard->problem, "%s",
                 perhaps_cluster_problem(guard->cluster));
    }
    guard->nunanswered += keys->count;
    memset(perhaps, true, keys->count);
}

bool guard_perhaps(struct guard *guard, const char *email)
{
    bool perhaps;
    if (guard->filter)
        return perhaps_contains(guard->filter, email, strlen(email));
    guard_perhaps_many(guard, &email, 1, &perhaps);
    return perhaps;
}

void guard_perhaps_many(struct guard *guard, const char *const *emails, size_t count,
                        bool *perhaps)
{
    struct perhaps_key each[BATCH];
    for (size_t done = 0, n; done < count; done += n) {
        n = count - done < BATCH ? count - done : BATCH;
        struct perhaps_keys keys = perhaps_keys_each(each, n);
        key_of_each(each, emails + done, n);
        if (guard->filter)
            perhaps_contains_many(guard->filter, &keys, perhaps + done);
        else
            ask_servers(guard, &keys, perhaps + done);
    }
}

/* ---- Adding ------------------------------------------------------------------------------ */

static int add_some(struct guard *guard, const struct perhaps_keys *keys, bool *was_present)
{
    if (guard->filter)
        return perhaps_add_unless_present_many(guard->filter, keys, was_present, NULL);
    return perhaps_cluster_add_many(guard->cluster, keys, was_present, NULL);
}

void guard_add_many(struct guard *guard, const char *const *emails, size_t count)
{
    struct perhaps_key each[BATCH];
    for (size_t done = 0, n; done < count; done += n) {
        n = count - done < BATCH ? count - done : BATCH;
        struct perhaps_keys keys = perhaps_keys_each(each, n);
        key_of_each(each, emails + done, n);
        int error = add_some(guard, &keys, NULL);
        if (error)
            guard_fail(guard, error);
    }
}

bool guard_add(struct guard *guard, const char *email)
{
    bool was_present;
    struct perhaps_key key = { email, strlen(email) };
    struct perhaps_keys keys = perhaps_keys_each(&key, 1);
    int error = add_some(guard, &keys, &was_present);
    if (error)
        guard_fail(guard, error);
    return was_present;
}

/* ---- Inspecting -------------------------------------------------------------------------- */

uint64_t guard_nbytes(struct guard *guard)
{
    struct perhaps_cluster_stats on_servers;
    struct perhaps_stats stats;
    if (guard->cluster) {
        int error = perhaps_cluster_stats_of(guard->cluster, &on_servers);
        if (error)
            guard_fail(guard, error);
        return on_servers.memory_nbytes;
    }
    perhaps_stats_of(guard->filter, &stats);
    return stats.memory_nbytes;
}

uint64_t guard_unanswered(const struct guard *guard, const char **problem)
{
    *problem = guard->problem;
    return guard->nunanswered;
}
