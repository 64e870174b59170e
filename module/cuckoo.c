/* cuckoo.c - the CF.* commands.  Their replies and errors are RedisBloom's (doc/MODULE.md). */
#include <stdio.h>

#include "commands.h"
#include "internal.h"
#include "items.h"
#include "own.h"
#include "replies.h"
#include "settings.h"
#include "words.h"

#define CAPACITY_RANGE "Capacity must be in the range [2 * BUCKETSIZE, 1099511627776]"
#define INSERT_RANGE   "Capacity must be in the range [cf-bucket-size * 2, 1099511627776]"
#define UNKNOWN        "Unknown argument received"

/* ---- Make -------------------------------------------------------------------------------- */

/* What the first add to a missing key makes. */
static struct wish usual_wish(void)
{
    return (struct wish){ .family = FAMILY_CUCKOO,
                          .capacity = (uint64_t)settings.cf_initial_size,
                          .expansion = (unsigned)settings.cf_expansion_factor,
                          .bucket_size = (unsigned)settings.cf_bucket_size,
                          .max_iterations = (unsigned)settings.cf_max_iterations };
}

/* An option of CF.RESERVE that is a whole number. */
static const struct option {
    const char *word, *bad, *range;
    long long least, most;
} options[] = {
    { "BUCKETSIZE", "Couldn't parse BUCKETSIZE",
      "BUCKETSIZE: value must be in the range [1, 255]", 1, BUCKET_MOST },
    { "MAXITERATIONS", "Couldn't parse MAXITERATIONS",
      "MAXITERATIONS: value must be in the range [1, 65535]", 1, ITERATIONS_MOST },
    { "EXPANSION", "Couldn't parse EXPANSION",
      "EXPANSION: value must be in the range [0, 32768]", 0, EXPANSION_MOST },
};
enum { OPTIONS = sizeof options / sizeof *options };

/* Reads one pair of words.  Returns NULL or the text of an error. */
static const char *read_option(RedisModuleString **pair, struct wish *wish)
{
    unsigned *const values[OPTIONS] = { &wish->bucket_size, &wish->max_iterations,
                                        &wish->expansion };
    long long value;
    for (size_t i = 0; i < OPTIONS; i++)
        if (word_is(pair[0], options[i].word)) {
            if (!word_number(pair[1], INT64_MIN, INT64_MAX, &value))
                return options[i].bad;
            if (value < options[i].least || value > options[i].most)
                return options[i].range;
            *values[i] = (unsigned)value;
            return NULL;
        }
    if (!word_is(pair[0], "ERROR"))
        return UNKNOWN;
    if (!word_real(pair[1], &wish->fpr))
        return "Couldn't parse ERROR";
    return wish->fpr > 0 && wish->fpr < 1
               ? NULL
               : "ERROR: value must be in the range (0.000000, 1.000000)";
}

int cf_reserve(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct wish wish = usual_wish();
    const char *error = NULL;
    long long capacity;
    if (argc < 3 || argc % 2 == 0)
        return server.WrongArity(ctx);
    if (!word_number(argv[2], INT64_MIN, INT64_MAX, &capacity))
        return server.ReplyWithError(ctx, "Bad capacity");
    for (int i = 3; i < argc && !error; i += 2)
        error = read_option(argv + i, &wish);
    if (!error && (capacity < 2LL * wish.bucket_size || capacity > CAPACITY_MOST))
        error = CAPACITY_RANGE;
    if (error)
        return server.ReplyWithError(ctx, error);
    wish.capacity = (uint64_t)capacity;
    wish.reserved = true;
    struct opened o = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, FAMILY_CUCKOO);
    if (o.found == KEY_OTHER) {
        server.ReplyWithError(ctx, WRONGTYPE);
    } else if (o.found != KEY_MISSING) {
        server.ReplyWithError(ctx, EXISTS);
    } else if (key_create(ctx, &o, &wish)) {
        key_changed(ctx, &o, "cf.reserve");
        server.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(&o);
    return SERVER_OK;
}

/* ---- Add --------------------------------------------------------------------------------- */

static const char *text_of_error(int error)
{
    switch (error) {
    case PERHAPS_ERR_MEMORY:
        return "ERR Insufficient memory";
    case PERHAPS_ERR_LAYERS:
        return "Maximum expansions reached";
    case PERHAPS_ERR_COPIES:
        return "ERR no room for one more copy of this item, of which 8 are the most";
    default:
        return "Filter is full";
    }
}

