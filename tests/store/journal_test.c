/* journal_test.c - proves that a live file loses nothing that was acknowledged, and that what
 * is found again is what was there, byte for byte: for every kind, after any operations,
 * however the process ended, and where two processes meet. */
#include "support.h"
#include <perhaps_live.h>
#include <perhaps_sets.h>
#include <perhaps_window.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/journal.h"

static const struct perhaps_open_options to_write = { .mode = PERHAPS_MODE_JOURNAL };

/* Saves a new filter, makes it live and returns it open. */
static perhaps_filter *live_filter(const struct perhaps_kind *kind, struct path file,
                                   uint64_t capacity)
{
    scoped_filter *f = make_filter(kind, capacity, low_rate(kind), test_seed());
    unlink(file.text);
    unlink(journal_of(file).text);
    expect_success(perhaps_save(f, file.text));
    return open_file(file.text, &to_write);
}

static void copy_file(struct path from, struct path to)
{
    scoped_bytes bytes = read_file(from.text);
    write_file(to.text, bytes.at, bytes.nbytes);
}

/* Copies a live file with its journal, as they are now: as if the process had been killed. */
static struct path copy_live(struct path file, const char *name)
{
    struct path copy = temp_path(name);
    copy_file(file, copy);
    copy_file(journal_of(file), journal_of(copy));
    return copy;
}

/* Opens a copy in every way, and expects the filter each time; twice to write.  The first time
 * adds a frame that tells of the end, if there is none; the second one changes nothing. */
static void expect_recovers(struct path file, const perhaps_filter *f)
{
    struct path copy = copy_live(file, "copy");
    for (int way = 0; way < 2; way++) {
        scoped_filter *again = open_file(copy.text, ways_to_open[way]);
        expect(perhaps_equal(f, again) && f->counters->keys == again->counters->keys);
    }
    for (int i = 0; i < 2; i++) {
        scoped_bytes before = read_file(journal_of(copy).text);
        perhaps_filter *again = open_file(copy.text, &to_write);
        expect(perhaps_equal(f, again) && f->counters->keys == again->counters->keys);
        perhaps_free(again);
        scoped_bytes after = read_file(journal_of(copy).text);
        expect(after.nbytes >= before.nbytes);
        expect(!memcmp(before.at, after.at, before.nbytes));
        expect(!i || after.nbytes == before.nbytes);
    }
}

/* ---- Any operations ---------------------------------------------------------------------- */

static void add_some(perhaps_filter *f, const struct perhaps_keys *keys, struct rng *rng)
{
    struct perhaps_prepared prepared;
    size_t first = rng_below(rng, keys->count), n = 1 + rng_below(rng, 300);
    struct perhaps_keys some =
        perhaps_keys_slice(keys, first, n < keys->count - first ? n : keys->count - first);
    struct perhaps_key key = perhaps_keys_at(&some, 0);
    switch (rng_below(rng, 6)) { /* any of them may find the filter full */
    case 0:
        perhaps_add(f, key.bytes, key.nbytes);
        break;
    case 1:
        perhaps_add_unless_present(f, key.bytes, key.nbytes, NULL);
        break;
    case 2:
        perhaps_prepare(f, key.bytes, key.nbytes, &prepared);
        perhaps_add_prepared(f, &prepared);
        break;
    case 3:
        perhaps_prepare(f, key.bytes, key.nbytes, &prepared);
        perhaps_add_unless_present_prepared(f, &prepared, NULL);
        break;
    case 4:
        perhaps_add_many(f, &some, NULL);
        break;
    default:
        perhaps_add_unless_present_many(f, &some, NULL, NULL);
    }
}

static void do_something(perhaps_filter *f, const struct perhaps_kind *kind,
                         const struct perhaps_keys *keys, struct rng *rng)
{
    uint64_t what = rng_below(rng, 100);
    if (what < 20 && is_able(kind, PERHAPS_CAN_REMOVE)) {
        size_t first = rng_below(rng, keys->count - 50);
        struct perhaps_keys some = perhaps_keys_slice(keys, first, rng_below(rng, 50));
        perhaps_remove_many(f, &some, NULL, NULL, NULL); /* chains over some kinds cannot */
    } else if (what == 20) {
        expect_success(perhaps_clear(f));
    } else if (what < 25 && forgets(kind)) {
        expect_success(perhaps_rotate(f));
    } else {
        add_some(f, keys, rng);
    }
}

