/* api_model.c - a filter beside an exact multiset: see api_model.h. */
#include "api_model.h"

#include <string.h>

#include "filter/counted.h"

/* ---- Keys -------------------------------------------------------------------------------- */

/* Mixes the bits of x; different numbers stay different (MurmurHash3, 64-bit finalizer). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

/* One key in 16 has another length than the others: those of hashes that take one length only
 * are refused, and a bitmap gets no integers. */
static bool is_odd_one(unsigned number)
{
    return number % 16 == 15;
}

/* Writes a key of this length: uniform bytes, since some hashes take them for hashes; the
 * number itself in short keys, so that all differ. */
static void write_key(uint8_t *bytes, size_t nbytes, unsigned number)
{
    for (size_t i = 0; i < nbytes; i++)
        bytes[i] = (uint8_t)(mix(number + 1 + (uint64_t)MODEL_KEYS * (i / 8)) >> i % 8 * 8);
    if (nbytes && nbytes < 8)
        bytes[0] = (uint8_t)number;
}

static size_t any_length(unsigned number)
{
    static const uint8_t nbytes[16] = {
        8, 8, 16, 3, 20, 32, 1, 8, 9, 17, 130, 5, 8, 16, 64, 7
    };
    return number ? nbytes[number % 16] : 0;
}

/* Writes decimal text, which for some numbers is out of the range or no integer.  Returns its
 * length. */
static size_t write_integer(char text[32], unsigned number)
{
    static const char *const none[] = {
        "", "007", "-7", " 7", "7 ", "1e3", "18446744073709551616", "+"
    };
    if (is_odd_one(number))
        return (size_t)snprintf(text, 32, "%s", none[number / 16 % 8]);
    return (size_t)snprintf(text, 32, "%s%u", number % 2 ? "+" : "", RANGE_LOW - 10 + number);
}

static void make_key(struct universe *u, enum perhaps_hash hash, unsigned number)
{
    char text[32];
    size_t only = perhaps_hash_takes(hash), nbytes = any_length(number);
    bool integer = hash == PERHAPS_HASH_INTEGER, odd = is_odd_one(number);
    if (integer)
        nbytes = write_integer(text, number);
    else if (only && !odd)
        nbytes = only;
    uint8_t *bytes = malloc(nbytes + !nbytes); /* of just that size, for AddressSanitizer */
    must(bytes);
    if (integer)
        memcpy(bytes, text, nbytes);
    else
        write_key(bytes, nbytes, number);
    u->key[number] = (struct perhaps_key){ bytes, nbytes };
    u->is_key[number] = integer ? !odd : !only || nbytes == only;
    u->can_add[number] = u->is_key[number];
    if (integer)
        u->can_add[number] &= number >= 10 && number - 10 <= RANGE_HIGH - RANGE_LOW;
}

const struct universe *universe_for(enum perhaps_hash hash)
{
    static struct universe universes[PERHAPS_HASH_COUNT];
    struct universe *u = &universes[hash];
    for (unsigned i = 0; !u->key[MODEL_KEYS - 1].bytes && i < MODEL_KEYS; i++)
        make_key(u, hash, i);
    return u;
}

struct perhaps_keys crowd_keys(size_t first, size_t count)
{
    static uint64_t crowd[CROWD_MOST];
    for (size_t i = 0; !crowd[CROWD_MOST - 1] && i < CROWD_MOST; i++)
        crowd[i] = mix(i + 1 + (UINT64_C(1) << 32));
    return perhaps_keys_packed(crowd + first, sizeof *crowd, count);
}

/* ---- An allocator that counts and fails -------------------------------------------------- */

static void *ledger_allocate(void *context, size_t nbytes)
{
    struct ledger *ledger = context;
    if (ledger->fail_in && --ledger->fail_in == 0) {
        ledger->failed = true;
        return NULL;
    }
    void *memory = ledger->zeroes ? calloc(1, nbytes) : malloc(nbytes);
    must(memory);
    ledger->live_nbytes += nbytes;
    return ledger->zeroes ? memory : memset(memory, 0xa5, nbytes);
}

static void ledger_release(void *context, void *memory, size_t nbytes)
{
    struct ledger *ledger = context;
    must(ledger->live_nbytes >= nbytes);
    ledger->live_nbytes -= nbytes;
    free(memory);
}

struct perhaps_allocator ledger_of(struct ledger *ledger)
{
    return (struct perhaps_allocator){ .allocate = ledger_allocate,
                                       .release = ledger_release,
                                       .context = ledger,
                                       .zeroes = ledger->zeroes };
}

void *ledger_move(void *context, void *memory, size_t nbytes)
{
    void *block = ledger_allocate(context, nbytes);
    if (!block)
        return NULL;
    memcpy(block, memory, nbytes);
    ledger_release(context, memory, nbytes);
    return block;
}

void must_work(const struct subject *s, int error)
{
    must(!error || (error == PERHAPS_ERR_MEMORY && s->ledger->failed));
}

