/* soak.c - what ./dev soak runs for hours (tests/whole/soak.sh):
 *
 *     soak grow|window PROGRAM FOLDER SEED SECONDS
 *     soak held FOLDER SEED SECONDS
 *
 * 'grow' and 'window' end 'perhaps dedup --durable' again and again (soak_dedup.c); 'held'
 * holds live files open (soak_held.c).  Each prints a summary at the end, and ends with status
 * 1 at the first thing that is wrong.  SIGTERM and SIGINT make it end soon. */
#define _GNU_SOURCE 1

#include "soak.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;
static volatile sig_atomic_t child;

static void on_signal(int number)
{
    stopped = number;
}

bool soak_stopped(void)
{
    return stopped;
}

void soak_child_is(int pid)
{
    child = pid;
}

double soak_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void soak_sleep(unsigned ms)
{
    poll(NULL, 0, (int)ms);
}

void soak_complain(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("WRONG: ");
    vprintf(format, list);
    printf("\n");
    va_end(list);
    fflush(stdout);
    if (child > 0)
        kill(child, SIGKILL);
    _exit(1);
}

void soak_tell(const char *folder, const char *name, const char *format, ...)
{
    char draft[PATH_MAX], path[PATH_MAX];
    va_list list;
    snprintf(path, sizeof path, "%s/%s.now", folder, name);
    snprintf(draft, sizeof draft, "%s/%s.new", folder, name);
    FILE *file = fopen(draft, "we");
    if (!file)
        return;
    va_start(list, format);
    vfprintf(file, format, list);
    va_end(list);
    fputc('\n', file);
    fclose(file);
    rename(draft, path);
}

int main(int argc, char **argv)
{
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (argc == 5 && !strcmp(argv[1], "held"))
        return soak_held(argv[2], strtoull(argv[3], NULL, 10), atof(argv[4]));
    if (argc == 6 && (!strcmp(argv[1], "grow") || !strcmp(argv[1], "window")))
        return soak_dedup(argv[1], argv[2], argv[3], strtoull(argv[4], NULL, 10),
                          atof(argv[5]));
    fprintf(stderr, "usage: soak grow|window PROGRAM FOLDER SEED SECONDS\n"
                    "       soak held FOLDER SEED SECONDS\n");
    return 2;
}
