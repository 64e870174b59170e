/* types.c - what the server asks of a data type, once for each form. */
#include "types.h"

#include "keys.h"
#include "memory.h"
#include "running.h"

/* Freeing is work for another thread from so many pages on. */
enum { PAGE_NBYTES = 4096 };

static void *read(const struct form *form, RedisModuleIO *rdb, int encoding)
{
    running_load();
    void *filter = form->read(rdb, encoding);
    running_end();
    if (filter)
        __atomic_fetch_add(&tally.filters, 1, __ATOMIC_RELAXED);
    else
        server.LogIOError(rdb, "warning",
                          "a filter of type %s is damaged, of a later version, or "
                          "too large for the memory",
                          form->type_name);
    return filter;
}

/* Writes LOADCHUNKs of all pieces, none with more than DUMP_MOST_NBYTES of data. */
static void write_chunks(const struct form *form, RedisModuleIO *aof, RedisModuleString *key,
                         const void *filter)
{
    const char *command = form->family == FAMILY_BLOOM ? "BF.LOADCHUNK" : "CF.LOADCHUNK";
    struct dump piece;
    for (uint64_t position = 0;; position = piece.next) {
        if (form->dump(filter, position, &piece)) {
            server.LogIOError(aof, "warning", "too little memory to write a filter");
            return;
        }
        if (!piece.nbytes)
            return;
        server.EmitAOF(aof, command, "slb", key, (long long)piece.next, piece.bytes,
                       piece.nbytes);
        memory_give(piece.memory);
    }
}

static void rewrite(const struct form *form, RedisModuleIO *aof, RedisModuleString *key,
                    const void *filter)
{
    running_save();
    write_chunks(form, aof, key, filter);
    running_end();
}

static void save_form(const struct form *form, RedisModuleIO *rdb, const void *filter)
{
    running_save();
    form->save(rdb, filter);
    running_end();
}

static void release_form(const struct form *form, void *filter)
{
    __atomic_fetch_sub(&tally.filters, 1, __ATOMIC_RELAXED);
    form->release(filter);
}

static void *copy_form(const struct form *form, const void *filter)
{
    running_command(NULL);
    void *copied = form->copy(filter);
    running_end();
    if (copied)
        __atomic_fetch_add(&tally.filters, 1, __ATOMIC_RELAXED);
    return copied;
}

/* The server passes no more than the value: so each form has functions of its own. */
#define TYPE(form)                                                                             \
    static void *form##_read(RedisModuleIO *rdb, int encoding)                                 \
    {                                                                                          \
        return read(&(form), rdb, encoding);                                                   \
    }                                                                                          \
    static void form##_save(RedisModuleIO *rdb, void *filter)                                  \
    {                                                                                          \
        save_form(&(form), rdb, filter);                                                       \
    }                                                                                          \
    static void form##_rewrite(RedisModuleIO *aof, RedisModuleString *key, void *filter)       \
    {                                                                                          \
        rewrite(&(form), aof, key, filter);                                                    \
    }                                                                                          \
    static size_t form##_memory(const void *filter)                                            \
    {                                                                                          \
        return (form).memory_nbytes(filter);                                                   \
    }                                                                                          \
    static void form##_digest(RedisModuleDigest *digest, void *filter)                         \
    {                                                                                          \
        (form).digest(digest, filter);                                                         \
    }                                                                                          \
    static void form##_release(void *filter)                                                   \
    {                                                                                          \
        release_form(&(form), filter);                                                         \
    }                                                                                          \
    static size_t form##_effort(RedisModuleString *key, const void *filter)                    \
    {                                                                                          \
        (void)key;                                                                             \
        return 1 + (form).memory_nbytes(filter) / PAGE_NBYTES;                                 \
    }                                                                                          \
    static void *form##_copy(RedisModuleString *from, RedisModuleString *to,                   \
                             const void *filter)                                               \
    {                                                                                          \
        (void)from;                                                                            \
        (void)to;                                                                              \
        return copy_form(&(form), filter);                                                     \
    }                                                                                          \
    static int form##_defrag(RedisModuleDefragCtx *ctx, RedisModuleString *key, void **filter) \
    {                                                                                          \
        (void)key;                                                                             \
        if ((form).defrag)                                                                     \
            (form).defrag(ctx, filter);                                                        \
        return 0;                                                                              \
    }                                                                                          \
    static RedisModuleTypeMethods form##_methods = {                                           \
        .version = TYPE_METHODS_VERSION,                                                       \
        .rdb_load = form##_read,                                                               \
        .rdb_save = form##_save,                                                               \
        .aof_rewrite = form##_rewrite,                                                         \
        .mem_usage = form##_memory,                                                            \
        .digest = form##_digest,                                                               \
        .free = form##_release,                                                                \
        .free_effort = form##_effort,                                                          \
        .copy = form##_copy,                                                                   \
        .defrag = form##_defrag,                                                               \
    };

TYPE(own_bloom)
TYPE(own_cuckoo)
TYPE(redis_bloom)
TYPE(redis_cuckoo)
TYPE(valkey_bloom)

int types_register(RedisModuleCtx *ctx)
{
    RedisModuleTypeMethods *const methods[] = { &own_bloom_methods, &own_cuckoo_methods,
                                                &redis_bloom_methods, &redis_cuckoo_methods,
                                                &valkey_bloom_methods };
    for (size_t i = 0; forms[i]; i++) {
        forms[i]->type =
            server.CreateDataType(ctx, forms[i]->type_name, forms[i]->encoding, methods[i]);
        if (!forms[i]->type) {
            server.Log(
                ctx, "warning",
                "perhaps: the data type %s is taken: is another module of filters loaded?",
                forms[i]->type_name);
            return SERVER_ERR;
        }
    }
    return SERVER_OK;
}
