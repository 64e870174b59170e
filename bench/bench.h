/* bench.h - what the files of perhaps-bench share: options, contenders, keys, races, results.
 *
 * A task is one row of the table: a number of keys, a false-positive rate and a number of
 * threads.  A contender is a kind of the library, or the filter of another library.  A race
 * runs one contender at one task, in rounds.  Before each round the same threads make bare
 * memory accesses over as many bytes as the filter has.  These are the yardstick: they tell
 * what the memory of this machine allows.
 *
 * Each thread makes a piece of keys (for the yardstick: of offsets) just before its time is
 * taken, in a buffer that stays in its cache.  So neither side pays for reading its input. */
#ifndef BENCH_H
#define BENCH_H

#include <perhaps.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first three are the columns of the table; only 'grow' measures removals. */
enum operation { ADD, ASK_ABSENT, ASK_PRESENT, REMOVE, OPERATIONS };

/* One key a call; a piece of them; one key a call, which was prepared PREPARED_AHEAD keys
 * before. */
enum calls { SINGLE, BATCHED, PREPARED, CALLS };
enum { PREPARED_AHEAD = 16 };

/* Keys are timed in pieces, which take a millisecond or two each.  Contender and yardstick take
 * turns, piece by piece, so that a noisy machine is equally noisy for both.  PIECE_KEYS and
 * PIECE_NBYTES limit a piece: its keys fill half of the smallest second-level cache that
 * servers have.  RING is how many prefetches the yardstick keeps on their way beside batched
 * calls: as many as the library keeps. */
enum { PIECE_KEYS = 65536, PIECE_NBYTES = 512 << 10, RING = 128 };

/* ---- Options: options.c ------------------------------------------------------------------ */

enum { LIST_MAX = 16, THREADS_MAX = 1024 };

/* The numbers of an option such as "1M" or "0.1%,1%". */
struct list {
    double at[LIST_MAX];
    size_t count;
};

/* One option of the command line.  Exactly one of 'list', 'text' and 'flag' is set, and takes
 * the value. */
struct option_row {
    const char *name;
    struct list *list;
    size_t numbers;            /* how many numbers the list takes at most */
    double least, most;        /* each number lies between these */
    const char *usual, *quick; /* the value without the option: usually, and with --quick */
    const char **text;         /* points into argv afterwards */
    bool *flag;
};

/* Reads the options of two tables, each of which ends with a row without a name.  An option
 * that is not given takes 'usual', or 'quick' if *quick is set by then.  Ends the program after
 * --help, and with a message if an option is wrong. */
void options_read(int argc, char **argv, const char *usage, const struct option_row *own,
                  const struct option_row *common, const bool *quick);

/* Returns whether a list such as "blocked,cuckoo" has this name.  NULL has all names. */
bool has_name(const char *list, const char *name);

/* What the options ask for.  The main program fills it once; nobody changes it later. */
struct settings {
    struct list keys, fpr, load, threads, key_nbytes, repeat;
    struct list body_nbytes; /* given instead of 'keys' */
    const char *folder;      /* cold: where the file is made; NULL: here */
    bool sparse;             /* cold: its zeros take no room on the disk */
    struct list start;       /* filters that grow: the capacity that they begin with */
    const char *kind, *json; /* a list, NULL: all kinds; NULL: no file */
    bool hashed, secret, quick;
    bool peers;    /* measure all peers, also those that take long or need a process */
    size_t piece;  /* keys in a piece */
    size_t rounds; /* how many pieces of queries each thread has in a pass */
};

/* Returns the hash of the library's filters: xxh3-64, which new filters take at these sizes,
 * if the options do not tell. */
struct perhaps_hashing hashing_of(const struct settings *settings);

/* One row of the table. */
struct task {
    uint64_t capacity; /* in keys; 0: no capacity gives a body of the size that was asked */
    double fpr;
    double load; /* fill the filter to this share of its slots; 0: to its capacity */
    size_t nthreads;
    bool shared; /* create the filter for several threads that add */
    const struct settings *settings;
};

/* ---- Contenders: contenders.c, peer_rocksdb.cc, peer_process.c --------------------------- */

