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
struct lack {
    uint64_t at, first, end;
    const struct perhaps_sink *sink;
};
static inline int lack_write(void *c, const void *b, size_t n)
{
    struct lack *l = c;
    uint64_t from = l->at > l->first ? l->at : l->first,
             to = l->at + n < l->end ? l->at + n : l->end;
    int e = 0;
    if (from < to && l->sink)
        e = l->sink->write(l->sink->context, (const char *)b + (from - l->at), to - from);
    l->at += n;
    return e;
}
static inline int perhaps_write_range(const perhaps_filter *f, uint64_t first, uint64_t n,
                                      const struct perhaps_sink *s)
{
    struct lack l = { 0, first, first + n, s };
    return perhaps_write(f, &(struct perhaps_sink){ lack_write, &l });
}
static inline uint64_t perhaps_write_nbytes(const perhaps_filter *f)
{
    struct lack l = { 0 };
    perhaps_write(f, &(struct perhaps_sink){ lack_write, &l });
    return l.at;
}
static inline void perhaps_digest(const perhaps_filter *f, uint8_t d[16])
{
    (void)f;
    memset(d, 0, 16);
}
static inline void perhaps_relocate(perhaps_filter **f, void *(*m)(void *, void *, size_t),
                                    void *c)
{
    (void)f;
    (void)m;
    (void)c;
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
