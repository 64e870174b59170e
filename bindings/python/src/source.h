/* source.h - where the keys of a batch come from: an array in memory, Arrow's data, or
 * anything that can be iterated over.  Each gives one array after the other.  What stands in
 * an array can be read without the GIL. */
#ifndef SOURCE_H
#define SOURCE_H

#include "arrow.h"
#include "keys.h"
#include <perhaps_fast.h>

/* So many keys at most are made at a time of what is no key as it lies there. */
enum { CHUNK_NUMBERS = 4096, CHUNK_KEYS = 1024, CHUNK_TEXT_NBYTES = 65536 };

/* Room for keys that are made, and for the bytes of text. */
struct scratch {
    union {
        uint64_t number[CHUNK_NUMBERS];
        struct perhaps_hashed hashed[CHUNK_KEYS];
        struct perhaps_key each[CHUNK_KEYS];
    };
    char *text; /* NULL: there is none */
    size_t text_nbytes;
};

/* Instead of an error of the library: an item of an array of text is no Unicode. */
enum { BAD_TEXT = 1 };

/* Texts whose letters are made small. */
struct folding {
    struct perhaps_key each[CHUNK_KEYS];
    char text[CHUNK_TEXT_NBYTES];
};

/* Keys in memory.  If 'make' is NULL they lie there as the library takes them: 'keys'. */
struct array {
    size_t count;
    struct perhaps_keys keys;

    /* Makes keys of the items from 'first' on, at most 'count', and sets *made to them.
     * Returns 0 or BAD_TEXT. */
    int (*make)(const struct array *array, size_t first, size_t count, struct scratch *scratch,
                struct perhaps_keys *made);

    const char *items;
    Py_ssize_t stride, item_nbytes;
    bool is_signed;
    bool is_numbers;          /* which have no letters */
    const void *const *heaps; /* Arrow's views: where the long ones lie */
};

struct items; /* Python's objects of one batch of an iterator */

struct source {
    enum key_form form;
    struct array array;
    struct scratch scratch;
    struct folding *folding; /* NULL: not needed yet */

    /* Sets 'array' to the next keys and returns 1; 0 if there are none; -1 with an
     * exception. */
    int (*next)(struct source *source);

    bool done;
    Py_buffer view;
    bool has_view;
    PyObject *owner; /* an iterator, or what holds Arrow's data */
    struct items *batch;
    struct arrow_stream *stream;
    struct arrow_schema schema; /* of the stream, and its newest array */
    struct arrow_array chunk;
    size_t passed; /* how many items of a stream came before */
};

/* Returns a source of the keys, which must live as long; or NULL with an exception set. */
struct source *source_open(PyObject *keys, enum key_form form);
void source_close(struct source *source);

/* How many keys there will be, or about; 0 if nobody knows. */
size_t source_hint(const struct source *source, PyObject *keys);

/* Calls visit() with all keys of the array, some at a time, of which the first has the number
 * 'first', until it returns something else than 0, and returns that, BAD_TEXT or
 * PERHAPS_ERR_MEMORY.  Needs no GIL. */
typedef int visit_function(void *context, const struct perhaps_keys *keys, size_t first);
int source_each(struct source *source, visit_function *visit, void *context);

/* Raises the exception for BAD_TEXT. */
void raise_bad_text(void);

/* Sets the array to integers that lie somewhere. */
void array_of_numbers(struct source *source, const void *items, size_t count, Py_ssize_t nbytes,
                      Py_ssize_t stride, bool is_signed);

/* Sets *make for keys of one length, less the zeros at their ends. */
void array_of_bytes(struct source *source, const void *items, size_t count, Py_ssize_t nbytes,
                    Py_ssize_t stride);

#endif
