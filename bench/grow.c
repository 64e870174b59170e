/* grow.c - chooses the filters that grow, measures them pass by pass, and prints the tables.
 *
 * All filters go through one pass before any goes through the next, so that each table is
 * printed as soon as its numbers are there. */
#include "grow.h"
#include <perhaps_plan.h>

#include <err.h>
#include <stdlib.h>
#include <string.h>

enum { GROWTHS_MAX = 8 };

/* ---- The filters ------------------------------------------------------------------------- */

/* Returns the highest round rate for which an elastic filter takes slots of 16 bits, which are
 * the fastest. */
static double fpr_of_16_bits(uint64_t capacity)
{
    static const double rates[] = { 0.01, 0.005, 0.003, 0.002, 0.001, 0.0005 };
    struct perhaps_plan plan;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        struct perhaps_options options = { .capacity = capacity,
                                           .fpr = rates[i],
                                           .kind = "elastic" };
        bool planned = !perhaps_plan_for(&options, &plan);
        for (unsigned f = 0; planned && f < plan.nfields; f++)
            if (!strcmp(plan.field_name[f], "slot_bits") && plan.field[f] == 16)
                return rates[i];
    }
    return 0.003;
}

/* Writes a name such as "chain blocked x2 1%". */
static void set_name(struct growth *growth)
{
    const struct perhaps_options *o = &growth->options;
    char factor[16] = "";
    if (o->chain.factor)
        snprintf(factor, sizeof factor, " x%u", o->chain.factor);
    snprintf(growth->name, sizeof growth->name, "%s%s%s%s %g%%", o->kind, o->base ? " " : "",
             o->base ? o->base : "", factor, 100 * o->fpr);
}

/* Fills in what follows from growth->options.  A window does not grow: it is made for all the
 * keys, and the table shows what it takes beside those that grow. */
static void prepare(struct growth *growth, const struct settings *settings)
{
    struct perhaps_options *options = &growth->options;
    set_name(growth);
    growth->fixed = options->base ? options->base : "cuckoo";
    growth->grows = strcmp(options->kind, "window") != 0;
    growth->has_layers = options->chain.factor > 0;
    growth->settings = settings;
    growth->keys = (uint64_t)settings->keys.at[0];
    options->capacity = growth->grows ? (uint64_t)settings->start.at[0] : growth->keys;
    options->window.keys = growth->grows ? 0 : growth->keys;
    options->hashing = hashing_of(settings);
    growth->piece_nbytes = allocate_zeroed((size_t)growth->keys / settings->piece + 2,
                                           sizeof *growth->piece_nbytes);
    growth->row =
        json_pack("{s:s, s:s, s:s, s:f, s:I, s:I, s:b, s:[], s:[]}", "filter", growth->name,
                  "kind", options->kind, "fixed", growth->fixed, "fpr", options->fpr, "start",
                  (json_int_t)options->capacity, "keys", (json_int_t)growth->keys, "grows",
                  growth->grows, "stops", "layer_stops");
}

/* Lists the filters, or those of --kind.  The window stands last: print_stops() relies on it.
 * Returns how many there are. */
static size_t list_growths(const struct settings *settings, struct growth *list)
{
    const double sharp = fpr_of_16_bits((uint64_t)settings->start.at[0]), usual = 0.01;
    const unsigned copies = PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT;
    const struct perhaps_options all[] = {
        { .fpr = sharp, .kind = "elastic", .needs = copies },
        { .fpr = sharp, .kind = "chain", .base = "cuckoo", .needs = copies, .chain.factor = 2 },
        { .fpr = usual, .kind = "elastic", .needs = copies },
        { .fpr = usual, .kind = "chain", .base = "blocked", .chain.factor = 2 },
        { .fpr = usual, .kind = "chain", .base = "blocked", .chain.factor = 4 },
        { .fpr = usual, .kind = "window", .base = "blocked", .window.generations = 5 },
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!has_name(settings->kind, all[i].kind))
            continue;
        list[count].options = all[i];
        prepare(&list[count++], settings);
    }
    if (!count)
        errx(2, "--kind %s: none that grows or forgets", settings->kind);
    return count;
}

