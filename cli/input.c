#include "input.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "messages.h"
#include "numbers.h"
#include "stop.h"

struct input {
    const struct settings *settings;
    struct reader *reader;
    struct progress progress;
    struct block *block;
    size_t nblocks, nthreads;
    struct key_form form;
    bool counts; /* what it finds out is said when the work is done */

    /* Of the blockes that have gone through all stages. */
    atomic_uint_fast64_t nkeys;
    size_t source;   /* that the last of them was from */
    uint64_t nlines; /* of that source */
    uint64_t nskipped;
    struct place {
        size_t source;
        uint64_t line;
        const char *lacks;
    } first_skipped;
};

/* ---- The files --------------------------------------------------------------------- */

static bool is_standard_input(const char *path)
{
    return strcmp(path, "-") == 0;
}

static const char *name_of(const char *path)
{
    return is_standard_input(path) ? "standard input" : path;
}

static int stat_input(const char *path, struct stat *st)
{
    return is_standard_input(path) ? fstat(STDIN_FILENO, st) : stat(path, st);
}

/* What can be told before the work begins: all files are there.  *total_nbytes is 0 if one of
 * them does not know its size. */
static int check_inputs(const struct settings *settings, uint64_t *total_nbytes)
{
    bool known = true;
    *total_nbytes = 0;
    if (settings->keys.count)
        return 0;
    for (size_t i = 0; i < settings->ninputs; i++) {
        const char *path = settings->inputs[i];
        struct stat st;
        if (stat_input(path, &st) != 0 || (!is_standard_input(path) && access(path, R_OK) != 0))
            return complain("%s: %s", name_of(path), strerror(errno));
        if (S_ISDIR(st.st_mode))
            return complain("%s: %s", name_of(path), strerror(EISDIR));
        const char *refusal = settings->raw || !S_ISREG(st.st_mode) || is_standard_input(path)
                                  ? NULL
                                  : reader_refusal(path);
        if (refusal)
            return complain("%s: %s", path, refusal);
        known = known && S_ISREG(st.st_mode) && st.st_size > 0;
        *total_nbytes += (uint64_t)st.st_size;
    }
    if (!known)
        *total_nbytes = 0;
    return 0;
}

int input_refuse(const struct settings *settings, const struct stat *file, const char *name)
{
    for (size_t i = 0; S_ISREG(file->st_mode) && i < settings->ninputs; i++) {
        struct stat st;
        if (stat_input(settings->inputs[i], &st) == 0 && st.st_dev == file->st_dev &&
            st.st_ino == file->st_ino)
            return complain("%s: is an input, too: give another file", name);
    }
    return 0;
}

/* ---- The first stage: reading ---------------------------------------------- */

static bool read_block(void *context, struct block *block)
{
    struct input *input = context;
    block->count = block->ndone = block->nselected = block->output_nbytes = 0;
    block->error = 0;
    block->problem = NULL;
    block->is_hashed = false;
    block->nskipped = 0;
    progress_show(&input->progress, true, atomic_load(&input->nkeys),
                  reader_nread(input->reader));
    reader_read(input->reader, block);
    if (stop_signal()) {
        block->holds = BLOCK_PROBLEM;
        block->nbytes = 0;
    }
    return block->holds == BLOCK_RECORDS;
}

/* ---- The last: counting lines, which takes that it is done in order ---------------- */

static bool count_lines(void *context, struct block *block)
{
    struct input *input = context;
    if (block->source != input->source)
        input->nlines = 0;
    input->source = block->source;
    block->line = input->nlines + 1;
    input->nlines += block->count + block->nskipped;
    if (block->nskipped && !input->nskipped)
        input->first_skipped =
            (struct place){ block->source, block->line + block->first_skipped, block->lacks };
    input->nskipped += block->nskipped;
    atomic_fetch_add(&input->nkeys, block->count);
    return true;
}

/* Has the keys of the command line read in place of files. */
static bool give_keys(struct reader *reader, const struct settings *settings)
{
    const struct words *keys = &settings->keys;
    size_t nbytes = 1, at = 0;
    for (size_t i = 0; i < keys->count; i++)
        nbytes += strlen(keys->word[i]) + 1;
    char *text = malloc(nbytes);
    for (size_t i = 0; i < keys->count && text; i++) {
        at = (size_t)(stpcpy(text + at, keys->word[i]) - text);
        text[at++] = settings->form.end;
    }
    bool ok = text && reader_give(reader, text, at);
    free(text);
    return ok;
}

/* ---- All --------------------------------------------------------------------------- */

size_t input_nthreads(const struct settings *settings)
{
    cpu_set_t cores;
    if (settings->threads)
        return settings->threads;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? (size_t)CPU_COUNT(&cores) : 1;
}

