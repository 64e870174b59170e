/* counted_strided.c - src/kinds/slots/strided_loops.c with counters: see counted_buckets.c. */
#include "counted_steps.h"
#include "kinds/slots/strided.h"

#define strided_get(body, cell, width)                                                         \
    (counted.cells_looked_at++, strided_get(body, cell, width))
#define strided_set(body, cell, width, value)                                                  \
    (counted.slots_written++, strided_set(body, cell, width, value))

#include "kinds/slots/strided_loops.c" /* NOLINT(bugprone-suspicious-include) */
