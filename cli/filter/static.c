/* static.c - filters that are built once: their keys, values and others on the way to the
 * builder. */
#include "static.h"

#include <errno.h>
#include <perhaps_build.h>
#include <perhaps_live.h>
#include <perhaps_plan.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../base/stop.h"

/* Returns which key of a block has a length that the hash does not take. */
static size_t find_refused(const struct block *block, size_t takes)
{
    size_t i = 0;
    while (i + 1 < block->count && block->key[i].nbytes == takes)
        i++;
    return i;
}

/* Notes what the builder says to the keys of a block. */
static bool met(struct target *target, struct block *block, int error)
{
    if (error == PERHAPS_ERR_ARGUMENT)
        block->ndone = find_refused(block, perhaps_hash_takes(target->hashing.chosen.hash));
    else if (error == PERHAPS_ERR_IO)
        target->reason = errno;
    else if (!error)
        block->ndone = block->count;
    return block_met(block, error);
}

/* Reads a whole number.  Returns false for anything else, and for one above 'most'. */
static bool read_value(const struct perhaps_key *text, uint64_t most, uint32_t *value)
{
    const char *digits = text->bytes;
    uint64_t n = 0;
    for (size_t i = 0; i < text->nbytes; i++) {
        if (digits[i] < '0' || digits[i] > '9' || n > most)
            return false;
        n = 10 * n + (uint64_t)(digits[i] - '0');
    }
    *value = (uint32_t)n;
    return text->nbytes && n <= most;
}

/* Reads the values of all records, of so many bits.  Returns NULL if there is no memory, or a
 * value is wrong. */
static const uint32_t *read_values(const struct settings *settings, struct block *block,
                                   uint64_t nbits)
{
    uint32_t *value = room_for(&block->room[FOR_VERB], block->count, sizeof *value);
    struct key_form form = settings->form;
    const uint64_t field = settings->value_field;
    form.fields = (struct fields){ .count = 1, .range = { { field, field } } };
    form.ignore_case = false;
    if (!value)
        block_met(block, PERHAPS_ERR_MEMORY);
    for (size_t i = 0; value && i < block->count; i++) {
        struct perhaps_key text = block->record[i];
        if (line_narrow(&form, &text) &&
            read_value(&text, (UINT64_C(1) << nbits) - 1, &value[i]))
            continue;
        block->ndone = i;
        block->problem = "has no number in its --value-field, or one too large: values have up "
                         "to 16 bits, or as many as --kind ribbon:value-bits says";
        return NULL;
    }
    return value;
}

/* What a look at the values finds. */
struct values {
    const struct settings *settings;
    atomic_uint all; /* each bit that one of them has */
};

/* A stage, with a struct values: looks at the values of a block. */
static bool look_at_values(void *context, struct block *block)
{
    struct values *values = context;
    const uint32_t *value = read_values(values->settings, block, VALUE_BITS_MAX);
    for (size_t i = 0; value && i < block->count; i++)
        atomic_fetch_or(&values->all, value[i]);
    return value;
}

uint64_t static_value_bits(const struct settings *settings)
{
    struct values values = { .settings = settings };
    const struct stage stage = { .run = look_at_values, .context = &values };
    uint64_t nbits = 1;
    if (!settings->value_field || settings->kind.value_bits)
        return settings->kind.value_bits;
    if (input_find_pipe(settings))
        return VALUE_BITS_MAX;
    struct input *input = input_open(settings, "looking at values", false);
    input_look(input, &stage, 1);
    input_close(input);
    while (values.all >> nbits)
        nbits++;
    return nbits;
}

bool static_add(void *context, struct block *block)
{
    struct target *target = context;
    const struct settings *settings = target->settings;
    struct perhaps_keys keys = perhaps_keys_each(block->key, block->count);
    if (block->count == 0)
        return true;
    if (!settings->value_field)
        return met(target, block, perhaps_builder_add_many(target->builder, &keys));
    const uint32_t *value = read_values(settings, block, settings->kind.value_bits);
    return value &&
           met(target, block, perhaps_builder_add_values(target->builder, &keys, value));
}

bool static_watch(void *context, struct block *block)
{
    struct target *target = context;
    const struct settings *settings = target->settings;
    const char *folder = perhaps_builder_folder(target->builder);
    struct statvfs space;
    target->ngiven += block->count;
    if (target->told || !perhaps_builder_disk_nbytes(target->builder, target->ngiven))
        return true;
    target->told = true;
    if (folder && !statvfs(folder, &space) && !settings->quiet && !settings->json)
        complain("the keys do not fit in --memory and go to %s for a while; %s are free",
                 folder, scaled((double)space.f_bavail * (double)space.f_frsize, "B").s);
    return true;
}

static bool add_others(void *context, struct block *block)
{
    struct target *target = context;
    struct perhaps_keys keys = perhaps_keys_each(block->key, block->count);
    return block->count == 0 ||
           met(target, block, perhaps_builder_add_others(target->builder, &keys));
}

