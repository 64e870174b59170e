/* bench.h - who is measured at what, the yardstick beside it, and what comes out.
 *
 * A task is one row of the table: so many keys, such a rate, so many threads.  A contender is a
 * kind of the library or another library's filter.  A race is the two of them, in rounds, in
 * turn with bare memory accesses over as many bytes: the yardstick.
 *
 * Each thread makes a piece of keys (or offsets, for the yardstick) just before it is timed, in
 * a buffer that stays in its cache: neither side pays for the reading of its input. */
#ifndef BENCH_H
#define BENCH_H

#include <perhaps.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first three are the columns of the table. */
enum operation { ADD, ASK_ABSENT, ASK_PRESENT, REMOVE, OPERATIONS };
enum calls { SINGLE, BATCHED, CALLS }; /* one key a call, or a piece of them */

/* Keys are timed by the piece, a millisecond or two: contender and yardstick take turns, so
 * that a noisy machine is as noisy for both.  No piece has more keys, and none more bytes: half
 * of the smallest second-level cache that servers have. */
enum { PIECE_KEYS = 65536, PIECE_NBYTES = 512 << 10, RING = 128 };

/* ---- Options: options.c ------------------------------------------------------------------ */

enum { LIST_MAX = 16, THREADS_MAX = 1024 };

/* "1M", or "0.1%,1%" */
struct list {
    double at[LIST_MAX];
    size_t count;
};

/* One of 'list', 'text' and 'flag' takes the value. */
struct option_row {
    const char *name;
    struct list *list; /* so many numbers at most, between 'least' and 'most' */
    size_t numbers;
    double least, most;
    const char *usual, *quick; /* where it is not given: in earnest, and with --quick */
    const char **text;
    bool *flag;
};

/* Reads options of two tables, each of which ends with one without a name.  Ends the program
 * after --help, or after a message about what is wrong. */
void options_read(int argc, char **argv, const char *usage, const struct option_row *own,
                  const struct option_row *common, const bool *quick);

struct settings {
    struct list keys, fpr, load, threads, key_nbytes, repeat;
    struct list body_nbytes; /* instead of 'keys' */
    struct list start;       /* filters that grow: keys that they are made for */
    const char *kind, *json;
    bool hashed, quick;
    bool peers;    /* all of them, also those that take long or are programs of their own */
    size_t piece;  /* keys */
    size_t rounds; /* pieces of queries a pass, in each thread */
};

struct task {
    uint64_t capacity;
    double fpr;
    double load; /* to be filled to this share of its slots; 0: to its capacity */
    size_t nthreads;
    bool shared; /* made to be added to by several threads */
    const struct settings *settings;
};

/* ---- Contenders: contenders.c, peer_rocksdb.cc, peer_process.c --------------------------- */

/* What a filter tells about itself; 0 or NULL where it does not. */
struct facts {
    uint64_t nbytes;      /* where all keys must be in first to know, about that */
    uint64_t huge_nbytes; /* of these, on huge pages */
    bool huge_known;
    double load;     /* share of its slots in use */
    const char *cpu; /* whose instructions it uses */
};

/* Returns how many of the keys were added, found or removed; SIZE_MAX where there is no telling
 * or it cannot. */
typedef size_t contender_call(void *filter, const struct perhaps_keys *keys);

struct contender {
    const char *name;
    const char *missing; /* why it cannot be measured here; or NULL */
    const char *command; /* that starts it, if it runs in a process of its own */
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
    void (*tell)(const void *filter, struct facts *facts);

    contender_call *add[CALLS], *ask[CALLS], *remove; /* NULL where it has no such call */

    /* Builds the filter when all keys are in; returns false if it cannot.  NULL: no need. */
    bool (*finish)(void *filter);

    /* What the last call took, where that is not for us to measure; NULL: it is. */
    double (*seconds)(const void *filter);
};

enum { CONTENDERS_MAX = 32 };

