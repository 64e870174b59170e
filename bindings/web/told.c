/* told.c - structs of the library as JSON. */
#include "told.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

struct text {
    char *at, *end;
    const char *before; /* the next member: "{", then "," */
};

/* Leaves out what has no room: all that is told has. */
static void say(struct text *t, const char *format, ...)
{
    const size_t room = (size_t)(t->end - t->at);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at, room, format, args);
    va_end(args);
    if (n > 0 && (size_t)n < room)
        t->at += n;
}

static struct text begin(char *text, size_t room)
{
    return (struct text){ text, text + room, "{" };
}

static void say_name(struct text *t, const char *name)
{
    say(t, "%s\"%s\":", t->before, name);
    t->before = ",";
}

/* Texts of the library have no character that JSON writes otherwise, but quotes may come. */
static void say_text(struct text *t, const char *name, const char *value)
{
    say_name(t, name);
    if (!value) {
        say(t, "null");
        return;
    }
    say(t, "\"");
    for (; *value; value++)
        say(t, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
    say(t, "\"");
}

static void say_whole(struct text *t, const char *name, uint64_t value)
{
    say_name(t, name);
    say(t, "%" PRIu64, value);
}

static void say_number(struct text *t, const char *name, double value)
{
    say_name(t, name);
    if (isfinite(value))
        say(t, "%.17g", value);
    else
        say(t, "null");
}

static void say_flag(struct text *t, const char *name, bool value)
{
    say_name(t, name);
    say(t, value ? "true" : "false");
}

void told_kind(const struct perhaps_kind *kind, char *text, size_t room)
{
    struct text t = begin(text, room);
    say_text(&t, "name", kind->name);
    say_text(&t, "summary", kind->summary);
    say_flag(&t, "removable", kind->abilities & PERHAPS_CAN_REMOVE);
    say_flag(&t, "count", kind->abilities & PERHAPS_CAN_COUNT);
    say_flag(&t, "grow", kind->abilities & PERHAPS_CAN_GROW);
    say_flag(&t, "static", kind->abilities & PERHAPS_CAN_BUILD);
    say_flag(&t, "merge", kind->abilities & PERHAPS_CAN_MERGE);
    say_flag(&t, "window", kind->abilities & PERHAPS_CAN_FORGET);
    say(&t, "}");
}

static void say_geometry(struct text *t, const struct perhaps_plan *plan)
{
    say_name(t, "geometry");
    t->before = "{";
    for (unsigned i = 0; i < plan->nfields; i++)
        say_whole(t, plan->field_name[i], plan->field[i]);
    say(t, plan->nfields ? "}" : "{}");
    t->before = ",";
}

/* A rate that is kept for any number of keys is kept up to null. */
static void say_until(struct text *t, uint64_t keys)
{
    if (keys < UINT64_MAX) {
        say_whole(t, "fprUntil", keys);
        return;
    }
    say_name(t, "fprUntil");
    say(t, "null");
}

void told_plan(const struct perhaps_plan *plan, char *text, size_t room)
{
    struct text t = begin(text, room);
    say_text(&t, "kind", plan->kind);
    say_text(&t, "base", plan->base);
    say_whole(&t, "capacity", plan->capacity);
    say_number(&t, "fpr", plan->fpr);
    say_number(&t, "fprPredicted", plan->fpr_predicted);
    say_until(&t, plan->fpr_until);
    say_whole(&t, "bodyNbytes", plan->body_nbytes);
    say_number(&t, "bitsPerKey", plan->bits_per_key);
    say_text(&t, "why", plan->why);
    say_geometry(&t, plan);
    say(&t, "}");
}

void told_stats(const struct perhaps_stats *stats, unsigned abilities, char *text, size_t room)
{
    struct text t = begin(text, room);
    say_text(&t, "kind", stats->plan.kind);
    say_text(&t, "base", stats->plan.base);
    say_whole(&t, "capacity", stats->plan.capacity);
    say_whole(&t, "keys", stats->keys);
    say_whole(&t, "keysDifferent", stats->keys_different);
    say_flag(&t, "keysEstimated", stats->keys_estimated);
    say_number(&t, "fpr", stats->plan.fpr);
    say_number(&t, "fprPredicted", stats->plan.fpr_predicted);
    say_number(&t, "fprNow", stats->fpr_now);
    say_number(&t, "load", stats->load);
    say_whole(&t, "bodyNbytes", stats->plan.body_nbytes);
    say_whole(&t, "memoryNbytes", stats->memory_nbytes);
    say_number(&t, "bitsPerKey", stats->bits_per_key);
    say_whole(&t, "parts", stats->parts);
    say_text(&t, "hash", stats->hash);
    say_text(&t, "cpu", stats->cpu);
    say_whole(&t, "stale", stats->stale);
    say_whole(&t, "failedAdds", stats->failed_adds);
    say_whole(&t, "unmatchedRemovals", stats->unmatched_removals);
    say_flag(&t, "removes", abilities & PERHAPS_CAN_REMOVE);
    say_flag(&t, "counts", abilities & PERHAPS_CAN_COUNT);
    say_geometry(&t, &stats->plan);
    say(&t, "}");
}
