/* modules.c - loads modules: see modules.h. */
#include "modules.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../base/messages.h"

#define NOT_LOADED "%s cannot be loaded: %s; it comes with the program: install that anew"

/* Writes the path of a module. */
static void find_module(const char *file, const char *what, char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length < 0)
        fail("/proc/self/exe, beside which %s lies: %s", what, strerror(errno));
    path[length] = '\0';
    char *name = strrchr(path, '/') + 1;
    size_t room = PATH_MAX - (size_t)(name - path);
    if ((size_t)snprintf(name, room, "%s", file) >= room)
        fail("%s: %s", path, strerror(ENAMETOOLONG));
}

void *module_load(const char *file, const char *what)
{
    char path[PATH_MAX];
    find_module(file, what, path);
    void *module = dlopen(path, RTLD_NOW);
    if (!module)
        fail(NOT_LOADED, what, dlerror());
    return module;
}

void module_find(void *module, const char *what, const char *name, void *call)
{
    void *found = dlsym(module, name);
    if (!found)
        fail(NOT_LOADED, what, dlerror());
    memcpy(call, &found, sizeof found);
}
