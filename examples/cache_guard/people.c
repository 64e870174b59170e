/* people.c - made-up users, lists of e-mail addresses, and chance. */
#include "people.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"

static const char *const first_names[] = { "anna",  "ben",  "chloe", "david", "emma", "farid",
                                           "grace", "hugo", "ines",  "jonas", "kim",  "lena",
                                           "milan", "nora", "omar",  "paula" };
static const char *const last_names[] = { "adler", "bauer",   "costa", "diaz",
                                          "evans", "fischer", "gupta", "hansen",
                                          "ito",   "jones",   "kaya",  "lopez",
                                          "meyer", "novak",   "okoro", "park" };

/* A bijection of 64 bits without structure (the finalizer of SplitMix64). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

void make_up(struct person *person, uint64_t number)
{
    uint64_t bits = mix(number);
    const char *first = first_names[bits & 15], *last = last_names[bits >> 4 & 15];
    snprintf(person->email, sizeof person->email, "%s.%s.%" PRIu64 "@mail%u.example", first,
             last, number, (unsigned)(bits >> 8 & 7));
    snprintf(person->name, sizeof person->name, "%s %s", first, last);
}

void make_up_nobody(char email[EMAIL_NBYTES_MAX + 1], uint64_t number)
{
    uint64_t bits = mix(number);
    snprintf(email, EMAIL_NBYTES_MAX + 1, "%s.%s.%" PRIx64 "@nowhere.example",
             first_names[bits & 15], last_names[bits >> 4 & 15], number);
}

void emails_add(struct emails *emails, const char *email)
{
    size_t nbytes = strlen(email) + 1;
    if (emails->count == emails->room) {
        emails->room = emails->room * 2 + 1024;
        emails->start = memory_resized(emails->start, emails->room * sizeof *emails->start);
    }
    if (nbytes > emails->text_room_nbytes - emails->text_nbytes) {
        emails->text_room_nbytes = emails->text_room_nbytes * 2 + nbytes + 65536;
        emails->text = memory_resized(emails->text, emails->text_room_nbytes);
    }
    emails->start[emails->count++] = emails->text_nbytes;
    memcpy(emails->text + emails->text_nbytes, email, nbytes);
    emails->text_nbytes += nbytes;
}

const char *emails_at(const struct emails *emails, size_t index)
{
    return emails->text + emails->start[index];
}

void emails_clear(struct emails *emails)
{
    emails->count = emails->text_nbytes = 0;
}

void emails_free(struct emails *emails)
{
    free(emails->start);
    free(emails->text);
    *emails = (struct emails){ 0 };
}

uint64_t chance_next(uint64_t *state)
{
    return mix(*state += UINT64_C(0x9E3779B97F4A7C15));
}

double chance_share(uint64_t *state)
{
    return (double)(chance_next(state) >> 11) * 0x1p-53;
}
