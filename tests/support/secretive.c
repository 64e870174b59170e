/* secretive.c - see secretive.h. */
#include "secretive.h"

#include <string.h>

#include "hostile.h"

const uint8_t known_secret[SECRET_NBYTES] = { 0x9d, 0x42, 0xe7, 0x1b, 0xc8, 0x35, 0x76, 0xaf,
                                              0x5e, 0xd3, 0x08, 0xb1, 0x6c, 0xf4, 0x2a, 0x97 };

enum { HALF = SECRET_NBYTES / 2 };
static const double usual_fpr = 0.01;

/* The words that SipHash adds to the halves, bit by bit, before it begins; those of the second
 * half also with the mark of hashes of 128 bits. */
enum { FORMS = 7 };
static const struct {
    size_t half;
    uint64_t word;
} forms[FORMS] = {
    { 0, 0 },
    { 0, UINT64_C(0x736f6d6570736575) },
    { 0, UINT64_C(0x6c7967656e657261) },
    { HALF, 0 },
    { HALF, UINT64_C(0x646f72616e646f6d) },
    { HALF, UINT64_C(0x7465646279746573) },
    { HALF, UINT64_C(0x646f72616e646f6d) ^ 0xee },
};

static uint8_t wanted[FORMS][HALF];

__attribute__((constructor)) static void begin_search(void)
{
    for (unsigned i = 0; i < FORMS; i++)
        put64(wanted[i], get64(known_secret + forms[i].half) ^ forms[i].word);
}

bool holds_secret(const void *memory, size_t nbytes)
{
    bool found = false;
    for (unsigned i = 0; i < FORMS; i++)
        found |= memmem(memory, nbytes, wanted[i], HALF) != NULL;
    return found;
}

/* ---- Filters ----------------------------------------------------------------------------- */

struct perhaps_hashing secretive_hashing(void)
{
    return (struct perhaps_hashing){ .hash = PERHAPS_HASH_SIP, .secret = known_secret };
}

struct perhaps_options secretive_options(const struct perhaps_kind *kind)
{
    struct perhaps_options options = options_for(kind, SECRETIVE_KEYS, usual_fpr, 0);
    options.hashing = secretive_hashing();
    return options;
}

perhaps_filter *secretive_filter(const struct perhaps_kind *kind,
                                 const struct perhaps_keys *keys)
{
    struct perhaps_options options = secretive_options(kind);
    if (is_built(kind))
        return built_filter(&options, keys);
    perhaps_filter *f = make_with(&options);
    fill(f, keys);
    return f;
}

/* ---- An allocator that looks at what is released ----------------------------------------- */

static void *watched_allocate(void *context, size_t nbytes)
{
    struct watch *w = context;
    uint8_t *memory = NULL;
    pthread_mutex_lock(&w->lock);
    if (++w->calls != w->fail_at && w->nblocks < BLOCKS_MOST)
        memory = calloc(1, nbytes);
    if (memory) {
        w->block[w->nblocks].memory = memory;
        w->block[w->nblocks].nbytes = nbytes;
        w->block[w->nblocks++].released = false;
    }
    pthread_mutex_unlock(&w->lock);
    return memory;
}

static void watched_release(void *context, void *memory, size_t nbytes)
{
    struct watch *w = context;
    pthread_mutex_lock(&w->lock);
    w->leaked |= !w->blind && holds_secret(memory, nbytes);
    for (size_t i = 0; i < w->nblocks; i++)
        if (w->block[i].memory == memory)
            w->block[i].released = true;
    pthread_mutex_unlock(&w->lock);
}

bool watch_is_clean(struct watch *w, size_t first)
{
    bool clean = !w->leaked && w->nblocks < BLOCKS_MOST; /* else calls failed for that */
    for (size_t i = first; i < w->nblocks; i++) {
        clean = clean && w->block[i].released &&
                !holds_secret(w->block[i].memory, w->block[i].nbytes);
        free(w->block[i].memory);
    }
    w->nblocks = first;
    return clean;
}

void *watch_move(void *context, void *memory, size_t nbytes)
{
    void *moved = watched_allocate(context, nbytes);
    if (!moved)
        return NULL;
    memcpy(moved, memory, nbytes);
    watched_release(context, memory, nbytes);
    return moved;
}

void watch_begin(struct watch *w)
{
    *w = (struct watch){ .nblocks = 0 };
    pthread_mutex_init(&w->lock, NULL);
}

struct perhaps_allocator watch_allocator(struct watch *w)
{
    return (struct perhaps_allocator){ watched_allocate, watched_release, w, .zeroes = true };
}
