/* bloom.c - the BF.* commands.  Their replies and errors are RedisBloom's (doc/MODULE.md). */
#include <stdio.h>

#include "commands.h"
#include "internal.h"
#include "items.h"
#include "own.h"
#include "replies.h"
#include "running.h"
#include "settings.h"
#include "valkey.h"
#include "words.h"

#define CAPACITY_RANGE  "ERR capacity must be in the range [1, 1099511627776]"
#define EXPANSION_RANGE "ERR expansion must be in the range [0, 32768]"
#define UNKNOWN         "Unknown argument received"

#define TIGHTENING_USUAL .5 /* of valkey-bloom's filters */

/* ---- Make -------------------------------------------------------------------------------- */

static struct wish usual_wish(void)
{
    return (struct wish){ .family = FAMILY_BLOOM,
                          .capacity = (uint64_t)settings.bf_initial_size,
                          .fpr = settings.bf_error_rate,
                          .expansion = (unsigned)settings.bf_expansion_factor };
}

/* Each returns NULL, or the text of an error. */

static const char *read_rate(const RedisModuleString *word, struct wish *wish, const char *bad,
                             const char *range)
{
    if (!word_real(word, &wish->fpr))
        return bad;
    return wish->fpr > 0 && wish->fpr < 1 ? NULL : range;
}

static const char *read_capacity(const RedisModuleString *word, struct wish *wish,
                                 const char *bad, const char *range)
{
    long long capacity;
    if (!word_number(word, INT64_MIN, INT64_MAX, &capacity))
        return bad;
    wish->capacity = (uint64_t)capacity;
    return capacity >= 1 && capacity <= CAPACITY_MOST ? NULL : range;
}

static const char *read_expansion(const RedisModuleString *word, struct wish *wish,
                                  const char *bad, const char *range)
{
    long long expansion;
    if (!word_number(word, INT64_MIN, INT64_MAX, &expansion))
        return bad;
    wish->expansion = (unsigned)expansion;
    return expansion >= 0 && expansion <= EXPANSION_MOST ? NULL : range;
}

/* Reads [EXPANSION e] [NONSCALING] [WINDOW duration], in any order.  An expansion out of its
 * range is told last. */
static const char *read_options(RedisModuleString **words, int n, struct wish *wish)
{
    static const char expansion_range[] = EXPANSION_RANGE;
    bool nonscaling = false, expands = false;
    const char *error = NULL, *range = NULL;
    for (int i = 0; i < n && !error; i++)
        if (word_is(words[i], "NONSCALING")) {
            nonscaling = true;
        } else if (word_is(words[i], "EXPANSION")) {
            error = ++i < n
                        ? read_expansion(words[i], wish, "ERR bad expansion", expansion_range)
                        : "ERR no expansion";
            expands = error || wish->expansion > 0;
            if (error == expansion_range) {
                range = error;
                error = NULL;
            }
        } else if (word_is(words[i], "WINDOW")) {
            if (++i == n || !word_duration(words[i], &wish->window_ms))
                error = "ERR bad window: a duration such as 500ms, 90s, 15m, 24h or 7d";
        } else {
            error = UNKNOWN;
        }
    if (!error && nonscaling && expands)
        error = "Nonscaling filters cannot expand";
    if (!error)
        error = range;
    if (!error && nonscaling && wish->window_ms)
        error = "ERR a window always scales";
    if (nonscaling)
        wish->expansion = 0;
    return error;
}

int bf_reserve(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct wish wish = usual_wish();
    if (argc < 4)
        return server.WrongArity(ctx);
    const char *error = read_rate(argv[2], &wish, "ERR bad error rate", RATE_RANGE);
    if (!error)
        error = read_capacity(argv[3], &wish, "ERR bad capacity", CAPACITY_RANGE);
    if (!error)
        error = read_options(argv + 4, argc - 4, &wish);
    if (error)
        return server.ReplyWithError(ctx, error);
    struct opened o = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, FAMILY_BLOOM);
    if (o.found == KEY_OTHER) {
        server.ReplyWithError(ctx, WRONGTYPE);
    } else if (o.found != KEY_MISSING) {
        server.ReplyWithError(ctx, EXISTS);
    } else if (key_create(ctx, &o, &wish)) {
        key_changed(ctx, &o, "bf.reserve");
        server.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(&o);
    return SERVER_OK;
}

/* ---- Add --------------------------------------------------------------------------------- */

static const char *text_of_error(const struct opened *o, int error)
{
    struct info info;
    if (error != PERHAPS_ERR_FULL)
        return "ERR problem inserting into filter";
    o->form->info(o->filter, &info);
    return info.expansion < 0 ? "ERR non scaling filter is full"
                              : "ERR problem inserting into filter";
}