/* What the commands reply. */
enum style {
    ONE,          /* a bool, or an error */
    MANY,         /* an array: 1 and -1, of bools in RESP3 */
    MANY_INTEGERS /* an array: 1, 0 and -1 in both protocols */
};

static void reply_added(RedisModuleCtx *ctx, const struct adding *a, enum style style)
{
    bool as_bool = style == ONE || (style == MANY && server.GetContextFlags(ctx) & CTX_RESP3);
    if (style != ONE)
        server.ReplyWithArray(ctx, (long)a->n);
    for (size_t i = 0; i < a->n; i++)
        if (a->is_refused[i] && style == ONE)
            server.ReplyWithError(ctx, text_of_error(a->error));
        else if (as_bool)
            reply_bool(ctx, !a->is_refused[i] && !a->was_present[i]);
        else
            server.ReplyWithLongLong(ctx, a->is_refused[i] ? -1 : !a->was_present[i]);
}

static int add_words(RedisModuleCtx *ctx, RedisModuleString **argv, RedisModuleString **words,
                     size_t n, const struct wish *wish, const struct manner *m,
                     enum style style)
{
    struct adding a;
    struct opened o = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, FAMILY_CUCKOO);
    bool creates = o.found == KEY_MISSING && wish;
    if ((creates || !key_refused(ctx, &o, NOT_FOUND)) && add_begin(ctx, &a, words, n)) {
        if (!creates || key_create(ctx, &o, wish)) {
            add_run(ctx, &o, &a, m);
            add_replicate(ctx, &o, &a, argv, style != ONE, creates, m);
            reply_added(ctx, &a, style);
        }
        add_end(&a);
    }
    key_close(&o);
    return SERVER_OK;
}

static int add_item(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                    const struct manner *m)
{
    const struct wish wish = usual_wish();
    bool was_present;
    if (argc != 3)
        return server.WrongArity(ctx);
    struct opened o = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, FAMILY_CUCKOO);
    if (o.found != KEY_FOUND) {
        key_close(&o);
        return add_words(ctx, argv, argv + 2, 1, &wish, m, ONE);
    }
    int error = add_single(ctx, &o, argv[2], m, &was_present);
    if (error)
        server.ReplyWithError(ctx, text_of_error(error));
    else
        reply_bool(ctx, !was_present);
    key_close(&o);
    return SERVER_OK;
}

int cf_add(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return add_item(ctx, argv, argc, &(struct manner){ .event = "cf.add" });
}

int cf_addnx(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return add_item(ctx, argv, argc,
                    &(struct manner){ .unless_present = true, .event = "cf.addnx" });
}

/* key [CAPACITY c] [NOCREATE] ITEMS item... */
static int insert_items(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                        const struct manner *m, enum style style)
{
    struct wish wish = usual_wish();
    bool nocreate = false;
    long long capacity;
    int i = 2;
    if (argc < 4)
        return server.WrongArity(ctx);
    for (; i < argc && !word_is(argv[i], "ITEMS"); i++)
        if (word_is(argv[i], "NOCREATE")) {
            nocreate = true;
        } else if (word_is(argv[i], "CAPACITY")) {
            if (++i == argc)
                return server.WrongArity(ctx);
            if (!word_number(argv[i], INT64_MIN, INT64_MAX, &capacity))
                return server.ReplyWithError(ctx, "Bad capacity");
            if (capacity < 2 * settings.cf_bucket_size || capacity > CAPACITY_MOST)
                return server.ReplyWithError(ctx, INSERT_RANGE);
            wish.capacity = (uint64_t)capacity;
            wish.reserved = true;
        } else {
            return server.ReplyWithError(ctx, UNKNOWN);
        }
    if (i + 1 >= argc)
        return server.WrongArity(ctx);
    return add_words(ctx, argv, argv + i + 1, (size_t)(argc - i - 1), nocreate ? NULL : &wish,
                     m, style);
}

int cf_insert(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return insert_items(ctx, argv, argc,
                        &(struct manner){ .goes_on = true, .event = "cf.insert" }, MANY);
}

int cf_insertnx(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return insert_items(
        ctx, argv, argc,
        &(struct manner){ .unless_present = true, .goes_on = true, .event = "cf.insertnx" },
        MANY_INTEGERS);
}

/* ---- Ask, count, remove ------------------------------------------------------------------ */

int cf_exists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return ask(ctx, argv, argc, FAMILY_CUCKOO, false);
}

int cf_mexists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return ask(ctx, argv, argc, FAMILY_CUCKOO, true);
}

