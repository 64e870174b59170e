/* perhaps-challenge - the classic question: N phone numbers are on record; which of 100,000
 * more are?  For each way to answer it, a generator prints the numbers into a pipe, from which
 * `perhaps build` makes a file, and `perhaps query` answers the questions from that file.
 * Prints a table with a row for each way.  Exits with 1 if a number on record is not found, or
 * if more strangers are than the rate allows.
 *
 *     perhaps-challenge N [--ways blocked,ribbon] [-p P] [--memory SIZE] [--folder DIR]
 *     perhaps-challenge --numbers N                  prints N numbers
 *
 * The numbers are 11 digits, 13000000000 to 19999999999, in an order that looks random: number
 * i is the i-th of a permutation of them.  So every number is different, and whether one is on
 * record is known without storing any. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <perhaps.h>

#define LOW   UINT64_C(13000000000)
#define COUNT UINT64_C(7000000000)

enum { DIGITS = 11, QUESTIONS = 100000 };

/* ---- Numbers --------------------------------------------------------------------------- */

/* Returns the number that comes at place i of the permutation: shuffles the numbers below 2^33,
 * again and again until one is below COUNT. */
static uint64_t number_at(uint64_t i)
{
    const uint64_t mask = (UINT64_C(1) << 33) - 1;
    do {
        i ^= i >> 17;
        i = i * UINT64_C(0x9E3779B97F4A7C15) & mask;
        i ^= i >> 15;
        i = i * UINT64_C(0x243F6A8885A308D3) & mask;
        i ^= i >> 18;
    } while (i >= COUNT);
    return LOW + i;
}

/* All numbers of four digits, as text. */
static char four[10000][4];

static void fill_four(void)
{
    for (unsigned i = 0; i < 10000; i++)
        for (unsigned d = 0, left = i; d < 4; d++, left /= 10)
            four[i][3 - d] = (char)('0' + left % 10);
}

/* Writes the number and a newline.  Returns the end. */
static char *put_number(char *to, uint64_t number)
{
    uint32_t high = (uint32_t)(number / 100000000), low = (uint32_t)(number % 100000000);
    memcpy(to, four[high] + 1, 3);
    memcpy(to + 3, four[low / 10000], 4);
    memcpy(to + 7, four[low % 10000], 4);
    to[DIGITS] = '\n';
    return to + DIGITS + 1;
}

static void write_all(int fd, const char *bytes, size_t nbytes)
{
    while (nbytes) {
        ssize_t n = write(fd, bytes, nbytes);
        if (n < 0 && errno != EINTR)
            err(2, "write");
        bytes += n > 0 ? n : 0;
        nbytes -= n > 0 ? (size_t)n : 0;
    }
}

static int print_numbers(uint64_t n)
{
    enum { EACH = 20000 };
    static char text[EACH * (DIGITS + 1)];
    (void)fcntl(STDOUT_FILENO, F_SETPIPE_SZ, 1 << 20);
    for (uint64_t i = 0; i < n;) {
        char *to = text;
        for (unsigned k = 0; k < EACH && i < n; k++, i++)
            to = put_number(to, number_at(i));
        write_all(STDOUT_FILENO, text, (size_t)(to - text));
    }
    return 0;
}

/* ---- Processes ------------------------------------------------------------------------- */

