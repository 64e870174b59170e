#include "input.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blocks.h"
#include "distinct.h"
#include "progress.h"
#include "report.h"
#include "stop.h"

struct input {
    const struct settings *settings;
    struct blocks *blocks;
    struct progress progress;
    uint64_t nkeys;
    size_t source;       /* of the block that is being used */
    uint64_t nlines;     /* of that source, so far */
    const char *problem; /* beside what blocks_problem() says: of line 'nlines' */

    struct perhaps_key *record; /* BLOCK_NBYTES of each */
    struct perhaps_key *key;    /* == record unless keys are parts of records */
    bool *answer;
};

/* ---- The files --------------------------------------------------------------------- */

static char standard_input[] = "-";
static char *only_standard_input[] = { standard_input };

static char *const *paths_of(const struct settings *settings)
{
    return settings->ninputs ? settings->inputs : only_standard_input;
}

static size_t npaths_of(const struct settings *settings)
{
    return settings->ninputs ? settings->ninputs : 1;
}

static bool is_standard_input(const char *path)
{
    return strcmp(path, standard_input) == 0;
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
    for (size_t i = 0; i < npaths_of(settings); i++) {
        const char *path = paths_of(settings)[i];
        struct stat st;
        if (stat_input(path, &st) != 0 || (!is_standard_input(path) && access(path, R_OK) != 0))
            return complain("%s: %s", name_of(path), strerror(errno));
        if (S_ISDIR(st.st_mode))
            return complain("%s: %s", name_of(path), strerror(EISDIR));
        known = known && S_ISREG(st.st_mode) && st.st_size > 0;
        *total_nbytes += (uint64_t)st.st_size;
    }
    if (!known)
        *total_nbytes = 0;
    return 0;
}

int input_refuse(const struct settings *settings, const struct stat *file, const char *name)
{
    for (size_t i = 0; S_ISREG(file->st_mode) && i < npaths_of(settings); i++) {
        struct stat st;
        if (stat_input(paths_of(settings)[i], &st) == 0 && st.st_dev == file->st_dev &&
            st.st_ino == file->st_ino)
            return complain("%s: is an input, too: give another file", name);
    }
    return 0;
}

/* ---- Splitting blocks into keys ---------------------------------------------------- */

static char delimiter_of(const struct settings *settings)
{
    if (settings->null)
        return '\0';
    return '\n';
}

static size_t split(const struct block *block, char delimiter, struct perhaps_key *record)
{
    const char *text = block->text, *end = text + block->nbytes;
    size_t count = 0;
    while (text < end) {
        const char *stop = memchr(text, delimiter, (size_t)(end - text));
        record[count++] = (struct perhaps_key){ text, (size_t)(stop - text) };
        text = stop + 1;
    }
    return count;
}

/* Narrows the key to one of its fields, of which the first is 1.  false: there are fewer. */
static bool take_field(struct perhaps_key *key, char delimiter, uint64_t field)
{
    const char *begin = key->bytes, *end = begin + key->nbytes;
    const char *stop;
    while ((stop = memchr(begin, delimiter, (size_t)(end - begin))) && --field)
        begin = stop + 1;
    if (!stop && field > 1)
        return false;
    *key = (struct perhaps_key){ begin, (size_t)((stop ? stop : end) - begin) };
    return true;
}

/* Makes the keys of the records.  Returns how many: fewer if a record has no such field. */
static size_t make_keys(struct input *input, size_t count)
{
    const struct settings *s = input->settings;
    char delimiter = s->delimiter ? *s->delimiter : '\t';
    for (size_t i = 0; i < count && input->key != input->record; i++) {
        struct perhaps_key *key = &input->key[i];
        *key = input->record[i];
        if (s->crlf && key->nbytes && ((const char *)key->bytes)[key->nbytes - 1] == '\r')
            key->nbytes--;
        if (s->field && !take_field(key, delimiter, s->field)) {
            input->problem = "has no such field";
            return i;
        }
    }
    return count;
}

/* ---- Batches ----------------------------------------------------------------------- */

/* -j, or 2 where this process may use two cores. */
static uint64_t threads_of(const struct settings *settings)
{
    cpu_set_t cores;
    if (settings->threads)
        return settings->threads;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) > 1 ? 2 : 1;
}

static bool allocate(struct input *input)
{
    const struct settings *s = input->settings;
    input->record = calloc(BLOCK_NBYTES, sizeof *input->record);
    input->answer = calloc(BLOCK_NBYTES, sizeof *input->answer);
    input->key = input->record;
    if (s->crlf || s->field)
        input->key = calloc(BLOCK_NBYTES, sizeof *input->key);
    input->blocks = blocks_open(paths_of(s), npaths_of(s), delimiter_of(s), threads_of(s) > 1);
    return input->record && input->answer && input->key && input->blocks;
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
    if (in)
        in->settings = settings;
    if (!in || !allocate(in)) {
        input_close(in);
        return complain("%s", perhaps_strerror(PERHAPS_ERR_MEMORY));
    }
    bool wanted = isatty(STDERR_FILENO) && !settings->quiet && !settings->json &&
                  !(prints && isatty(STDOUT_FILENO));
    progress_start(&in->progress, doing, total_nbytes, wanted);
    *input = in;
    return 0;
}

