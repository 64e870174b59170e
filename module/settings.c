/* settings.c - what CONFIG SET and the arguments of the module set.
 *
 * The names are RedisBloom's.  A server before Redis 8 puts the module's name before them:
 * bf.bf-error-rate. */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

#define ERROR_RATE_MOST .25 /* of the default; a filter may be reserved with more */
#define SIZE_MOST       (1LL << 30)

struct settings settings = { .bf_error_rate = .01 };

static const struct number {
    const char *name;
    const char *old_name; /* as an argument of older versions; may be NULL */
    long long *value;
    long long usual, least, most;
} numbers[] = {
    { "bf-initial-size", "INITIAL_SIZE", &settings.bf_initial_size, 100, 1, SIZE_MOST },
    { "bf-expansion-factor", NULL, &settings.bf_expansion_factor, 2, 0, EXPANSION_MOST },
    { "cf-bucket-size", NULL, &settings.cf_bucket_size, 2, 1, BUCKET_MOST },
    { "cf-initial-size", NULL, &settings.cf_initial_size, 1024, 4, SIZE_MOST },
    { "cf-max-iterations", NULL, &settings.cf_max_iterations, 20, 1, ITERATIONS_MOST },
    { "cf-expansion-factor", NULL, &settings.cf_expansion_factor, 1, 0, EXPANSION_MOST },
    { "cf-max-expansions", "CF_MAX_EXPANSIONS", &settings.cf_max_expansions, 32, 1, 65536 },
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };
static const char rate_name[] = "bf-error-rate", rate_old_name[] = "ERROR_RATE";

static RedisModuleString *text_of(const char *text)
{
    return server.CreateString(NULL, text, strlen(text));
}

/* The server asks for a text and does not release it. */
static RedisModuleString *told(const char *text)
{
    static RedisModuleString *last;
    if (last)
        server.FreeString(NULL, last);
    return last = text_of(text);
}

static RedisModuleString *get_number(const char *name, void *context)
{
    const struct number *number = context;
    char text[32];
    (void)name;
    snprintf(text, sizeof text, "%lld", *number->value);
    return told(text);
}

static int set_number(const char *name, RedisModuleString *word, void *context,
                      RedisModuleString **error)
{
    const struct number *number = context;
    long long value;
    char text[128];
    (void)name; /* with the module's name before it, or without */
    if (!word_number(word, INT64_MIN, INT64_MAX, &value))
        snprintf(text, sizeof text, "Invalid value for `%s`", number->name);
    else if (value < number->least || value > number->most)
        snprintf(text, sizeof text, "Value for `%s` must be in the range [%lld, %lld]",
                 number->name, number->least, number->most);
    else {
        *number->value = value;
        return SERVER_OK;
    }
    *error = text_of(text);
    return SERVER_ERR;
}

/* With as many digits as tell it from all others: CONFIG REWRITE writes it down. */
static RedisModuleString *get_rate(const char *name, void *context)
{
    char text[32];
    (void)name;
    (void)context;
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, settings.bf_error_rate);
        if (strtod(text, NULL) == settings.bf_error_rate)
            break;
    }
    return told(text);
}

static int set_rate(const char *name, RedisModuleString *word, void *context,
                    RedisModuleString **error)
{
    double rate;
    char text[128];
    (void)name;
    (void)context;
    if (!word_real(word, &rate))
        snprintf(text, sizeof text, "Invalid value for `%s`", rate_name);
    else if (!(rate > 0 && rate < 1))
        snprintf(text, sizeof text, "Value for `%s` must be in the range (0.000000, 1.000000)",
                 rate_name);
    else {
        settings.bf_error_rate = rate < ERROR_RATE_MOST ? rate : ERROR_RATE_MOST;
        return SERVER_OK;
    }
    *error = text_of(text);
    return SERVER_ERR;
}

/* Registers the settings with these flags.  All are texts to the server, so that what is said
 * of a wrong one is what RedisBloom says. */
static int register_with(RedisModuleCtx *ctx, unsigned flags)
{
    int error = SERVER_OK;
    char usual[32];
    for (size_t i = 0; i < NUMBERS && !error; i++) {
        snprintf(usual, sizeof usual, "%lld", numbers[i].usual);
        error = server.RegisterStringConfig(ctx, numbers[i].name, usual, flags, get_number,
                                            set_number, NULL, (void *)&numbers[i]);
    }
    return error ? error
                 : server.RegisterStringConfig(ctx, rate_name, "0.01", flags, get_rate,
                                               set_rate, NULL, NULL);
}

/* Registers the settings, if the server has such a thing.  Redis 8 calls them as RedisBloom
 * does, without the module's name.  Valkey counts its versions anew, and gives that flag
 * another meaning or none. */
static int register_all(RedisModuleCtx *ctx)
{
    if (!server.RegisterStringConfig || !server.LoadConfigs)
        return SERVER_OK;
    bool plain =
        !server.is_valkey && server.GetServerVersion && server.GetServerVersion() >= 0x080000;
    int error = plain ? register_with(ctx, CONFIG_UNPREFIXED) : SERVER_ERR;
    if (error)
        error = register_with(ctx, CONFIG_DEFAULT);
    /* the server unloads a module that has registered settings and does not load them */
    return server.LoadConfigs(ctx) || error ? SERVER_ERR : SERVER_OK;
}

/* Sets one setting by a pair of arguments. */
static int set_by_argument(RedisModuleString *name, RedisModuleString *value,
                           RedisModuleString **error)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        const struct number *n = &numbers[i];
        if (word_is(name, n->name) || (n->old_name && word_is(name, n->old_name)))
            return set_number(n->name, value, (void *)n, error);
    }
    if (word_is(name, rate_name) || word_is(name, rate_old_name))
        return set_rate(rate_name, value, NULL, error);
    *error =
        text_of("unknown argument: the names are those of CONFIG GET bf.*, each followed by "
                "its value");
    return SERVER_ERR;
}

int settings_load(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    RedisModuleString *error = NULL;
    for (size_t i = 0; i < NUMBERS; i++)
        *numbers[i].value = numbers[i].usual;
    /* no reason not to load: filters need none of them, and arguments set them as well */
    if (register_all(ctx) != SERVER_OK)
        server.Log(ctx, "warning",
                   "perhaps: this server registers no settings: CONFIG SET cannot change them, "
                   "but the arguments of loadmodule can");
    for (int i = 0; i < argc; i += 2)
        if (i + 1 == argc) {
            server.Log(ctx, "warning", "perhaps: the last argument has no value");
            return SERVER_ERR;
        } else if (set_by_argument(argv[i], argv[i + 1], &error) != SERVER_OK) {
            size_t nbytes;
            server.Log(ctx, "warning", "perhaps: %s: %s", server.StringPtrLen(argv[i], &nbytes),
                       server.StringPtrLen(error, &nbytes));
            server.FreeString(ctx, error);
            return SERVER_ERR;
        }
    return SERVER_OK;
}
