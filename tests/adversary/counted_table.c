/* counted_table.c - src/kinds/slots/table.c with counters: a program that has this takes it
 * instead of the library's.  A search computes the other bucket of an entry for each bucket
 * that it appends, and a move does so once. */
#include "counted_steps.h"
#include "kinds/slots/table.h"

struct counted counted;

#define table_other(t, bucket, entry)                                                          \
    (counted.buckets_looked_at++, table_other(t, bucket, entry))
#define cell_get(body, cell, width) (counted.cells_looked_at++, cell_get(body, cell, width))
#define cell_set(body, cell, width, value)                                                     \
    (counted.slots_written++, cell_set(body, cell, width, value))
#define slot_set(body, bucket, slot, width, value)                                             \
    (counted.slots_written++, slot_set(body, bucket, slot, width, value))
#define slot_flip(body, bucket, slot, width, change)                                           \
    (counted.slots_written++, slot_flip(body, bucket, slot, width, change))
#define narrow_put(body, width, e)  (narrow_put(body, width, e) && ++counted.slots_written)
#define wide_put(body, width, e)    (wide_put(body, width, e) && ++counted.slots_written)
#define strided_put(body, width, e) (strided_put(body, width, e) && ++counted.slots_written)

#include "kinds/slots/table.c" /* NOLINT(bugprone-suspicious-include) */