/* Replies for each item whether it is new; a refused one ends the array. */
static void reply_added(RedisModuleCtx *ctx, const struct opened *o, const struct adding *a,
                        bool many)
{
    if (many)
        server.ReplyWithArray(ctx, (long)a->done);
    for (size_t i = 0; i < a->done; i++)
        if (a->is_refused[i])
            server.ReplyWithError(ctx, text_of_error(o, a->error));
        else
            reply_bool(ctx, !a->was_present[i]);
}

/* Adds these words to the filter of an open key, which a missing one gets as 'wish' says (NULL:
 * not at all). */
static int add_words(RedisModuleCtx *ctx, RedisModuleString **argv, RedisModuleString **words,
                     size_t n, const struct wish *wish, bool many, const char *event)
{
    const struct manner manner = { .unless_present = true, .event = event };
    const bool is_insert = words > argv + 2;
    struct adding a;
    struct opened o = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, FAMILY_BLOOM);
    bool creates = o.found == KEY_MISSING && wish;
    if ((creates || !key_refused(ctx, &o, NOT_FOUND)) && add_begin(ctx, &a, words, n)) {
        if (!creates || key_create(ctx, &o, wish)) {
            add_run(ctx, &o, &a, &manner);
            add_replicate(ctx, &o, &a, argv, is_insert, creates, &manner);
            reply_added(ctx, &o, &a, many);
        }
        add_end(&a);
    }
    key_close(&o);
    return SERVER_OK;
}

int bf_add(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    const struct manner manner = { .unless_present = true, .event = "bf.add" };
    const struct wish wish = usual_wish();
    bool was_present;
    if (argc != 3)
        return server.WrongArity(ctx);
    struct opened o = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, FAMILY_BLOOM);
    if (o.found != KEY_FOUND || is_window(&o)) {
        key_close(&o);
        return add_words(ctx, argv, argv + 2, 1, &wish, false, manner.event);
    }
    int error = add_single(ctx, &o, argv[2], &manner, &was_present);
    if (error)
        server.ReplyWithError(ctx, text_of_error(&o, error));
    else
        reply_bool(ctx, !was_present);
    key_close(&o);
    return SERVER_OK;
}

int bf_madd(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    const struct wish wish = usual_wish();
    if (argc < 3)
        return server.WrongArity(ctx);
    return add_words(ctx, argv, argv + 2, (size_t)argc - 2, &wish, true, "bf.madd");
}

/* What BF.INSERT is told. */
struct insert {
    struct wish wish;
    bool nocreate, nonscaling, scales_to;
    bool is_cut;      /* an option has no value, or ITEMS has no items */
    const char *seed; /* 32 bytes: it makes a filter in valkey-bloom's form; NULL */
    double tightening;
    RedisModuleString **items;
    size_t n;
};

static const char *read_seed(const RedisModuleString *word, struct insert *in)
{
    const struct perhaps_key seed = word_item(word);
    in->seed = seed.bytes;
    return seed.nbytes == VALKEYBLOOM_SEED_NBYTES ? NULL : "ERR invalid seed";
}

/* Read what valkey-bloom's filters may have; what is more than ours may is refused when it is
 * known that there is no seed. */

static const char *read_insert_expansion(const RedisModuleString *word, struct insert *in)
{
    long long expansion;
    if (!word_number(word, 0, UINT32_MAX, &expansion))
        return "Bad expansion";
    in->wish.expansion = (unsigned)expansion;
    return NULL;
}

static const char *read_insert_capacity(const RedisModuleString *word, uint64_t *to)
{
    long long capacity;
    if (!word_number(word, 1, INT64_MAX, &capacity))
        return "Bad capacity";
    *to = (uint64_t)capacity;
    return NULL;
}

static const char *read_tightening(const RedisModuleString *word, struct insert *in)
{
    if (!word_real(word, &in->tightening))
        return "ERR bad tightening ratio";
    return in->tightening > 0 && in->tightening < 1 ? NULL
                                                    : "ERR (0 < tightening ratio range < 1)";
}

/* Reads an option of BF.INSERT and its value.  The caller refuses one without a value.
 * The last three are valkey-bloom's. */
