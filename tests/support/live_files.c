/* live_files.c - what the tests of live files share: see live_files.h. */
#include "live_files.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "store/record.h"

enum { LARGE_NBYTES = 1 << 20 };

static void *get_memory(void *context, size_t nbytes)
{
    (void)context;
    if (nbytes < LARGE_NBYTES)
        return calloc(1, nbytes);
    void *map = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

static void give_memory(void *context, void *memory, size_t nbytes)
{
    (void)context;
    if (nbytes < LARGE_NBYTES)
        free(memory);
    else
        munmap(memory, nbytes);
}

static const struct perhaps_allocator small_pages = { .allocate = get_memory,
                                                      .release = give_memory,
                                                      .zeroes = true };
const struct perhaps_open_options to_write = { .mode = PERHAPS_MODE_JOURNAL,
                                               .allocator = &small_pages };

static void *get_or_fail(void *context, size_t nbytes)
{
    struct failing_allocator *failing = context;
    if (++failing->calls == failing->fail_at)
        return NULL;
    failing->live++;
    return get_memory(NULL, nbytes);
}

static void give_and_count(void *context, void *memory, size_t nbytes)
{
    ((struct failing_allocator *)context)->live--;
    give_memory(NULL, memory, nbytes);
}

struct perhaps_allocator allocator_that_fails(struct failing_allocator *failing)
{
    return (struct perhaps_allocator){ get_or_fail, give_and_count, failing, true };
}

void put_file(struct path path, const void *bytes, size_t nbytes)
{
    unlink(path.text);
    write_file(path.text, bytes, nbytes);
}

void die(perhaps_filter *f)
{
    ((struct journal *)f->journal)->process = 0; /* as if this were a child of its process */
    perhaps_free(f);
}
