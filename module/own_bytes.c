/* own_bytes.c - our filters as bytes: in pieces for SCANDUMP and LOADCHUNK, and in an RDB.
 *
 * Both begin with a header.  Behind it come the bytes of the filter's file (doc/FORMAT.md),
 * with their checksums.
 *
 *     offset size  header, little-endian
 *          0    8  "perhapsB" for BF, "perhapsC" for CF
 *          8    4  1, the version
 *         12    4  expansion
 *         16    8  capacity asked for
 *         24    8  fpr asked for, as a double
 *         32    4  1: the capacity was reserved
 *         36    4  bucket size asked for
 *         40    4  most iterations asked for
 *         44    4  0
 *         48   24  window: its length, its period, and when its newest generation began, in ms
 *         72   16  items, and deleted items
 *         88    8  how many bytes follow
 *         96   16  the secret
 *
 * A position of SCANDUMP is 1 + the offset behind the header, which takes 41 bits; above these
 * stand 11 bits of the number of changes, so that a dump of a filter that changes meanwhile is
 * not taken for whole. */
#include <math.h>
#include <string.h>

#include "memory.h"
#include "own.h"
#include <perhaps_file.h>
#include <perhaps_plan.h>

/* The size of a piece, less than DUMP_MOST_NBYTES: jemalloc gives blocks of more than 8 MiB
 * back to the system at once, and the kernel must then clear new ones. */
enum { PIECE_NBYTES = 4 << 20 };

enum { HEADER_NBYTES = 112, VERSION = 1, OFFSET_BITS = 41, CHANGE_BITS = 11 };
#define OFFSET_MASK ((UINT64_C(1) << OFFSET_BITS) - 1)
static const char magics[2][9] = { [FAMILY_BLOOM] = "perhapsB", [FAMILY_CUCKOO] = "perhapsC" };
static const char bad_data[] = "ERR received bad data";

/* ---- The header -------------------------------------------------------------------------- */

/* Goes over all fields of the header in their order: 'move' copies one to the bytes or from
 * them. So there is one list of them. */
struct header {
    uint32_t version, expansion;
    uint64_t capacity;
    double fpr;
    uint32_t reserved, bucket_size, max_iterations, zero;
    uint64_t window_ms, period_ms, began_ms, items, deleted, nbytes;
    uint8_t secret[SECRET_NBYTES];
};
_Static_assert(sizeof(struct header) == HEADER_NBYTES - 8, "the header has no gaps");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the header is copied as it is");

static void encode_header(const struct own *own, uint64_t nbytes, char bytes[HEADER_NBYTES])
{
    const struct wish *w = &own->wish;
    struct header h = { .version = VERSION,
                        .expansion = w->expansion,
                        .capacity = w->capacity,
                        .fpr = w->fpr,
                        .reserved = w->reserved,
                        .bucket_size = w->bucket_size,
                        .max_iterations = w->max_iterations,
                        .window_ms = w->window_ms,
                        .period_ms = own->period_ms,
                        .began_ms = own->began_ms,
                        .items = own->items,
                        .deleted = own->deleted,
                        .nbytes = nbytes };
    own_secret(own, h.secret);
    memcpy(bytes, magics[w->family], 8);
    memcpy(bytes + 8, &h, sizeof h);
}

/* Returns whether no sum of its times overflows, and they are those of a window of ours. */
static bool has_sound_times(const struct header *h)
{
    return h->window_ms <= INT64_MAX && h->began_ms <= INT64_MAX &&
           h->period_ms == own_period_ms(h->window_ms);
}

