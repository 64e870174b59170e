/* progress.h - one line on the terminal that is drawn over and over, and erased at the end. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *doing;     /* "counting", "adding" */
    uint64_t total_nbytes; /* 0: not known */
    bool wanted;
    double started, drawn; /* in seconds_now() */
};

void progress_start(struct progress *progress, const char *doing, uint64_t total_nbytes,
                    bool wanted);

/* Draws, if the work has lasted a second and the last drawing is old enough. */
void progress_show(struct progress *progress, uint64_t nkeys, uint64_t nbytes);

/* The same for work whose bytes are all there is to tell. */
void progress_show_bytes(struct progress *progress, uint64_t nbytes);

/* Takes the line away, if there is one. */
void progress_erase(void);

#endif