/* ---- What is in -------------------------------------------------------------------------- */

bool stores_copies(const perhaps_filter *f)
{
    return f->removes && !f->kind->exact;
}

int unable(const perhaps_filter *f)
{
    return f->is_set ? PERHAPS_ERR_SET : PERHAPS_ERR_UNSUPPORTED;
}

static uint64_t generations(const perhaps_filter *f)
{
    return f->kind->forgets ? f->parts->count : UINT64_MAX;
}

bool is_in(const struct subject *s, unsigned key)
{
    return s->copies[key] && s->epoch - s->epoch_of[key] < generations(s->f);
}

bool says_perhaps(const struct subject *s, unsigned key)
{
    const struct perhaps_key *k = &s->universe->key[key];
    return perhaps_contains(s->f, k->bytes, k->nbytes);
}

bool may_remove(const struct subject *s, unsigned key)
{
    return s->copies[key] || s->f->kind->exact || !says_perhaps(s, key);
}

/* Returns how many different keys are in, at least. */
static uint64_t different_keys(const struct subject *s)
{
    uint64_t n = s->crowd_to - s->crowd_from;
    for (unsigned i = 0; i < MODEL_KEYS; i++)
        n += is_in(s, i);
    return n > s->stored ? n : s->stored;
}

void subject_empty(struct subject *s)
{
    memset(s->copies, 0, sizeof s->copies);
    s->crowd_from = s->crowd_to = 0;
    s->stored = s->failed_adds = s->unmatched = s->came = 0;
    s->epoch = 0;
    s->knows_time = false;
    s->is_estimate = false;
    s->is_loose = s->is_crafted || s->is_foreign;
    s->is_new = true;
}

void subject_take(struct subject *to, const struct subject *from, perhaps_filter *f)
{
    if (to != from)
        *to = *from;
    to->f = f;
}

/* ---- Add --------------------------------------------------------------------------------- */

static int call_add(struct subject *s, enum add_way way, unsigned key, bool *was_present)
{
    const struct perhaps_key *k = &s->universe->key[key];
    struct perhaps_prepared prepared;
    *was_present = false;
    if (way == ADD_PLAIN)
        return perhaps_add(s->f, k->bytes, k->nbytes);
    if (way == ADD_UNLESS)
        return perhaps_add_unless_present(s->f, k->bytes, k->nbytes, was_present);
    perhaps_prepare(s->f, k->bytes, k->nbytes, &prepared);
    if (way == ADD_PREPARED)
        return perhaps_add_prepared(s->f, &prepared);
    return perhaps_add_unless_present_prepared(s->f, &prepared, was_present);
}

static const perhaps_filter *newest_part(const perhaps_filter *f)
{
    return f->parts->count ? f->parts->part[f->parts->count - 1] : NULL;
}

/* Returns whether a filter may say that it is full. */
static bool may_be_full(const struct subject *s)
{
    const perhaps_filter *newest = newest_part(s->f);
    if (s->is_loose)
        return true;
    if (s->f->kind->forgets)
        return s->came >= newest->body.geometry.capacity;
    return !(s->f->kind->about.abilities & PERHAPS_CAN_GROW) &&
           different_keys(s) >= s->f->body.geometry.capacity;
}

/* Checks an error of an add. */
static void note_failure(struct subject *s, unsigned key, int error)
{
    if (!s->universe->can_add[key]) {
        must(error == PERHAPS_ERR_ARGUMENT);
        return;
    }
    must(error == PERHAPS_ERR_FULL || error == PERHAPS_ERR_COPIES ||
         error == PERHAPS_ERR_MEMORY);
    must(error != PERHAPS_ERR_FULL || may_be_full(s));
    must(error != PERHAPS_ERR_COPIES || stores_copies(s->f));
    must(error != PERHAPS_ERR_MEMORY || s->ledger->failed);
    s->failed_adds++;
}

/* A window by keys begins a generation when the newest is full: not before, unless crafted keys
 * have used that up. */
static void note_own_rotation(struct subject *s)
{
    const perhaps_filter *newest = newest_part(s->f);
    enum { PERIOD_KEYS = 2 }; /* the number of the field */
    uint64_t period = s->f->body.geometry.field[PERIOD_KEYS];
    must(period);
    if (period > newest->body.geometry.key_limit)
        period = newest->body.geometry.key_limit;
    must(s->came >= period || s->is_loose);
    subject_rotated(s, 1);
}

/* Notes that a key was added.  Where copies are stored, a key that was only "perhaps there"
 * before, and so was not stored, may share the entry of another one: nobody may remove it. */
static void note_added(struct subject *s, unsigned key, bool was_there, bool was_present)
{
    bool copies = stores_copies(s->f);
    must(s->universe->can_add[key]);
    s->stored += copies ? !was_present : !was_there;
    s->came += !was_present;
    s->is_new = false;
    if (was_present && (copies || s->f->kind->forgets))
        return;
    s->is_loose |= copies && s->copies[key];
    s->copies[key] = copies ? s->copies[key] + 1 : 1;
    s->epoch_of[key] = s->epoch;
}

