/* lines.h - what kinds share whose keys have one cache line in each of a few parts of the body,
 * and mark there one cell in each of several of its 16 words: rate, plan and fill.
 *
 * A word has 'cells' cells: bits, or counters that take several bits each.  The fields are
 * those of blocked (kernels/layout.h): PART_LINES, PARTS, and LINE_BITS, the marks of a key in
 * a line.
 *
 * With field TOGETHER the lines of a key are one block instead, that of number 'place' of
 * part_lines blocks of 'parts' lines: read at once, and a little more often wrong, since a
 * block that many keys have is full in all its lines.  Kinds that have no such field have 0
 * there. */
#ifndef LINES_H
#define LINES_H

#include "../filter/filter.h"
#include "../kernels/layout.h"

enum { LINES_PARTS_MAX = 8, WORDS = LINE_WORDS };

/* The words that keys choose: 16 starts by 4 strides (a stride and its negative give the same
 * sets). */
enum { WALKS = WORDS * 4 };

/* How many lines of a key, one behind the other, are shared by the same keys; and how often it
 * has so many. */
static inline unsigned lines_of_block(const struct geometry *g)
{
    return g->field[TOGETHER] ? (unsigned)g->field[PARTS] : 1;
}

static inline unsigned lines_separate_parts(const struct geometry *g)
{
    return g->field[TOGETHER] ? 1 : (unsigned)g->field[PARTS];
}

/* Whether the fields, which may be anybody's, are in their ranges. */
bool lines_in_range(const struct geometry *g);

/* Of all parts, of a geometry that is in range. */
uint64_t lines_nbytes(const struct geometry *g);

/* The rate when 'keys' different keys are in. */
double lines_predict(const struct geometry *g, unsigned cells, double keys);

/* Chooses the fewest lines, in this number of parts as the preference changes it, or in the
 * next that will do, with which g->fpr is kept when keys(g) keys are in; if they lie together,
 * 3 % more for fewer marks.  Returns 0 or PERHAPS_ERR_LIMIT. */
int lines_plan(struct geometry *g, unsigned cells, unsigned parts,
               enum perhaps_preference preference, double (*keys)(const struct geometry *g));

/* sizing_key_limit(), where a key that finds all its cells marked is not counted. */
uint64_t lines_key_limit(const struct geometry *g, unsigned cells);

/* The most keys, of 'most' at most, with which the rate is expected to be kept. */
double lines_keys_within(const struct geometry *g, unsigned cells, double most);

/* Load and fpr, as measure() of a kind. */
struct fill lines_measure(const perhaps_filter *f, unsigned cells, uint64_t most_nbytes);

/* As rate_with() of a kind; the cells are bits. */
double lines_rate_with(const perhaps_filter *f, struct keyhash key);

/* As reads() of a kind. */
void lines_reads(const perhaps_filter *f, struct keyhash key, struct reads *reads);

#endif
