/* journal.c - the bytes of a journal. */
#include "journal.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../base/bytes.h"
#include "../base/memory.h"

/* As that of a filter file, but for one letter. */
static const uint8_t magic[8] = { 0x89, 'p', 'e', 'r', 'j', '\r', '\n', 0x1a };

enum { JOURNAL_VERSION = 1 };
static const uint32_t frame_magic = 0x6d617266; /* "fram" */

/* Where the fields of the headers lie: of the journal, */
enum {
    VERSION_AT = 8,
    HEADER_CHECKSUM_AT = 16,
    ID_AT = 24,
    FIRST_AT = 32,
    BRANCH_AT = 40,
    FIELDS_END = 48
};

/* and of a frame. */
enum { MAGIC_AT = 8, NBYTES_AT = 12, SEQUENCE_AT = 16, RECORDS_AT = 24, SYNCED_AT = 32 };

size_t record_nbytes(const perhaps_filter *f)
{
    return hash_row_of(&f->hasher)->bits / 8;
}

/* ---- Writing --------------------------------------------------------------------------- */

static uint64_t header_checksum(const uint8_t bytes[JOURNAL_HEADER_NBYTES])
{
    uint8_t copy[JOURNAL_HEADER_NBYTES];
    memcpy(copy, bytes, sizeof copy);
    store64(copy + HEADER_CHECKSUM_AT, 0);
    return XXH3_64bits(copy, sizeof copy);
}

void journal_header(uint8_t bytes[JOURNAL_HEADER_NBYTES], const struct journal_begin *begin)
{
    memset(bytes, 0, JOURNAL_HEADER_NBYTES);
    memcpy(bytes, magic, sizeof magic);
    store32(bytes + VERSION_AT, JOURNAL_VERSION);
    store64(bytes + ID_AT, begin->id);
    store64(bytes + FIRST_AT, begin->first);
    store64(bytes + BRANCH_AT, begin->branch);
    store64(bytes + HEADER_CHECKSUM_AT, header_checksum(bytes));
}

void frame_begin(struct frame *frame)
{
    frame->nbytes = FRAME_HEADER_NBYTES;
    frame->run = 0;
    frame->records = 0;
}

bool frame_has_room(const struct frame *frame, size_t n)
{
    return frame->nbytes + RUN_HEADER_NBYTES + n * frame->record_nbytes <= frame->room;
}

/* Without a branch for each key, which would be missed often. */
static const uint8_t *put_hashes(uint8_t *to, const struct keyhash *keys, size_t n,
                                 const bool *skip)
{
    for (size_t i = 0; i < n; i++) {
        memcpy(to, &keys[i], sizeof keys[i]);
        to += skip && skip[i] ? 0 : sizeof keys[i];
    }
    return to;
}

static const uint8_t *put_places(uint8_t *to, const struct keyhash *keys, size_t n,
                                 const bool *skip)
{
    for (size_t i = 0; i < n; i++) {
        store64(to, keys[i].place);
        to += skip && skip[i] ? 0 : sizeof keys[i].place;
    }
    return to;
}

size_t frame_append(struct frame *frame, enum deed deed, const struct keyhash *keys, size_t n,
                    const bool *skip)
{
    uint8_t *run = frame->bytes + frame->run;
    if (!frame->run || load32(run) != (uint32_t)deed) {
        frame->run = frame->nbytes;
        run = frame->bytes + frame->run;
        store32(run, (uint32_t)deed);
        store32(run + sizeof(uint32_t), 0);
        frame->nbytes += RUN_HEADER_NBYTES;
    }
    uint8_t *to = frame->bytes + frame->nbytes;
    const uint8_t *end = frame->record_nbytes == sizeof(uint64_t)
                             ? put_places(to, keys, n, skip)
                             : put_hashes(to, keys, n, skip);
    size_t appended = (size_t)(end - to) / frame->record_nbytes;
    frame->nbytes += appended * frame->record_nbytes;
    frame->records += appended;
    store32(run + sizeof(uint32_t), load32(run + sizeof(uint32_t)) + (uint32_t)appended);
    return appended;
}

