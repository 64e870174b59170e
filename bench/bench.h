/* bench.h - who is measured at what, the yardstick beside it, and what comes out.
 *
 * A task is one row of the table: so many keys, such a rate, so many threads.  A contender is a
 * kind of the library or another library's filter.  measure() runs one at the other, in turn
 * with bare memory accesses over as many bytes: the yardstick.
 *
 * Each thread makes a piece of keys (or offsets, for the yardstick) just before it is timed, in
 * a buffer that stays in its cache: neither side pays for the reading of its input. */
#ifndef BENCH_H
#define BENCH_H

#include <perhaps.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum operation { ADD, ASK_ABSENT, ASK_PRESENT, OPERATIONS };
enum calls { SINGLE, BATCHED, CALLS }; /* one key a call, or BATCH_KEYS */

enum { BATCH_KEYS = 65536, RING = 128 };

/* Keys are timed by the piece, a millisecond or two: contender and yardstick take turns, so
 * that a noisy machine is as noisy for both.  No piece has more keys, and none more bytes: half
 * of the smallest second-level cache that servers have. */
enum { PIECE_KEYS = BATCH_KEYS, PIECE_NBYTES = 512 << 10 };

/* ---- Tasks: options.c, numbers.c --------------------------------------------------------- */

enum { LIST_MAX = 16, THREADS_MAX = 1024 };

struct settings {
    uint64_t keys[LIST_MAX];
    double fpr[LIST_MAX];
    double load[LIST_MAX];
    size_t threads[LIST_MAX];
    size_t nkeys, nfpr, nload, nthreads;
    uint64_t body_nbytes; /* instead of 'keys'; 0: not given */
    const char *contender;
    const char *json;
    bool grow;      /* filters that grow: grow.h */
    uint64_t start; /* keys that they are made for */
    bool hashed;
    bool quick;
    bool peers; /* all of them, also those that take long or are programs of their own */
    uint64_t key_nbytes;
    uint64_t repeat;
    size_t piece;  /* keys */
    size_t rounds; /* pieces of queries a pass, in each thread */
};

/* Read "1M", or "0.1%,1%": one number, or a list of them and how many.  End the program after a
 * message that names the option, if there is another one or one out of range. */
double option_one(const char *option, const char *text, double least, double most);
size_t option_list(const char *option, const char *text, double least, double most,
                   double list[LIST_MAX]);

/* Ends the program after --help, or after a message about what is wrong. */
void settings_read(int argc, char **argv, struct settings *settings);

struct task {
    uint64_t capacity;
    double fpr;
    double load; /* to be filled to this share of its slots; 0: to its capacity */
    size_t nthreads;
    bool shared; /* made to be added to by several threads */
    const struct settings *settings;
};

/* ---- Contenders: contenders.c, peers.c, peer_rocksdb.cc, peer_process.c --------------- */

struct contender {
    const char *name;
    const char *missing; /* why it cannot be measured here; or NULL */
    const char *program; /* its folder or file in bench/, if it runs in a process of its own */
    bool has_slots;      /* its load is told: the share of slots in use */
    bool has_buckets;    /* takes keys beyond its capacity while it finds room in its slots */
    bool forgets;        /* holds the newest keys, as many as its capacity */
    bool is_peer;
    bool is_heavy;    /* a peer that is measured if --peers asks for it */
    bool can_share;   /* can be added to by several threads */
    bool can_threads; /* can be asked by several threads */
    double least_fpr; /* it has no lower rate, whatever is asked; 0: any */

    /* Makes an empty filter and returns NULL, or returns why it cannot. */
    const char *(*create)(const struct contender *self, const struct task *task, void **filter);
    void (*destroy)(void *filter);
    void (*clear)(void *filter);
    /* What the filter takes; where all keys must be in first to know, about that. */
    uint64_t (*nbytes)(const void *filter);
    double (*load)(const void *filter); /* if it has_slots */
    /* Of its memory, on huge pages; 0 or NULL: unknown. */
    uint64_t (*huge_nbytes)(const void *filter);
    const char *(*cpu)(const void *filter); /* whose instructions it uses; NULL: unknown */

    /* The capacity at which its body has so many bytes; 0 if there is none.  NULL: unknown. */
    uint64_t (*capacity)(const struct contender *self, double fpr, uint64_t body_nbytes);

    /* Indexed by enum calls; NULL where it has no such call.  They return how many keys were
     * added, or found; SIZE_MAX if there is no telling. */
    size_t (*add[CALLS])(void *filter, const struct perhaps_keys *keys);
    size_t (*ask[CALLS])(const void *filter, const struct perhaps_keys *keys);

    /* Builds the filter when all keys are in; returns false if it cannot.  NULL: no need. */
    bool (*finish)(void *filter);

    /* What the last call took, where that is not for us to measure; NULL: it is. */
    double (*seconds)(const void *filter);
};

enum { CONTENDERS_MAX = 32 };

/* Fills in the kinds of the library, in the registry's order, then the peers. */
size_t contenders_list(struct contender list[CONTENDERS_MAX]);

/* The peers, each with 'missing' set if it is not here; returns how many. */
size_t peers_list(struct contender *list, size_t room);
size_t peer_rocksdb(struct contender *list, size_t room);
size_t peer_processes(struct contender *list, size_t room);

/* ---- Keys: keys.c -------------------------------------------------------------------- */

