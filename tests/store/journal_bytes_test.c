/* journal_bytes_test.c - proves that a journal whose bytes were changed, cut off, exchanged or
 * made up is found out, or read up to a moment: never is anything false taken from it.  Of a
 * journal that was closed no record is lost silently; of one that was not, at most those of the
 * last sync, which cannot be told from a crash. */
#include "live_files.h"
#include "support.h"
#include <perhaps_live.h>
#include <perhaps_sets.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/bytes.h"
#include "store/journal.h"

/* ---- A live file and its past ------------------------------------------------------------ */

enum { COMMITS = 5 };

/* A live file as bytes, and what the filter was behind each sync. */
struct past {
    struct path file; /* where the bytes are put to be tried */
    struct bytes snapshot;
    struct bytes journal; /* it has a header, a frame for each sync, */
    struct bytes closed;  /* and a last one of a clean end */
    uint8_t digest[COMMITS + 1][16];
    size_t end[COMMITS + 1]; /* where the frame of each sync ends in the journal */
};

static void note(struct past *past, const perhaps_filter *f, unsigned commit)
{
    struct perhaps_journal told;
    expect_success(perhaps_journal_of(f, &told));
    past->end[commit] = (size_t)told.nbytes;
    perhaps_digest(f, past->digest[commit]);
}

static struct past make_past(const struct perhaps_kind *kind)
{
    struct past past = { .file = temp_path("F") };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 300);
    scoped_filter *plain = make_filter(kind, 300, 0.01, test_seed());
    unlink(journal_of(past.file).text);
    unlink(past.file.text);
    expect_success(perhaps_save(plain, past.file.text));
    perhaps_filter *f = open_file(past.file.text, &to_write);
    note(&past, f, 0);
    for (unsigned i = 1; i <= COMMITS; i++) { /* frames of one sector, and of two */
        struct perhaps_keys some = perhaps_keys_slice(&keys, 50 * i, i == 2 ? 45 : 5 * i);
        expect_success(perhaps_add_many(f, &some, NULL));
        expect_success(perhaps_sync(f));
        note(&past, f, i);
    }
    past.snapshot = read_file(past.file.text);
    past.journal = read_file(journal_of(past.file).text);
    perhaps_free(f);
    past.closed = read_file(journal_of(past.file).text);
    expect(past.closed.nbytes == past.end[COMMITS] + SECTOR_NBYTES);
    expect(past.journal.nbytes == past.end[COMMITS]);
    return past;
}

#define scoped_past __attribute__((cleanup(free_past))) struct past

static void free_past(struct past *past)
{
    free_bytes(&past->snapshot);
    free_bytes(&past->journal);
    free_bytes(&past->closed);
}

/* Returns of which sync the filter is; fails the test if it is of none. */
static unsigned commit_of(const struct past *past, const perhaps_filter *f)
{
    uint8_t digest[16];
    unsigned commit = COMMITS;
    perhaps_digest(f, digest);
    while (commit && memcmp(digest, past->digest[commit], sizeof digest) != 0)
        commit--;
    expect(!memcmp(digest, past->digest[commit], sizeof digest));
    return commit;
}

/* Opens what lies in the folder.  Returns the error, or sets *commit and returns 0. */
static int open_past(const struct past *past, enum perhaps_mode mode, unsigned *commit)
{
    struct perhaps_open_options options = to_write;
    perhaps_filter *f;
    options.mode = mode;
    int error = perhaps_open(past->file.text, &options, &f);
    if (!error)
        *commit = commit_of(past, f);
    perhaps_free(f);
    return error;
}

/* The errors that the header documents for a journal that is not right. */
static bool is_of_journal(int error)
{
    return error == PERHAPS_ERR_JOURNAL || error == PERHAPS_ERR_DAMAGED ||
           error == PERHAPS_ERR_VERSION;
}

/* Opens with these bytes as the journal, in memory or in every mode, which must agree.  An
 * error changes no byte. */
static int try_journal(const struct past *past, const uint8_t *bytes, size_t nbytes, bool all,
                       unsigned *commit)
{
    struct path journal = journal_of(past->file);
    unsigned then = 0;
    put_file(journal, bytes, nbytes);
    int error = open_past(past, PERHAPS_MODE_LOAD, commit);
    expect(!error || is_of_journal(error));
    if (!all)
        return error;
    expect(open_past(past, PERHAPS_MODE_READ, &then) == error && (error || then == *commit));
    expect(open_past(past, PERHAPS_MODE_JOURNAL, &then) == error && (error || then == *commit));
    scoped_bytes left = read_file(journal.text);
    if (error)
        expect(left.nbytes == nbytes && !memcmp(left.at, bytes, nbytes));
    put_file(past->file, past->snapshot.at, past->snapshot.nbytes);
    return error;
}

