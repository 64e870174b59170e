/* api_keys.c - the calls of api_fuzz.c with keys.  The calls for many keys must do what those
 * for one key do. */
#include "api_fuzz.h"
#include <perhaps_build.h>
#include <perhaps_sets.h>

enum { BATCH_KEYS = 3 * 255 };

/* ---- Batches of keys --------------------------------------------------------------------- */

struct batch {
    unsigned count;
    unsigned number[BATCH_KEYS]; /* in the universe */
    struct perhaps_key each[BATCH_KEYS];
};

static void batch_append(struct batch *b, const struct universe *universe, unsigned number)
{
    b->number[b->count] = number;
    b->each[b->count++] = universe->key[number];
}

/* Takes a batch: every step-th key, round and round.  Most are small; some are larger than all
 * that the library handles at once. */
static void take_batch(struct play *p, struct batch *b)
{
    unsigned first = take(p), byte = take(p), step = take(p);
    unsigned count = byte < 240 ? byte / 2 : 3 * byte;
    b->count = 0;
    for (unsigned i = 0; i < count; i++)
        batch_append(b, p->side[0].universe, (first + i * step) % MODEL_KEYS);
}

/* Returns the keys of a batch in one of the forms that keys can have. */
static struct perhaps_keys take_form(struct play *p, const struct batch *b)
{
    static uint8_t bytes[BATCH_KEYS * 256];
    static uint32_t narrow[BATCH_KEYS + 1];
    static uint64_t wide[BATCH_KEYS + 1];
    static struct perhaps_hashed hashed[BATCH_KEYS];
    struct perhaps_keys keys = perhaps_keys_each(b->each, b->count);
    unsigned form = take(p) % 4;
    if (form == 1 && !perhaps_hash_many(p->side[0].f, &keys, hashed))
        return perhaps_keys_hashed(hashed, b->count);
    for (unsigned i = 0; i < b->count; i++) {
        if (b->each[i].nbytes)
            memcpy(bytes + wide[i], b->each[i].bytes, b->each[i].nbytes);
        wide[i + 1] = wide[i] + b->each[i].nbytes;
        narrow[i + 1] = (uint32_t)wide[i + 1];
    }
    return form == 2   ? perhaps_keys_offsets32(bytes, narrow, b->count)
           : form == 3 ? perhaps_keys_offsets64(bytes, wide, b->count)
                       : keys;
}

/* ---- Add --------------------------------------------------------------------------------- */

/* Adds a key; if that fails, it must change nothing.  But a filter that grows in place may have
 * split a page before it finds that copies crowd the key's slots. */
static int add_checked(struct subject *s, enum add_way way, unsigned key)
{
    struct digest before = digest_of(s->f);
    int error = subject_add(s, way, key, NULL);
    must(!error || s->f->kind->grows || same_digest(before, digest_of(s->f)));
    return error;
}

void op_add(struct play *p)
{
    enum add_way way = (enum add_way)(take(p) % ADD_WAYS);
    add_checked(&p->side[0], way, take(p));
}

/* A call that adds many keys. */
typedef int adder(perhaps_filter *f, const struct perhaps_keys *keys, bool *was_present,
                  size_t *done);

static int add_plain(perhaps_filter *f, const struct perhaps_keys *keys, bool *was_present,
                     size_t *done)
{
    (void)was_present;
    return perhaps_add_many(f, keys, done);
}

/* With this memory keys do wait, even for a small filter. */
static int add_bulk(perhaps_filter *f, const struct perhaps_keys *keys, bool *was_present,
                    size_t *done)
{
    const struct perhaps_build_options how = { .memory_nbytes = 1 << 16, .threads = 1 };
    perhaps_bulk *bulk;
    (void)was_present;
    *done = 0;
    int error = perhaps_bulk_begin(f, &how, &bulk);
    must(!error == !!bulk);
    if (!error)
        error = perhaps_bulk_add(bulk, keys, done);
    perhaps_bulk_end(bulk);
    return error;
}

/* A filter that grows in place takes memory for crowded keys by how many it has: and a call for
 * many keys counts them before it adds them.  So it may take some that one by one are
 * refused. */
static bool may_refuse_alone(const perhaps_filter *f, int error)
{
    return f->kind->grows && error == (f->is_set ? PERHAPS_ERR_FULL : PERHAPS_ERR_COPIES);
}

/* Adds the keys that a call for many keys has added one by one to a twin, which must become the
 * same, and takes the model of that.  The twin is a copy, and so must the filter be: what an
 * add found out about the room is forgotten in copies. */
static void add_batch(struct play *p, const struct batch *b, adder *add)
{
    static bool present[BATCH_KEYS];
    static struct subject twin;
    struct subject *s = &p->side[0];
    bool unless = add == perhaps_add_unless_present_many, was_present;
    enum add_way way = unless ? ADD_UNLESS : ADD_PLAIN;
    struct perhaps_keys keys = take_form(p, b);
    size_t done;
    go_on_with(p, copy_of(p, s->f));
    subject_take(&twin, s, copy_of(p, s->f));
    int error = add(s->f, &keys, present, &done);
    p->ledger.fail_in = 0;
    for (size_t i = 0; i < done; i++) {
        int alone = subject_add(&twin, way, b->number[i], &was_present);
        if (may_refuse_alone(twin.f, alone)) {
            perhaps_free(s->f);
            subject_take(s, &twin, twin.f);
            return;
        }
        must(!alone);
        must(!unless || was_present == present[i]);
    }
    must(error ? done < b->count || !b->count : done == b->count); /* bulks take memory first */
    if (error && error != PERHAPS_ERR_MEMORY)
        must(add_checked(&twin, way, b->number[done]) == error);
    must(error != PERHAPS_ERR_MEMORY || p->ledger.failed);
    must(perhaps_equal(s->f, twin.f) && s->f->counters->keys == twin.f->counters->keys);
    if (error == PERHAPS_ERR_MEMORY)
        twin.failed_adds = s->f->counters->failed_adds;
    perhaps_free(twin.f);
    subject_take(s, &twin, s->f);
    subject_check(s, false);
}

