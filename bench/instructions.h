/* instructions.h - what the two files of perhaps-instructions share. */
#ifndef INSTRUCTIONS_H
#define INSTRUCTIONS_H

#include <perhaps.h>

/* What an operation works with. */
struct work {
    perhaps_filter *filter;
    struct perhaps_keys keys;
    bool *answers;
    uint64_t *copies;
};

/* Ask and add by a view, integers and ready hashes.  instructions_inline.c is compiled for
 * AVX2, as a program would be that wants no calls. */
int counted_inline_ask(const struct work *work);
int counted_inline_add(const struct work *work);
int counted_inline_ask_hashed(const struct work *work);
int counted_inline_add_hashed(const struct work *work);
int counted_inline_ask_cuckoo(const struct work *work);
int counted_inline_ask_ribbon(const struct work *work);

#endif
