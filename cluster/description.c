/* description.c - writes and reads the description of a filter, field by field.
 *
 * A value is checked when it is read.  The geometry of a layer is the one exception:
 * perhaps_layout_restore() checks it before anything is done with it. */
#include "description.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

/* A later version of perhaps changes this if clients of this version must stay away. */
static const char version[] = "1";

const char *const state_name[STATES] = { "creating", "ready", "deleting" };

const char description_unfinished[] =
    "somebody was making or deleting it: 'perhaps delete' it if nobody is any more";

static const char strange[] =
    "its description is not one that this version of perhaps understands: use a newer one";

const char counts_marker[] = "of";

const char counts_problem[] =
    "the counts of its keys were removed or replaced, or make no sense: 'perhaps recount' it";

void description_field(char field[FIELD_NBYTES], const char *what, unsigned layer)
{
    snprintf(field, FIELD_NBYTES, "%s.%u", what, layer % PERHAPS_LAYERS_MAX);
}

void description_layer(char text[LAYER_NBYTES], const struct layer_description *layer)
{
    const struct perhaps_description *d = &layer->layout;
    char fpr[SHARE_NBYTES];
    share_write(d->fpr, fpr);
    int n = snprintf(text, LAYER_NBYTES,
                     "kind=%s capacity=%ju fpr=%s partitions=%ju fields=", d->kind,
                     (uintmax_t)d->capacity, fpr, (uintmax_t)layer->partitions);
    for (unsigned i = 0; i < PERHAPS_FIELDS_MAX; i++)
        n += snprintf(text + n, LAYER_NBYTES - (size_t)n, "%s%ju", i ? "," : "",
                      (uintmax_t)d->field[i]);
}

/* ---- Writing --------------------------------------------------------------------------- */

/* Writes the name of a field, and its value. */
static void put_field(struct resp *out, const char *field, const char *value)
{
    resp_text(out, field);
    resp_text(out, value);
}

static void put_field_number(struct resp *out, const char *field, uint64_t number)
{
    resp_text(out, field);
    resp_number(out, number);
}

unsigned description_nargs(const struct description *d)
{
    return 2 * (12U + d->counted + (*d->note != 0));
}

void description_write(const struct description *d, struct resp *out)
{
    char fpr[SHARE_NBYTES], check[20], layer[LAYER_NBYTES];
    share_write(d->fpr, fpr);
    snprintf(check, sizeof check, "%016jx", (uintmax_t)d->check);
    description_layer(layer, &d->layer[0]);
    put_field(out, "layout", version);
    put_field(out, "id", d->id);
    put_field(out, "state", state_name[d->state]);
    put_field_number(out, "created", d->created);
    put_field_number(out, "capacity", d->capacity);
    put_field(out, "fpr", fpr);
    put_field_number(out, "factor", d->factor);
    put_field_number(out, "preference", d->preference);
    put_field(out, "hash", perhaps_hash_name(d->hash));
    put_field_number(out, "seed", d->seed);
    put_field(out, "check", check);
    put_field(out, "layer.0", layer);
    if (d->counted)
        put_field(out, "counted", "1");
    if (*d->note)
        put_field(out, "note", d->note);
}

/* ---- Reading --------------------------------------------------------------------------- */

/* The functions below return whether a value is what it should be. */

/* Reads a number in decimal or hexadecimal.  strtoull() would also take signs and blanks. */
static bool number_of(const char *text, int base, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, base);
    return isxdigit((unsigned char)*text) && *end == '\0' && errno == 0;
}

/* No growth factor, and no preference, is larger. */
enum { FACTOR_MOST = 32768, PREFERENCE_MOST = 8 };

static bool small_of(const char *text, unsigned most, unsigned *number)
{
    uint64_t n;
    bool valid = number_of(text, 10, &n) && n <= most;
    *number = valid ? (unsigned)n : 0;
    return valid;
}

/* A rate of 0 or 1 is none that a filter can have. */
static bool share_of(const char *text, double *share)
{
    return share_read(text, strlen(text), share) && *share > 0 && *share < 1;
}

/* Returns the index of a name among n names, or n if it is none of them. */
static unsigned find_name(const char *const *names, unsigned n, const char *name)
{
    unsigned i = 0;
    while (i < n && strcmp(names[i], name) != 0)
        i++;
    return i;
}