/* ---- Flips ------------------------------------------------------------------------------- */

enum region { HEADER, FRAME, PADDING };

/* Tells what a byte belongs to, and the sync that its frame is of; the closing one comes behind
 * the last. */
static enum region region_of(const struct past *past, size_t at, unsigned *commit)
{
    enum { NBYTES_AT = 12 }; /* in the header of a frame: doc/FORMAT.md */
    for (*commit = 0; *commit <= COMMITS && at >= past->end[*commit];)
        ++*commit;
    if (!*commit)
        return HEADER;
    size_t begin = past->end[*commit - 1];
    return at - begin < load32(past->closed.at + begin + NBYTES_AT) ? FRAME : PADDING;
}

/* Returns whether this bit is flipped: any, if PERHAPS_TEST_EVERY is set. */
static bool is_chosen(enum region region, size_t at, unsigned bit)
{
    return every_case() || (at % 8 == bit && (region != PADDING || !bit));
}

/* Flips bits of a journal whose last frame is of 'last'.  Only damage of the last frame may
 * look like a crash, which the sync before it has survived. */
static void flip_bits(const struct past *past, const struct bytes *journal, unsigned last)
{
    scoped_bytes bytes = copy_bytes(journal);
    for (size_t i = 0; i < bytes.nbytes; i++) {
        unsigned commit, found = 0;
        enum region region = region_of(past, i, &commit);
        for (unsigned bit = 0; bit < 8; bit++) {
            if (!is_chosen(region, i, bit))
                continue;
            scene("byte %zu, bit %u, last frame %u", i, bit, last);
            bytes.at[i] ^= (uint8_t)(1U << bit);
            int error = try_journal(past, bytes.at, bytes.nbytes, i % 16 == 0, &found);
            bytes.at[i] ^= (uint8_t)(1U << bit);
            if (region == PADDING || (region == FRAME && commit == last))
                expect(!error);
            else
                expect(error);
            unsigned least = region == FRAME && commit == last ? last - 1 : last;
            expect(error || found == (least < COMMITS ? least : COMMITS));
        }
    }
}

TEST(test_flips)
{
    scoped_past past = make_past(perhaps_kind_at(0));
    flip_bits(&past, &past.closed, COMMITS + 1);
    flip_bits(&past, &past.journal, COMMITS);
}

/* Sectors that the disk has lost, in every kind. */
TEST_EACH(test_lost_sectors, in_registry)
{
    scoped_past past = make_past(kind);
    for (size_t at = 0; at < past.closed.nbytes; at += SECTOR_NBYTES) {
        for (int garbage = 0; garbage < 2; garbage++) {
            unsigned commit, found = 0;
            scoped_bytes bytes = copy_bytes(&past.closed);
            scene("%s, sector at %zu, garbage %d", kind->name, at, garbage);
            memset(bytes.at + at, garbage ? 0xa5 : 0, SECTOR_NBYTES);
            int error = try_journal(&past, bytes.at, bytes.nbytes, true, &found);
            region_of(&past, at, &commit);
            expect(commit > COMMITS ? !error && found == COMMITS : error);
        }
    }
}

/* ---- Cuts -------------------------------------------------------------------------------- */

/* What is left is the state behind the last frame that is whole. */
TEST(test_cuts)
{
    scoped_past past = make_past(perhaps_kind_at(0));
    for (size_t nbytes = 0; nbytes <= past.closed.nbytes; nbytes++) {
        unsigned found = 0, whole = 0;
        scene("cut at %zu", nbytes);
        int error = try_journal(&past, past.closed.at, nbytes, nbytes % 16 == 0, &found);
        if (nbytes < JOURNAL_HEADER_NBYTES) {
            expect_error(error, PERHAPS_ERR_JOURNAL);
            continue;
        }
        while (whole < COMMITS) { /* of a frame its padding may be missing */
            unsigned of;
            size_t end = past.end[whole + 1];
            while (region_of(&past, end - 1, &of) == PADDING)
                end--;
            if (nbytes < end)
                break;
            whole++;
        }
        expect(!error && found == whole);
    }
}

