/* input.c - the inputs of a verb that reads keys: checked, read, counted, and their errors
 * told.
 *
 * It puts two stages before those of the verb (reading, splitting) and one behind them
 * (counting lines, for messages).  It also finds out how many keys the inputs have, for verbs
 * that make a filter and were not told. */
#include "input.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <perhaps_build.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../base/stop.h"
#include "distinct.h"
#include "strange.h"

/* The inputs of one run.  It owns the reader and the blocks. */
struct input {
    const struct settings *settings;
    struct reader *reader;
    struct progress progress;
    struct block *block;
    size_t nblocks, nthreads;
    struct key_form form;
    const char *noted_with; /* the filter with which 'form' is noted; NULL: none */
    bool (*split)(void *input, struct block *block); /* split_block(), or what only counts */
    bool plain;             /* keys may have any bytes, so that nothing about them is strange */
    uint32_t told;          /* what was strange so far, a bit for each sort of it */
    bool counts;            /* the run that follows will report skipped lines */
    bool counted;           /* the keys of the same files were counted before */
    struct extent *extents; /* of the files; NULL: they lie in memory, or are read once */

    /* Of the blocks that have gone through all stages.  The stage that counts is in order, so
     * only 'nkeys', which the progress line reads, must be atomic. */
    atomic_uint_fast64_t nkeys;
    size_t source;   /* the path that the last of them was from */
    uint64_t nlines; /* how many of its lines were counted */
    uint64_t nskipped;
    struct perhaps_bitmap_options integers; /* that the filter takes; high 0: other keys */
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

const char *input_name(const char *path)
{
    return is_standard_input(path) ? "standard input" : path;
}

static int stat_input(const char *path, struct stat *st)
{
    return is_standard_input(path) ? fstat(STDIN_FILENO, st) : stat(path, st);
}

uint64_t input_check(const struct settings *settings)
{
    bool known = !settings->keys.count;
    uint64_t total_nbytes = 0;
    for (size_t i = 0; i < settings->ninputs && !settings->keys.count; i++) {
        const char *path = settings->inputs[i];
        bool is_file = !is_standard_input(path);
        struct stat st;
        if (stat_input(path, &st) != 0 || (is_file && access(path, R_OK) != 0))
            fail("%s: %s", input_name(path), strerror(errno));
        if (S_ISDIR(st.st_mode))
            fail("%s: %s", input_name(path), strerror(EISDIR));
        bool may_tell = is_file && S_ISREG(st.st_mode) && !settings->raw;
        const char *refusal = may_tell ? stream_refusal(path) : NULL;
        if (refusal)
            fail("%s: %s", path, refusal);
        known = known && S_ISREG(st.st_mode) && st.st_size > 0;
        total_nbytes += (uint64_t)st.st_size;
    }
    return known ? total_nbytes : 0;
}

void input_refuse(const struct settings *settings, const struct stat *file, const char *name)
{
    for (size_t i = 0; S_ISREG(file->st_mode) && i < settings->ninputs; i++) {
        struct stat st;
        if (!settings->keys.count && stat_input(settings->inputs[i], &st) == 0 &&
            is_same_file(&st, file))
            fail("%s: is an input, too: give another file", name);
    }
}

/* ---- The first stage: reading ---------------------------------------------- */

/* Fills a block, and forgets what was found out about its last text.  After a signal a block
 * ends the run even if there is more to read. */
static bool read_block(void *context, struct block *block)
{
    struct input *input = context;
    block->count = block->ndone = 0;
    block->nselected = block->nunknown = block->output_nbytes = 0;
    block->error = 0;
    block->problem = NULL;
    block->is_hashed = false;
    block->nskipped = 0;
    block->strange = 0;
    progress_show(&input->progress, true, atomic_load(&input->nkeys),
                  reader_nread(input->reader));
    reader_read(input->reader, block);
    if (stop_signal()) {
        block->holds = BLOCK_PROBLEM;
        block->nbytes = 0;
    }
    return block->holds == BLOCK_RECORDS;
}

/* ---- The second stage: splitting ------------------------------------------- */

/* Finds the keys, and what is strange about the first ones of an input. */
static bool split_block(void *context, struct block *block)
{
    struct input *input = context;
    bool ok = block_split(&input->form, block);
    if (ok && block->offset == 0 && !input->plain && !input->counts)
        block->strange = strange_block(block, &input->form);
    return ok;
}

/* ---- The last stage: counting lines -------------------------------------------------- */

/* Says what is strange, each sort of it once. */
static void tell_strange(struct input *input, const struct block *block)
{
    uint32_t left = block->strange & ~input->told;
    input->told |= left;
    for (unsigned bit = 0; left; bit++, left >>= 1)
        if (left & 1)
            complain("%s: %s", input_name(input->settings->inputs[block->source]),
                     strange_words(bit));
}

/* Finds the number of the first line of each block, which needs that blocks come in order. */
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
    if (block->strange)
        tell_strange(input, block);
    return true;
}