struct challenge {
    uint64_t n;
    const char *fpr, *memory, *folder;
    char self[4096], perhaps[4096]; /* programs */
    char file[4096], questions[3][4096];
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Starts a program with these descriptors as standard input and output. */
static pid_t start(char *const *argv, int in, int out)
{
    pid_t child = fork();
    if (child < 0)
        err(2, "fork");
    if (child)
        return child;
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        err(2, "dup2");
    execv(argv[0], argv);
    err(2, "%s", argv[0]);
}

/* Waits for a program.  Returns its exit status; sets *nbytes, unless that is NULL, to the most
 * memory it had. */
static int finish(pid_t child, uint64_t *nbytes)
{
    struct rusage usage;
    int status;
    while (wait4(child, &status, 0, &usage) < 0)
        if (errno != EINTR)
            err(2, "wait");
    if (nbytes)
        *nbytes = (uint64_t)usage.ru_maxrss * 1024;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

/* ---- Building and asking --------------------------------------------------------------- */

/* A way to answer: what `perhaps build` is told. */
struct way {
    const char *name, *what;
    const char *option[4];
    bool planned; /* it must know the number of keys */
};

static const struct way ways[] = {
    { "blocked", "any keys, more can be added", { "--kind", "blocked" }, true },
    { "ribbon", "any keys, fixed", { "--static" }, false },
    { "bitmap", "these keys, exact", { "--integers", "13000000000-19999999999" }, false },
};

struct result {
    double build_s, ask_s;
    uint64_t memory_nbytes, file_nbytes;
    uint64_t found, strangers; /* of those on record, and of the others */
};

/* Builds the file from a pipe. */
static void build(const struct challenge *c, const struct way *way, struct result *r)
{
    char count[32];
    const bool spills = !strcmp(way->option[0], "--static");
    const char *argv[24] = { c->perhaps, "build", "-q", "-p", c->fpr, "-o", c->file };
    const char *numbers[] = { c->self, "--numbers", count, NULL };
    size_t n = 7;
    int pipes[2];
    snprintf(count, sizeof count, "%ju", (uintmax_t)c->n);
    for (size_t i = 0; i < 4 && way->option[i]; i++)
        argv[n++] = way->option[i];
    if (way->planned) {
        argv[n++] = "-n";
        argv[n++] = count;
    } else if (spills) {
        argv[n++] = "--tmp";
        argv[n++] = c->folder;
    }
    if (spills && c->memory) {
        argv[n++] = "--memory";
        argv[n++] = c->memory;
    }
    if (pipe2(pipes, O_CLOEXEC))
        err(2, "pipe");
    double began = now();
    pid_t builder = start((char *const *)argv, pipes[0], STDERR_FILENO);
    pid_t generator = start((char *const *)numbers, STDIN_FILENO, pipes[1]);
    close(pipes[0]);
    close(pipes[1]);
    if (finish(generator, NULL) || finish(builder, &r->memory_nbytes))
        errx(2, "%s: could not be built", way->name);
    r->build_s = now() - began;
    struct stat st;
    if (stat(c->file, &st))
        err(2, "%s", c->file);
    r->file_nbytes = (uint64_t)st.st_size;
}

/* Asks the questions of a file in a new process.  Returns how many are perhaps on record. */
static uint64_t ask(const struct challenge *c, const char *questions, double *seconds)
{
    char *const argv[] = { (char *)c->perhaps, "query",           "-c",
                           (char *)c->file,    (char *)questions, NULL };
    char answer[64] = "";
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC))
        err(2, "pipe");
    double began = now();
    pid_t child = start(argv, STDIN_FILENO, pipes[1]);
    close(pipes[1]);
    if (read(pipes[0], answer, sizeof answer - 1) < 0)
        err(2, "read");
    close(pipes[0]);
    if (finish(child, NULL) == 2)
        errx(2, "could not be asked");
    *seconds = now() - began;
    return strtoull(answer, NULL, 10);
}

/* Writes three files of questions: both sorts in turn, those on record, and the others. */
static void write_questions(struct challenge *c)
{
    FILE *file[3];
    char line[DIGITS + 2];
    for (int i = 0; i < 3; i++) {
        snprintf(c->questions[i], sizeof c->questions[i], "%s/questions-%d", c->folder, i);
        file[i] = fopen(c->questions[i], "we");
        if (!file[i])
            err(2, "%s", c->questions[i]);
    }
    for (uint64_t i = 0; i < QUESTIONS; i++) {
        uint64_t half = i / 2, step = c->n / (QUESTIONS / 2) + (c->n < QUESTIONS / 2);
        uint64_t place = i % 2 ? c->n + half : half * step % c->n;
        size_t nbytes = (size_t)(put_number(line, number_at(place)) - line);
        fwrite(line, 1, nbytes, file[0]);
        fwrite(line, 1, nbytes, file[1 + i % 2]);
    }
    for (int i = 0; i < 3; i++)
        if (fclose(file[i]))
            err(2, "%s", c->questions[i]);
}

