/* keys.c - keys of the server that hold filters. */
#include "keys.h"

#include "replies.h"
#include "running.h"

struct tally tally;

struct opened key_open(RedisModuleCtx *ctx, RedisModuleString *name, int mode,
                       enum family family)
{
    struct opened o = { .key = server.OpenKey(ctx, name, mode), .name = name };
    running_command(ctx);
    if (!o.key)
        return o;
    RedisModuleType *type = server.ModuleTypeGetType(o.key);
    if (!type && server.KeyType(o.key) == KEYTYPE_EMPTY)
        return o;
    o.found = KEY_OTHER;
    for (struct form *const *form = forms; *form && type; form++)
        if ((*form)->family == family && (*form)->type == type) {
            o.form = *form;
            o.filter = server.ModuleTypeGetValue(o.key);
            o.found = o.form->is_complete(o.filter) ? KEY_FOUND : KEY_INCOMPLETE;
        }
    return o;
}

void key_close(const struct opened *o)
{
    running_end();
    if (o->key)
        server.CloseKey(o->key);
}

bool key_refused(RedisModuleCtx *ctx, const struct opened *o, const char *missing)
{
    static const char *const texts[] = {
        [KEY_OTHER] = WRONGTYPE, [KEY_INCOMPLETE] = INCOMPLETE
    };
    if (o->found == KEY_FOUND)
        return false;
    server.ReplyWithError(ctx, o->found == KEY_MISSING ? missing : texts[o->found]);
    return true;
}

void key_set(struct opened *o, struct form *form, void *filter)
{
    server.ModuleTypeSetValue(o->key, form->type, filter);
    __atomic_fetch_add(&tally.filters, 1, __ATOMIC_RELAXED);
    o->form = form;
    o->filter = filter;
    o->found = form->is_complete(filter) ? KEY_FOUND : KEY_INCOMPLETE;
}

void key_changed(RedisModuleCtx *ctx, const struct opened *o, const char *event)
{
    server.SignalModifiedKey(ctx, o->name);
    server.NotifyKeyspaceEvent(ctx, NOTIFY_MODULE, event, o->name);
}
