/* foreign.c - filters of other modules, for the tests: see foreign.h. */
#include "foreign.h"

#include <math.h>
#include <string.h>

#include "../../module/memory.h"
#include "../../module/settings.h"
#include "../../module/valkeybloom.h"
#include "fake_server.h"
#include "hostile.h"
#include "support.h"

/* ---- Bytes of headers ------------------------------------------------------------------- */

void put(struct text *text, uint64_t value, size_t nbytes)
{
    text->at = realloc(text->at, text->nbytes + nbytes);
    expect(text->at);
    put_number(text->at + text->nbytes, value, nbytes);
    text->nbytes += nbytes;
}

void put_double(struct text *text, double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    put(text, word, sizeof word);
}

struct plan plan_link(uint64_t entries, double error, unsigned options)
{
    struct plan p = { .entries = entries, .error = error };
    p.bpe = -log(error) / 0.480453013918201;
    p.hashes = (uint32_t)ceil(0.693147180559945 * p.bpe);
    uint64_t bits = (uint64_t)((double)entries * p.bpe);
    if (!(options & NOROUND)) {
        p.n2 = (uint8_t)(logb((double)entries * p.bpe) + 1);
        bits = UINT64_C(1) << p.n2;
        p.entries += (uint64_t)(trunc((double)bits - (double)entries * p.bpe) / p.bpe);
    }
    p.nbytes = (bits + 63) / 64 * 8;
    return p;
}

void put_link(struct text *text, const struct plan *p, uint64_t items)
{
    put(text, p->nbytes, 8);
    put(text, p->nbytes * 8, 8);
    put(text, items, 8);
    put_double(text, p->error);
    put_double(text, p->bpe);
    put(text, p->hashes, 4);
    put(text, p->entries, 8);
    put(text, p->n2, 1);
}

struct text bloom_header(uint64_t items, uint32_t links, uint32_t options, uint32_t growth)
{
    struct text text = { 0 };
    put(&text, items, 8);
    put(&text, links, 4);
    put(&text, options, 4);
    put(&text, growth, 4);
    return text;
}

struct text cuckoo_header(uint64_t buckets, uint64_t filters, unsigned bucket_size,
                          unsigned iterations, unsigned expansion)
{
    struct text text = { 0 };
    put(&text, 0, 8);
    put(&text, buckets, 8);
    put(&text, 0, 8);
    put(&text, filters, 8);
    put(&text, bucket_size, 2);
    put(&text, iterations, 2);
    put(&text, expansion, 2);
    return text;
}

/* ---- Filters ---------------------------------------------------------------------------- */

static unsigned long long taken_before;

void setup(void)
{
    fake_server();
    taken_before = memory_taken();
    fake_memory_ends = 0;
    settings.cf_max_expansions = 32;
}

void *begin(const struct form *form, const struct text *header)
{
    const char *why = NULL;
    expect(form->is_header((const char *)header->at, header->nbytes));
    void *filter = form->begin_load((const char *)header->at, header->nbytes, &why);
    expect(filter || why);
    return filter;
}

int load(const struct form *form, void *filter, uint64_t position, const void *bytes,
         size_t nbytes)
{
    const char *why = NULL;
    int error = form->load(filter, position, bytes, nbytes, &why);
    expect(!error || why);
    return error;
}

/* Makes a filter with these links and no items.  Releases the header. */
static void *make(const struct form *form, struct text header, uint64_t nbytes)
{
    void *filter = begin(form, &header), *zeros = calloc(nbytes, 1);
    expect(filter && zeros);
    expect(!form->is_complete(filter));
    expect_success(load(form, filter, 1 + nbytes, zeros, nbytes));
    expect(form->is_complete(filter));
    free(zeros);
    free(header.at);
    return filter;
}

void *make_bloom(uint64_t entries, double error, unsigned options, unsigned growth)
{
    const struct plan p = plan_link(entries, error, options);
    struct text header = bloom_header(0, 1, options, growth);
    put_link(&header, &p, 0);
    return make(&redis_bloom, header, p.nbytes);
}

void *make_cuckoo(uint64_t buckets, unsigned size, unsigned iterations, unsigned expansion)
{
    return make(&redis_cuckoo, cuckoo_header(buckets, 1, size, iterations, expansion),
                buckets * size);
}

