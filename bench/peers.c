/* peers.c - filters of other libraries, each if it is installed (HAVE_... from CMake). */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "bench.h"

/* ---- libbloom (github.com/jvirkki/libbloom): a classic Bloom filter in C -------------- */

#ifdef HAVE_LIBBLOOM
#include <bloom.h>

static const char *libbloom_create(const struct contender *self, const struct task *task,
                                   void **filter)
{
    (void)self;
    double nbits = (double)task->capacity * -log(task->fpr) / (M_LN2 * M_LN2);
    if (nbits > INT_MAX)
        return "counts its bits in an int: too many here";
    struct bloom *bloom = calloc(1, sizeof *bloom);
    if (!bloom || bloom_init(bloom, (int)task->capacity, task->fpr)) {
        free(bloom);
        return "could not be created";
    }
    *filter = bloom;
    return NULL;
}

static void libbloom_destroy(void *filter)
{
    bloom_free(filter);
    free(filter);
}

static void libbloom_clear(void *filter)
{
    bloom_reset(filter);
}

static uint64_t libbloom_nbytes(const void *filter)
{
    const struct bloom *bloom = filter;
    return (uint64_t)bloom->bytes;
}

static size_t libbloom_add(void *filter, const struct perhaps_keys *keys)
{
    const uint8_t *key = keys->packed;
    for (size_t i = 0; i < keys->count; i++, key += keys->key_nbytes)
        bloom_add(filter, key, (int)keys->key_nbytes);
    return keys->count;
}

static size_t libbloom_ask(const void *filter, const struct perhaps_keys *keys)
{
    struct bloom bloom = *(const struct bloom *)filter; /* it takes no pointer to const */
    const uint8_t *key = keys->packed;
    size_t found = 0;
    for (size_t i = 0; i < keys->count; i++, key += keys->key_nbytes)
        found += bloom_check(&bloom, key, (int)keys->key_nbytes) == 1;
    return found;
}
#endif

static const struct contender libbloom = {
    .name = "libbloom",
    .is_peer = true,
#ifdef HAVE_LIBBLOOM
    .can_threads = true,
    .create = libbloom_create,
    .destroy = libbloom_destroy,
    .clear = libbloom_clear,
    .nbytes = libbloom_nbytes,
    .add = { [SINGLE] = libbloom_add },
    .ask = { [SINGLE] = libbloom_ask },
#else
    .missing = "not installed (Debian: libbloom-dev)",
#endif
};

/* ---- All of them ----------------------------------------------------------------------- */

#ifndef HAVE_ROCKSDB
size_t peer_rocksdb(struct contender *list, size_t room)
{
    if (!room)
        return 0;
    *list = (struct contender){
        .name = "rocksdb",
        .is_peer = true,
        .missing = "not installed, or another version (Debian 12: librocksdb-dev, 7.8)",
    };
    return 1;
}
#endif

size_t peers_list(struct contender *list, size_t room)
{
    size_t count = 0;
    if (room)
        list[count++] = libbloom;
    count += peer_rocksdb(list + count, room - count);
    return count + peer_processes(list + count, room - count);
}
