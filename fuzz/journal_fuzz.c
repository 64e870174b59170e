/* journal_fuzz.c - fuzzes the journal of a live file: any bytes beside the file are refused, or
 * tell the same to all who open it.
 *
 * The input is a head, which says what the snapshot is, and chunks, each of which lies at the
 * next sector of the journal.  A chunk says what of it is made right: random mutations alone
 * would almost never meet a checksum.
 *
 *     head    kind, how, number of the snapshot, number of the first record,
 *             u16 place of a byte in the header of the journal, u8 what that is changed by
 *     chunk   u16 size, u8 what is made right, the bytes */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store/record.h"
#include "support/hostile.h"
#include <perhaps.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

/* ---- The input --------------------------------------------------------------------------- */

enum { HEAD_NBYTES = 7, CHUNK_HEAD_NBYTES = 3, CHUNK_MOST = 2048 };

/* What the head says. */
enum {
    OF_PLACES = 1,      /* records are of 8 bytes */
    HAS_KEYS = 2,       /* the snapshot has some */
    IS_SHARED = 4,      /* the filter is opened for threads */
    IS_SAVED = 8,       /* the writer saves the file anew */
    IS_CLOSED = 16,     /* the writer ends well */
    HEADER_BROKEN = 32, /* the checksum of the header stays as it was before the change */
    IS_SET = 64         /* no copies of keys, also in kinds that can store them */
};

/* What a chunk says. */
enum {
    SEALED = 1,      /* it has the checksum of a frame, */
    SIZED = 2,       /* its own size, */
    NUMBERED = 4,    /* the number of the next record, */
    COUNTED = 8,     /* the number of records that its runs claim, */
    SYNCED = 16,     /* and says that all before it is on the disk */
    STOPS = 32,      /* behind it the reader looks for what is new */
    FAR = 64,        /* there is a gap before it */
    CLAIMS_ALL = 128 /* it claims to reach to the end of the journal */
};

enum { GAP_NBYTES = 130 << 10, JOURNAL_MOST = 1 << 20, STOPS_MOST = 8 };
static const uint64_t id = UINT64_C(0x0123456789abcdef);

/* The fields of the headers (doc/FORMAT.md). */
enum { J_CHECKSUM = 16 };
enum { F_MAGIC = 8, F_NBYTES = 12, F_FIRST = 16, F_RECORDS = 24, F_SYNCED = 32 };

/* A journal, and where it ended each time that a reader looks. */
struct laid {
    uint8_t bytes[JOURNAL_MOST];
    size_t nbytes;
    size_t stop[STOPS_MOST], stops;
    size_t frame[JOURNAL_MOST / SECTOR_NBYTES], frames; /* where those begin that are sealed, */
    bool claims_all[JOURNAL_MOST / SECTOR_NBYTES];      /* and which of them claim all */
    uint64_t next;                                      /* number of the next record */
    size_t record_nbytes;                               /* of one */
};

/* Small numbers, and the largest ones. */
static uint64_t number_of(uint8_t byte)
{
    return byte < 0xc0 ? byte : UINT64_MAX - (0xff - byte);
}

static uint64_t count_records(const uint8_t *runs, size_t nbytes, size_t each)
{
    uint64_t records = 0;
    while (nbytes >= RUN_HEADER_NBYTES) {
        const uint64_t n = get_number(runs + 4, 4), size = RUN_HEADER_NBYTES + n * each;
        records += n;
        if (size > nbytes)
            break;
        runs += size;
        nbytes -= size;
    }
    return records;
}

/* Makes of a chunk what it says to be. */
static void make_frame(struct laid *laid, uint8_t *frame, size_t nbytes, uint8_t what)
{
    if (nbytes < FRAME_HEADER_NBYTES)
        return;
    if (what & SIZED) {
        put_number(frame + F_MAGIC, 0x6d617266, 4);
        put_number(frame + F_NBYTES, nbytes, 4);
    }
    if (what & NUMBERED)
        put64(frame + F_FIRST, laid->next);
    if (what & COUNTED)
        put64(frame + F_RECORDS,
              count_records(frame + FRAME_HEADER_NBYTES, nbytes - FRAME_HEADER_NBYTES,
                            laid->record_nbytes));
    if (what & SYNCED)
        put64(frame + F_SYNCED, laid->next - 1);
    if (what & NUMBERED)
        laid->next += get64(frame + F_RECORDS);
}

