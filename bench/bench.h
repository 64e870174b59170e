/* bench.h - who is measured at what, the yardstick beside it, and what comes out.
 *
 * A task is one row of the table: so many keys, such a rate.  A contender is a kind of the
 * library or another library's filter.  measure() runs one at the other, in turn with bare
 * memory accesses over as many bytes: the yardstick. */
#ifndef BENCH_H
#define BENCH_H

#include <perhaps.h>
#include <stdio.h>

enum operation { ADD, ASK_ABSENT, ASK_PRESENT, OPERATIONS };
enum calls { SINGLE, BATCHED, CALLS }; /* one key a call, or BATCH_KEYS */

enum { BATCH_KEYS = 65536, RING = 128 };

/* So many keys or lines are timed at a time, a few milliseconds: contender and yardstick take
 * turns, so that a noisy machine is as noisy for both. */
enum { PIECE = 1 << 17 };

/* ---- Tasks: options.c ---------------------------------------------------------------- */

enum { LIST_MAX = 16 };

struct settings {
    uint64_t keys[LIST_MAX];
    double fpr[LIST_MAX];
    double load[LIST_MAX];
    size_t nkeys, nfpr, nload;
    uint64_t body_nbytes; /* instead of 'keys'; 0: not given */
    const char *contender;
    const char *json;
    bool hashed;
    bool quick;
    uint64_t key_nbytes;
    uint64_t repeat;
    uint64_t stretch; /* queries a pass, and keys that are made in one go; whole pieces */
};

/* Ends the program after --help, or after a message about what is wrong. */
void settings_read(int argc, char **argv, struct settings *settings);

struct task {
    uint64_t capacity;
    double fpr;
    double load; /* to be filled to this share of its slots; 0: to its capacity */
    const struct settings *settings;
};

/* ---- Contenders: contenders.c, peers.c ----------------------------------------------- */

struct contender {
    const char *name;
    const char *missing; /* why it cannot be measured here; or NULL */
    bool has_slots;      /* its load is a share of slots in use, proportional to the keys */

    /* Makes an empty filter and returns NULL, or returns why it cannot. */
    const char *(*create)(const struct contender *self, const struct task *task, void **filter);
    void (*destroy)(void *filter);
    void (*clear)(void *filter);
    uint64_t (*nbytes)(const void *filter);
    double (*load)(const void *filter); /* if it has_slots */

    /* The capacity at which its body has so many bytes; 0 if there is none.  NULL: unknown. */
    uint64_t (*capacity)(const struct contender *self, double fpr, uint64_t body_nbytes);

    /* Indexed by enum calls; NULL where it has no such call.  They return how many keys were
     * added, or found. */
    size_t (*add[CALLS])(void *filter, const struct perhaps_keys *keys);
    size_t (*ask[CALLS])(const void *filter, const struct perhaps_keys *keys);
};

enum { CONTENDERS_MAX = 32 };

/* Fills in the kinds of the library, in the registry's order, then the peers. */
size_t contenders_list(struct contender list[CONTENDERS_MAX]);

extern const struct contender peers[]; /* ends with a name of NULL */

/* ---- Keys: keys.c -------------------------------------------------------------------- */

/* Keys one behind the other, made anew for each pass and outside of what is timed. */
struct key_buffer {
    uint8_t *bytes;
    size_t key_nbytes;
    size_t room;
};

/* Returns 0, or -1 if memory is short. */
int key_buffer_open(struct key_buffer *buffer, size_t key_nbytes, size_t room);
void key_buffer_close(struct key_buffer *buffer);

/* The added keys are number 0, 1, ...; all keys differ. */
struct perhaps_keys keys_added(struct key_buffer *buffer, uint64_t first, size_t count);
/* Random ones of the first 'added'; each 'pass' has others. */
struct perhaps_keys keys_present(struct key_buffer *buffer, uint64_t pass, uint64_t added);
struct perhaps_keys keys_absent(struct key_buffer *buffer, uint64_t pass);

/* Of the keys those from 'at' on, 'most' at most. */
struct perhaps_keys keys_slice(const struct perhaps_keys *keys, size_t at, size_t most);

uint64_t random64(uint64_t counter);

/* ---- Times: timing.c ----------------------------------------------------------------- */

/* The best time of each piece, over all passes. */
struct timing {
    double *seconds; /* 0: not timed yet */
    uint64_t count;  /* keys or lines in all pieces */
};

double seconds_now(void);

/* Returns 0, or -1 if memory is short. */
int timing_open(struct timing *timing, uint64_t count);
void timing_close(struct timing *timing);

void timing_note(struct timing *timing, size_t piece, double seconds);

/* Nanoseconds a key, of the pieces that were timed; 0 if none was. */
double timing_ns(const struct timing *timing);

/* ---- The yardstick: yardstick.c ------------------------------------------------------ */

struct yardstick {
    uint64_t *words;   /* 64-byte lines on huge pages, if there are any */
    uint64_t *offsets; /* of random lines, in words: as ready as hashed keys */
    uint64_t sum;      /* of what was read, so that it must be */
};

/* Returns 0, or -1 if memory is short; is to be closed either way. */
int yardstick_open(struct yardstick *yardstick, uint64_t nbytes);
void yardstick_close(struct yardstick *yardstick);

/* Touches PIECE lines, which are read (for ADD read and written); returns the seconds.
 * SINGLE: a plain loop, that the CPU overlaps as it can.  BATCHED: a ring of RING
 * prefetches. */
double yardstick_piece(struct yardstick *yardstick, enum operation operation, enum calls calls,
                       size_t piece);

/* ---- Results: measure.c, report.c ---------------------------------------------------- */

struct speed {
    double ns;   /* 0: there is no such call */
    double bare; /* ns of the yardstick beside it */
};

struct result {
    const char *problem; /* why there is no result, or what was wrong; NULL if all is well */
    bool wrong;          /* a key lost, or single and batched calls of two minds */
    uint64_t capacity;
    uint64_t keys;
    uint64_t nbytes;
    uint64_t huge_nbytes; /* of these, on huge pages */
    double load;          /* 0: not a kind with slots */
    double fpr;           /* asked */
    double fpr_measured;
    uint64_t queries; /* that fpr_measured stands on */
    struct speed speed[CALLS][OPERATIONS];
};

void measure(const struct contender *contender, const struct task *task, struct result *result);

/* Bytes of this process on huge pages. */
uint64_t huge_nbytes_now(void);

void report_header(FILE *to, const struct settings *settings);
void report_row(FILE *to, const char *name, const struct result *result);

/* The same as the table, collected and written at the end. */
struct json_report;
struct json_report *json_report_open(const struct settings *settings);
void json_report_row(struct json_report *report, const char *name, const struct result *result);
int json_report_close(struct json_report *report, const char *path);

#endif
