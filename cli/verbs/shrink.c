/* shrink.c - the verb shrink: a filter that was planned for more keys than it got becomes as
 * small as its keys allow.
 *
 * The filter is mapped, and the small one made in memory. */
#include <errno.h>
#include <math.h>
#include <perhaps_file.h>
#include <perhaps_live.h>
#include <perhaps_plan.h>
#include <perhaps_sets.h>
#include <string.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../base/stop.h"
#include "../filter/target.h"

/* ---- Errors ------------------------------------------------------------------------------ */

/* Ends the program because nothing smaller keeps the rate. */
static _Noreturn void fail_limit(const struct target *large, const struct target *small,
                                 const struct perhaps_shrink_options *options)
{
    const double asked = large->settings->fpr;
    struct perhaps_stats stats;
    double least;
    perhaps_stats_of(large->filter, &stats);
    struct text limit = share(asked > 0 ? asked : stats.plan.fpr);
    int error = perhaps_shrink_least_fpr(large->filter, options, &least);
    progress_erase();
    if (error == PERHAPS_ERR_STOPPED)
        fail_interrupted(small->outcome);
    const double printed = least * 1.006; /* three digits may be too low by half a percent */
    if (!error && (least <= 0 || printed >= 1))
        fail("%s: cannot be made smaller: no part of its size divides it and leaves a rate "
             "below 1: build it anew from the keys, with a smaller -n%s",
             large->path, small->outcome);
    if (error)
        fail("%s: nothing smaller keeps %s: its rate is %s now%s%s", large->path, limit.s,
             share(stats.fpr_now).s, stats.plan.fpr < 0.1 ? ": a higher -p may allow it" : "",
             small->outcome);
    fail("%s: nothing smaller keeps %s: its rate is %s now, and %s in the next smaller size: "
         "give -p %.3g or more%s",
         large->path, limit.s, share(stats.fpr_now).s, share(least).s, printed, small->outcome);
}

/* Ends the program if the large filter is the reason for an error (errno). */
static void settle_large(const struct target *large, const struct target *small, int error,
                         const struct perhaps_shrink_options *options)
{
    if (error == PERHAPS_ERR_LIMIT)
        fail_limit(large, small, options);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        fail("%s: filters of its kind, %s, cannot be made smaller, but only blocked, bloom, "
             "counting, and chains of these: build it anew from the keys, with a smaller -n%s",
             large->path, perhaps_kind_of(large->filter)->name, small->outcome);
    if (error == PERHAPS_ERR_IO && errno == EBUSY && !perhaps_is_live(small->path))
        fail("%s: is being written in place: try again when that has ended%s", large->path,
             small->outcome);
    if (error == PERHAPS_ERR_DAMAGED)
        fail("%s: %s%s", large->path, why(error), small->outcome);
}

/* ---- The verb ---------------------------------------------------------------------------- */

static void show_reading(void *context, uint64_t done_nbytes, uint64_t total_nbytes)
{
    struct target *target = context;
    target->progress.total_nbytes = total_nbytes;
    progress_show(&target->progress, false, 0, done_nbytes);
}

/* Writes the small filter to its place. */
static void write_small(const struct target *large, struct target *small)
{
    const struct perhaps_shrink_options options = { .fpr = large->settings->fpr,
                                                    .stopped = stop_asked,
                                                    .progress = show_reading,
                                                    .context = small };
    progress_start(&small->progress, large->settings, "shrinking", 0);
    int error = small->fresh ? perhaps_shrink_save_new(large->filter, &options, small->path)
                             : perhaps_shrink_save(large->filter, &options, small->path);
    int reason = errno;
    progress_erase();
    errno = reason;
    settle_large(large, small, error, &options);
    target_settle_save(small, error);
}

/* Returns "6" for what is 1/6 of what it was; about so for chains, whose layers shrink on their
 * own. */
static struct text times(double ratio)
{
    return ratio >= 100 ? grouped((uint64_t)llround(ratio)) : text_of("%.3g", ratio);
}

static void report_shrunk(const struct target *large, struct target *small)
{
    const struct settings *settings = large->settings;
    const double seconds = seconds_worked(settings);
    struct perhaps_stats before, after;
    target_open_saved(small);
    perhaps_stats_of(large->filter, &before);
    perhaps_stats_of(small->filter, &after);
    json_t *facts = json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:f, s:f, s:f}", "from", json_path(large->path), "filter",
        json_path(small->path), "keys_in_filter", (json_int_t)before.keys_different,
        "body_bytes_before", (json_int_t)before.memory_nbytes, "body_bytes",
        (json_int_t)after.memory_nbytes, "bits_per_key", after.bits_per_key, "fpr_asked",
        after.plan.fpr, "fpr_now", after.fpr_now);
    summarize(settings, facts, "%s shrunk to 1/%s: %s -> %s, %s, %s now, %s, %s", large->path,
              times((double)before.memory_nbytes / (double)after.memory_nbytes).s,
              scaled((double)before.memory_nbytes, "B").s,
              scaled((double)after.memory_nbytes, "B").s,
              scaled(after.bits_per_key, " bits a key").s, share(after.fpr_now).s,
              duration(seconds).s, scaled((double)before.memory_nbytes / seconds, "B/s").s);
}

/* The output may be the filter itself.  So it is locked before that is opened. */
void verb_shrink(const struct settings *settings)
{
    if (!settings->output)
        fail("shrink: which file shall it make? give -o G; G may be F");
    if (strcmp(settings->output, "-") == 0)
        fail("shrink: -o -: it is written to a file only: give -o G");
    struct target *small = target_reserve_output(settings);
    target_check_replaced(small);
    struct target *large = target_open(settings, settings->filter);
    write_small(large, small);
    if (!settings->quiet)
        report_shrunk(large, small);
}