static void lay_header(struct laid *laid, const uint8_t *head)
{
    const size_t at = (size_t)get_number(head + 4, 2) % JOURNAL_HEADER_NBYTES;
    journal_header(laid->bytes,
                   &(struct journal_begin){ .id = id, .first = number_of(head[3]) });
    laid->bytes[at] ^= head[6];
    if (!(head[1] & HEADER_BROKEN)) {
        put64(laid->bytes + J_CHECKSUM, 0);
        put64(laid->bytes + J_CHECKSUM, XXH3_64bits(laid->bytes, JOURNAL_HEADER_NBYTES));
    }
    laid->next = number_of(head[3]);
    laid->nbytes = JOURNAL_HEADER_NBYTES;
}

/* Seals the frames, the last one first: one may lie in another that begins before it. */
static void seal_frames(struct laid *laid)
{
    while (laid->frames) {
        uint8_t *frame = laid->bytes + laid->frame[--laid->frames];
        const size_t left = laid->nbytes - laid->frame[laid->frames];
        if (laid->claims_all[laid->frames] && left >= FRAME_HEADER_NBYTES)
            put_number(frame + F_NBYTES, left, 4);
        uint64_t nbytes = left < FRAME_HEADER_NBYTES ? 0 : get_number(frame + F_NBYTES, 4);
        if (nbytes >= FRAME_HEADER_NBYTES && nbytes <= left)
            put64(frame, XXH3_64bits_withSeed(frame + 8, (size_t)nbytes - 8, id));
    }
}

/* Lays the next chunk.  Returns what of the input it took. */
static size_t lay_chunk(struct laid *laid, const uint8_t *data, size_t left)
{
    const uint8_t what = data[2];
    size_t nbytes = (size_t)get_number(data, 2) % CHUNK_MOST;
    if (nbytes > left - CHUNK_HEAD_NBYTES)
        nbytes = left - CHUNK_HEAD_NBYTES;
    size_t at = (laid->nbytes + SECTOR_NBYTES - 1) / SECTOR_NBYTES * SECTOR_NBYTES;
    at += what & FAR ? GAP_NBYTES : 0;
    if (at + nbytes > JOURNAL_MOST)
        return left;
    memcpy(laid->bytes + at, data + CHUNK_HEAD_NBYTES, nbytes);
    make_frame(laid, laid->bytes + at, nbytes, what);
    laid->nbytes = at + nbytes;
    if (what & SEALED) {
        laid->claims_all[laid->frames] = what & CLAIMS_ALL;
        laid->frame[laid->frames++] = at;
    }
    if (what & STOPS && laid->stops < STOPS_MOST)
        laid->stop[laid->stops++] = laid->nbytes;
    return CHUNK_HEAD_NBYTES + nbytes;
}

/* Lays out the whole journal. */
static void lay(struct laid *laid, const uint8_t *data, size_t nbytes)
{
    memset(laid->bytes, 0, laid->nbytes); /* of the one before */
    laid->stops = laid->frames = 0;
    lay_header(laid, data);
    for (size_t at = HEAD_NBYTES; at + CHUNK_HEAD_NBYTES <= nbytes;)
        at += lay_chunk(laid, data + at, nbytes - at);
    seal_frames(laid);
}

/* ---- The snapshot ------------------------------------------------------------------------ */

struct file_bytes {
    uint8_t *at;
    size_t nbytes;
};

static int append(void *context, const void *bytes, size_t nbytes)
{
    struct file_bytes *file = context;
    memcpy(file->at + file->nbytes, bytes, nbytes);
    file->nbytes += nbytes;
    return 0;
}

/* Returns one of the kinds that take keys as they come. */
static const struct perhaps_kind *choose_kind(size_t number)
{
    size_t count = 0;
    const struct perhaps_kind *kind;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        count += !(kind->abilities & PERHAPS_CAN_BUILD);
    number %= count;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        if (!(kind->abilities & PERHAPS_CAN_BUILD) && !number--)
            break;
    return kind;
}

static void add_some(perhaps_filter *f, uint64_t first)
{
    for (uint64_t i = first; i < first + 10; i++) {
        char key[24];
        int length = snprintf(key, sizeof key, "%d", (int)i);
        (void)perhaps_add(f, key, (size_t)length);
    }
}

