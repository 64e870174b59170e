/* printer.h - what dedup prints: the lines whose answer is "no", or the others.
 *
 * The stages here come last.  The ones before them have written the answers. */
#ifndef PRINTER_H
#define PRINTER_H

#include "../input/input.h"
#include "../input/output.h"

struct printer {
    const struct settings *settings; /* -c: prints nothing; -d: prints the others */
    struct output output;
    uint64_t nlines, nnew; /* lines that came, and those whose answer is "no" */
};

/* Writes the stages behind the first 'n', and returns how many there are then. */
size_t printer_stages(struct printer *printer, struct stage *stages, size_t n);

/* Counts and prints the lines of a block, as these stages do. */
bool printer_print(struct printer *printer, struct block *block);

/* Prints what -c asks for, if it does. */
void printer_report(const struct printer *printer);

#endif
