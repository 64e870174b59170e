/* perhaps_embed.h - for those who build filters into something larger: where the memory comes
 * from and lies, secrets, and filters by the thousand. */
#ifndef PERHAPS_EMBED_H
#define PERHAPS_EMBED_H

#include <perhaps.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where all memory of a filter comes from.  The default takes it from the system: pages that
 * are zero already, and huge pages where there are any. */
struct perhaps_allocator {
    /* Returns NULL, or 'nbytes' bytes with any content at any address.  The library asks for 64
     * bytes more than it needs, aligns them itself and, without 'zeroes', sets them to zero. */
    void *(*allocate)(void *context, size_t nbytes);

    /* Is given what allocate() returned, and the size that allocate() was asked for. */
    void (*release)(void *context, void *memory, size_t nbytes);
    void *context;

    /* All bytes that allocate() returns are zero, as those of calloc() are.  The library then
     * does not write to them, so that a large filter takes no time to make. */
    bool zeroes;
};

/* Makes an empty filter of the kind and the geometry that 'model' had when it was new, and
 * plans nothing: that takes a tenth of the time of perhaps_create() for a small one.
 * 'hashing' is as in the options; NULL takes hash, seed and secret of the model, and without a
 * note it takes that of the model.  'allocator' is as in the options, too.  The filter is
 * 'shared' if the model is.  Returns 0 and sets *filter; or sets it to NULL and returns
 * PERHAPS_ERR_UNSUPPORTED for kinds that a builder makes; PERHAPS_ERR_MEMORY;
 * PERHAPS_ERR_SECRET, PERHAPS_ERR_ARGUMENT or PERHAPS_ERR_IO for the hash, as perhaps_create();
 * or PERHAPS_ERR_LIMIT for a model from a file that no plan can have made. */
PERHAPS_API int perhaps_create_like(const perhaps_filter *model,
                                    const struct perhaps_hashing *hashing,
                                    const struct perhaps_allocator *allocator,
                                    perhaps_filter **filter);

/* Writes the 16 bytes of a sip filter's secret.  The filter cannot be asked without them and
 * never stores them: keep them, apart from the filter.  Returns 0; PERHAPS_ERR_UNSUPPORTED for
 * other hashes; or PERHAPS_ERR_SECRET for a filter that was opened without its secret. */
PERHAPS_API int perhaps_secret(const perhaps_filter *filter, uint8_t secret[16]);

/* Moves the memory of a filter, for allocators that know a better place for it, where memory is
 * less fragmented.  Calls move() for each block that the filter and its parts have taken from
 * their allocator, with the size that allocate() was asked for.  move() returns NULL, and the
 * block stays; or a new block of that size, at any address, to which it has copied all bytes of
 * the old one, and which is released in place of the old one from now on.  It may not use the
 * filter.  The filter itself may move: sets *filter to where it is then.  Nobody may use the
 * filter meanwhile, perhaps_bulk_begin() may not be in effect for it, and views of it
 * (perhaps_fast.h) are void afterwards.
 *
 * Takes the time to copy what is moved; of an elastic filter, if any of its segments move, also
 * the time to go through its directories, for which it allocates a table of a few bytes a block
 * (without that memory, blocks of segments stay).  A filter without an allocator of the
 * caller's stays as it is, and so does one of a live file. */
PERHAPS_API void perhaps_relocate(perhaps_filter **filter,
                                  void *(*move)(void *context, void *memory, size_t nbytes),
                                  void *context);

/* Returns how many bytes of memory the filter takes: all that it and its parts have taken from
 * their allocator and not released, as allocate() was asked for them, and the body if that is
 * mapped from a file.  It is quick: it adds up the parts. */
PERHAPS_API uint64_t perhaps_memory_nbytes(const perhaps_filter *filter);

/* Returns how many bytes of the bodies lie on huge pages, which halve the time of a query.
 * Asks the system, which takes milliseconds in a large process. */
PERHAPS_API uint64_t perhaps_huge_nbytes(const perhaps_filter *filter);

/* Where there is no system to ask (PERHAPS_SYSTEM=none: WebAssembly, bare metal) the program
 * has this function, which fills in bytes that nobody can foretell, and returns 0.  Without it
 * filters are created with a seed of the caller's only, and otherwise PERHAPS_ERR_IO. */
int perhaps_entropy(void *bytes, size_t nbytes);

#ifdef __cplusplus
}
#endif
#endif
