/* report.c - what a run found, for people and as JSON; and whether all is well. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "run.h"

/* ---- Chance ------------------------------------------------------------------------------ */

static double log_probability(double n, double p, double k)
{
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p);
}

/* The terms are summed from far above, the smallest first. */
uint64_t binomial_limit(uint64_t count, double p, double chance)
{
    double n = (double)count, deviation = sqrt(n * p * (1 - p)), above = 0;
    uint64_t k = (uint64_t)fmin(n, floor(n * p + 20 * deviation + 50));
    for (; k > 0 && above <= chance; k--)
        above += exp(log_probability(n, p, (double)k));
    return above > chance ? k + 1 : 0;
}

/* ---- Whether all is well ----------------------------------------------------------------- */

static bool is_way_well(const struct story *story, size_t i)
{
    const struct result *r = &story->results[i];
    bool is_guarded = story->ways[i].guard != NULL;
    return r->denied == 0 && r->invented == 0 &&
           (!is_guarded || r->needless <= story->needless_limit[i] + r->unanswered);
}

static bool is_contest_well(const struct contest *contest)
{
    return contest->free_though_taken + contest->given_twice + contest->given_to_nobody == 0;
}

bool is_all_well(const struct story *story)
{
    bool is_well = story->denied == 0 && is_contest_well(&story->contest);
    for (size_t i = 0; i < story->nways; i++)
        is_well = is_well && is_way_well(story, i);
    return is_well;
}

/* ---- For people -------------------------------------------------------------------------- */

/* 1234567 as 1,234,567; in one of a few buffers, so that a line may have several. */
static const char *grouped(uint64_t number)
{
    static char buffers[8][32];
    static unsigned next;
    char *end = buffers[next++ % 8] + 31, *at = end;
    *at = '\0';
    for (int digits = 0; number > 0 || at == end; digits++, number /= 10) {
        if (digits > 0 && digits % 3 == 0)
            *--at = ',';
        *--at = (char)('0' + number % 10);
    }
    return at;
}

static void print_heading(const struct story *story)
{
    const struct run_options *o = story->options;
    printf("%s users in %s", grouped(story->users), story->database_kind);
    if (story->loaded)
        printf(", loaded in %.1f s", story->load_seconds);
    printf("; cache: %s\n", !story->cache ? "none (no redis-server here, or not wanted)"
                            : o->cache    ? story->cache
                                          : "a Redis server of its own");
    if (story->guard_nbytes)
        printf("guard: %s bytes, %.1f bits a user; at most %g %% of absent addresses pass\n",
               grouped(story->guard_nbytes),
               8 * (double)story->guard_nbytes / (double)story->users, 100 * o->fpr);
    printf(
        "%s look-ups by %u readers, %g %% of them of addresses that nobody has (seed %" PRIu64
        ")\n",
        grouped(o->lookups), o->readers, 100 * o->absent, o->seed);
}

static void print_reached(const struct story *story)
{
    printf("\n%-28s%11s%11s%11s%17s%11s\n", "", "reached", "reached", "of these", "left in the",
           "look-ups");
    printf("%-28s%11s%11s%11s%17s%11s\n", "", "cache", "database", "needless", "cache",
           "a second");
    for (size_t i = 0; i < story->nways; i++) {
        const struct result *r = &story->results[i];
        printf("%-28s%11s%11s%11s%9s%5.0f MB%11s\n", story->ways[i].name,
               grouped(r->reached_cache), grouped(r->reached_database), grouped(r->needless),
               grouped(r->cache_entries), (double)r->cache_nbytes / 1e6,
               grouped((uint64_t)((double)r->all.count / r->seconds)));
    }
}

static void print_spread(const struct spread *spread)
{
    if (spread->count)
        printf("%9.1f%9.1f", spread->median_us, spread->p99_us);
    else
        printf("%9s%9s", "-", "-");
}

static void print_latencies(const struct story *story)
{
    printf("\n%-28s%18s%18s%18s%18s\n", "microseconds of a look-up", "any", "ended at guard",
           "ended at cache", "at database");
    printf("%-28s", "");
    for (int i = 0; i < PLACES + 1; i++)
        printf("%9s%9s", "median", "99 %");
    puts("");
    for (size_t i = 0; i < story->nways; i++) {
        printf("%-28s", story->ways[i].name);
        print_spread(&story->results[i].all);
        for (int place = 0; place < PLACES; place++)
            print_spread(&story->results[i].ended[place]);
        puts("");
    }
}