/* Returns settings in which the second list is the input. */
static struct settings settings_of_others(const struct settings *settings)
{
    struct settings others = *settings;
    others.inputs = (char **)&settings->against;
    others.ninputs = 1;
    others.extents = NULL; /* about how many they are is enough */
    others.keys.count = 0;
    others.capacity = 0;
    others.kind = (struct kind_asked){ 0 };
    return others;
}

/* Returns about how many keys the file of --against has; 0 if they cannot be counted first, or
 * groups count them. */
static uint64_t count_others(const struct settings *settings)
{
    struct settings others = settings_of_others(settings);
    if (!settings->against || settings->kind.others || settings->kind.group_nbytes)
        return settings->kind.others;
    struct size size = size_of_inputs(&others);
    return size.grows ? 0
                      : (size.capacity - 1000) / 5 * 4; /* without the room for later keys */
}

/* ---- The builder ------------------------------------------------------------------------ */

/* Draws the progress of the builder. */
static void show_building(void *context, uint64_t done, uint64_t total)
{
    struct target *target = context;
    const uint64_t hash_nbytes = 8;
    target->progress.total_nbytes = total * hash_nbytes;
    progress_show(&target->progress, false, 0, done * hash_nbytes);
}

/* Returns whether files can be made there; else sets errno. */
static bool is_writable_folder(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return false;
    errno = ENOTDIR;
    return S_ISDIR(st.st_mode) && access(path, W_OK | X_OK) == 0;
}

/* Returns whether a builder makes the filter, and plans it.  Keys that are all there at once
 * need not go to a kind that is built once: perhaps none can do what is asked. */
static bool plan_built(struct target *target, struct perhaps_options *options)
{
    const struct settings *settings = target->settings;
    const struct size any = { CAPACITY_TO_BEGIN_WITH, false }, size = size_asked(settings);
    const bool last = size_is_last(settings);
    struct perhaps_plan plan;
    if (!last && !request_is_static(settings))
        return false;
    request_plan(settings, size.capacity ? size : any, target->path, options, &plan);
    options->kind = plan.kind;
    bool once = kind_can(plan.kind, PERHAPS_CAN_BUILD);
    target->sized = last && !once;
    return last || once;
}

static void begin_builder(struct target *target, struct perhaps_options *options)
{
    const struct settings *settings = target->settings;
    const bool in_memory = settings->tmp && strcmp(settings->tmp, NO_FOLDER) == 0;
    const struct perhaps_build_options how = { .memory_nbytes = settings->memory_nbytes,
                                               .folder = in_memory ? NULL : settings->tmp,
                                               .leaves_room = request_stores_copies(settings),
                                               .in_memory = in_memory,
                                               .threads = (unsigned)input_nthreads(settings),
                                               .stopped = stop_asked,
                                               .progress = show_building,
                                               .context = target };
    if (how.folder && !is_writable_folder(how.folder))
        fail("--tmp %s: %s%s", how.folder, strerror(errno), target->outcome);
    hashing_choose(&target->hashing, settings);
    options->capacity = settings->capacity;
    options->hashing = target->hashing.chosen;
    target->options = *options;
    int error = perhaps_builder_create(options, &how, &target->builder);
    if (error)
        fail("%s: %s", target->path, why(error));
}

void static_begin(struct target *target)
{
    const uint64_t others = count_others(target->settings);
    const struct settings *settings = target->settings;
    struct perhaps_options options;
    if (plan_built(target, &options)) {
        if (!target->sized && !target->streams && perhaps_is_live(target->path))
            target_fail_live(target);
        options.against.others = others;
        begin_builder(target, &options);
        return;
    }
    if (settings->memory_nbytes || settings->tmp)
        fail("%s: is for keys that wait until all are there, as with --static or from a pipe "
             "without -n, --grow and the like: leave it out",
             settings->tmp ? "--tmp" : "--memory");
    target_create(target, size_of_inputs(settings));
}

void static_settle(const struct target *target, const struct input *input,
                   const struct block *last)
{
    errno = target->reason;
    if (target->builder && last->error == PERHAPS_ERR_IO)
        fail("%s: the temporary file in %s: %s: give another folder with --tmp, or more "
             "--memory%s",
             target->path, perhaps_builder_folder(target->builder), strerror(errno),
             target->outcome);
    if (target->builder && last->error == PERHAPS_ERR_FULL)
        fail("%s: %s came, more than the memory has room for: give more --memory, or a folder "
             "with "
             "--tmp for what does not fit%s",
             target->path, counted(perhaps_builder_keys(target->builder), "key").s,
             target->outcome);
    input_settle(input, last, target->outcome);
}

void static_add_others(struct target *target)
{
    struct settings others = settings_of_others(target->settings);
    const struct stage stage = { .run = add_others, .context = target };
    struct input *input = input_open(&others, "comparing", false);
    static_settle(target, input, input_run(input, &stage, 1));
    input_close(input);
}