void input_close(struct input *input)
{
    if (!input)
        return;
    progress_erase();
    blocks_close(input->blocks);
    if (input->key != input->record)
        free(input->key);
    free(input->record);
    free(input->answer);
    free(input);
}

/* Gets a block, and shows how far we are.  Returns as input_next() does. */
static int next_block(struct input *input, const struct block **block)
{
    progress_show(&input->progress, input->nkeys, blocks_nread(input->blocks));
    *block = blocks_next(input->blocks);
    if ((*block)->source != input->source)
        input->nlines = 0;
    input->source = (*block)->source;
    if ((*block)->state == BLOCK_PROBLEM || stop_signal())
        return -1;
    return (*block)->state == BLOCK_RECORDS;
}

int input_next(struct input *input, struct batch *batch)
{
    const struct block *block;
    if (input->problem)
        return -1;
    int got = next_block(input, &block);
    if (got <= 0)
        return got;
    size_t count = split(block, delimiter_of(input->settings), input->record);
    *batch = (struct batch){ .count = make_keys(input, count),
                             .key = input->key,
                             .record = input->record,
                             .answer = input->answer,
                             .name = name_of(paths_of(input->settings)[block->source]),
                             .line = input->nlines + 1 };
    input->nlines += batch->count;
    input->nkeys += batch->count;
    return batch->count ? 1 : -1;
}

int input_complain(const struct input *input, const char *outcome)
{
    if (stop_signal())
        return complain_interrupted(outcome);
    const char *name = name_of(paths_of(input->settings)[input->source]);
    if (!input->problem)
        return complain("%s: %s%s", name, blocks_problem(input->blocks), outcome);
    return complain("%s:%ju: %s%s", name, (uintmax_t)input->nlines + 1, input->problem,
                    outcome);
}

int input_complain_key(const struct batch *batch, size_t i, int error, const char *outcome)
{
    const char *problem = why(error);
    if (error == PERHAPS_ERR_ARGUMENT) /* of a key only its size can be wrong */
        problem = "not 16 bytes: the filter takes keys that are hashes already";
    if (error == PERHAPS_ERR_FULL)
        problem = "the filter is full: make it anew with a larger -n";
    return complain("%s:%ju: %s%s", batch->name, (uintmax_t)(batch->line + i), problem,
                    outcome);
}

/* ---- Counting ---------------------------------------------------------------------- */

/* Goes by chunks whose count fits a byte: compilers then compare and add many at a time. */
static size_t count_records(const struct block *block, char delimiter)
{
    enum { CHUNK = 128 };
    size_t count = 0, i = 0;
    for (; i + CHUNK <= block->nbytes; i += CHUNK) {
        uint8_t some = 0;
        for (size_t k = i; k < i + CHUNK; k++)
            some = (uint8_t)(some + (block->text[k] == delimiter));
        count += some;
    }
    for (; i < block->nbytes; i++)
        count += block->text[i] == delimiter;
    return count;
}

/* Pipes and devices give their bytes once. */
static int check_countable(const struct settings *settings)
{
    for (size_t i = 0; i < npaths_of(settings); i++) {
        const char *path = paths_of(settings)[i];
        struct stat st;
        if (stat_input(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
            return complain("%s: cannot be read twice, to count its keys first: say how many "
                            "there are, such as -n 10M",
                            name_of(path));
    }
    return 0;
}

static int count_all(struct input *input, uint64_t *count)
{
    const struct block *block;
    int got;
    while ((got = next_block(input, &block)) > 0)
        input->nkeys += count_records(block, delimiter_of(input->settings));
    *count = input->nkeys;
    return got == 0 ? 0 : input_complain(input, "");
}

static int skip_rest(struct input *input)
{
    const struct block *block;
    int got;
    do
        got = next_block(input, &block);
    while (got > 0);
    return got;
}

/* For a verb that expects repeats: they need no room.  Never more than all keys. */
static int count_different(struct input *input, uint64_t *count)
{
    struct batch batch;
    int got;
    struct distinct *distinct = calloc(1, sizeof *distinct);
    if (!distinct)
        return complain("%s", perhaps_strerror(PERHAPS_ERR_MEMORY));
    while ((got = input_next(input, &batch)) > 0)
        for (size_t i = 0; i < batch.count; i++)
            distinct_add(distinct, &batch.key[i]);
    *count = distinct_bound(distinct);
    if (*count > input->nkeys)
        *count = input->nkeys;
    free(distinct);
    if (input->problem) /* the work will stop at that line, and say so */
        got = skip_rest(input);
    return got == 0 ? 0 : input_complain(input, "");
}

int input_capacity(const struct settings *settings, uint64_t *capacity)
{
    if ((*capacity = settings->capacity))
        return 0;
    struct input *input = NULL;
    off_t begin = lseek(STDIN_FILENO, 0, SEEK_CUR);
    int status = check_countable(settings);
    if (!status)
        status = input_open(settings, "counting", false, &input);
    if (!input)
        return status;
    status = settings->verb->bit == DEDUP ? count_different(input, capacity)
                                          : count_all(input, capacity);
    if (*capacity == 0)
        *capacity = 1;
    input_close(input);
    if (begin >= 0)
        lseek(STDIN_FILENO, begin, SEEK_SET);
    return status;
}
