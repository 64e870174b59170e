/* calls.c - the lists, the table of ids and the heap of deadlines of calls.h. */
#include "calls.h"
#include <perhaps_fast.h>

#include <stdlib.h>
#include <string.h>

/* ---- A call ---------------------------------------------------------------------------- */

/* Returns the size of all keys together, with their bytes and answers. */
static size_t size_of(const struct perhaps_keys *keys)
{
    size_t nbytes = keys->count * (sizeof(struct perhaps_key) + 1);
    for (size_t i = 0; i < keys->count; i++)
        nbytes += perhaps_keys_at(keys, i).nbytes;
    return nbytes;
}

/* A call is one piece of memory: the struct, the keys, the answers, the bytes of the keys. */
struct call *calls_new_call(const struct perhaps_keys *keys)
{
    struct call *call = malloc(sizeof *call + size_of(keys));
    if (!call)
        return NULL;
    *call = (struct call){ .count = keys->count };
    call->answers = (uint8_t *)(call->keys + keys->count);
    memset(call->answers, PERHAPS_ANSWER_UNKNOWN, keys->count);
    uint8_t *bytes = call->answers + keys->count;
    for (size_t i = 0; i < keys->count; i++) {
        struct perhaps_key key = perhaps_keys_at(keys, i);
        call->keys[i] = (struct perhaps_key){ bytes, key.nbytes };
        if (key.nbytes)
            memcpy(bytes, key.bytes, key.nbytes);
        bytes += key.nbytes;
    }
    return call;
}

void calls_free_call(struct call *call)
{
    free(call->problem);
    free(call);
}

/* ---- Lists ----------------------------------------------------------------------------- */

static void append(struct call_list *list, struct call *call)
{
    call->next = NULL;
    call->before = list->last;
    *(list->last ? &list->last->next : &list->first) = call;
    list->last = call;
}

static void take_out(struct call_list *list, struct call *call)
{
    *(call->before ? &call->before->next : &list->first) = call->next;
    *(call->next ? &call->next->before : &list->last) = call->before;
}

/* ---- The heap: no call has a sooner deadline than the one at half its place -------------- */

static bool is_sooner(const struct call *a, const struct call *b)
{
    return a->deadline_ns < b->deadline_ns;
}

static void put(struct calls *calls, size_t place, struct call *call)
{
    calls->heap[place] = call;
    call->place = place;
}

/* Puts a call at this place or further up. */
static void put_up(struct calls *calls, size_t place, struct call *call)
{
    for (; place > 1 && is_sooner(call, calls->heap[place / 2]); place /= 2)
        put(calls, place, calls->heap[place / 2]);
    put(calls, place, call);
}

/* Puts a call at this place or further down. */
static void put_down(struct calls *calls, size_t place, struct call *call)
{
    for (size_t below; (below = 2 * place) <= calls->nheap; place = below) {
        if (below < calls->nheap && is_sooner(calls->heap[below + 1], calls->heap[below]))
            below++;
        if (!is_sooner(calls->heap[below], call))
            break;
        put(calls, place, calls->heap[below]);
    }
    put(calls, place, call);
}

static int heap_make_room(struct calls *calls)
{
    size_t room = 2 * calls->heap_room + 64;
    if (calls->nheap + 1 < calls->heap_room)
        return 0;
    struct call **heap = realloc(calls->heap, room * sizeof(struct call *));
    if (!heap)
        return PERHAPS_ERR_MEMORY;
    calls->heap = heap;
    calls->heap_room = room;
    return 0;
}

/* The last call of the heap takes the place of the one that leaves. */
static void heap_remove(struct calls *calls, struct call *call)
{
    struct call *last = calls->heap[calls->nheap--];
    size_t place = call->place;
    call->place = 0;
    if (last == call)
        return;
    if (place > 1 && is_sooner(last, calls->heap[place / 2]))
        put_up(calls, place, last);
    else
        put_down(calls, place, last);
}

struct call *calls_soonest(const struct calls *calls)
{
    return calls->nheap ? calls->heap[1] : NULL;
}

/* ---- Ids ------------------------------------------------------------------------------- */

struct call *calls_find(const struct calls *calls, uint64_t id)
{
    struct call *call = calls->bucket[id % CALL_BUCKETS];
    while (call && call->id != id)
        call = call->bucket_next;
    return call;
}

static void forget_id(struct calls *calls, struct call *call)
{
    struct call **at = &calls->bucket[call->id % CALL_BUCKETS];
    while (*at != call)
        at = &(*at)->bucket_next;
    *at = call->bucket_next;
}

/* ---- The life of a call ------------------------------------------------------------------ */

int calls_submit(struct calls *calls, struct call *call)
{
    if (call->deadline_ns && heap_make_room(calls))
        return PERHAPS_ERR_MEMORY;
    call->id = ++calls->last_id;
    struct call **bucket = &calls->bucket[call->id % CALL_BUCKETS];
    call->bucket_next = *bucket;
    *bucket = call;
    if (call->deadline_ns)
        put_up(calls, ++calls->nheap, call);
    append(&calls->waiting, call);
    calls->nleft++;
    return 0;
}

struct call *calls_begin(struct calls *calls)
{
    struct call *call = calls->waiting.first;
    take_out(&calls->waiting, call);
    call->together = NULL;
    call->busy = true;
    return call;
}

void calls_end(struct calls *calls, struct call *call, int error)
{
    call->error = error;
    call->ended = true;
    forget_id(calls, call);
    if (call->place)
        heap_remove(calls, call);
    if (!call->busy)
        take_out(&calls->waiting, call);
    append(&calls->ended, call);
}

void calls_leave(struct call *call)
{
    call->busy = false;
    if (call->delivered)
        calls_free_call(call);
}

void calls_deliver(struct calls *calls, struct call *call)
{
    calls->nleft--;
    call->delivered = true;
    if (!call->busy)
        calls_free_call(call);
}

void calls_release(struct calls *calls)
{
    free(calls->heap);
}
