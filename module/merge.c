/* merge.c - BF.SHRINK and BF.MERGE, which RedisBloom does not have: they make a filter anew. */
#include "commands.h"
#include "keys.h"
#include "own.h"
#include "replies.h"
#include "words.h"

#define FOREIGN "ERR filters of RedisBloom and valkey-bloom stay as they are"

static const char *shrink_error(int error)
{
    return error == PERHAPS_ERR_MEMORY        ? NO_MEMORY
           : error == PERHAPS_ERR_UNSUPPORTED ? "ERR this filter cannot shrink"
                                              : "ERR could not shrink filter";
}

/* The command is replicated with the rate that it took. */
int bf_shrink(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    double fpr = 0;
    uint64_t freed;
    if (argc != 2 && argc != 4)
        return server.WrongArity(ctx);
    if (argc == 4 && (!word_is(argv[2], "ERROR") || !word_real(argv[3], &fpr)))
        return server.ReplyWithError(ctx, "ERR bad error rate");
    if (argc == 4 && !(fpr > 0 && fpr < 1))
        return server.ReplyWithError(ctx, RATE_RANGE);
    struct opened o = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, FAMILY_BLOOM);
    if (key_refused(ctx, &o, NOT_FOUND)) {
        ;
    } else if (o.form != &own_bloom) {
        server.ReplyWithError(ctx, FOREIGN);
    } else {
        int error = own_shrink(o.filter, fpr, &freed);
        if (error) {
            server.ReplyWithError(ctx, shrink_error(error));
        } else {
            reply_number(ctx, freed);
            if (freed) {
                server.ReplicateVerbatim(ctx);
                key_changed(ctx, &o, "bf.shrink");
            }
        }
    }
    key_close(&o);
    return SERVER_OK;
}

static const char *merge_error(int error)
{
    switch (error) {
    case PERHAPS_ERR_MEMORY:
        return NO_MEMORY;
    case PERHAPS_ERR_FULL:
        return "ERR the union would break the error rate";
    case PERHAPS_ERR_UNSUPPORTED:
        return "ERR windows cannot be merged";
    default:
        return "ERR filters differ in size or secret: merge only copies of one filter (COPY it "
               "before items are added)";
    }
}

/* Checks that all sources are filters.  Returns whether they are, or has replied. */
static bool sources_are_there(RedisModuleCtx *ctx, RedisModuleString **names, int n)
{
    bool there = true;
    for (int i = 0; i < n && there; i++) {
        struct opened from = key_open(ctx, names[i], MODE_READ, FAMILY_BLOOM);
        there = !key_refused(ctx, &from, NOT_FOUND);
        key_close(&from);
    }
    return there;
}

/* Makes the union of open filters from a copy of the first, so that one that does not fit
 * changes nothing.  A first one that is missing is left out.  Returns NULL and sets *error. */
static void *unite_keys(RedisModuleCtx *ctx, const struct opened *first,
                        RedisModuleString **names, int n, const char **error)
{
    void *whole = first->found == KEY_FOUND ? own_bloom.copy(first->filter) : NULL;
    *error = first->found == KEY_FOUND && !whole ? NO_MEMORY : NULL;
    for (int i = 0; i < n && !*error; i++) {
        struct opened from = key_open(ctx, names[i], MODE_READ, FAMILY_BLOOM);
        int code = from.form != &own_bloom ? PERHAPS_ERR_MISMATCH : 0;
        if (!code && whole)
            code = own_merge(whole, from.filter);
        else if (!code && !(whole = own_bloom.copy(from.filter)))
            code = PERHAPS_ERR_MEMORY;
        *error = code ? merge_error(code) : NULL;
        key_close(&from);
    }
    if (*error && whole)
        own_bloom.release(whole);
    return *error ? NULL : whole;
}

int bf_merge(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    const char *error;
    if (argc < 3)
        return server.WrongArity(ctx);
    if (!sources_are_there(ctx, argv + 2, argc - 2))
        return SERVER_OK;
    struct opened to = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, FAMILY_BLOOM);
    if (to.found == KEY_MISSING || !key_refused(ctx, &to, NOT_FOUND)) {
        bool foreign = to.form && to.form != &own_bloom;
        void *whole = foreign ? NULL : unite_keys(ctx, &to, argv + 2, argc - 2, &error);
        if (whole) {
            if (to.found == KEY_FOUND) {
                own_exchange(to.filter, whole);
                own_bloom.release(whole);
            } else {
                key_set(&to, &own_bloom, whole);
            }
            server.ReplicateVerbatim(ctx);
            key_changed(ctx, &to, "bf.merge");
            server.ReplyWithSimpleString(ctx, "OK");
        } else {
            server.ReplyWithError(ctx, foreign ? FOREIGN : error);
        }
    }
    key_close(&to);
    return SERVER_OK;
}