/* Small filters, which are full most of the time: what is done again must neither find room
 * where there was none nor the other way round. */
TEST_EACH(test_any_operations, any_kind)
{
    struct rng rng = rng_for("test_any_operations");
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 6000);
    for (unsigned round = 0; round < many(12); round++) {
        struct path file = temp_path("live");
        uint64_t capacity = 1 + rng_below(&rng, round % 2 ? 2000 : 100);
        scene("%s, round %u, capacity %d", kind->name, round, (int)capacity);
        perhaps_filter *f = live_filter(kind, file, capacity);
        for (unsigned i = 0; i < 60; i++) {
            do_something(f, kind, &keys, &rng);
            if (rng_below(&rng, 12))
                continue;
            if (rng_below(&rng, 3)) {
                expect_success(perhaps_sync(f));
                expect_recovers(file, f);
            } else {
                expect_success(perhaps_checkpoint(f));
            }
        }
        scoped_filter *then = clone_of(f);
        perhaps_free(f);
        expect_recovers(file, then);
    }
}

/* ---- Records that are held back ---------------------------------------------------------- */

/* What is added behind a perhaps_sync() is not remembered without another one: not even if it
 * was time to save the file, nor when the filter is freed. */
TEST_EACH(test_held_back, in_registry)
{
    const struct perhaps_open_options held = { .mode = PERHAPS_MODE_JOURNAL,
                                               .journal_nbytes = 24000,
                                               .journal_records = 1 << 16 };
    const size_t rounds = 20, size = 2000, more = 10;
    struct path file = temp_path("live");
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, (rounds + 1) * size);
    perhaps_free(live_filter(kind, file, 2 * keys.count));
    struct perhaps_journal told = { 0 };
    unsigned saved = 0;
    for (size_t i = 0; i < rounds; i++) {
        const struct perhaps_keys now = some_keys(&keys, i * size, size),
                                  later = some_keys(&keys, (i + 1) * size, more);
        scoped_filter *f = open_file(file.text, &held);
        const uint64_t acknowledged = told.last;
        expect_success(perhaps_journal_of(f, &told));
        expect(told.last == acknowledged);
        saved += i && !told.records;
        expect_success(perhaps_add_many(f, &now, NULL));
        expect_success(perhaps_sync(f));
        expect_success(perhaps_journal_of(f, &told));
        expect(told.last == acknowledged + size && told.synced == told.last);
        expect_success(perhaps_add_many(f, &later, NULL));
    }
    expect(saved > 1);
}

/* Frames of any size, in memory of both allocators: they are filled until no record more has
 * room, and what pads them has room, too. */
TEST_EACH(test_sizes_of_frames, in_registry)
{
    static const uint64_t sizes[] = { 1, 2, 7, 50, 200, 333, 2000 };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 6000);
    for (unsigned i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        struct ledger ledger = { 0 };
        struct perhaps_allocator allocator = ledger_allocator(&ledger);
        const struct perhaps_open_options how = { .mode = PERHAPS_MODE_JOURNAL,
                                                  .journal_records = sizes[i / 2],
                                                  .allocator = i % 2 ? &allocator : NULL };
        struct path file = temp_path("live");
        scene("%s, frames of %u records, allocator %u", kind->name, (unsigned)sizes[i / 2],
              i % 2);
        perhaps_free(live_filter(kind, file, 2 * keys.count));
        perhaps_filter *f = open_file(file.text, &how);
        for (size_t key = 0; key < keys.count; key++) /* each needs a header of its own */
            expect_success(key % 2 ? perhaps_add(f, key_at(&keys, key), keys.key_nbytes)
                                   : perhaps_add_unless_present(f, key_at(&keys, key),
                                                                keys.key_nbytes, NULL));
        expect_success(perhaps_sync(f));
        expect_recovers(file, f);
        perhaps_free(f);
        expect(!ledger.live);
    }
}
