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

static ALWAYS_INLINE void prefetch_lines(const uint8_t *body, uint64_t part_lines,
                                         uint64_t parts, struct keyhash key)
{
    for (uint64_t part = 0; part < parts; part++) {
        PREFETCH(body + blocked_line_offset(key, part_lines));
        body += part_lines * LINE_NBYTES;
        key = blocked_next_part(key);
    }
}

/* line_has(), or another question of this form. */
typedef bool line_test(const uint8_t *line, uint64_t mark, const struct line_rule *rule);

static ALWAYS_INLINE bool lines_have(const uint8_t *body, uint64_t part_lines, uint64_t parts,
                                     const struct line_rule *rule, struct keyhash key,
                                     line_test *has)
{
    bool all = has(body + blocked_line_offset(key, part_lines), key.mark, rule);
    if (LIKELY(parts == 1))
        return all;
    for (uint64_t part = 1; part < parts; part++) {
        body += part_lines * LINE_NBYTES;
        key = blocked_next_part(key);
        all &= has(body + blocked_line_offset(key, part_lines), key.mark, rule);
    }
    return all;
}

static ALWAYS_INLINE bool lines_add(uint8_t *body, uint64_t part_lines, uint64_t parts,
                                    const struct line_rule *rule, struct keyhash key)
{
    bool all = line_add(body + blocked_line_offset(key, part_lines), key.mark, rule);
    if (LIKELY(parts == 1))
        return all;
    for (uint64_t part = 1; part < parts; part++) {
        body += part_lines * LINE_NBYTES;
        key = blocked_next_part(key);
        all &= line_add(body + blocked_line_offset(key, part_lines), key.mark, rule);
    }
    return all;
}

static ALWAYS_INLINE size_t contains_in_parts(const uint8_t *body, uint64_t part_lines,
                                              uint64_t parts, unsigned bits,
                                              const struct keyhash *keys,
                                              const struct keyhash *ahead, size_t n,
                                              bool *answer, line_test *has)
{
    struct line_rule rule = line_rule(bits);
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_lines(body, part_lines, parts, ahead[i]);
        answer[i] = lines_have(body, part_lines, parts, &rule, keys[i], has);
        found += answer[i];
    }
    return found;
}

static ALWAYS_INLINE size_t add_in_parts(uint8_t *body, uint64_t part_lines, uint64_t parts,
                                         unsigned bits, const struct keyhash *keys,
                                         const struct keyhash *ahead, size_t n, bool *answer)
{
    struct line_rule rule = line_rule(bits);
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_lines(body, part_lines, parts, ahead[i]);
        answer[i] = lines_add(body, part_lines, parts, &rule, keys[i]);
        found += answer[i];
    }
    return found;
}

static void blocked_prefetch(const uint8_t *body, const uint64_t *field,
                             const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prefetch_lines(body, field[PART_LINES], field[PARTS], keys[i]);
}

/* One loop for filters of one part, which are most, and one for those of several. */
static size_t blocked_contains(const uint8_t *body, const uint64_t *field,
                               const struct keyhash *keys, const struct keyhash *ahead,
                               size_t n, bool *answer)
{
    uint64_t part_lines = field[PART_LINES], parts = field[PARTS];
#define IN_ONE(bits)                                                                           \
    contains_in_parts(body, part_lines, 1, bits, keys, ahead, n, answer, line_has)
#define IN_PARTS(bits)                                                                         \
    contains_in_parts(body, part_lines, parts, bits, keys, ahead, n, answer, line_has)
    if (parts == 1)
        RETURN_FOR_BITS(field[LINE_BITS], IN_ONE)
    RETURN_FOR_BITS(field[LINE_BITS], IN_PARTS)
}

static size_t blocked_add(uint8_t *body, const uint64_t *field, const struct keyhash *keys,
                          const struct keyhash *ahead, size_t n, bool *answer)
{
    uint64_t part_lines = field[PART_LINES], parts = field[PARTS];
#define TO_ONE(bits)   add_in_parts(body, part_lines, 1, bits, keys, ahead, n, answer)
#define TO_PARTS(bits) add_in_parts(body, part_lines, parts, bits, keys, ahead, n, answer)
    if (parts == 1)
        RETURN_FOR_BITS(field[LINE_BITS], TO_ONE)
    RETURN_FOR_BITS(field[LINE_BITS], TO_PARTS)
}

static ALWAYS_INLINE bool one_has(const uint8_t *body, const uint64_t *field, unsigned bits,
                                  struct keyhash key, line_test *has)
{
    struct line_rule rule = line_rule(bits);
    return lines_have(body, field[PART_LINES], field[PARTS], &rule, key, has);
}

static bool blocked_contains_one(const uint8_t *body, const uint64_t *field, struct keyhash key)
{
#define ONE_HAS(bits) one_has(body, field, bits, key, line_has)
    RETURN_FOR_BITS(field[LINE_BITS], ONE_HAS)
}

static ALWAYS_INLINE bool one_added(uint8_t *body, const uint64_t *field, unsigned bits,
                                    struct keyhash key)
{
    struct line_rule rule = line_rule(bits);
    return lines_add(body, field[PART_LINES], field[PARTS], &rule, key);
}

static bool blocked_add_one(uint8_t *body, const uint64_t *field, struct keyhash key)
{
#define ONE_ADDED(bits) one_added(body, field, bits, key)
    RETURN_FOR_BITS(field[LINE_BITS], ONE_ADDED)
}

#define BLOCKED_LOOPS                                                                          \
    {                                                                                          \
        .prefetch = blocked_prefetch, .contains = blocked_contains, .add = blocked_add,        \
        .contains_one = blocked_contains_one, .add_one = blocked_add_one,                      \
    }

#endif