/* Gives the reader the keys of the command line, to be read instead of files. */
static void give_keys(struct reader *reader, const struct settings *settings)
{
    const struct words *keys = &settings->keys;
    size_t nbytes = 0, at = 0;
    for (size_t i = 0; i < keys->count; i++)
        nbytes += strlen(keys->word[i]) + 1;
    char *text = allocate_zeroed(nbytes + BLOCK_SLACK_NBYTES, 1);
    for (size_t i = 0; i < keys->count; i++) {
        at = (size_t)(stpcpy(text + at, keys->word[i]) - text);
        text[at++] = settings->form.end;
    }
    reader_give(reader, text, nbytes);
}

/* ---- All --------------------------------------------------------------------------- */

/* Two blocks for each thread take up to 6 MB, and its stack 1. */
#define THREAD_NBYTES ((size_t)16 << 20)

size_t input_nthreads(const struct settings *settings)
{
    const uint64_t most = perhaps_host_memory_nbytes() / THREAD_NBYTES;
    uint64_t n = settings->threads ? settings->threads : perhaps_host_threads();
    n = n < most ? n : most;
    return n ? n : 1;
}

uint64_t input_memory(const struct settings *settings)
{
    return settings->memory_nbytes ? settings->memory_nbytes : perhaps_host_memory_nbytes() / 4;
}

/* A thread has a block to work on and one that waits for its turn; one more is to be read
 * into. */
static struct input *open_inputs(const struct settings *settings, const struct piece *pieces,
                                 const char *doing, bool prints, bool far)
{
    const bool counted = !pieces && settings->extents && settings->extents->known;
    uint64_t total_nbytes = pieces || counted ? 0 : input_check(settings);
    struct input *input = allocate_zeroed(1, sizeof *input);
    input->settings = settings;
    input->form = settings->form;
    input->split = split_block;
    input->plain = settings->raw || settings->json || settings->keys.count ||
                   (settings->hash && strncmp(settings->hash, "none", 4) == 0);
    input->nthreads = settings->keys.count ? 1 : input_nthreads(settings); /* few keys */
    input->nblocks = input->nthreads > 1 ? 2 * input->nthreads + 1 : 1;
    input->block = allocate_zeroed(input->nblocks, sizeof *input->block);
    input->reader =
        reader_open(settings->inputs, settings->ninputs, settings->form.end, settings->raw,
                    settings->served || far ? BLOCK_FAR_NBYTES : BLOCK_NBYTES);
    if (!input->reader)
        fail("%s", why(PERHAPS_ERR_MEMORY));
    if (settings->keys.count)
        give_keys(input->reader, settings);
    if (pieces)
        reader_take_pieces(input->reader, pieces);
    input->counted = counted;
    input->extents = pieces ? NULL : settings->extents;
    if (counted)
        reader_keep_to(input->reader, settings->extents);
    for (size_t i = 0; pieces && i < settings->ninputs; i++)
        total_nbytes += pieces[i].nbytes;
    for (size_t i = 0; counted && i < settings->ninputs; i++)
        total_nbytes += settings->extents[i].nbytes;
    progress_start(&input->progress, settings, doing, total_nbytes);
    if (prints && isatty(STDOUT_FILENO))
        input->progress.wanted = false;
    return input;
}

struct input *input_open(const struct settings *settings, const char *doing, bool prints)
{
    return open_inputs(settings, NULL, doing, prints, false);
}

struct input *input_open_far(const struct settings *settings, const char *doing, bool prints)
{
    return open_inputs(settings, NULL, doing, prints, true);
}

struct input *input_open_pieces(const struct settings *settings, const struct piece *pieces,
                                const char *doing, bool prints)
{
    return open_inputs(settings, pieces, doing, prints, false);
}