/* Finds a hash by the name that the library gives it. */
static bool hash_of(const char *text, enum perhaps_hash *hash)
{
    const char *name;
    for (*hash = PERHAPS_HASH_XXH3; (name = perhaps_hash_name(*hash)); (*hash)++)
        if (strcmp(name, text) == 0)
            return true;
    return false;
}

/* Control characters would do harm to terminals. */
static bool note_of(const char *text, char note[PERHAPS_NOTE_MAX + 1])
{
    const char delete = 127;
    for (const char *at = text; *at; at++)
        if ((uint8_t)*at < ' ' || *at == delete)
            return false;
    return snprintf(note, PERHAPS_NOTE_MAX + 1, "%s", text) <= PERHAPS_NOTE_MAX;
}

/* Reads the fields of a geometry: exactly PERHAPS_FIELDS_MAX numbers with commas between. */
static bool read_fields(const char *text, struct perhaps_description *d)
{
    for (unsigned i = 0; i < PERHAPS_FIELDS_MAX; i++) {
        int length = 0;
        char digits[24];
        if (sscanf(text, "%20[0-9]%n", digits, &length) != 1 ||
            !number_of(digits, 10, &d->field[i]))
            return false;
        text += length;
        if (*text++ != (i + 1 < PERHAPS_FIELDS_MAX ? ',' : '\0'))
            return false;
    }
    return true;
}

/* Reads what description_layer() writes. */
static bool read_layer(const char *text, struct layer_description *layer)
{
    char kind[16], capacity[24], fpr[40], partitions[24];
    int length = 0;
    if (sscanf(text,
               "kind=%15[a-z] capacity=%20[0-9] fpr=%32[0-9.e-] partitions=%20[0-9] fields=%n",
               kind, capacity, fpr, partitions, &length) != 4 ||
        !length || strcmp(kind, "blocked") != 0)
        return false;
    layer->layout.kind = "blocked"; /* no other has a layout */
    layer->planned = true;
    return number_of(capacity, 10, &layer->layout.capacity) &&
           share_of(fpr, &layer->layout.fpr) && number_of(partitions, 10, &layer->partitions) &&
           read_fields(text + length, &layer->layout);
}

/* Returns the layer that a field such as "ready.3" is about, if 'what' is "ready"; NULL for
 * other fields, and for the number of a layer that cannot be. */
static struct layer_description *layer_of(struct description *d, const char *field,
                                          const char *what)
{
    size_t length = strlen(what);
    uint64_t layer;
    if (strncmp(field, what, length) != 0 || field[length] != '.' ||
        !number_of(field + length + 1, 10, &layer) || layer >= PERHAPS_LAYERS_MAX)
        return NULL;
    return &d->layer[layer];
}

/* Reads a field of a layer.  Others are passed over: later versions may add some. */
static bool read_layers(struct description *d, const char *field, const char *value)
{
    struct layer_description *layer;
    if ((layer = layer_of(d, field, "layer")))
        return read_layer(value, layer);
    if ((layer = layer_of(d, field, "ready")))
        return layer->ready = strcmp(value, "1") == 0;
    return true;
}

/* The fields that must be there.  The version is the first: without it nothing else counts. */
static const char *const needed[] = { "layout", "id", "state", "capacity", "fpr", "hash" };
enum { NEEDED = sizeof needed / sizeof *needed, HAS_VERSION = 1, HAS_ALL = (1 << NEEDED) - 1 };

