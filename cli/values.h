/* values.h - the types of the values that options have. */
#ifndef VALUES_H
#define VALUES_H

#include "options.h"

/* As perhaps.h says. */
#define FACTOR_MAX      32768
#define GENERATIONS_MAX 64

/* The type of a value.  Several options share one. */
struct value_type {
    /* Reads the value and puts it into the settings.  Returns NULL, or what is wrong with it,
     * as the end of a message. */
    const char *(*read)(const struct value_type *type, const char *value, void *slot);
    const char *problem;  /* what read() returns if the value is wrong */
    uint64_t least, most; /* the range of a number */
    enum option_values values;
};

extern const struct value_type type_flag, type_file, type_hash, type_kind, type_preference,
    type_key, type_capacity, type_memory, type_threads, type_field, type_fields,
    type_partitions, type_patience, type_window, type_moment, type_durability, type_range,
    type_rate, type_seed, type_delimiter;

#endif