/* Prints a row.  Returns whether the answers are as promised. */
static bool report(const struct challenge *c, const struct way *way, const struct result *r)
{
    const double half = (double)QUESTIONS / 2, p = strtod(c->fpr, NULL), n = (double)c->n;
    uint64_t lost = QUESTIONS / 2 - r->found;
    printf("%-8s %8.1f s %7.1f M/s %8.2f GB %8.2f GB %7.3f %6ju %9.4f %% %8.0f ms  %s\n",
           way->name, r->build_s, n / r->build_s / 1e6, (double)r->memory_nbytes / 1e9,
           (double)r->file_nbytes / 1e9, 8 * (double)r->file_nbytes / n, (uintmax_t)lost,
           100 * (double)r->strangers / half, r->ask_s * 1e3, way->what);
    fflush(stdout);
    return !lost && (double)r->strangers <= half * p + 6 * sqrt(half * p);
}

static bool run_way(struct challenge *c, const struct way *way)
{
    enum { PASSES = 5 };
    struct result r = { .ask_s = INFINITY };
    double seconds;
    build(c, way, &r);
    for (int i = 0; i < PASSES; i++) {
        ask(c, c->questions[0], &seconds);
        r.ask_s = fmin(r.ask_s, seconds);
    }
    r.found = ask(c, c->questions[1], &seconds);
    r.strangers = ask(c, c->questions[2], &seconds);
    unlink(c->file);
    return report(c, way, &r);
}

static void print_head(const struct challenge *c)
{
    struct utsname system;
    uname(&system);
    printf("%ju numbers of 11 digits through a pipe, rate %s; then 100,000 questions, half of "
           "them "
           "on record\n",
           (uintmax_t)c->n, c->fpr);
    printf("%ld CPUs, %.0f GB of memory, %s %s, perhaps %s\n\n", sysconf(_SC_NPROCESSORS_ONLN),
           (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1e9,
           system.sysname, system.release, perhaps_version());
    printf(
        "way           built       speed   peak memory      file   bits/key   lost   strangers "
        " questions  for\n");
    fflush(stdout);
}

static bool is_asked(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, name, length) && (at[length] == ',' || !at[length]))
            return true;
    }
    return !list;
}

static _Noreturn void usage(void)
{
    errx(2, "usage: perhaps-challenge N [--ways LIST] [-p P] [--memory SIZE] [--folder DIR]");
}

int main(int argc, char **argv)
{
    static const struct option names[] = { { "ways", 1, NULL, 'w' },
                                           { "memory", 1, NULL, 'm' },
                                           { "folder", 1, NULL, 'f' },
                                           { "numbers", 1, NULL, 'n' },
                                           { NULL, 0, NULL, 0 } };
    struct challenge c = { .fpr = "0.01", .folder = "/tmp" };
    const char *list = NULL;
    bool ok = true;
    fill_four();
    for (int code; (code = getopt_long(argc, argv, "p:", names, NULL)) != -1;) {
        if (code == 'n')
            return print_numbers((uint64_t)strtod(optarg, NULL));
        if (code == '?')
            usage();
        *(code == 'w'   ? &list
          : code == 'm' ? &c.memory
          : code == 'f' ? &c.folder
                        : &c.fpr) = optarg;
    }
    double n = optind + 1 == argc ? strtod(argv[optind], NULL) : 0;
    if (!(n >= 1 && n <= (double)(COUNT - QUESTIONS)))
        usage();
    c.n = (uint64_t)n;
    ssize_t length = readlink("/proc/self/exe", c.self, sizeof c.self - 1);
    if (length < 0)
        err(2, "/proc/self/exe");
    c.self[length] = '\0';
    const char *slash = strrchr(c.self, '/');
    snprintf(c.perhaps, sizeof c.perhaps, "%.*s/perhaps", (int)(slash - c.self), c.self);
    snprintf(c.file, sizeof c.file, "%s/challenge-%ld.perhaps", c.folder, (long)getpid());
    write_questions(&c);
    print_head(&c);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (is_asked(list, ways[i].name))
            ok &= run_way(&c, &ways[i]);
    for (int i = 0; i < 3; i++)
        unlink(c.questions[i]);
    return !ok;
}
