/* failing_memory.h - malloc() and realloc() that fail when told to; the linker sends the calls
 * of the program here (--wrap, see CMakeLists.txt). */
#ifndef FAILING_MEMORY_H
#define FAILING_MEMORY_H

/* The call of this number from now on, from 1 on, returns NULL; 0: none. */
void fail_memory(unsigned number);

#endif
