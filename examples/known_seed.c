/* known_seed.c - shows what xxh3 does not protect from: somebody who knows the seed of a
 * filter, and chooses keys that are added to it.
 * A service keeps names that are taken in a filter.  An enemy wants names that nobody has taken
 * to be "perhaps" taken.  He knows the options and the seed, so he computes which bits a name
 * sets, and takes a few names that together set all bits of the one he aims at.  He never needs
 * to ask the service.  A filter with a secret (PERHAPS_HASH_SIP) gets the same names: there
 * they do nothing.
 * Shows: layouts; why a seed is no secret; what to do where strangers choose the keys.
 * Run: build/examples/known_seed   (returns 0 if the attack works without a secret only) */
#include <perhaps.h>
#include <perhaps_fast.h>
#include <perhaps_layout.h>
#include <stdio.h>
#include <string.h>

enum { CAPACITY = 100000, AIMS = 20, NAMES_MOST = 1000, TRIES_MOST = 50000000 };

struct name {
    char text[24];
};

struct attack {
    perhaps_layout *layout; /* of a filter with the options and the seed of the service */
    struct name chosen[NAMES_MOST];
    unsigned nchosen, tried;
};

static struct name name_of(const char *prefix, unsigned number)
{
    struct name name;
    snprintf(name.text, sizeof name.text, "%s.%u", prefix, number);
    return name;
}

static void locate(const perhaps_layout *layout, const struct name *name,
                   struct perhaps_bits *bits)
{
    const struct perhaps_key key = { name->text, strlen(name->text) };
    const struct perhaps_keys one = perhaps_keys_each(&key, 1);
    struct perhaps_hashed hashed;
    perhaps_layout_hash_many(layout, &one, &hashed); /* cannot fail: xxh3 takes any key */
    perhaps_layout_locate(layout, &hashed, bits);
}

/* Takes the bits of a key out of those that are still wanted, which begin as all bits of the
 * key aimed at.  Returns whether there were any. */
static bool strike_out(struct perhaps_bits *wanted, const struct perhaps_bits *key)
{
    unsigned left = 0, before = wanted->nbits;
    if (key->block != wanted->block)
        return false;
    for (unsigned i = 0; i < before; i++) {
        bool is_set = false;
        for (unsigned k = 0; k < key->nbits; k++)
            is_set |= key->bit[k] == wanted->bit[i];
        if (!is_set)
            wanted->bit[left++] = wanted->bit[i];
    }
    wanted->nbits = left;
    return left < before;
}

/* Tries one name after the other until those that were chosen set all bits of one name. */
static void aim_at(struct attack *a, struct name aim)
{
    struct perhaps_bits wanted, bits;
    locate(a->layout, &aim, &wanted);
    while (wanted.nbits && a->nchosen < NAMES_MOST && a->tried < TRIES_MOST) {
        struct name name = name_of("guest", a->tried++);
        locate(a->layout, &name, &bits);
        if (strike_out(&wanted, &bits))
            a->chosen[a->nchosen++] = name;
    }
}

/* Adds the chosen names to a new filter.  Returns how many of the names aimed at are "perhaps"
 * there, although nobody has added them; or -1 after an error. */
static int taken_after(const struct attack *a, const struct perhaps_options *options)
{
    perhaps_filter *filter;
    int taken = 0, error = perhaps_create(options, &filter);
    for (unsigned i = 0; i < a->nchosen && !error; i++)
        error = perhaps_add(filter, a->chosen[i].text, strlen(a->chosen[i].text));
    for (unsigned i = 0; i < AIMS && !error; i++) {
        struct name aim = name_of("user", i);
        taken += perhaps_contains(filter, aim.text, strlen(aim.text));
    }
    perhaps_free(filter);
    return error ? -1 : taken;
}

/* Makes the layout that the filter of the service has. */
static int begin(struct attack *a, const struct perhaps_options *options)
{
    perhaps_filter *own;
    int error = perhaps_create(options, &own);
    if (!error)
        error = perhaps_layout_of(own, &a->layout);
    perhaps_free(own);
    return error;
}

int main(void)
{
    static struct attack attack;
    const struct perhaps_options known = { .capacity = CAPACITY,
                                           .fpr = 0.01,
                                           .hashing.seed = 20240501 }; /* as in a manual */
    struct perhaps_options secret = known;
    secret.hashing = (struct perhaps_hashing){ .hash = PERHAPS_HASH_SIP };
    int error = begin(&attack, &known);
    if (error)
        return puts(perhaps_strerror(error)), 1;
    for (unsigned i = 0; i < AIMS; i++)
        aim_at(&attack, name_of("user", i));
    perhaps_layout_free(attack.layout);
    int without = taken_after(&attack, &known), with = taken_after(&attack, &secret);
    printf("%u of %u names were chosen, to set all bits of %d others\n", attack.nchosen,
           attack.tried, AIMS);
    printf("known seed: %d of these %d are \"perhaps\" there; nobody has added them\n", without,
           AIMS);
    printf("secret:     %d of these %d are\n", with, AIMS);
    return without != AIMS || with != 0;
}
