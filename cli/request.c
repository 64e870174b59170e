/* request.c - turns the options of the command line into what the library takes.
 *
 * A kind is chosen by what it must be able to do, so that the verbs need not know the kinds.
 * Only --count and --integers name one: see counts_on and KIND_OF_INTEGERS. */
#include "request.h"
#include <perhaps_plan.h>

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "messages.h"
#include "note.h"
#include "numbers.h"

/* ---- What the library knows -------------------------------------------------------- */

bool kind_can(const char *name, unsigned abilities)
{
    const struct perhaps_kind *kind;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        if (strcmp(kind->name, name) == 0)
            return !(abilities & ~kind->abilities);
    return false;
}

bool planned_field(const struct perhaps_plan *plan, const char *name, uint64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < plan->nfields; i++)
        if (strcmp(plan->field_name[i], name) == 0) {
            *value = plan->field[i];
            return true;
        }
    return false;
}

bool counts_all(const perhaps_filter *filter)
{
    return perhaps_abilities_of(filter) & (PERHAPS_CAN_REMOVE | PERHAPS_CAN_BUILD);
}

bool can_store_copies(const struct perhaps_plan *plan)
{
    const char *kind = plan->base ? plan->base : plan->kind;
    return kind_can(kind, PERHAPS_CAN_REMOVE) && strcmp(kind, KIND_OF_INTEGERS) != 0 &&
           !kind_can(plan->kind, PERHAPS_CAN_FORGET);
}

/* Returns the probability that a new key is found to be new when 'keys' keys have come.  It is
 * never 0, since keys_that_came() divides by it. */
static double predicted_miss(const perhaps_filter *filter, double keys)
{
    const double least = 1e-9;
    return fmax(1 - perhaps_predict_fpr(filter, (uint64_t)keys), least);
}

/* Returns how many different keys have come, in expectation, if 'keys' of them set a bit.
 * After 'came' keys the next one sets a bit with the probability 1 - fpr(came), so
 *
 *     d came / d keys = 1 / (1 - fpr(came)),
 *
 * which is solved by the midpoint rule.  At low rates 8 steps will do.  Fewer are better: a
 * chain plans its layers again for each fpr. */
static double keys_that_came(const perhaps_filter *filter, uint64_t keys)
{
    const double mild = 0.9;
    const unsigned steps = predicted_miss(filter, (double)keys) > mild ? 8 : 64;
    double came = 0, step = (double)keys / steps;
    for (unsigned i = 0; i < steps && keys > 0; i++) {
        double half = came + step / 2 / predicted_miss(filter, came);
        came += step / predicted_miss(filter, half);
    }
    return came;
}

double expected_unseen(const perhaps_filter *filter, uint64_t before, uint64_t nnew)
{
    double came = keys_that_came(filter, before + nnew) - keys_that_came(filter, before);
    return fmax(came - (double)nnew, 0);
}

struct text bits_of(uint64_t capacity, uint64_t keys, uint64_t memory_nbytes)
{
    if (!keys || keys < capacity / 2)
        return (struct text){ "" };
    return text_of(", %s", scaled(8.0 * (double)memory_nbytes / (double)keys, " bits a key").s);
}

/* Returns whether the filter takes keys up to its capacity, and then no more. */
static bool has_limit(const struct perhaps_plan *plan)
{
    bool grows = plan->fpr_until > plan->capacity || kind_can(plan->kind, PERHAPS_CAN_FORGET);
    return !grows && !kind_can(plan->kind, PERHAPS_CAN_BUILD);
}

bool is_full(const struct perhaps_plan *plan, uint64_t keys)
{
    const uint64_t share = 200;
    return has_limit(plan) && strcmp(plan->kind, KIND_OF_INTEGERS) != 0 &&
           keys + plan->capacity / share >= plan->capacity;
}

struct text room_of(const struct perhaps_plan *plan, uint64_t keys)
{
    if (!has_limit(plan) || keys >= plan->capacity)
        return (struct text){ "" };
    return text_of(", room for %s more", counted(plan->capacity - keys, "key").s);
}

bool is_over(const struct perhaps_stats *stats)
{
    return stats->keys > stats->plan.fpr_until && stats->fpr_now > stats->plan.fpr;
}

struct text over_of(bool over, double fpr_now, double fpr)
{
    return over ? text_of("; the rate is now %s, above the %s", share(fpr_now).s, share(fpr).s)
                : (struct text){ "" };
}

/* ---- What is asked ----------------------------------------------------------------- */

