#include "failing_memory.h"

#include <stddef.h>

static unsigned calls_left;

void *__real_malloc(size_t nbytes);
void *__real_realloc(void *memory, size_t nbytes);
void *__wrap_malloc(size_t nbytes);
void *__wrap_realloc(void *memory, size_t nbytes);

void fail_memory(unsigned number)
{
    calls_left = number;
}

static int fails(void)
{
    return calls_left && --calls_left == 0;
}

void *__wrap_malloc(size_t nbytes)
{
    return fails() ? NULL : __real_malloc(nbytes);
}

void *__wrap_realloc(void *memory, size_t nbytes)
{
    return fails() ? NULL : __real_realloc(memory, nbytes);
}
