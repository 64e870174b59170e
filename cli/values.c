/* values.c - reads and checks the values of options. */
#include "values.h"

#include <ctype.h>
#include <errno.h>
#include <perhaps_plan.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"

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
static const char *read_one_more(const struct value_type *type, const char *value, void *slot)
{
    struct words *words = slot;
    (void)type;
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
static const char *read_moment_asked(const struct value_type *type, const char *value,
                                     void *slot)
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

/* What can be asked of a kind behind its colon, such as --kind chain:factor=4,base=bloom. */
static const struct kind_setting {
    const char *kind, *name;
    const char *value;    /* how help names its value; NULL: it takes none */
    size_t slot;          /* in struct kind_asked */
    uint64_t least, most; /* of a number; 0 and 0: it is a kind */
} kind_settings[] = {
    { "blocked", "together", NULL, offsetof(struct kind_asked, together), 0, 0 },
    { "elastic", "until", "N", offsetof(struct kind_asked, until), 1, PERHAPS_CAPACITY_MAX },
    { "chain", "factor", "N", offsetof(struct kind_asked, factor), 1, FACTOR_MAX },
    { "chain", "base", "K", offsetof(struct kind_asked, base), 0, 0 },
    { "window", "generations", "G", offsetof(struct kind_asked, generations), 2,
      GENERATIONS_MAX },
    { "window", "base", "K", offsetof(struct kind_asked, base), 0, 0 },
    { "ribbon", "value-bits", "B", offsetof(struct kind_asked, value_bits), 1, VALUE_BITS_MAX },
    { "against", "others", "M", offsetof(struct kind_asked, others), 1, PERHAPS_CAPACITY_MAX },
    { "against", "group", "B", offsetof(struct kind_asked, group_nbytes), 1, UINT8_MAX },
};

#define NSETTINGS (sizeof kind_settings / sizeof *kind_settings)

const char *kind_takes(const char *kind, size_t *at)
{
    static char text[64];
    while (*at < NSETTINGS && strcmp(kind_settings[*at].kind, kind) != 0)
        ++*at;
    if (*at == NSETTINGS)
        return NULL;
    const struct kind_setting *setting = &kind_settings[(*at)++];
    snprintf(text, sizeof text, "%s%s%s", setting->name, setting->value ? "=" : "",
             setting->value ? setting->value : "");
    return text;
}

/* Returns a problem that lists something, so it needs a buffer that outlives the call. */
static char list[512];

/* Starts the problem, and adds a word to it. */
static void list_begin(const char *problem)
{
    snprintf(list, sizeof list, "%s", problem);
}

static void list_add(const char *word, bool first)
{
    const size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s %s", first ? "" : ",", word);
}

/* Finds a kind by the first bytes of a text.  Returns NULL if there is none of this name. */
static const char *find_kind(const char *text, size_t nbytes)
{
    const struct perhaps_kind *kind;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        if (strlen(kind->name) == nbytes && memcmp(kind->name, text, nbytes) == 0)
            return kind->name;
    return NULL;
}

static const char *no_such_kind(const char *problem)
{
    const struct perhaps_kind *kind;
    list_begin(problem);
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        list_add(kind->name, i == 0);
    return list;
}

/* Says what this kind takes behind its colon. */
static const char *not_taken(const char *kind)
{
    const char *takes;
    list_begin("behind the colon this kind takes");
    for (size_t at = 0, n = 0; (takes = kind_takes(kind, &at)); n++)
        list_add(takes, n == 0);
    return strstr(list, "takes ") ? list : "this kind takes no colon, and nothing behind it";
}

/* Reads what is asked of the kind: "factor=4".  Returns NULL or a problem. */
static const char *read_setting(const struct value_type *type, char *word,
                                struct kind_asked *asked)
{
    char *value = strchr(word, '=');
    const struct kind_setting *setting = kind_settings;
    if (value)
        *value++ = '\0';
    while (setting < kind_settings + NSETTINGS &&
           (strcmp(setting->kind, asked->name) != 0 || strcmp(setting->name, word) != 0))
        setting++;
    if (setting == kind_settings + NSETTINGS || !value != !setting->value)
        return not_taken(asked->name);
    void *slot = (char *)asked + setting->slot;
    if (!setting->value) {
        *(bool *)slot = true;
    } else if (!setting->most) {
        const char *base = *(const char **)slot = find_kind(value, strlen(value));
        return base ? NULL : no_such_kind(type->problem);
    } else if (!read_number(value, slot) || *(uint64_t *)slot < setting->least ||
               *(uint64_t *)slot > setting->most) {
        snprintf(list, sizeof list, "%s: not a whole number from %ju to %ju", setting->name,
                 (uintmax_t)setting->least, (uintmax_t)setting->most);
        return list;
    }
    return NULL;
}

/* Reads a kind, and what is asked of it behind a colon. */
static const char *read_kind_asked(const struct value_type *type, const char *value, void *slot)
{
    struct kind_asked asked = { 0 };
    char words[256], *rest = NULL;
    const size_t length = strcspn(value, ":");
    asked.name = find_kind(value, length);
    if (!asked.name)
        return no_such_kind(type->problem);
    snprintf(words, sizeof words, "%s", value[length] ? value + length + 1 : "");
    if (value[length])
        rest = words;
    for (char *word; (word = strsep(&rest, ","));) {
        const char *problem = read_setting(type, word, &asked);
        if (problem)
            return problem;
    }
    *(struct kind_asked *)slot = asked;
    return NULL;
}

static const char *read_preference(const struct value_type *type, const char *value, void *slot)
{
    const bool fast = strcmp(value, "fast") == 0;
    if (!fast && strcmp(value, "compact") != 0)
        return type->problem;
    *(enum perhaps_preference *)slot = fast ? PERHAPS_PREFER_FAST : PERHAPS_PREFER_COMPACT;
    return NULL;
}

const struct value_type type_flag = { read_flag, NULL, 0, 0, VALUES_NONE };
const struct value_type type_file = { read_text, "empty: give a name", 0, 0, VALUES_FILES };
/* Takes any name: choose_hash() in request.c knows which hashes there are. */
const struct value_type type_hash = { read_text, "empty: give a name", 0, 0, VALUES_HASHES };
const struct value_type type_kind = { read_kind_asked, "no such kind: there are", 0, 0,
                                      VALUES_KINDS };
const struct value_type type_preference = { read_preference,
                                            "not a preference: give fast or compact", 0, 0,
                                            VALUES_PREFERENCES };
const struct value_type type_key = { read_one_more, NULL, 0, 0, VALUES_NONE };
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
const struct value_type type_moment = { read_moment_asked,
                                        "not a time: give 'now', " MOMENT_EXPECTED, 0, 0,
                                        VALUES_NONE };
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
