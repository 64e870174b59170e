/* module_foreign_test.c - proves that filters of other modules are served as they are: dumps
 * that RedisBloom's documentation prints, its RDB fields, filters of which only some pieces
 * came, and what an enemy writes.
 *
 * It fails when an item that was added is denied, when a filter is not the same after it was
 * saved or dumped, or when damaged bytes are taken for a filter that breaks. */
#include "support.h"

#include <math.h>
#include <string.h>

#include "../../module/blocks.h"
#include "../../module/memory.h"
#include "../../module/settings.h"
#include "fake_server.h"
#include "foreign.h"
#include "hostile.h"

/* ---- Known bytes ------------------------------------------------------------------------ */

/* Checks that these bits of the first block are set, and no others. */
static void expect_bits(const void *filter, const unsigned *bits, unsigned n, size_t nbytes)
{
    struct text dump = dump_of(&redis_bloom, filter);
    uint8_t *wanted = calloc(nbytes, 1);
    for (unsigned i = 0; i < n; i++)
        wanted[bits[i] / 8] |= (uint8_t)(1 << bits[i] % 8);
    expect(dump.nbytes == HEAD + LINK + nbytes);
    expect(!memcmp(dump.at + HEAD + LINK, wanted, nbytes));
    free(wanted);
    free(dump.at);
}

TEST(test_bits_of_an_item)
{
    static const unsigned bits[] = { 269, 847, 145, 723, 21, 599, 25, 475 };
    setup();
    void *filter = make_bloom(100, .005, NOROUND | FORCE64, 2);
    expect(!has(&redis_bloom, filter, "foo"));
    add_text(&redis_bloom, filter, "foo", true, false);
    add_text(&redis_bloom, filter, "foo", true, true);
    expect_bits(filter, bits, 8, 144);
    redis_bloom.release(filter);
    expect_nothing_left();
}

/* What the documentation of BF.SCANDUMP prints: made with a capacity of 10 and the rate .1. */
TEST(test_documented_bloom_filter)
{
    static char header[] = "\1\0\0\0\0\0\0\0\1\0\0\0\5\0\0\0\2\0\0\0\x08\0\0\0\0\0\0\0@\0\0\0"
                           "\0\0\0\0\1\0\0\0\0\0\0\0\x9a\x99\x99\x99\x99\x99\xa9?J\xf7\xd4\x9e"
                           "\xde\xf0\x18@\5\0\0\0\n\0\0\0\0\0\0\0";
    static const char bits[] = "\1\x08\0\x80\0\4 ";
    struct text text = { (uint8_t *)header, sizeof header };
    struct info info;
    struct layer layer;
    setup();
    void *filter = begin(&redis_bloom, &text);
    expect(filter);
    expect_success(load(&redis_bloom, filter, 9, bits, sizeof bits));
    expect(redis_bloom.is_complete(filter) && redis_bloom.items(filter) == 1);
    expect(has(&redis_bloom, filter, "item1") && !has(&redis_bloom, filter, "item2"));
    redis_bloom.info(filter, &info);
    expect(info.capacity == 10 && info.filters == 1 && info.items == 1 && info.expansion == 2);
    expect(fabs(info.fpr_asked - .1) < 1e-12 && fabs(info.fpr_now - pow(5 / 64., 5)) < 1e-12);
    expect(info.bits_per_item == 64);
    expect(redis_bloom.layer(filter, 0, &layer) && layer.bits == 64 && layer.hashes == 5);
    expect(!redis_bloom.layer(filter, 1, &layer));
    struct text dump = dump_of(&redis_bloom, filter);
    expect(dump.nbytes == sizeof header + sizeof bits &&
           !memcmp(dump.at, header, sizeof header));
    free(dump.at);
    expect_copies(&redis_bloom, filter);
    redis_bloom.release(filter);
    expect_nothing_left();
}