/* Makes a small live file as the head says, which the caller frees. */
static struct file_bytes make_snapshot(const uint8_t *head, size_t *record_size)
{
    enum { CAPACITY = 60 };
    const struct perhaps_kind *kind = choose_kind(head[0]);
    const bool forgets = kind->abilities & PERHAPS_CAN_FORGET;
    struct perhaps_options options = { .kind = kind->name,
                                       .capacity = CAPACITY,
                                       .fpr = 0.01,
                                       .window.keys = forgets ? CAPACITY : 0,
                                       .hashing.seed = 1 };
    if (!(head[1] & IS_SET))
        options.needs = kind->abilities & (PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT);
    options.hashing.hash = head[1] & OF_PLACES ? PERHAPS_HASH_XXH3_64 : PERHAPS_HASH_XXH3;
    perhaps_filter *f;
    const struct perhaps_options exact = { .kind = kind->name, .bitmap.high = 3000 };
    must(!perhaps_create(&options, &f) || !perhaps_create(&exact, &f));
    if (head[1] & HAS_KEYS)
        add_some(f, 0);
    const struct journal_point point = { .branch = id, .sequence = number_of(head[2]) };
    const struct content content = { .f = f, .point = &point };
    struct header header;
    content_plan(&content, &header);
    struct file_bytes file = { .at = malloc((size_t)header.file_nbytes) };
    const struct perhaps_sink sink = { .write = append, .context = &file };
    must(file.at && !content_write(&content, &sink));
    *record_size = record_nbytes(f);
    perhaps_free(f);
    return file;
}

/* ---- The folder -------------------------------------------------------------------------- */

static char folder[200], path[220], journal_path[256];

static void remove_folder(void)
{
    unlink(path);
    unlink(journal_path);
    rmdir(folder);
}

