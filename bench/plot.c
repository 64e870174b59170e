/* perhaps-plot JSON FOLDER - what plot.gp draws, from the JSON of perhaps-bench.
 *
 * Writes FOLDER/speed.dat, bits.dat and threads.dat; or grow_bits.dat and grow_fpr.dat from
 * what 'perhaps-bench grow' wrote: a block for each line of the figure, its name first, with
 * two empty lines behind; the last one is what it is compared with. */
#include <err.h>
#include <jansson.h>
#include <math.h>
#include <perhaps.h>
#include <stdio.h>
#include <string.h>

static const double usual_fpr = 0.001;
static const double usual_keys = 10e6;

static FILE *open_data(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.dat", folder, name);
    FILE *file = fopen(path, "w");
    if (!file)
        err(2, "%s", path);
    return file;
}

static void close_data(FILE *file)
{
    if (fclose(file))
        err(2, "data");
}

/* ---- Rows -------------------------------------------------------------------------------- */

static double number(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

static double batched(const json_t *row, const char *operation, const char *what)
{
    const json_t *calls = json_object_get(row, "batched");
    return number(json_object_get(calls, operation), what);
}

/* Rows of the other rates, and those without result, are in no figure. */
static bool is_of(const json_t *row, const char *kind, double fpr, bool shared)
{
    const char *name = json_string_value(json_object_get(row, "filter"));
    return name && !strcmp(name, kind) && fabs(number(row, "fpr") / fpr - 1) < 1e-3 &&
           !json_object_get(row, "problem") &&
           json_is_true(json_object_get(row, "shared")) == shared;
}

/* The usual one, if it was measured. */
static double choose(const json_t *rows, const char *name, double usual)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) if (fabs(number(row, name) / usual - 1) <
                                         1e-3) return number(row, name);
    return number(json_array_get(rows, 0), name);
}

/* ---- Speed against size ------------------------------------------------------------------ */

static void put_speed(FILE *to, const json_t *rows, const char *kind, const char *title,
                      const char *what)
{
    double fpr = choose(rows, "fpr", usual_fpr);
    size_t i;
    json_t *row;
    fprintf(to, "\"%s\"\n", title);
    json_array_foreach(rows, i,
                       row) if (is_of(row, kind, fpr, false) && number(row, "threads") < 2)
        fprintf(to, "%g %g\n", number(row, "body_bytes"), batched(row, "absent", what));
    fprintf(to, "\n\n");
}

static void write_speed(const json_t *rows, const char *folder)
{
    const struct perhaps_kind *kind;
    FILE *to = open_data(folder, "speed");
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        put_speed(to, rows, kind->name, kind->name, "ns");
    put_speed(to, rows, perhaps_kind_at(0)->name, "bare read of one line", "bare_ns");
    close_data(to);
}

/* ---- Bits against rate ------------------------------------------------------------------- */

static void put_bits(FILE *to, const char *kind)
{
    enum { STEPS_A_DECADE = 12, DECADES = 9 };
    struct perhaps_plan plan;
    fprintf(to, "\"%s\"\n", kind ? kind : "information limit");
    for (int i = STEPS_A_DECADE / 3; i <= DECADES * STEPS_A_DECADE; i++) {
        double fpr = pow(10, -i / (double)STEPS_A_DECADE);
        struct perhaps_options options = { .capacity = (uint64_t)usual_keys,
                                           .fpr = fpr,
                                           .kind = kind };
        if (!kind)
            fprintf(to, "%g %g\n", fpr, -log2(fpr));
        else if (!perhaps_plan_for(&options, &plan))
            fprintf(to, "%g %g\n", fpr, plan.bits_per_key);
    }
    fprintf(to, "\n\n");
}

static void write_bits(const char *folder)
{
    const struct perhaps_kind *kind;
    FILE *to = open_data(folder, "bits");
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        put_bits(to, kind->name);
    put_bits(to, NULL);
    close_data(to);
}

