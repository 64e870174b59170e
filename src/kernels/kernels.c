/* kernels.c - which kernels run on this CPU. */
#include "kernels.h"

#include <stdlib.h>
#include <string.h>

#include "../base/bytes.h"

enum { TABLES_MAX = 4 };

/* Lists the tables, best last.  Returns how many. */
static size_t list_tables(const struct kernels *list[TABLES_MAX])
{
    size_t n = 0;
    list[n++] = &kernels_scalar;
#if THREAD_SANITIZED /* it does not understand vectors that are read while words change */
    return n;
#elif defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
    if (avx2)
        list[n++] = &kernels_avx2;
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        list[n++] = &kernels_avx512;
#elif defined(__aarch64__)
    list[n++] = &kernels_neon;
#endif
    return n;
}

const struct kernels *kernels_at(size_t index)
{
    const struct kernels *list[TABLES_MAX];
    return index < list_tables(list) ? list[index] : NULL;
}

const struct kernels *kernels_choose(void)
{
    const struct kernels *list[TABLES_MAX];
    size_t n = list_tables(list);
    const char *wanted = secure_getenv("PERHAPS_CPU");
    for (size_t i = 0; wanted && i < n; i++)
        if (!strcmp(list[i]->name, wanted))
            return list[i];
    return list[n - 1];
}
