/* values.c - reads and checks the values of options. */
#include "values.h"
#include <perhaps_plan.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

/* Sets a flag: an option without a value. */
static const char *read_flag(const struct value_type *type, const char *value, void *slot)
{
    (void)value;
    *(bool *)slot = true;
    return type->problem;
}

static const char *read_text(const struct value_type *type, const char *value, void *slot)
{
    *(const char **)slot = value;
    return *value ? NULL : type->problem;
}

/* Adds the value to those that the option had before. */
static const char *read_word(const struct value_type *type, const char *value, void *slot)
{
    struct words *words = slot;
    if (!*value && type->problem)
        return type->problem;
    if (words->count == WORDS_MOST)
        return "one too many: " TEXT(WORDS_MOST) " at most";
    words->word[words->count++] = value;
    return NULL;
}

/* Reads a number of the range of its type. */
static const char *read_between(const struct value_type *type, const char *value, void *slot)
{
    uint64_t n;
    if (!read_number(value, &n) || n < type->least || n > type->most)
        return type->problem;
    *(uint64_t *)slot = n;
    return NULL;
}

static const char *read_fields(const struct value_type *type, const char *value, void *slot)
{
    return fields_read(value, slot) ? NULL : type->problem;
}

/* Reads a time; a number without a unit is in seconds. */
static const char *read_wait(const struct value_type *type, const char *value, void *slot)
{
    char seconds[64];
    int length = snprintf(seconds, sizeof seconds, "%ss", value);
    bool read = read_duration(value, slot) ||
                (length < (int)sizeof seconds && read_duration(seconds, slot));
    return read ? NULL : type->problem;
}

/* Reads the time for which lines are remembered, or a number of keys as 10M-keys. */
static const char *read_window(const struct value_type *type, const char *value, void *slot)
{
    static const char suffix[] = "-keys";
    struct perhaps_window_options window = { 0 };
    char number[64];
    size_t length = strlen(value), tail = strlen(suffix);
    bool by_keys = length > tail && strcmp(value + length - tail, suffix) == 0;
    if (by_keys && length - tail < sizeof number) {
        memcpy(number, value, length - tail);
        number[length - tail] = '\0';
        by_keys = read_number(number, &window.keys) && window.keys <= type->most;
    }
    if (!(by_keys && window.keys) && !(read_duration(value, &window.time) && window.time))
        return type->problem;
    *(struct perhaps_window_options *)slot = window;
    return NULL;
}

/* Reads a moment, in milliseconds since 1970.  0 stands for none. */
static const char *read_time(const struct value_type *type, const char *value, void *slot)
{
    uint64_t ms = moment_now();
    if ((strcmp(value, "now") != 0 && !read_moment(value, strlen(value), &ms)) || !ms)
        return type->problem;
    *(uint64_t *)slot = ms;
    return NULL;
}

/* Reads a number of lines, or a time. */
static const char *read_durability(const struct value_type *type, const char *value, void *slot)
{
    struct durability durable = { 0 };
    if (!(read_duration(value, &durable.ms) && durable.ms) &&
        !(read_number(value, &durable.lines) && durable.lines))
        return type->problem;
    *(struct durability *)slot = durable;
    return NULL;
}

/* Reads the first and the last integer of a range, each as read_number() does. */
static const char *read_range(const struct value_type *type, const char *value, void *slot)
{
    struct perhaps_bitmap_options range;
    char low[64];
    const char *dash = strchr(value, '-');
    size_t length = dash ? (size_t)(dash - value) : sizeof low;
    if (length >= sizeof low)
        return type->problem;
    memcpy(low, value, length);
    low[length] = '\0';
    if (!read_number(low, &range.low) || !read_number(dash + 1, &range.high) ||
        range.high == 0 || range.low > range.high || range.high - range.low >= type->most)
        return type->problem;
    *(struct perhaps_bitmap_options *)slot = range;
    return NULL;
}

static const char *read_fpr(const struct value_type *type, const char *value, void *slot)
{
    double fpr;
    if (!read_share(value, &fpr) || !(fpr >= PERHAPS_FPR_MIN && fpr < 1))
        return type->problem;
    *(double *)slot = fpr;
    return NULL;
}

/* strtoull() alone would take signs, blanks and numbers above 2^64 - 1 (it cuts them).  0 is
 * refused, since in the settings it means that no seed was given. */
static const char *read_seed(const struct value_type *type, const char *value, void *slot)
{
    char *end;
    bool hexadecimal = strncasecmp(value, "0x", 2) == 0;
    errno = 0;
    uint64_t seed = strtoull(value, &end, hexadecimal ? 16 : 10);
    if (!isdigit((unsigned char)*value) || *end || seed == 0 || errno)
        return type->problem;
    *(uint64_t *)slot = seed;
    return NULL;
}