/* ---- Journals and files that do not belong together ------------------------------------- */

static void expect_all_fail(const struct past *past, int wanted)
{
    unsigned commit;
    for (int mode = PERHAPS_MODE_READ; mode <= PERHAPS_MODE_JOURNAL; mode++)
        if (mode != PERHAPS_MODE_IN_PLACE)
            expect_error(open_past(past, (enum perhaps_mode)mode, &commit), wanted);
}

TEST(test_no_journal)
{
    scoped_past past = make_past(perhaps_kind_at(0));
    struct path journal = journal_of(past.file);
    expect(!unlink(journal.text));
    expect_all_fail(&past, PERHAPS_ERR_JOURNAL);
    put_file(journal, "", 0);
    expect_all_fail(&past, PERHAPS_ERR_JOURNAL);
    put_file(journal, past.snapshot.at, past.snapshot.nbytes);
    expect_all_fail(&past, PERHAPS_ERR_JOURNAL);
    memset(past.journal.at, 0x5a, past.journal.nbytes);
    put_file(journal, past.journal.at, past.journal.nbytes);
    expect_all_fail(&past, PERHAPS_ERR_JOURNAL);
    expect(!unlink(journal.text) && !mkdir(journal.text, 0755));
    unsigned commit;
    expect(open_past(&past, PERHAPS_MODE_LOAD, &commit));
    expect(open_past(&past, PERHAPS_MODE_JOURNAL, &commit));
    expect(!rmdir(journal.text));
}

TEST(test_other_files)
{
    scoped_past past = make_past(perhaps_kind_at(0));
    struct past other = make_past(perhaps_kind_at(0)); /* another id */
    unsigned commit;
    put_file(past.file, past.snapshot.at, past.snapshot.nbytes);
    expect_all_fail(&past, PERHAPS_ERR_JOURNAL);

    /* frames of another journal behind the last one */
    static uint8_t both[1 << 20];
    const size_t nbytes = past.end[COMMITS] + other.closed.nbytes - JOURNAL_HEADER_NBYTES;
    expect(nbytes <= sizeof both);
    memcpy(both, past.closed.at, past.end[COMMITS]);
    memcpy(both + past.end[COMMITS], other.closed.at + JOURNAL_HEADER_NBYTES,
           other.closed.nbytes - JOURNAL_HEADER_NBYTES);
    expect(!try_journal(&past, both, nbytes, true, &commit) && commit == COMMITS);
    free_past(&other);
}

/* A file of before or behind a checkpoint, with the journal of the other time. */
TEST(test_other_times)
{
    scoped_past past = make_past(perhaps_kind_at(0));
    struct path journal = journal_of(past.file);
    perhaps_filter *f = open_file(past.file.text, &to_write);
    expect_success(perhaps_checkpoint(f));
    perhaps_free(f);
    scoped_bytes snapshot = read_file(past.file.text);
    unsigned commit;

    put_file(past.file, past.snapshot.at, past.snapshot.nbytes);
    expect_all_fail(&past, PERHAPS_ERR_JOURNAL);

    put_file(past.file, snapshot.at, snapshot.nbytes);
    put_file(journal, past.closed.at, past.closed.nbytes);
    expect(!open_past(&past, PERHAPS_MODE_LOAD, &commit) && commit == COMMITS);

    for (unsigned i = 0; i < COMMITS; i++) { /* it lacks records that the file has */
        put_file(journal, past.closed.at, past.end[i]);
        expect_all_fail(&past, PERHAPS_ERR_DAMAGED);
    }
}

static void seal_header(uint8_t *header)
{
    enum { CHECKSUM_AT = 16 };
    store64(header + CHECKSUM_AT, 0);
    store64(header + CHECKSUM_AT, XXH3_64bits(header, JOURNAL_HEADER_NBYTES));
}

TEST(test_future_version)
{
    enum { VERSION_AT = 8, BEHIND_FIELDS = 48 };
    scoped_past past = make_past(perhaps_kind_at(0));
    struct path journal = journal_of(past.file);
    past.closed.at[VERSION_AT]++;
    seal_header(past.closed.at);
    put_file(journal, past.closed.at, past.closed.nbytes);
    expect_all_fail(&past, PERHAPS_ERR_VERSION);
    past.closed.at[VERSION_AT]--;
    past.closed.at[BEHIND_FIELDS] = 1;
    seal_header(past.closed.at);
    put_file(journal, past.closed.at, past.closed.nbytes);
    expect_all_fail(&past, PERHAPS_ERR_VERSION);
}

