/* grow_report.c - the tables of 'perhaps-bench grow'. */
#include <inttypes.h>
#include <string.h>

#include "grow.h"

static void print_legend(FILE *to, const struct settings *settings)
{
    char text[16], from[16];
    fprintf(to, "filters that grow, one thread, from %s",
            short_number((double)settings->start, text));
    fprintf(to,
            " to %s keys without a plan, in batches of %zu but where said\n"
            "bare: random 64-byte lines (batched), of as many bytes as the filter has at that "
            "moment, on huge pages and touched before,\n"
            "  in turn with the filter, piece by piece; of each piece the best of %" PRIu64
            " passes.  x: ns / bare\n"
            "fixed: a filter of fixed size planned for all the keys, at the rate that the one "
            "that grew has then; asked in turn\n"
            "worst: most bits a key from %s keys on, looked at every %d keys (the allocator "
            "counts, also what is freed in between)\n\n",
            short_number((double)settings->keys[0], text), settings->piece, settings->repeat,
            short_number((double)worst_from(settings), from), WATCH_KEYS);
}

void grow_report_header(FILE *to, const struct settings *settings)
{
    report_machine(to, settings);
    print_legend(to, settings);
}

static void print_share(FILE *to, int width, double share)
{
    char text[16];
    snprintf(text, sizeof text, "%.3g%%", 100 * share);
    fprintf(to, " %*s", width, text);
}

static void print_number(FILE *to, int width, double value)
{
    char text[16];
    fprintf(to, " %*s", width, short_number(value, text));
}

/* ---- While it grows ---------------------------------------------------------------------- */

static void print_stop(FILE *to, const struct stop *stop)
{
    fprintf(to, " |");
    print_number(to, 6, (double)stop->nbytes);
    fprintf(to, " %6.2f", 8 * (double)stop->nbytes / (double)stop->keys);
    print_share(to, 8, stop->fpr_now);
    print_number(to, 5, (double)stop->parts);
}

static bool is_shown(const struct growth *growth)
{
    return growth->grower->grows && !growth->problem;
}

static void print_stop_header(FILE *to, const struct growth *growths, size_t count)
{
    fprintf(to, "at each doubling\n%7s", "");
    for (size_t i = 0; i < count; i++)
        if (is_shown(&growths[i]))
            fprintf(to, " | %-28s", growths[i].grower->name);
    fprintf(to, "\n%7s", "keys");
    for (size_t i = 0; i < count; i++)
        if (is_shown(&growths[i]))
            fprintf(to, " | %6s %6s %8s %5s", "bytes", "bits", "fpr now",
                    growths[i].grower->has_layers ? "layer" : "pages");
    fprintf(to, "\n");
}

/* All have their stops at the same numbers of keys. */
void grow_report_stops(FILE *to, const struct growth *growths, size_t count)
{
    const struct growth *first = NULL;
    for (size_t i = count; i-- > 0;)
        if (is_shown(&growths[i]))
            first = &growths[i];
    if (!first)
        return;
    print_stop_header(to, growths, count);
    for (size_t stop = 0; stop < first->nstops; stop++) {
        char keys[16];
        if (!first->stops[stop].doubled)
            continue;
        fprintf(to, "%7s", short_number((double)first->stops[stop].keys, keys));
        for (size_t i = 0; i < count; i++)
            if (is_shown(&growths[i]))
                print_stop(to, &growths[i].stops[stop]);
        fprintf(to, "\n");
    }
}

static void print_layer_stop(FILE *to, const struct growth *growth,
                             const struct layer_stop *stop)
{
    double bits = 8 * (double)stop->nbytes / (double)stop->keys;
    fprintf(to, "%-24s %6.2f", growth->grower->name, stop->full);
    print_number(to, 7, (double)stop->keys);
    fprintf(to, " %8.2f %8.2f %8.2f\n", bits, stop->planned_bits, bits / stop->planned_bits);
}

void grow_report_layers(FILE *to, const struct growth *growths, size_t count)
{
    fprintf(to,
            "\nfull: keys, to the sum of the layers' capacities at a boundary; planned: the "
            "base for as many keys at the rate asked\n%-24s %6s %7s %8s %8s %8s\n",
            "filter", "full", "keys", "bits/key", "planned", "x");
    for (size_t i = 0; i < count; i++)
        for (size_t stop = 0; !growths[i].problem && stop < growths[i].nlayer_stops; stop++)
            print_layer_stop(to, &growths[i], &growths[i].layer_stops[stop]);
    fflush(to);
}

/* ---- Time -------------------------------------------------------------------------------- */