void frame_append_branch(struct frame *frame, uint64_t branch)
{
    const struct keyhash record = { .place = branch };
    frame_append(frame, DEED_BRANCH, &record, 1, NULL);
    frame->records = 0;
}

/* With the id as its seed, a frame of another journal is never taken for one of this. */
static uint64_t frame_checksum(const uint8_t *frame, uint64_t nbytes, uint64_t id)
{
    return XXH3_64bits_withSeed(frame + sizeof(uint64_t), (size_t)nbytes - sizeof(uint64_t),
                                id);
}

size_t frame_seal(struct frame *frame, uint64_t id, uint64_t first, uint64_t synced)
{
    uint8_t *bytes = frame->bytes;
    size_t all = round_up(frame->nbytes, SECTOR_NBYTES);
    store32(bytes + MAGIC_AT, frame_magic);
    store32(bytes + NBYTES_AT, (uint32_t)frame->nbytes);
    store64(bytes + SEQUENCE_AT, first);
    store64(bytes + RECORDS_AT, frame->records);
    store64(bytes + SYNCED_AT, synced);
    store64(bytes, frame_checksum(bytes, frame->nbytes, id));
    memset(bytes + frame->nbytes, 0, all - frame->nbytes);
    return all;
}

/* ---- Reading --------------------------------------------------------------------------- */

/* Has the bytes from 'at' on in memory, as many as the file has of 'nbytes'.  Sets *bytes to
 * them and *have to how many they are.  Returns 0, PERHAPS_ERR_IO or PERHAPS_ERR_MEMORY. */
static int look(struct journal_reader *r, uint64_t at, size_t nbytes, const uint8_t **bytes,
                size_t *have)
{
    const size_t window = 256 << 10;
    if (at < r->begin || at + nbytes > r->end) {
        size_t wanted = nbytes > window ? nbytes : window;
        if (wanted > r->room) {
            release(r->allocator, r->bytes, r->room);
            r->bytes = allocate(r->allocator, wanted);
            r->room = r->bytes ? wanted : 0;
        }
        r->begin = r->end = at;
        if (!r->bytes)
            return PERHAPS_ERR_MEMORY;
        uint64_t n;
        int error = read_some(r->fd, r->bytes, r->room, at, &n);
        if (error)
            return error;
        r->end = at + n;
    }
    *bytes = r->bytes + (at - r->begin);
    *have = r->end - at < nbytes ? (size_t)(r->end - at) : nbytes;
    return 0;
}

int journal_begin(struct journal_reader *r, int fd, const struct perhaps_allocator *allocator)
{
    const uint8_t *bytes;
    size_t have;
    *r = (struct journal_reader){ .allocator = allocator,
                                  .fd = fd,
                                  .at = JOURNAL_HEADER_NBYTES };
    int error = look(r, 0, JOURNAL_HEADER_NBYTES, &bytes, &have);
    if (error)
        return error;
    if (have < JOURNAL_HEADER_NBYTES || memcmp(bytes, magic, sizeof magic) != 0)
        return PERHAPS_ERR_JOURNAL;
    if (load32(bytes + VERSION_AT) > JOURNAL_VERSION)
        return PERHAPS_ERR_VERSION;
    if (load64(bytes + HEADER_CHECKSUM_AT) != header_checksum(bytes))
        return PERHAPS_ERR_DAMAGED;
    for (size_t i = FIELDS_END; i < JOURNAL_HEADER_NBYTES; i++)
        if (bytes[i])
            return PERHAPS_ERR_VERSION;
    r->header = (struct journal_begin){ .id = load64(bytes + ID_AT),
                                        .first = load64(bytes + FIRST_AT),
                                        .branch = load64(bytes + BRANCH_AT) };
    r->next = r->header.first;
    r->branch = journal_first_branch(&r->header);
    return r->next && r->next - 1 <= RECORD_NUMBER_MOST ? 0 : PERHAPS_ERR_DAMAGED;
}

