/* static.c - filters that are built once: their keys, values and others on the way to the
 * builder. */
#include "static.h"
#include <perhaps_plan.h>

#include <errno.h>
#include <string.h>

#include "disk.h"
#include "messages.h"
#include "numbers.h"

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

/* Reads the values of all records.  Returns NULL if there is no memory, or a value is wrong. */
static const uint32_t *read_values(const struct settings *settings, struct block *block)
{
    uint32_t *value = room_for(&block->room[FOR_VERB], block->count, sizeof *value);
    struct key_form form = settings->form;
    uint64_t field = settings->value_field;
    form.fields = (struct fields){ .count = 1, .range = { { field, field } } };
    form.ignore_case = false;
    if (!value)
        block_met(block, PERHAPS_ERR_MEMORY);
    for (size_t i = 0; value && i < block->count; i++) {
        struct perhaps_key text = block->record[i];
        if (line_narrow(&form, &text) &&
            read_value(&text, (UINT64_C(1) << settings->value_bits) - 1, &value[i]))
            continue;
        block->ndone = i;
        block->problem = "has no value in its --value-field, or one too large for --value-bits";
        return NULL;
    }
    return value;
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
    const uint32_t *value = read_values(settings, block);
    return value &&
           met(target, block, perhaps_builder_add_values(target->builder, &keys, value));
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
    others.kind = NULL;
    return others;
}

uint64_t static_count_others(const struct settings *settings)
{
    struct settings others = settings_of_others(settings);
    if (!settings->against || settings->against_count)
        return settings->against_count;
    struct size size = input_size(&others);
    return size.grows ? 0
                      : (size.capacity - 1000) / 5 * 4; /* without the room for later keys */
}

void static_settle(const struct target *target, const struct input *input,
                   const struct block *last)
{
    errno = target->reason;
    if (target->builder && last->error == PERHAPS_ERR_IO)
        disk_fail(target);
    if (target->builder && last->error == PERHAPS_ERR_FULL)
        disk_fail_without(target);
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