/* Keys one behind the other. */
struct key_buffer {
    uint8_t *bytes;
    size_t key_nbytes;
};

/* Returns 0, or -1 if memory is short. */
int key_buffer_open(struct key_buffer *buffer, size_t key_nbytes, size_t room);
void key_buffer_close(struct key_buffer *buffer);

/* The added keys are number 0, 1, ...; all keys differ. */
struct perhaps_keys keys_added(struct key_buffer *buffer, uint64_t first, size_t count);
/* Random ones of the first 'added'; different ones from each 'first' on. */
struct perhaps_keys keys_present(struct key_buffer *buffer, uint64_t first, size_t count,
                                 uint64_t added);
struct perhaps_keys keys_absent(struct key_buffer *buffer, uint64_t first, size_t count);

/* Of the keys those from 'at' on, 'most' at most. */
struct perhaps_keys keys_slice(const struct perhaps_keys *keys, size_t at, size_t most);

uint64_t random64(uint64_t counter);

/* ---- Threads: team.c ------------------------------------------------------------------ */

struct team;
typedef void team_job(void *context, size_t thread);

/* Returns NULL if the system has no memory or threads.  The caller is one of them. */
struct team *team_open(size_t nthreads);
void team_close(struct team *team);

/* Every thread does 'prepare', waits for the others to have done so, and does 'timed'.
 * Returns the seconds from the start of the first to the end of the last. */
double team_run(struct team *team, team_job *prepare, team_job *timed, void *context);

/* ---- Times: timing.c ----------------------------------------------------------------- */

/* The best time of each lap, over all passes. */
struct timing {
    struct lap {
        double seconds; /* 0: not timed yet */
        uint64_t keys;
    } * laps;
    size_t count;
};

double seconds_now(void);

/* Returns 0, or -1 if memory is short. */
int timing_open(struct timing *timing, size_t laps);
void timing_close(struct timing *timing);

void timing_note(struct timing *timing, size_t lap, double seconds, uint64_t keys);

/* Nanoseconds a key, of the laps that were timed; 0 if none was. */
double timing_ns(const struct timing *timing);

/* ---- The yardstick: yardstick.c ------------------------------------------------------ */

struct yardstick {
    uint64_t *words; /* 64-byte lines on huge pages, if there are any */
    uint64_t nlines;
};

/* Returns 0, or -1 if memory is short; is to be closed either way. */
int yardstick_open(struct yardstick *yardstick, uint64_t nbytes);
void yardstick_close(struct yardstick *yardstick);

/* Random lines, in words; different ones from each 'first' on. */
void yardstick_aim(const struct yardstick *yardstick, uint64_t *offsets, uint64_t first,
                   size_t count);

/* Touches the lines, which are read (for ADD read and written); returns what was read.
 * SINGLE: a plain loop, that the CPU overlaps as it can.  BATCHED: a ring of RING
 * prefetches. */
uint64_t yardstick_touch(const struct yardstick *yardstick, enum operation operation,
                         enum calls calls, const uint64_t *offsets, size_t count);

/* ---- Results: measure.c, report.c, json.c ----------------------------------------------- */

struct speed {
    double ns;   /* a key, of all threads together; 0: there is no such call */
    double bare; /* ns of the yardstick beside it, in as many threads */
};

struct result {
    const char *problem; /* why there is no result, or what was wrong; NULL if all is well */
    bool wrong;          /* a key lost, or single and batched calls of two minds */
    uint64_t capacity;
    uint64_t keys;
    uint64_t nbytes;
    uint64_t huge_nbytes; /* of these, on huge pages */
    bool huge_known;
    const char *cpu; /* whose instructions were used; NULL: unknown */
    size_t nthreads;
    bool shared;
    double load; /* 0: not a kind with slots */
    double fpr;  /* asked */
    double fpr_measured;
    uint64_t queries; /* that fpr_measured stands on */
    struct speed speed[CALLS][OPERATIONS];
};

void measure(const struct contender *contender, const struct task *task, struct result *result);

/* Bytes of this process on huge pages. */
uint64_t huge_nbytes_now(void);

const char *machine_cpu(void);
const char *machine_compiler(void);
/* Whose instructions the library uses here. */
const char *machine_kernels(void);

/* On a terminal, what is being done; 'share' of it is behind us.  NULL wipes it out. */
void report_progress(const char *name, const struct task *task, const char *doing,
                     double share);

/* "10M", "64", "12.3k" */
const char *short_number(double value, char text[16]);

/* The machine, and the keys. */
void report_machine(FILE *to, const struct settings *settings);
void report_header(FILE *to, const struct settings *settings);

/* 'base': the same with one thread, on a filter that is not shared; NULL if this is it. */
void report_row(FILE *to, const char *name, const struct result *result,
                const struct result *base);

/* How many times as fast as the base; 0 if one of both was not measured. */
double report_gain(const struct result *result, const struct result *base, enum calls calls,
                   enum operation operation);

extern const char *const call_names[CALLS];
extern const char *const operation_names[OPERATIONS];

/* The same as the table, collected and written at the end. */
struct json_report;
struct json_report *json_report_open(const struct settings *settings);
void json_report_row(struct json_report *report, const struct contender *contender,
                     const struct result *result, const struct result *base);
int json_report_close(struct json_report *report, const char *path);

#ifdef __cplusplus
}
#endif
#endif