int input_open(const struct settings *settings, const char *doing, bool prints,
               struct input **input)
{
    uint64_t total_nbytes;
    *input = NULL;
    int status = check_inputs(settings, &total_nbytes);
    if (status)
        return status;
    struct input *in = calloc(1, sizeof *in);
    if (in) {
        in->settings = settings;
        in->form = settings->form;
        in->nthreads = input_nthreads(settings);
        in->nblocks = in->nthreads > 1 ? 2 * in->nthreads + 1 : 1;
        in->block = calloc(in->nblocks, sizeof *in->block);
        in->reader =
            reader_open(settings->inputs, settings->ninputs, settings->form.end, settings->raw);
    }
    if (!in || !in->block || !in->reader ||
        (settings->keys.count && !give_keys(in->reader, settings))) {
        input_close(in);
        return complain("%s", perhaps_strerror(PERHAPS_ERR_MEMORY));
    }
    progress_start(&in->progress, settings, doing, total_nbytes);
    if (prints && isatty(STDOUT_FILENO))
        in->progress.wanted = false;
    *input = in;
    return 0;
}

void input_close(struct input *input)
{
    if (!input)
        return;
    reader_close(input->reader);
    for (size_t i = 0; input->block && i < input->nblocks; i++)
        block_release(&input->block[i]);
    free(input->block);
    free(input);
}

/* As input_run(), with another second stage. */
static const struct block *run(struct input *input, struct stage second,
                               const struct stage *stages, size_t nstages)
{
    struct stage all[STAGES_MAX] = { { read_block, input, .in_order = true }, second };
    assert(nstages + 3 <= STAGES_MAX);
    if (nstages)
        memcpy(all + 2, stages, nstages * sizeof *stages);
    all[nstages + 2] = (struct stage){ count_lines, input, .in_order = true };
    const struct block *last =
        pipeline_run(all, nstages + 3, input->block, input->nblocks, input->nthreads);
    progress_erase();
    return last;
}

const struct block *input_run(struct input *input, const struct stage *stages, size_t nstages)
{
    return run(input, (struct stage){ .run = block_split, .context = &input->form }, stages,
               nstages);
}

uint64_t input_nskipped(const struct input *input)
{
    return input->nskipped;
}

uint64_t input_nkeys(const struct input *input)
{
    return atomic_load(&input->nkeys);
}

/* What the filter has against a key. */
static const char *key_problem(const struct input *input, int error)
{
    if (error == PERHAPS_ERR_ARGUMENT) /* of a key only its size can be wrong */
        return "not 16 bytes: the filter takes keys that are hashes already";
    if (error == PERHAPS_ERR_FULL)
        return "the filter is full: make it anew with a larger -n or with --grow";
    if (error == PERHAPS_ERR_COPIES && !input->settings->counts)
        return "this key is stored as often as it can be: give --once, or drop repeats "
               "before";
    if (error == PERHAPS_ERR_COPIES)
        return "this key came more often than the kind can count: leave out --kind and --base";
    return why(error);
}

/* Lines that were skipped are said to be.  If all were it is no matter of some bad lines. */
static int settle_skipped(const struct input *input, const char *outcome)
{
    const struct settings *s = input->settings;
    const struct place *first = &input->first_skipped;
    const char *name = name_of(s->inputs[first->source]);
    uint64_t nskipped = input->nskipped;
    if (!nskipped || s->skip_short || input->counts)
        return 0;
    if (!input_nkeys(input))
        return complain("%s:%ju: %s, nor has any other line: see --field, --delimiter%s", name,
                        (uintmax_t)first->line, first->lacks, outcome);
    if (!s->json)
        complain("%s line%s skipped: %s:%ju %s%s", grouped(nskipped).s,
                 nskipped == 1 ? "" : "s", name, (uintmax_t)first->line, first->lacks,
                 nskipped == 1 ? "" : ", and so on");
    return 0;
}

int input_complain(const struct input *input, const struct block *last, const char *outcome)
{
    const char *name = name_of(input->settings->inputs[last->source]);
    if (last->error || last->problem)
        return complain("%s:%ju: %s%s", name, (uintmax_t)(block_line(last, last->ndone)),
                        last->error ? key_problem(input, last->error) : last->problem, outcome);
    if (last->holds != BLOCK_PROBLEM)
        return settle_skipped(input, outcome);
    if (stop_signal())
        return complain_interrupted(outcome);
    return complain("%s: %s%s", name, reader_problem(input->reader), outcome);
}

/* ---- How many keys differ, about ---------------------------------------------------- */

/* HyperLogLog (Flajolet et al., AofA 2007) with the estimator of Ertl, "New cardinality
 * estimation algorithms for HyperLogLog sketches" (2017), which has no bias at any size: in
 * 64 KiB, so that a filter of lines that repeat is planned for what differs. */
enum { DISTINCT_BITS = 16, DISTINCT_COUNTERS = 1 << DISTINCT_BITS };

/* All zero: no key yet. */
struct distinct {
    _Atomic uint8_t rank[DISTINCT_COUNTERS];
};

enum { RANK_MAX = 64 - DISTINCT_BITS };

