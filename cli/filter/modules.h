/* modules.h - files of functions that are loaded when they are needed first. */
#ifndef MODULES_H
#define MODULES_H

/* Loads a module, whose path is 'file' as seen from the program's folder; or ends the program.
 * 'what' ("the client of servers") is for the message.  For the thread of main(). */
void *module_load(const char *file, const char *what);

/* Finds one of its functions, or ends the program.  'call' is a pointer to a function. */
void module_find(void *module, const char *what, const char *name, void *call);

#endif
