/* failing_memory.h - malloc() and realloc() that fail when told to; the linker sends the calls
 * of the program here (--wrap, see CMakeLists.txt). */
#ifndef FAILING_MEMORY_H
#define FAILING_MEMORY_H

/* Makes the call of this number return NULL, counted from 1 on from now on; 0: no call does. */
void fail_memory(unsigned number);

#endif