void op_add_many(struct play *p)
{
    static adder *const adders[] = { add_plain, perhaps_add_unless_present_many, add_bulk };
    static struct batch b;
    adder *add = adders[take(p) % 3];
    take_batch(p, &b);
    add_batch(p, &b, add);
}

/* Returns whether the filter can have a crowd, of how many keys. */
static size_t crowd_most(const struct play *p)
{
    const perhaps_filter *f = p->side[0].f;
    size_t takes = perhaps_hash_takes(f->hasher.id);
    if (f->kind->forgets || f->kind->exact || (takes && takes != sizeof(uint64_t)))
        return 0;
    return f->kind->grows ? CROWD_MOST : CROWD_MOST / 64;
}

/* Adds the next keys of the crowd: the only way to make a filter grow much. */
void op_crowd(struct play *p)
{
    struct subject *s = &p->side[0];
    size_t most = crowd_most(p), count = (1 + take(p) % 8) * (most / 20), done;
    if (count > most - s->crowd_to || s->crowd_to > most)
        return;
    struct perhaps_keys keys = crowd_keys(s->crowd_to, count);
    uint64_t before = s->f->counters->keys;
    int error = perhaps_add_many(s->f, &keys, &done);
    must(error ? done < count : done == count);
    must(s->f->counters->keys <= before + done); /* a recount may find fewer */
    must(!stores_copies(s->f) || s->f->counters->keys - before == done);
    s->stored += s->f->counters->keys - before;
    s->crowd_to += done;
    s->is_new &= !done;
    s->failed_adds += error != 0;
    must(error != PERHAPS_ERR_MEMORY || p->ledger.failed);
    must(error != PERHAPS_ERR_COPIES || stores_copies(s->f));
    subject_check(s, false);
}

/* Removes the oldest of the crowd. */
void op_leave(struct play *p)
{
    struct subject *s = &p->side[0];
    size_t count = take(p) * (crowd_most(p) / 200 + 1), left = s->crowd_to - s->crowd_from;
    size_t removed;
    struct perhaps_keys keys = crowd_keys(s->crowd_from, count < left ? count : left);
    int error = perhaps_remove_many(s->f, &keys, NULL, &removed, NULL);
    must(error == (s->f->removes ? 0 : unable(s->f)));
    if (error)
        return;
    must(removed == keys.count);
    s->crowd_from += removed;
    s->stored -= removed;
    subject_check(s, false);
}

/* ---- Ask and remove ---------------------------------------------------------------------- */

void op_ask(struct play *p)
{
    subject_ask(&p->side[0], take(p));
}

void op_ask_many(struct play *p)
{
    static struct batch b;
    static bool present[BATCH_KEYS];
    static uint64_t counts[BATCH_KEYS];
    const struct subject *s = &p->side[0];
    uint64_t count;
    size_t n = 0;
    take_batch(p, &b);
    struct perhaps_keys keys = take_form(p, &b);
    size_t found = perhaps_contains_many(s->f, &keys, present);
    int error = perhaps_count_many(s->f, &keys, counts), wrong = 0;
    for (unsigned i = 0; i < b.count; i++) {
        must(present[i] == says_perhaps(s, b.number[i]));
        wrong = wrong ? wrong : perhaps_count(s->f, b.each[i].bytes, b.each[i].nbytes, &count);
        must(error ? counts[i] == 0 : counts[i] == count);
        n += present[i];
    }
    must(n == found && (!b.count || error == wrong));
}

void op_remove(struct play *p)
{
    struct subject *s = &p->side[0];
    struct digest before = digest_of(s->f);
    unsigned key = take(p);
    if (may_remove(s, key) && subject_remove(s, key))
        must(same_digest(before, digest_of(s->f)));
}

/* Leaves out keys of which no copy will be left, but which may still be "perhaps there". */
static void keep_removable(const struct subject *s, struct batch *b)
{
    static uint32_t left[MODEL_KEYS];
    unsigned count = b->count;
    memcpy(left, s->copies, sizeof left);
    b->count = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned number = b->number[i];
        if (!may_remove(s, number) || (s->copies[number] && !left[number]))
            continue;
        left[number] -= left[number] > 0;
        batch_append(b, s->universe, number);
    }
}

void op_remove_many(struct play *p)
{
    static struct batch b;
    static bool removed[BATCH_KEYS];
    static struct subject twin;
    struct subject *s = &p->side[0];
    size_t count, done, first_bad = 0, n = 0;
    take_batch(p, &b);
    keep_removable(s, &b);
    struct perhaps_keys keys = take_form(p, &b);
    subject_take(&twin, s, copy_of(p, s->f));
    int error = perhaps_remove_many(s->f, &keys, removed, &count, &done);
    while (s->f->removes && first_bad < b.count && s->universe->is_key[b.number[first_bad]])
        first_bad++;
    if (!s->f->removes)
        must(error == unable(s->f));
    else
        must(error == (first_bad < b.count ? PERHAPS_ERR_ARGUMENT : 0));
    must(done == first_bad);
    for (unsigned i = 0; i < done; i++) {
        must(!subject_remove(&twin, b.number[i]) == removed[i]);
        n += removed[i];
    }
    must(count == n && perhaps_equal(s->f, twin.f));
    perhaps_free(twin.f);
    subject_take(s, &twin, s->f);
    subject_check(s, false);
}