/* The kind that takes any number of copies of a key, and can remove keys.  The other kinds that
 * count refuse the ninth copy. */
static const char counts_on[] = "counting";

bool request_window(const struct settings *settings)
{
    return settings->window.keys || settings->window.time;
}

/* Returns by what factor a window with many generations begins larger.  Each generation grows
 * by itself, in layers.  Without this factor many generations would begin smaller than the
 * usual 5, and would get more layers; and a query asks all layers of all generations. */
static uint64_t generations_to_usual(const struct settings *settings)
{
    const uint64_t usual = 5;
    return settings->generations > usual ? (settings->generations - 1) / (usual - 1) : 1;
}

/* A window of keys says itself how many there are; a window of time grows by itself. */
struct size request_size(const struct settings *settings)
{
    /* A state is for the lines of many runs, and nobody has told how many they are. */
    bool lasting = settings->state && !settings->capacity && request_may_grow(settings);
    bool grows = settings->grow || settings->until || settings->factor || lasting;
    struct size size = { settings->capacity, grows };
    if (!size.capacity && settings->integers.high)
        size.capacity = settings->integers.high - settings->integers.low + 1;
    if (!size.capacity)
        size.capacity = settings->window.keys;
    if (!size.capacity && (size.grows || settings->window.time))
        size.capacity = CAPACITY_TO_BEGIN_WITH * generations_to_usual(settings);
    return size;
}

bool request_is_static(const struct settings *settings)
{
    bool named = settings->kind && kind_can(settings->kind, PERHAPS_CAN_BUILD);
    return settings->verb->bit & (BUILD | PLAN) && !settings->integers.high &&
           (settings->fixed || named);
}

bool request_changes_later(const struct settings *s)
{
    return s->grow || s->until || s->factor || s->base || s->removable || s->counts ||
           s->integers.high ||
           (s->kind &&
            (kind_can(s->kind, PERHAPS_CAN_GROW) || kind_can(s->kind, PERHAPS_CAN_FORGET)));
}

bool request_stores_copies(const struct settings *s)
{
    return s->removable && !s->counts && !s->grow && !s->until && !s->factor && !s->base &&
           !s->integers.high &&
           !(s->kind &&
             (kind_can(s->kind, PERHAPS_CAN_GROW) || kind_can(s->kind, PERHAPS_CAN_FORGET)));
}

bool request_may_grow(const struct settings *settings)
{
    return !settings->integers.high &&
           (!settings->kind || kind_can(settings->kind, PERHAPS_CAN_GROW));
}

/* A window need not be a kind that grows, since its generations grow.  If --kind names a kind
 * that forgets, and nothing says when, it remembers as many keys as it has room for. */
struct perhaps_options request_options(const struct settings *settings, struct size size)
{
    bool window = request_window(settings);
    bool against = settings->against || settings->against_count;
    bool layers_count = settings->counts && !settings->base && (size.grows || window);
    const bool integers = settings->integers.high;
    bool untold = !window && settings->kind && kind_can(settings->kind, PERHAPS_CAN_FORGET);
    unsigned needs = (settings->removable ? PERHAPS_CAN_REMOVE : 0U) |
                     (settings->counts ? PERHAPS_CAN_COUNT : 0U) |
                     (request_is_static(settings) ? PERHAPS_CAN_BUILD : 0U) |
                     (window ? PERHAPS_CAN_FORGET : 0U) |
                     (size.grows && !window ? PERHAPS_CAN_GROW : 0U);
    enum perhaps_preference preference = settings->fast      ? PERHAPS_PREFER_FAST
                                         : settings->compact ? PERHAPS_PREFER_COMPACT
                                                             : PERHAPS_PREFER_BALANCED;
    return (struct perhaps_options){
        .capacity = size.capacity,
        .fpr = settings->fpr > 0              ? settings->fpr
               : integers                     ? 0
               : settings->verb->bit == DEDUP ? FPR_DEDUP
               : against                      ? FPR_AGAINST
                                              : FPR,
        .needs = needs,
        .kind = integers ? KIND_OF_INTEGERS : settings->kind,
        .base = layers_count ? counts_on : settings->base,
        .chain.factor = (unsigned)settings->factor,
        .elastic.fpr_until = settings->until,
        .against.others = settings->against_count,
        .ribbon.value_bits = (unsigned)settings->value_bits,
        .window = untold ? (struct perhaps_window_options){ .keys = size.capacity }
                         : settings->window,
        .preference = preference,
        .blocked.together = settings->together,
        .bitmap = settings->integers,
    };
}