/* Somebody has saved a filter over a live file: that filter is there, and the journal is none
 * of its own. */
TEST(test_replaced)
{
    scoped_past past = make_past(perhaps_kind_at(0));
    scoped_filter *plain = make_filter(perhaps_kind_at(0), 300, 0.01, test_seed());
    unsigned commit;
    expect_success(perhaps_save(plain, past.file.text));
    for (int mode = PERHAPS_MODE_READ; mode <= PERHAPS_MODE_JOURNAL; mode++)
        if (mode != PERHAPS_MODE_IN_PLACE)
            expect(!open_past(&past, (enum perhaps_mode)mode, &commit) && commit == 0);
    expect(!open_past(&past, PERHAPS_MODE_LOAD, &commit) && commit == 0);
}

/* A torn frame may claim any size.  It takes no more memory than the file has bytes. */
TEST(test_torn_size)
{
    enum { NBYTES_AT = 12 };
    scoped_past past = make_past(perhaps_kind_at(0));
    struct ledger ledger = { 0 };
    struct perhaps_allocator allocator = ledger_allocator(&ledger);
    const struct perhaps_open_options options = { .mode = PERHAPS_MODE_LOAD,
                                                  .allocator = &allocator };
    scene("a frame of 1 GiB");
    store32(past.journal.at + past.end[COMMITS - 1] + NBYTES_AT, FRAME_NBYTES_MOST);
    put_file(journal_of(past.file), past.journal.at, past.journal.nbytes);
    scoped_filter *f = open_file(past.file.text, &options);
    expect(commit_of(&past, f) == COMMITS - 1);
    expect(ledger.largest_nbytes < 1 << 20);
}

/* What begins like frames that overlap is not all read, since that takes the square of its
 * size: it is damage. */
TEST(test_many_headers)
{
    enum { NBYTES_AT = 12, HEADERS = 64, NBYTES = HEADERS * SECTOR_NBYTES };
    scoped_past past = make_past(perhaps_kind_at(0));
    const size_t end = past.end[COMMITS - 1], all = end + NBYTES;
    uint8_t *bytes = calloc(1, all);
    memcpy(bytes, past.journal.at, end + FRAME_HEADER_NBYTES);
    bytes[end] ^= 1; /* the checksum of the last frame */
    for (size_t at = end; at < all; at += SECTOR_NBYTES) {
        memcpy(bytes + at, bytes + end, FRAME_HEADER_NBYTES);
        store32(bytes + at + NBYTES_AT, (uint32_t)(all - at));
    }
    scene("frames that overlap");
    put_file(journal_of(past.file), bytes, all);
    expect_all_fail(&past, PERHAPS_ERR_DAMAGED);
    scene("frames that do not");
    for (size_t at = end; at < all; at += SECTOR_NBYTES)
        store32(bytes + at + NBYTES_AT, SECTOR_NBYTES);
    put_file(journal_of(past.file), bytes, all);
    scoped_filter *f = open_file(past.file.text, &load_it);
    expect(commit_of(&past, f) == COMMITS - 1);
    free(bytes);
}

/* A file may claim that it has nearly as many records as there are numbers.  What is
 * acknowledged is found again all the same, and what would have no number is refused. */
TEST(test_last_numbers)
{
    enum { CHECKSUM_AT = 32, SEQUENCE_AT = 88 };
    const uint64_t numbers[] = { RECORD_NUMBER_MOST - 1, RECORD_NUMBER_MOST, UINT64_MAX - 2 };
    const struct perhaps_keys two = perhaps_keys_packed("abcd", 2, 2);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        scoped_past past = make_past(perhaps_kind_at(0));
        uint8_t header[JOURNAL_HEADER_NBYTES], *at = past.snapshot.at;
        size_t done = 0;
        perhaps_filter *f;
        scene("the file has record %llu", (unsigned long long)numbers[i]);
        store64(at + SEQUENCE_AT, numbers[i]);
        store64(at + CHECKSUM_AT, 0);
        store64(at + CHECKSUM_AT, XXH3_64bits(at, HEADER_NBYTES));
        const struct journal_begin begin = { .id = load64(past.journal.at + 24),
                                             .first = numbers[i] + 1 };
        journal_header(header, &begin);
        put_file(past.file, at, past.snapshot.nbytes);
        put_file(journal_of(past.file), header, sizeof header);
        int error = perhaps_open(past.file.text, &to_write, &f);
        expect(error == (numbers[i] > RECORD_NUMBER_MOST ? PERHAPS_ERR_DAMAGED : 0));
        if (error) {
            expect_all_fail(&past, PERHAPS_ERR_DAMAGED);
            continue;
        }
        expect_error(perhaps_add_many(f, &two, &done), PERHAPS_ERR_IO);
        expect(errno == EFBIG && !done);
        expect(!perhaps_add(f, "ab", 2) == (numbers[i] < RECORD_NUMBER_MOST));
        expect_success(perhaps_sync(f));
        perhaps_free(f);
        scoped_filter *again = open_file(past.file.text, &load_it);
        expect(perhaps_contains(again, "ab", 2) == (numbers[i] < RECORD_NUMBER_MOST));
    }
}

