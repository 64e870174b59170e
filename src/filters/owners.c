/* owners.c - keys sorted by the region of their line. */
#include "owners.h"

#include <sched.h>

#include "../kernels/layout.h"
#include "locks.h"

/* The keys of a batch by region; behind the last there are some to prefetch. */
struct sorted {
    unsigned shift;              /* from line to region */
    unsigned first;              /* region of which the turn comes first */
    uint16_t start[REGIONS + 1]; /* of each turn's keys */
    uint16_t origin[BATCH_MOST]; /* where the key stood */
    struct keyhash keys[BATCH_MOST + BATCH_AHEAD];
    bool answer[BATCH_MOST];
};

static unsigned turn_of(const struct sorted *s, const struct keyhash *key, uint64_t lines)
{
    return (unsigned)((scale64(key->place, lines) >> s->shift) + REGIONS - s->first) % REGIONS;
}

/* Whole lines to a region, and no more regions than there are. */
static unsigned region_shift(uint64_t lines)
{
    unsigned shift = 0;
    while ((lines - 1) >> shift >= REGIONS)
        shift++;
    return shift;
}

static void sort_keys(struct sorted *s, const struct keyhash *keys, size_t n, uint64_t lines)
{
    uint8_t turn[BATCH_MOST];
    uint16_t at[REGIONS] = { 0 };
    for (size_t i = 0; i < n; i++) {
        turn[i] = (uint8_t)turn_of(s, &keys[i], lines);
        at[turn[i]]++;
    }
    s->start[0] = 0;
    for (unsigned t = 0; t < REGIONS; t++) {
        s->start[t + 1] = (uint16_t)(s->start[t] + at[t]);
        at[t] = s->start[t];
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t to = at[turn[i]]++;
        s->keys[to] = keys[i];
        s->origin[to] = (uint16_t)i;
    }
    for (size_t i = 0; i < BATCH_AHEAD; i++)
        s->keys[n + i] = s->keys[n - 1];
}

static void add_one(struct owners *owners, const struct loops *loops, uint8_t *body,
                    const uint64_t *field, const struct keyhash *key, bool *answer)
{
    uint64_t line = scale64(key->place, field[PART_LINES]);
    uint8_t *lock = &owners->region[line >> region_shift(field[PART_LINES])].lock;
    lock_take(lock);
    loops->add(body, field, key, key, 1, answer);
    lock_release(lock);
}

void owners_add(struct owners *owners, const struct loops *loops, uint8_t *body,
                const uint64_t *field, const struct keyhash *keys, size_t n, bool *answer)
{
    struct sorted s;
    uint64_t lines = field[PART_LINES];
    if (n == 1) {
        add_one(owners, loops, body, field, keys, answer);
        return;
    }
    s.shift = region_shift(lines);
    /* threads begin at different places: their stacks lie apart */
    s.first = (unsigned)((uint64_t)(uintptr_t)&s * ODD_GOLDEN >> 32) % REGIONS;
    sort_keys(&s, keys, n, lines);
    loops->prefetch(body, field, s.keys, n < BATCH_AHEAD ? n : BATCH_AHEAD);

    uint32_t pending = 0; /* turns with keys */
    for (unsigned t = 0; t < REGIONS; t++)
        pending |= (uint32_t)(s.start[t + 1] > s.start[t]) << t;
    while (pending) {
        uint32_t before = pending;
        for (uint32_t left = pending; left; left &= left - 1) {
            unsigned t = (unsigned)__builtin_ctz(left);
            uint8_t *lock = &owners->region[(t + s.first) % REGIONS].lock;
            if (!lock_try(lock))
                continue; /* another has it: come back later */
            uint16_t from = s.start[t];
            loops->add(body, field, s.keys + from, s.keys + from + BATCH_AHEAD,
                       (size_t)(s.start[t + 1] - from), s.answer + from);
            lock_release(lock);
            pending &= ~(UINT32_C(1) << t);
        }
        if (pending == before)
            sched_yield();
    }
    for (size_t i = 0; i < n; i++)
        answer[s.origin[i]] = s.answer[i];
}
