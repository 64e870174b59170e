/* counted_buckets.c - src/kinds/slots/buckets.c with counters: a program that has this takes it
 * instead of the library's.  A search computes the other bucket of an entry for each bucket
 * that it appends, and a move does so once. */
#include "counted_steps.h"
#include "kinds/slots/bucket_pair.h"

struct counted counted;

#define table_other(t, bucket, entry)                                                          \
    (counted.buckets_looked_at++, table_other(t, bucket, entry))
#define cuckoo_set_narrow_slot(body, bucket, slot, width, entry)                               \
    (counted.slots_written++, cuckoo_set_narrow_slot(body, bucket, slot, width, entry))
#define cuckoo_set_slot(body, bucket, slot, width, entry)                                      \
    (counted.slots_written++, cuckoo_set_slot(body, bucket, slot, width, entry))
#define cuckoo_change_slot(body, bucket, slot, width, change)                                  \
    (counted.slots_written++, cuckoo_change_slot(body, bucket, slot, width, change))

#include "kinds/slots/buckets.c" /* NOLINT(bugprone-suspicious-include) */