/* Reads one byte, or "\t" as it is typed where a shell does not make it a tab. */
static const char *read_delimiter(const struct value_type *type, const char *value, void *slot)
{
    if (strcmp(value, "\\t") == 0)
        value = "\t";
    *(char *)slot = *value;
    return strlen(value) == 1 ? NULL : type->problem;
}

/* Returns a problem that lists the kinds, so it needs a buffer that outlives the call. */
static const char *read_kind(const struct value_type *type, const char *value, void *slot)
{
    static char problem[256];
    size_t used = (size_t)snprintf(problem, sizeof problem, "%s", type->problem);
    const struct perhaps_kind *kind;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++) {
        if (strcmp(kind->name, value) == 0) {
            *(const char **)slot = kind->name;
            return NULL;
        }
        if (used < sizeof problem)
            used += (size_t)snprintf(problem + used, sizeof problem - used, "%s %s",
                                     i ? "," : "", kind->name);
    }
    return problem;
}

const struct value_type type_flag = { read_flag, NULL, 0, 0, VALUES_NONE };
const struct value_type type_file = { read_text, "empty: give a name", 0, 0, VALUES_FILES };
const struct value_type type_filter = { read_word, "empty: give a name", 0, 0, VALUES_FILES };
/* Takes any name: choose_hash() in request.c knows which hashes there are. */
const struct value_type type_hash = { read_text, "empty: give a name", 0, 0, VALUES_HASHES };
const struct value_type type_kind = { read_kind, "no such kind: there are", 0, 0,
                                      VALUES_KINDS };
const struct value_type type_key = { read_word, NULL, 0, 0, VALUES_NONE };
const struct value_type type_capacity = {
    read_between,
    "not a number of keys: give a whole number from 1 to 2^48, such as 5,000,000, "
    "5e9, 10M or 2G",
    1, PERHAPS_CAPACITY_MAX, VALUES_NONE
};
const struct value_type type_memory = {
    read_between, "not a size of memory: give a number of bytes from 1M on, such as 512M or 4G",
    1000000, UINT64_C(1) << 60, VALUES_NONE
};
const struct value_type type_value_bits = { read_between, "not a number of bits: give 1 to 16",
                                            1, 16, VALUES_NONE };
const struct value_type type_threads = { read_between,
                                         "not a number of threads: give 1, 2 or more", 1, 1024,
                                         VALUES_NONE };
const struct value_type type_field = { read_between, "not a field: the first field is 1", 1,
                                       FIELD_MAX, VALUES_NONE };
const struct value_type type_fields = {
    read_fields, "not fields: give each once, from 1 on, such as 2, or 1,3-5", 0, 0, VALUES_NONE
};
/* The servers have no memory for that many: the limit only refuses what is surely a mistake. */
const struct value_type type_partitions = {
    read_between, "not a number of partitions: give a whole number, such as 4096", 1,
    UINT64_C(1) << 32, VALUES_NONE
};
const struct value_type type_factor = {
    read_between, "not a factor: give a whole number from 1 to " TEXT(FACTOR_MAX), 1,
    FACTOR_MAX, VALUES_NONE
};
const struct value_type type_generations = {
    read_between, "not a number of generations: give one from 2 to " TEXT(GENERATIONS_MAX), 2,
    GENERATIONS_MAX, VALUES_NONE
};
const struct value_type type_patience = {
    read_wait, "not a time: give seconds, or a time with its unit, such as 5m", 0, 0,
    VALUES_NONE
};
const struct value_type type_durability = {
    read_durability,
    "neither a number of lines, such as 10000, nor a time with its unit (ms, s, m, h), such as "
    "500ms",
    0,
    0,
    VALUES_NONE,
};
const struct value_type type_window = {
    read_window,
    "not a window: give a time with its unit (ms, s, m, h, d, w), such as 24h, or a "
    "number of keys, such as 10M-keys",
    1, PERHAPS_CAPACITY_MAX, VALUES_NONE
};
const struct value_type type_moment = { read_time, "not a time: give 'now', " MOMENT_EXPECTED,
                                        0, 0, VALUES_NONE };
const struct value_type type_range = { read_range,
                                       "not a range: give its first and its last integer, "
                                       "such as 13000000000-19999999999; at most "
                                       "2^48 integers",
                                       0, PERHAPS_CAPACITY_MAX, VALUES_NONE };
const struct value_type type_rate = {
    read_fpr, "not a rate: give a number from 1e-15 to below 1, such as 0.001, 1e-6 or 0.1%", 0,
    0, VALUES_NONE
};
const struct value_type type_seed = {
    read_seed, "not a seed: give a number from 1 to 2^64-1, decimal or 0x...", 0, 0, VALUES_NONE
};
const struct value_type type_delimiter = { read_delimiter,
                                           "not a delimiter: give one byte, such as , or \\t",
                                           0, 0, VALUES_NONE };
