/* texts.c - the inputs as texts in memory: mapped, or copied to a temporary file and mapped.
 *
 * All texts lie one behind the other in the addresses of mapped.c.  Zeros lie between them, so
 * that a comparison may run over the end of one.  The length of each is fixed when it is
 * opened: what is appended to a file later is not read. */
#include "texts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../base/stop.h"
#include "mapped.h"

/* An input.  'copied' ones lie in the copy, from the offset 'at' on. */
struct source {
    char *path;
    bool copied, over; /* over: it was read before */
    off_t at;
    uint64_t nbytes;
    struct extent file; /* its descriptor is that of a file that will be mapped or copied */
    uint64_t ends;      /* a hash of the first and last bytes of a file that is mapped */
};

struct texts {
    const char *begin, *behind; /* all texts lie between these */
    char end;                   /* of a line */
    size_t count;
    struct source *source;
    struct piece *piece; /* one for each source */
    int copy;            /* -1: nothing was copied */
    uint64_t ncopied;
    const char *folder;
};

/* ---- Finding out what must be copied -------------------------------------------------- */

/* Returns whether a file can be mapped.  Some files of the system have no size, or another one
 * than they tell, and cannot be mapped. */
static bool is_mappable(int fd, const struct stat *st)
{
    void *first = S_ISREG(st->st_mode) && st->st_size > 0
                      ? mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0)
                      : MAP_FAILED;
    return first != MAP_FAILED && munmap(first, 1) == 0;
}

/* Finds out about an input.  Leaves files open, but opens nothing that can be read only once:
 * the reader of the copy does that.  What was read of standard input is over: another process
 * does not get it, nor does a second "-". */
static void look_at(struct source *source, char *const *paths, size_t i, bool raw)
{
    char *path = source->path = paths[i];
    bool standard = strcmp(path, "-") == 0;
    struct stat *found = &source->file.found;
    source->file.fd = -1;
    source->over = is_read_before(paths, i);
    source->copied = true;
    if ((standard ? fstat(STDIN_FILENO, found) : stat(path, found)) != 0)
        fail("%s: %s", input_name(path), strerror(errno));
    if (!S_ISREG(found->st_mode))
        return;
    int fd = source->file.fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                        : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, found) != 0)
        fail("%s: %s", input_name(path), strerror(errno));
    source->copied = !is_mappable(fd, found) || (!raw && stream_is_packed(fd));
    if (source->copied) {
        source->file.known = !standard;
        source->file.nbytes = UINT64_MAX;
        return;
    }
    source->at = lseek(fd, 0, SEEK_CUR);
    if (source->at < found->st_size)
        source->nbytes = (uint64_t)(found->st_size - source->at);
    if (standard)
        lseek(fd, found->st_size, SEEK_SET);
}

/* ---- Copying ------------------------------------------------------------------------- */

