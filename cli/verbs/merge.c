/* merge.c - the verb merge: one filter of several. */
#include <perhaps_sets.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../filter/agree.h"
#include "../filter/target.h"

/* Ends the program because 'other' cannot be joined with 'first'. */
static _Noreturn void fail_join(const struct target *first, const char *first_path,
                                const struct target *other, int error)
{
    const char *path = other->path;
    char difference[PERHAPS_DIFFERENCE_NBYTES];
    if (error == PERHAPS_ERR_MISMATCH &&
        perhaps_difference(other->filter, first->filter, difference))
        fail("%s: differs from %s (%s): build both with the same options, --seed too", path,
             first_path, difference);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        fail("%s: filters of its kind cannot be put together without the keys: build a new "
             "one from those",
             path);
    if (error == PERHAPS_ERR_FULL)
        fail("%s: does not fit into %s any more: build them with a larger -n", path,
             first_path);
    fail("%s: %s", path, why(error));
}

static void report_join(const struct settings *settings, const struct target *whole)
{
    const char *about = settings->common ? "at most about " : "about ";
    struct perhaps_stats stats;
    perhaps_stats_of(whole->filter, &stats);
    json_t *facts =
        json_pack("{s:o, s:I, s:I, s:I, s:f}", "filter", json_path(whole->path), "parts",
                  (json_int_t)settings->ninputs, "keys_in_filter", (json_int_t)stats.keys,
                  "body_bytes", (json_int_t)stats.plan.body_nbytes, "fpr_now", stats.fpr_now);
    struct text rate = { "" };
    if (settings->common)
        rate = text_of(", a rate of %s", share(stats.fpr_now).s);
    summarize(settings, facts, "%s into %s: %s%s, %s%s%s, %s",
              counted(settings->ninputs, "filter").s, whole->path,
              counts_all(whole->filter) ? "" : about, counted(stats.keys_different, "key").s,
              scaled((double)stats.plan.body_nbytes, "B").s, rate.s,
              room_of(&stats.plan, stats.keys_different).s,
              duration(seconds_worked(settings)).s);
}

/* Makes one filter of all inputs: of the keys that any of them has, or, with --common, that
 * all have.  For the latter bits that meet by chance count as keys, too, so the number is
 * rather too large.  The output may be one of the inputs, which is then changed.  So it is
 * locked before any is read. */
void verb_merge(const struct settings *settings)
{
    char *const *paths = settings->inputs;
    if (!settings->output)
        fail("merge: which file shall it make? give -o F");
    if (settings->ninputs == 0)
        fail("merge: which filters? see 'perhaps help merge'");
    struct target *whole = target_reserve_output(settings);
    target_check_replaced(whole);
    target_load(whole, paths[0]);
    for (size_t i = 1; i < settings->ninputs; i++) {
        struct target *other = target_open(settings, paths[i]);
        agree_on_both(whole, other);
        int error = settings->common ? perhaps_intersect(whole->filter, other->filter)
                                     : perhaps_merge(whole->filter, other->filter);
        if (error)
            fail_join(whole, paths[0], other, error);
        target_look_last(whole);
        target_close(other);
    }
    target_look_last(whole);
    target_save(whole);
    report_join(settings, whole);
}
