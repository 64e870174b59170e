/* soak.h - what the two parts of the soak share: see soak.c. */
#ifndef SOAK_H
#define SOAK_H

#include "support.h"

/* Returns the seconds since some moment. */
double soak_now(void);

/* Whether SIGTERM or SIGINT came. */
bool soak_stopped(void);

/* Prints what is wrong, and ends the process and its children with status 1; files stay. */
_Noreturn void soak_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Has the child, if there is one, killed when this process complains; 0: none any more. */
void soak_child_is(int pid);

/* Replaces the text of the file NAME.now in this folder, which the conductor prints. */
void soak_tell(const char *folder, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sleeps so many milliseconds, or until a signal. */
void soak_sleep(unsigned ms);

/* Ends 'perhaps dedup --durable' again and again: 'name' is grow or window. */
int soak_dedup(const char *name, const char *program, const char *folder, uint64_t seed,
               double seconds);

/* A process that holds live files open for long, and one that reads them. */
int soak_held(const char *folder, uint64_t seed, double seconds);

#endif