/* Makes a filter without its bytes.  Returns NULL and sets *why. */
static struct own *decode_header(const char *bytes, const char **why)
{
    struct header h;
    memcpy(&h, bytes + 8, sizeof h);
    *why = bad_data;
    if (h.version != VERSION || h.reserved > 1 || h.zero || !isfinite(h.fpr) ||
        h.nbytes > OFFSET_MASK || !h.nbytes || !has_sound_times(&h))
        return NULL;
    struct own *own = own_new();
    *why = "ERR Insufficient memory to create filter";
    if (!own || !(own->loading = memory_take(sizeof *own->loading))) {
        memory_give(own);
        return NULL;
    }
    own->wish =
        (struct wish){ .family = !memcmp(bytes, magics[FAMILY_CUCKOO], 8) ? FAMILY_CUCKOO
                                                                          : FAMILY_BLOOM,
                       .capacity = h.capacity,
                       .fpr = h.fpr,
                       .expansion = h.expansion,
                       .reserved = h.reserved,
                       .window_ms = h.window_ms,
                       .bucket_size = h.bucket_size,
                       .max_iterations = h.max_iterations };
    own->period_ms = h.period_ms;
    own->began_ms = h.began_ms;
    own->items = h.items;
    own->deleted = h.deleted;
    own->loading->pieces.of = h.nbytes;
    memcpy(own->loading->secret, h.secret, SECRET_NBYTES);
    return own;
}

static bool has_magic(enum family family, const char *bytes, size_t nbytes)
{
    return nbytes == HEADER_NBYTES && !memcmp(bytes, magics[family], 8);
}

bool own_is_bloom_header(const char *bytes, size_t nbytes)
{
    return has_magic(FAMILY_BLOOM, bytes, nbytes);
}

bool own_is_cuckoo_header(const char *bytes, size_t nbytes)
{
    return has_magic(FAMILY_CUCKOO, bytes, nbytes);
}

/* Returns whether the filter is one of those that the commands make, and that the header told
 * of: a window is asked a window's questions, and CF.DEL needs what can remove. */
static bool is_as_told(const struct own *own)
{
    const unsigned abilities = perhaps_abilities_of(own->filter);
    const bool forgets = abilities & PERHAPS_CAN_FORGET,
               adds = !(abilities & PERHAPS_CAN_BUILD), counts = abilities & PERHAPS_CAN_COUNT;
    uint8_t secret[SECRET_NBYTES];
    struct perhaps_stats stats;
    bool is_keyed = perhaps_secret(own->filter, secret) == 0;
    explicit_bzero(secret, sizeof secret);
    if (!adds || !is_keyed || forgets != (own->wish.window_ms > 0) ||
        counts != (own->wish.family == FAMILY_CUCKOO))
        return false;
    if (forgets) /* only then: it takes long */
        perhaps_stats_of(own->filter, &stats);
    return !forgets || own_field(&stats, "period_time") == own->period_ms;
}

/* Makes the filter of a header from the bytes of its file.  Returns 0 or an error of
 * perhaps_read(). */
static int read_filter(struct own *own, const struct perhaps_source *source)
{
    const struct perhaps_open_options options = { .mode = PERHAPS_MODE_LOAD,
                                                  .hashing.hash = PERHAPS_HASH_SIP,
                                                  .hashing.secret = own->loading->secret,
                                                  .allocator = &memory_of_server };
    int error = perhaps_read(source, &options, &own->filter);
    if (error || is_as_told(own))
        return error;
    perhaps_free(own->filter);
    own->filter = NULL;
    return PERHAPS_ERR_DAMAGED;
}

/* ---- Load -------------------------------------------------------------------------------- */

bool own_is_complete(const void *filter)
{
    return ((const struct own *)filter)->filter != NULL;
}

void *own_begin_load(const char *bytes, size_t nbytes, const char **why)
{
    (void)nbytes; /* is_header() has looked */
    return decode_header(bytes, why);
}

/* Makes the filter if all pieces are there.  If they make none they are lost:
 * PERHAPS_ERR_DAMAGED, also if there is too little memory. */
static int complete(struct own *own, const char **why)
{
    struct pieces_reader reader = { .pieces = &own->loading->pieces };
    const struct perhaps_source source = { .read = pieces_read,
                                           .context = &reader,
                                           .nbytes = own->loading->pieces.of };
    if (own->loading->pieces.nbytes < own->loading->pieces.of)
        return 0;
    int error = read_filter(own, &source);
    if (!error) {
        own_end_loading(own);
        return 0;
    }
    pieces_release(&own->loading->pieces);
    *why = error == PERHAPS_ERR_MEMORY ? "ERR Insufficient memory to create filter: load it "
                                         "again from its header"
                                       : "ERR received bad data, or of a filter that changed "
                                         "while it was dumped: load it again from its header";
    return PERHAPS_ERR_DAMAGED;
}

