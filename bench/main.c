/* perhaps-bench - all kinds and their peers, at all sizes and rates, in one run; or
 * those that grow, while they do (grow.h). */
#include <err.h>
#include <signal.h>
#include <string.h>

#include "grow.h"

/* Asked of filters that are then filled beyond their capacity: a little more than they have
 * there, so that they take the keys. */
static const double fpr_for_loads = 1.5e-4;

struct bench {
    struct settings settings;
    struct contender contenders[CONTENDERS_MAX];
    size_t ncontenders;
    struct json_report *json;
    bool wrong;
};

static bool is_named(const struct bench *bench, const struct contender *contender)
{
    const char *only = bench->settings.contender;
    return !only || !strcmp(only, contender->name);
}

static bool is_wanted(const struct bench *bench, const struct contender *contender)
{
    bool in_time = !contender->is_heavy || bench->settings.peers || bench->settings.contender;
    return !contender->missing && is_named(bench, contender) && in_time;
}

/* ---- One contender ----------------------------------------------------------------------- */

static void measure_and_report(struct bench *bench, const struct contender *contender,
                               const struct task *task, struct result *result,
                               const struct result *base)
{
    *result = (struct result){ .fpr = task->fpr, .nthreads = task->nthreads };
    if (!task->capacity)
        result->problem = "no capacity gives a body of that size, or none is known";
    else if (contender->is_peer && task->settings->hashed)
        result->problem = "takes no keys that are hashed already";
    else
        measure(contender, task, result);
    report_row(stdout, contender->name, result, base);
    if (bench->json)
        json_report_row(bench->json, contender, result, base);
    bench->wrong |= result->wrong;
}

/* In one thread; shared, to see what that costs; in more threads. */
static void measure_threads(struct bench *bench, const struct contender *contender,
                            struct task task)
{
    const struct settings *settings = &bench->settings;
    struct result base, other;
    if (settings->body_nbytes)
        task.capacity = contender->capacity
                            ? contender->capacity(contender, task.fpr, settings->body_nbytes)
                            : 0;
    task.nthreads = 1;
    measure_and_report(bench, contender, &task, &base, NULL);
    bool more = settings->nthreads > 1 || settings->threads[0] > 1;
    task.shared = contender->can_share;
    if (more && !base.problem && contender->can_share)
        measure_and_report(bench, contender, &task, &other, &base);
    for (size_t i = 0; i < settings->nthreads && !base.problem; i++) {
        task.nthreads = settings->threads[i];
        if (task.nthreads > 1 && contender->can_threads)
            measure_and_report(bench, contender, &task, &other, &base);
    }
}

/* ---- All contenders ---------------------------------------------------------------------- */

/* At one number of keys. */
static void measure_at(struct bench *bench, uint64_t keys)
{
    const struct settings *settings = &bench->settings;
    struct task task = { .capacity = keys, .settings = settings };
    for (size_t i = 0; i < settings->nfpr; i++) {
        task.fpr = settings->fpr[i];
        for (size_t c = 0; c < bench->ncontenders; c++)
            if (is_wanted(bench, &bench->contenders[c]))
                measure_threads(bench, &bench->contenders[c], task);
    }
    for (size_t i = 0; i < settings->nload; i++) {
        task.fpr = fpr_for_loads;
        task.load = settings->load[i];
        for (size_t c = 0; task.load > 0 && c < bench->ncontenders; c++)
            if (is_wanted(bench, &bench->contenders[c]) && bench->contenders[c].has_buckets)
                measure_threads(bench, &bench->contenders[c], task);
    }
}

static void measure_everything(struct bench *bench)
{
    const struct settings *settings = &bench->settings;
    if (settings->body_nbytes)
        measure_at(bench, 0);
    for (size_t i = 0; !settings->body_nbytes && i < settings->nkeys; i++)
        measure_at(bench, settings->keys[i]);
}

static void list_contenders(struct bench *bench)
{
    bool any = false;
    bench->ncontenders = contenders_list(bench->contenders);
    for (size_t c = 0; c < bench->ncontenders; c++) {
        const struct contender *contender = &bench->contenders[c];
        any |= is_wanted(bench, contender);
        if (bench->settings.contender && is_named(bench, contender) && contender->missing)
            errx(2, "--kind %s: %s", contender->name, contender->missing);
    }
    if (any)
        return;
    for (size_t c = 0; c < bench->ncontenders; c++)
        fprintf(stderr, "%s%s", c ? ", " : "there are ", bench->contenders[c].name);
    fputc('\n', stderr);
    errx(2, "--kind %s: is none of them", bench->settings.contender);
}

static void report_left_out(const struct bench *bench)
{
    for (size_t c = 0; c < bench->ncontenders && !bench->settings.contender; c++) {
        const struct contender *contender = &bench->contenders[c];
        if (contender->missing)
            printf("%-14s %s\n", contender->name, contender->missing);
        else if (!is_wanted(bench, contender))
            printf("%-14s left out (--peers)\n", contender->name);
    }
}

static void measure_all(struct bench *bench)
{
    report_header(stdout, &bench->settings);
    measure_everything(bench);
    report_left_out(bench);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    settings_read(argc, argv, &bench.settings);
    signal(SIGPIPE, SIG_IGN); /* of a peer that has ended */
    if (!bench.settings.grow)
        list_contenders(&bench);
    if (bench.settings.json && !(bench.json = json_report_open(&bench.settings)))
        errx(2, "out of memory");
    if (bench.settings.grow)
        bench.wrong = grow_all(&bench.settings, bench.json);
    else
        measure_all(&bench);
    if (bench.json && json_report_close(bench.json, bench.settings.json))
        errx(2, "%s: could not be written", bench.settings.json);
    return bench.wrong;
}
