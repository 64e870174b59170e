/* processes.c - what tests need of processes, threads and folders: see support.h.  All files
 * lie in one folder for each process.  It is removed by atexit(), also after a failed test. */
#include "support.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char temp_folder[64];
static pid_t temp_owner; /* a forked child, which runs atexit(), too, must not remove it */

/* Removes what nftw() visits: the contents of a folder before the folder (FTW_DEPTH). */
static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_temp_folder(void)
{
    if (getpid() == temp_owner)
        nftw(temp_folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

struct path temp_path(const char *name)
{
    if (!*temp_folder) {
        const char *base = getenv("TMPDIR");
        snprintf(temp_folder, sizeof temp_folder, "%.40s/perhaps-XXXXXX", base ? base : "/tmp");
        /* mkdtemp() allows only the owner; the child of run_in_child() may be nobody. */
        expect(mkdtemp(temp_folder) && !chmod(temp_folder, 0755));
        temp_owner = getpid();
        atexit(remove_temp_folder);
    }
    struct path folder;
    snprintf(folder.text, sizeof folder.text, "%s", temp_folder);
    return path_below(folder, name);
}

/* The child ends by _exit(), so it does not run the atexit() of the test. */
int run_in_child(int (*run)(void *context), void *context, bool as_nobody)
{
    enum { NOBODY = 65534 }; /* the user 'nobody' of Linux */
    int status = -1;
    pid_t child = fork();
    expect(child >= 0);
    if (!child) {
        if (as_nobody && !geteuid() && setuid(NOBODY))
            _exit(CANNOT_TRY);
        _exit(run(context));
    }
    expect(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

unsigned count_beside(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    DIR *dir = opendir(folder);
    expect(dir);
    unsigned n = 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2; /* without . and .. */
}
