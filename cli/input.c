#include "input.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "distinct.h"
#include "numbers.h"
#include "progress.h"
#include "report.h"
#include "scan.h"
#include "stop.h"
#include "stream.h"

struct input {
    const struct settings *settings;
    struct blocks *blocks;
    struct progress progress;
    struct batch *batches;
    size_t nbatches, nthreads;
    bool counts; /* what it finds out is said when the work is done */

    /* Of the batches that have gone through all stages. */
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

static char standard_input[] = "-";
static char *only_standard_input[] = { standard_input };
static char as_keys[] = "--key";
static char *only_keys[] = { as_keys };

static char *const *paths_of(const struct settings *settings)
{
    if (settings->keys.count)
        return only_keys;
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
    if (settings->keys.count)
        return 0;
    for (size_t i = 0; i < npaths_of(settings); i++) {
        const char *path = paths_of(settings)[i];
        struct stat st;
        if (stat_input(path, &st) != 0 || (!is_standard_input(path) && access(path, R_OK) != 0))
            return complain("%s: %s", name_of(path), strerror(errno));
        if (S_ISDIR(st.st_mode))
            return complain("%s: %s", name_of(path), strerror(EISDIR));
        const char *refusal = settings->raw || !S_ISREG(st.st_mode) || is_standard_input(path)
                                  ? NULL
                                  : stream_refusal(path);
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
    for (size_t i = 0; S_ISREG(file->st_mode) && i < npaths_of(settings); i++) {
        struct stat st;
        if (stat_input(paths_of(settings)[i], &st) == 0 && st.st_dev == file->st_dev &&
            st.st_ino == file->st_ino)
            return complain("%s: is an input, too: give another file", name);
    }
    return 0;
}

/* ---- The first stage: reading ------------------------------------------------------ */

static char delimiter_of(const struct settings *settings)
{
    if (settings->null)
        return '\0';
    return '\n';
}

static bool has_parts(const struct settings *settings)
{
    const struct key_form *form = &settings->form;
    return form->crlf || form->fields.count || fields_written(form);
}

static void release_records(struct batch *batch)
{
    if (batch->key != batch->record)
        free(batch->key);
    free(batch->record);
    free(batch->answer);
    batch->record = batch->key = NULL;
    batch->answer = NULL;
    batch->nrecords = 0;
}

static bool make_room(struct batch *batch, size_t count, bool with_parts)
{
    if (count <= batch->nrecords)
        return true;
    release_records(batch);
    batch->record = malloc(count * sizeof *batch->record);
    batch->answer = malloc(count * sizeof *batch->answer);
    batch->key = with_parts ? malloc(count * sizeof *batch->key) : batch->record;
    if (!batch->record || !batch->answer || !batch->key)
        return false;
    batch->nrecords = count;
    return true;
}

static void release_batch(struct batch *batch)
{
    release_records(batch);
    batch_release(batch);
}

static bool read_batch(void *context, struct batch *batch)
{
    struct input *input = context;
    batch->count = batch->ndone = batch->nselected = batch->output_nbytes = 0;
    batch->error = 0;
    batch->problem = NULL;
    batch->is_hashed = false;
    batch->nskipped = 0;
    progress_show(&input->progress, atomic_load(&input->nkeys), blocks_nread(input->blocks));
    blocks_read(input->blocks, &batch->block);
    if (stop_signal()) {
        batch->block.state = BLOCK_PROBLEM;
        batch->block.nbytes = 0;
    }
    return batch->block.state == BLOCK_RECORDS;
}

/* ---- The second: splitting into records and keys ----------------------------------- */

static bool make_room_to_write(struct batch *batch)
{
    if (batch->written_nbytes >= batch->block.nbytes)
        return true;
    free(batch->written);
    batch->written = malloc(batch->block.nbytes);
    batch->written_nbytes = batch->written ? batch->block.nbytes : 0;
    return batch->written;
}

/* Narrows the records to their keys.  false: no memory. */
static bool make_keys(const struct key_form *form, struct batch *batch)
{
    bool written = fields_written(form);
    size_t kept = 0;
    if (written && !make_room_to_write(batch))
        return false;
    char *room = batch->written;
    for (size_t i = 0; i < batch->count; i++) {
        struct perhaps_key key = batch->record[i];
        if (written ? fields_write(form, &key, &room) : fields_narrow(form, &key)) {
            batch_keep(batch, kept, i);
            batch->key[kept++] = key;
        } else if (!batch_skip(batch, i, "has no such field")) {
            return false;
        }
    }
    batch->count = kept;
    return true;
}

static bool split_batch(void *context, struct batch *batch)
{
    const struct input *input = context;
    const struct settings *s = input->settings;
    const struct block *block = &batch->block;
    bool with_parts = has_parts(s);
    if (block->nbytes == 0)
        return true;
    size_t count = scan_count(block->text, block->nbytes, delimiter_of(s));
    if (!make_room(batch, count, with_parts))
        return batch_met(batch, PERHAPS_ERR_MEMORY);
    scan_records(block->text, block->nbytes, delimiter_of(s), batch->record);
    batch->count = count;
    if (with_parts && !make_keys(&s->form, batch)) {
        batch->count = 0;
        return batch_met(batch, PERHAPS_ERR_MEMORY);
    }
    batch->ndone = batch->count;
    return true;
}

/* ---- The last: counting lines, which takes that it is done in order ---------------- */

static void note_skipped(struct input *input, const struct batch *batch)
{
    if (batch->nskipped && !input->nskipped)
        input->first_skipped =
            (struct place){ batch->block.source, batch->line + batch->first_skipped,
                            batch->lacks };
    input->nskipped += batch->nskipped;
}

static bool count_lines(void *context, struct batch *batch)
{
    struct input *input = context;
    if (batch->block.source != input->source)
        input->nlines = 0;
    input->source = batch->block.source;
    batch->line = input->nlines + 1;
    input->nlines += batch->count + batch->nskipped;
    note_skipped(input, batch);
    atomic_fetch_add(&input->nkeys, batch->count);
    return true;
}

/* Has the blocks read the keys of the command line. */
static bool give_keys(struct blocks *blocks, const struct settings *settings)
{
    const struct words *keys = &settings->keys;
    size_t nbytes = 1, at = 0;
    for (size_t i = 0; i < keys->count; i++)
        nbytes += strlen(keys->word[i]) + 1;
    char *text = malloc(nbytes);
    for (size_t i = 0; i < keys->count && text; i++) {
        at = (size_t)(stpcpy(text + at, keys->word[i]) - text);
        text[at++] = delimiter_of(settings);
    }
    bool ok = text && blocks_give(blocks, text, at);
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
        in->nthreads = input_nthreads(settings);
        in->nbatches = in->nthreads > 1 ? 2 * in->nthreads + 1 : 1;
        in->batches = calloc(in->nbatches, sizeof *in->batches);
        in->blocks = blocks_open(paths_of(settings), npaths_of(settings),
                                 delimiter_of(settings), settings->raw);
    }
    if (!in || !in->batches || !in->blocks ||
        (settings->keys.count && !give_keys(in->blocks, settings))) {
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
    blocks_close(input->blocks);
    for (size_t i = 0; input->batches && i < input->nbatches; i++)
        release_batch(&input->batches[i]);
    free(input->batches);
    free(input);
}

/* As input_run(), with another second stage. */
static const struct batch *run(struct input *input, struct stage second,
                               const struct stage *stages, size_t nstages)
{
    struct stage all[STAGES_MAX] = { { read_batch, input, .in_order = true }, second };
    assert(nstages + 3 <= STAGES_MAX);
    if (nstages)
        memcpy(all + 2, stages, nstages * sizeof *stages);
    all[nstages + 2] = (struct stage){ count_lines, input, .in_order = true };
    const struct batch *last =
        pipeline_run(all, nstages + 3, input->batches, input->nbatches, input->nthreads);
    progress_erase();
    return last;
}

const struct batch *input_run(struct input *input, const struct stage *stages, size_t nstages)
{
    return run(input, (struct stage){ .run = split_batch, .context = input }, stages, nstages);
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
    const char *name = name_of(paths_of(s)[first->source]);
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

int input_complain(const struct input *input, const struct batch *last, const char *outcome)
{
    const char *name = name_of(paths_of(input->settings)[last->block.source]);
    if (last->error || last->problem)
        return complain("%s:%ju: %s%s", name, (uintmax_t)(batch_line(last, last->ndone)),
                        last->error ? key_problem(input, last->error) : last->problem, outcome);
    if (last->block.state != BLOCK_PROBLEM)
        return settle_skipped(input, outcome);
    if (stop_signal())
        return complain_interrupted(outcome);
    return complain("%s: %s%s", name, blocks_problem(input->blocks), outcome);
}

/* ---- Counting ---------------------------------------------------------------------- */

/* Pipes and devices give their bytes once.  Returns the first that is one, or NULL. */
static const char *find_pipe(const struct settings *settings)
{
    for (size_t i = 0; i < npaths_of(settings); i++) {
        const char *path = paths_of(settings)[i];
        struct stat st;
        if (stat_input(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
            return path;
    }
    return NULL;
}

static bool count_batch(void *context, struct batch *batch)
{
    const struct input *input = context;
    batch->count =
        scan_count(batch->block.text, batch->block.nbytes, delimiter_of(input->settings));
    return true;
}

static int count_all(struct input *input, uint64_t *count)
{
    struct stage second = { .run = count_batch, .context = input };
    const struct batch *last = run(input, second, NULL, 0);
    *count = input_nkeys(input);
    return input_complain(input, last, "");
}

static bool look_at_batch(void *context, struct batch *batch)
{
    distinct_add(context, batch->key, batch->count);
    return true;
}

/* Where repeats are expected, and need no room.  Never more than all keys. */
static int count_different(struct input *input, uint64_t *count)
{
    struct distinct *distinct = calloc(1, sizeof *distinct);
    if (!distinct)
        return complain("%s", perhaps_strerror(PERHAPS_ERR_MEMORY));
    struct stage second = { .run = split_batch, .context = input };
    struct stage third = { .run = look_at_batch, .context = distinct };
    const struct batch *last = run(input, second, &third, 1);
    *count = distinct_bound(distinct);
    if (*count > input_nkeys(input))
        *count = input_nkeys(input);
    free(distinct);
    return input_complain(input, last, "");
}

static int count_keys(const struct settings *settings, uint64_t *count)
{
    struct input *input = NULL;
    off_t begin = lseek(STDIN_FILENO, 0, SEEK_CUR);
    int status = input_open(settings, "counting", false, &input);
    if (!input)
        return status;
    input->counts = true;
    bool once = settings->verb->bit == DEDUP || settings->counts;
    status = once ? count_different(input, count) : count_all(input, count);
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