/* Returns false if --count would get a kind that refuses the ninth copy of a key, though
 * neither --kind nor --base asks for that kind. */
static bool counts_far(const struct settings *settings, const struct perhaps_plan *plan)
{
    return !settings->counts || settings->kind || settings->base ||
           strcmp(plan->base ? plan->base : plan->kind, counts_on) == 0;
}

/* Returns whether the kind that was planned does what --base, --factor, --together and --count
 * ask for.  The library ignores options that are for other kinds, but a user wants to hear of
 * it. */
static bool heeds(const struct settings *settings, const struct perhaps_plan *plan)
{
    uint64_t value;
    bool layers = !settings->factor || request_window(settings);
    bool together = !settings->together || planned_field(plan, "together", &value);
    return (!settings->base || plan->base) && together && counts_far(settings, plan) &&
           (layers || planned_field(plan, "factor", &value));
}

/* Plans the kinds with this ability, or without it, in turn until one does all that is asked
 * and reaches the rate, and sets options->kind to it.  Returns 0; or the first error that says
 * more than that a kind cannot do it; or PERHAPS_ERR_UNSUPPORTED. */
static int choose_kind_that(unsigned can_build, const struct settings *settings,
                            struct perhaps_options *options, struct perhaps_plan *plan)
{
    const struct perhaps_kind *kind;
    const unsigned forget = options->needs & PERHAPS_CAN_FORGET;
    int error = PERHAPS_ERR_UNSUPPORTED;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++) {
        if ((kind->abilities & PERHAPS_CAN_FORGET) != forget ||
            (kind->abilities & PERHAPS_CAN_BUILD) != can_build ||
            strcmp(kind->name, KIND_OF_INTEGERS) == 0)
            continue; /* a kind that forgets is only for --window, one only for --integers */
        options->kind = kind->name;
        int met = perhaps_plan_for(options, plan);
        if (!met && heeds(settings, plan))
            return 0;
        if (met && error == PERHAPS_ERR_UNSUPPORTED)
            error = met;
    }
    options->kind = NULL;
    return error;
}

/* Chooses a kind: the one that the library chooses, if it heeds all options, or else the first
 * one that does; for --static first of those that are built once. */
static int choose_kind(const struct settings *settings, struct perhaps_options *options,
                       struct perhaps_plan *plan)
{
    const unsigned build = options->needs & PERHAPS_CAN_BUILD;
    int error = perhaps_plan_for(options, plan);
    if (!error && heeds(settings, plan)) {
        options->kind = plan->kind;
        return 0;
    }
    error = choose_kind_that(build, settings, options, plan);
    return error && build ? choose_kind_that(0, settings, options, plan) : error;
}

/* Ends the program because no filter reaches the rate.  Names one that can be reached. */
static _Noreturn void fail_rate(const struct settings *settings,
                                const struct perhaps_options *options, const char *name)
{
    struct perhaps_options higher = *options;
    struct perhaps_plan plan;
    do
        higher.fpr *= 2;
    while (higher.fpr < 1 && perhaps_plan_for(&higher, &plan) == PERHAPS_ERR_LIMIT);
    const struct text rate = text_of("%g", higher.fpr);
    if (higher.fpr >= 1)
        fail("%s: %s", name, why(PERHAPS_ERR_LIMIT));
    if (settings->value_bits)
        fail(
            "--value-bits %ju: leaves too few bits for a rate of %g: give fewer bits, or -p %s",
            (uintmax_t)settings->value_bits, options->fpr, rate.s);
    if (settings->kind)
        fail("-p %g: is too low for --kind %s: give -p %s, or leave out --kind", options->fpr,
             settings->kind, rate.s);
    fail("-p %g: no kind that does all that is asked reaches that: give -p %s", options->fpr,
         rate.s);
}

/* Ends the program because no filter can be planned.  Names the option that is most likely the
 * cause, and what to do. */
