/* pipeline.h - batches on their way through stages, by several threads. */
#ifndef PIPELINE_H
#define PIPELINE_H

#include <stdbool.h>
#include <stddef.h>

#include "batch.h"

struct stage {
    /* Deals with a batch.  false: it is the last one; nothing behind it is wanted. */
    bool (*run)(void *context, struct batch *batch);
    void *context;
    bool in_order; /* one batch at a time, as they were read; else any number side by side */
};

#define STAGES_MAX 16

/* Has the batches filled by the first stage, which is in order, go through all others, and be
 * filled again, until a stage returns false.  Returns the last batch: the first one, as they
 * were read, for which a stage did.  It and all before it have gone through every stage; what
 * is behind it, not through the stage that returned false, if that is in order, nor through
 * any in order after it. */
struct batch *pipeline_run(const struct stage *stages, size_t nstages, struct batch *batches,
                           size_t nbatches, size_t nthreads);

#endif
