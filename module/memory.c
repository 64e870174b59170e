/* memory.c - memory from the server, which counts it. */
#include "memory.h"

#include <perhaps_build.h>
#include <string.h>

#include "running.h"

static unsigned long long taken;

/* Returns how many bytes maxmemory leaves.  If the server may throw keys away to make room,
 * these are all that maxmemory allows. */
static unsigned long long maxmemory_leaves(void)
{
    RedisModuleCtx *ctx = running_context();
    const int flags = server.GetContextFlags(ctx);
    if (!(flags & CTX_MAXMEMORY))
        return ~0ULL;
    RedisModuleServerInfoData *info = server.GetServerInfo(ctx, "memory");
    int error = 0;
    unsigned long long most = server.ServerInfoGetFieldUnsigned(info, "maxmemory", &error);
    unsigned long long used = server.ServerInfoGetFieldUnsigned(info, "used_memory", &error);
    server.FreeServerInfo(ctx, info);
    if (error || flags & CTX_EVICT)
        used = 0;
    return error ? ~0ULL : most > used ? most - used : 0;
}

static bool is_too_much(size_t nbytes)
{
    return nbytes >= MEMORY_LOOK_NBYTES && running_now() == RUNNING_COMMAND &&
           (nbytes > perhaps_host_memory_nbytes() || nbytes > maxmemory_leaves());
}

/* A server that cannot try to get zeroed memory ends itself if there is none.  So it first
 * tries to get any. */
static void *take_zeros(size_t nbytes)
{
    if (server.TryCalloc)
        return server.TryCalloc(1, nbytes);
    if (server.TryAlloc) {
        void *memory = server.TryAlloc(nbytes);
        if (!memory)
            return NULL;
        if (nbytes < MEMORY_LOOK_NBYTES)
            return memset(memory, 0, nbytes);
        server.Free(memory);
    }
    return server.Calloc(1, nbytes);
}

static void *take_any(size_t nbytes)
{
    return server.TryAlloc ? server.TryAlloc(nbytes) : server.Alloc(nbytes);
}

static size_t block_nbytes(void *memory)
{
    return server.MallocSize ? server.MallocSize(memory) : 0;
}

/* Returns whether the server shall rather end itself, as it does where it lacks memory for its
 * own keys: what is on disk or at the master is whole then. */
static bool is_needed(void)
{
    const enum running running = running_now();
    return running == RUNNING_REPLAY || running == RUNNING_SAVE;
}

static void *take_checked(size_t nbytes, void *(*from_server)(size_t nbytes))
{
    void *memory = is_too_much(nbytes) ? NULL : from_server(nbytes);
    if (!memory && is_needed())
        memory = server.Calloc(1, nbytes);
    if (memory)
        __atomic_fetch_add(&taken, block_nbytes(memory), __ATOMIC_RELAXED);
    return memory;
}

void *memory_take(size_t nbytes)
{
    return take_checked(nbytes, take_zeros);
}

void *memory_take_any(size_t nbytes)
{
    return take_checked(nbytes, take_any);
}

void memory_give(void *memory)
{
    if (!memory)
        return;
    __atomic_fetch_sub(&taken, block_nbytes(memory), __ATOMIC_RELAXED);
    server.Free(memory);
}

unsigned long long memory_taken(void)
{
    return __atomic_load_n(&taken, __ATOMIC_RELAXED);
}

static void *allocate(void *context, size_t nbytes)
{
    (void)context;
    return memory_take(nbytes);
}

static void release_counted(void *context, void *memory, size_t nbytes)
{
    (void)context;
    (void)nbytes;
    memory_give(memory);
}

const struct perhaps_allocator memory_of_server = { .allocate = allocate,
                                                    .release = release_counted,
                                                    .zeroes = true };