/* Reads one field.  Returns false if its value is not what it should be. */
static bool read_field(struct description *d, const char *field, const char *value)
{
    if (strcmp(field, "layout") == 0)
        return strcmp(value, version) == 0;
    if (strcmp(field, "id") == 0) {
        memcpy(d->id, value, strlen(value) == ID_DIGITS ? sizeof d->id : 0);
        return strspn(d->id, "0123456789abcdef") == ID_DIGITS;
    }
    if (strcmp(field, "state") == 0) {
        d->state = (enum state)find_name(state_name, STATES, value);
        return d->state < STATES;
    }
    if (strcmp(field, "created") == 0)
        return number_of(value, 10, &d->created);
    if (strcmp(field, "capacity") == 0)
        return number_of(value, 10, &d->capacity);
    if (strcmp(field, "fpr") == 0)
        return share_of(value, &d->fpr);
    if (strcmp(field, "factor") == 0)
        return small_of(value, FACTOR_MOST, &d->factor);
    if (strcmp(field, "preference") == 0)
        return small_of(value, PREFERENCE_MOST, &d->preference);
    if (strcmp(field, "hash") == 0)
        return hash_of(value, &d->hash);
    if (strcmp(field, "seed") == 0)
        return number_of(value, 10, &d->seed);
    if (strcmp(field, "check") == 0)
        return number_of(value, 16, &d->check);
    if (strcmp(field, "counted") == 0)
        return d->counted = strcmp(value, "1") == 0;
    if (strcmp(field, "note") == 0)
        return note_of(value, d->note);
    return read_layers(d, field, value);
}

/* Reads a reply to HGETALL, which has names of fields and their values in turn.  Sets a bit of
 * *has for each needed field that is there.  Returns false if it is nonsense. */
static bool read_description(struct description *d, const redisReply *fields, unsigned *has,
                             bool (*read)(struct description *d, const char *field,
                                          const char *value))
{
    *has = 0;
    if (fields->type != REDIS_REPLY_ARRAY || fields->elements % 2)
        return false;
    for (size_t i = 0; i < fields->elements; i += 2) {
        const redisReply *field = fields->element[i], *value = fields->element[i + 1];
        if (field->type != REDIS_REPLY_STRING || value->type != REDIS_REPLY_STRING ||
            strlen(value->str) != (size_t)value->len || !read(d, field->str, value->str))
            return false;
        *has |= 1U << find_name(needed, NEEDED, field->str);
    }
    return true;
}

/* A description without a version is what is left if a filter is deleted just before another
 * client sets its state: hence "unfinished", and not "strange". */
const char *description_read(const redisReply *fields, struct description *description)
{
    unsigned has;
    *description = (struct description){ 0 };
    if (!read_description(description, fields, &has, read_field))
        return strange;
    if (!(has & HAS_VERSION))
        return description_unfinished;
    if ((has & HAS_ALL) != HAS_ALL || !description->layer[0].planned)
        return strange;
    for (unsigned i = 0; i < PERHAPS_LAYERS_MAX; i++) {
        struct perhaps_description *layout = &description->layer[i].layout;
        layout->hash = description->hash;
        layout->seed = description->seed;
        layout->check = description->check;
        memcpy(layout->note, description->note, sizeof layout->note);
    }
    return NULL;
}

/* Reads what is reserved (room.h): "held.3.OWNER" with "SEQUENCE HELD ENDS_MS", or
 * "abandoned.3" with a number.  What makes no sense counts as nothing. */
static void read_reserved(struct description *d, const char *field, const char *value)
{
    unsigned long long n;
    unsigned layer;
    bool found =
        sscanf(field, "held.%4u.", &layer) == 1
            ? sscanf(value, "%*20[0-9] %18llu ", &n) == 1
            : sscanf(field, "abandoned.%4u", &layer) == 1 && sscanf(value, "%18llu", &n) == 1;
    if (found && layer < PERHAPS_LAYERS_MAX && d->layer[layer].reserved < COUNT_MOST / 2)
        d->layer[layer].reserved += (long long)n;
}

/* Reads a field of the counts.  Passes over those that it does not know. */
static bool read_count(struct description *d, const char *field, const char *value)
{
    struct layer_description *layer = layer_of(d, field, "keys");
    bool negative = *value == '-';
    uint64_t count;
    if (strcmp(field, counts_marker) == 0 && strcmp(value, d->id) == 0)
        d->counts_lost = false;
    if (!layer)
        read_reserved(d, field, value);
    if (!layer)
        return true;
    if (!number_of(value + negative, 10, &count) || count > COUNT_MOST)
        return false;
    layer->count = negative ? -(long long)count : (long long)count;
    return true;
}

void counts_read(const redisReply *fields, struct description *description)
{
    unsigned has;
    description->counts_lost = description->counted;
    if (!read_description(description, fields, &has, read_count))
        description->counts_lost = true;
}