int cf_count(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc != 3)
        return server.WrongArity(ctx);
    struct opened o = key_open(ctx, argv[1], MODE_READ, FAMILY_CUCKOO);
    if (o.found == KEY_INCOMPLETE) {
        server.ReplyWithError(ctx, INCOMPLETE);
    } else {
        struct perhaps_key item = word_item(argv[2]);
        reply_number(ctx, o.found == KEY_FOUND ? o.form->count(o.filter, &item) : 0);
    }
    key_close(&o);
    return SERVER_OK;
}

int cf_del(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc != 3)
        return server.WrongArity(ctx);
    struct opened o = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, FAMILY_CUCKOO);
    if (o.found == KEY_INCOMPLETE) {
        server.ReplyWithError(ctx, INCOMPLETE);
    } else if (o.found != KEY_FOUND) {
        server.ReplyWithError(ctx, "Not found");
    } else {
        struct perhaps_key item = word_item(argv[2]);
        bool removed = o.form->remove(o.filter, &item);
        if (removed) {
            server.ReplicateVerbatim(ctx);
            key_changed(ctx, &o, "cf.del");
        }
        reply_bool(ctx, removed);
    }
    key_close(&o);
    return SERVER_OK;
}

int cf_compact(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc != 2)
        return server.WrongArity(ctx);
    struct opened o = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, FAMILY_CUCKOO);
    if (o.found == KEY_MISSING || o.found == KEY_OTHER) {
        server.ReplyWithError(ctx, "Cuckoo filter was not found");
    } else if (!key_refused(ctx, &o, NULL)) {
        if (o.form->compact) { /* ours have nothing to gain */
            o.form->compact(o.filter);
            server.ReplicateVerbatim(ctx);
            key_changed(ctx, &o, "cf.compact");
        }
        server.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(&o);
    return SERVER_OK;
}

/* ---- Tell -------------------------------------------------------------------------------- */

static uint64_t expansion_of(const struct info *info)
{
    return info->expansion < 0 ? 0 : (uint64_t)info->expansion;
}

static void reply_info(RedisModuleCtx *ctx, const struct info *info, bool all)
{
    const struct {
        const char *name;
        uint64_t value;
    } fields[] = {
        { "Size", info->size_nbytes },
        { "Number of buckets", info->buckets },
        { "Number of filters", info->filters },
        { "Number of items inserted", info->items },
        { "Number of items deleted", info->deleted },
        { "Bucket size", info->bucket_size },
        { "Expansion rate", expansion_of(info) },
        { "Max iterations", info->max_iterations },
    };
    enum { FIELDS = sizeof fields / sizeof *fields };
    reply_map(ctx, FIELDS + (all ? more_fields(info) : 0));
    for (size_t i = 0; i < FIELDS; i++) {
        reply_name(ctx, fields[i].name);
        reply_number(ctx, fields[i].value);
    }
    if (all)
        reply_more(ctx, info);
}

static void reply_info_known(RedisModuleCtx *ctx, const struct info *info)
{
    reply_info(ctx, info, false);
}

static void reply_info_all(RedisModuleCtx *ctx, const struct info *info)
{
    reply_info(ctx, info, true);
}

static void reply_debug(RedisModuleCtx *ctx, const struct info *info)
{
    char text[256];
    snprintf(text, sizeof text,
             "bktsize:%u buckets:%llu items:%llu deletes:%llu filters:%llu max_iterations:%u "
             "expansion:%llu",
             info->bucket_size, (unsigned long long)info->buckets,
             (unsigned long long)info->items, (unsigned long long)info->deleted,
             (unsigned long long)info->filters, info->max_iterations,
             (unsigned long long)expansion_of(info));
    reply_text(ctx, text);
}

static int reply_about(RedisModuleCtx *ctx, RedisModuleString *key,
                       void (*reply)(RedisModuleCtx *ctx, const struct info *info))
{
    struct info info;
    struct opened o = key_open(ctx, key, MODE_READ, FAMILY_CUCKOO);
    if (!key_refused(ctx, &o, NOT_FOUND)) {
        o.form->info(o.filter, &info);
        reply(ctx, &info);
    }
    key_close(&o);
    return SERVER_OK;
}

int cf_info(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc == 3 && word_is(argv[2], "ALL"))
        return reply_about(ctx, argv[1], reply_info_all);
    return argc == 2 ? reply_about(ctx, argv[1], reply_info_known) : server.WrongArity(ctx);
}

int cf_debug(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return argc == 2 ? reply_about(ctx, argv[1], reply_debug) : server.WrongArity(ctx);
}
