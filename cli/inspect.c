/* The verbs that look and change nothing: info, plan, verify. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "numbers.h"
#include "report.h"
#include "target.h"

static json_t *fields_of(const struct perhaps_plan *plan)
{
    json_t *fields = json_object();
    for (unsigned i = 0; i < plan->nfields; i++)
        json_object_set_new(fields, plan->field_name[i],
                            json_integer((json_int_t)plan->field[i]));
    return fields;
}

int verb_plan(const struct settings *settings)
{
    struct perhaps_plan plan;
    if (!settings->capacity)
        return complain("plan: for how many keys? give -n N");
    struct perhaps_options options = target_options(settings, settings->capacity);
    int error = perhaps_plan(&options, &plan);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        return complain("plan: %s that can do all that: leave out a need, or plan for the most "
                        "keys there may be",
                        settings->kind ? "that is not a kind" : "there is no kind");
    if (error)
        return complain("plan: %s", why(error));
    return print_facts(settings,
                       json_pack("{s:s, s:s, s:I, s:f, s:f, s:I, s:f, s:o}", "kind", plan.kind,
                                 "why", plan.why, "capacity", (json_int_t)plan.capacity,
                                 "fpr_asked", plan.fpr, "fpr_predicted", plan.fpr_predicted,
                                 "body_bytes", (json_int_t)plan.body_nbytes, "bits_per_key",
                                 plan.bits_per_key, "geometry", fields_of(&plan)));
}

/* A file's pages are the system's business; the library asks for huge ones in memory. */
static json_t *pages_of(const struct settings *settings, const struct perhaps_stats *stats)
{
    bool huge = stats->huge_nbytes > 0;
    if (settings->json)
        return json_boolean(huge);
    return json_sprintf("%s%s", huge ? "yes" : "no", stats->mapped ? " (mapped file)" : "");
}

int verb_info(const struct settings *settings)
{
    struct target target = TARGET_NONE;
    struct perhaps_stats stats;
    struct stat file = { 0 };
    int status = target_open(&target, settings->filter, settings, WITHOUT_SECRET);
    if (!status && stat(settings->filter, &file) != 0)
        status = complain("%s: %s", settings->filter, strerror(errno));
    if (!status) {
        perhaps_stats(target.filter, &stats);
        const struct perhaps_plan *plan = &stats.plan;
        print_facts(
            settings,
            json_pack("{s:o, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:s, s:I, s:I, "
                      "s:b, s:o, s:s, s:o}",
                      "filter", json_path(settings->filter), "kind", plan->kind, "keys",
                      (json_int_t)stats.keys, "capacity", (json_int_t)plan->capacity, "load",
                      stats.load, "bits_per_key", stats.bits_per_key, "fpr_asked", plan->fpr,
                      "fpr_predicted", plan->fpr_predicted, "fpr_now", stats.fpr_now,
                      "body_bytes", (json_int_t)plan->body_nbytes, "file_bytes",
                      (json_int_t)file.st_size, "hash", stats.hash, "failed_adds",
                      (json_int_t)stats.failed_adds, "unmatched_removals",
                      (json_int_t)stats.unmatched_removals, "mapped", stats.mapped,
                      "huge_pages", pages_of(settings, &stats), "instructions", stats.cpu,
                      "geometry", fields_of(plan)));
    }
    target_close(&target);
    return status;
}

/* Beside the lines for people: the exit status tells "damaged" from "could not be checked". */
static int verify(const struct target *target)
{
    struct perhaps_verdict verdict;
    int error = perhaps_verify(target->filter, &verdict);
    if (error == PERHAPS_ERR_DAMAGED) {
        complain(
            "%s: damaged: %s of %s pages, the first at byte %ju: restore it from a copy or "
            "build it anew",
            target->path, grouped(verdict.damaged).s, grouped(verdict.pages).s,
            (uintmax_t)verdict.first_damaged);
        return STATUS_NO;
    }
    if (error == PERHAPS_ERR_UNSUPPORTED)
        return complain("%s: is being added to in place and has no checksums meanwhile: check "
                        "it later",
                        target->path);
    if (error)
        return complain("%s: %s", target->path, why(error));
    printf("%s: ok, %s page%s\n", target->path, grouped(verdict.pages).s,
           verdict.pages == 1 ? "" : "s");
    return STATUS_YES;
}

int verb_verify(const struct settings *settings)
{
    struct target target = TARGET_NONE;
    int status = target_open(&target, settings->filter, settings, WITHOUT_SECRET);
    if (!status)
        status = verify(&target);
    else if (target.error == PERHAPS_ERR_DAMAGED)
        status = STATUS_NO;
    target_close(&target);
    return status;
}
