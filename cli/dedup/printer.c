/* printer.c - what dedup prints. */
#include "printer.h"

#include <stdio.h>

/* A stage, with a struct printer: makes the output of a block, and counts its new lines. */
static bool keep_block(void *context, struct block *block)
{
    const struct printer *printer = context;
    const struct settings *s = printer->settings;
    size_t nkept = output_keep(block, s->repeated);
    block->nselected = s->repeated ? block->ndone - nkept : nkept;
    if (s->count || block->source < s->nknown)
        block->output_nbytes = 0;
    return true;
}

/* A stage, with a struct printer: counts the lines of a block and prints its output. */
static bool print_block(void *context, struct block *block)
{
    struct printer *printer = context;
    if (block->source >= printer->settings->nknown) {
        printer->nlines += block->ndone;
        printer->nnew += block->nselected;
    }
    return output_write(&printer->output, block);
}

bool printer_print(struct printer *printer, struct block *block)
{
    return keep_block(printer, block) && print_block(printer, block);
}

size_t printer_stages(struct printer *printer, struct stage *stages, size_t n)
{
    stages[n++] = (struct stage){ .run = keep_block, .context = printer };
    stages[n++] = (struct stage){ .run = print_block, .context = printer, .in_order = true };
    return n;
}

void printer_report(const struct printer *printer)
{
    const struct settings *s = printer->settings;
    const char *selected = s->unique ? "unique" : "new";
    if (s->count)
        printf("lines\t%ju\n%s\t%ju\nrepeated\t%ju\n", (uintmax_t)printer->nlines, selected,
               (uintmax_t)printer->nnew, (uintmax_t)(printer->nlines - printer->nnew));
}
