/* slot_loops.h - the loops of filters whose keys lie in slots, for one instruction set: for
 * the files of loops that each_cpu.h includes.  The widths that plans take most often have
 * loops of their own, where shifts are by constants; not in scalar code, which few CPUs run.
 *
 * Before it includes this, a file defines
 *     SLOTS_NARROW_MAX               the width up to which all goes by one load
 *     slots_size(b)                  the size of the body: how many buckets or places
 *     slots_prefetch(body, size, width, key)
 *     slots_have(body, size, width, key)    whether the key is perhaps there
 *     slots_put(body, size, width, key)     adds it; false, if no slot is empty or it is not
 *                                           known, and nothing has changed
 *     add_by_moves(b, key)                  adds it then: 0, or PERHAPS_ERR_COPIES or _FULL */
#ifndef SLOT_LOOPS_NAMES
#define SLOT_LOOPS_NAMES
#define contains_at        FOR_CPU(contains_at)
#define add_at             FOR_CPU(add_at)
#define add_one_at         FOR_CPU(add_one_at)
#define add_absent_at      FOR_CPU(add_absent_at)
#define add_one_by_moves   FOR_CPU(add_one_by_moves)
#define slots_prefetch_all FOR_CPU(slots_prefetch_all)
#define slot_loops_at      FOR_CPU(slot_loops_at)
#define narrow_width       FOR_CPU(narrow_width)
#define wide_width         FOR_CPU(wide_width)
#define AT(name, width)    FOR_CPU(slots_##name##_##width)
#endif

#if CPU_HAS_AVX2 || CPU_HAS_NEON
/* Return the width, and tell the compiler which half of the loops it needs. */
static ALWAYS_INLINE unsigned narrow_width(const struct body *b)
{
    if (b->field[WIDTH] > SLOTS_NARROW_MAX)
        __builtin_unreachable();
    return (unsigned)b->field[WIDTH];
}

static ALWAYS_INLINE unsigned wide_width(const struct body *b)
{
    if (b->field[WIDTH] <= SLOTS_NARROW_MAX)
        __builtin_unreachable();
    return (unsigned)b->field[WIDTH];
}
#endif

static void slots_prefetch_all(const struct body *b, const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        slots_prefetch(b->bytes, slots_size(b), (unsigned)b->field[WIDTH], keys[i]);
}

static ALWAYS_INLINE size_t contains_at(const struct body *b, unsigned width,
                                        const struct keyhash *keys, const struct keyhash *ahead,
                                        size_t n, bool *answer)
{
    const uint8_t *body = b->bytes;
    const uint64_t size = slots_size(b);
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        slots_prefetch(body, size, width, ahead[i]);
        answer[i] = slots_have(body, size, width, keys[i]);
        found += answer[i];
    }
    return found;
}

static ALWAYS_INLINE int add_at(const struct body *b, unsigned width,
                                const struct keyhash *keys, const struct keyhash *ahead,
                                size_t n, bool unless_present, bool *answer, size_t *done)
{
    uint8_t *body = b->bytes;
    const uint64_t size = slots_size(b);
    int error = 0;
    size_t i = 0;
    for (; i < n && !error; i++) {
        slots_prefetch(body, size, width, ahead[i]);
        if (unless_present && (answer[i] = slots_have(body, size, width, keys[i])))
            continue;
        if (!slots_put(body, size, width, keys[i]))
            error = add_by_moves(b, keys[i]);
    }
    *done = i - (error != 0);
    return error;
}

static NOINLINE int add_one_by_moves(const struct body *b, struct keyhash key,
                                     struct counters *counters)
{
    int error = add_by_moves(b, key);
    counters->keys += !error;
    counters->failed_adds += error != 0;
    return error;
}

static ALWAYS_INLINE int add_one_at(const struct body *b, unsigned width, struct keyhash key,
                                    struct counters *counters)
{
    if (!slots_put(b->bytes, slots_size(b), width, key))
        return add_one_by_moves(b, key, counters);
    counters->keys++;
    return 0;
}

