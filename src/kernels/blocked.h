/* blocked.h - the loops of blocked Bloom filters, for any instruction set.
 *
 * The including file has defined, for a line that is aligned to 64 bytes:
 *   struct line_rule                      what is the same for all keys
 *   struct line_rule line_rule(bits)
 *   bool line_has(line, mark, &rule)      whether the key's bits are all set
 *   bool line_add(line, mark, &rule)      sets them; whether they were all set before
 *   RETURN_FOR_BITS(bits, call)           returns call(bits) */
#ifndef KERNELS_BLOCKED_H
#define KERNELS_BLOCKED_H

#include "layout.h"

/* Where the lines of keys lie: one in each part, or together.  The loops are inlined with what
 * the caller knows of it, so that none looks at it for each key. */
struct places {
    uint64_t part_lines;
    uint64_t parts;
    bool together;
};

static ALWAYS_INLINE struct places places_in_one(const uint64_t *field)
{
    return (struct places){ .part_lines = field[PART_LINES], .parts = 1 };
}

static ALWAYS_INLINE struct places places_in_parts(const uint64_t *field)
{
    return (struct places){ .part_lines = field[PART_LINES], .parts = field[PARTS] };
}

static ALWAYS_INLINE struct places places_together(const uint64_t *field)
{
    return (struct places){ .part_lines = field[PART_LINES],
                            .parts = field[PARTS],
                            .together = true };
}

static ALWAYS_INLINE uint64_t first_line_offset(struct keyhash key, struct places at)
{
    return at.together ? blocked_block_offset(key, at.part_lines, at.parts)
                       : blocked_line_offset(key, at.part_lines);
}

/* From line 'part' of a key, which is now the key of the next part, to that. */
static ALWAYS_INLINE uint64_t next_line_offset(uint64_t offset, struct keyhash key,
                                               struct places at, uint64_t part)
{
    return at.together
               ? offset + LINE_NBYTES
               : part * at.part_lines * LINE_NBYTES + blocked_line_offset(key, at.part_lines);
}

static ALWAYS_INLINE void prefetch_lines(const uint8_t *body, struct places at,
                                         struct keyhash key)
{
    uint64_t offset = first_line_offset(key, at);
    PREFETCH(body + offset);
    for (uint64_t part = 1; part < at.parts; part++) {
        key = blocked_next_part(key);
        offset = next_line_offset(offset, key, at, part);
        PREFETCH(body + offset);
    }
}

/* line_has(), or another question of this form. */
typedef bool line_test(const uint8_t *line, uint64_t mark, const struct line_rule *rule);

static ALWAYS_INLINE bool lines_have(const uint8_t *body, struct places at,
                                     const struct line_rule *rule, struct keyhash key,
                                     line_test *has)
{
    uint64_t offset = first_line_offset(key, at);
    bool all = has(body + offset, key.mark, rule);
    if (LIKELY(at.parts == 1))
        return all;
    for (uint64_t part = 1; part < at.parts; part++) {
        key = blocked_next_part(key);
        offset = next_line_offset(offset, key, at, part);
        all &= has(body + offset, key.mark, rule);
    }
    return all;
}

static ALWAYS_INLINE bool lines_add(uint8_t *body, struct places at,
                                    const struct line_rule *rule, struct keyhash key)
{
    uint64_t offset = first_line_offset(key, at);
    bool all = line_add(body + offset, key.mark, rule);
    if (LIKELY(at.parts == 1))
        return all;
    for (uint64_t part = 1; part < at.parts; part++) {
        key = blocked_next_part(key);
        offset = next_line_offset(offset, key, at, part);
        all &= line_add(body + offset, key.mark, rule);
    }
    return all;
}

static ALWAYS_INLINE size_t contains_in(const uint8_t *body, struct places at, unsigned bits,
                                        const struct keyhash *keys, const struct keyhash *ahead,
                                        size_t n, bool *answer, line_test *has)
{
    struct line_rule rule = line_rule(bits);
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_lines(body, at, ahead[i]);
        answer[i] = lines_have(body, at, &rule, keys[i], has);
        found += answer[i];
    }
    return found;
}

static ALWAYS_INLINE size_t add_in(uint8_t *body, struct places at, unsigned bits,
                                   const struct keyhash *keys, const struct keyhash *ahead,
                                   size_t n, bool *answer)
{
    struct line_rule rule = line_rule(bits);
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_lines(body, at, ahead[i]);
        answer[i] = lines_add(body, at, &rule, keys[i]);
        found += answer[i];
    }
    return found;
}

