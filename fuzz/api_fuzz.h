/* api_fuzz.h - what the parts of api_fuzz.c share: the input, two filters, and the calls. */
#ifndef API_FUZZ_H
#define API_FUZZ_H

#include <string.h>

#include "api_model.h"

struct play {
    const uint8_t *at; /* the input that is left */
    size_t left;
    struct ledger ledger;
    struct perhaps_hashing hashing;
    struct perhaps_options options; /* of both filters; hash and allocator stand elsewhere */
    struct subject side[2];         /* calls change the first */
    unsigned fail_next;             /* the allocation of the next call that fails; 0: none */
    uint64_t now;                   /* that a window was told */
    bool has_built;                 /* a builder was tried */
};

/* Returns the next byte of the input; 0 behind its end. */
static inline unsigned take(struct play *p)
{
    return p->left ? p->left--, (unsigned)*p->at++ : 0U;
}

struct digest {
    uint8_t bytes[16];
};

struct digest digest_of(const perhaps_filter *f);
bool same_digest(struct digest a, struct digest b);

/* Returns a copy, for which allocations do not fail. */
perhaps_filter *copy_of(struct play *p, const perhaps_filter *f);

/* Goes on with another filter, which must equal the first one, and frees that. */
void go_on_with(struct play *p, perhaps_filter *f);

/* A call, or several that belong together, with operands from the input. */
typedef void operation(struct play *p);

/* api_keys.c: keys in, out, and asked for. */
operation op_add, op_add_many, op_crowd, op_leave, op_ask, op_ask_many, op_remove,
    op_remove_many;

/* api_whole.c: filters as a whole, two of them, windows. */
operation op_clear, op_clone, op_swap, op_relocate, op_stats, op_merge, op_intersect,
    op_compare, op_rotate, op_advance, op_set_back;

/* api_bytes.c: filters as bytes, smaller filters, builders. */
operation op_load, op_map, op_range, op_damage, op_stream, op_shrink, op_build;

#endif
