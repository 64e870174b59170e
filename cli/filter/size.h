/* size.h - for how many keys a new filter is made. */
#ifndef SIZE_H
#define SIZE_H

#include "request.h"

/* Returns the size that the options ask for, without reading any input.  The capacity is 0 if
 * they do not tell. */
struct size size_asked(const struct settings *settings);

/* Returns how large a new filter shall be.  If the options do not tell, counts the keys by
 * reading all inputs.  If these cannot be read twice, returns a size that grows; if the kind
 * cannot grow either, ends the program. */
struct size size_of_inputs(const struct settings *settings);

/* Returns whether a new filter can have just the size that its keys need, though nobody knows
 * their number before the last one: build reads them from a pipe, and nothing says that others
 * come later. */
bool size_is_last(const struct settings *settings);

#endif
