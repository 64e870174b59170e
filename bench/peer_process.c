/* peer_process.c - measures filters in other languages, which run in processes of their own.
 *
 * Each program in peers/ gets CAPACITY FPR KEY_NBYTES as arguments and makes a filter.  It
 * answers each request on its standard input by two numbers of 64 bits, little-endian, on its
 * standard output.  A request begins with two such numbers, the letter and the count:
 *
 *     request                              answer
 *     (at the start)                       bytes of the filter, 0
 *     'C', 0                               0, nanoseconds it took to clear it
 *     'A', count, so many keys             keys added, nanoseconds
 *     'Q', count, so many keys             keys found, nanoseconds
 *
 * So these filters get the same keys as all others, in turn with the yardstick, and their times
 * are of the filter alone, without the way of the keys from one process to the other. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define GO_PACKAGES "/usr/share/gocode/src/github.com/"
#define GO_RUN                                                                                 \
    "GO111MODULE=off GOFLAGS= GOPATH=/usr/share/gocode HOME=${HOME:-/tmp} exec go "            \
    "run " BENCH_SOURCE_DIR "/peers/main.go " BENCH_SOURCE_DIR "/peers/"
#define GUAVA "/usr/share/java/guava.jar"

/* A process with a filter in it; start() makes it and stop() ends it. */
struct process {
    pid_t pid;       /* 0: it could not be started */
    FILE *to, *from; /* two streams on one socket */
    uint64_t filter_nbytes;
    double seconds; /* how long the last request took */
};

/* Reads an answer.  Returns its first number, or SIZE_MAX if the process has ended. */
static size_t receive_answer(struct process *process)
{
    uint64_t answer[2];
    if (fread(answer, sizeof answer, 1, process->from) != 1)
        return SIZE_MAX;
    process->seconds = 1e-9 * (double)answer[1];
    return (size_t)answer[0];
}

/* Sends a request and reads the answer; returns what receive_answer() does. */
static size_t request(struct process *process, char what, const struct perhaps_keys *keys)
{
    uint64_t head[2] = { (uint64_t)what, keys->count };
    fwrite(head, sizeof head, 1, process->to);
    fwrite(keys->packed, keys->key_nbytes, keys->count, process->to);
    return fflush(process->to) ? SIZE_MAX : receive_answer(process);
}

/* Starts a command, whose standard input and output are the other end of our socket.  A socket
 * rather than two pipes: one descriptor serves both ways.  Returns NULL if there is none. */
static struct process *start(char *command)
{
    int ends[2];
    struct process *process = allocate_zeroed(1, sizeof *process);
    char shell[] = "sh", option[] = "-c", *const arguments[] = { shell, option, command, NULL };
    posix_spawn_file_actions_t actions;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        free(process);
        return NULL;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (posix_spawnp(&process->pid, shell, &actions, NULL, arguments, environ))
        process->pid = 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    process->to = fdopen(ends[0], "w");
    process->from = fdopen(dup(ends[0]), "r");
    return process;
}

/* The process ends when its input ends. */
static void stop(void *filter)
{
    struct process *process = filter;
    fclose(process->to);
    fclose(process->from);
    if (process->pid)
        waitpid(process->pid, NULL, 0);
    free(process);
}

/* The peers get the key length, too, since the keys of a request lie one behind the other. */
static const char *create(const struct contender *self, const struct task *task, void **filter)
{
    char command[2048];
    if (task->fpr < self->least_fpr)
        return "has fingerprints of 8 bits: always about 3 %, see the row of the highest rate";
    snprintf(command, sizeof command, "%s %llu %.17g %.0f", self->command,
             (unsigned long long)task->capacity, task->fpr, task->settings->key_nbytes.at[0]);
    struct process *process = start(command);
    *filter = process;
    if (!process)
        return "could not be started";
    process->filter_nbytes = receive_answer(process);
    return process->filter_nbytes == SIZE_MAX ? "could not be run: see above" : NULL;
}

static void clear(void *filter)
{
    struct perhaps_keys none = { .count = 0 };
    request(filter, 'C', &none);
}

static void tell(const void *filter, struct facts *facts)
{
    facts->nbytes = ((const struct process *)filter)->filter_nbytes;
}

static double seconds(const void *filter)
{
    return ((const struct process *)filter)->seconds;
}

static size_t add(void *filter, const struct perhaps_keys *keys)
{
    return request(filter, 'A', keys);
}

static size_t ask(void *filter, const struct perhaps_keys *keys)
{
    return request(filter, 'Q', keys);
}

/* The peers: what starts them, the program and the library that must be installed, and what to
 * say if they are not.  "go run" and java compile the source first; the time for that is not
 * measured, since a program answers only when its filter is there. */
static const struct peer {
    const char *name, *command, *program, *library, *packages;
    double least_fpr;
} peers[] = {
    { "blobloom", GO_RUN "blobloom.go", "/usr/bin/go", GO_PACKAGES "greatroar/blobloom",
      "not installed (Debian: golang-go, golang-github-greatroar-blobloom-dev, "
      "golang-github-cespare-xxhash-dev)",
      0 },
    { "seiflotfy", GO_RUN "seiflotfy.go", "/usr/bin/go", GO_PACKAGES "seiflotfy/cuckoofilter",
      "not installed (Debian: golang-go, golang-github-seiflotfy-cuckoofilter-dev)", 0.01 },
    { "guava", "exec java -cp " GUAVA " " BENCH_SOURCE_DIR "/peers/Guava.java",
      "/usr/bin/javac", GUAVA, "not installed (Debian: default-jdk-headless, libguava-java)",
      0 },
};

size_t peer_processes(struct contender *list)
{
    const size_t count = sizeof peers / sizeof *peers;
    for (size_t i = 0; i < count; i++) {
        const struct peer *peer = &peers[i];
        bool here = !access(peer->program, X_OK) && !access(peer->library, R_OK);
        list[i] = (struct contender){
            .name = peer->name,
            .missing = here ? NULL : peer->packages,
            .command = peer->command,
            .is_peer = true,
            .is_heavy = true,
            .least_fpr = peer->least_fpr,
            .create = create,
            .destroy = stop,
            .clear = clear,
            .tell = tell,
            .seconds = seconds,
            .add = { add },
            .ask = { ask },
        };
    }
    return count;
}
