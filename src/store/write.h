/* write.h - writes filters as bytes that go out one after the other. */
#ifndef WRITE_H
#define WRITE_H

#include "container.h"

/* What is written: a filter.  If the filter has neither body nor parts, because somebody else
 * keeps its bytes, 'reader' gives the bytes of its body. */
struct content {
    const perhaps_filter *f;
    perhaps_reader *reader; /* NULL: the filter has its bytes */
    void *context;          /* for the reader */
};

/* Writes to a sink as perhaps_write() does.  Returns 0, or an error of perhaps_write() or
 * of the reader. */
int content_write(const struct content *content, const struct perhaps_sink *sink);

#endif