/* What that of CF.SCANDUMP prints: of a version whose header ends with a pointer. */
TEST(test_documented_cuckoo_filter)
{
    static char header[] = "\1\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"
                           "\2\0\x14\0\1\0"
                           "8\x9a\xe0\xd8\xc3\x7f\0";
    static const char slots[] = "\0\0\0\0\a\0\0";
    struct text text = { (uint8_t *)header, sizeof header };
    struct info info;
    setup();
    void *filter = begin(&redis_cuckoo, &text);
    expect(filter);
    expect(
        has(&redis_cuckoo, filter, "item2")); /* which may be there as long as nothing came */
    expect_success(load(&redis_cuckoo, filter, 9, slots, sizeof slots));
    expect(has(&redis_cuckoo, filter, "item1") && !has(&redis_cuckoo, filter, "item2"));
    redis_cuckoo.info(filter, &info);
    expect(info.buckets == 4 && info.bucket_size == 2 && info.max_iterations == 20);
    expect(info.capacity == 8 && info.items == 1 && info.expansion == 1 && info.deleted == 0);
    expect_copies(&redis_cuckoo, filter);
    redis_cuckoo.release(filter);
    expect_nothing_left();
}

TEST(test_slot_of_an_item)
{
    setup();
    void *filter = make_cuckoo(512, 2, 20, 1);
    for (unsigned i = 0; i < 4; i++)
        add_text(&redis_cuckoo, filter, "foo", false, false);
    struct text dump = dump_of(&redis_cuckoo, filter);
    for (unsigned i = 0; i < 1024; i++)
        expect(dump.at[CUCKOO_HEAD + i] == (i / 2 == 257 || i / 2 == 76 ? 217 : 0));
    free(dump.at);
    const struct perhaps_key foo = { "foo", 3 };
    expect(redis_cuckoo.count(filter, &foo) == 4);
    expect(redis_cuckoo.remove(filter, &foo) && redis_cuckoo.count(filter, &foo) == 3);
    add_text(&redis_cuckoo, filter, "foo", true, true);
    redis_cuckoo.release(filter);
    expect_nothing_left();
}

/* ---- Pieces ----------------------------------------------------------------------------- */

/* Makes a filter of three links and one of some filters. */
static void *grown(const struct form *form, unsigned n)
{
    void *filter = form == &redis_bloom    ? make_bloom(50, .01, NOROUND | FORCE64, 2)
                   : form == &valkey_bloom ? make_valkey(50, .01, 2)
                                           : make_cuckoo(32, 2, 20, 2);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t number = mix64(i);
        const struct perhaps_key item = item_of(&number);
        bool was_present;
        size_t done;
        expect_success(form->add(filter, &item, 1, false, &was_present, &done));
    }
    return filter;
}

static void expect_grown(const struct form *form, const void *filter, unsigned n)
{
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t number = mix64(i);
        const struct perhaps_key item = item_of(&number);
        bool present;
        form->contains(filter, &item, 1, 0, &present);
        expect(present);
    }
}

enum { FORMS = 3 };
static const struct form *const all[FORMS] = { &redis_bloom, &redis_cuckoo, &valkey_bloom };
/* The bytes of a header, but for the links of Bloom filters. */
static const size_t heads[FORMS] = { HEAD, CUCKOO_HEAD, VALKEY_HEAD },
                    link_heads[FORMS] = { LINK, 0, VALKEY_LINK };

TEST(test_parts_of_a_filter)
{
    setup();
    for (unsigned which = 0; which < FORMS; which++) {
        const struct form *form = all[which];
        struct info info;
        void *filter = grown(form, 300);
        form->info(filter, &info);
        expect(info.filters >= 3);
        for (unsigned pieces = 1; pieces < 6; pieces++) {
            void *part = reload(form, filter, pieces);
            scene("%s, %u pieces", form->type_name, pieces);
            expect(form->is_complete(part) == (pieces > info.filters));
            expect_grown(form, part, 300);
            expect(form->is_complete(part) || has(form, part, "never added"));
            expect_copies(form, part);
            form->release(part);
        }
        form->release(filter);
    }
    expect_nothing_left();
}

