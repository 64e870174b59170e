/* locks.h - spin locks of one byte.
 *
 * A writer holds one for a few memory accesses.  A shared filter may have many thousands of
 * them, so they are small.  Zeroed memory is an unlocked lock. */
#ifndef LOCKS_H
#define LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "../system/system.h"

/* Takes the lock if it is free, and returns whether it was.  The plain load comes first: while
 * another thread holds the lock, waiting threads only read its cache line.  That the exchange
 * is sequentially consistent is for owners.h; it costs nothing more. */
static inline bool lock_try(uint8_t *lock)
{
    return !__atomic_load_n(lock, __ATOMIC_RELAXED) &&
           !__atomic_exchange_n(lock, 1, __ATOMIC_SEQ_CST);
}

/* What a waiting thread does after each try.  The thread that holds the lock may have lost its
 * CPU, so now and then the waiting one offers its own. */
static inline void lock_wait(unsigned tries)
{
    enum { PATIENCE = 1000 };
    if (tries % PATIENCE == 0)
        thread_yield();
}

/* Waits until the lock is free and takes it. */
static inline void lock_take(uint8_t *lock)
{
    for (unsigned tries = 1; !lock_try(lock); tries++)
        lock_wait(tries);
}

static inline void lock_release(uint8_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
