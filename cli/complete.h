/* complete.h - what shells need to complete a command line of ours. */
#ifndef COMPLETE_H
#define COMPLETE_H

#include <stdbool.h>

/* Prints the script for bash, zsh or fish.  false: there is none for such a shell. */
bool complete_print(const char *shell);

#endif