/* Opens a file without a name, or ends the program. */
static int open_copy(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    char path[4096]; /* a file system without such files: make one, and take its name away */
    int length = snprintf(path, sizeof path, "%s/perhaps.XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof path)
        return errno = ENAMETOOLONG, -1;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* Writes at an offset of the copy, or ends the program. */
static void write_copy(const struct texts *texts, const char *path, const char *bytes,
                       size_t nbytes, off_t at)
{
    while (nbytes > 0) {
        ssize_t written = pwrite(texts->copy, bytes, nbytes, at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            fail("%s: cannot be read twice, and no copy of it fits in %s: %s: name another "
                 "folder with --tmp",
                 input_name(path), texts->folder, strerror(errno));
        bytes += written;
        nbytes -= (size_t)written;
        at += written;
    }
}

/* Copies an input, unpacked, behind what was copied before, on a page of its own.  Ends the
 * program if it cannot. */
static void copy_source(struct texts *texts, struct source *source,
                        const struct settings *settings, struct progress *progress)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct block block = { 0 };
    char *path = source->path;
    struct reader *reader =
        reader_open(&path, 1, settings->form.end, settings->raw, BLOCK_NBYTES);
    if (!reader)
        fail("%s", why(PERHAPS_ERR_MEMORY));
    if (source->file.known)
        reader_keep_to(reader, &source->file);
    texts->ncopied = (texts->ncopied + page - 1) / page * page;
    source->at = (off_t)texts->ncopied;
    while (reader_read(reader, &block), block.holds == BLOCK_RECORDS) {
        write_copy(texts, path, block.text, block.nbytes, source->at + (off_t)source->nbytes);
        source->nbytes += block.nbytes;
        progress_show(progress, false, 0, reader_nread(reader));
        if (stop_signal())
            break;
    }
    if (stop_signal())
        fail_interrupted("; nothing is printed");
    if (block.holds == BLOCK_PROBLEM)
        fail("%s: %s; nothing is printed", input_name(path),
             problem_or_memory(reader_problem(reader)));
    texts->ncopied += source->nbytes;
    reader_close(reader);
    block_release(&block);
}

/* Copies all inputs that cannot be mapped. */
static void copy_sources(struct texts *texts, const struct settings *settings)
{
    struct progress progress;
    const char *folder = settings->tmp ? settings->tmp : getenv("TMPDIR");
    texts->folder = folder && *folder ? folder : "/tmp";
    progress_start(&progress, settings, "copying", 0);
    for (size_t i = 0; i < texts->count; i++) {
        if (!texts->source[i].copied || texts->source[i].over)
            continue;
        if (texts->copy < 0)
            texts->copy = open_copy(texts->folder);
        if (texts->copy < 0)
            fail("%s: no temporary file can be made there, for a copy of %s: %s: name another "
                 "folder with --tmp",
                 texts->folder, input_name(settings->inputs[i]), strerror(errno));
        copy_source(texts, &texts->source[i], settings, &progress);
    }
    progress_erase();
}

/* ---- Mapping ------------------------------------------------------------------------- */

/* Returns a hash of the first and the last bytes of a piece: of a file that was cut off and has
 * grown again they are others, or it is the same file. */
static uint64_t hash_ends(const struct piece *piece)
{
    const uint64_t most = 4096, nbytes = piece->nbytes < most ? piece->nbytes : most;
    return XXH3_64bits(piece->bytes, nbytes) ^
           XXH3_64bits_withSeed(piece->bytes + piece->nbytes - nbytes, nbytes, 1);
}

static void map_sources(struct texts *texts)
{
    uint64_t nbytes = 0;
    for (size_t i = 0; i < texts->count; i++)
        nbytes += texts->source[i].nbytes;
    if (!mapped_reserve(nbytes, texts->count))
        fail("no room for the addresses of %s: %s", scaled((double)nbytes, "B").s,
             strerror(errno));
    for (size_t i = 0; i < texts->count; i++) {
        struct source *source = &texts->source[i];
        const char *bytes = mapped_add(source->copied ? texts->copy : source->file.fd,
                                       source->at, source->nbytes);
        if (!bytes)
            fail("%s: cannot be mapped: %s", input_name(source->path), strerror(errno));
        texts->piece[i] = (struct piece){ bytes, source->nbytes };
        source->ends = hash_ends(&texts->piece[i]);
        if (source->file.fd >= 0)
            close(source->file.fd);
        source->file.fd = -1;
    }
    texts->begin = mapped_begin();
    texts->behind = mapped_end();
}

struct texts *texts_open(const struct settings *settings)
{
    struct texts *texts = allocate_zeroed(1, sizeof *texts);
    input_check(settings);
    texts->end = settings->form.end;
    texts->count = settings->ninputs;
    texts->copy = -1;
    texts->source = allocate_zeroed(texts->count, sizeof *texts->source);
    texts->piece = allocate_zeroed(texts->count, sizeof *texts->piece);
    for (size_t i = 0; i < texts->count; i++)
        look_at(&texts->source[i], settings->inputs, i, settings->raw);
    copy_sources(texts, settings);
    map_sources(texts);
    return texts;
}

const struct piece *texts_pieces(const struct texts *texts)
{
    return texts->piece;
}

void texts_close(struct texts *texts)
{
    if (texts->copy >= 0)
        close(texts->copy);
    free(texts->source);
    free(texts->piece);
    free(texts);
}

/* ---- Places --------------------------------------------------------------------------- */

uint64_t texts_nplaces(const struct texts *texts)
{
    return (uint64_t)(texts->behind - texts->begin);
}

uint64_t texts_shift(const struct texts *texts, const struct block *block)
{
    uint64_t place = (uint64_t)(texts->piece[block->source].bytes - texts->begin);
    return place + block->offset - (uintptr_t)block->text;
}

const char *texts_begin(const struct texts *texts)
{
    return texts->begin;
}

/* Returns the end of the text that the address lies in. */
static const char *end_of_text(const struct texts *texts, const char *at)
{
    size_t low = 0, high = texts->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (texts->piece[middle].bytes <= at)
            low = middle;
        else
            high = middle;
    }
    return texts->piece[low].bytes + texts->piece[low].nbytes;
}

struct perhaps_key texts_line(const struct texts *texts, uint64_t place)
{
    const char *line = texts->begin + place, *end = end_of_text(texts, line);
    const char *stop = memchr(line, texts->end, (size_t)(end - line));
    return (struct perhaps_key){ line, (size_t)((stop ? stop : end) - line) };
}

/* Looks for the end of the text only if the line has no delimiter behind it, as the last one
 * may have none.  What is compared may run over the end of a text, but not of all of them: a
 * line is not longer than a text. */
bool texts_same(const struct texts *texts, uint64_t place, const struct perhaps_key *line)
{
    const char *at = texts->begin + place;
    if (line->nbytes >= (size_t)(texts->behind - at) ||
        memcmp(at, line->bytes, line->nbytes) != 0)
        return false;
    return at[line->nbytes] == texts->end || at + line->nbytes == end_of_text(texts, at);
}

/* ---- Changes --------------------------------------------------------------------------- */

/* Returns what has become of a file, of which a part is mapped. */
static enum file_change change_of_source(const struct source *source)
{
    return source->copied ? CHANGE_NONE
                          : change_of(source->path, &source->file.found,
                                      (uint64_t)source->at + source->nbytes);
}

void texts_check(const struct texts *texts, const char *outcome)
{
    for (size_t i = 0; i < texts->count; i++) {
        const struct source *source = &texts->source[i];
        enum file_change change = change_of_source(source);
        if (change == CHANGE_OTHER ||
            (change == CHANGE_GREW && hash_ends(&texts->piece[i]) != source->ends))
            fail("%s: was changed while it was read%s", input_name(source->path), outcome);
    }
    if (!mapped_torn())
        return;
    for (size_t i = 0; i < texts->count; i++)
        if (end_of_text(texts, mapped_torn()) == texts->piece[i].bytes + texts->piece[i].nbytes)
            fail("%s: cannot be read any more%s", input_name(texts->source[i].path), outcome);
}

void texts_tell_changes(const struct texts *texts, const struct settings *settings)
{
    enum file_change change = CHANGE_NONE;
    for (size_t i = 0; i < texts->count && !change; i++) {
        const struct source *source = &texts->source[i];
        change = change_of_source(source);
        input_tell_change(settings, source->path, change,
                          (uint64_t)source->at + source->nbytes);
    }
}

uint64_t texts_ncopied(const struct texts *texts)
{
    return texts->ncopied;
}
