/* options.c - reads the third argument of perhaps_build(): words with blanks or commas between
 * them. */
#include <stdlib.h>
#include <string.h>

#include "extension.h"
#include <perhaps_plan.h>

static bool read_decimal(const char *text, uint64_t *number)
{
    uint64_t n = 0;
    if (!*text)
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        unsigned digit = (unsigned)(*text - '0');
        if (n > (UINT64_MAX - digit) / 10)
            return false;
        n = 10 * n + digit;
    }
    *number = n;
    return !*text;
}

/* Takes the name from the registry, where it stays. */
static bool read_kind_name(const char *text, const char **name)
{
    const struct perhaps_kind *kind;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        if (!strcmp(kind->name, text)) {
            *name = kind->name;
            return true;
        }
    return false;
}

static bool read_option(const char *word, struct choices *choices)
{
    struct perhaps_options *o = &choices->options;
    if (!strncmp(word, "capacity=", 9))
        return read_decimal(word + 9, &o->capacity) && o->capacity > 0 &&
               o->capacity <= PERHAPS_CAPACITY_MAX;
    if (!strncmp(word, "seed=", 5))
        return read_decimal(word + 5, &o->hashing.seed) && o->hashing.seed > 0;
    if (!strncmp(word, "kind=", 5))
        return read_kind_name(word + 5, &o->kind);
    if (!strcmp(word, "secret")) {
        choices->secret = true;
        return true;
    }
    if (!strcmp(word, "static"))
        o->needs |= PERHAPS_CAN_BUILD;
    else if (!strcmp(word, "removable"))
        o->needs |= PERHAPS_CAN_REMOVE;
    else if (!strcmp(word, "count"))
        o->needs |= PERHAPS_CAN_COUNT;
    else if (!strcmp(word, "grow"))
        o->needs |= PERHAPS_CAN_GROW;
    else
        return false;
    return true;
}

/* A builder takes for granted that no key comes later, and would choose a kind for that.  So
 * where nothing tells another kind, it is asked for one that can be merged: these take keys
 * later, too.  Returns false if the needs contradict each other. */
static bool complete_needs(struct perhaps_options *o)
{
    const unsigned changes = PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT | PERHAPS_CAN_GROW;
    if (o->needs & PERHAPS_CAN_BUILD && o->needs & changes)
        return false;
    if (!o->kind && !(o->needs & (PERHAPS_CAN_BUILD | PERHAPS_CAN_GROW)))
        o->needs |= PERHAPS_CAN_MERGE;
    return true;
}

/* A BLOB is copied whenever it is read.  So a small filter that is just a set, and is told how
 * many keys it is for, is of the kind that takes the fewest bytes, an eighth to a third fewer.
 * A question takes 10 ns longer, which is nothing beside the row.  (In a large one it would
 * take several misses of the cache.) */
static void choose_kind(struct perhaps_options *o)
{
    enum { SMALL_KEYS = 1000 };
    if (!o->kind && o->needs == PERHAPS_CAN_MERGE && o->capacity && o->capacity <= SMALL_KEYS)
        o->kind = "bloom";
}

bool read_choices(sqlite3_context *context, const char *function, const char *text,
                  struct choices *choices)
{
    char word[64];
    while (*text) {
        size_t nbytes = strcspn(text, ", ");
        if (nbytes >= sizeof word) {
            fail(context, function, "an option is too long: %s", text);
            return false;
        }
        memcpy(word, text, nbytes);
        word[nbytes] = '\0';
        if (nbytes && !read_option(word, choices)) {
            fail(context, function,
                 "no option '%s': capacity=NUMBER, seed=NUMBER, kind=NAME, static, removable, "
                 "count, grow, secret",
                 word);
            return false;
        }
        text += nbytes;
        text += strspn(text, ", ");
    }
    bool sound = complete_needs(&choices->options);
    choose_kind(&choices->options);
    if (!sound)
        fail(context, function, "'static' goes with neither 'removable', 'count' nor 'grow'");
    return sound;
}