int own_load(void *filter, uint64_t position, const char *bytes, size_t nbytes,
             const char **why)
{
    struct own *own = filter;
    uint64_t end = (position & OFFSET_MASK) - 1; /* of 0: too large */
    *why = "ERR invalid offset - no link found";
    if (own->filter || nbytes > end || end - nbytes > own->loading->pieces.nbytes)
        return PERHAPS_ERR_ARGUMENT;
    if (end <= own->loading->pieces.nbytes)
        return 0; /* is there already */
    *why = "ERR invalid chunk - Too big for current filter";
    if (end > own->loading->pieces.of || end - nbytes < own->loading->pieces.nbytes)
        return PERHAPS_ERR_ARGUMENT;
    *why = "ERR Insufficient memory to create filter";
    int error = pieces_append(&own->loading->pieces, bytes, nbytes);
    return error ? error : complete(own, why);
}

/* ---- Dump -------------------------------------------------------------------------------- */

struct collected {
    char *bytes;
    size_t nbytes;
};

static int collect(void *context, const void *bytes, size_t nbytes)
{
    struct collected *c = context;
    memcpy(c->bytes + c->nbytes, bytes, nbytes);
    c->nbytes += nbytes;
    return 0;
}

/* Gives 'nbytes' bytes of the file from 'offset' on. */
static int dump_range(const struct own *own, uint64_t offset, size_t nbytes, struct dump *piece)
{
    struct collected c = { .bytes = memory_take_any(nbytes) };
    const struct perhaps_sink sink = { .write = collect, .context = &c };
    if (!c.bytes)
        return PERHAPS_ERR_MEMORY;
    int error = perhaps_write_range(own->filter, offset, nbytes, &sink);
    if (error) {
        memory_give(c.bytes);
        return error;
    }
    *piece = (struct dump){ .bytes = c.bytes, .nbytes = c.nbytes, .memory = c.bytes };
    return 0;
}

/* Gives the piece that begins at 'offset', of a filter whose pieces are not all there. */
static int dump_piece(const struct own *own, uint64_t offset, struct dump *piece)
{
    uint64_t at = 0;
    for (const struct piece *p = own->loading->pieces.first; p; at += p->nbytes, p = p->next)
        if (at == offset) {
            *piece = (struct dump){ .bytes = p->bytes, .nbytes = p->nbytes };
            return 0;
        }
    *piece = (struct dump){ 0 };
    return at == offset ? 0 : PERHAPS_ERR_ARGUMENT;
}

static int dump_header(const struct own *own, struct dump *piece)
{
    char *bytes = memory_take(HEADER_NBYTES);
    if (!bytes)
        return PERHAPS_ERR_MEMORY;
    encode_header(
        own, own->filter ? perhaps_write_nbytes(own->filter) : own->loading->pieces.of, bytes);
    *piece =
        (struct dump){ .next = 1, .bytes = bytes, .nbytes = HEADER_NBYTES, .memory = bytes };
    return 0;
}

int own_dump(const void *filter, uint64_t position, struct dump *piece)
{
    const struct own *own = filter;
    uint64_t change = own->changes & ((1 << CHANGE_BITS) - 1);
    uint64_t offset = (position & OFFSET_MASK) - 1;
    if (position == 0)
        return dump_header(own, piece);
    if (offset == UINT64_MAX) /* a position without an offset */
        return PERHAPS_ERR_ARGUMENT;
    if (offset && own->filter && position >> OFFSET_BITS != change)
        return PERHAPS_ERR_MISMATCH;
    int error = 0;
    if (!own->filter) {
        error = dump_piece(own, offset, piece);
    } else {
        uint64_t all = perhaps_write_nbytes(own->filter),
                 left = all > offset ? all - offset : 0;
        *piece = (struct dump){ 0 };
        if (left)
            error = dump_range(own, offset, left < PIECE_NBYTES ? (size_t)left : PIECE_NBYTES,
                               piece);
    }
    if (!error && piece->nbytes)
        piece->next = (1 + offset + piece->nbytes) | change << OFFSET_BITS;
    return error;
}

/* ---- RDB --------------------------------------------------------------------------------- */

