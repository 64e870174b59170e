/* main.c - what the server calls when it loads the module. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "docs.h"
#include "keys.h"
#include "memory.h"
#include "settings.h"
#include "types.h"

/* The module has the name of RedisBloom's, whose commands it has. */
static const char module_name[] = "bf";

/* The names are in the letters that COMMAND, ACL LIST and errors show: small ones, as those of
 * the server's own commands, to which clients turn the names that they look up. */
static const struct command {
    const char *name;
    command_function *run;
    const char *flags;
    int last_key; /* 0: there are none */
} commands[] = {
    { "bf.reserve", bf_reserve, "write deny-oom fast", 1 },
    { "bf.add", bf_add, "write deny-oom", 1 },
    { "bf.madd", bf_madd, "write deny-oom", 1 },
    { "bf.insert", bf_insert, "write deny-oom", 1 },
    { "bf.exists", bf_exists, "readonly", 1 },
    { "bf.mexists", bf_mexists, "readonly", 1 },
    { "bf.info", bf_info, "readonly fast", 1 },
    { "bf.card", bf_card, "readonly fast", 1 },
    { "bf.debug", bf_debug, "readonly", 1 },
    { "bf.scandump", bf_scandump, "readonly", 1 },
    { "bf.loadchunk", bf_loadchunk, "write deny-oom no-monitor no-slowlog", 1 },
    { "bf.load", bf_load, "write deny-oom no-monitor no-slowlog", 1 },
    { "bf.shrink", bf_shrink, "write", 1 }, /* gives memory back */
    { "bf.merge", bf_merge, "write deny-oom", -1 },
    { "cf.reserve", cf_reserve, "write deny-oom fast", 1 },
    { "cf.add", cf_add, "write deny-oom", 1 },
    { "cf.addnx", cf_addnx, "write deny-oom", 1 },
    { "cf.insert", cf_insert, "write deny-oom", 1 },
    { "cf.insertnx", cf_insertnx, "write deny-oom", 1 },
    { "cf.exists", cf_exists, "readonly", 1 },
    { "cf.mexists", cf_mexists, "readonly", 1 },
    { "cf.count", cf_count, "readonly", 1 },
    { "cf.del", cf_del, "write fast", 1 },
    { "cf.compact", cf_compact, "write", 1 },
    { "cf.info", cf_info, "readonly fast", 1 },
    { "cf.debug", cf_debug, "readonly", 1 },
    { "cf.scandump", cf_scandump, "readonly", 1 },
    { "cf.loadchunk", cf_loadchunk, "write deny-oom no-monitor no-slowlog", 1 },
    { "perhaps.create", perhaps_create_command, "write deny-oom no-monitor no-slowlog", 1 },
    { "perhaps.advance", perhaps_advance_command, "write", 1 },
    /* set takes no memory, as a BITFIELD that finds its string does not; but the server counts
     * BITFIELD among the commands that do, and clients shall see the same limits */
    { "perhaps.test", perhaps_test_command, "readonly deny-script", 0 },
    { "perhaps.set", perhaps_set_command, "write deny-oom deny-script", 0 },
};

/* The category of the family behind a blank; "" for commands of neither. */
static const char *family_category(const struct command *c)
{
    if (!server.AddACLCategory)
        return "";
    return !strncmp(c->name, "bf.", 3)   ? " bloom"
           : !strncmp(c->name, "cf.", 3) ? " cuckoo"
                                         : "";
}

/* All categories of rights are named, since Valkey derives none from flags where some are. */
static int register_command(RedisModuleCtx *ctx, const struct command *c)
{
    char categories[32];
    snprintf(categories, sizeof categories, "%s %s%s",
             strstr(c->flags, "write") ? "write" : "read",
             strstr(c->flags, "fast") ? "fast" : "slow", family_category(c));
    int error = server.CreateCommand(ctx, c->name, c->run, c->flags, c->last_key != 0,
                                     c->last_key, c->last_key != 0);
    RedisModuleCommand *command =
        error || !server.GetCommand ? NULL : server.GetCommand(ctx, c->name);
    if (command && server.SetCommandInfo && docs_of(c->name))
        error = server.SetCommandInfo(command, docs_of(c->name));
    if (command && !error && server.SetCommandACLCategories)
        error = server.SetCommandACLCategories(command, categories);
    if (error)
        server.Log(ctx, "warning", "perhaps: the command %s could not be made", c->name);
    return error;
}

/* A section of INFO, whose names the server puts the module's name before. */
static void tell_info(RedisModuleInfoCtx *info, int for_crash_report)
{
    (void)for_crash_report;
    server.InfoAddSection(info, "filters");
    server.InfoAddFieldULongLong(info, "filters",
                                 __atomic_load_n(&tally.filters, __ATOMIC_RELAXED));
    server.InfoAddFieldULongLong(info, "bytes", memory_taken());
    server.InfoAddFieldULongLong(info, "adds", tally.adds);
    server.InfoAddFieldULongLong(info, "questions", tally.questions);
    server.InfoAddFieldULongLong(info, "positives", tally.positives);
    server.InfoAddFieldULongLong(info, "refusals", tally.refusals);
}

static int register_all(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (types_register(ctx) || settings_load(ctx, argv, argc) ||
        server.RegisterInfoFunc(ctx, tell_info))
        return SERVER_ERR;
    if (server.AddACLCategory)
        (void)(server.AddACLCategory(ctx, "bloom") || server.AddACLCategory(ctx, "cuckoo"));
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (register_command(ctx, &commands[i]))
            return SERVER_ERR;
    return SERVER_OK;
}

__attribute__((visibility("default"))) int
RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    const char *missing = server_connect(ctx);
    if (missing) {
        if (server.Log)
            server.Log(ctx, "warning", "perhaps needs Redis 7.0 or later: there is no %s()",
                       missing);
        return SERVER_ERR;
    }
    if (server.IsModuleNameBusy(module_name)) {
        server.Log(ctx, "warning", "perhaps: a module '%s' is there already", module_name);
        return SERVER_ERR;
    }
    const int version =
        PERHAPS_VERSION_MAJOR * 10000 + PERHAPS_VERSION_MINOR * 100 + PERHAPS_VERSION_PATCH;
    server.SetModuleAttribs(ctx, module_name, version, 1);
    int options = OPTION_HANDLE_IO_ERRORS | OPTION_NO_IMPLICIT_SIGNAL_MODIFIED |
                  OPTION_HANDLE_REPL_ASYNC_LOAD;
    if (server.is_valkey)
        options |= OPTION_VALKEY_ATOMIC_SLOT_MIGRATION;
    server.SetModuleOptions(ctx, options);
    return register_all(ctx, argv, argc);
}
