/* memory_preload.c - a machine with less memory, for programs that tests run (LD_PRELOAD,
 * beside entropy_preload.c): PERHAPS_TEST_RAM_MIB says how much it has.  Only those who ask are
 * told so; memory can be had as before. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

long sysconf(int name)
{
    static long (*theirs)(int);
    const char *mib = name == _SC_PHYS_PAGES ? getenv("PERHAPS_TEST_RAM_MIB") : NULL;
    if (!theirs)
        *(void **)&theirs = dlsym(RTLD_NEXT, "sysconf");
    return mib ? atol(mib) * ((1 << 20) / theirs(_SC_PAGESIZE)) : theirs(name);
}

/* Valkey has its modules look for functions in their own libraries first (RTLD_DEEPBIND), where
 * they would not meet those that are preloaded. */
void *dlopen(const char *path, int flags)
{
    static void *(*theirs)(const char *, int);
    if (!theirs)
        *(void **)&theirs = dlsym(RTLD_NEXT, "dlopen");
    return theirs(path, flags & ~RTLD_DEEPBIND);
}