static void blocked_prefetch(const uint8_t *body, const uint64_t *field,
                             const struct keyhash *keys, size_t n)
{
    struct places at = field[TOGETHER] ? places_together(field) : places_in_parts(field);
    for (size_t i = 0; i < n; i++)
        prefetch_lines(body, at, keys[i]);
}

/* One loop for filters of one part, which are most, and two for those of several. */
static size_t blocked_contains(const uint8_t *body, const uint64_t *field,
                               const struct keyhash *keys, const struct keyhash *ahead,
                               size_t n, bool *answer)
{
#define CONTAINED(places, bits)                                                                \
    contains_in(body, places(field), bits, keys, ahead, n, answer, line_has)
#define CONTAINED_IN_ONE(bits)   CONTAINED(places_in_one, bits)
#define CONTAINED_IN_PARTS(bits) CONTAINED(places_in_parts, bits)
#define CONTAINED_TOGETHER(bits) CONTAINED(places_together, bits)
    if (field[PARTS] == 1)
        RETURN_FOR_BITS(field[LINE_BITS], CONTAINED_IN_ONE)
    if (field[TOGETHER])
        RETURN_FOR_BITS(field[LINE_BITS], CONTAINED_TOGETHER)
    RETURN_FOR_BITS(field[LINE_BITS], CONTAINED_IN_PARTS)
}

static size_t blocked_add(uint8_t *body, const uint64_t *field, const struct keyhash *keys,
                          const struct keyhash *ahead, size_t n, bool *answer)
{
#define ADDED(places, bits)  add_in(body, places(field), bits, keys, ahead, n, answer)
#define ADDED_TO_ONE(bits)   ADDED(places_in_one, bits)
#define ADDED_TO_PARTS(bits) ADDED(places_in_parts, bits)
#define ADDED_TOGETHER(bits) ADDED(places_together, bits)
    if (field[PARTS] == 1)
        RETURN_FOR_BITS(field[LINE_BITS], ADDED_TO_ONE)
    if (field[TOGETHER])
        RETURN_FOR_BITS(field[LINE_BITS], ADDED_TOGETHER)
    RETURN_FOR_BITS(field[LINE_BITS], ADDED_TO_PARTS)
}

static ALWAYS_INLINE bool one_in(const uint8_t *body, struct places at, unsigned bits,
                                 struct keyhash key, line_test *has)
{
    struct line_rule rule = line_rule(bits);
    return lines_have(body, at, &rule, key, has);
}

static bool blocked_contains_one(const uint8_t *body, const uint64_t *field, struct keyhash key)
{
#define ONE_IN_ONE(bits)   one_in(body, places_in_one(field), bits, key, line_has)
#define ONE_IN_PARTS(bits) one_in(body, places_in_parts(field), bits, key, line_has)
#define ONE_TOGETHER(bits) one_in(body, places_together(field), bits, key, line_has)
    if (LIKELY(field[PARTS] == 1))
        RETURN_FOR_BITS(field[LINE_BITS], ONE_IN_ONE)
    if (field[TOGETHER])
        RETURN_FOR_BITS(field[LINE_BITS], ONE_TOGETHER)
    RETURN_FOR_BITS(field[LINE_BITS], ONE_IN_PARTS)
}

static ALWAYS_INLINE bool add_one_in(uint8_t *body, struct places at, unsigned bits,
                                     struct keyhash key)
{
    struct line_rule rule = line_rule(bits);
    return lines_add(body, at, &rule, key);
}

static bool blocked_add_one(uint8_t *body, const uint64_t *field, struct keyhash key)
{
#define ADD_ONE_TO_ONE(bits)   add_one_in(body, places_in_one(field), bits, key)
#define ADD_ONE_TO_PARTS(bits) add_one_in(body, places_in_parts(field), bits, key)
#define ADD_ONE_TOGETHER(bits) add_one_in(body, places_together(field), bits, key)
    if (LIKELY(field[PARTS] == 1))
        RETURN_FOR_BITS(field[LINE_BITS], ADD_ONE_TO_ONE)
    if (field[TOGETHER])
        RETURN_FOR_BITS(field[LINE_BITS], ADD_ONE_TOGETHER)
    RETURN_FOR_BITS(field[LINE_BITS], ADD_ONE_TO_PARTS)
}

#define BLOCKED_LOOPS                                                                          \
    {                                                                                          \
        .prefetch = blocked_prefetch, .contains = blocked_contains, .add = blocked_add,        \
        .contains_one = blocked_contains_one, .add_one = blocked_add_one,                      \
    }

#endif