/* ---- Threads ----------------------------------------------------------------------------- */

/* Millions a second, by all threads together, at a filter made to be shared. */
static void put_threads(FILE *to, const json_t *rows, const char *kind, const char *title,
                        const char *operation, const char *what)
{
    double fpr = choose(rows, "fpr", usual_fpr), keys = choose(rows, "capacity", usual_keys);
    size_t i;
    json_t *row;
    fprintf(to, "\"%s\"\n", title);
    json_array_foreach(rows, i, row)
    {
        double ns = batched(row, operation, what);
        if (is_of(row, kind, fpr, true) && ns > 0 && fabs(number(row, "capacity") - keys) < 1)
            fprintf(to, "%g %g\n", number(row, "threads"), 1e3 / ns);
    }
    fprintf(to, "\n\n");
}

static void write_threads(const json_t *rows, const char *folder)
{
    const struct perhaps_kind *kind;
    char title[64];
    FILE *to = open_data(folder, "threads");
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++) {
        snprintf(title, sizeof title, "%s: ask", kind->name);
        put_threads(to, rows, kind->name, title, "absent", "ns");
        snprintf(title, sizeof title, "%s: add", kind->name);
        put_threads(to, rows, kind->name, title, "add", "ns");
    }
    put_threads(to, rows, perhaps_kind_at(0)->name, "bare read of one line", "absent",
                "bare_ns");
    close_data(to);
}

/* ---- Filters that grow ------------------------------------------------------------------- */

static void put_growth(FILE *to, const json_t *growth, const char *title, const char *what)
{
    size_t i;
    json_t *stop;
    fprintf(to, "\"%s\"\n", title);
    json_array_foreach(json_object_get(growth, "stops"), i, stop)
        fprintf(to, "%g %g\n", number(stop, "keys"), number(stop, what));
    fprintf(to, "\n\n");
}

static bool is_drawn(const json_t *growth)
{
    return json_is_true(json_object_get(growth, "grows")) &&
           !json_object_get(growth, "problem");
}

static void put_growths(FILE *to, const json_t *growths, const char *what)
{
    size_t i;
    json_t *growth;
    json_array_foreach(growths, i, growth)
    {
        if (is_drawn(growth))
            put_growth(to, growth, json_string_value(json_object_get(growth, "filter")), what);
    }
}

/* The filter of fixed size has at each number of keys the rate that the first one has there. */
static void write_growth(const json_t *growths, const char *folder)
{
    char title[128];
    const json_t *first = json_array_get(growths, 0);
    FILE *bits = open_data(folder, "grow_bits"), *fpr = open_data(folder, "grow_fpr");
    snprintf(title, sizeof title, "%s planned for so many, at the rate of %s",
             json_string_value(json_object_get(first, "fixed")),
             json_string_value(json_object_get(first, "filter")));
    put_growths(bits, growths, "bits_per_key");
    put_growth(bits, first, title, "fixed_bits_per_key");
    put_growths(fpr, growths, "fpr_now");
    close_data(bits);
    close_data(fpr);
}

int main(int argc, char **argv)
{
    json_error_t problem;
    if (argc != 3)
        errx(2, "usage: perhaps-plot JSON FOLDER");
    json_t *facts = json_load_file(argv[1], 0, &problem);
    if (!facts)
        errx(2, "%s: %s", argv[1], problem.text);
    const json_t *rows = json_object_get(facts, "rows");
    const json_t *growths = json_object_get(facts, "growths");
    if (!json_array_size(rows) && !json_array_size(growths))
        errx(2, "%s: no rows: not by perhaps-bench --json", argv[1]);
    if (json_array_size(rows)) {
        write_speed(rows, argv[2]);
        write_bits(argv[2]);
        write_threads(rows, argv[2]);
    }
    if (json_array_size(growths))
        write_growth(growths, argv[2]);
    json_decref(facts);
    return 0;
}