/* A counter grows a few times in all, so threads hardly ever meet here. */
static void raise_to(_Atomic uint8_t *counter, uint8_t rank)
{
    uint8_t before = atomic_load_explicit(counter, memory_order_relaxed);
    while (before < rank &&
           !atomic_compare_exchange_weak_explicit(counter, &before, rank, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

static bool distinct_add(void *context, struct block *block)
{
    struct distinct *distinct = context;
    for (size_t i = 0; i < block->count; i++) {
        uint64_t hash = XXH3_64bits(block->key[i].bytes, block->key[i].nbytes);
        uint64_t rest = hash << DISTINCT_BITS | UINT64_C(1) << (DISTINCT_BITS - 1);
        uint8_t rank = (uint8_t)(__builtin_clzll(rest) + 1);
        raise_to(&distinct->rank[hash >> (64 - DISTINCT_BITS)], rank);
    }
    return true;
}

/* Sum over k >= 0 of 2^(k-1) x^(2^k), and x: the share x of counters that are still zero. */
static double sigma(double x)
{
    double sum = x, before, weight = 1;
    if (x == 1)
        return INFINITY;
    do {
        before = sum;
        x *= x;
        sum += x * weight;
        weight *= 2;
    } while (sum != before);
    return sum;
}

/* A number that is not exceeded: the estimate and six times its deviation of 0.41 %. */
static uint64_t distinct_bound(const struct distinct *distinct)
{
    const double deviation = 1.04 / 256; /* 1.04 / sqrt(counters) */
    const double counters = DISTINCT_COUNTERS;
    double count[RANK_MAX + 2] = { 0 };
    for (unsigned i = 0; i < DISTINCT_COUNTERS; i++)
        count[atomic_load_explicit(&distinct->rank[i], memory_order_relaxed)]++;
    double z = 0; /* what a counter at its end adds, one in 2^48 keys, is nothing beside */
    for (unsigned rank = RANK_MAX; rank >= 1; rank--)
        z = (z + count[rank]) / 2;
    z += counters * sigma(count[0] / counters);
    double estimate = counters / (2 * log(2)) * counters / z;
    return (uint64_t)ceil(estimate * (1 + 6 * deviation)) + 64;
}

/* ---- Counting ---------------------------------------------------------------------- */

/* Pipes and devices give their bytes once.  Returns the first that is one, or NULL. */
static const char *find_pipe(const struct settings *settings)
{
    for (size_t i = 0; i < settings->ninputs; i++) {
        const char *path = settings->inputs[i];
        struct stat st;
        if (stat_input(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
            return path;
    }
    return NULL;
}

static bool count_block(void *form, struct block *block)
{
    block->count = lines_count(block->text, block->nbytes, ((struct key_form *)form)->end);
    return true;
}

/* Counts those that differ, where repeats are expected and need no room; else, with NULL, all,
 * which takes only looking for where lines end. */
static int count_all(struct input *input, struct distinct *distinct, uint64_t *count)
{
    const struct stage second = { distinct ? block_split : count_block, &input->form, false };
    const struct stage third = { distinct_add, distinct, false };
    const struct block *last = run(input, second, &third, distinct != NULL);
    uint64_t bound = distinct ? distinct_bound(distinct) : UINT64_MAX;
    *count = input_nkeys(input) < bound ? input_nkeys(input) : bound;
    return input_complain(input, last, "");
}

static int count_keys(const struct settings *settings, uint64_t *count)
{
    struct input *input = NULL;
    struct distinct *distinct = NULL;
    off_t begin = lseek(STDIN_FILENO, 0, SEEK_CUR);
    int status = input_open(settings, "counting", false, &input);
    if (!input)
        return status;
    input->counts = true;
    bool once = settings->verb->bit == DEDUP || settings->counts;
    status = once && !(distinct = calloc(1, sizeof *distinct))
                 ? complain("%s", perhaps_strerror(PERHAPS_ERR_MEMORY))
                 : count_all(input, distinct, count);
    free(distinct);
    if (*count == 0)
        *count = 1;
    if (settings->verb->bit != DEDUP)
        *count += *count / 4 + 1000; /* to be added later */
    input_close(input);
    if (begin >= 0)
        lseek(STDIN_FILENO, begin, SEEK_SET);
    return status;
}

int input_size(const struct settings *settings, struct size *size)
{
    const char *pipe;
    *size = request_size(settings);
    if (size->capacity)
        return 0;
    if (settings->state) /* it would grow, if it could */
        return complain("--state: is for lines that are still to come, too, and --kind %s does "
                        "not grow: say how many there may be, such as -n 10M",
                        settings->kind);
    if (!(pipe = find_pipe(settings)))
        return count_keys(settings, &size->capacity);
    if (!request_may_grow(settings))
        return complain("%s: cannot be read twice, to count its keys first, and --kind %s does "
                        "not grow: say how many there are, such as -n 10M",
                        name_of(pipe), settings->kind);
    *size = (struct size){ CAPACITY_TO_BEGIN_WITH, true };
    return 0;
}
