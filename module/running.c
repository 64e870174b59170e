/* running.c - what the module works for at this moment. */
#include "running.h"

static struct {
    RedisModuleCtx *ctx;
    enum running what;
    bool is_known;  /* 'what' is looked up when somebody asks, which most commands do not */
    unsigned depth; /* a command that opens several keys begins as many times */
} now = { .is_known = true };

void running_command(RedisModuleCtx *ctx)
{
    now.ctx = ctx;
    now.is_known = false;
    now.depth++;
}

void running_load(void)
{
    const int flags = server.GetContextFlags(NULL);
    const bool by_client = flags & CTX_MASTER && !(flags & (CTX_LOADING | CTX_ASYNC_LOADING));
    now.what = by_client ? RUNNING_COMMAND : RUNNING_LOAD;
    now.is_known = true;
    now.depth++;
}

void running_save(void)
{
    now.what = RUNNING_SAVE;
    now.is_known = true;
    now.depth++;
}

void running_end(void)
{
    if (--now.depth > 0)
        return;
    now.ctx = NULL;
    now.what = RUNNING_COMMAND;
    now.is_known = true;
}

/* Without a context no client is known: then a replica does what its master did. */
static bool must_obey(RedisModuleCtx *ctx)
{
    const int flags = server.GetContextFlags(ctx);
    if (flags & CTX_LOADING)
        return true;
    if (!ctx)
        return !(flags & CTX_MASTER);
    return server.MustObeyClient ? server.MustObeyClient(ctx) : flags & CTX_REPLICATED;
}

enum running running_now(void)
{
    if (!now.is_known)
        now.what = must_obey(now.ctx) ? RUNNING_REPLAY : RUNNING_COMMAND;
    now.is_known = true;
    return now.what;
}

RedisModuleCtx *running_context(void)
{
    return now.ctx;
}