/* Whatever comes out of order, twice, too long or to a place that is none is refused. */
TEST(test_pieces_that_are_refused)
{
    uint8_t bytes[200] = { 0 };
    setup();
    for (unsigned which = 0; which < FORMS; which++) {
        const struct form *form = all[which];
        void *filter = grown(form, 0), *part = reload(form, filter, 1);
        struct text dump = dump_of(form, filter);
        const size_t n = dump.nbytes - heads[which] - link_heads[which];
        expect(n > 60 && n < sizeof bytes);
        memcpy(bytes, dump.at + heads[which] + link_heads[which], n);
        free(dump.at);
        expect_error(load(form, part, 21, bytes + 10, 10), PERHAPS_ERR_ARGUMENT);
        expect_error(load(form, part, 10, bytes, 10), PERHAPS_ERR_ARGUMENT);
        expect_error(load(form, part, 5, bytes, 10), PERHAPS_ERR_ARGUMENT);
        expect_error(load(form, part, 1, bytes, 0), PERHAPS_ERR_ARGUMENT);
        expect_error(load(form, part, n + 2, bytes, n + 1), PERHAPS_ERR_ARGUMENT);
        expect_error(load(form, part, n + 2, bytes + n, 1), PERHAPS_ERR_ARGUMENT);
        expect_error(load(form, part, UINT64_MAX, bytes, 1), PERHAPS_ERR_ARGUMENT);
        expect_success(load(form, part, 11, bytes, 10));
        expect_success(load(form, part, 11, bytes, 10));
        expect_success(load(form, part, 6, bytes + 1, 4));
        expect_error(load(form, part, 12, bytes, 8 + 3), PERHAPS_ERR_ARGUMENT);
        bytes[3] ^= 1;
        expect_error(load(form, part, 11, bytes, 10), PERHAPS_ERR_ARGUMENT);
        bytes[3] ^= 1;
        expect(!form->is_complete(part));
        expect_copies(form, part);
        expect_success(load(form, part, n + 1, bytes + 10, n - 10));
        expect(form->is_complete(part));
        expect_same_dumps(form, part, filter);
        /* a piece that comes once more must not take away what was added since */
        add_text(form, part, "item", false, false);
        expect_error(load(form, part, n + 1, bytes, n), PERHAPS_ERR_ARGUMENT);
        expect(has(form, part, "item"));
        form->release(part);
        form->release(filter);
    }
    expect_nothing_left();
}

TEST(test_positions_of_a_dump)
{
    struct dump piece;
    setup();
    for (unsigned which = 0; which < FORMS; which++) {
        const struct form *form = all[which];
        void *filter = grown(form, 300);
        struct text dump = dump_of(form, filter);
        const size_t head = heads[which] + 3 * link_heads[which], n = dump.nbytes - head;
        for (uint64_t position = 1; position <= n; position++) {
            expect_success(form->dump(filter, position, &piece));
            expect(piece.nbytes > 0 && piece.next == position + piece.nbytes && !piece.memory);
            expect(!memcmp(piece.bytes, dump.at + head + position - 1, piece.nbytes));
        }
        expect_success(form->dump(filter, n + 1, &piece));
        expect(piece.next == 0 && piece.nbytes == 0);
        expect_error(form->dump(filter, n + 2, &piece), PERHAPS_ERR_ARGUMENT);
        expect_error(form->dump(filter, UINT64_MAX, &piece), PERHAPS_ERR_ARGUMENT);
        free(dump.at);
        form->release(filter);
    }
    expect_nothing_left();
}

/* A link of more than one piece. */
TEST(test_pieces_of_a_large_link)
{
    struct dump piece;
    setup();
    void *filter = make_bloom(15000000, .005, NOROUND | FORCE64, 2);
    add_text(&redis_bloom, filter, "item", false, false);
    expect_success(redis_bloom.dump(filter, 1, &piece));
    expect(piece.nbytes == DUMP_MOST_NBYTES && piece.next == 1 + DUMP_MOST_NBYTES);
    expect_success(redis_bloom.dump(filter, piece.next, &piece));
    expect(piece.nbytes > 0 && piece.nbytes < DUMP_MOST_NBYTES);
    expect_copies(&redis_bloom, filter);
    void *part = reload(&redis_bloom, filter, 2);
    expect(!redis_bloom.is_complete(part));
    expect_copies(&redis_bloom, part);
    redis_bloom.release(part);
    redis_bloom.release(filter);
    expect_nothing_left();
}

/* ---- Older forms ------------------------------------------------------------------------ */