/* What add_one_at() does for a set. */
static ALWAYS_INLINE int add_absent_at(const struct body *b, unsigned width, struct keyhash key,
                                       struct counters *counters)
{
    return slots_have(b->bytes, slots_size(b), width, key)
               ? 0
               : add_one_at(b, width, key, counters);
}

/* 'one' says whether the _integer forms inline the _one forms; otherwise they jump to them,
 * which takes two instructions more and saves code. */
/* NOLINTBEGIN(bugprone-macro-parentheses): an attribute takes none */
#define LOOPS_AT(name, width, one)                                                             \
    static size_t AT(contains, name)(const struct body *b, const struct keyhash *keys,         \
                                     const struct keyhash *ahead, size_t n, bool *answer)      \
    {                                                                                          \
        return contains_at(b, width, keys, ahead, n, answer);                                  \
    }                                                                                          \
    static int AT(add, name)(const struct body *b, const struct keyhash *keys,                 \
                             const struct keyhash *ahead, size_t n, bool unless_present,       \
                             bool *answer, size_t *done)                                       \
    {                                                                                          \
        return unless_present ? add_at(b, width, keys, ahead, n, true, answer, done)           \
                              : add_at(b, width, keys, ahead, n, false, answer, done);         \
    }                                                                                          \
    static one bool AT(contains_one, name)(const struct body *b, struct keyhash key)           \
    {                                                                                          \
        return slots_have(b->bytes, slots_size(b), width, key);                                \
    }                                                                                          \
    static one int AT(add_one, name)(const struct body *b, struct keyhash key,                 \
                                     struct counters *counters)                                \
    {                                                                                          \
        return add_one_at(b, width, key, counters);                                            \
    }                                                                                          \
    static NOINLINE int AT(add_absent, name)(const struct body *b, struct keyhash key,         \
                                             struct counters *counters)                        \
    {                                                                                          \
        return add_absent_at(b, width, key, counters);                                         \
    }                                                                                          \
    CONTAINS_INTEGER(AT(contains_integer, name), AT(contains_one, name))                       \
    ADD_INTEGER(AT(add_integer, name), AT(add_one, name))                                      \
    ADD_INTEGER(AT(add_integer_absent, name), AT(add_absent, name))                            \
    static const struct slot_loops AT(                                                         \
        loops, name) = { { .prefetch = slots_prefetch_all,                                     \
                           .contains = AT(contains, name),                                     \
                           .contains_one = AT(contains_one, name),                             \
                           .contains_integer = AT(contains_integer, name),                     \
                           .add_one = AT(add_one, name),                                       \
                           .add_integer = AT(add_integer, name) },                             \
                         AT(add, name),                                                        \
                         AT(add_absent, name),                                                 \
                         AT(add_integer_absent, name) }
/* NOLINTEND(bugprone-macro-parentheses) */

#if CPU_HAS_AVX2 || CPU_HAS_NEON
LOOPS_AT(8, 8, NOINLINE);
LOOPS_AT(10, 10, NOINLINE);
LOOPS_AT(12, 12, NOINLINE);
LOOPS_AT(16, 16, inline);
LOOPS_AT(narrow, narrow_width(b), NOINLINE);
LOOPS_AT(wide, wide_width(b), NOINLINE);
#else
LOOPS_AT(any, (unsigned)b->field[WIDTH], NOINLINE);
#endif

static const struct slot_loops *slot_loops_at(unsigned width)
{
#if CPU_HAS_AVX2 || CPU_HAS_NEON
    switch (width) {
    case 8:
        return &AT(loops, 8);
    case 10:
        return &AT(loops, 10);
    case 12:
        return &AT(loops, 12);
    case 16:
        return &AT(loops, 16);
    default:
        return width <= SLOTS_NARROW_MAX ? &AT(loops, narrow) : &AT(loops, wide);
    }
#else
    (void)width;
    return &AT(loops, any);
#endif
}
