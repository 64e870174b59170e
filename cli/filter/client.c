/* client.c - loads the client of servers. */
#include "client.h"

#include "../base/messages.h"
#include "modules.h"

struct client client;

#ifdef CLIENT_FILE

void client_load(void)
{
    static const char what[] = "the client of servers";
    if (client.new)
        return;
    void *module = module_load(CLIENT_FILE, what);
#define FIND_CALL(name) module_find(module, what, "perhaps_cluster_" #name, &client.name);
    CLIENT_CALLS(FIND_CALL)
#undef FIND_CALL
}

#else

void client_load(void)
{
    fail("filters on servers are not in this build: build perhaps with -DPERHAPS_CLUSTER=ON");
}

#endif