void grow_report_time_header(FILE *to)
{
    fprintf(to,
            "\nns a key; layer: the same divided by the number of layers; stale: entries that "
            "had to stay when the last half of the keys was removed\n%-24s",
            "filter");
    fprintf(to, " |%7s %5s %5s |%7s %5s %5s", "add", "bare", "x", "last", "bare", "x");
    fprintf(to, " |%7s %5s %5s %6s %5s %5s", "absent", "bare", "x", "fixed", "x", "layer");
    fprintf(to, " |%7s %5s %5s %6s %5s %5s", "present", "bare", "x", "fixed", "x", "layer");
    fprintf(to, " |%7s %5s %5s %6s\n", "remove", "bare", "x", "stale");
}

static void print_speed(FILE *to, const struct speed *speed)
{
    double ratio = speed->ns / speed->bare;
    fprintf(to, " |%7.1f %5.1f %5.*f", speed->ns, speed->bare, ratio < 100 ? 2 : 0, ratio);
}

static void print_ask(FILE *to, const struct growth *growth, enum operation operation)
{
    double ns = growth->ask[operation].ns, fixed = growth->fixed_ns[operation];
    print_speed(to, &growth->ask[operation]);
    fprintf(to, " %6.1f %5.2f", fixed, ns / fixed);
    if (growth->grower->has_layers)
        fprintf(to, " %5.2f", ns / (double)last_stop(growth)->parts);
    else
        fprintf(to, " %5s", "");
}

void grow_report_time(FILE *to, const struct growth *growth)
{
    fprintf(to, "%-24s", growth->grower->name);
    print_speed(to, &growth->add);
    print_speed(to, &growth->add_last);
    print_ask(to, growth, ASK_ABSENT);
    print_ask(to, growth, ASK_PRESENT);
    if (growth->remove.ns > 0) {
        print_speed(to, &growth->remove);
        print_number(to, 6, (double)growth->stale);
    }
    fprintf(to, "\n");
}

/* ---- Memory and rate at the end ---------------------------------------------------------- */

static void print_size(FILE *to, const struct growth *growth)
{
    const struct stop *end = last_stop(growth);
    double keys = (double)end->keys, bits = 8 * (double)end->nbytes / keys;
    fprintf(to, "%-24s", growth->grower->name);
    print_share(to, 8, growth->grower->options.fpr);
    print_share(to, 8, end->fpr_now);
    print_share(to, 8, growth->fpr_measured);
    fprintf(to, " | %6.2f %6.2f %5.2f %8.2f", bits, growth->fixed_bits,
            bits / growth->fixed_bits, 8 * (double)growth->resident_nbytes / keys);
    fprintf(to, " |");
    print_number(to, 6, (double)end->parts);
    if (growth->grower->grows) {
        fprintf(to, " | %6.2f", growth->worst_bits);
        print_number(to, 7, (double)growth->worst_keys);
        fprintf(to, " %6" PRIu64, growth->looks);
    }
    fprintf(to, "\n");
}

void grow_report_sizes(FILE *to, const struct growth *growths, size_t count)
{
    fprintf(to,
            "\nat the end; bits a key; resident: what this process had more, also pages that "
            "are not full; measured: of 10M absent keys (--quick: fewer)\n");
    fprintf(to, "%-24s %8s %8s %8s | %6s %6s %5s %8s | %6s | %6s %7s %6s\n", "filter", "asked",
            "now", "measured", "bits", "fixed", "x", "resident", "parts", "worst", "at",
            "looks");
    for (size_t i = 0; i < count; i++)
        if (!growths[i].problem)
            print_size(to, &growths[i]);
}

/* ---- Pauses ------------------------------------------------------------------------------ */

void grow_report_pause_header(FILE *to)
{
    fprintf(to,
            "\nsingle adds, ns a call, the clock included (bins of a quarter of a doubling); "
            "again: the longest that came in every run at the same keys;\n"
            "  long: calls over %d us; bare: a loop that writes a line a key, as slowly as "
            "the filter, and sees new memory at the same pace\n",
            LONG_CALL_NS / 1000);
    fprintf(to, "%-24s", "filter");
    for (int i = 0; i < 2; i++)
        fprintf(to, " |%7s %7s %8s %8s %8s %7s %6s", i ? "bare" : "median", "99.99%", "99.999%",
                "longest", "again", "at key", "long");
    fprintf(to, "\n");
}

static void print_pauses(FILE *to, const struct pauses *pauses)
{
    fprintf(to, " |");
    print_number(to, 6, pauses->median_ns);
    print_number(to, 7, pauses->most_ns[0]);
    print_number(to, 8, pauses->most_ns[1]);
    print_number(to, 8, pauses->longest_ns);
    if (pauses->again_ns > 0) {
        print_number(to, 8, pauses->again_ns);
        print_number(to, 7, (double)pauses->again_at);
    } else {
        fprintf(to, " %8s %7s", "", "");
    }
    fprintf(to, " %6" PRIu64, pauses->long_calls);
}

void grow_report_pause(FILE *to, const struct growth *growth)
{
    fprintf(to, "%-24s", growth->grower->name);
    print_pauses(to, &growth->pauses);
    print_pauses(to, &growth->bare_pauses);
    fprintf(to, "\n");
}