int subject_add(struct subject *s, enum add_way way, unsigned key, bool *was_present)
{
    const perhaps_filter *newest = newest_part(s->f);
    bool was_there = says_perhaps(s, key), unless = way >= ADD_UNLESS, answer;
    int error = call_add(s, way, key, &answer);
    if (was_present)
        *was_present = answer;
    if (error) {
        must(!answer);
        note_failure(s, key, error);
        return error;
    }
    bool rotated = s->f->kind->forgets && newest_part(s->f) != newest;
    if (rotated)
        note_own_rotation(s);
    must(!answer || was_there);
    must(answer == (unless && was_there) || rotated);
    note_added(s, key, was_there, answer);
    must(says_perhaps(s, key));
    return 0;
}

void subject_rotated(struct subject *s, uint64_t times)
{
    if (!times)
        return;
    s->epoch += (uint32_t)times;
    s->came = 0;
}

/* ---- Remove and ask ---------------------------------------------------------------------- */

int subject_remove(struct subject *s, unsigned key)
{
    const struct perhaps_key *k = &s->universe->key[key];
    int error = perhaps_remove(s->f, k->bytes, k->nbytes);
    if (!error) {
        must(s->copies[key]);
        s->copies[key]--;
        s->stored--;
        return 0;
    }
    if (!s->f->removes)
        must(error == unable(s->f));
    else if (!s->universe->is_key[key])
        must(error == PERHAPS_ERR_ARGUMENT);
    else
        must(error == PERHAPS_ERR_NOT_FOUND && !s->copies[key]);
    s->unmatched += error == PERHAPS_ERR_NOT_FOUND;
    return error;
}

/* Checks the count of a key: as in model_test.c, never below the number of copies, and never
 * above what the kind can store. */
static void check_count(const struct subject *s, unsigned key, bool perhaps)
{
    const struct perhaps_key *k = &s->universe->key[key];
    bool is_chain = s->f->kind->composite;
    uint64_t layers = is_chain ? s->f->parts->count : 1, least = s->copies[key], count;
    int error = perhaps_count(s->f, k->bytes, k->nbytes, &count);
    if (!s->f->counts || !s->universe->is_key[key]) {
        must(error == (s->f->counts ? PERHAPS_ERR_ARGUMENT : unable(s->f)));
        must(count == 0);
        return;
    }
    must(!error);
    must(count >= (least < PERHAPS_COUNT_MAX ? least : PERHAPS_COUNT_MAX));
    must(count <= layers * PERHAPS_COUNT_MAX);
    must(perhaps == (count > 0));
}

void subject_ask(const struct subject *s, unsigned key)
{
    const struct perhaps_key *k = &s->universe->key[key];
    struct perhaps_prepared prepared;
    bool perhaps = says_perhaps(s, key);
    perhaps_prepare(s->f, k->bytes, k->nbytes, &prepared);
    must(perhaps_contains_prepared(s->f, &prepared) == perhaps);
    must(perhaps || !is_in(s, key));
    must(!perhaps || s->universe->can_add[key]);
    check_count(s, key, perhaps);
}

/* ---- Check all --------------------------------------------------------------------------- */

static void check_counters(const struct subject *s)
{
    const struct counters *counters = s->f->counters;
    uint64_t keys = 0;
    for (size_t i = 0; i < s->f->parts->count; i++)
        keys += s->f->parts->part[i]->counters->keys;
    must(counters->keys == s->stored || s->is_estimate || filter_is_estimated(s->f) ||
         s->f->kind->forgets);
    must(counters->keys == keys || !s->f->kind->forgets);
    must(counters->failed_adds == s->failed_adds);
    must(counters->unmatched_removals == s->unmatched);
}

/* Checks that so many of the crowd are found, from number 'first' on. */
static void check_crowd(const struct subject *s, size_t first, size_t count)
{
    struct perhaps_keys keys = crowd_keys(first, count);
    must(perhaps_contains_many(s->f, &keys, NULL) == count);
}

void subject_check(const struct subject *s, bool fully)
{
    static bool present[MODEL_KEYS];
    struct perhaps_keys keys = perhaps_keys_each(s->universe->key, MODEL_KEYS);
    size_t found = perhaps_contains_many(s->f, &keys, present), count = 0;
    for (unsigned i = 0; i < MODEL_KEYS; i++) {
        must(present[i] || !is_in(s, i));
        must(!present[i] || s->universe->can_add[i]);
        must(present[i] == is_in(s, i) || !s->f->kind->exact);
        count += present[i];
    }
    must(count == found);
    must(!found || !s->is_new);
    must(found == s->f->counters->keys || !s->f->kind->exact);
    size_t crowd = s->crowd_to - s->crowd_from, some = 100;
    if (fully || crowd < some)
        some = crowd;
    check_crowd(s, s->crowd_from, some);
    check_crowd(s, s->crowd_to - some, some);
    check_counters(s);
}
