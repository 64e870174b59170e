/* input.h - takes the keys of all inputs through the stages of a verb.
 *
 * A verb describes its work as an array of stages.  input_run() puts reading and splitting
 * before them and counting behind them, and pipeline_run() has several threads move blocks
 * through all of them.  What a stage finds wrong it notes in the block; input_settle() turns
 * that into a message when the threads have ended. */
#ifndef INPUT_H
#define INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "../options.h"
#include "lines.h"

/* ---- Blocks on their way through stages, by several threads (pipeline.c) -------------- */

/* One step of the work on a block, and what it needs. */
struct stage {
    /* Deals with a block.  Returns false if no later block is wanted: after an error, at the
     * end of the input, or because the answer is known. */
    bool (*run)(void *context, struct block *block);
    void *context; /* the first argument of run() */
    bool in_order; /* one block at a time, in the order of the input; else any number at once */
};

/* dedup has most, since it has a stage for each of its shards. */
#define STAGES_MAX 16

/* Moves blocks through the stages with 'nthreads' threads, of which the caller is one.  The
 * first stage must be in order: it fills an empty block.  A block that has gone through the
 * last stage is filled again.  Ends when a stage returns false.
 *
 * Returns the last block: the first one, in the order of the input, for which a stage returned
 * false.  This block and all before it have gone through every stage.  Blocks behind it have
 * not gone through the stage that returned false, if that is in order, nor through any later
 * stage that is in order.  Cannot fail: where no thread can be started the caller does all the
 * work. */
struct block *pipeline_run(const struct stage *stages, size_t nstages, struct block *blocks,
                           size_t nblocks, size_t nthreads);

/* ---- The inputs ---------------------------------------------------------------------- */

/* The inputs of one run of a verb. */
struct input;

/* Opens the inputs of the command line.  'doing' is a word for the progress line ("adding").
 * If the verb prints lines ('prints') and they go to a terminal, there is no progress line.
 * Ends the program if a file cannot be read.  The caller releases the result with
 * input_close(). */
struct input *input_open(const struct settings *settings, const char *doing, bool prints);

/* Does the same with larger blocks: for keys that take a way to the disk. */
struct input *input_open_far(const struct settings *settings, const char *doing, bool prints);

/* Opens inputs that lie in memory, one piece for each, and were checked. */
struct input *input_open_pieces(const struct settings *settings, const struct piece *pieces,
                                const char *doing, bool prints);

/* Ends the program if an input is missing, cannot be read, is a folder, or holds no lines: it
 * is better to know that before the work begins.  Returns the size of all inputs, or 0 if one
 * does not tell its size. */
uint64_t input_check(const struct settings *settings);

/* Says that a later run will report the lines that are skipped in this one. */
void input_report_later(struct input *input);

/* Moves all inputs through the stages, and ends the program if one fails: a look at the inputs
 * before the run that counts, which takes just what this one has read. */
void input_look(struct input *input, const struct stage *stages, size_t nstages);

/* Has lines become keys in this way, which is noted with the filter of this name. */
void input_take_form(struct input *input, const struct key_form *form, const char *name);

/* Tells that the filter takes integers from 'low' to 'high' only, for the message about a key
 * that it refuses. */
void input_expect_integers(struct input *input, uint64_t low, uint64_t high);

/* Tells that the filter takes keys that are hashes, which may have any bytes.  Otherwise a
 * message says, once, if the first keys of an input look like those of a text from Windows, or
 * like what is packed. */
void input_expect_hashes(struct input *input);

/* Reads all inputs, splits them into records and keys, and moves these through the stages, with
 * the threads that -j asks for.  A block may hold no key at all.  Returns the last block, which
 * holds the end of the inputs, or what a stage returned false for, or a problem: see
 * input_settle(). */
const struct block *input_run(struct input *input, const struct stage *stages, size_t nstages);

/* Ends the program if the last block holds a problem, or a signal came.  The message ends in
 * 'outcome', which tells what has become of the filter ("; F is unchanged").  If there is no
 * problem, only reports the lines that were skipped, and files that have changed. */
void input_settle(const struct input *input, const struct block *last, const char *outcome);

/* Returns how messages name an input. */
const char *input_name(const char *path);

/* Says what has become of a file, of which the first 'nbytes' bytes are done; nothing under
 * --json, and if it is the same or what was read may be wrong. */
void input_tell_change(const struct settings *settings, const char *path,
                       enum file_change change, uint64_t nbytes);

/* Return how many keys have gone through all stages, and how many lines were skipped. */
uint64_t input_nkeys(const struct input *input);
uint64_t input_nskipped(const struct input *input);

/* Returns how many threads -j asks for, or else perhaps_host_threads(); fewer if there is no
 * memory for so many. */
size_t input_nthreads(const struct settings *settings);

/* Returns how much memory --memory allows, or else a quarter of what this process may take. */
uint64_t input_memory(const struct settings *settings);

void input_close(struct input *input);

/* Returns the first input that cannot be read twice, such as a pipe or a device; or NULL. */
const char *input_find_pipe(const struct settings *settings);

/* What was counted in the inputs. */
struct census {
    uint64_t nlines;      /* that have a key */
    uint64_t least, most; /* the number of different keys lies between these */
};

/* Counts the keys of the inputs, or of what lies in memory, by reading all.  Without 'distinct'
 * only finds the ends of lines, and takes every key for a different one. */
struct census input_census(const struct settings *settings, const struct piece *pieces,
                           bool distinct);

/* Ends the program if the file, which is to be written, is also an input.  'name' is for the
 * message. */
void input_refuse(const struct settings *settings, const struct stat *file, const char *name);

#endif