void input_take_form(struct input *input, const struct key_form *form, const char *name)
{
    input->form = *form;
    input->noted_with = name;
}

void input_report_later(struct input *input)
{
    input->counts = true;
}

void input_close(struct input *input)
{
    reader_close(input->reader);
    for (size_t i = 0; i < input->nblocks; i++)
        block_release(&input->block[i]);
    free(input->block);
    free(input);
}

const struct block *input_run(struct input *input, const struct stage *stages, size_t nstages)
{
    struct stage all[STAGES_MAX] = { { read_block, input, .in_order = true },
                                     { input->split, input, .in_order = false } };
    assert(nstages + 3 <= STAGES_MAX);
    if (nstages)
        memcpy(all + 2, stages, nstages * sizeof *stages);
    all[nstages + 2] = (struct stage){ count_lines, input, .in_order = true };
    const struct block *last =
        pipeline_run(all, nstages + 3, input->block, input->nblocks, input->nthreads);
    progress_erase();
    return last;
}

uint64_t input_nskipped(const struct input *input)
{
    return input->nskipped;
}

uint64_t input_nkeys(const struct input *input)
{
    return atomic_load(&input->nkeys);
}

/* Returns what the filter has against a key, as the end of a message. */
static const char *key_problem(const struct input *input, int error)
{
    if (error == PERHAPS_ERR_ARGUMENT) /* only the size of a key can be wrong */
        return "not 16 bytes, or 8 under none-64: the filter takes keys that are hashes";
    if (error == PERHAPS_ERR_FULL && input->counted)
        return "is another file than the one whose keys were counted: try again, or give -n, "
               "such as -n 10M";
    if (error == PERHAPS_ERR_FULL)
        return "the filter is full: make it anew with a larger -n or with --grow";
    if (error == PERHAPS_ERR_COPIES)
        return input->settings->counts
                   ? "this key came more often than the kind can count: leave out --kind"
                   : "no room for one more copy of this key, of which 8 are the most (4 in the "
                     "kind "
                     "strided): give --once, or drop repeats before";
    return why(error);
}

/* Reports skipped lines.  If every line was skipped, --field or --delimiter is wrong rather
 * than some lines: that ends the program. */
static void settle_skipped(const struct input *input, const char *outcome)
{
    const struct settings *s = input->settings;
    const struct place *first = &input->first_skipped;
    const char *name = input_name(s->inputs[first->source]);
    uint64_t nskipped = input->nskipped;
    if (!nskipped || input->counts)
        return;
    if (!input_nkeys(input) && input->noted_with)
        fail("%s:%ju: %s, nor has any other line, but the keys of %s are such fields: if lines "
             "are keys, give --field 1-%s",
             name, (uintmax_t)first->line, first->lacks, input->noted_with, outcome);
    if (!input_nkeys(input))
        fail("%s:%ju: %s, nor has any other line: see --field, --delimiter%s", name,
             (uintmax_t)first->line, first->lacks, outcome);
    if (!s->json && !s->quiet)
        complain("%s line%s skipped: %s:%ju %s%s", grouped(nskipped).s,
                 nskipped == 1 ? "" : "s", name, (uintmax_t)first->line, first->lacks,
                 nskipped == 1 ? "" : ", and so on");
}

void input_tell_change(const struct settings *settings, const char *path,
                       enum file_change change, uint64_t nbytes)
{
    if (settings->json)
        return;
    if (change == CHANGE_GREW)
        complain("%s: grew while it was read: done are its first %s bytes, and not what came "
                 "behind them",
                 input_name(path), grouped(nbytes).s);
    if (change == CHANGE_REPLACED)
        complain(
            "%s: was replaced while it was read: done is the old file, and not the new one",
            input_name(path));
}

/* Says so if there is more by now than was done. */
static void settle_changes(const struct input *input)
{
    size_t source;
    uint64_t nbytes;
    enum file_change change = reader_change(input->reader, &source, &nbytes);
    if (change)
        input_tell_change(input->settings, input->settings->inputs[source], change, nbytes);
}

void input_expect_integers(struct input *input, uint64_t low, uint64_t high)
{
    input->integers = (struct perhaps_bitmap_options){ low, high };
}

void input_expect_hashes(struct input *input)
{
    input->plain = true;
}

