/* windows.c - the same on Windows. */
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"
#include "system/system.h"

/* Memory that free() takes: tries until malloc() returns an address of this alignment. */
void *aligned_alloc(size_t alignment, size_t nbytes)
{
    enum { TRIES = 10000 };
    void *tried[TRIES], *found = NULL;
    size_t ntried = 0;
    while (ntried < TRIES && (found = malloc(nbytes)) && (uintptr_t)found % alignment) {
        tried[ntried++] = found;
        free(malloc(16 * (1 + ntried % 16)));
    }
    while (ntried)
        free(tried[--ntried]);
    return found && (uintptr_t)found % alignment ? NULL : found;
}

int open_bytes(const void *bytes, size_t nbytes, const struct perhaps_open_options *options,
               perhaps_filter **filter)
{
    static unsigned nfiles; /* one that is mapped cannot be written to */
    char name[32];
    snprintf(name, sizeof name, "bytes%u", nfiles++ % 8);
    struct path path = temp_path(name);
    remove(path.text);
    write_file(path.text, bytes, nbytes);
    return perhaps_open(path.text, options, filter);
}

static char temp_folder[PATH_MAX];

/* Removes the files of the folder, and the folder. */
static void remove_temp_folder(void)
{
    char path[2 * PATH_MAX];
    DIR *dir = opendir(temp_folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", temp_folder, entry->d_name);
        remove(path);
    }
    if (dir)
        closedir(dir);
    rmdir(temp_folder);
}

struct path temp_path(const char *name)
{
    struct path folder;
    if (!*temp_folder) {
        /* an earlier process may have had this number */
        for (unsigned tries = 0; tries < 1000; tries++) {
            snprintf(temp_folder, sizeof temp_folder, "%.100s/perhaps-%ld-%u",
                     temporary_folder(), process_self(), tries);
            if (!mkdir(temp_folder))
                break;
            expect(errno == EEXIST);
        }
        atexit(remove_temp_folder);
    }
    snprintf(folder.text, sizeof folder.text, "%s", temp_folder);
    return path_below(folder, name);
}

/* There is no fork(). */
int run_in_child(int (*run)(void *context), void *context, bool as_nobody)
{
    (void)run, (void)context, (void)as_nobody;
    return CANNOT_TRY;
}

unsigned count_beside(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(name_in(path) - path), path);
    DIR *dir = opendir(folder);
    expect(dir);
    unsigned n = 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2; /* without . and .. */
}
