/* report.c - the machine, the results as a table, and how far it came. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "bench.h"

const char *const call_names[CALLS] = { [SINGLE] = "single", [BATCHED] = "batched" };
const char *const operation_names[OPERATIONS] = {
    [ADD] = "add", [ASK_ABSENT] = "absent", [ASK_PRESENT] = "present"
};

/* ---- The machine ----------------------------------------------------------------------- */

/* The value behind 'name' and a colon in a file of such lines; "" if there is none. */
static void look_up(const char *path, const char *name, char *value, size_t room)
{
    char line[256];
    FILE *file = fopen(path, "r");
    *value = '\0';
    while (file && !*value && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, name, strlen(name)) != 0 || !colon)
            continue;
        colon += strspn(colon, ": \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(value, room, "%s", colon);
    }
    if (file)
        fclose(file);
}

uint64_t huge_nbytes_now(void)
{
    char value[64];
    look_up("/proc/self/smaps_rollup", "AnonHugePages", value, sizeof value);
    return 1024 * strtoull(value, NULL, 10);
}

const char *machine_cpu(void)
{
    static char name[128];
    look_up("/proc/cpuinfo", "model name", name, sizeof name);
    return *name ? name : "a CPU of unknown name";
}

const char *machine_compiler(void)
{
#ifdef __clang__
    return __VERSION__;
#else
    return "gcc " __VERSION__;
#endif
}

const char *machine_kernels(void)
{
    struct perhaps_options options = { .capacity = 1000, .fpr = 0.01 };
    struct perhaps_stats stats = { 0 };
    perhaps_filter *filter;
    if (!perhaps_create(&options, &filter))
        perhaps_stats_of(filter, &stats);
    perhaps_free(filter);
    return stats.cpu ? stats.cpu : "unknown";
}

/* ---- The table ------------------------------------------------------------------------- */

const char *short_number(double value, char text[16])
{
    const char *unit = "";
    if (value >= 1e9) {
        value /= 1e9;
        unit = "G";
    } else if (value >= 1e6) {
        value /= 1e6;
        unit = "M";
    } else if (value >= 1e3) {
        value /= 1e3;
        unit = "k";
    }
    snprintf(text, 16, "%.4g%s", value, unit);
    return text;
}

static void print_legend(FILE *to, const struct settings *settings)
{
    char queries[16];
    fprintf(to,
            "ns a key: the average over pieces of %zu keys a thread, made just before in its "
            "cache; of each piece the best of %" PRIu64 " passes\n"
            "  add: from empty to full, memory touched before (beyond 256 rounds of pieces: an "
            "even sample of them, 2 passes);\n"
            "  absent, present: %s queries a pass and thread, others in each\n"
            "  single: a call for each key; batched: %d keys a call\n",
            settings->piece, settings->repeat,
            short_number((double)(settings->rounds * settings->piece), queries), BATCH_KEYS);
    fprintf(to,
            "bare: random 64-byte lines of as many bytes on huge pages, in turn with the "
            "filter, piece by piece, timed alike,\n"
            "  in as many threads; read beside queries, read and written beside adds; in a "
            "plain loop beside single calls,\n"
            "  in a rolling ring of %d prefetches beside batched ones. x: ns / bare\n"
            "thr: threads at one filter, ns being those of all together; s: made to be shared. "
            "gain: how many times as fast\n"
            "  as one thread at a filter that is not shared\n"
            "huge: share of the filter on huge pages; load: of slots, in kinds that have "
            "them\n\n",
            RING);
}

void report_machine(FILE *to, const struct settings *settings)
{
    fprintf(to, "perhaps %s, built by %s, on %s, %d CPUs, kernels: %s\n", perhaps_version(),
            machine_compiler(), machine_cpu(), get_nprocs(), machine_kernels());
    fprintf(to, "keys: %" PRIu64 " random bytes, %s\n", settings->key_nbytes,
            settings->hashed ? "hashed already (hash none)"
                             : "hashed by the filter (xxh3 in the library's)");
}

