/* perhaps_build.h - filters of keys that are all known before any is asked for.
 *
 *     perhaps_builder *builder;
 *     perhaps_filter *filter;
 *     int error = perhaps_builder_create(&options, &builder);
 *     while (!error && next_keys(&keys))
 *         error = perhaps_builder_add_many(builder, &keys);
 *     if (!error)
 *         error = perhaps_builder_finish(builder, &filter);
 *     perhaps_builder_free(builder);
 */
#ifndef PERHAPS_BUILD_H
#define PERHAPS_BUILD_H

#include <perhaps.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct perhaps_builder perhaps_builder;

/* Begins a filter that gets all its keys before it is asked, as perhaps_create() with the need
 * PERHAPS_CAN_BUILD: today any kind that can add.  Errors as perhaps_create(), and *builder is
 * NULL then.  One thread at a time may use a builder. */
PERHAPS_API int perhaps_builder_create(const struct perhaps_options *options,
                                       perhaps_builder **builder);

/* Gives the builder keys, in as many calls as one likes.  A key that comes again is added once;
 * where 'needs' has PERHAPS_CAN_REMOVE or PERHAPS_CAN_COUNT every time stores a copy, as
 * perhaps_add() does.  Returns 0, or an error of perhaps_add(): keys are missing then, and all
 * later calls return the same error; or PERHAPS_ERR_ARGUMENT once the builder is finished. */
PERHAPS_API int perhaps_builder_add_many(perhaps_builder *builder,
                                         const struct perhaps_keys *keys);

/* Returns 0 and sets *filter to the filter of all keys, after which the builder can only be
 * freed; or sets it to NULL and returns PERHAPS_ERR_ARGUMENT if the builder is finished, or the
 * error because of which keys are missing. */
PERHAPS_API int perhaps_builder_finish(perhaps_builder *builder, perhaps_filter **filter);

/* Releases the builder, and its keys if it was not finished.  NULL is allowed. */
PERHAPS_API void perhaps_builder_free(perhaps_builder *builder);

#ifdef __cplusplus
}
#endif
#endif
