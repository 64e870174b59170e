#include "facts.h"
#include "numbers.h"
#include "report.h"
#include "stop.h"
#include "target.h"

static int complain_merge(const struct target *part, const struct settings *settings, int error)
{
    const char *first = settings->inputs[0];
    if (error == PERHAPS_ERR_MISMATCH)
        return complain("%s: differs from %s in kind, size, hash, seed or secret: build both "
                        "with the same options, --seed too",
                        part->path, first);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        return complain(
            "%s: filters of its kind cannot be put together without the keys: build "
            "a new one from those",
            part->path);
    if (error == PERHAPS_ERR_FULL)
        return complain("%s: does not fit into %s any more: build them with a larger -n",
                        part->path, first);
    return complain("%s: %s", part->path, why(error));
}

static int merge_part(struct target *whole, const char *path, const struct settings *settings)
{
    struct target part = TARGET_NONE;
    int status = target_open(&part, path, settings, WITHOUT_SECRET);
    if (!status) {
        int error = perhaps_merge(whole->filter, part.filter);
        status = error ? complain_merge(&part, settings, error) : 0;
    }
    target_close(&part);
    return status;
}

static int report(const struct target *whole, const struct settings *settings, double seconds)
{
    struct perhaps_stats stats;
    perhaps_stats_of(whole->filter, &stats);
    json_t *facts = json_pack(
        "{s:s, s:o, s:I, s:I, s:I, s:f, s:f}", "verb", settings->verb->name, "filter",
        json_path(whole->path), "parts", (json_int_t)settings->ninputs, "keys_in_filter",
        (json_int_t)stats.keys, "body_bytes", (json_int_t)stats.plan.body_nbytes, "fpr_now",
        stats.fpr_now, "seconds", seconds);
    return summarize(settings, facts, "%s into %s: %s%s, %s%s, %s",
                     counted(settings->ninputs, "filter").s, whole->path,
                     counts_all(&stats.plan) ? "" : "about ", counted(stats.keys, "key").s,
                     scaled((double)stats.plan.body_nbytes, "B").s,
                     room_of(&stats.plan, stats.keys).s, duration(seconds).s);
}

/* The output may be one of the parts, and is then changed: it is locked before any is read. */
static int merge_all(struct target *whole, const struct settings *settings)
{
    int status = target_reserve_output(whole, settings);
    if (!status)
        status = target_check_replaced(whole, settings);
    if (!status)
        status = target_load(whole, settings->inputs[0], settings, WITHOUT_SECRET);
    for (size_t i = 1; !status && i < settings->ninputs; i++) {
        status = merge_part(whole, settings->inputs[i], settings);
        if (!status && stop_signal())
            status = complain_interrupted(whole->outcome);
    }
    return status ? status : target_save(whole, settings);
}

int verb_merge(const struct settings *settings)
{
    struct target whole = TARGET_NONE;
    double started = seconds_now();
    if (!settings->output)
        return complain("merge: which file shall it make? give -o F");
    if (settings->ninputs == 0)
        return complain("merge: which filters? see 'perhaps help merge'");
    stop_on_signals();
    int status = merge_all(&whole, settings);
    if (!status)
        status = report(&whole, settings, seconds_now() - started);
    target_close(&whole);
    return status;
}
