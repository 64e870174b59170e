/* fake_server.c - a server in memory: see fake_server.h. */
#include "fake_server.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "../../module/server.h"

uint64_t fake_memory_ends;

/* What an enemy asks for should not take long. */
enum { BLOCK_MOST_NBYTES = 32 << 20 };

static void *try_calloc(size_t count, size_t nbytes)
{
    if (nbytes > BLOCK_MOST_NBYTES)
        return NULL;
    if (fake_memory_ends && --fake_memory_ends == 0) {
        fake_memory_ends = 1;
        return NULL;
    }
    return calloc(count, nbytes);
}

static size_t size_of(void *memory)
{
    return malloc_usable_size(memory);
}

/* ---- An RDB ----------------------------------------------------------------------------- */

static void append(RedisModuleIO *io, const void *bytes, size_t nbytes)
{
    if (io->nbytes + nbytes > io->room) {
        io->room = 2 * (io->nbytes + nbytes);
        io->bytes = realloc(io->bytes, io->room);
        if (!io->bytes)
            abort();
    }
    memcpy(io->bytes + io->nbytes, bytes, nbytes);
    io->nbytes += nbytes;
}

static void save(RedisModuleIO *io, char type, const void *word)
{
    append(io, &type, 1);
    append(io, word, 8);
}

static void save_unsigned(RedisModuleIO *io, uint64_t value)
{
    save(io, 'U', &value);
}

static void save_double(RedisModuleIO *io, double value)
{
    save(io, 'D', &value);
}

static void save_string(RedisModuleIO *io, const char *bytes, size_t nbytes)
{
    const uint64_t length = nbytes;
    save(io, 'S', &length);
    append(io, bytes, nbytes);
}

static int is_error(RedisModuleIO *io)
{
    return io->failed;
}

/* Reads the word of a field of this type; 0 if there is none. */
static void load(RedisModuleIO *io, char type, void *word)
{
    memset(word, 0, 8);
    io->failed = io->failed || io->nbytes - io->at < 9 || (char)io->bytes[io->at] != type;
    if (io->failed)
        return;
    memcpy(word, io->bytes + io->at + 1, 8);
    io->at += 9;
}

static uint64_t load_unsigned(RedisModuleIO *io)
{
    uint64_t value;
    load(io, 'U', &value);
    return value;
}

static double load_double(RedisModuleIO *io)
{
    double value;
    load(io, 'D', &value);
    return value;
}

static char *load_string(RedisModuleIO *io, size_t *nbytes)
{
    uint64_t length;
    load(io, 'S', &length);
    io->failed = io->failed || length > io->nbytes - io->at;
    char *bytes = io->failed ? NULL : malloc(length ? length : 1);
    if (!bytes)
        return NULL;
    memcpy(bytes, io->bytes + io->at, length);
    io->at += length;
    *nbytes = length;
    return bytes;
}

static void log_error(RedisModuleIO *io, const char *level, const char *format, ...)
{
    (void)level;
    (void)format;
    io->logged++;
}

/* ---- A digest --------------------------------------------------------------------------- */

static void digest_bytes(RedisModuleDigest *digest, const char *bytes, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        digest->hash = (digest->hash ^ (uint8_t)bytes[i]) * UINT64_C(0x100000001b3);
}

static void digest_end(RedisModuleDigest *digest)
{
    digest->hash = ~digest->hash;
}

/* Moves every block: whoever keeps the old address is found by AddressSanitizer.  As in a
 * server, a block keeps its size; the few for which the C library would return more stay where
 * they are. */
static void *defrag(RedisModuleDefragCtx *ctx, void *memory)
{
    (void)ctx;
    const size_t nbytes = malloc_usable_size(memory);
    void *moved = malloc(nbytes);
    if (!moved || malloc_usable_size(moved) != nbytes) {
        free(moved);
        return NULL;
    }
    memcpy(moved, memory, nbytes);
    free(memory);
    return moved;
}

static int flags(RedisModuleCtx *ctx)
{
    (void)ctx;
    return CTX_MASTER; /* no limit of memory */
}

void fake_server(void)
{
    server.TryCalloc = try_calloc;
    server.Calloc = calloc;
    server.Free = free;
    server.MallocSize = size_of;
    server.SaveUnsigned = save_unsigned;
    server.SaveDouble = save_double;
    server.SaveStringBuffer = save_string;
    server.LoadUnsigned = load_unsigned;
    server.LoadDouble = load_double;
    server.LoadStringBuffer = load_string;
    server.IsIOError = is_error;
    server.GetContextFlags = flags;
    server.LogIOError = log_error;
    server.DigestAddStringBuffer = digest_bytes;
    server.DigestEndSequence = digest_end;
    server.DefragAlloc = defrag;
}