static _Noreturn void fail_plan(const struct settings *settings,
                                const struct perhaps_options *options, const char *name,
                                int error)
{
    const char *kind = settings->kind;
    bool unsupported = error == PERHAPS_ERR_UNSUPPORTED;
    if (unsupported && settings->integers.high)
        fail("--integers: such a filter cannot count, and it cannot grow: leave out --count, "
             "--grow, --until and --factor");
    if (kind && request_window(settings) && !kind_can(kind, PERHAPS_CAN_FORGET))
        fail("--kind %s: cannot forget: leave it out, and say with --base what the window is "
             "made of",
             kind);
    if (settings->base && (error == PERHAPS_ERR_ARGUMENT || unsupported))
        fail("--base %s: no filter with all that is asked can be made of it: leave it out, or "
             "leave out an option such as --removable, --count or --grow",
             settings->base);
    if (unsupported && kind && kind_can(kind, PERHAPS_CAN_BUILD))
        fail("--kind %s: is built once, from all keys: make it with 'perhaps build', without "
             "--removable, --count or --grow",
             kind);
    if (unsupported && kind)
        fail("--kind %s: cannot do all that is asked: leave it out, or leave out an option "
             "such as --removable, --count or --grow",
             kind);
    if ((unsupported || error == PERHAPS_ERR_ARGUMENT) && settings->together)
        fail("--together: is only for filters of a fixed size to which keys are added: leave "
             "it out, or leave out --grow, --until, --count and the like and give -n N");
    if (unsupported)
        fail("%s: no kind can do all that is asked: leave out an option such as --removable, "
             "--count or --grow%s",
             name,
             options->needs & PERHAPS_CAN_GROW
                 ? " (without --grow, plan for the most keys there may be)"
                 : "");
    if (error == PERHAPS_ERR_LIMIT)
        fail_rate(settings, options, name);
    fail("%s: %s", name, why(error));
}

void request_plan(const struct settings *settings, struct size size, const char *name,
                  struct perhaps_options *options, struct perhaps_plan *plan)
{
    *options = request_options(settings, size);
    int error =
        options->kind ? perhaps_plan_for(options, plan) : choose_kind(settings, options, plan);
    if (error)
        fail_plan(settings, options, name, error);
    if (!heeds(settings, plan))
        fail("--kind %s: is not made of %s", options->kind,
             settings->base       ? "other filters: leave out --base"
             : settings->together ? "lines of bits: leave out --together"
                                  : "layers: leave out --factor");
}

/* ---- The file of a secret ---------------------------------------------------------- */

#define HEX_NBYTES ((size_t)2 * SECRET_NBYTES)

/* Reads up to 'room' bytes.  Returns how many, or -1 (errno). */
static ssize_t read_file(const char *path, char *buffer, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t got = read(fd, buffer, room);
    int saved = errno;
    close(fd);
    errno = saved;
    return got;
}

/* Reads 32 hexadecimal digits.  Returns false if the text begins with fewer or more. */
static bool read_hex(const char *text, uint8_t secret[SECRET_NBYTES])
{
    if (strspn(text, "0123456789abcdefABCDEF") != HEX_NBYTES)
        return false;
    for (size_t i = 0; i < SECRET_NBYTES; i++) {
        unsigned byte;
        sscanf(text + 2 * i, "%2x", &byte);
        secret[i] = (uint8_t)byte;
    }
    return true;
}

/* Ends the program if a new key file could not be made at 'path'.  It is better to know that
 * before the filter is built than after. */
static void check_place(const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0)
        fail("%s: is a link to nothing: name the file itself", path);
    char *copy = strdup(path);
    bool writable = copy && access(dirname(copy), W_OK | X_OK) == 0;
    free(copy);
    if (!writable)
        fail("%s: cannot be made: %s", path, strerror(errno));
}

/* Reads a file with 16 bytes, or with 32 hexadecimal digits that a newline may follow.  Returns
 * false if there is no such file; any other problem ends the program. */
static bool read_secret(const char *path, uint8_t secret[SECRET_NBYTES])
{
    char text[HEX_NBYTES + 4];
    ssize_t got = read_file(path, text, sizeof text - 1);
    if (got < 0 && errno == ENOENT)
        return false;
    if (got < 0)
        fail("%s: %s", path, strerror(errno));
    text[got] = '\0';
    if (got == SECRET_NBYTES) {
        memcpy(secret, text, SECRET_NBYTES);
        return true;
    }
    if (got > 0 && text[got - 1] == '\n')
        text[--got] = '\0';
    if (got != (ssize_t)HEX_NBYTES || !read_hex(text, secret))
        fail("%s: not a key file: it must hold 16 bytes or 32 hex digits", path);
    return true;
}

/* Makes sure that the name of a new file is still there after a crash of the system.  EINVAL:
 * this file system cannot sync folders. */
static bool sync_folder(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool ok = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    if (fd >= 0)
        close(fd);
    free(copy);
    return ok;
}

/* Makes a file that only its owner can read, and syncs it.  Returns false (errno) if it fails,
 * and then leaves no new file; an existing file is an error and stays as it is. */
