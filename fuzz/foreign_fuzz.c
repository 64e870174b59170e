/* foreign_fuzz.c - fuzzes the loading of filters of RedisBloom and valkey-bloom: any bytes are
 * refused, or give a filter that is safe to use and finds what is added to it.
 *
 * The first byte chooses the form (bit 0, or bit 5 for valkey-bloom's), how the rest is read
 * (bit 1, or bit 6 for BF.LOAD), and the encoding of an RDB (bits 2 to 4; an even one stands
 * for the present).  A dump: the length of the header, the header, and pieces that each have
 * their length before them.  An RDB: the fields of fake_server.c. */
#include <stdlib.h>
#include <string.h>

#include "../module/form.h"
#include "../module/memory.h"
#include "../module/settings.h"
#include "../module/valkeybloom.h"
#include "module/fake_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void *load_dump(const struct form *form, const uint8_t *data, size_t nbytes)
{
    const char *why;
    const size_t header = nbytes > 0 && data[0] < nbytes ? data[0] : 0;
    uint64_t position = 1;
    if (!header || !form->is_header((const char *)data + 1, header))
        return NULL;
    void *filter = form->begin_load((const char *)data + 1, header, &why);
    check(filter || why);
    for (size_t at = 1 + header; filter && at < nbytes;) {
        const size_t left = nbytes - at - 1, piece = data[at] < left ? data[at] : left;
        why = NULL;
        if (!form->load(filter, position + piece, (const char *)data + at + 1, piece, &why))
            position += piece;
        else
            check(why);
        at += 1 + piece;
    }
    return filter;
}

static void *load_rdb(const struct form *form, unsigned encoding, const uint8_t *data,
                      size_t nbytes)
{
    uint8_t *copy = malloc(nbytes + 1);
    check(copy);
    memcpy(copy, data, nbytes);
    RedisModuleIO rdb = { .bytes = copy, .nbytes = nbytes };
    void *filter = form->read(&rdb, encoding % 2 ? (int)encoding : form->encoding);
    check(!filter || !rdb.failed);
    free(copy);
    return filter;
}

/* Checks that a filter is the same when it is saved and read. */
static void check_saved(const struct form *form, const void *filter)
{
    struct RedisModuleDigest digest = { 0 }, other = { 0 };
    RedisModuleIO rdb = { 0 };
    form->save(&rdb, filter);
    void *again = form->read(&rdb, form->encoding);
    check(again && rdb.at == rdb.nbytes);
    form->digest(&digest, filter);
    form->digest(&other, again);
    check(digest.hash == other.hash && form->is_complete(filter) == form->is_complete(again));
    form->release(again);
    free(rdb.bytes);
}

static void check_pieces(const struct form *form, const void *filter)
{
    struct dump piece;
    const char *why;
    check(!form->dump(filter, 0, &piece));
    void *again = form->begin_load(piece.bytes, piece.nbytes, &why);
    memory_give(piece.memory);
    check(again);
    while (!form->dump(filter, piece.next, &piece) && piece.nbytes)
        check(!form->load(again, piece.next, piece.bytes, piece.nbytes, &why));
    check(piece.next == 0 && form->is_complete(filter) == form->is_complete(again));
    form->release(again);
}

static void use(const struct form *form, void *filter)
{
    uint64_t numbers[40];
    struct perhaps_key items[40];
    struct info info;
    bool present[40];
    size_t done;
    for (size_t i = 0; i < 40; i++) {
        numbers[i] = i * UINT64_C(0x9e3779b97f4a7c15);
        items[i] = (struct perhaps_key){ &numbers[i], sizeof numbers[i] };
    }
    form->add(filter, items, 40, true, present, &done);
    form->contains(filter, items, done, 0, present);
    for (size_t i = 0; i < done; i++)
        check(present[i]);
    if (form->compact) {
        form->compact(filter);
        form->contains(filter, items, done, 0, present);
        for (size_t i = 0; i < done; i++)
            check(present[i] && form->count(filter, &items[i]) > 0);
        form->remove(filter, items);
    }
    form->info(filter, &info);
    check(info.fpr_now >= 0 && info.fpr_now <= 1);
}

/* Makes a filter of what is behind the first byte, or returns NULL. */
static void *load(const struct form *form, uint8_t first, const uint8_t *data, size_t nbytes)
{
    const char *why;
    if (form == &valkey_bloom && first & 64)
        return valkeybloom_decode((const char *)data, nbytes, &why);
    return first & 2 ? load_rdb(form, first >> 2 & 7, data, nbytes)
                     : load_dump(form, data, nbytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    if (nbytes < 1)
        return 0;
    fake_server();
    settings.cf_max_expansions = 32;
    const struct form *form = *data & 32  ? &valkey_bloom
                              : *data & 1 ? &redis_cuckoo
                                          : &redis_bloom;
    void *filter = load(form, *data, data + 1, nbytes - 1);
    if (!filter)
        return 0;
    check_saved(form, filter);
    use(form, filter);
    check_saved(form, filter);
    check_pieces(form, filter);
    form->release(filter);
    return 0;
}