/* Files in memory, if there is a place for them. */
static void make_folder(void)
{
    if (*folder)
        return;
    const char *below = access("/dev/shm", W_OK) ? getenv("TMPDIR") : "/dev/shm";
    snprintf(folder, sizeof folder, "%.160s/perhaps.XXXXXX", below ? below : "/tmp");
    must(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/F", folder);
    snprintf(journal_path, sizeof journal_path, "%s" JOURNAL_SUFFIX, path);
    atexit(remove_folder);
}

static void append_to(const char *to, int how, const uint8_t *bytes, size_t nbytes)
{
    int fd = open(to, O_WRONLY | O_CLOEXEC | how, 0600);
    must(fd >= 0 && write(fd, bytes, nbytes) == (ssize_t)nbytes);
    close(fd);
}

static void put(const char *to, const uint8_t *bytes, size_t nbytes)
{
    unlink(to);
    append_to(to, O_CREAT | O_EXCL, bytes, nbytes);
}

static bool has_bytes(const char *at, const uint8_t *bytes, size_t nbytes)
{
    uint8_t *found = malloc(nbytes + 1);
    int fd = open(at, O_RDONLY | O_CLOEXEC);
    must(found && fd >= 0);
    bool same = read(fd, found, nbytes + 1) == (ssize_t)nbytes && !memcmp(found, bytes, nbytes);
    close(fd);
    free(found);
    return same;
}

/* ---- Opening ----------------------------------------------------------------------------- */

/* What all filters have taken.  A kind that grows takes memory for each record. */
static struct {
    size_t now, most;
} memory;
enum { MEMORY_FREE = 4 << 20, MEMORY_TIMES = 64, MEMORY_MOST = 256 << 20 };

static void *take(void *context, size_t nbytes)
{
    (void)context;
    if (nbytes > MEMORY_MOST - memory.now)
        return NULL;
    memory.now += nbytes;
    memory.most = memory.now > memory.most ? memory.now : memory.most;
    return calloc(1, nbytes);
}

static void give(void *context, void *bytes, size_t nbytes)
{
    (void)context;
    memory.now -= nbytes;
    free(bytes);
}

static const struct perhaps_allocator counting = { .allocate = take,
                                                   .release = give,
                                                   .zeroes = true };

/* What opening the file has told. */
struct told {
    int error;
    uint8_t digest[16];
};

static bool is_same(const struct told *a, const struct told *b)
{
    return a->error == b->error &&
           (a->error || !memcmp(a->digest, b->digest, sizeof a->digest));
}

/* Opens the file, and has the caller free the filter. */
static struct told open_it(enum perhaps_mode mode, uint8_t how, perhaps_filter **f)
{
    const struct perhaps_open_options options = {
        .mode = mode,
        .shared = (how & IS_SHARED) && mode != PERHAPS_MODE_READ,
        .journal_records = mode == PERHAPS_MODE_JOURNAL ? 1000 : 0,
        .allocator = &counting
    };
    struct told told = { .error = perhaps_open(path, &options, f) };
    must(!told.error == !!*f);
    must(!told.error || told.error == PERHAPS_ERR_JOURNAL ||
         told.error == PERHAPS_ERR_DAMAGED || told.error == PERHAPS_ERR_VERSION);
    if (*f)
        perhaps_digest(*f, told.digest);
    return told;
}

static struct told try_it(enum perhaps_mode mode, uint8_t how)
{
    perhaps_filter *f;
    struct told told = open_it(mode, how, &f);
    perhaps_free(f);
    return told;
}

/* Changes a copy.  (container_fuzz does more with bodies that an enemy has made.) */
static void use_it(const perhaps_filter *f)
{
    perhaps_filter *copy;
    struct perhaps_stats stats;
    must(!perhaps_clone(f, &copy) && perhaps_equal(f, copy));
    add_some(copy, 1000);
    perhaps_stats_of(copy, &stats);
    must(stats.fpr_now >= 0 && stats.fpr_now <= 1);
    must(!perhaps_clear(copy));
    perhaps_free(copy);
}

/* Opens the file in memory, twice, and uses the filter. */
static struct told read_it(const struct laid *laid, uint8_t how)
{
    perhaps_filter *f;
    memory.most = 0;
    struct told told = open_it(PERHAPS_MODE_LOAD, how, &f), again;
    must(memory.most <= MEMORY_FREE + MEMORY_TIMES * laid->nbytes);
    if (f)
        use_it(f);
    perhaps_free(f);
    again = try_it(PERHAPS_MODE_LOAD, how);
    must(is_same(&told, &again));
    again = try_it(PERHAPS_MODE_READ, how);
    must(is_same(&told, &again));
    return told;
}

/* Follows the journal while it grows.  Where it ends for now a frame may be torn, and what lies
 * in that be taken for others: an error there tells nothing of the whole. */
static void follow_it(const struct laid *laid, uint8_t how, const struct told *whole)
{
    const struct perhaps_open_options options = { .allocator = &counting };
    perhaps_filter *f;
    size_t at = laid->stops ? laid->stop[0] : JOURNAL_HEADER_NBYTES, to;
    put(journal_path, laid->bytes, at);
    struct told told = open_it(PERHAPS_MODE_READ, how, &f);
    for (size_t i = 1; f && at < laid->nbytes && !told.error; i++, at = to) {
        to = i < laid->stops ? laid->stop[i] : laid->nbytes;
        append_to(journal_path, O_APPEND, laid->bytes + at, to - at);
        told.error = perhaps_refresh(&f, path, &options);
        must(f != NULL);
    }
    if (f && at == laid->nbytes) {
        perhaps_digest(f, told.digest);
        must(is_same(whole, &told));
    }
    perhaps_free(f);
}

/* Ends a filter as the end of its process does. */
static void die(perhaps_filter *f)
{
    struct journal *j = recording_of(f);
    j->process = 0; /* as if this were a child of its process */
    perhaps_free(f);
}

/* Opens the file to write, which must tell the same; and what is done then must be found
 * again. */
static void write_it(const struct laid *laid, const struct file_bytes *snapshot, uint8_t how,
                     const struct told *read)
{
    perhaps_filter *f;
    put(journal_path, laid->bytes, laid->nbytes);
    struct told told = open_it(PERHAPS_MODE_JOURNAL, how, &f), again;
    must(is_same(read, &told));
    if (!f) {
        must(has_bytes(path, snapshot->at, snapshot->nbytes));
        must(has_bytes(journal_path, laid->bytes, laid->nbytes));
        return;
    }
    again = try_it(PERHAPS_MODE_LOAD, how);
    must(is_same(&told, &again)); /* as it was recovered, */
    add_some(f, 1000);
    must(!perhaps_sync(f));
    if (how & IS_SAVED)
        must(!perhaps_checkpoint(f));
    perhaps_digest(f, told.digest);
    if (how & IS_CLOSED)
        perhaps_free(f);
    else
        die(f);
    for (int mode = PERHAPS_MODE_READ; mode <= PERHAPS_MODE_LOAD; mode++) {
        again = try_it((enum perhaps_mode)mode, how);
        must(is_same(&told, &again)); /* and as it was written */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static struct laid laid;
    if (nbytes < HEAD_NBYTES)
        return 0;
    make_folder();
    struct file_bytes snapshot = make_snapshot(data, &laid.record_nbytes);
    lay(&laid, data, nbytes);
    put(path, snapshot.at, snapshot.nbytes);
    put(journal_path, laid.bytes, laid.nbytes);
    const bool threads = choose_kind(*data)->abilities & PERHAPS_CAN_THREADS;
    const uint8_t how = threads ? data[1] : data[1] & (0xff ^ IS_SHARED);
    struct told told = read_it(&laid, how);
    follow_it(&laid, how, &told);
    write_it(&laid, &snapshot, how, &told);
    must(!memory.now);
    free(snapshot.at);
    return 0;
}
