/* rounds.c - ranges of a file: wanted, joined, brought, checked and found again. */
#include <string.h>

#include "../base/bytes.h"
#include "../pile/pile.h"
#include "remote.h"

/* A range is not joined to more than this, so that several connections share the work. */
#define JOINED_NBYTES_MOST (UINT64_C(1) << 20)

/* More bytes are not wanted at once, whatever a header says. */
#define ROUND_NBYTES_MOST (UINT64_C(1) << 30)

/* ---- What is wanted ---------------------------------------------------------------------- */

static int make_room(perhaps_remote *r)
{
    struct wanted *w = &r->wanted;
    const size_t room = w->room ? 2 * w->room : 64;
    if (w->count < w->room)
        return 0;
    if (room > ROUND_NBYTES_MOST / sizeof *w->range)
        return PERHAPS_ERR_MEMORY;
    struct perhaps_range *range = allocate_scratch(&r->allocator, room * sizeof *range);
    if (!range)
        return PERHAPS_ERR_MEMORY;
    if (w->count)
        memcpy(range, w->range, w->count * sizeof *range);
    release(&r->allocator, w->range, w->room * sizeof *range);
    w->range = range;
    w->room = room;
    return 0;
}

int rounds_want_bare(perhaps_remote *r, uint64_t at, uint64_t nbytes)
{
    int error = make_room(r);
    if (error)
        return error;
    r->wanted.range[r->wanted.count++] = (struct perhaps_range){ at, nbytes };
    r->wanted.nbytes += nbytes;
    return 0;
}

/* Only bytes of pages have checksums that are not compared yet. */
static bool is_checked(const perhaps_remote *r, uint64_t at)
{
    const struct header *h = &r->head.header;
    return r->check && at >= h->nbytes && at < h->table_offset;
}

int rounds_want(perhaps_remote *r, uint64_t at, uint64_t nbytes)
{
    const struct header *h = &r->head.header;
    if (!is_checked(r, at))
        return rounds_want_bare(r, at, nbytes);
    const uint64_t first = (at - h->nbytes) / PAGE_NBYTES;
    const uint64_t last = (at + nbytes - 1 - h->nbytes) / PAGE_NBYTES;
    const uint64_t begin = h->nbytes + first * PAGE_NBYTES, behind = (last + 1) * PAGE_NBYTES;
    const uint64_t end = behind < header_pages_nbytes(h) ? h->nbytes + behind : h->table_offset;
    const uint64_t entry = h->table_offset + first * sizeof(uint64_t);
    int error = rounds_want_bare(r, begin, end - begin);
    return error ? error : rounds_want_bare(r, entry, (last - first + 1) * sizeof(uint64_t));
}

static void sort_wanted(perhaps_remote *r, struct perhaps_range *scratch)
{
    const struct wanted *w = &r->wanted;
    /* records_sort() looks at 22 bits, the highest and those below it; at 44 of a million. */
    const uint64_t least = UINT64_C(1) << (w->count > 1000000 ? 44 : 22);
    const unsigned highest = 63 - (unsigned)__builtin_clzll(r->file_nbytes | least);
    records_sort((uint64_t *)(void *)w->range, (uint64_t *)(void *)scratch, w->count, 2,
                 highest);
}

/* Joins what is wanted, which is sorted, in its place. */
static void join_wanted(perhaps_remote *r)
{
    struct wanted *w = &r->wanted;
    struct perhaps_range *to = w->range;
    uint64_t nbytes = 0;
    size_t count = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct perhaps_range next = w->range[i];
        const uint64_t end = count ? to[count - 1].at + to[count - 1].nbytes : 0;
        const bool meets = count && next.at <= end;
        const bool near = count && !meets && next.at - end <= r->gap_nbytes &&
                          next.at + next.nbytes - to[count - 1].at <= JOINED_NBYTES_MOST;
        if (!meets && !near)
            to[count++] = next;
        else if (next.at + next.nbytes > end)
            to[count - 1].nbytes = next.at + next.nbytes - to[count - 1].at;
    }
    for (size_t i = 0; i < count; i++)
        nbytes += to[i].nbytes;
    w->count = count;
    w->nbytes = nbytes;
}

int rounds_join(perhaps_remote *r)
{
    const size_t count = r->wanted.count;
    struct perhaps_range *scratch = allocate_scratch(&r->allocator, count * sizeof *scratch);
    if (!scratch)
        return PERHAPS_ERR_MEMORY;
    sort_wanted(r, scratch);
    release(&r->allocator, scratch, count * sizeof *scratch);
    join_wanted(r);
    return 0;
}

/* ---- Rounds ------------------------------------------------------------------------------ */

