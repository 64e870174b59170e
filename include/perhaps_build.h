/* perhaps_build.h - filters of keys that are all known before any is asked for.
 *
 *     struct perhaps_options options = { .fpr = 0.001, .needs = PERHAPS_CAN_BUILD };
 *     perhaps_builder *builder;
 *     int error = perhaps_builder_create(&options, NULL, &builder);
 *     while (!error && next_keys(&keys))
 *         error = perhaps_builder_add_many(builder, &keys);
 *     if (!error)
 *         error = perhaps_builder_save(builder, "phones.perhaps");
 *     perhaps_builder_free(builder);
 *
 * Kinds that are built once, those with PERHAPS_CAN_BUILD, need all keys together, and take
 * fewer bits for that.  A builder keeps 8 bytes of each key's hash (16 where the hash has 128
 * bits): in memory, and what does not fit there in a temporary file without a name.  It makes
 * filters of the other kinds, too: to these it adds the keys as they come, if 'capacity' tells
 * how many there are; if it is 0, the builder keeps them in the same way, counts them, and
 * makes a filter that has room for just so many.
 *
 * The same keys, options and seed give the same filter, in whatever order the keys come and
 * however many threads give them.  (A filter that was folded, see 'in_memory', may differ.) */
#ifndef PERHAPS_BUILD_H
#define PERHAPS_BUILD_H

#include <perhaps.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct perhaps_builder perhaps_builder;

/* How a filter is built.  Zero is the default in every member. */
struct perhaps_build_options {
    /* How much memory to use, about, beside the filter that perhaps_builder_finish() returns;
     * 0: a quarter of perhaps_host_memory_nbytes(), and at least 1 MiB. */
    uint64_t memory_nbytes;

    const char *folder; /* of the temporary file, copied; NULL: $TMPDIR, or else /tmp */
    unsigned threads;   /* how many to use at the end; 0: perhaps_host_threads() */

    /* If 'capacity' is 0: makes room for keys that come later, too, a quarter as many and
     * another 1,000.  Kinds that are built once ignore it. */
    bool leaves_room;

    /* Nothing goes to a file.  What does not fit in the memory then: keys of kinds that are
     * built once, and those of which copies are stored, are refused.  Keys of other kinds go to
     * a filter as large as the memory allows, if it can be folded, which is folded at the end
     * to the smallest that perhaps_shrink() makes of it; 'leaves_room' then has no effect. */
    bool in_memory;

