/* difference.c - tells in what two filters differ that do not fit together. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../filter/filter.h"
#include <perhaps.h>

/* What is told so far.  Without a text only whether there is a difference. */
struct telling {
    char *text;
    size_t nbytes;
    bool differs;
};

/* Begins the next difference, of this name. */
static void tell(struct telling *t, const char *name)
{
    t->differs = true;
    if (!t->text)
        return;
    snprintf(t->text + t->nbytes, PERHAPS_DIFFERENCE_NBYTES - t->nbytes, "%s%s",
             t->nbytes ? ", " : "", name);
    t->nbytes = strlen(t->text);
}

static void tell_values(struct telling *t, const char *a, const char *b)
{
    if (!t->text)
        return;
    snprintf(t->text + t->nbytes, PERHAPS_DIFFERENCE_NBYTES - t->nbytes, " %s and %s", a, b);
    t->nbytes = strlen(t->text);
}

static void compare_names(struct telling *t, const char *name, const char *a, const char *b)
{
    if (strcmp(a, b) == 0)
        return;
    tell(t, name);
    tell_values(t, a, b);
}

static void compare_numbers(struct telling *t, const char *name, uint64_t a, uint64_t b)
{
    char one[32], other[32];
    if (a == b)
        return;
    snprintf(one, sizeof one, "%" PRIu64, a);
    snprintf(other, sizeof other, "%" PRIu64, b);
    tell(t, name);
    tell_values(t, one, other);
}

/* With as many digits as tell one from the other. */
static void compare_rates(struct telling *t, double a, double b)
{
    char one[32], other[32];
    if (!(a < b || b < a))
        return;
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(one, sizeof one, "%.*g", digits, a);
        snprintf(other, sizeof other, "%.*g", digits, b);
        if (strcmp(one, other) != 0)
            break;
    }
    tell(t, "fpr");
    tell_values(t, one, other);
}

/* The numbers that neither capacity nor fpr explains. */
static void compare_fields(struct telling *t, const struct filter_kind *kind,
                           const struct geometry *a, const struct geometry *b)
{
    const bool told = t->differs;
    for (unsigned i = 0; i < PERHAPS_FIELDS_MAX && kind->field_names[i]; i++)
        if (!kind->composite || i != kind->composite->base_field)
            compare_numbers(t, kind->field_names[i], a->field[i], b->field[i]);
    if (t->differs == told)
        compare_numbers(t, "body_nbytes", a->body_nbytes, b->body_nbytes);
}

static bool same_numbers(const struct geometry *a, const struct geometry *b)
{
    return a->body_nbytes == b->body_nbytes && !memcmp(a->field, b->field, sizeof a->field);
}

/* What a set holds may be another key's, of which no copy may be removed elsewhere. */
static void compare_copies(struct telling *t, const perhaps_filter *a, const perhaps_filter *b)
{
    if (!t->differs)
        compare_names(t, "copies", a->is_set ? "none" : "stored",
                      b->is_set ? "none" : "stored");
}

/* Parts of a composite that come later follow from capacity and fpr; of other filters the
 * numbers of the geometry are all that counts. */
static void compare_shapes(struct telling *t, const perhaps_filter *a, const perhaps_filter *b)
{
    const struct geometry g = filter_geometry(a), other = filter_geometry(b);
    const bool same_kind = a->kind == b->kind, same = same_kind && same_numbers(&g, &other);
    compare_names(t, "kind", a->kind->about.name, b->kind->about.name);
    if (g.base && other.base)
        compare_names(t, "base", g.base->about.name, other.base->about.name);
    compare_copies(t, a, b);
    if (same && !a->kind->composite)
        return;
    const bool told = t->differs;
    compare_numbers(t, "capacity", g.capacity, other.capacity);
    compare_rates(t, g.fpr, other.fpr);
    if (same_kind && !same && t->differs == told)
        compare_fields(t, a->kind, &g, &other);
}

/* Without a seed of the caller's another hash is chosen, so that both may differ.  A secret is
 * known by its check value alone, and so is a function of the caller's. */
static void compare_hashes(struct telling *t, const struct hasher *a, const struct hasher *b)
{
    const bool seeded = a->id == b->id || (a->seed && b->seed);
    compare_names(t, "hash", perhaps_hash_name(a->id), perhaps_hash_name(b->id));
    if (seeded)
        compare_numbers(t, "seed", a->seed, b->seed);
    if (a->id == b->id && a->seed == b->seed && hasher_check(a) != hasher_check(b))
        tell(t, hash_row_of(a)->needs == HASH_NEEDS_SECRET ? "secret" : "hash function");
}

/* Whether a part that both have lies differently in them, though the whole is the same. */
static bool parts_differ(const perhaps_filter *a, const perhaps_filter *b)
{
    bool differ = false;
    for (size_t i = 0; !differ && i < a->parts->count && i < b->parts->count; i++)
        differ = perhaps_difference(a->parts->part[i], b->parts->part[i], NULL);
    return differ;
}

bool perhaps_difference(const perhaps_filter *a, const perhaps_filter *b,
                        char text[PERHAPS_DIFFERENCE_NBYTES])
{
    struct telling t = { .text = text };
    if (text)
        *text = '\0';
    compare_shapes(&t, a, b);
    compare_hashes(&t, &a->hasher, &b->hasher);
    if (!t.differs && parts_differ(a, b))
        tell(&t, "layers");
    return t.differs;
}