static const char *read_insert_option(RedisModuleString **pair, bool has_value,
                                      struct insert *in)
{
    uint64_t scale_to;
    if (word_is(pair[0], "CAPACITY"))
        return has_value ? read_insert_capacity(pair[1], &in->wish.capacity) : NULL;
    if (word_is(pair[0], "ERROR"))
        return has_value ? read_rate(pair[1], &in->wish, "Bad error rate", "Bad error rate")
                         : NULL;
    if (word_is(pair[0], "EXPANSION"))
        return has_value ? read_insert_expansion(pair[1], in) : NULL;
    if (word_is(pair[0], "SEED"))
        return has_value ? read_seed(pair[1], in) : NULL;
    if (word_is(pair[0], "TIGHTENING"))
        return has_value ? read_tightening(pair[1], in) : NULL;
    if (!word_is(pair[0], "VALIDATESCALETO"))
        return UNKNOWN;
    in->scales_to = true;
    return has_value ? read_insert_capacity(pair[1], &scale_to) : NULL;
}

/* Reads all words behind the key, up to ITEMS and what follows.  Unlike in BF.RESERVE,
 * NONSCALING wins over an EXPANSION. */
static const char *read_insert(RedisModuleString **words, int n, struct insert *in)
{
    const char *error = NULL;
    int i = 0;
    for (; i < n && !error && !word_is(words[i], "ITEMS"); i++)
        if (word_is(words[i], "NOCREATE")) {
            in->nocreate = true;
        } else if (word_is(words[i], "NONSCALING")) {
            in->nonscaling = true;
        } else {
            error = read_insert_option(words + i, i + 1 < n, in);
            i++;
        }
    if (in->nonscaling)
        in->wish.expansion = 0;
    if (!error && in->scales_to && in->nonscaling)
        error = "ERR cannot use NONSCALING and VALIDATESCALETO options together";
    in->is_cut = i != n && i + 1 >= n;
    if (i + 1 < n) {
        in->items = words + i + 1;
        in->n = (size_t)(n - i - 1);
    }
    return error;
}

/* Tells what a filter of ours cannot have, as valkey-bloom's can.  Returns NULL or the text of
 * an error. */
static const char *beyond_ours(const struct insert *in)
{
    return in->wish.capacity > CAPACITY_MOST     ? "Bad capacity"
           : in->wish.expansion > EXPANSION_MOST ? "Bad expansion"
           : in->tightening > 0 ? "ERR TIGHTENING is of filters with a SEED, which are "
                                  "valkey-bloom's"
                                : NULL;
}

/* Returns whether the options are refused, having replied.  Those of a filter that is there do
 * not count: so they are not looked at in what a master with valkey-bloom, or its AOF, sends,
 * where each filter is made with a seed; that would leave out the items behind them. */
static bool refuses(RedisModuleCtx *ctx, const struct insert *in)
{
    const char *error = in->seed ? NULL : beyond_ours(in);
    if (!error)
        return false;
    running_command(ctx);
    const bool must_be_done = running_now() != RUNNING_COMMAND;
    running_end();
    if (!must_be_done)
        server.ReplyWithError(ctx, error);
    return !must_be_done;
}

/* Makes a filter in valkey-bloom's form, unless the key is there.  Returns false if it has
 * replied: with an error, or that no items were added. */
static bool make_seeded(RedisModuleCtx *ctx, RedisModuleString **argv, const struct insert *in)
{
    const struct valkeybloom_wish wish = { .capacity = in->wish.capacity,
                                           .fpr = in->wish.fpr,
                                           .tightening = in->tightening > 0 ? in->tightening
                                                                            : TIGHTENING_USUAL,
                                           .expansion = in->wish.expansion,
                                           .seed = in->seed };
    struct opened o = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, FAMILY_BLOOM);
    bool goes_on =
        o.found != KEY_MISSING || in->nocreate || valkey_create(ctx, &o, argv[0], &wish);
    if (goes_on && !in->n) {
        goes_on = false;
        if (!key_refused(ctx, &o, NOT_FOUND))
            server.ReplyWithArray(ctx, 0);
    }
    key_close(&o);
    return goes_on;
}

int bf_insert(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct insert in = { .wish = usual_wish() };
    if (argc < 4)
        return server.WrongArity(ctx);
    const char *error = read_insert(argv + 2, argc - 2, &in);
    if (error)
        return server.ReplyWithError(ctx, error);
    if (in.is_cut || (!in.n && !in.seed))
        return server.WrongArity(ctx);
    if (refuses(ctx, &in))
        return SERVER_OK;
    if (in.seed && !make_seeded(ctx, argv, &in))
        return SERVER_OK;
    return add_words(ctx, argv, in.items, in.n, in.nocreate || in.seed ? NULL : &in.wish, true,
                     "bf.insert");
}

/* ---- Ask --------------------------------------------------------------------------------- */

int bf_exists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return ask(ctx, argv, argc, FAMILY_BLOOM, false);
}

int bf_mexists(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return ask(ctx, argv, argc, FAMILY_BLOOM, true);
}

/* ---- Tell -------------------------------------------------------------------------------- */

