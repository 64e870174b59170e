/* segments_move.c - has the memory of an elastic filter moved: perhaps_relocate().
 *
 * Directories hold addresses of segments, which lie in the body and in blocks.  So all blocks
 * are moved first, and then every address is looked up in a table of what lay where. */
#include <stdlib.h>

#include "segments.h"

/* Segments that lay 'nbytes' bytes long from 'from' on, and now begin at 'to'.  'from' is a
 * number, since nothing may be read there any more. */
struct moved {
    uintptr_t from;
    uint64_t nbytes;
    uint8_t *to;
};

struct moves {
    struct moved *each; /* sorted by 'from' */
    size_t count;
};

static int compare_moved(const void *a, const void *b)
{
    const struct moved *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Returns where the byte at 'at' lies now. */
static uint8_t *moved_to(const struct moves *moves, uint8_t *at)
{
    size_t low = 0, high = moves->count; /* each[low] is the last one from 'at' or before */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (moves->each[middle].from <= (uintptr_t)at)
            low = middle;
        else
            high = middle;
    }
    const struct moved *m = &moves->each[low];
    uintptr_t offset = (uintptr_t)at - m->from;
    return (uintptr_t)at >= m->from && offset < m->nbytes ? m->to + offset : at;
}

/* Moves the blocks and the list of them, and notes where they lay.  Returns whether one has
 * moved. */
static bool move_blocks(perhaps_filter *f, const struct mover *mover, struct moves *moves)
{
    struct state *state = f->state;
    bool any = false;
    for (struct block **link = &state->blocks; *link; link = &(*link)->next) {
        struct block *block = relocate(&f->allocator, mover, *link, sizeof *block);
        struct moved m = { .from = (uintptr_t)block->memory, .nbytes = block->nbytes };
        *link = block;
        m.to = block->memory = relocate(&f->allocator, mover, block->memory, block->nbytes);
        any |= (uintptr_t)m.to != m.from;
        moves->each[moves->count++] = m;
    }
    return any;
}

/* Sets all addresses of segments to where these lie now. */
static void correct_addresses(struct state *state, const struct moves *moves)
{
    for (unsigned base = 0; base < BASES; base++) {
        struct directory *directory = state->directories[base];
        for (uint64_t i = 0; i < UINT64_C(1) << directory->depth; i++)
            directory->entry[i] = moved_to(moves, directory->entry[i]);
    }
    if (state->spare)
        state->spare = moved_to(moves, state->spare);
    state->fresh = state->nfresh ? moved_to(moves, state->fresh) : NULL;
}

/* The table needs memory for a moment.  If there is none the blocks stay where they are, and
 * only the body has moved. */
static void relocate_segments(perhaps_filter *f, const uint8_t *body, const struct mover *mover)
{
    struct state *state = f->state;
    struct moved first = { (uintptr_t)body, f->body.geometry.body_nbytes, f->body.bytes };
    uint64_t nbytes = (1 + state->nblocks) * sizeof first;
    struct moved *table = state->nblocks ? allocate(&f->allocator, nbytes) : NULL;
    struct moves moves = { .each = table ? table : &first, .count = 1 };
    bool any = body != f->body.bytes;
    moves.each[0] = first;
    if (table)
        any |= move_blocks(f, mover, &moves);
    qsort(moves.each, moves.count, sizeof first, compare_moved);
    if (any)
        correct_addresses(state, &moves);
    release(&f->allocator, table, nbytes);
}

void segments_relocate(perhaps_filter *f, const uint8_t *body, const struct mover *mover)
{
    const struct perhaps_allocator *a = &f->allocator;
    struct state *state = f->state = relocate(a, mover, f->state, sizeof *state);
    struct segment_locks *locks = f->body.writers;
    f->body.table = state->directories;
    state->table.versions = locks ? locks->version : NULL;
    for (unsigned base = 0; base < BASES; base++) {
        struct directory **directory = &state->directories[base];
        *directory =
            relocate(a, mover, *directory, segments_directory_nbytes((*directory)->room));
    }
    relocate_segments(f, body, mover);
}
