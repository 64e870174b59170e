/* client.c - loads the client of servers. */
#include "client.h"

#include "../base/messages.h"

struct client client;

#ifdef CLIENT_FILE

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NOT_LOADED                                                                             \
    "the client of servers cannot be loaded: %s; it comes with the program: install that anew"

/* Writes the path of the client, which is CLIENT_FILE as seen from the program's folder. */
static void find_client(char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length < 0)
        fail("/proc/self/exe, beside which the client of servers lies: %s", strerror(errno));
    path[length] = '\0';
    char *name = strrchr(path, '/') + 1;
    size_t room = PATH_MAX - (size_t)(name - path);
    if ((size_t)snprintf(name, room, "%s", CLIENT_FILE) >= room)
        fail("%s: %s", path, strerror(ENAMETOOLONG));
}

/* Finds one of its functions, or ends the program.  'call' is a pointer to a function. */
static void find_call(void *file, const char *name, void *call)
{
    void *found = dlsym(file, name);
    if (!found)
        fail(NOT_LOADED, dlerror());
    memcpy(call, &found, sizeof found);
}

void client_load(void)
{
    char path[PATH_MAX];
    if (client.new)
        return;
    find_client(path);
    void *file = dlopen(path, RTLD_NOW);
    if (!file)
        fail(NOT_LOADED, dlerror());
#define FIND_CALL(name) find_call(file, "perhaps_cluster_" #name, &client.name);
    CLIENT_CALLS(FIND_CALL)
#undef FIND_CALL
}

#else

void client_load(void)
{
    fail("filters on servers are not in this build: build perhaps with -DPERHAPS_CLUSTER=ON");
}

#endif
