/* strange.h - what the beginning of an input tells: somebody may mean other keys than there
 * are. */
#ifndef STRANGE_H
#define STRANGE_H

#include "lines.h"

/* Returns what is strange about the first block of an input, which is split: a set of bits; 0:
 * nothing.  Only packed formats are, if keys end in NUL. */
uint32_t strange_block(const struct block *block, const struct key_form *form);

/* Returns what to say about a bit, behind the name of the input. */
const char *strange_words(unsigned bit);

#endif
