/* write.h - filters into bytes that go out one after the other. */
#ifndef WRITE_H
#define WRITE_H

#include "container.h"

/* What is written: a filter; and who gives the bytes of its body, where it has neither body nor
 * parts. */
struct content {
    const perhaps_filter *f;
    perhaps_reader *reader; /* or NULL */
    void *context;
};

/* As perhaps_write(), and errors of the reader. */
int content_write(const struct content *content, const struct perhaps_sink *sink);

#endif
