/* request.h - the filter that the command line asks for, and what the library knows of it. */
#ifndef REQUEST_H
#define REQUEST_H

#include <perhaps.h>

#include "numbers.h"
#include "options.h"

/* How many keys it must hold. */
struct size {
    uint64_t capacity; /* or begins with, if it grows */
    bool grows;
};

/* Where nothing is known: a few hundred KB. */
#define CAPACITY_TO_BEGIN_WITH 65536

bool request_window(const struct settings *settings);

/* Whether it can begin small: no kind is named, or one that grows. */
bool request_may_grow(const struct settings *settings);

/* What the options say of its size, for which no input need be read: 0 keys if nothing. */
struct size request_size(const struct settings *settings);

/* The options for it, but for its hash. */
struct perhaps_options request_options(const struct settings *settings, struct size size);

/* The same, and its plan.  An option that the kind would not heed (--factor where there are no
 * layers) ends the program, having complained about 'name'; with no --kind it chooses one that
 * heeds it. */
void request_plan(const struct settings *settings, struct size size, const char *name,
                  struct perhaps_options *options, struct perhaps_plan *plan);

/* Whether the kind of that name has the abilities by itself. */
bool kind_can(const char *name, unsigned abilities);

/* false, setting *value to 0, if the kind has no such field in its geometry. */
bool planned_field(const struct perhaps_plan *plan, const char *name, uint64_t *value);

/* Whether the number of keys of such a filter is that of the keys added: those of Bloom kinds
 * count only what set a bit. */
bool counts_all(const struct perhaps_plan *plan);

/* How many keys, in expectation, were taken for old while 'nnew' were found to be new, after
 * 'before' of them. */
double expected_unseen(const perhaps_filter *filter, uint64_t before, uint64_t nnew);

/* ", 9.9 bits a key"; nothing as long as most of a filter is empty. */
struct text bits_of(uint64_t capacity, uint64_t keys, uint64_t memory_nbytes);

/* ", room for 39,000 keys more"; nothing for those that grow or are full. */
struct text room_of(const struct perhaps_plan *plan, uint64_t keys);

/* Whether it holds more keys than its rate is kept for; and "; the rate is now 2 %, above the
 * 1 %", or nothing. */
bool is_over(const struct perhaps_stats *stats);
struct text over_of(bool over, double fpr_now, double fpr);

/* ---- The hash, and its secret -------------------------------------------------------- */

#define SECRET_NBYTES 16

/* It points into itself, so it must stay where it is. */
struct hashing {
    const struct settings *settings;
    struct perhaps_hashing chosen; /* as the library takes it */
    uint8_t secret[SECRET_NBYTES];
    bool made; /* the secret is new */
};

/* That of a filter that is to be made.  A secret is made if there is no file of it yet. */
void hashing_choose(struct hashing *hashing, const struct settings *settings);

/* That of a filter that is there: the secret, if one is given. */
void hashing_read(struct hashing *hashing, const struct settings *settings);

/* Writes a secret that was made to its file; then tells so, unless it shall be quiet; or takes
 * the file away again. */
void hashing_keep(const struct hashing *hashing);
void hashing_tell(const struct hashing *hashing);
void hashing_drop(const struct hashing *hashing);

/* Says of the filter 'name' that it cannot be opened with the secret that is given, or without
 * one. */
_Noreturn void hashing_fail(const struct settings *settings, const char *name);

#endif
