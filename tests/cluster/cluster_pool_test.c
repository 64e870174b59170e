/* cluster_pool_test.c - the pool of handles, on a real server.
 *
 *     cluster_pool_test PORT
 *
 * runs all tests, on an empty server. */
#include <stdatomic.h>
#include <string.h>

#include "async_support.h"

static unsigned server_port;

enum { USERS = 8, MOST = 3 };

struct user {
    perhaps_cluster_pool *pool;
    unsigned number, n, nwrong;
    atomic_uint *nout, *nmost;
};

static void *use_pool(void *context)
{
    struct user *user = context;
    for (unsigned i = 0; i < user->n; i++) {
        uint64_t number = (uint64_t)user->number << 32 | i;
        perhaps_cluster *handle;
        int error = perhaps_cluster_pool_take(user->pool, &handle);
        if (error) {
            user->nwrong += 1000;
            perhaps_cluster_free(handle);
            continue;
        }
        unsigned nout = ++*user->nout;
        if (nout > *user->nmost)
            *user->nmost = nout;
        user->nwrong += perhaps_cluster_add(handle, &number, sizeof number) != 0;
        user->nwrong += perhaps_cluster_contains(handle, &number, sizeof number) != 1;
        --*user->nout;
        perhaps_cluster_pool_give(user->pool, handle, 0);
    }
    return NULL;
}

TEST(test_pool_of_many_threads)
{
    struct user user[USERS];
    struct url url = url_of(server_port, "pool");
    perhaps_cluster_pool *pool;
    atomic_uint nout = 0, nmost = 0;
    make(url, 100000, PERHAPS_HASH_XXH3);
    expect_success(perhaps_cluster_pool_new(
        &(struct perhaps_cluster_options){ .url = url.text }, MOST, &pool));
    for (unsigned i = 0; i < USERS; i++)
        user[i] = (struct user){ pool, i, many(200), 0, &nout, &nmost };
    run_threads(USERS, use_pool, user, sizeof *user);
    for (unsigned i = 0; i < USERS; i++)
        expect(user[i].nwrong == 0);
    expect(nmost > 0 && nmost <= MOST);
    perhaps_cluster_pool_free(pool);
}

/* The handle that was given back last is taken first, and a broken one is not kept. */
TEST(test_pool_keeps_handles)
{
    struct url url = url_of(server_port, "pool");
    perhaps_cluster_pool *pool;
    perhaps_cluster *handle[3], *other;
    make(url, 1000, PERHAPS_HASH_XXH3);
    expect_success(perhaps_cluster_pool_new(
        &(struct perhaps_cluster_options){ .url = url.text }, 0, &pool));
    for (int i = 0; i < 3; i++)
        expect_success(perhaps_cluster_pool_take(pool, &handle[i]));
    for (int i = 0; i < 3; i++)
        perhaps_cluster_pool_give(pool, handle[i], i ? PERHAPS_ERR_FULL : 0);
    for (int i = 2; i >= 0; i--) {
        expect_success(perhaps_cluster_pool_take(pool, &other));
        expect(other == handle[i]);
    }
    make(url, 1000, PERHAPS_HASH_XXH3);
    int error = perhaps_cluster_contains(handle[0], "key", 3);
    expect(error < 0);
    for (int i = 0; i < 3; i++)
        perhaps_cluster_pool_give(pool, handle[i], error);
    expect_success(perhaps_cluster_pool_take(pool, &other));
    expect(perhaps_cluster_contains(other, "key", 3) == 0);
    perhaps_cluster_pool_give(pool, other, 0);
    perhaps_cluster_pool_free(pool);
    perhaps_cluster_pool_free(NULL);
}

static bool is_set(void *context)
{
    return *(const bool *)context;
}

/* What cannot be opened tells why, and does not count as taken; a wait can be stopped. */
TEST(test_pool_that_gives_none)
{
    struct url missing = url_of(server_port, "none"), url = url_of(server_port, "pool");
    struct perhaps_cluster_options options = { .url = missing.text };
    perhaps_cluster_pool *pool;
    perhaps_cluster *handle, *second;
    bool stop = false;
    expect_success(perhaps_cluster_pool_new(&options, 1, &pool));
    for (int i = 0; i < 3; i++) {
        expect_error(perhaps_cluster_pool_take(pool, &handle), PERHAPS_ERR_MISSING);
        expect(strstr(perhaps_cluster_problem(handle), "no filter"));
        perhaps_cluster_free(handle);
    }
    perhaps_cluster_pool_free(pool);

    make(url, 1000, PERHAPS_HASH_XXH3);
    options = (struct perhaps_cluster_options){ .url = url.text,
                                                .stopped = is_set,
                                                .context = &stop };
    expect_success(perhaps_cluster_pool_new(&options, 1, &pool));
    expect_success(perhaps_cluster_pool_take(pool, &handle));
    stop = true;
    expect_error(perhaps_cluster_pool_take(pool, &second), PERHAPS_ERR_STOPPED);
    expect(!second);
    perhaps_cluster_pool_give(pool, handle, 0);
    perhaps_cluster_pool_free(pool);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    server_port = (unsigned)strtoul(argv[1], NULL, 10);
    return run_all_tests();
}
