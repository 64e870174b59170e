/* perhaps-bench - all kinds and their peers, at all sizes and rates, in one run. */
#include <err.h>
#include <string.h>

#include "bench.h"

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

static bool is_wanted(const struct bench *bench, const struct contender *contender)
{
    const char *only = bench->settings.contender;
    return !contender->missing && (!only || !strcmp(only, contender->name));
}

static void measure_and_report(struct bench *bench, const struct contender *contender,
                               struct task task)
{
    struct result result = { .fpr = task.fpr };
    uint64_t body_nbytes = bench->settings.body_nbytes;
    if (body_nbytes)
        task.capacity =
            contender->capacity ? contender->capacity(contender, task.fpr, body_nbytes) : 0;
    if (task.capacity)
        measure(contender, &task, &result);
    else
        result.problem = "no capacity gives a body of that size, or none is known";
    report_row(stdout, contender->name, &result);
    if (bench->json)
        json_report_row(bench->json, contender->name, &result);
    bench->wrong |= result.wrong;
}

/* All contenders, at one number of keys. */
static void measure_at(struct bench *bench, uint64_t keys)
{
    const struct settings *settings = &bench->settings;
    struct task task = { .capacity = keys, .settings = settings };
    for (size_t i = 0; i < settings->nfpr; i++) {
        task.fpr = settings->fpr[i];
        for (size_t c = 0; c < bench->ncontenders; c++)
            if (is_wanted(bench, &bench->contenders[c]))
                measure_and_report(bench, &bench->contenders[c], task);
    }
    for (size_t i = 0; i < settings->nload; i++) {
        task.fpr = fpr_for_loads;
        task.load = settings->load[i];
        for (size_t c = 0; task.load > 0 && c < bench->ncontenders; c++)
            if (is_wanted(bench, &bench->contenders[c]) && bench->contenders[c].has_slots)
                measure_and_report(bench, &bench->contenders[c], task);
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
    for (size_t c = 0; c < bench->ncontenders; c++)
        any |= is_wanted(bench, &bench->contenders[c]);
    if (any)
        return;
    for (size_t c = 0; c < bench->ncontenders; c++)
        fprintf(stderr, "%s%s", c ? ", " : "there are ", bench->contenders[c].name);
    fputc('\n', stderr);
    errx(2, "--kind %s: is none of them, or is not installed", bench->settings.contender);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    settings_read(argc, argv, &bench.settings);
    list_contenders(&bench);
    if (bench.settings.json && !(bench.json = json_report_open(&bench.settings)))
        errx(2, "out of memory");
    report_header(stdout, &bench.settings);
    measure_everything(&bench);
    for (size_t c = 0; c < bench.ncontenders; c++)
        if (bench.contenders[c].missing)
            printf("%-9s %s\n", bench.contenders[c].name, bench.contenders[c].missing);
    if (bench.json && json_report_close(bench.json, bench.settings.json))
        errx(2, "%s: could not be written", bench.settings.json);
    return bench.wrong;
}
