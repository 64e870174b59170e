/* report.c - tells the machine, prints tables of what is in JSON objects, shows progress. */
#include "report.h"

#include <err.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

const char *const call_names[CALLS] = {
    [SINGLE] = "single", [BATCHED] = "batched", [PREPARED] = "prepared"
};
const char *const operation_names[OPERATIONS] = {
    [ADD] = "add", [ASK_ABSENT] = "absent", [ASK_PRESENT] = "present", [REMOVE] = "remove"
};

/* ---- The machine ------------------------------------------------------------------------- */

/* Writes what Linux tells as "model name"; not every CPU has that. */
static void read_cpu_name(char *name, size_t room)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(name, room, "a CPU of unknown name");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(name, room, "%s", colon + 2);
        break;
    }
    if (file)
        fclose(file);
}

/* A small filter tells which loops the library uses on this CPU. */
json_t *report_machine(void)
{
#ifdef __clang__
    static const char compiler[] = __VERSION__;
#else
    static const char compiler[] = "gcc " __VERSION__;
#endif
    char cpu[128];
    struct perhaps_options options = { .capacity = 1000, .fpr = 0.01 };
    struct perhaps_stats stats;
    perhaps_filter *filter;
    if (perhaps_create(&options, &filter))
        errx(2, "no filter can be made");
    perhaps_stats_of(filter, &stats);
    perhaps_free(filter);
    read_cpu_name(cpu, sizeof cpu);
    printf("perhaps %s, built by %s, on %s, %d CPUs, kernels: %s\n", perhaps_version(),
           compiler, cpu, get_nprocs(), stats.cpu);
    return json_pack("{s:s, s:s, s:s, s:i, s:s}", "version", perhaps_version(), "compiler",
                     compiler, "cpu", cpu, "cpus", get_nprocs(), "kernels", stats.cpu);
}

void report_close(json_t *facts, const char *path)
{
    if (path && json_dump_file(facts, path, JSON_INDENT(2) | JSON_REAL_PRECISION(6)))
        errx(2, "%s: could not be written", path);
    json_decref(facts);
}

json_t *json_speed(struct speed speed)
{
    if (speed.ns <= 0)
        return NULL;
    return json_pack("{s:f, s:f, s:f}", "ns", speed.ns, "bare_ns", speed.bare_ns, "ratio",
                     speed.ns / speed.bare_ns);
}

/* ---- Tables ------------------------------------------------------------------------------ */

const char *short_number(double value, char text[16])
{
    static const char units[] = " kMG";
    size_t unit = 0;
    for (; value >= 1e3 && units[unit + 1]; unit++)
        value /= 1e3;
    snprintf(text, 16, "%.4g%.1s", value, unit ? &units[unit] : "");
    return text;
}

/* Returns what lies at a path such as batched.add.ns; NULL if there is nothing. */
static const json_t *find(const json_t *row, const char *path)
{
    char name[32];
    for (; path; path = strchr(path, '.') ? strchr(path, '.') + 1 : NULL) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(path, "."), path);
        row = json_object_get(row, name);
    }
    return row;
}

double json_number_at(const json_t *row, const char *path)
{
    return json_number_value(find(row, path));
}

/* Writes a value in one of the formats of report.h; nothing if there is no value. */
static void print_value(char text[32], const char *format, const json_t *value)
{
    double number = json_number_value(value);
    if (!value)
        *text = '\0';
    else if (*format == 's')
        snprintf(text, 32, "%s", json_string_value(value));
    else if (*format == 'b')
        snprintf(text, 32, "%s", json_is_true(value) ? "yes" : "");
    else if (*format == 'n')
        short_number(number, text);
    else if (*format == '%')
        snprintf(text, 32, "%.3g%%", 100 * number);
    else if (*format == 'x')
        snprintf(text, 32, "%.*f", number < 100 ? 2 : 0, number);
    else
        snprintf(text, 32, "%.*f", format[1] - '0', number);
}

/* Prints the titles of the columns, or what the row has for each of them. */
static void print_cells(const char *columns, const json_t *row, bool is_head)
{
    char title[16], path[48], format[4], text[32];
    int width, length;
    for (const char *at = columns;
         sscanf(at, " %15s %47s %d%3[^;];%n", title, path, &width, format, &length) == 4;
         at += length) {
        bool line = *title == '|';
        for (char *blank = title; (blank = strchr(blank, '_'));)
            *blank = ' ';
        print_value(text, format, find(row, path));
        const char *before = at == columns ? "" : " ";
        printf("%s%*s", line ? " | " : before, width, is_head ? title + line : text);
    }
}

void table_head(const char *columns)
{
    print_cells(columns, NULL, true);
}

void table_row(const char *columns, const json_t *row)
{
    print_cells(columns, row, false);
}

/* ---- Progress ---------------------------------------------------------------------------- */

/* Writes ten times a second at most, so that it takes no time worth mentioning, and only to a
 * terminal. */
void report_progress(const char *name, const char *doing, double share)
{
    static double last;
    if (!isatty(STDERR_FILENO) || (name && seconds_now() - last < 0.1))
        return;
    last = seconds_now();
    fprintf(stderr, "\r\033[K");
    if (name)
        fprintf(stderr, "%s: %s %.0f%%", name, doing, 100 * share);
}