void report_header(FILE *to, const struct settings *settings)
{
    report_machine(to, settings);
    print_legend(to, settings);
    fprintf(to, "%-14s %6s %6s %8s %8s %4s %4s %3s %-7s", "filter", "keys", "asked", "measured",
            "bits/key", "load", "huge", "thr", "calls");
    for (int operation = 0; operation < OPERATIONS; operation++)
        fprintf(to, " |%7s %5s %5s %4s", operation_names[operation], "bare", "x", "gain");
    fprintf(to, "\n");
}

double report_gain(const struct result *result, const struct result *base, enum calls calls,
                   enum operation operation)
{
    double ns = result->speed[calls][operation].ns;
    return base && ns > 0 ? base->speed[calls][operation].ns / ns : 0;
}

static void print_speed(FILE *to, const struct result *result, const struct result *base,
                        enum calls calls, enum operation operation)
{
    const struct speed *speed = &result->speed[calls][operation];
    double gain = report_gain(result, base, calls, operation);
    if (speed->ns <= 0) {
        fprintf(to, " |%24s", "");
        return;
    }
    double ratio = speed->ns / speed->bare;
    fprintf(to, " |%7.1f %5.1f %5.*f", speed->ns, speed->bare, ratio < 100 ? 2 : 0, ratio);
    if (gain > 0)
        fprintf(to, " %4.2f", gain);
    else
        fprintf(to, " %4s", "");
}

static void print_what(FILE *to, const char *name, const struct result *result)
{
    char keys[16], load[16] = "", huge[16] = "", asked[16], measured[16], threads[16];
    double nkeys = (double)result->keys, nbytes = (double)result->nbytes;
    if (result->load > 0)
        snprintf(load, sizeof load, "%.0f%%", 100 * result->load);
    if (result->huge_known)
        snprintf(huge, sizeof huge, "%.0f%%", 100 * (double)result->huge_nbytes / nbytes);
    snprintf(asked, sizeof asked, "%.4g%%", 100 * result->fpr);
    snprintf(measured, sizeof measured, "%.3g%%", 100 * result->fpr_measured);
    snprintf(threads, sizeof threads, "%zu%s", result->nthreads, result->shared ? "s" : "");
    fprintf(to, "%-14s %6s %6s %8s %8.2f %4s %4s %3s", name, short_number(nkeys, keys), asked,
            measured, 8 * nbytes / nkeys, load, huge, threads);
}

void report_row(FILE *to, const char *name, const struct result *result,
                const struct result *base)
{
    char keys[16];
    if (result->problem) {
        fprintf(to, "%-14s %6s %5.4g%%  %s\n", name,
                result->capacity ? short_number((double)result->capacity, keys) : "-",
                100 * result->fpr, result->problem);
        return;
    }
    print_what(to, name, result);
    for (int calls = SINGLE; calls < CALLS; calls++) {
        if (result->speed[calls][ASK_ABSENT].ns <= 0)
            continue;
        fprintf(to, "%*s %-7s", calls == SINGLE ? 0 : 60, "", call_names[calls]);
        for (int operation = 0; operation < OPERATIONS; operation++)
            print_speed(to, result, base, (enum calls)calls, (enum operation)operation);
        fprintf(to, "\n");
    }
    fflush(to);
}

/* ---- How far it came --------------------------------------------------------------------- */

/* Ten times a second, and only where somebody looks. */
void report_progress(const char *name, const struct task *task, const char *doing, double share)
{
    static double last;
    char keys[16];
    if (!isatty(STDERR_FILENO) || (name && seconds_now() - last < 0.1))
        return;
    last = seconds_now();
    fprintf(stderr, "\r\033[K");
    if (name)
        fprintf(stderr, "%s, %s keys, %.4g%%, %zu thread%s%s: %s %.0f%%", name,
                short_number((double)task->capacity, keys), 100 * task->fpr, task->nthreads,
                task->nthreads == 1 ? "" : "s", task->shared ? ", shared" : "", doing,
                100 * share);
}
