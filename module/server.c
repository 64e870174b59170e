/* server.c - looks up the functions of the server. */
#include "server.h"

struct server server;

const char *server_connect(RedisModuleCtx *ctx)
{
    /* the first word of a context is the function that finds all others */
    int (*find)(const char *name, void *function) =
        *(int (**)(const char *, void *))(void *)ctx;
    const char *missing = NULL;
#define FIND(result, name, parameters) find("RedisModule_" #name, (void *)&server.name);
#define FIND_OR_MISS(result, name, parameters)                                                 \
    if (find("RedisModule_" #name, (void *)&server.name) != SERVER_OK)                         \
        missing = #name;
    SERVER_FUNCTIONS(FIND_OR_MISS, FIND)
    void *theirs;
    server.is_valkey = find("ValkeyModule_Alloc", &theirs) == SERVER_OK;
    return missing;
}