    /* Are called at the end, by any of the threads, one at a time. */
    bool (*stopped)(void *context); /* true ends the call with PERHAPS_ERR_STOPPED */
    void (*progress)(void *context, uint64_t done, uint64_t total); /* in keys */
    void *context;
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Begins a filter that gets all its keys before it is asked.  The needs of the options include
 * PERHAPS_CAN_BUILD even if they do not say so.  'capacity' need not be known, and may be 0: in
 * kinds that are built once it only chooses between a hash of 64 bits and one of 128.  'how'
 * may be NULL.  A caller's allocator is called by several threads at once.
 *
 * Returns 0; or sets *builder to NULL and returns an error of perhaps_create(), or
 * PERHAPS_ERR_ARGUMENT for a window whose capacity is 0. */
PERHAPS_API int perhaps_builder_create(const struct perhaps_options *options,
                                       const struct perhaps_build_options *how,
                                       perhaps_builder **builder);

/* Gives the builder keys, in as many calls as one likes.  A key that comes again is added once;
 * where 'needs' has PERHAPS_CAN_REMOVE or PERHAPS_CAN_COUNT every time stores a copy, as
 * perhaps_add() does.  Any number of threads may call it at once if the kind is built once, or
 * if the keys wait since 'capacity' is 0; otherwise one.  Returns 0; or PERHAPS_ERR_ARGUMENT
 * for a key of a length that the hash does not take, having taken none of these keys, or once
 * the builder is finished.  Other errors are those of perhaps_add(), PERHAPS_ERR_MEMORY,
 * PERHAPS_ERR_FULL if more keys come than fit under 'in_memory', and PERHAPS_ERR_IO (errno) of
 * the temporary file: keys are missing then, and all later calls return the same error. */
PERHAPS_API int perhaps_builder_add_many(perhaps_builder *builder,
                                         const struct perhaps_keys *keys);

/* Gives keys with values: value[i], of 'ribbon.value_bits' bits, belongs to key i.  Keys that
 * perhaps_builder_add_many() adds have the value 0.  Returns what that does; and
 * PERHAPS_ERR_UNSUPPORTED if no value can be stored, or PERHAPS_ERR_ARGUMENT for one that is
 * too large, having taken none of these keys. */
PERHAPS_API int perhaps_builder_add_values(perhaps_builder *builder,
                                           const struct perhaps_keys *keys,
                                           const uint32_t *value);

/* Gives keys that are not listed, for the kind "against": the filter will say of each of them,
 * unless it is also listed, that it is certainly not there.  All listed keys must have been
 * given before by perhaps_builder_add_many().  The first call builds a part of the filter from
 * these, which takes its time.  Any number of threads may call it at once.  Returns 0;
 * PERHAPS_ERR_UNSUPPORTED for other kinds; or an error of perhaps_builder_add_many() or
 * perhaps_builder_finish(), after which the builder can only be freed. */
PERHAPS_API int perhaps_builder_add_others(perhaps_builder *builder,
                                           const struct perhaps_keys *keys);

/* Returns 0 and sets *filter to the filter of all keys, after which the builder can only be
 * freed; or sets it to NULL and returns PERHAPS_ERR_ARGUMENT if the builder is finished, the
 * error because of which keys are missing, PERHAPS_ERR_MEMORY, PERHAPS_ERR_IO (errno) of the
 * temporary file, PERHAPS_ERR_VALUES if a key came with two values, PERHAPS_ERR_LIMIT if the
 * kind cannot reach the fpr with so many keys, or PERHAPS_ERR_STOPPED. */
PERHAPS_API int perhaps_builder_finish(perhaps_builder *builder, perhaps_filter **filter);

/* Do the same, and write the filter to 'path' as perhaps_save() and perhaps_save_new() do, with
 * their errors.  A kind that is built once is never held in memory as a whole, unless the path
 * is that of a device or pipe. */
PERHAPS_API int perhaps_builder_save(perhaps_builder *builder, const char *path);
PERHAPS_API int perhaps_builder_save_new(perhaps_builder *builder, const char *path);

/* Returns how many keys were given, repeated ones each time.  Nobody may add meanwhile. */
PERHAPS_API uint64_t perhaps_builder_keys(const perhaps_builder *builder);

/* Returns how many bytes that will be when so many keys were given, repeated ones each time,
 * and of "against" as many others as 'against.others' says, most of which it takes for what
 * they are.  For one thread that gives keys of other kinds it is exact; several threads may
 * put aside an eighth of the memory more or less.  It is 0 for kinds that take keys as they
 * come.  Safe at any time. */
PERHAPS_API uint64_t perhaps_builder_disk_nbytes(const perhaps_builder *builder, uint64_t keys);

/* Returns, when the builder is finished, by what factor the filter was folded because its keys
 * did not fit in the memory: 1 if it could not be made smaller.  Returns 0 if nothing had to be
 * folded. */
PERHAPS_API uint64_t perhaps_builder_folded(const perhaps_builder *builder);

/* Returns the folder of the temporary file, as long as the builder lives and $TMPDIR stays; or
 * NULL for kinds that take keys as they come, and if there is none. */
PERHAPS_API const char *perhaps_builder_folder(const perhaps_builder *builder);

/* Releases the builder, and its keys if it was not finished.  NULL is allowed. */
PERHAPS_API void perhaps_builder_free(perhaps_builder *builder);

/* ---- Values ----------------------------------------------------------------------------- */

/* Sets *value to the value that was stored with a key (perhaps_builder_add_values()); 'value'
 * may not be NULL.  Returns 0; PERHAPS_ERR_NOT_FOUND for a key that was certainly not given;
 * PERHAPS_ERR_UNSUPPORTED for a filter without values; PERHAPS_ERR_DAMAGED for a filter that
 * was opened with 'check', if the value lies on a damaged page; or PERHAPS_ERR_ARGUMENT or
 * PERHAPS_ERR_SECRET as perhaps_add().  Of a key that was given the value is always right; any
 * other key gets a random one with the probability fpr, and otherwise PERHAPS_ERR_NOT_FOUND. */
PERHAPS_API int perhaps_lookup(const perhaps_filter *filter, const void *key, size_t key_nbytes,
                               uint32_t *value);

/* Sets value[i] and present[i] for key i: present[i] is false where perhaps_lookup() returns
 * PERHAPS_ERR_NOT_FOUND, and the value is 0 then.  Neither may be NULL.  Returns 0; or an error
 * of perhaps_lookup() that one of the keys met, and then sets all to 0 and false. */
PERHAPS_API int perhaps_lookup_many(const perhaps_filter *filter,
                                    const struct perhaps_keys *keys, uint32_t *value,
                                    bool *present);

/* ---- A great many keys ------------------------------------------------------------------ */

/* Adds keys to a filter that exists, twice as fast as perhaps_add_many() if the filter is much
 * larger than what the caches and the TLB reach:
 *
 *     error = perhaps_bulk_begin(filter, NULL, &bulk);
 *     while (!error && next_keys(&keys))
 *         error = perhaps_bulk_add(bulk, &keys, &done);
 *     perhaps_bulk_end(bulk);
 *
 * Keys wait until there are many for each region of the filter.  Each region then gets them at
 * once, while other threads see to other regions.  The filter becomes the same as with
 * perhaps_add_many().  Until the end it may lack keys, and nobody else may use it. */
typedef struct perhaps_bulk perhaps_bulk;

/* Begins.  Of 'how', which may be NULL, 'threads' counts, and 'memory_nbytes': what keys take
 * that wait; 0: a sixteenth of the filter's size if it has 2 GiB, but no more than a builder
 * takes, and nothing if it is smaller.
 * Keys wait only for a bitmap or a blocked filter with one line a key that is not shared.  To
 * other filters they are added as they come.  Returns 0; or PERHAPS_ERR_MEMORY, having set
 * *bulk to NULL. */
PERHAPS_API int perhaps_bulk_begin(perhaps_filter *filter,
                                   const struct perhaps_build_options *how,
                                   perhaps_bulk **bulk);

/* Adds keys, with the results of perhaps_add_many(): of keys that wait it is known that they
 * will not be refused.  One thread at a time. */
PERHAPS_API int perhaps_bulk_add(perhaps_bulk *bulk, const struct perhaps_keys *keys,
                                 size_t *done);

/* Adds the keys that wait, and releases 'bulk'.  NULL is allowed. */
PERHAPS_API void perhaps_bulk_end(perhaps_bulk *bulk);

/* ---- What this process may use ----------------------------------------------------------- */

/* Returns how many bytes of memory this process can still take, by the least of
 * - what the machine has available without swapping (MemAvailable of /proc/meminfo);
 * - what its control group leaves, and each group around that: the limit (memory.max and
 *   memory.high, or memory.limit_in_bytes in version 1), without what is used there, but for
 *   the pages of files, which the system takes back;
 * - its resource limits for addresses and for data (ulimit -v, -d), without what it has mapped.
 * 0 if nothing is left.  What cannot be found out limits nothing.  All of it may change at any
 * time, so this is a basis for a choice, not a promise.  Reads a few files in /proc and
 * /sys/fs/cgroup at each call, which takes 50 to 100 microseconds.  Leaves errno alone.  Safe
 * in any thread at any time. */
PERHAPS_API uint64_t perhaps_host_memory_nbytes(void);

/* Returns how many threads are worth starting in this process, at least 1, by the least of
 * - the CPUs on which the calling thread may run (sched_getaffinity());
 * - the share of CPU time that its control group gets, and each group around that (cpu.max, or
 *   cpu.cfs_quota_us in version 1), rounded up;
 * - under a limit of addresses or data (ulimit -v, -d), one thread for each 192 MiB that are
 *   left.
 * The rest is as with perhaps_host_memory_nbytes(). */
PERHAPS_API unsigned perhaps_host_threads(void);

#ifdef __cplusplus
}
#endif
#endif