/* Returns whether the key is an integer, or would be one but for its size. */
static bool is_integer(const struct perhaps_key *key)
{
    const char *text = key->bytes;
    size_t at = key->nbytes > 0 && *text == '+', first = at;
    while (at < key->nbytes && isdigit((unsigned char)text[at]))
        at++;
    return at == key->nbytes && at > first && (text[first] != '0' || at == first + 1);
}

/* Ends the program because the filter takes integers of a range, and this key is none. */
static _Noreturn void fail_integer(const struct input *input, const struct perhaps_key *key,
                                   const char *place, const char *outcome)
{
    const struct perhaps_bitmap_options *range = &input->integers;
    const size_t most = 40;
    if (is_integer(key))
        fail("%s: %.*s%s: not in the range %ju-%ju of the filter%s", place,
             (int)(key->nbytes < most ? key->nbytes : most), (const char *)key->bytes,
             key->nbytes < most ? "" : "...", (uintmax_t)range->low, (uintmax_t)range->high,
             outcome);
    fail("%s: not an integer: the filter takes digits, without leading zeros or anything else, "
         "of the range %ju-%ju%s",
         place, (uintmax_t)range->low, (uintmax_t)range->high, outcome);
}

/* Returns whether the problem of a block says more than its error: what the system has against
 * a file, or Redisson's codec against a key. */
static bool says_more(const struct block *block)
{
    return block->problem && (block->error == PERHAPS_ERR_IO ||
                              (block->error == PERHAPS_ERR_ARGUMENT &&
                               strcmp(block->problem, perhaps_strerror(block->error)) != 0));
}

void input_settle(const struct input *input, const struct block *last, const char *outcome)
{
    const char *name = input_name(input->settings->inputs[last->source]);
    if (last->error == PERHAPS_ERR_ARGUMENT && input->integers.high) {
        char place[1024];
        snprintf(place, sizeof place, "%s:%ju", name, (uintmax_t)block_line(last, last->ndone));
        fail_integer(input, &last->key[last->ndone], place, outcome);
    }
    const char *problem =
        last->error && !says_more(last) ? key_problem(input, last->error) : last->problem;
    if (last->error || last->problem)
        fail("%s:%ju: %s%s", name, (uintmax_t)block_line(last, last->ndone), problem, outcome);
    if (stop_signal()) /* at the end, too: the same signal may have ended who wrote the input */
        fail_interrupted(outcome);
    if (last->holds == BLOCK_PROBLEM)
        fail("%s: %s%s", name, problem_or_memory(reader_problem(input->reader)), outcome);
    settle_changes(input);
    settle_skipped(input, outcome);
}

/* ---- Counting ---------------------------------------------------------------------- */

const char *input_find_pipe(const struct settings *settings)
{
    for (size_t i = 0; i < settings->ninputs; i++) {
        const char *path = settings->inputs[i];
        struct stat st;
        if (stat_input(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
            return path;
    }
    return NULL;
}

/* Takes the place of split_block() where only the number of lines is wanted. */
static bool count_records(void *context, struct block *block)
{
    const struct input *input = context;
    block->count = lines_count(block->text, block->nbytes, input->form.end);
    return true;
}

void input_look(struct input *input, const struct stage *stages, size_t nstages)
{
    const off_t begin = lseek(STDIN_FILENO, 0, SEEK_CUR);
    if (input->extents)
        reader_keep_to(input->reader, input->extents);
    input_report_later(input);
    const struct block *last = input_run(input, stages, nstages);
    if (begin >= 0)
        lseek(STDIN_FILENO, begin, SEEK_SET);
    input_settle(input, last, "");
}

struct census input_census(const struct settings *settings, const struct piece *pieces,
                           bool distinct)
{
    struct distinct *keys = distinct ? allocate_zeroed(1, sizeof *keys) : NULL;
    const struct stage add = { distinct_add, keys, .in_order = false };
    struct input *input = open_inputs(settings, pieces, "counting", false, false);
    if (!keys)
        input->split = count_records;
    input_look(input, &add, keys != NULL);
    const uint64_t nkeys = input_nkeys(input), bound = keys ? distinct_bound(keys) : nkeys;
    const uint64_t most = nkeys < bound ? nkeys : bound,
                   least = keys ? distinct_least(keys) : 0;
    free(keys);
    input_close(input);
    return (struct census){ nkeys, least < most ? least : most, most };
}
