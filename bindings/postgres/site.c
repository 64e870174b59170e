/* site.c - what a call in a query remembers from row to row: the type of its key, and filters.
 *
 * To fetch and load a filter of 12 MB takes milliseconds, and to ask it nanoseconds.  A large
 * value comes to a function as a pointer to its chunks in a TOAST table.  No value gets the
 * pointer of another one while a query can see it: so the pointer tells whether a filter is
 * known already.  (Its number is from a counter of 32 bits, and does not come again soon
 * after.)  Of values that lie in memory the checksums tell. */
#include "extension.h"

#include "access/detoast.h"
#include "common/hashfn.h"
#include "miscadmin.h"

#include <string.h>

/* What tells a value from others. */
struct identity {
    uint64 first, second; /* of its TOAST pointer; or its checksums */
    uint32 nbytes;
    bool is_toasted;
};

struct slot {
    struct identity identity;
    struct loaded loaded; /* no filter: the slot is empty */
};

struct site {
    struct key_type key_type;
    uint32 nslots; /* a power of two, at least half of which are empty; or 0 */
    uint32 nused;
    uint64 nbytes; /* of all filters */
    struct slot *slots;
    struct slot last; /* a value that lies in memory */
    MemoryContext context;
    MemoryContextCallback at_end;
};

/* ---- Identities ---------------------------------------------------------------------- */

static void identify_toasted(const struct varlena *value, struct identity *identity)
{
    struct varatt_external pointer;
    VARATT_EXTERNAL_GET_POINTER(pointer, value);
    identity->first = (uint64)pointer.va_toastrelid << 32 | pointer.va_valueid;
    identity->second = pointer.va_extinfo;
    identity->nbytes = (uint32)pointer.va_rawsize;
    identity->is_toasted = true;
}

static bool identify_bytes(const struct varlena *value, struct identity *identity)
{
    const char *bytes = VARDATA_ANY(value);
    const size_t nbytes = value_nbytes(value);
    if (nbytes < FILE_NBYTES_LEAST)
        return false;
    identity->first = checksum_in(bytes);
    memcpy(&identity->second, bytes + nbytes - CHECKSUM_NBYTES, CHECKSUM_NBYTES);
    identity->nbytes = (uint32)nbytes;
    return true;
}

static bool is_same_value(const struct identity *a, const struct identity *b)
{
    return a->first == b->first && a->second == b->second && a->nbytes == b->nbytes &&
           a->is_toasted == b->is_toasted;
}

/* ---- The table of filters ------------------------------------------------------------ */

/* Returns the slot of this identity, or the empty one where it would be. */
static struct slot *find_slot(const struct site *site, const struct identity *identity)
{
    const uint32 mask = site->nslots - 1;
    uint32 i = murmurhash32((uint32)identity->first ^ (uint32)(identity->first >> 32)) & mask;
    while (site->slots[i].loaded.filter && !is_same_value(&site->slots[i].identity, identity))
        i = (i + 1) & mask;
    return &site->slots[i];
}

static void forget_all(struct site *site)
{
    for (uint32 i = 0; i < site->nslots; i++)
        owned_free(&site->slots[i].loaded);
    site->nused = 0;
    site->nbytes = 0;
}

static void release_site(void *context)
{
    struct site *site = context;
    forget_all(site);
    owned_free(&site->last.loaded);
}

static void make_slots(struct site *site)
{
    enum { SLOTS_LEAST = 4 };
    struct slot *old = site->slots;
    const uint32 nold = site->nslots;
    if (2 * (site->nused + 1) <= nold)
        return;
    site->slots = MemoryContextAllocZero(site->context, Max(2 * nold, (uint32)SLOTS_LEAST) *
                                                            sizeof *site->slots);
    site->nslots = Max(2 * nold, (uint32)SLOTS_LEAST);
    for (uint32 i = 0; i < nold; i++)
        if (old[i].loaded.filter)
            *find_slot(site, &old[i].identity) = old[i];
    if (old)
        pfree(old);
}

/* ---- Sites --------------------------------------------------------------------------- */

struct site *site_of(FunctionCallInfo call, int key_argument)
{
    struct site *site = call->flinfo->fn_extra;
    if (likely(site))
        return site;
    site = MemoryContextAllocZero(call->flinfo->fn_mcxt, sizeof *site);
    site->context = call->flinfo->fn_mcxt;
    key_type_of_argument(call, key_argument, false, &site->key_type);
    site->at_end = (MemoryContextCallback){ .func = release_site, .arg = site };
    MemoryContextRegisterResetCallback(site->context, &site->at_end);
    call->flinfo->fn_extra = site;
    return site;
}

const struct key_type *site_key_type(const struct site *site)
{
    return &site->key_type;
}

/* As many filters stay as there is memory for a hash table, and at least one. */
static const struct loaded *load_toasted(struct site *site, Datum value,
                                         const struct identity *identity)
{
    struct slot *slot = site->nslots ? find_slot(site, identity) : NULL;
    if (likely(slot && slot->loaded.filter))
        return &slot->loaded;
    if (site->nbytes + identity->nbytes > get_hash_memory_limit())
        forget_all(site);
    make_slots(site);
    slot = find_slot(site, identity);
    slot->identity = *identity;
    load_value(value, &slot->loaded);
    site->nused++;
    site->nbytes += identity->nbytes;
    return &slot->loaded;
}

/* Of values in memory one stays. */
static const struct loaded *load_bytes_once(struct site *site, Datum value,
                                            const struct identity *identity)
{
    if (site->last.loaded.filter && is_same_value(&site->last.identity, identity))
        return &site->last.loaded;
    owned_free(&site->last.loaded);
    load_value(value, &site->last.loaded);
    site->last.identity = *identity;
    return &site->last.loaded;
}

const struct loaded *site_load(struct site *site, Datum value)
{
    const struct varlena *v = (const struct varlena *)DatumGetPointer(value);
    struct identity identity = { 0 };
    if (VARATT_IS_EXTERNAL_ONDISK(v)) {
        identify_toasted(v, &identity);
        return load_toasted(site, value, &identity);
    }
    if (!value_is_plain(v)) { /* compressed, or elsewhere in memory */
        v = PG_DETOAST_DATUM_PACKED(value);
        value = PointerGetDatum(v);
    }
    if (!identify_bytes(v, &identity))
        fail(PERHAPS_ERR_DAMAGED, "a value of type perhaps");
    return load_bytes_once(site, value, &identity);
}