const char *grow_create(const struct growth *growth, const struct perhaps_allocator *allocator,
                        perhaps_filter **filter)
{
    struct perhaps_options options = growth->options;
    options.allocator = allocator;
    int error = perhaps_create(&options, filter);
    return error ? perhaps_strerror(error) : NULL;
}

void grow_progress(const struct growth *growth, const char *doing, uint64_t keys)
{
    report_progress(doing ? growth->name : NULL, doing, (double)keys / (double)growth->keys);
}

/* ---- Tables ------------------------------------------------------------------------------ */

static const char stop_columns[] =
    "|bytes bytes 6n; bits bits_per_key 6.2; fpr_now fpr_now 8%; parts parts 5n;";

static const char layer_columns[] =
    "filter filter -24s; full full 6.2; keys keys 7n; bits/key bits_per_key 8.2; "
    "planned planned_bits_per_key 8.2; x ratio 8.2;";

static const char size_columns[] =
    "filter filter -24s; asked fpr 8%; now fpr_now 8%; measured fpr_measured 8%; "
    "|bits bits_per_key 6.2; fixed fixed_bits_per_key 6.2; x to_fixed 5.2; "
    "resident resident_bits_per_key 8.2; |parts parts 6n; |worst worst_bits_per_key 6.2; "
    "at worst_at_keys 7n; looks looks 6.0;";

/* Columns that stand in several tables, or several times in one. */
#define SPEED_COLUMNS(title, path)                                                             \
    "|" title " batched." path ".ns 7.1; bare batched." path ".bare_ns 5.1; "                  \
    "x batched." path ".ratio 5x; "
#define ASK_COLUMNS(path)                                                                      \
    SPEED_COLUMNS(path, path)                                                                  \
    "fixed batched." path ".fixed_ns 6.1; "                                                    \
    "x batched." path ".to_fixed 5.2; "                                                        \
    "layer batched." path ".ns_a_layer 5.2; "
#define PAUSE_COLUMNS(title, path)                                                             \
    "|" title " " path ".median_ns 6n; 99.99% " path ".all_but_1e-4_ns 7n; "                   \
    "99.999% " path ".all_but_1e-5_ns 8n; longest " path ".longest_ns 8n; "                    \
    "again " path ".again_ns 8n; at_key " path ".again_at_key 7n; "                            \
    "long " path ".long_calls 6.0; "

static const char time_columns[] = "filter filter -24s; " SPEED_COLUMNS("add", "add")
    SPEED_COLUMNS("last", "add_last_doubling") ASK_COLUMNS("absent") ASK_COLUMNS("present")
        SPEED_COLUMNS("remove", "remove") "stale batched.stale 6n;";

static const char pause_columns[] = "filter filter -24s; " PAUSE_COLUMNS("median", "pauses")
    PAUSE_COLUMNS("bare", "bare_pauses");

static void print_legend(const struct settings *settings)
{
    char start[16], keys[16];
    printf(
        "filters that grow, one thread, from %s to %s keys without a plan, in batches of %zu "
        "but where said\n",
        short_number(settings->start.at[0], start), short_number(settings->keys.at[0], keys),
        settings->piece);
    printf("bare: random 64-byte lines (batched), of as many bytes as the filter has at that "
           "moment, on huge pages and touched before,\n"
           "  in turn with the filter, piece by piece; of each piece the best of %.0f passes.  "
           "x: ns / bare\n"
           "fixed: a filter of fixed size planned for all the keys, at the rate that the one "
           "that grew has then; asked in turn\n"
           "worst: most bits a key from a million keys on (or a tenth of all), looked at every "
           "4096 keys (the allocator counts,\n"
           "  also what is freed in between)\n\nat each doubling\n%7s",
           settings->repeat.at[0], "");
}

/* Prints memory and rate at each doubling.  All filters have their stops at the same numbers of
 * keys; the window has only one, and is left out. */
