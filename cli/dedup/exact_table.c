/* exact_table.c - a table of the places of lines: open addressing, linear probing from the
 * beginning of a cache line on.
 *
 *     slot, 64 bits      tag : 19 | came again : 1 | place + 1 : 44        0: empty
 *
 * The first half of a hash tells in which cache line the search begins, and the highest bits of
 * the second are the tag.  (Its lowest bits have chosen the shard.)  The search looks at the
 * slots up to the first empty one, and at a line only if its tag is the same: at most one of
 * some 40,000 lines that are new is compared with another one.  Slots are never emptied, so a
 * search that has passed a slot need not look at it again.
 *
 * At most MOST of DENOMINATOR slots are used.  So most searches end in the cache line in which
 * they began. */
#include "exact_table.h"

#include <perhaps_fast.h>
#include <string.h>
#include <sys/mman.h>

#include "../input/mapped.h"

enum { MOST = 4, DENOMINATOR = 5, LINE_NSLOTS = 8 };

#define PLACE_MASK ((UINT64_C(1) << 44) - 1)
#define AGAIN      (UINT64_C(1) << 44)
#define TAG_MASK   (~UINT64_C(0) << 45)

/* The two numbers of a hash. */
struct halves {
    uint64_t first, second;
};

static struct halves halves_of(const struct perhaps_hashed *hash)
{
    struct halves halves;
    _Static_assert(sizeof halves == sizeof *hash, "a hash is two numbers");
    memcpy(&halves, hash, sizeof halves);
    return halves;
}

/* Returns the slot at which the search for a hash begins: hash * lines / 2^64 is its line. */
static size_t first_slot(const struct exact_table *table, struct halves hash)
{
    __extension__ typedef unsigned __int128 wide;
    return (size_t)(((wide)hash.first * (table->nslots / LINE_NSLOTS)) >> 64) * LINE_NSLOTS;
}

static size_t next_slot(const struct exact_table *table, size_t at)
{
    return at + 1 < table->nslots ? at + 1 : 0;
}

/* That of an empty slot is EXACT_NONE. */
static uint64_t place_in_slot(uint64_t slot)
{
    return slot ? (slot & PLACE_MASK) - 1 : EXACT_NONE;
}

static bool same_tag(uint64_t slot, struct halves hash)
{
    return !((slot ^ hash.second) & TAG_MASK);
}

/* There is always an empty slot, where a search ends. */
static uint64_t nslots_for(uint64_t nlines)
{
    return nlines + nlines / MOST + 2;
}

static uint64_t whole_pages(uint64_t nbytes)
{
    const uint64_t page = nbytes < HUGE_NBYTES ? 4096 : HUGE_NBYTES;
    return (nbytes + page - 1) / page * page;
}

uint64_t exact_table_nbytes(uint64_t nlines)
{
    return whole_pages(nslots_for(nlines) * sizeof(uint64_t));
}

/* What rounding to pages adds is used, too. */
bool exact_table_make(struct exact_table *table, uint64_t nlines, bool notes)
{
    uint64_t nbytes = exact_table_nbytes(nlines);
    void *memory =
        mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    madvise(memory, nbytes, MADV_HUGEPAGE);
    *table = (struct exact_table){ .slot = memory,
                                   .nslots = nbytes / sizeof(uint64_t),
                                   .notes = notes };
    table->most = table->nslots - table->nslots / DENOMINATOR - 1;
    return true;
}

void exact_table_free(struct exact_table *table)
{
    if (table->slot)
        munmap(table->slot, table->nslots * sizeof *table->slot);
    *table = (struct exact_table){ 0 };
}

void exact_table_fetch(const struct exact_table *table, const struct perhaps_hashed *hash)
{
    __builtin_prefetch(&table->slot[first_slot(table, halves_of(hash))]);
}

/* Looks at a whole cache line without a branch, since a CPU cannot predict in which slot the
 * search stops. */
size_t exact_table_seek(const struct exact_table *table, const struct perhaps_hashed *hash)
{
    const struct halves halves = halves_of(hash);
    for (size_t at = first_slot(table, halves);; at = next_slot(table, at + LINE_NSLOTS - 1)) {
        const uint64_t *slot = &table->slot[at];
        unsigned stops = 0;
        for (unsigned i = 0; i < LINE_NSLOTS; i++)
            stops |= (unsigned)(!slot[i] | same_tag(slot[i], halves)) << i;
        if (stops)
            return at + (size_t)__builtin_ctz(stops);
    }
}

uint64_t exact_table_place(const struct exact_table *table, size_t slot)
{
    return place_in_slot(table->slot[slot]);
}

enum exact_met exact_table_meet(struct exact_table *table, const struct exact_line *line)
{
    const struct halves hash = halves_of(line->hash);
    size_t at = line->seek;
    for (uint64_t slot; (slot = table->slot[at]); at = next_slot(table, at))
        if (same_tag(slot, hash) && line->same(line->context, place_in_slot(slot), line->key)) {
            if (table->notes && !(slot & AGAIN))
                table->slot[at] = slot | AGAIN;
            return EXACT_REPEATED;
        }
    if (table->count == table->most)
        return EXACT_FULL;
    table->slot[at] = (hash.second & TAG_MASK) | (line->place + 1);
    table->count++;
    return EXACT_NEW;
}

bool exact_table_came_once(const struct exact_table *table, const struct perhaps_hashed *hash,
                           uint64_t place)
{
    size_t at = first_slot(table, halves_of(hash));
    for (uint64_t slot; (slot = table->slot[at]); at = next_slot(table, at))
        if (place_in_slot(slot) == place)
            return !(slot & AGAIN);
    return false;
}