/* The kinds of the library, in the registry's order, then the peers, each with 'missing' set if
 * it is not here; returns how many. */
size_t contenders_list(struct contender list[CONTENDERS_MAX]);
size_t peer_rocksdb(struct contender *list);
size_t peer_processes(struct contender *list);

/* The capacity at which a kind's body has so many bytes; 0 if there is none, or none known. */
uint64_t contender_capacity(const struct contender *contender, double fpr, double body_nbytes);

/* ---- Keys: keys.c -------------------------------------------------------------------- */

/* Keys one behind the other. */
struct key_buffer {
    uint8_t *bytes;
    size_t key_nbytes;
};

struct key_buffer key_buffer_open(size_t key_nbytes, size_t room);
void key_buffer_close(struct key_buffer *buffer);

/* The added keys are number 0, 1, ...; all keys differ. */
struct perhaps_keys keys_added(struct key_buffer *buffer, uint64_t first, size_t count);
/* Random ones of the first 'added'; different ones from each 'first' on. */
struct perhaps_keys keys_present(struct key_buffer *buffer, uint64_t first, size_t count,
                                 uint64_t added);
struct perhaps_keys keys_absent(struct key_buffer *buffer, uint64_t first, size_t count);

uint64_t random64(uint64_t counter);

/* How many of those that are left a piece of so many takes. */
static inline size_t piece_of(uint64_t left, size_t piece)
{
    return left < piece ? (size_t)left : piece;
}

/* Prints lines of 20 bytes, each line twice, in random order: the same ones in every run. */
void lines_print(uint64_t count);

double seconds_now(void);

/* All zero; ends the program where memory is short. */
void *allocate_zeroed(size_t count, size_t nbytes);

/* ---- The race: race.c -------------------------------------------------------------------- */

/* The best time of each lap, over all passes; all zero to begin with. */
struct timing {
    struct lap {
        double seconds, bare_seconds; /* 0: not timed yet */
        uint64_t keys, lines;
    } * laps;
    size_t count;
};

void timing_note(struct timing *timing, size_t lap, double seconds, uint64_t keys);
void timing_close(struct timing *timing);

/* Nanoseconds a key of the laps from this one on, and of the bare accesses; 0: none. */
struct speed {
    double ns, bare_ns;
};
struct speed timing_speed(const struct timing *timing, size_t from);

struct race {
    const struct contender *contender;
    void *filter;
    size_t nthreads;
    size_t piece;         /* keys of a thread in a round */
    uint64_t bare_nbytes; /* that the bare accesses go over; 0: none are made */
    uint64_t added;       /* keys, of which those that are present are taken */
    struct hand *hands;
    uint64_t *words; /* of the yardstick */
    uint64_t aimed;  /* lines that were chosen up to now */
};

/* With memory for bare accesses over so many bytes. */
void race_open(struct race *race, size_t nthreads, const struct settings *settings,
               uint64_t bare_nbytes);
void race_close(struct race *race);

struct round {
    enum operation operation;
    enum calls calls;
    uint64_t first; /* number of its first key */
    uint64_t end;   /* no key has this number, or a higher one */
};

/* How many keys all threads have in a round. */
size_t race_keys(const struct race *race, enum operation operation);

/* Every thread makes its keys and does what is to be done with them.  The time is noted as a
 * lap, and that of as many bare accesses just before (NULL: none is).  Returns how many were
 * added, found or removed; SIZE_MAX if there is no telling. */
size_t race_round(struct race *race, const struct round *round, struct timing *timing,
                  size_t lap);

/* ---- Results: report.c ------------------------------------------------------------------- */

/* On a terminal, what is being done; 'share' of it is behind us.  NULL wipes it out. */
void report_progress(const char *name, const char *doing, double share);

/* "10M", "64", "12.3k" */
const char *short_number(double value, char text[16]);

extern const char *const call_names[CALLS];
extern const char *const operation_names[OPERATIONS];

#ifdef __cplusplus
}
#endif
#endif
