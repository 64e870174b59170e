/* locks.h - locks of one byte, held for a few memory accesses. */
#ifndef LOCKS_H
#define LOCKS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

static inline bool lock_try(uint8_t *lock)
{
    return !__atomic_load_n(lock, __ATOMIC_RELAXED) &&
           !__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE);
}

/* The holder may have lost its CPU: after a while ours is offered. */
static inline void lock_take(uint8_t *lock)
{
    enum { PATIENCE = 1000 };
    for (unsigned tries = 1; !lock_try(lock); tries++)
        if (tries % PATIENCE == 0)
            sched_yield();
}

static inline void lock_release(uint8_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
