#pragma GCC diagnostic ignored "-Wmisleading-indentation"
/* TEMPORARY stand-ins until the library has these. */
#ifndef LACK_H
#define LACK_H
#include <perhaps.h>
#include <string.h>
static inline size_t perhaps_contains_many_at(const perhaps_filter *f,
                                              const struct perhaps_keys *k, uint64_t now,
                                              bool *p)
{
    perhaps_filter *c;
    size_t n = 0;
    if (!perhaps_clone(f, &c)) {
        perhaps_advance(c, now);
        n = perhaps_contains_many(c, k, p);
        perhaps_free(c);
    }
    return n;
}
static inline int perhaps_shrink(const perhaps_filter *f, double fpr, perhaps_filter **s)
{
    (void)f;
    (void)fpr;
    (void)s;
    return PERHAPS_ERR_UNSUPPORTED;
}
static inline int perhaps_create_like(const perhaps_filter *m, const struct perhaps_hashing *h,
                                      const struct perhaps_allocator *a, perhaps_filter **f)
{
    (void)m;
    (void)h;
    (void)a;
    (void)f;
    return PERHAPS_ERR_UNSUPPORTED;
}
#endif
