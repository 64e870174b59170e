/* peer_process.c - filters in other languages, in processes of their own.
 *
 * Each program in peers/ is started as PROGRAM CAPACITY FPR KEY_NBYTES and makes a filter.
 * It answers a request that comes on its standard input with two numbers of 64 bits,
 * little-endian, on its standard output:
 *
 *     request                              answer
 *     (at the start)                       bytes of the filter, 0
 *     'C', 0                               0, nanoseconds it took to clear it
 *     'A', count, so many keys             keys added, nanoseconds
 *     'Q', count, so many keys             keys found, nanoseconds
 *
 * So they deal with the same keys, in turn with the yardstick, and measure just the filter. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#ifndef BENCH_SOURCE_DIR
#define BENCH_SOURCE_DIR "bench"
#endif
#define GO_PACKAGES "/usr/share/gocode/src/github.com/"
#define GUAVA       "/usr/share/java/guava.jar"

struct process {
    pid_t pid;
    int in, out; /* its standard input and output, our ends */
    uint64_t filter_nbytes;
    double seconds; /* of the last request */
};

/* ---- Messages ------------------------------------------------------------------------- */

static bool send_bytes(int to, const void *bytes, size_t nbytes)
{
    const uint8_t *at = bytes;
    while (nbytes) {
        ssize_t n = write(to, at, nbytes);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? n : 0;
        nbytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool receive_bytes(int from, void *bytes, size_t nbytes)
{
    uint8_t *at = bytes;
    while (nbytes) {
        ssize_t n = read(from, at, nbytes);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        at += n > 0 ? n : 0;
        nbytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Returns the first number of the answer, SIZE_MAX if there is none. */
static size_t receive_answer(struct process *process)
{
    uint64_t answer[2];
    if (!receive_bytes(process->out, answer, sizeof answer))
        return SIZE_MAX;
    process->seconds = 1e-9 * (double)answer[1];
    return (size_t)answer[0];
}

static size_t request(struct process *process, char what, const struct perhaps_keys *keys)
{
    uint64_t head[2] = { (uint64_t)what, keys->count };
    if (!send_bytes(process->in, head, sizeof head) ||
        !send_bytes(process->in, keys->packed, keys->count * keys->key_nbytes))
        return SIZE_MAX;
    return receive_answer(process);
}

/* ---- A process --------------------------------------------------------------------------- */

static bool is_go(const char *program)
{
    return strstr(program, ".go") != NULL;
}

static int spawn(struct process *process, char *const *arguments, const int in[2],
                 const int out[2])
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    int error = posix_spawnp(&process->pid, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Go compiles before it runs, and keeps what it compiled. */
static int start(struct process *process, char *const *arguments)
{
    int in[2], out[2];
    setenv("GO111MODULE", "off", 1);
    setenv("GOPATH", "/usr/share/gocode", 1);
    setenv("GOFLAGS", "", 1);
    if (!getenv("HOME"))
        setenv("GOCACHE", "/tmp/perhaps-bench-go", 0);
    if (pipe2(in, O_CLOEXEC))
        return -1;
    if (pipe2(out, O_CLOEXEC)) {
        close(in[0]);
        close(in[1]);
        return -1;
    }
    int error = spawn(process, arguments, in, out);
    close(in[0]);
    close(out[1]);
    process->in = in[1];
    process->out = out[0];
    return error;
}

static void stop(void *filter)
{
    struct process *process = filter;
    close(process->in); /* the end of its input is its end */
    close(process->out);
    if (process->pid > 0)
        waitpid(process->pid, NULL, 0);
    free(process);
}

/* "go run main.go FILTER.go ..." or "java -cp ... Guava.java ..." */
static struct process *start_program(const struct contender *self, const struct task *task)
{
    char capacity[24], fpr[32], key_nbytes[24], program[512];
    struct process *process = calloc(1, sizeof *process);
    snprintf(capacity, sizeof capacity, "%llu", (unsigned long long)task->capacity);
    snprintf(fpr, sizeof fpr, "%.17g", task->fpr);
    snprintf(key_nbytes, sizeof key_nbytes, "%u", (unsigned)task->settings->key_nbytes);
    snprintf(program, sizeof program, "%s/peers/%s", BENCH_SOURCE_DIR, self->program);
    char go_main[] = BENCH_SOURCE_DIR "/peers/main.go";
    char *go[] = { "go", "run", go_main, program, capacity, fpr, key_nbytes, NULL };
    char *java[] = { "java", "-cp", GUAVA, program, capacity, fpr, key_nbytes, NULL };
    if (process && !start(process, is_go(self->program) ? go : java))
        return process;
    free(process);
    return NULL;
}

/* ---- The contender ---------------------------------------------------------------------- */

static const char *create(const struct contender *self, const struct task *task, void **filter)
{
    if (task->fpr < self->least_fpr)
        return "has fingerprints of 8 bits: always about 3 %, see the row of the highest rate";
    struct process *process = start_program(self, task);
    if (!process)
        return "could not be started";
    process->filter_nbytes = receive_answer(process);
    *filter = process;
    return process->filter_nbytes == SIZE_MAX ? "could not be run: see above" : NULL;
}

static void clear(void *filter)
{
    request(filter, 'C', &(struct perhaps_keys){ .count = 0 });
}

static uint64_t nbytes(const void *filter)
{
    return ((const struct process *)filter)->filter_nbytes;
}

static double seconds(const void *filter)
{
    return ((const struct process *)filter)->seconds;
}

static size_t add(void *filter, const struct perhaps_keys *keys)
{
    return request(filter, 'A', keys);
}

/* What it took goes into the process, which is no part of the filter. */
static size_t ask(const void *filter, const struct perhaps_keys *keys)
{
    union {
        const void *constant;
        struct process *process;
    } either = { .constant = filter };
    return request(either.process, 'Q', keys);
}

/* ---- Which there are --------------------------------------------------------------------- */

static bool on_path(const char *command)
{
    char list[4096], file[4352];
    const char *path = getenv("PATH");
    snprintf(list, sizeof list, "%s", path ? path : "");
    for (char *save, *folder = strtok_r(list, ":", &save); folder;
         folder = strtok_r(NULL, ":", &save)) {
        snprintf(file, sizeof file, "%s/%s", folder, command);
        if (!access(file, X_OK))
            return true;
    }
    return false;
}

static const struct peer {
    const char *name, *program, *command, *needs, *missing;
    double least_fpr;
} programs[] = {
    { "blobloom", "blobloom.go", "go", GO_PACKAGES "greatroar/blobloom",
      "not installed (Debian: golang-go, golang-github-greatroar-blobloom-dev, "
      "golang-github-cespare-xxhash-dev)",
      0 },
    { "seiflotfy", "seiflotfy.go", "go", GO_PACKAGES "seiflotfy/cuckoofilter",
      "not installed (Debian: golang-go, golang-github-seiflotfy-cuckoofilter-dev)", 0.01 },
    { "guava", "Guava.java", "javac", GUAVA,
      "not installed (Debian: default-jdk-headless, libguava-java)", 0 },
};

size_t peer_processes(struct contender *list, size_t room)
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof programs / sizeof *programs && count < room; i++) {
        const struct peer *peer = &programs[i];
        bool here = on_path(peer->command) && !access(peer->needs, R_OK);
        list[count++] = (struct contender){
            .name = peer->name,
            .missing = here ? NULL : peer->missing,
            .program = peer->program,
            .is_peer = true,
            .is_heavy = true,
            .least_fpr = peer->least_fpr,
            .create = create,
            .destroy = stop,
            .clear = clear,
            .nbytes = nbytes,
            .seconds = seconds,
            .add = { [SINGLE] = add },
            .ask = { [SINGLE] = ask },
        };
    }
    return count;
}