/* Writes an RDB of an older encoding: without growth, without options, without bits. */
static RedisModuleIO old_rdb(int encoding, uint64_t options, uint64_t n2, uint64_t bits)
{
    RedisModuleIO rdb = { 0 };
    const struct plan p = plan_link(100, .01, 0);
    uint8_t *zeros = calloc(p.nbytes, 1);
    server.SaveUnsigned(&rdb, 0);
    server.SaveUnsigned(&rdb, 1);
    if (encoding >= 2)
        server.SaveUnsigned(&rdb, options);
    if (encoding >= 4)
        server.SaveUnsigned(&rdb, 2);
    server.SaveUnsigned(&rdb, p.entries);
    server.SaveDouble(&rdb, p.error);
    server.SaveUnsigned(&rdb, p.hashes);
    server.SaveDouble(&rdb, p.bpe);
    if (encoding >= 1) {
        server.SaveUnsigned(&rdb, bits);
        server.SaveUnsigned(&rdb, n2);
    }
    server.SaveStringBuffer(&rdb, (const char *)zeros, p.nbytes);
    server.SaveUnsigned(&rdb, 0);
    free(zeros);
    return rdb;
}

static void expect_old(int encoding, uint64_t options, uint64_t n2, uint64_t bits, bool loads)
{
    RedisModuleIO rdb = old_rdb(encoding, options, n2, bits);
    struct info info;
    scene("encoding %d, options %u, n2 %u", encoding, (unsigned)options, (unsigned)n2);
    void *filter = redis_bloom.read(&rdb, encoding);
    expect(!filter == !loads && (rdb.logged > 0) == !loads);
    if (filter) {
        redis_bloom.info(filter, &info);
        expect(info.expansion == 2);
        add_text(&redis_bloom, filter, "item", false, false);
        expect(has(&redis_bloom, filter, "item"));
        expect_copies(&redis_bloom, filter);
        redis_bloom.release(filter);
    }
    free(rdb.bytes);
}

TEST(test_older_encodings)
{
    setup();
    expect_old(4, 0, 10, 1024, true);
    expect_old(4, FORCE64, 10, 1024, true);
    expect_old(4, FORCE64 | NOROUND, 0, 1000, true); /* bits that are not rounded */
    expect_old(3, FORCE64, 10, 1024, true);
    expect_old(2, 0, 10, 1024, true);
    expect_old(1, 0, 10, 0, true); /* 'bits' was not set */
    expect_old(0, 0, 0, 0, false);
    expect_old(5, 0, 10, 1024, false);
    expect_old(1, 0, 0, 1000, false); /* where the bits are depends on the version */
    expect_old(4, 0, 0, 1024, false);
    expect_old(4, 16, 10, 1024, false);
    expect_old(4, FORCE64, 11, 1024, false);
    expect_old(4, FORCE64, 200, 1024, false);
    expect_old(4, FORCE64, 0, 1025, false);
    expect_old(4, FORCE64, 0, 0, false);
    void *filter = make_cuckoo(4, 2, 20, 1);
    for (int encoding = 0; encoding <= 5; encoding++) {
        RedisModuleIO rdb = { 0 };
        redis_cuckoo.save(&rdb, filter);
        void *again = redis_cuckoo.read(&rdb, encoding);
        expect(!again == (encoding != 4) && rdb.logged == (encoding != 4));
        if (again)
            redis_cuckoo.release(again);
        free(rdb.bytes);
    }
    redis_cuckoo.release(filter);
    expect_nothing_left();
}

/* ---- An enemy --------------------------------------------------------------------------- */

static void refuse(const struct form *form, struct text header)
{
    const char *why = NULL;
    expect(!form->begin_load((const char *)header.at, header.nbytes, &why) && why);
    free(header.at);
}

