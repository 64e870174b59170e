/* static.h - filters that are built once: their keys, values and others on the way to the
 * builder. */
#ifndef STATIC_H
#define STATIC_H

#include "target.h"

/* A stage, with a struct target: gives the keys of a block to the builder, with the values of
 * --value-field.  Needs no order. */
bool static_add(void *target, struct block *block);

/* A stage, with a struct target, behind that one; in order.  Says it when the first keys go to
 * the disk. */
bool static_watch(void *target, struct block *block);

/* Ends the program if a stage failed: input_settle() (input.h), but the temporary file, too,
 * may have been what failed. */
void static_settle(const struct target *target, const struct input *input,
                   const struct block *last);

/* Returns how many bits the values of --value-field get: as --kind says, or as the largest of
 * them has; 16 if the inputs cannot be read twice, 0 without values. */
uint64_t static_value_bits(const struct settings *settings);

/* Begins a filter that is built once, or that gets its size when all keys have come: the
 * builder takes its keys, whose number need not be known.  Makes any other filter at once
 * (target_create()). */
void static_begin(struct target *target);

/* Gives the keys of --against to the builder, or ends the program. */
void static_add_others(struct target *target);

#endif
