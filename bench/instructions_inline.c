/* instructions_inline.c - the operations of perhaps-instructions that make no calls. */
#include "instructions.h"

#include <perhaps_fast.h>

/* Defines an operation: it goes over all keys by a function of a view, which becomes a part of
 * the loop. */
#define OPERATION(name, view, function)                                                        \
    int name(const struct work *work)                                                          \
    {                                                                                          \
        struct view v = view##_of(work->filter);                                               \
        const uint64_t *key = work->keys.packed, *end = key + work->keys.count;                \
        int sum = 0;                                                                           \
        for (; key < end; key++)                                                               \
            sum += function(&v, *key);                                                         \
        return sum;                                                                            \
    }

OPERATION(counted_inline_ask, perhaps_view, perhaps_view_contains_integer)
OPERATION(counted_inline_add, perhaps_view, perhaps_view_add_integer)
OPERATION(counted_inline_ask_hashed, perhaps_view, perhaps_view_contains_hash64)
OPERATION(counted_inline_add_hashed, perhaps_view, perhaps_view_add_hash64)
OPERATION(counted_inline_ask_cuckoo, perhaps_cuckoo_view, perhaps_cuckoo_view_contains_integer)
OPERATION(counted_inline_ask_ribbon, perhaps_ribbon_view, perhaps_ribbon_view_contains_integer)
