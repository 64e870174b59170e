#pragma GCC diagnostic ignored "-Wmisleading-indentation"
/* TEMPORARY stand-ins until the library has these. */
#ifndef LACK_H
#define LACK_H
#include <perhaps.h>
#include <string.h>
static inline int perhaps_shrink(const perhaps_filter *f, double fpr, perhaps_filter **s)
{
    (void)f;
    (void)fpr;
    (void)s;
    return PERHAPS_ERR_UNSUPPORTED;
}
#endif