static bool write_file(const char *path, const char *text, size_t nbytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = write(fd, text, nbytes) == (ssize_t)nbytes && fsync(fd) == 0;
    ok = close(fd) == 0 && ok && sync_folder(path);
    if (!ok)
        unlink(path);
    return ok;
}

/* ---- The hash ---------------------------------------------------------------------- */

/* Returns the hash that the options ask for; sip if only --key-file is given.  Ends the program
 * if they contradict each other. */
static enum perhaps_hash choose_hash(const struct settings *settings)
{
    const enum perhaps_hash usual = settings->key_file ? PERHAPS_HASH_SIP : PERHAPS_HASH_XXH3;
    const char *name = settings->hash ? settings->hash : perhaps_hash_name(usual);
    enum perhaps_hash hash = PERHAPS_HASH_XXH3;
    while (hash < PERHAPS_HASH_COUNT && strcmp(perhaps_hash_name(hash), name) != 0)
        hash++;
    if (hash == PERHAPS_HASH_COUNT || hash == PERHAPS_HASH_CUSTOM)
        fail("--hash %s: no such hash: there are xxh3, xxh3-64, sip, none and none-64", name);
    if (hash == PERHAPS_HASH_SIP && !settings->key_file)
        fail("--hash sip: needs a secret, to ask the filter later: give --key-file K, which is "
             "made if it does not exist");
    if (hash != PERHAPS_HASH_SIP && settings->key_file)
        fail("--hash %s: takes no secret: leave out --key-file", name);
    if (hash != PERHAPS_HASH_XXH3 && hash != PERHAPS_HASH_XXH3_64 && settings->seed)
        fail("--hash %s: takes no seed: leave out --seed", name);
    return hash;
}

/* Verbs that only look at a filter, or join two, hash no key. */
bool needs_secret(const struct settings *settings)
{
    return !(settings->verb->bit & (INFO | VERIFY | MERGE | INTERSECT | COMPARE | RECOUNT |
                                    SHRINK | CHECKPOINT | BACKUP));
}

void hashing_choose(struct hashing *hashing, const struct settings *settings)
{
    *hashing = (struct hashing){ .settings = settings,
                                 .chosen.hash = choose_hash(settings),
                                 .chosen.seed = settings->seed };
    if (!note_write(&settings->form, hashing->note))
        fail("--field: too many to be noted with the filter: write ranges, such as 3-9");
    hashing->chosen.note = hashing->note;
    if (!settings->key_file)
        return;
    hashing->chosen.secret = hashing->secret;
    hashing->made = !read_secret(settings->key_file, hashing->secret);
    if (!hashing->made)
        return;
    check_place(settings->key_file);
    if (getentropy(hashing->secret, sizeof hashing->secret) != 0)
        fail("no random bytes: %s", strerror(errno));
}

void hashing_read(struct hashing *hashing, const struct settings *settings)
{
    *hashing = (struct hashing){ .settings = settings };
    if (!settings->key_file)
        return;
    hashing->chosen.secret = hashing->secret;
    if (!read_secret(settings->key_file, hashing->secret))
        fail("%s: %s", settings->key_file, strerror(errno));
}

void hashing_keep(const struct hashing *hashing)
{
    char text[HEX_NBYTES + 2];
    for (size_t i = 0; i < SECRET_NBYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", hashing->secret[i]);
    text[HEX_NBYTES] = '\n';
    if (hashing->made && !write_file(hashing->settings->key_file, text, HEX_NBYTES + 1))
        fail("%s: %s", hashing->settings->key_file, strerror(errno));
}

void hashing_tell(const struct hashing *hashing)
{
    const struct settings *settings = hashing->settings;
    if (hashing->made && !settings->quiet && !settings->json)
        complain("%s: made with a new secret: keep this file: without it nobody can ask the "
                 "filter",
                 settings->key_file);
}

void hashing_drop(const struct hashing *hashing)
{
    if (hashing->made)
        unlink(hashing->settings->key_file);
}

void hashing_check(const struct settings *settings, const char *name, const char *hash)
{
    if (settings->key_file && settings->filters.count < 2 && strcmp(hash, "sip") != 0)
        fail("--key-file: %s was made without a secret: leave it out", name);
}

void hashing_fail(const struct settings *settings, const char *name)
{
    if (settings->key_file)
        fail("%s: %s is not the key file that it was built with", name, settings->key_file);
    fail("%s: was built with a secret: give it with --key-file", name);
}