void journal_end(struct journal_reader *r)
{
    release(r->allocator, r->bytes, r->room);
    r->bytes = NULL;
    r->room = 0;
}

/* Returns whether the file reaches as far, so that no memory is taken for what a torn frame
 * claims to be its size. */
static bool reaches(const struct journal_reader *r, uint64_t end)
{
    struct file_info file;
    return end <= r->end || (!look_at_fd(r->fd, &file) && end <= file.nbytes);
}

/* Sets *frame to the frame that begins at 'at', or to NULL if none does that is whole. */
static int find_frame(struct journal_reader *r, uint64_t at, const uint8_t **frame)
{
    const uint8_t *bytes;
    size_t have;
    *frame = NULL;
    int error = look(r, at, FRAME_HEADER_NBYTES, &bytes, &have);
    if (error || have < FRAME_HEADER_NBYTES || load32(bytes + MAGIC_AT) != frame_magic)
        return error;
    size_t nbytes = load32(bytes + NBYTES_AT);
    if (nbytes < FRAME_HEADER_NBYTES || nbytes > FRAME_NBYTES_MOST || !reaches(r, at + nbytes))
        return 0;
    error = look(r, at, nbytes, &bytes, &have);
    if (error || have < nbytes)
        return error;
    if (load64(bytes) == frame_checksum(bytes, nbytes, r->header.id))
        *frame = bytes;
    else
        r->futile_nbytes += nbytes;
    return 0;
}

/* Returns where the first sector from 'at' on begins that is not in a hole of the file, which
 * ends at 'end': in those no frame begins, and there may be many GB of them. */
static uint64_t next_sector(int fd, uint64_t at, uint64_t end)
{
    const uint64_t data = behind_hole(fd, at, end);
    return data == end ? round_up(end, SECTOR_NBYTES) : data / SECTOR_NBYTES * SECTOR_NBYTES;
}

/* Looks behind the end of the journal.  Returns PERHAPS_ERR_DAMAGED if a frame there tells that
 * the next record was on the disk; also if more bytes begin like frames than there are, as
 * only in the file of an enemy, since frames do not overlap: to look at all would take the
 * square of its size. */
static int look_behind(struct journal_reader *r)
{
    const uint8_t *frame, *bytes;
    size_t have = SECTOR_NBYTES;
    struct file_info file;
    if (look_at_fd(r->fd, &file))
        return PERHAPS_ERR_IO;
    r->futile_nbytes = 0;
    for (uint64_t at = r->at + SECTOR_NBYTES; have; at += SECTOR_NBYTES) {
        if (at >= r->end)
            at = next_sector(r->fd, at, file.nbytes);
        int error = find_frame(r, at, &frame);
        if (!error && frame && load64(frame + SYNCED_AT) >= r->next)
            error = PERHAPS_ERR_DAMAGED;
        if (!error && r->futile_nbytes / 2 > file.nbytes)
            error = PERHAPS_ERR_DAMAGED;
        if (!error)
            error = look(r, at, 1, &bytes, &have);
        if (error)
            return error;
    }
    return 0;
}

int journal_next(struct journal_reader *r, const uint8_t **frame, size_t *nbytes,
                 uint64_t *first)
{
    const uint8_t *found;
    *frame = NULL;
    int error = find_frame(r, r->at, &found);
    if (!error && !found) {
        int behind = look_behind(r);
        r->begin = r->end = 0; /* somebody may be writing there */
        if (behind != PERHAPS_ERR_DAMAGED)
            return behind;
        error = find_frame(r, r->at, &found);
        if (!error && !found)
            error = PERHAPS_ERR_DAMAGED;
    }
    if (error)
        return error;
    if (load64(found + SEQUENCE_AT) != r->next ||
        load64(found + SYNCED_AT) > RECORD_NUMBER_MOST ||
        load64(found + RECORDS_AT) > FRAME_NBYTES_MOST / sizeof(uint64_t) ||
        r->next - 1 + load64(found + RECORDS_AT) > RECORD_NUMBER_MOST)
        return PERHAPS_ERR_DAMAGED;
    *frame = found + FRAME_HEADER_NBYTES;
    *nbytes = load32(found + NBYTES_AT) - FRAME_HEADER_NBYTES;
    *first = r->next;
    r->next += load64(found + RECORDS_AT);
    r->told = load64(found + SYNCED_AT);
    r->at += round_up(FRAME_HEADER_NBYTES + *nbytes, SECTOR_NBYTES);
    return 0;
}