/* What a filter tells about itself; 0 or NULL where it does not know. */
struct facts {
    uint64_t nbytes;      /* of its body; an estimate until a filter with finish() is built */
    uint64_t huge_nbytes; /* how many of these lie on huge pages */
    bool huge_known;      /* whether 'huge_nbytes' is known */
    double load;          /* share of its slots in use; 0 if it has none */
    const char *cpu;      /* the instruction set of its loops */
};

/* Returns how many of the keys were added, found or removed; SIZE_MAX if the filter cannot do
 * that, or gave no answer. */
typedef size_t contender_call(void *filter, const struct perhaps_keys *keys);

/* One filter that can be measured: its properties, and its operations on a filter that only it
 * understands.  create() makes such a filter and destroy() releases it. */
struct contender {
    const char *name;
    const char *missing; /* why it cannot be measured here; NULL: it can */
    const char *command; /* starts its process, if it has one */
    bool has_buckets;    /* takes keys beyond its capacity while it finds a free slot */
    bool forgets;        /* holds only the newest keys, as many as its capacity */
    bool is_peer;        /* belongs to another library */
    bool is_heavy;       /* measured only with --peers, or if --kind names it */
    bool of_integers;    /* takes integers of a range, as text, and no other keys */
    bool can_share;      /* several threads can add at once, to a filter that is made for it */
    bool can_threads;    /* several threads can ask at once */
    double least_fpr;    /* it cannot have a lower rate; 0: it can have any */

    /* Makes an empty filter and returns NULL; or returns why it cannot, and then *filter is as
     * it was, or is something that destroy() takes. */
    const char *(*create)(const struct contender *self, const struct task *task, void **filter);
    void (*destroy)(void *filter);
    void (*clear)(void *filter);
    void (*tell)(const void *filter, struct facts *facts);

    contender_call *add[CALLS], *ask[CALLS], *remove; /* NULL where it has no such call */

    /* Builds the filter after all keys were added; returns false if it cannot.  NULL: adding
     * the keys builds it already. */
    bool (*finish)(void *filter);

    /* Opens the bytes of a filter that is finished, and returns whether it has the one key.
     * NULL: they were never closed. */
    bool (*reopened)(const void *filter, const struct perhaps_keys *key);

    /* Returns the seconds that the last call took.  A filter in another process takes its own
     * time, since ours would include the way there and back.  NULL: the caller's clock. */
    double (*seconds)(const void *filter);
};

/* All kinds and all peers, with room to spare: contenders_list() stops before it overflows. */
enum { CONTENDERS_MAX = 32 };

/* Lists the kinds of the library in the order of the registry, then the peers.  A peer that is
 * not installed has 'missing' set.  Returns how many there are. */
size_t contenders_list(struct contender list[CONTENDERS_MAX]);

/* List only the filters of RocksDB, or those in processes of their own; return how many. */
size_t peer_rocksdb(struct contender *list);
size_t peer_processes(struct contender *list);

/* Returns the capacity at which a filter of this kind has a body of about 'body_nbytes'; 0 for
 * a peer, and for a kind that cannot have such a body. */
uint64_t contender_capacity(const struct contender *contender, double fpr, double body_nbytes);

/* ---- Keys: keys.c -------------------------------------------------------------------- */

/* Room for keys of one length, one behind the other.  The functions below write keys into it,
 * and the keys that they return lie there until the next call. */
struct key_buffer {
    uint8_t *bytes;
    size_t key_nbytes;
    uint64_t nintegers; /* keys are this range of integers; 0: random bytes */
};

/* Integers have INTEGER_NBYTES digits.  Every second one from INTEGER_LOW on is for a key that
 * is added, and each between two of these for one that never is. */
enum { INTEGER_NBYTES = 12 };
#define INTEGER_LOW UINT64_C(100000000000)

/* Returns how many integers there are for 'keys' keys and as many absent ones. */
static inline uint64_t integers_for(uint64_t keys)
{
    return 2 * keys;
}

/* Makes room for 'room' keys, or ends the program. */
struct key_buffer key_buffer_open(size_t key_nbytes, size_t room);

/* The same for keys that are integers, of which there are 'nintegers'. */
struct key_buffer key_buffer_of_integers(uint64_t nintegers, size_t room);
void key_buffer_close(struct key_buffer *buffer);

/* Makes the keys with the numbers first, first + 1, ...  Filters are filled with the keys from
 * number 0 on.  Keys with different numbers differ. */
struct perhaps_keys keys_added(struct key_buffer *buffer, uint64_t first, size_t count);

