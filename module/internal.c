/* internal.c - what goes to replicas and into the AOF beside the commands of users.
 *
 *     PERHAPS.CREATE key BF|CF secret capacity fpr expansion reserved window bucket iterations
 *         makes an empty filter: the secret as 32 hex digits, the window in ms
 *     PERHAPS.ADVANCE key ms
 *         moves a window on to this time
 *
 * Both do the same on every server, whatever its settings and its clock. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "replies.h"
#include "running.h"
#include "settings.h"
#include "words.h"

static const char *const family_names[] = { [FAMILY_BLOOM] = "BF", [FAMILY_CUCKOO] = "CF" };

/* ---- Create ------------------------------------------------------------------------------ */

/* Replicates that the filter of an open key was made, with all parameters and the secret. */
static void create_replicate(RedisModuleCtx *ctx, const struct opened *o)
{
    struct wish wish;
    uint8_t secret[SECRET_NBYTES];
    char hex[2 * SECRET_NBYTES + 1], fpr[32];
    own_describe(o->filter, &wish, secret);
    for (size_t i = 0; i < SECRET_NBYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", secret[i]);
    snprintf(fpr, sizeof fpr, "%.17g", wish.fpr);
    server.Replicate(ctx, "PERHAPS.CREATE", "scclclllll", o->name, family_names[wish.family],
                     hex, (long long)wish.capacity, fpr, (long long)wish.expansion,
                     (long long)wish.reserved, (long long)wish.window_ms,
                     (long long)wish.bucket_size, (long long)wish.max_iterations);
    explicit_bzero(secret, sizeof secret);
    explicit_bzero(hex, sizeof hex);
}

bool key_create(RedisModuleCtx *ctx, struct opened *o, const struct wish *wish)
{
    int error;
    void *filter = own_create(wish, NULL, &error);
    if (!filter) {
        tally.refusals++;
        server.ReplyWithError(ctx, error == PERHAPS_ERR_MEMORY ? NO_MEMORY
                                                               : "ERR could not create filter");
        return false;
    }
    key_set(o, wish->family == FAMILY_BLOOM ? &own_bloom : &own_cuckoo, filter);
    create_replicate(ctx, o);
    return true;
}

static bool read_hex(const RedisModuleString *word, uint8_t secret[SECRET_NBYTES])
{
    static const char digits[] = "0123456789abcdef";
    struct perhaps_key text = word_item(word);
    if (text.nbytes != 2 * (size_t)SECRET_NBYTES)
        return false;
    for (size_t i = 0; i < text.nbytes; i++) {
        char c = ((const char *)text.bytes)[i];
        const char *digit = c ? strchr(digits, c) : NULL;
        if (!digit)
            return false;
        secret[i / 2] = (uint8_t)(secret[i / 2] << 4 | (digit - digits));
    }
    return true;
}

static bool read_family(const RedisModuleString *word, enum family *family)
{
    *family = word_is(word, family_names[FAMILY_CUCKOO]) ? FAMILY_CUCKOO : FAMILY_BLOOM;
    return word_is(word, family_names[*family]);
}

/* Reads the words behind the key. */
static bool read_wish(RedisModuleString **words, struct wish *wish,
                      uint8_t secret[SECRET_NBYTES])
{
    long long capacity, expansion, reserved, window_ms, bucket_size, max_iterations;
    if (!read_family(words[0], &wish->family) || !read_hex(words[1], secret) ||
        !word_number(words[2], 1, CAPACITY_MOST, &capacity) ||
        !word_real(words[3], &wish->fpr) || !(wish->fpr >= 0 && wish->fpr < 1) ||
        !word_number(words[4], 0, EXPANSION_MOST, &expansion) ||
        !word_number(words[5], 0, 1, &reserved) ||
        !word_number(words[6], 0, INT64_MAX, &window_ms) ||
        !word_number(words[7], 0, BUCKET_MOST, &bucket_size) ||
        !word_number(words[8], 0, ITERATIONS_MOST, &max_iterations))
        return false;
    wish->capacity = (uint64_t)capacity;
    wish->expansion = (unsigned)expansion;
    wish->reserved = reserved;
    wish->window_ms = (uint64_t)window_ms;
    wish->bucket_size = (unsigned)bucket_size;
    wish->max_iterations = (unsigned)max_iterations;
    return true;
}

int perhaps_create_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    struct wish wish;
    uint8_t secret[SECRET_NBYTES] = { 0 };
    int error = 0;
    if (argc != 11)
        return server.WrongArity(ctx);
    if (!read_wish(argv + 2, &wish, secret))
        return server.ReplyWithError(ctx, "ERR invalid description of a filter");
    struct opened o = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, wish.family);
    void *filter = o.found == KEY_MISSING ? own_create(&wish, secret, &error) : NULL;
    if (filter) {
        key_set(&o, wish.family == FAMILY_BLOOM ? &own_bloom : &own_cuckoo, filter);
        server.ReplicateVerbatim(ctx);
        key_changed(ctx, &o, "perhaps.create");
        server.ReplyWithSimpleString(ctx, "OK");
    } else if (o.found == KEY_OTHER) {
        server.ReplyWithError(ctx, WRONGTYPE);
    } else {
        server.ReplyWithError(ctx, error == PERHAPS_ERR_MEMORY ? NO_MEMORY
                                   : error                     ? "ERR could not create filter"
                                                               : EXISTS);
    }
    explicit_bzero(secret, sizeof secret);
    key_close(&o);
    return SERVER_OK;
}