static void print_contest(const struct contest *c)
{
    printf("\n%s sign-ups in two processes at once: %s addresses were free and given away once "
           "each,\n%s of them without asking the database; %s were taken, %s of these by the "
           "other process at the last moment\n",
           grouped(c->lines), grouped(c->by_guard + c->by_database), grouped(c->by_guard),
           grouped(c->taken), grouped(c->by_constraint));
    if (!is_contest_well(c))
        printf("WRONG: %s free though taken, %s given twice, %s given to nobody\n",
               grouped(c->free_though_taken), grouped(c->given_twice),
               grouped(c->given_to_nobody));
}

static void print_verdict(const struct story *story)
{
    for (size_t i = 0; i < story->nways; i++) {
        const struct result *r = &story->results[i];
        if (r->unanswered)
            printf("%s: %s questions were not answered, and went to the database\n",
                   story->ways[i].name, grouped(r->unanswered));
        if (!is_way_well(story, i))
            printf(
                "WRONG: %s: %s users denied, %s invented; %s needless questions, where chance "
                "allows %s\n",
                story->ways[i].name, grouped(r->denied), grouped(r->invented),
                grouped(r->needless), grouped(story->needless_limit[i]));
    }
    if (story->checked)
        printf("%s%s users checked in the end: the guard denies %s of them\n",
               story->denied ? "WRONG: " : "", grouped(story->checked), grouped(story->denied));
}

void report(const struct story *story)
{
    print_heading(story);
    print_reached(story);
    print_latencies(story);
    if (story->contested)
        print_contest(&story->contest);
    print_verdict(story);
}

/* ---- As JSON ----------------------------------------------------------------------------- */

static void json_spread(const char *name, const struct spread *s, const char *end)
{
    printf("\"%s\":{\"count\":%" PRIu64 ",\"median_us\":%.3f,\"p99_us\":%.3f}%s", name,
           s->count, s->median_us, s->p99_us, end);
}

static void json_way(const struct way *way, const struct result *r)
{
    printf("{\"guard\":%s,\"caches_nobody\":%s,\"batch\":%u,\"seconds\":%.3f,"
           "\"reached_cache\":%" PRIu64 ",\"reached_database\":%" PRIu64 ",\"absent\":%" PRIu64
           ",\"needless\":%" PRIu64 ",\"unanswered\":%" PRIu64 ",\"denied\":%" PRIu64
           ",\"invented\":%" PRIu64 ",\"cache_entries\":%" PRIu64 ",\"cache_nbytes\":%" PRIu64
           ",",
           way->guard ? "true" : "false", way->caches_nobody ? "true" : "false", way->batch,
           r->seconds, r->reached_cache, r->reached_database, r->absent, r->needless,
           r->unanswered, r->denied, r->invented, r->cache_entries, r->cache_nbytes);
    json_spread("any", &r->all, ",");
    json_spread("at_guard", &r->ended[AT_GUARD], ",");
    json_spread("at_cache", &r->ended[AT_CACHE], ",");
    json_spread("at_database", &r->ended[AT_DATABASE], "}");
}

void report_json(const struct story *story)
{
    const struct run_options *o = story->options;
    const struct contest *c = &story->contest;
    printf("{\"database\":\"%s\",\"users\":%" PRIu64 ",\"guard_nbytes\":%" PRIu64
           ",\"fpr\":%g,\"lookups\":%" PRIu64 ",\"readers\":%u,\"seed\":%" PRIu64 ",\"ways\":[",
           story->database_kind, story->users, story->guard_nbytes, o->fpr, o->lookups,
           o->readers, o->seed);
    for (size_t i = 0; i < story->nways; i++) {
        printf("%s", i ? "," : "");
        json_way(&story->ways[i], &story->results[i]);
    }
    printf("],\"signups\":{\"lines\":%" PRIu64 ",\"free_by_guard\":%" PRIu64
           ",\"free_by_database\":%" PRIu64 ",\"taken\":%" PRIu64 ",\"by_constraint\":%" PRIu64
           ",\"free_though_taken\":%" PRIu64 ",\"given_twice\":%" PRIu64
           ",\"given_to_nobody\":%" PRIu64 "},",
           c->lines, c->by_guard, c->by_database, c->taken, c->by_constraint,
           c->free_though_taken, c->given_twice, c->given_to_nobody);
    printf("\"checked\":%" PRIu64 ",\"denied\":%" PRIu64 ",\"well\":%s}\n", story->checked,
           story->denied, is_all_well(story) ? "true" : "false");
}
