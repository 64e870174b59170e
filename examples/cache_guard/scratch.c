/* scratch.c - how the program ends: scratch.h tells. */
#include "scratch.h"

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static struct {
    void (*clean)(void *context);
    void *context;
} cleaners[8];
static size_t ncleaners;
static pid_t owner; /* who cleans up: not the children that it forks */

/* Of several threads that want to end the program the first one does.  It never unlocks this:
 * the others wait for the end, and none makes anything any more that is to be removed. */
static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool is_ending; /* this thread has locked it */
static bool has_said;                /* why */

static void clean_up(void)
{
    if (getpid() != owner)
        return;
    while (ncleaners > 0) {
        ncleaners--;
        cleaners[ncleaners].clean(cleaners[ncleaners].context);
    }
}

void finish(int status)
{
    pthread_mutex_lock(&ending);
    is_ending = true;
    exit(status);
}

static void say(const char *format, va_list arguments)
{
    char line[1024];
    vsnprintf(line, sizeof line, format, arguments);
    for (char *c = line; *c; c++) /* what a library says may be several lines */
        if (*c == '\n')
            *c = ' ';
    fprintf(stderr, "cache_guard: %s\n", line);
    has_said = true;
}

/* While cleaning up, too: then with what there is left to clean. */
void fail(const char *format, ...)
{
    va_list arguments;
    bool was_ending = is_ending;
    if (!was_ending)
        pthread_mutex_lock(&ending);
    is_ending = true;
    va_start(arguments, format);
    if (!has_said)
        say(format, arguments);
    va_end(arguments);
    if (!was_ending)
        exit(2);
    clean_up();
    _exit(2);
}

void at_end(void (*clean)(void *context), void *context)
{
    pthread_mutex_lock(&ending);
    if (!owner) {
        owner = getpid();
        atexit(clean_up);
    }
    if (ncleaners == sizeof cleaners / sizeof cleaners[0])
        abort();
    cleaners[ncleaners].clean = clean;
    cleaners[ncleaners].context = context;
    ncleaners++;
    pthread_mutex_unlock(&ending);
}

/* ---- Signals and children ---------------------------------------------------------------- */

static sigset_t ending_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    return signals;
}

static void *wait_for_signal(void *context)
{
    sigset_t signals = ending_signals();
    int number = 0;
    (void)context;
    sigwait(&signals, &number);
    finish(128 + number);
    return NULL;
}

/* A thread waits for them, since little may be done in a handler. */
void clean_up_on_signals(void)
{
    sigset_t signals = ending_signals();
    pthread_t thread;
    signal(SIGPIPE, SIG_IGN); /* a write that nobody reads fails, and that is all */
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (pthread_create(&thread, NULL, wait_for_signal, NULL))
        fail("a thread could not be started");
    pthread_detach(thread);
}

pid_t fork_child(void)
{
    sigset_t signals = ending_signals();
    pid_t parent = getpid();
    fflush(NULL); /* or both would write it */
    pid_t child = fork();
    if (child < 0)
        fail("no other process could be started: %s", strerror(errno));
    if (child == 0) {
        pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(2);
    }
    return child;
}

/* ---- Memory ------------------------------------------------------------------------------ */

void *memory_resized(void *memory, size_t nbytes)
{
    void *larger = realloc(memory, nbytes ? nbytes : 1);
    if (!larger)
        fail("out of memory: %zu bytes", nbytes);
    return larger;
}

void *memory_zeroed(size_t nbytes)
{
    return memset(memory_resized(NULL, nbytes), 0, nbytes);
}

char *text_of(const char *format, ...)
{
    va_list arguments;
    char *text;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        fail("out of memory");
    va_end(arguments);
    return text;
}

/* ---- The folder -------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

static void remove_folder(void *folder)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(folder);
}

char *scratch_path(const char *name)
{
    static char *folder;
    if (!folder) {
        const char *parent = getenv("TMPDIR");
        folder = text_of("%s/cache_guard.XXXXXX", parent && *parent ? parent : "/tmp");
        if (!mkdtemp(folder))
            fail("no folder %s could be made: %s; TMPDIR says where to", folder,
                 strerror(errno));
        at_end(remove_folder, folder);
    }
    return text_of("%s/%s", folder, name);
}
