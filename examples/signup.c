/* signup.c - tells whether an e-mail address is taken.
 * If the filter says "certainly not taken", the answer is there at once.  Only if it says
 * "perhaps", the program asks the database (made up here).  So most sign-ups never wait for it,
 * and no taken address is ever called free.
 * Shows: what a false positive costs (one needless question to the database); a hash with a
 * secret, since strangers choose the keys.
 * Run: build/examples/signup   (returns 0 if no taken address was called free) */
#include <perhaps.h>
#include <stdio.h>

enum { USERS = 200000, SIGNUPS = 400000, TAKEN_EVERY = 20 };
static const double fpr = 0.01;

struct shop {
    perhaps_filter *taken;
    unsigned database_questions;
};

/* Writes the address of user u, and returns its length.  Users from USERS on are new. */
static size_t address_of(unsigned u, char text[64])
{
    return (size_t)snprintf(text, 64, "user.%u@%s.example", u, u % 3 ? "mail" : "post");
}

/* Stands for a query over the network, which is always right, but slow. */
static bool database_has(struct shop *shop, const char *address)
{
    unsigned u;
    shop->database_questions++;
    return sscanf(address, "user.%u@", &u) == 1 && u < USERS;
}

static bool is_free(struct shop *shop, const char *address, size_t length)
{
    if (!perhaps_contains(shop->taken, address, length))
        return true; /* certainly */
    return !database_has(shop, address);
}

static int open_shop(struct shop *shop)
{
    struct perhaps_options options = { .capacity = USERS,
                                       .fpr = fpr,
                                       .hashing.hash = PERHAPS_HASH_SIP };
    char address[64];
    int error = perhaps_create(&options, &shop->taken);
    for (unsigned u = 0; u < USERS && !error; u++)
        error = perhaps_add(shop->taken, address, address_of(u, address));
    return error;
}

int main(void)
{
    struct shop shop = { 0 };
    unsigned wrong = 0, taken = 0;
    int error = open_shop(&shop);
    if (error)
        return puts(perhaps_strerror(error)), 1;
    for (unsigned i = 0; i < SIGNUPS; i++) {
        bool is_new = i % TAKEN_EVERY != 0;
        char address[64];
        size_t length = address_of(is_new ? USERS + i : i / TAKEN_EVERY, address);
        wrong += is_free(&shop, address, length) != is_new;
        taken += !is_new;
    }
    perhaps_free(shop.taken);
    unsigned needless = shop.database_questions - taken;
    printf("%d sign-ups, %u of them with a taken address: %u wrong answers\n", SIGNUPS, taken,
           wrong);
    printf("the database was asked %u times, %u of these needlessly (expected: %.0f at most)\n",
           shop.database_questions, needless, fpr * (SIGNUPS - taken));
    return wrong > 0 || needless > 1.2 * fpr * (SIGNUPS - taken);
}