/* Makes keys chosen at random from the first 'added' ones; another 'first' chooses others. */
struct perhaps_keys keys_present(struct key_buffer *buffer, uint64_t first, size_t count,
                                 uint64_t added);

/* Makes keys that are never added: number 'first', first + 1, ... of those. */
struct perhaps_keys keys_absent(struct key_buffer *buffer, uint64_t first, size_t count);

/* Returns a random number that depends on 'counter' alone; different ones for different
 * counters. */
uint64_t random64(uint64_t counter);

/* Returns how many keys the next piece has, when 'left' keys are left. */
static inline size_t piece_of(uint64_t left, size_t piece)
{
    return left < piece ? (size_t)left : piece;
}

/* Prints 'count' lines of 20 bytes, each line twice, in random order.  Every run prints the
 * same. */
void lines_print(uint64_t count);

/* Returns the time of a clock that never goes back. */
double seconds_now(void);

/* Returns memory that is all zero; ends the program if there is none. */
void *allocate_zeroed(size_t count, size_t nbytes);

/* ---- The race: race.c -------------------------------------------------------------------- */

/* The best time of each lap over all passes.  A lap is one round; each pass has the same laps.
 * The best counts because interruptions only ever make a round slower.  All zero to begin
 * with. */
struct timing {
    struct lap {
        double seconds, bare_seconds; /* 0: not timed yet */
        uint64_t keys, lines;         /* how many of each were timed */
    } * laps;
    size_t count;
};

/* Notes that a lap with so many keys took so long, if that is its best time. */
void timing_note(struct timing *timing, size_t lap, double seconds, uint64_t keys);
void timing_close(struct timing *timing);

/* Nanoseconds a key, and nanoseconds a bare access; 0: none was timed. */
struct speed {
    double ns, bare_ns;
};

/* Returns the speed over all laps from 'from' on. */
struct speed timing_speed(const struct timing *timing, size_t from);

/* One contender in rounds beside the yardstick.  The caller owns 'filter'; race_open() makes
 * 'hands' and 'words', and race_close() releases them.  Between the two the struct stays where
 * it is, since each hand points to it. */
struct race {
    const struct contender *contender;
    void *filter;
    size_t nthreads;
    uint64_t nintegers;   /* of the buffers of keys: set before race_open() */
    size_t piece;         /* how many keys a thread has in a round */
    uint64_t bare_nbytes; /* bare accesses go over so many bytes; 0: none are made */
    uint64_t added;       /* keys 0 to added - 1 are in; ASK_PRESENT asks for these */
    struct hand *hands;   /* one for each thread */
    uint64_t *words;      /* the memory of the yardstick */
    uint64_t aimed;       /* how many lines were chosen so far: no round repeats another */
};

/* Makes what the threads need, and memory for bare accesses over 'bare_nbytes'.  Ends the
 * program if there is no memory. */
void race_open(struct race *race, size_t nthreads, const struct settings *settings,
               uint64_t bare_nbytes);
void race_close(struct race *race);

/* What all threads do between two looks at the clock. */
struct round {
    enum operation operation;
    enum calls calls;
    uint64_t first; /* the number of its first key */
    uint64_t end;   /* keys have lower numbers than this: the last round may be shorter */
};

/* Returns how many keys all threads together have in a round. */
size_t race_keys(const struct race *race, enum operation operation);

/* Runs one round: every thread makes its keys, and then adds them, asks for them or removes
 * them.  Unless 'timing' is NULL, makes bare accesses first, and notes both times as a lap.
 * Returns how many keys were added, found or removed; SIZE_MAX if a contender could not tell,
 * and then the lap of the keys is not noted. */
size_t race_round(struct race *race, const struct round *round, struct timing *timing,
                  size_t lap);

/* ---- Results: report.c ------------------------------------------------------------------- */

/* Shows on a terminal what is being done, and that the given share of it is done.  A 'name' of
 * NULL wipes this line out. */
void report_progress(const char *name, const char *doing, double share);

/* Writes a number of at most four digits and a unit: "10M", "64", "12.3k".  Returns 'text'. */
const char *short_number(double value, char text[16]);

extern const char *const call_names[CALLS];
extern const char *const operation_names[OPERATIONS];

#ifdef __cplusplus
}
#endif
#endif
