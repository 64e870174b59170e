/* grow.h - filters that grow without a plan, side by side: 'perhaps-bench grow'.
 *
 * Each grower goes from --start keys to --keys three times, alike to the last bit: it is
 * watched (memory and rate), timed (in batches, beside the yardstick and beside a filter of
 * fixed size that was planned for all the keys), and called key by key, to see how long single
 * calls take. */
#ifndef GROW_H
#define GROW_H

#include "bench.h"

enum { GROWERS_MAX = 8, STOPS_MAX = 512, LAYER_STOPS = 3 };
enum { STOPS_A_DOUBLING = 8, WATCH_KEYS = 4096 };

struct grower {
    char name[32];
    struct perhaps_options options;
    const char *fixed; /* the kind of filter that it is compared with */
    bool grows;        /* or forgets: a window, which has one size */
    bool has_layers;
};

/* What a grower has when it holds so many keys. */
struct stop {
    uint64_t keys;
    uint64_t nbytes;
    double fpr_now;
    uint64_t parts;      /* layers or generations, or pages of slots */
    double planned_bits; /* a key, of the fixed kind planned for as many keys at this rate */
    bool doubled;        /* since the last one of these; or it is the last stop of all */
};

/* When the layers are full, and on from there, beside a filter planned for as many keys at the
 * rate that was asked. */
struct layer_stop {
    double full; /* keys to the sum of the layers' capacities at the boundary */
    uint64_t keys;
    uint64_t nbytes;
    double planned_bits;
};

/* Of calls for one key. */
struct pauses {
    double median_ns, most_ns[2]; /* all but 1 in 10,000 and 100,000 take no longer */
    double longest_ns;
    double again_ns;   /* the longest that came in every run, at the same keys */
    uint64_t again_at; /* number of the key, about */
    uint64_t calls;    /* of all runs */
    uint64_t long_calls;
};

/* A call that takes longer is one of the long ones. */
enum { LONG_CALL_NS = 100000 };

struct growth {
    const struct grower *grower;
    const struct settings *settings;
    const char *problem;
    bool wrong;
    uint64_t keys; /* at the end */

    /* grow_watch.c */
    struct stop stops[STOPS_MAX];
    size_t nstops;
    struct layer_stop layer_stops[LAYER_STOPS];
    size_t nlayer_stops;
    double worst_bits;   /* a key, from worst_from() keys on, looked at every WATCH_KEYS */
    uint64_t worst_keys; /* when that was */
    uint64_t looks;
    uint64_t *piece_nbytes; /* its memory when each piece of keys has come */

    /* grow_time.c */
    struct speed add, add_last; /* all keys; those of the last doubling */
    struct speed ask[OPERATIONS];
    double fixed_ns[OPERATIONS]; /* of the fixed filter, which is asked in turn */
    double fixed_bits;
    double fpr_measured;
    uint64_t queries;         /* that fpr_measured stands on */
    uint64_t resident_nbytes; /* of this process, more than before it grew */
    struct speed remove;      /* the keys of the last doubling; ns 0: it cannot */
    uint64_t stale;

    /* grow_pause.c; 'bare' writes a line for each key, as slowly as the filter takes keys, to
     * memory that it sees for the first time at the pace at which the filter grows */
    struct pauses pauses, bare_pauses;
};

static inline const struct stop *last_stop(const struct growth *growth)
{
    return &growth->stops[growth->nstops - 1];
}

/* Below a million keys (or a tenth of all) a filter of a few pages is a few pages too large. */
uint64_t worst_from(const struct settings *settings);

/* Measures all growers and prints them; true if one was wrong. */
bool grow_all(const struct settings *settings, struct json_report *json);

/* Each returns NULL, or what was wrong. */
const char *grow_watch(struct growth *growth);
const char *grow_time(struct growth *growth);
const char *grow_pause(struct growth *growth);

const char *grow_create(const struct grower *grower, const struct perhaps_allocator *allocator,
                        perhaps_filter **filter);
/* Bits a key that a filter of fixed size would take for so many keys; 0 if it cannot be. */
double grow_planned_bits(const struct grower *grower, uint64_t keys, double fpr);
void grow_progress(const struct growth *growth, const char *doing, uint64_t keys);

/* ---- What comes out: grow_report.c, json.c ---------------------------------------------- */

void grow_report_header(FILE *to, const struct settings *settings);
void grow_report_stops(FILE *to, const struct growth *growths, size_t count);
void grow_report_layers(FILE *to, const struct growth *growths, size_t count);
void grow_report_time_header(FILE *to);
void grow_report_time(FILE *to, const struct growth *growth);
void grow_report_sizes(FILE *to, const struct growth *growths, size_t count);
void grow_report_pause_header(FILE *to);
void grow_report_pause(FILE *to, const struct growth *growth);

void json_report_growth(struct json_report *report, const struct growth *growth);

#endif