static void print_stops(const struct growth *growths, size_t count)
{
    char keys[16];
    size_t stop, shown = growths[count - 1].grows ? count : count - 1;
    const json_t *one;
    for (size_t i = 0; i < shown; i++)
        printf(" | %-28s", growths[i].name);
    printf("\n%7s", "keys");
    for (size_t i = 0; i < shown; i++)
        table_head(stop_columns);
    json_array_foreach(json_object_get(growths[0].row, "stops"), stop, one)
    {
        if (!shown || !json_is_true(json_object_get(one, "doubled")))
            continue;
        printf("\n%7s", short_number(json_number_at(one, "keys"), keys));
        for (size_t i = 0; i < shown; i++)
            table_row(stop_columns,
                      json_array_get(json_object_get(growths[i].row, "stops"), stop));
    }
}

/* Prints how much more memory chains take than one filter that was planned. */
static void print_layers(const struct growth *growths, size_t count)
{
    size_t stop;
    const json_t *one;
    printf("\n\nfull: keys, to the sum of the layers' capacities at a boundary; planned: the "
           "base for as many keys at the rate asked\n");
    table_head(layer_columns);
    putchar('\n');
    for (size_t i = 0; i < count; i++)
        json_array_foreach(json_object_get(growths[i].row, "layer_stops"), stop, one)
        {
            table_row(layer_columns, one);
            putchar('\n');
        }
}

/* Adds to the row what follows from watching and timing. */
static void conclude(struct growth *growth)
{
    double bits = 8 * (double)growth->nbytes / (double)growth->keys;
    json_object_update_new(growth->row, json_pack("{s:f, s:f, s:f, s:f, s:I}", "fpr_now",
                                                  growth->fpr_now, "bits_per_key", bits,
                                                  "fixed_bits_per_key", growth->planned_bits,
                                                  "to_fixed", bits / growth->planned_bits,
                                                  "parts", (json_int_t)growth->parts));
}

/* ---- All of it --------------------------------------------------------------------------- */

/* Sends all filters through one pass, and prints a table of what came out unless 'columns' is
 * NULL.  A filter with a problem takes no part in later passes; the others go on. */
static void run_pass(struct growth *growths, size_t count,
                     const char *(*pass)(struct growth *growth), const char *title,
                     const char *columns)
{
    fputs(title, stdout);
    if (columns) {
        table_head(columns);
        putchar('\n');
    }
    for (size_t i = 0; i < count; i++) {
        struct growth *growth = &growths[i];
        const char *problem = NULL;
        if (!json_object_get(growth->row, "problem") && pass)
            problem = pass(growth);
        grow_progress(growth, NULL, 0);
        if (problem)
            json_object_set_new(growth->row, "problem", json_string(problem));
        if (problem)
            printf("%-24s %s\n", growth->name, problem);
        else if (columns) {
            table_row(columns, growth->row);
            putchar('\n');
        }
        fflush(stdout);
    }
}

/* The order of the passes: watching first, since the others need what it finds; then the sizes,
 * which need the measured rate that timing finds. */
bool grow_all(const struct settings *settings, json_t *facts)
{
    static struct growth growths[GROWTHS_MAX];
    bool wrong = false;
    size_t count = list_growths(settings, growths);
    print_legend(settings);
    run_pass(growths, count, grow_watch, "", NULL);
    print_stops(growths, count);
    print_layers(growths, count);
    run_pass(growths, count, grow_time,
             "\nns a key; layer: the same divided by the number of layers; stale: entries that "
             "had to stay when the last half of the keys was removed\n",
             time_columns);
    for (size_t i = 0; i < count; i++)
        conclude(&growths[i]);
    run_pass(growths, count, NULL,
             "\nat the end; bits a key; resident: what this process had more, also pages that "
             "are not full; measured: of 10M absent keys (--quick: fewer)\n",
             size_columns);
    run_pass(growths, count, grow_pause,
             "\nsingle adds, ns a call, the clock included (bins of a quarter of a doubling); "
             "again: the longest that came in every run at the same keys;\n  long: calls over "
             "100 us; bare: a loop that writes a line a key, as slowly as the filter, and sees "
             "new memory at the same pace\n",
             pause_columns);
    json_t *rows = json_array();
    json_object_set_new(facts, "growths", rows);
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(rows, growths[i].row);
        wrong |= growths[i].wrong;
        free(growths[i].piece_nbytes);
    }
    return wrong;
}