/* ---- Frames of an enemy ------------------------------------------------------------------ */

/* Changes some numbers of the last frame and gives it the right checksum. */
static void make_up(struct past *past, struct bytes *journal, struct rng *rng)
{
    enum { ID_AT = 24, NBYTES_AT = 12 };
    uint8_t *frame = journal->at + past->end[COMMITS - 1];
    for (size_t n = 1 + rng_below(rng, 3); n; n--) {
        size_t at = 16 + 4 * rng_below(rng, 12); /* behind the size: headers, some records */
        uint32_t old = load32(frame + at);
        const uint32_t numbers[] = { 0,          1, old + 1,  old - 1,
                                     UINT32_MAX, 7, 1U << 31, (uint32_t)rng_next(rng) };
        store32(frame + at, numbers[rng_below(rng, sizeof numbers / sizeof *numbers)]);
    }
    if (rng_below(rng, 4) == 0)
        store32(frame + NBYTES_AT, load32(frame + NBYTES_AT) - (uint32_t)rng_below(rng, 60));
    uint64_t id = load64(journal->at + ID_AT), nbytes = load32(frame + NBYTES_AT);
    store64(frame, XXH3_64bits_withSeed(frame + 8, (size_t)nbytes - 8, id));
}

/* Whatever it says, the file opens, or one of the documented errors tells why not. */
TEST_EACH(test_made_up, any_kind)
{
    struct rng rng = rng_for("test_made_up");
    scoped_past past = make_past(kind);
    perhaps_filter *f;
    for (unsigned i = 0; i < many(100); i++) {
        scoped_bytes bytes = copy_bytes(&past.journal);
        make_up(&past, &bytes, &rng);
        scene("%s, made up %u", kind->name, i);
        put_file(journal_of(past.file), bytes.at, bytes.nbytes);
        int error = perhaps_open(past.file.text, i % 2 ? &load_it : &map_it, &f);
        expect(!error || is_of_journal(error));
        perhaps_free(f);
    }
}

/* ---- Processes --------------------------------------------------------------------------- */

/* What a process finds that wants to write: 0, or an errno. */
static int open_in_child(void *file)
{
    perhaps_filter *f;
    int error = perhaps_open(((struct path *)file)->text, &to_write, &f);
    perhaps_free(f);
    return error == PERHAPS_ERR_IO ? errno : error ? 255 : 0;
}

static int free_in_child(void *f)
{
    perhaps_free(f);
    return 0;
}

/* A second writer finds the file busy.  A forked child can free its copy, which writes nothing
 * of what its parent had not written yet, and leaves the lock. */
TEST_EACH(test_processes, in_registry)
{
    scoped_past past = make_past(kind);
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, 20);
    perhaps_filter *f = open_file(past.file.text, &to_write), *again;
    expect(run_in_child(open_in_child, &past.file, false) == EBUSY);
    expect_error(perhaps_open(past.file.text, &to_write, &again), PERHAPS_ERR_IO);
    expect(errno == EBUSY);
    expect_success(perhaps_add_many(f, &keys, NULL));
    scoped_bytes before = read_file(journal_of(past.file).text);
    expect(!run_in_child(free_in_child, f, false));
    scoped_bytes after = read_file(journal_of(past.file).text);
    expect_same_bytes(&before, &after);
    expect(run_in_child(open_in_child, &past.file, false) == EBUSY);
    expect_success(perhaps_sync(f));
    scoped_filter *then = clone_of(f);
    perhaps_free(f);
    expect(!run_in_child(open_in_child, &past.file, false));
    scoped_filter *found = open_file(past.file.text, &load_it);
    expect(perhaps_equal(then, found));
}