/* ---- Windows ----------------------------------------------------------------------------- */

bool is_window(const struct opened *o)
{
    return o->form == &own_bloom && own_window_ms(o->filter);
}

uint64_t window_present(const struct opened *o)
{
    return is_window(o) ? (uint64_t)server.Milliseconds() : 0;
}

/* Logs once that a clock was ahead when something was added: the window forgets nothing until
 * it is there again. */
static void tell_ahead(RedisModuleCtx *ctx, const struct opened *o, uint64_t now_ms)
{
    struct own *own = o->filter;
    size_t nbytes;
    if (own->told || !own_is_ahead(own, now_ms))
        return;
    own->told = true;
    server.Log(ctx, "warning",
               "perhaps: the newest time of the window '%s' is %llu ms, and the clock shows "
               "%llu: it forgets nothing until then; if the clock is right, bring it back by "
               "PERHAPS.ADVANCE with the key and that time",
               server.StringPtrLen(o->name, &nbytes), (unsigned long long)own->began_ms,
               (unsigned long long)now_ms);
}

bool window_to_present(RedisModuleCtx *ctx, const struct opened *o)
{
    if (!is_window(o))
        return false;
    if (running_now() != RUNNING_COMMAND)
        return true;
    uint64_t now_ms = (uint64_t)server.Milliseconds();
    tell_ahead(ctx, o, now_ms);
    if (own_advance(o->filter, now_ms))
        server.Replicate(ctx, "PERHAPS.ADVANCE", "sl", o->name, (long long)now_ms);
    return true;
}

/* Moves a window to a time that somebody names; or that the master or the AOF does, which is
 * done as it stands.  Else a time far ahead of the clock is refused, which would take years to
 * be forgotten; and a window that is ahead is not brought back further than to the clock, by
 * which it would then forget all.  Returns false if the time is refused. */
static bool move_window(RedisModuleCtx *ctx, const struct opened *o, uint64_t to_ms)
{
    const uint64_t now_ms = (uint64_t)server.Milliseconds();
    const bool replayed = running_now() != RUNNING_COMMAND;
    const uint64_t back_ms = replayed || to_ms > now_ms ? to_ms : now_ms;
    if (!replayed && to_ms > now_ms && to_ms - now_ms > own_window_ms(o->filter))
        return false;
    if (own_advance(o->filter, to_ms))
        server.Replicate(ctx, "PERHAPS.ADVANCE", "sl", o->name, (long long)to_ms);
    else if (own_set_back(o->filter, back_ms))
        server.Replicate(ctx, "PERHAPS.ADVANCE", "sl", o->name, (long long)back_ms);
    else
        return true;
    key_changed(ctx, o, "perhaps.advance");
    return true;
}

int perhaps_advance_command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    long long to_ms;
    if (argc != 3)
        return server.WrongArity(ctx);
    if (!word_number(argv[2], 1, INT64_MAX, &to_ms))
        return server.ReplyWithError(ctx, "ERR invalid time: it is milliseconds since 1970");
    struct opened o = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, FAMILY_BLOOM);
    if (!key_refused(ctx, &o, NOT_FOUND)) {
        if (is_window(&o) && !move_window(ctx, &o, (uint64_t)to_ms))
            server.ReplyWithError(ctx, "ERR the time is further ahead of the server's clock "
                                       "than the window is long");
        else
            server.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(&o);
    return SERVER_OK;
}