static void reply_expansion(RedisModuleCtx *ctx, const struct info *info)
{
    if (info->expansion < 0)
        server.ReplyWithNull(ctx);
    else
        reply_number(ctx, (uint64_t)info->expansion);
}

static const char *const info_names[] = { "Capacity",          "Size",
                                          "Number of filters", "Number of items inserted",
                                          "Expansion rate",    "Error rate asked" };
static const char *const info_words[] = { "CAPACITY", "SIZE",      "FILTERS",
                                          "ITEMS",    "EXPANSION", "ERROR" };
enum { INFO_KNOWN = 5, INFO_FIELDS }; /* those that RedisBloom has; with ERROR, which is ours */

static void reply_field(RedisModuleCtx *ctx, const struct info *info, size_t field)
{
    const uint64_t values[] = { info->capacity, info->size_nbytes, info->filters, info->items };
    if (field == INFO_KNOWN)
        server.ReplyWithDouble(ctx, info->fpr_asked);
    else if (field == INFO_KNOWN - 1)
        reply_expansion(ctx, info);
    else
        reply_number(ctx, values[field]);
}

/* Replies with RedisBloom's fields, since clients know no others; and with 'all' by ours,
 * too. */
static void reply_info(RedisModuleCtx *ctx, const struct info *info, bool all)
{
    reply_map(ctx, INFO_KNOWN + (all ? more_fields(info) : 0));
    for (size_t i = 0; i < INFO_KNOWN; i++) {
        reply_name(ctx, info_names[i]);
        reply_field(ctx, info, i);
    }
    if (all)
        reply_more(ctx, info);
}

int bf_info(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    size_t field = 0;
    struct info info;
    if (argc < 2 || argc > 3)
        return server.WrongArity(ctx);
    const bool all = argc == 3 && word_is(argv[2], "ALL"), one = argc == 3 && !all;
    while (one && field < INFO_FIELDS && !word_is(argv[2], info_words[field]))
        field++;
    struct opened o = key_open(ctx, argv[1], MODE_READ, FAMILY_BLOOM);
    if (key_refused(ctx, &o, NOT_FOUND)) {
        ;
    } else if (field == INFO_FIELDS) {
        server.ReplyWithError(ctx, "Invalid information value");
    } else {
        o.form->info(o.filter, &info);
        if (one) {
            reply_one(ctx, info_names[field]);
            reply_field(ctx, &info, field);
        } else {
            reply_info(ctx, &info, all);
        }
    }
    key_close(&o);
    return SERVER_OK;
}

int bf_card(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    if (argc != 2)
        return server.WrongArity(ctx);
    struct opened o = key_open(ctx, argv[1], MODE_READ, FAMILY_BLOOM);
    if (o.found == KEY_MISSING)
        reply_number(ctx, 0);
    else if (!key_refused(ctx, &o, NOT_FOUND))
        reply_number(ctx, o.form->items(o.filter));
    key_close(&o);
    return SERVER_OK;
}

/* The line of BF.DEBUG behind those that RedisBloom has. */
static void reply_debug_of_ours(RedisModuleCtx *ctx, const struct info *info)
{
    char text[256];
    snprintf(text, sizeof text,
             "bits_per_item:%.4g error_rate:%g error_rate_now:%.4g window_ms:%llu hash:%s",
             info->bits_per_item, info->fpr_asked, info->fpr_now,
             (unsigned long long)info->window_ms, info->hash);
    reply_text(ctx, text);
}

int bf_debug(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct layer layer;
    struct info info;
    char text[256];
    if (argc != 2)
        return server.WrongArity(ctx);
    struct opened o = key_open(ctx, argv[1], MODE_READ, FAMILY_BLOOM);
    if (!key_refused(ctx, &o, NOT_FOUND)) {
        long count = 0;
        server.ReplyWithArray(ctx, POSTPONED_LEN);
        snprintf(text, sizeof text, "size:%llu", (unsigned long long)o.form->items(o.filter));
        reply_text(ctx, text);
        for (; o.form->layer(o.filter, (size_t)count, &layer); count++) {
            snprintf(text, sizeof text,
                     "bytes:%llu bits:%llu hashes:%u hashwidth:64 capacity:%llu size:%llu "
                     "ratio:%g",
                     (unsigned long long)layer.nbytes, (unsigned long long)layer.bits,
                     layer.hashes, (unsigned long long)layer.capacity,
                     (unsigned long long)layer.items, layer.ratio);
            reply_text(ctx, text);
        }
        o.form->info(o.filter, &info);
        reply_debug_of_ours(ctx, &info);
        server.ReplySetArrayLength(ctx, count + 2);
    }
    key_close(&o);
    return SERVER_OK;
}
