/* peer_process.c - filters in other languages, in processes of their own.
 *
 * Each program in peers/ is told CAPACITY FPR KEY_NBYTES and makes a filter.  It answers a
 * request that comes on its standard input with two numbers of 64 bits, little-endian, on its
 * standard output:
 *
 *     request                              answer
 *     (at the start)                       bytes of the filter, 0
 *     'C', 0                               0, nanoseconds it took to clear it
 *     'A', count, so many keys             keys added, nanoseconds
 *     'Q', count, so many keys             keys found, nanoseconds
 *
 * So they deal with the same keys, in turn with the yardstick, and measure just the filter. */
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

struct process {
    pid_t pid;
    FILE *to, *from;
    uint64_t filter_nbytes;
    double seconds; /* of the last request */
};

/* Returns the first number of the answer, SIZE_MAX if there is none. */
static size_t receive_answer(struct process *process)
{
    uint64_t answer[2];
    if (fread(answer, sizeof answer, 1, process->from) != 1)
        return SIZE_MAX;
    process->seconds = 1e-9 * (double)answer[1];
    return (size_t)answer[0];
}

static size_t request(struct process *process, char what, const struct perhaps_keys *keys)
{
    uint64_t head[2] = { (uint64_t)what, keys->count };
    fwrite(head, sizeof head, 1, process->to);
    fwrite(keys->packed, keys->key_nbytes, keys->count, process->to);
    return fflush(process->to) ? SIZE_MAX : receive_answer(process);
}

/* Its standard input and output are the other end of ours. */
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

/* The end of its input is its end. */
static void stop(void *filter)
{
    struct process *process = filter;
    fclose(process->to);
    fclose(process->from);
    if (process->pid)
        waitpid(process->pid, NULL, 0);
    free(process);
}

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

/* Go compiles before it runs, and keeps what it compiled. */
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
