/* report.c - the results as a table and as JSON. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "bench.h"

static const char *const call_names[CALLS] = { [SINGLE] = "single", [BATCHED] = "batched" };
static const char *const operation_names[OPERATIONS] = {
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

static const char *cpu_name(void)
{
    static char name[128];
    look_up("/proc/cpuinfo", "model name", name, sizeof name);
    return *name ? name : "a CPU of unknown name";
}

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* ---- The table ------------------------------------------------------------------------- */

/* "10M", "64", "12.3k" */
static const char *short_number(double value, char text[16])
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

void report_header(FILE *to, const struct settings *settings)
{
    char queries[16];
    fprintf(to, "perhaps %s, built by %s, on %s, %d CPUs\n", perhaps_version(), COMPILER,
            cpu_name(), get_nprocs());
    fprintf(to, "keys: %" PRIu64 " random bytes, %s; one thread\n", settings->key_nbytes,
            settings->hashed ? "hashed already (hash none)"
                             : "hashed by the filter (xxh3 in the library's)");
    fprintf(to,
            "ns a key: the average over pieces of %d keys, of each the best of %" PRIu64
            " passes, since machines are noisy\n"
            "  add: from empty to full, memory touched before; absent, present: %s queries a "
            "pass, others in each\n"
            "  single: a call for each key (adds to huge filters: sampled); batched: %d keys a "
            "call\n",
            PIECE, settings->repeat, short_number((double)settings->stretch, queries),
            BATCH_KEYS);
    fprintf(to,
            "bare: random 64-byte lines of as many bytes on huge pages, in turn with the "
            "filter, piece by piece, timed alike;\n"
            "  read beside queries, read and written beside adds; in a plain loop beside "
            "single calls, in a rolling ring of\n"
            "  %d prefetches beside batched ones. x: ns / bare\n"
            "huge: share of the filter on huge pages; load: of slots, in kinds that have "
            "them\n\n",
            RING);
    fprintf(to, "%-9s %6s %6s %8s %8s %4s %4s %-7s", "filter", "keys", "asked", "measured",
            "bits/key", "load", "huge", "calls");
    for (int operation = 0; operation < OPERATIONS; operation++)
        fprintf(to, " |%7s %5s %5s", operation_names[operation], "bare", "x");
    fprintf(to, "\n");
}

static void print_speed(FILE *to, const struct speed *speed)
{
    fprintf(to, " |%7.1f %5.1f %5.2f", speed->ns, speed->bare, speed->ns / speed->bare);
}

static double bits_per_key(const struct result *result)
{
    return 8 * (double)result->nbytes / (double)result->keys;
}

void report_row(FILE *to, const char *name, const struct result *result)
{
    char keys[16], load[16] = "", asked[16], measured[16];
    if (result->problem) {
        fprintf(to, "%-9s %6s %5.4g%%  %s\n", name,
                result->capacity ? short_number((double)result->capacity, keys) : "-",
                100 * result->fpr, result->problem);
        return;
    }
    if (result->load > 0)
        snprintf(load, sizeof load, "%.0f%%", 100 * result->load);
    snprintf(asked, sizeof asked, "%.4g%%", 100 * result->fpr);
    snprintf(measured, sizeof measured, "%.3g%%", 100 * result->fpr_measured);
    fprintf(to, "%-9s %6s %6s %8s %8.2f %4s %3.0f%%", name,
            short_number((double)result->keys, keys), asked, measured, bits_per_key(result),
            load, 100 * (double)result->huge_nbytes / (double)result->nbytes);
    for (int calls = SINGLE; calls < CALLS; calls++) {
        if (result->speed[calls][ADD].ns <= 0)
            continue;
        fprintf(to, "%*s %-7s", calls == SINGLE ? 0 : 51, "", call_names[calls]);
        for (int operation = 0; operation < OPERATIONS; operation++)
            print_speed(to, &result->speed[calls][operation]);
        fprintf(to, "\n");
    }
    fflush(to);
}

/* ---- JSON ------------------------------------------------------------------------------ */

struct json_report {
    json_t *facts;
    json_t *rows;
};

struct json_report *json_report_open(const struct settings *settings)
{
    struct json_report *report = malloc(sizeof *report);
    if (!report)
        return NULL;
    report->rows = json_array();
    report->facts = json_pack(
        "{s:s, s:s, s:s, s:i, s:I, s:b, s:I, s:I, s:i, s:i, s:O}", "version", perhaps_version(),
        "compiler", COMPILER, "cpu", cpu_name(), "cpus", get_nprocs(), "key_bytes",
        (json_int_t)settings->key_nbytes, "hashed", settings->hashed, "repeat",
        (json_int_t)settings->repeat, "queries_a_pass", (json_int_t)settings->stretch,
        "keys_a_batch", BATCH_KEYS, "ring", RING, "rows", report->rows);
    return report;
}

static json_t *json_speeds(const struct speed speed[OPERATIONS])
{
    json_t *all = json_object();
    for (int operation = 0; operation < OPERATIONS; operation++)
        json_object_set_new(all, operation_names[operation],
                            json_pack("{s:f, s:f}", "ns", speed[operation].ns, "bare_ns",
                                      speed[operation].bare));
    return all;
}

void json_report_row(struct json_report *report, const char *name, const struct result *result)
{
    json_t *row = json_pack("{s:s, s:I, s:f}", "filter", name, "capacity",
                            (json_int_t)result->capacity, "fpr", result->fpr);
    json_array_append_new(report->rows, row);
    if (result->problem) {
        json_object_set_new(row, "problem", json_string(result->problem));
        return;
    }
    json_object_update_new(
        row, json_pack("{s:I, s:I, s:I, s:f, s:f, s:I}", "keys", (json_int_t)result->keys,
                       "body_bytes", (json_int_t)result->nbytes, "huge_bytes",
                       (json_int_t)result->huge_nbytes, "bits_per_key", bits_per_key(result),
                       "fpr_measured", result->fpr_measured, "fpr_queries",
                       (json_int_t)result->queries));
    if (result->load > 0)
        json_object_set_new(row, "load", json_real(result->load));
    for (int calls = SINGLE; calls < CALLS; calls++)
        if (result->speed[calls][ADD].ns > 0)
            json_object_set_new(row, call_names[calls], json_speeds(result->speed[calls]));
}

int json_report_close(struct json_report *report, const char *path)
{
    int error = json_dump_file(report->facts, path, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    json_decref(report->rows);
    json_decref(report->facts);
    free(report);
    return error;
}
