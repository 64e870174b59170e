/* arrow.h - Arrow's C data interface: keys from any library that has it, without a copy.
 *
 * The layout of the structs is an ABI, given by https://arrow.apache.org/docs/format/
 * CDataInterface.html and CStreamInterface.html. */
#ifndef ARROW_H
#define ARROW_H

#include "python.h"

struct arrow_schema {
    const char *format, *name, *metadata;
    int64_t flags, nchildren;
    struct arrow_schema **children, *dictionary;
    void (*release)(struct arrow_schema *schema);
    void *private_data;
};

struct arrow_array {
    int64_t length, null_count, offset, nbuffers, nchildren;
    const void **buffers;
    struct arrow_array **children, *dictionary;
    void (*release)(struct arrow_array *array);
    void *private_data;
};

struct arrow_stream {
    int (*get_schema)(struct arrow_stream *stream, struct arrow_schema *schema);
    int (*get_next)(struct arrow_stream *stream, struct arrow_array *array);
    const char *(*get_last_error)(struct arrow_stream *stream);
    void (*release)(struct arrow_stream *stream);
    void *private_data;
};

struct source;

/* Opens a source of an object that has __arrow_c_array__ or __arrow_c_stream__.  Returns 1;
 * 0 if it has neither; or -1 with an exception set. */
int arrow_open(struct source *source, PyObject *keys);

void arrow_close(struct source *source);

#endif