/* Takes memory for the ranges that are wanted, and their bytes. */
static int fill_round(perhaps_remote *r, struct round *round, uint64_t nbytes)
{
    const struct wanted *w = &r->wanted;
    const uint64_t numbers = w->count * (sizeof *round->range + 2 * sizeof(uint64_t));
    uint64_t offset = 0;
    if (nbytes > ROUND_NBYTES_MOST || numbers + nbytes > SIZE_MAX)
        return PERHAPS_ERR_MEMORY;
    uint8_t *memory = allocate_scratch(&r->allocator, numbers + nbytes);
    if (!memory)
        return PERHAPS_ERR_MEMORY;
    *round = (struct round){ .range = (void *)memory,
                             .count = w->count,
                             .bytes = memory + numbers,
                             .memory = memory,
                             .memory_nbytes = numbers + nbytes };
    round->got = (void *)(round->range + w->count);
    round->offset = round->got + w->count;
    for (size_t i = 0; i < w->count; i++) {
        round->range[i] = w->range[i];
        round->got[i] = 0;
        round->offset[i] = offset;
        offset += w->range[i].nbytes;
    }
    return 0;
}

int rounds_begin(perhaps_remote *r)
{
    struct wanted *w = &r->wanted;
    if (r->rounds == ROUNDS_MOST)
        return PERHAPS_ERR_DAMAGED;
    int error = rounds_join(r);
    if (!error)
        error = fill_round(r, &r->round[r->rounds], w->nbytes);
    r->rounds += !error;
    w->count = 0;
    w->nbytes = 0;
    return error;
}

bool rounds_complete(const perhaps_remote *r)
{
    if (!r->rounds)
        return true;
    const struct round *round = &r->round[r->rounds - 1];
    for (size_t i = 0; i < round->count; i++)
        if (round->got[i] < round->range[i].nbytes)
            return false;
    return true;
}

/* Returns the range of a round that begins at a byte or before it, the last such one; or
 * 'count' if there is none. */
static size_t range_before(const struct round *round, uint64_t at)
{
    size_t first = 0, n = round->count;
    if (!n || round->range[0].at > at)
        return round->count;
    while (n > 1) {
        const size_t half = n / 2;
        if (round->range[first + half].at <= at)
            first += half;
        n -= half;
    }
    return first;
}

const uint8_t *rounds_find(const perhaps_remote *r, uint64_t at, uint64_t nbytes)
{
    for (size_t i = 0; i < r->rounds; i++) {
        const struct round *round = &r->round[i];
        const size_t number = range_before(round, at);
        if (number == round->count)
            continue;
        const struct perhaps_range *range = &round->range[number];
        const uint64_t skip = at - range->at;
        if (skip <= range->nbytes && nbytes <= range->nbytes - skip &&
            round->got[number] == range->nbytes)
            return round->bytes + round->offset[number] + skip;
    }
    return NULL;
}

/* Compares those pages of a range that have an entry here: pages between two that were joined
 * were not wanted. */
static bool range_intact(const perhaps_remote *r, const struct perhaps_range *range)
{
    const struct header *h = &r->head.header;
    const uint64_t end = range->at + range->nbytes, pages = header_pages_nbytes(h);
    const uint64_t from = range->at < h->nbytes ? 0 : range->at - h->nbytes;
    for (uint64_t page = (from + PAGE_NBYTES - 1) / PAGE_NBYTES;
         page < container_page_count(pages); page++) {
        const uint64_t at = page * PAGE_NBYTES, nbytes = page_nbytes(pages, at);
        if (h->nbytes + at + nbytes > end)
            break;
        const uint64_t entry_at = h->table_offset + page * sizeof(uint64_t);
        const uint8_t *entry = rounds_find(r, entry_at, sizeof(uint64_t));
        const uint8_t *bytes = rounds_find(r, h->nbytes + at, nbytes);
        if (entry && bytes && !container_entry_agrees(entry, page, bytes, nbytes))
            return false;
    }
    return true;
}

int rounds_check(const perhaps_remote *r)
{
    if (!r->check || !r->rounds || r->stage == STAGE_HEADER)
        return 0;
    const struct round *round = &r->round[r->rounds - 1];
    for (size_t i = 0; i < round->count; i++)
        if (!range_intact(r, &round->range[i]))
            return PERHAPS_ERR_DAMAGED;
    return 0;
}

void rounds_forget(perhaps_remote *r)
{
    for (size_t i = 0; i < r->rounds; i++)
        release(&r->allocator, r->round[i].memory, r->round[i].memory_nbytes);
    release(&r->allocator, r->wanted.range, r->wanted.room * sizeof *r->wanted.range);
    r->rounds = 0;
    r->wanted = (struct wanted){ 0 };
}