void *make_valkey(uint64_t capacity, double fpr, uint32_t expansion)
{
    static const char seed[VALKEYBLOOM_SEED_NBYTES] = { 1, 2, 3 };
    const struct valkeybloom_wish wish = {
        .capacity = capacity, .fpr = fpr, .tightening = .5, .expansion = expansion, .seed = seed
    };
    const char *why;
    void *filter = valkeybloom_create(&wish, &why);
    expect(filter);
    return filter;
}

struct perhaps_key item_of(const uint64_t *number)
{
    return (struct perhaps_key){ number, 1 + *number % sizeof *number };
}

bool has(const struct form *form, const void *filter, const char *text)
{
    bool present;
    form->contains(filter, &(struct perhaps_key){ text, strlen(text) }, 1, 0, &present);
    return present;
}

/* Returns all pieces of a dump, the header first, and their positions. */
struct text dump_of(const struct form *form, const void *filter)
{
    struct text text = { 0 };
    struct dump piece;
    uint64_t position = 0;
    do {
        expect_success(form->dump(filter, position, &piece));
        text.at = realloc(text.at, text.nbytes + piece.nbytes + 1);
        expect(text.at && piece.nbytes <= DUMP_MOST_NBYTES && !piece.next == !piece.nbytes);
        if (piece.nbytes)
            memcpy(text.at + text.nbytes, piece.bytes, piece.nbytes);
        text.nbytes += piece.nbytes;
        memory_give(piece.memory);
        position = piece.next;
    } while (position);
    return text;
}

void expect_same_dumps(const struct form *form, const void *a, const void *b)
{
    struct text one = dump_of(form, a), other = dump_of(form, b);
    expect(one.nbytes == other.nbytes && !memcmp(one.at, other.at, one.nbytes));
    expect(form->is_complete(a) == form->is_complete(b) && form->items(a) == form->items(b));
    free(one.at);
    free(other.at);
}

/* Loads the dump of a filter into a new one.  Stops before the piece of number 'most'. */
void *reload(const struct form *form, const void *filter, unsigned most)
{
    struct dump piece;
    const char *why;
    void *loaded = NULL;
    uint64_t position = 0;
    for (unsigned i = 0; i < most; i++, position = piece.next) {
        expect_success(form->dump(filter, position, &piece));
        if (!piece.nbytes)
            break;
        if (!loaded)
            loaded = form->begin_load(piece.bytes, piece.nbytes, &why);
        else
            expect_success(load(form, loaded, piece.next, piece.bytes, piece.nbytes));
        memory_give(piece.memory);
    }
    return loaded;
}

static void *saved_and_read(const struct form *form, const void *filter)
{
    RedisModuleIO rdb = { 0 };
    form->save(&rdb, filter);
    void *again = form->read(&rdb, form->encoding);
    expect(again && rdb.at == rdb.nbytes && !rdb.logged);
    free(rdb.bytes);
    return again;
}

/* Checks all ways from one filter to another that is the same. */
void expect_copies(const struct form *form, const void *filter)
{
    struct RedisModuleDigest digest = { 0 }, other = { 0 };
    void *copies[] = { form->copy(filter), saved_and_read(form, filter),
                       reload(form, filter, UINT32_MAX) };
    form->digest(&digest, filter);
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        expect(copies[i]);
        expect_same_dumps(form, filter, copies[i]);
        form->defrag(NULL, &copies[i]);
        expect_same_dumps(form, filter, copies[i]);
        other.hash = 0;
        form->digest(&other, copies[i]);
        expect(other.hash == digest.hash);
        expect(form->memory_nbytes(copies[i]) >= 8);
        form->release(copies[i]);
    }
}

void expect_nothing_left(void)
{
    expect(memory_taken() == taken_before);
}

void add_text(const struct form *form, void *filter, const char *text, bool unless_present,
              bool wanted)
{
    const struct perhaps_key item = { text, strlen(text) };
    bool was_present;
    size_t done;
    expect_success(form->add(filter, &item, 1, unless_present, &was_present, &done));
    expect(done == 1 && was_present == wanted);
}