/* Does what a run records.  Places become hashes some at a time. */
static int redo_run(perhaps_filter *f, enum deed deed, const uint8_t *records, size_t n)
{
    struct keyhash keys[BATCH_MOST];
    int error = 0;
    if (record_nbytes(f) == sizeof *keys)
        return filter_redo(f, deed, (const struct keyhash *)(const void *)records, n);
    for (size_t at = 0, now; at < n && !error; at += now) {
        now = n - at < BATCH_MOST ? n - at : BATCH_MOST;
        for (size_t i = 0; i < now; i++)
            keys[i] = hash_of_place(&f->hasher, load64(records + (at + i) * sizeof(uint64_t)));
        error = filter_redo(f, deed, keys, now);
    }
    return error;
}

/* Does what the runs of a frame record, 'records' in all. */
static int redo_frame(perhaps_filter *f, const uint8_t *runs, size_t nbytes, uint64_t records)
{
    const size_t each = record_nbytes(f);
    uint64_t done = 0;
    int error = 0;
    while (nbytes && !error) {
        if (nbytes < RUN_HEADER_NBYTES)
            return PERHAPS_ERR_DAMAGED;
        uint32_t deed = load32(runs), n = load32(runs + sizeof deed);
        runs += RUN_HEADER_NBYTES;
        nbytes -= RUN_HEADER_NBYTES;
        if (n > nbytes / each)
            return PERHAPS_ERR_DAMAGED;
        error = redo_run(f, (enum deed)deed, runs, n);
        runs += n * each;
        nbytes -= n * each;
        done += n;
    }
    return error || done == records ? error : PERHAPS_ERR_DAMAGED;
}

/* Takes the begin of a branch off the runs of a frame, if it is there. */
static int take_branch(struct journal_reader *r, size_t each, const uint8_t **runs,
                       size_t *nbytes)
{
    const size_t size = RUN_HEADER_NBYTES + each;
    if (*nbytes < RUN_HEADER_NBYTES || load32(*runs) != DEED_BRANCH)
        return 0;
    if (*nbytes < size || load32(*runs + sizeof(uint32_t)) != 1)
        return PERHAPS_ERR_DAMAGED;
    r->branch = load64(*runs + RUN_HEADER_NBYTES);
    *runs += size;
    *nbytes -= size;
    return 0;
}

static void look_for_point(struct journal_reader *r, const struct journal_point *point)
{
    r->has_point |= r->next - 1 == point->sequence && r->branch == point->branch;
}

int journal_redo(struct journal_reader *r, perhaps_filter *f, const struct journal_point *point)
{
    const uint8_t *runs;
    size_t nbytes;
    uint64_t first;
    int error;
    look_for_point(r, point);
    while (!(error = journal_next(r, &runs, &nbytes, &first)) && runs) {
        const bool is_new = r->next - 1 > point->sequence;
        if (is_new && first <= point->sequence) /* frames end where the file was saved */
            return PERHAPS_ERR_DAMAGED;
        if (is_new && !r->has_point)
            return PERHAPS_ERR_JOURNAL;
        error = take_branch(r, record_nbytes(f), &runs, &nbytes);
        if (!error && is_new)
            error = redo_frame(f, runs, nbytes, r->next - first);
        if (error)
            return error;
        look_for_point(r, point);
    }
    if (!error && r->next <= point->sequence) /* the file has records that the journal lost */
        error = PERHAPS_ERR_DAMAGED;
    if (!error && !r->has_point)
        error = PERHAPS_ERR_JOURNAL;
    filter_reset_room(f);
    return error;
}
