/* input.h - keys from files and standard input, on their way through what a verb does. */
#ifndef INPUT_H
#define INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "lines.h"
#include "options.h"
#include "request.h"

/* ---- Blocks on their way through stages, by several threads (pipeline.c) -------------- */

struct stage {
    /* Deals with a block.  false: it is the last one; nothing behind it is wanted. */
    bool (*run)(void *context, struct block *block);
    void *context;
    bool in_order; /* one block at a time, as they were read; else any number side by side */
};

#define STAGES_MAX 16

/* Has the blocks filled by the first stage, which is in order, go through all others, and be
 * filled again, until a stage returns false.  Returns the last block: the first one, as they
 * were read, for which a stage did.  It and all before it have gone through every stage; what
 * is behind it, not through the stage that returned false, if that is in order, nor through
 * any in order after it. */
struct block *pipeline_run(const struct stage *stages, size_t nstages, struct block *blocks,
                           size_t nblocks, size_t nthreads);

/* ---- The inputs ---------------------------------------------------------------------- */

struct input;

/* Opens the inputs of the command line.  'doing' stands in the progress line ("adding"), which
 * is left out if 'prints' (the verb prints lines) and those go to the terminal too. */
struct input *input_open(const struct settings *settings, const char *doing, bool prints);

/* Reads all inputs, splits them into records and keys, and has those go through the stages, in
 * the -j threads.  Each block may hold no key at all.  Returns the last one: the end, or what a
 * stage returned false for, or where something was wrong: input_settle() tells. */
const struct block *input_run(struct input *input, const struct stage *stages, size_t nstages);

/* Ends the program if something is wrong with the last block, having said what, and 'outcome'
 * ("; F is unchanged"); if all is well, says that lines were skipped. */
void input_settle(const struct input *input, const struct block *last, const char *outcome);

/* How many keys have gone through all stages; and how many lines had none. */
uint64_t input_nkeys(const struct input *input);
uint64_t input_nskipped(const struct input *input);

/* How many threads -j asks for, or the cores allow. */
size_t input_nthreads(const struct settings *settings);

void input_close(struct input *input);

/* What the options say of the size; where they do not say it, the number of keys that the
 * inputs hold, which takes reading them; or one that grows, where they cannot be read twice. */
struct size input_size(const struct settings *settings);

/* Ends the program if the file is one of the inputs, too. */
void input_refuse(const struct settings *settings, const struct stat *file, const char *name);

#endif
