/* compare.c - the verb that tells how many keys two filters have in common: compare. */
#include <math.h>

#include "messages.h"
#include "numbers.h"
#include "target.h"
#include <perhaps_sets.h>

/* Adds a number and its standard error to the facts.  A number without a bound has the error
 * null. */
static void add_numbers(json_t *facts, const char *name, struct perhaps_estimate estimate)
{
    struct text error_name = text_of("%s_error", name);
    json_object_set_new(facts, name, json_real(estimate.value));
    json_object_set_new(facts, error_name.s,
                        isfinite(estimate.error) ? json_real(estimate.error) : json_null());
}

/* Returns how many digits behind the point a number needs, so that its error has two digits. */
static int decimals_of(double error)
{
    return error > 0 && error < 10 ? (int)fmin(ceil(1 - log10(error)), 6) : 0;
}

/* Return "1,234,567 +- 890" and "49.83 % +- 0.12 %".  A size is a whole number. */
static struct text text_of_size(struct perhaps_estimate size)
{
    struct text keys = grouped((uint64_t)fmin(round(size.value), 0x1p63));
    if (!isfinite(size.error))
        return text_of("%s or more: all bits are set", keys.s);
    return text_of("%s +- %s", keys.s, grouped((uint64_t)ceil(size.error)).s);
}

static struct text text_of_share(struct perhaps_estimate share, double unit, const char *mark)
{
    int digits = decimals_of(share.error * unit);
    if (!isfinite(share.error))
        return text_of("unknown: all bits are set");
    return text_of("%.*f%s +- %.*f%s", digits, share.value * unit, mark, digits,
                   share.error * unit, mark);
}

/* For people a number stands beside its error. */
static json_t *facts_for_people(const struct perhaps_comparison *c)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "keys_of_A", text_of_size(c->a).s,
                     "keys_of_B", text_of_size(c->b).s, "in_A_or_B", text_of_size(c->either).s,
                     "in_A_and_B", text_of_size(c->both).s, "share_of_A_in_B",
                     text_of_share(c->a_in_b, 100, " %").s, "share_of_B_in_A",
                     text_of_share(c->b_in_a, 100, " %").s, "Jaccard",
                     text_of_share(c->jaccard, 1, "").s);
}

static json_t *facts_for_programs(const struct perhaps_comparison *c)
{
    json_t *facts = json_object();
    add_numbers(facts, "keys_a", c->a);
    add_numbers(facts, "keys_b", c->b);
    add_numbers(facts, "keys_either", c->either);
    add_numbers(facts, "keys_both", c->both);
    add_numbers(facts, "a_in_b", c->a_in_b);
    add_numbers(facts, "b_in_a", c->b_in_a);
    add_numbers(facts, "jaccard", c->jaccard);
    return facts;
}

/* Ends the program because the two cannot be compared. */
static _Noreturn void fail_compare(const struct target *a, const struct target *b, int error)
{
    char difference[PERHAPS_DIFFERENCE_NBYTES];
    if (error == PERHAPS_ERR_MISMATCH && perhaps_difference(b->filter, a->filter, difference))
        fail("%s: differs from %s (%s): build both with the same options, --seed too", b->path,
             a->path, difference);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        fail("%s and %s: filters that grow, age, or are built once cannot be compared: build "
             "both from the keys with -n and --seed",
             a->path, b->path);
    fail("%s or %s: %s", a->path, b->path, why(error));
}

void verb_compare(const struct settings *settings)
{
    struct perhaps_comparison comparison;
    if (settings->ninputs != 1)
        fail("compare: which two filters? see 'perhaps help compare'");
    const char *a = settings->filter, *b = settings->inputs[0];
    const struct target *first = target_open(settings, a), *other = target_open(settings, b);
    int error = perhaps_compare(first->filter, other->filter, &comparison);
    if (error)
        fail_compare(first, other, error);
    json_t *facts = json_pack("{s:o, s:o}", "A", json_path(a), "B", json_path(b));
    json_t *rest =
        settings->json ? facts_for_programs(&comparison) : facts_for_people(&comparison);
    json_object_update(facts, rest);
    json_decref(rest);
    print_facts(settings, facts);
}