TEST(test_cuckoo_headers_that_are_refused)
{
    setup();
    refuse(&redis_cuckoo, cuckoo_header(0, 1, 2, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(3, 1, 2, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(UINT64_C(1) << 63, 1, 2, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(UINT64_C(1) << 63, 2, 2, 20, 2));
    refuse(&redis_cuckoo, cuckoo_header(UINT64_C(1) << 32, 1, 1, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(UINT64_C(1) << 31, 1, 2, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(UINT64_C(1) << 16, 17, 1, 20, 2));
    refuse(&redis_cuckoo, cuckoo_header(4, 0, 2, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(4, UINT64_C(1) << 60, 2, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(4, 65536, 2, 20, 1));
    refuse(&redis_cuckoo,
           cuckoo_header(4, 1 | UINT64_C(1) << 63, 2, 20, 1)); /* it has a seed */
    refuse(&redis_cuckoo, cuckoo_header(4, 2, 2, 20, 0));
    refuse(&redis_cuckoo, cuckoo_header(4, 40, 2, 20, 2));
    refuse(&redis_cuckoo, cuckoo_header(4, 1, 0, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(4, 1, 256, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(4, 1, 2, 0, 1));
    refuse(&redis_cuckoo, cuckoo_header(4, 1, 2, 20, 3));
    expect_nothing_left();
}

static void refuse_bloom(struct plan p, uint64_t items, uint32_t links, uint32_t options)
{
    struct text header = bloom_header(items, links, options, 2);
    for (uint32_t i = 0; i < links && i < 2000; i++)
        put_link(&header, &p, i ? 0 : items);
    refuse(&redis_bloom, header);
}

TEST(test_bloom_headers_that_are_refused)
{
    const struct plan good = plan_link(100, .01, NOROUND);
    struct plan p;
    setup();
#define REFUSED(change) (p = good, change, refuse_bloom(p, 0, 1, NOROUND | FORCE64))
    REFUSED(p.nbytes = 0);
    REFUSED(p.nbytes = UINT64_C(1) << 60);
    REFUSED(p.nbytes = UINT64_C(1) << 61); /* * 8 is 0 */
    REFUSED(p.error = 0);
    REFUSED(p.error = 1);
    REFUSED(p.error = -.5);
    REFUSED(p.error = NAN);
    REFUSED(p.bpe = NAN);
    REFUSED(p.bpe = INFINITY);
    REFUSED(p.bpe *= 1.001);
    REFUSED(p.hashes = 0);
    REFUSED(p.hashes = UINT32_MAX);
    REFUSED(p.entries = 0);
    REFUSED(p.n2 = 64);
    REFUSED(p.n2 = 11);
#undef REFUSED
    refuse_bloom(good, 0, 0, NOROUND | FORCE64);
    refuse_bloom(good, 0, 1000, NOROUND | FORCE64);
    refuse_bloom(good, 0, 1, NOROUND | FORCE64 | 16);
    refuse_bloom(good, 0, 1, NOROUND);
    refuse_bloom(good, UINT64_MAX, 1, NOROUND | FORCE64);
    struct text sum = bloom_header(5, 1, NOROUND | FORCE64, 2);
    put_link(&sum, &good, 4);
    refuse(&redis_bloom, sum);
    expect_nothing_left();
}

/* The bytes of all blocks are 2^64 or 2^63, so that offsets and positions would begin anew. */
TEST(test_blocks_that_cannot_be_counted)
{
    struct body body = { 0 };
    setup();
    for (unsigned i = 0; i < 7; i++)
        expect_success(body_expect_block(&body, UINT64_C(1) << 60));
    expect_error(body_expect_block(&body, UINT64_C(1) << 60), PERHAPS_ERR_MEMORY);
    expect_error(body_expect_block(&body, UINT64_C(9) << 60), PERHAPS_ERR_MEMORY);
    expect(body.nblocks == 7 && body.nbytes == UINT64_C(7) << 60 && !body_is_whole(&body));
    body_release(&body);
    expect_nothing_left();
}

/* Uses a filter that an enemy made. */
static void use(const struct form *form, void *filter, struct rng *rng)
{
    uint64_t numbers[40];
    struct perhaps_key items[40];
    struct info info;
    struct layer layer;
    bool present[40];
    size_t done;
    for (size_t i = 0; i < 40; i++) {
        numbers[i] = rng_next(rng);
        items[i] = item_of(&numbers[i]);
    }
    if (form->is_complete(filter)) {
        form->add(filter, items, 40, false, present, &done);
        form->contains(filter, items, done, 0, present);
        for (size_t i = 0; i < done; i++)
            expect(present[i]);
    }
    form->info(filter, &info);
    if (form->layer)
        form->layer(filter, 0, &layer);
    if (form->remove) {
        form->count(filter, items);
        form->remove(filter, items);
        form->compact(filter);
    }
    expect_copies(form, filter);
}

/* Changes bytes of an RDB, or cuts it off. */
static void mutate(RedisModuleIO *rdb, struct rng *rng)
{
    static const uint8_t values[] = { 0, 1, 2, 0x7f, 0x80, 0xff };
    for (uint64_t n = 1 + rng_below(rng, 3); n > 0; n--)
        rdb->bytes[rng_below(rng, rdb->nbytes)] =
            rng_below(rng, 2) ? values[rng_below(rng, sizeof values)] : (uint8_t)rng_next(rng);
    if (rng_below(rng, 4) == 0)
        rdb->nbytes = rng_below(rng, rdb->nbytes);
}

TEST(test_damaged_rdb)
{
    struct rng rng = rng_for("rdb");
    unsigned loaded = 0;
    setup();
    for (unsigned run = 0; run < many(8000); run++) {
        const struct form *form = all[run % FORMS];
        const unsigned pieces = run / FORMS % 2 ? 5 : (unsigned)rng_below(&rng, 5) + 1;
        void *filter = grown(form, 120), *part = reload(form, filter, pieces);
        RedisModuleIO rdb = { 0 };
        form->save(&rdb, part);
        form->release(part);
        form->release(filter);
        mutate(&rdb, &rng);
        scene("run %u", run);
        filter = form->read(&rdb, form->encoding);
        loaded += filter != NULL;
        if (filter) {
            use(form, filter, &rng);
            form->release(filter);
        }
        free(rdb.bytes);
    }
    expect(loaded > 0);
    expect_nothing_left();
}

TEST(test_damaged_headers)
{
    struct rng rng = rng_for("headers");
    setup();
    for (unsigned run = 0; run < many(8000); run++) {
        const struct form *form = all[run % FORMS];
        const char *why = NULL;
        void *filter = grown(form, 120);
        struct dump piece;
        expect_success(form->dump(filter, 0, &piece));
        RedisModuleIO bytes = { .bytes = piece.memory, .nbytes = piece.nbytes };
        mutate(&bytes, &rng);
        void *loaded = form->is_header(piece.bytes, bytes.nbytes)
                           ? form->begin_load(piece.bytes, bytes.nbytes, &why)
                           : NULL;
        memory_give(piece.memory);
        scene("run %u", run);
        for (uint64_t at = 1; loaded && at; at = piece.next) {
            expect_success(form->dump(filter, at, &piece));
            if (form->load(loaded, piece.next, piece.bytes, piece.nbytes, &why))
                break;
        }
        if (loaded) {
            use(form, loaded, &rng);
            form->release(loaded);
        }
        form->release(filter);
    }
    expect_nothing_left();
}

/* ---- Too little memory ------------------------------------------------------------------ */

/* Fails the first allocation, the second, and so on: a failed call changes nothing, and what
 * was taken is released. */
TEST(test_too_little_memory)
{
    setup();
    for (unsigned which = 0; which < FORMS; which++) {
        const struct form *form = all[which];
        unsigned copied = 0, read = 0, loaded = 0;
        void *filter = grown(form, 300), *before = form->copy(filter);
        for (uint64_t call = 1; copied + read + loaded < 3; call++) {
            RedisModuleIO rdb = { 0 };
            struct dump piece = { 0 };
            const char *why = NULL;
            form->save(&rdb, filter);
            fake_memory_ends = call;
            void *copy = form->copy(filter);
            fake_memory_ends = call;
            void *again = form->read(&rdb, form->encoding);
            fake_memory_ends = 0;
            expect_success(form->dump(filter, 0, &piece));
            fake_memory_ends = call;
            void *part = form->begin_load(piece.bytes, piece.nbytes, &why);
            fake_memory_ends = 0;
            memory_give(piece.memory);
            copied = copy != NULL;
            read = again != NULL;
            loaded = part != NULL;
            for (unsigned i = 0; i < 3; i++)
                if ((void *[]){ copy, again, part }[i])
                    form->release((void *[]){ copy, again, part }[i]);
            free(rdb.bytes);
        }
        for (uint64_t i = 0; i < 3000; i++) { /* until it must grow */
            const uint64_t number = mix64(i);
            const struct perhaps_key item = item_of(&number);
            bool was_present;
            size_t done;
            fake_memory_ends = 1;
            int error = form->add(filter, &item, 1, false, &was_present, &done);
            fake_memory_ends = 0;
            if (error) {
                expect(error == PERHAPS_ERR_MEMORY && done == 0);
                form->release(before);
                before = form->copy(filter);
                fake_memory_ends = 1;
                expect_error(form->add(filter, &item, 1, false, &was_present, &done),
                             PERHAPS_ERR_MEMORY);
                fake_memory_ends = 0;
                expect_same_dumps(form, filter, before);
                break;
            }
            expect(i < 2999);
        }
        form->release(before);
        form->release(filter);
    }
    expect_nothing_left();
}