static int save_bytes(void *rdb, const void *bytes, size_t nbytes)
{
    server.SaveStringBuffer(rdb, bytes, nbytes);
    return 0;
}

void own_save(RedisModuleIO *rdb, const void *filter)
{
    const struct own *own = filter;
    char header[HEADER_NBYTES];
    const struct piece *first = own->loading ? own->loading->pieces.first : NULL;
    uint64_t pieces = 0;
    encode_header(
        own, own->filter ? perhaps_write_nbytes(own->filter) : own->loading->pieces.of, header);
    server.SaveStringBuffer(rdb, header, sizeof header);
    for (const struct piece *p = first; p; p = p->next)
        pieces++;
    server.SaveUnsigned(rdb, own->filter != NULL);
    server.SaveUnsigned(rdb, pieces);
    for (const struct piece *p = first; p; p = p->next)
        server.SaveStringBuffer(rdb, p->bytes, p->nbytes);
    if (own->filter)
        /* fails only where memory for one page fails: then the server saves half a filter,
         * which its loader refuses */
        perhaps_write(own->filter,
                      &(struct perhaps_sink){ .write = save_bytes, .context = rdb });
    explicit_bzero(header, sizeof header);
}

/* The strings of an RDB as a source. */
struct rdb_reader {
    RedisModuleIO *rdb;
    char *string;
    size_t nbytes, at;
};

static int read_rdb(void *context, void *bytes, size_t nbytes)
{
    struct rdb_reader *r = context;
    char *to = bytes;
    while (nbytes) {
        if (r->at == r->nbytes) {
            if (r->string)
                server.Free(r->string);
            r->at = 0;
            r->string = server.LoadStringBuffer(r->rdb, &r->nbytes);
            if (!r->string || server.IsIOError(r->rdb) || !r->nbytes)
                return PERHAPS_ERR_DAMAGED;
        }
        size_t left = r->nbytes - r->at, n = left < nbytes ? left : nbytes;
        memcpy(to, r->string + r->at, n);
        to += n;
        nbytes -= n;
        r->at += n;
    }
    return 0;
}

/* Reads the pieces of a filter that is not complete. */
static bool read_saved_pieces(RedisModuleIO *rdb, struct own *own, uint64_t count)
{
    for (; count > 0; count--) {
        size_t nbytes;
        char *bytes = server.LoadStringBuffer(rdb, &nbytes);
        bool fits = bytes && !server.IsIOError(rdb) && nbytes > 0 &&
                    nbytes < own->loading->pieces.of - own->loading->pieces.nbytes &&
                    !pieces_append(&own->loading->pieces, bytes, nbytes);
        if (bytes)
            server.Free(bytes);
        if (!fits)
            return false;
    }
    return true;
}

static bool read_saved_filter(RedisModuleIO *rdb, struct own *own)
{
    struct rdb_reader reader = { .rdb = rdb };
    const struct perhaps_source source = { .read = read_rdb,
                                           .context = &reader,
                                           .nbytes = own->loading->pieces.of };
    int error = read_filter(own, &source);
    if (reader.string)
        server.Free(reader.string);
    if (error || reader.at != reader.nbytes)
        return false;
    own_end_loading(own);
    return true;
}

void *own_read(RedisModuleIO *rdb, int encoding)
{
    size_t nbytes;
    const char *why;
    struct own *own = NULL;
    char *header = encoding == OWN_ENCODING ? server.LoadStringBuffer(rdb, &nbytes) : NULL;
    if (!header)
        return NULL;
    if (!server.IsIOError(rdb) &&
        (has_magic(FAMILY_BLOOM, header, nbytes) || has_magic(FAMILY_CUCKOO, header, nbytes)))
        own = decode_header(header, &why);
    server.Free(header);
    if (!own)
        return NULL;
    uint64_t is_complete = server.LoadUnsigned(rdb), pieces = server.LoadUnsigned(rdb);
    bool sound =
        !server.IsIOError(rdb) && is_complete <= 1 && (!is_complete || !pieces) &&
        (is_complete ? read_saved_filter(rdb, own) : read_saved_pieces(rdb, own, pieces));
    if (sound)
        return own;
    own_release(own);
    return NULL;
}
