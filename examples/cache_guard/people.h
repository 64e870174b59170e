/* people.h - made-up users, lists of e-mail addresses, and chance. */
#ifndef PEOPLE_H
#define PEOPLE_H

#include <stddef.h>
#include <stdint.h>

enum { EMAIL_NBYTES_MAX = 254, NAME_NBYTES_MAX = 63 };

struct person {
    char email[EMAIL_NBYTES_MAX + 1];
    char name[NAME_NBYTES_MAX + 1];
};

/* Each number is another person. */
void make_up(struct person *person, uint64_t number);

/* The address of nobody: make_up() gives none at this host. */
void make_up_nobody(char email[EMAIL_NBYTES_MAX + 1], uint64_t number);

/* A list that grows.  All zero: empty. */
struct emails {
    size_t count, room;
    size_t *start; /* of each, in 'text' */
    char *text;
    size_t text_nbytes, text_room_nbytes;
};
void emails_add(struct emails *emails, const char *email);
const char *emails_at(const struct emails *emails, size_t index);
void emails_clear(struct emails *emails); /* keeps its memory */
void emails_free(struct emails *emails);

/* Random numbers that depend on nothing but the state before. */
uint64_t chance_next(uint64_t *state);
double chance_share(uint64_t *state); /* 0 <= it < 1 */

#endif
