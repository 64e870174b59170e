/* valkey.c - what commands of valkey-bloom do beyond those of RedisBloom: BF.LOAD, which its
 * AOF is rewritten to, and filters with a seed, as its master sends them to replicas. */
#include "valkey.h"

#include <stdio.h>

#include "commands.h"
#include "replies.h"
#include "words.h"

bool valkey_create(RedisModuleCtx *ctx, struct opened *o, const RedisModuleString *command,
                   const struct valkeybloom_wish *wish)
{
    const char *why;
    char fpr[32], tightening[32];
    size_t nbytes;
    void *filter = valkeybloom_create(wish, &why);
    if (!filter) {
        tally.refusals++;
        server.ReplyWithError(ctx, why);
        return false;
    }
    key_set(o, &valkey_bloom, filter);
    snprintf(fpr, sizeof fpr, "%.17g", wish->fpr);
    snprintf(tightening, sizeof tightening, "%.17g", wish->tightening);
    server.Replicate(ctx, server.StringPtrLen(command, &nbytes),
                     wish->expansion ? "sclcccccbcl" : "sclcccccbc", o->name, "CAPACITY",
                     (long long)wish->capacity, "ERROR", fpr, "TIGHTENING", tightening, "SEED",
                     wish->seed, (size_t)VALKEYBLOOM_SEED_NBYTES,
                     wish->expansion ? "EXPANSION" : "NONSCALING", (long long)wish->expansion);
    key_changed(ctx, o, "bf.reserve");
    return true;
}

/* key dump */
int bf_load(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    const char *why = NULL;
    if (argc != 3)
        return server.WrongArity(ctx);
    struct opened o = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, FAMILY_BLOOM);
    const struct perhaps_key dump = word_item(argv[2]);
    if (o.found == KEY_OTHER) {
        why = WRONGTYPE;
    } else if (o.found != KEY_MISSING) {
        why = "BUSYKEY Target key name already exists.";
    } else {
        void *filter = valkeybloom_decode(dump.bytes, dump.nbytes, &why);
        if (filter)
            key_set(&o, &valkey_bloom, filter);
    }
    if (why) {
        server.ReplyWithError(ctx, why);
    } else {
        server.ReplicateVerbatim(ctx);
        key_changed(ctx, &o, "bf.load");
        server.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(&o);
    return SERVER_OK;
}
