/* failing_memory.c - counts the calls of malloc() and realloc() and makes one of them fail: see
 * failing_memory.h.  It knows one number only, so it is for tests of one thread. */
#include "failing_memory.h"

#include <stddef.h>

static unsigned calls_left; /* the call that makes this 0 fails; 0: none does */

/* With --wrap=malloc the linker turns a call of malloc() into __wrap_malloc(), and a call of
 * __real_malloc() into the C library's malloc(). */
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
