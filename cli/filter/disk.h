/* disk.h - the disk space of a filter that is built once: told before it is used, and refused
 * where it cannot do. */
#ifndef DISK_H
#define DISK_H

#include "target.h"

/* What the keys that the builder puts aside find on the disk, on their way to it. */
struct disk {
    const struct target *target;
    const char *folder; /* of the temporary file; NULL: it does not tell how much is free */
    uint64_t free_nbytes;
    bool shared;    /* the filter will lie on the same file system */
    bool told;      /* the user knows */
    uint64_t nkeys; /* that have come */
};

/* Looks what there is, and says how much the keys will take, if they do not fit in the memory
 * and somebody knows or can estimate how many they are.  Ends the program if it is sure that
 * there is too little. */
void disk_begin(struct disk *disk, const struct target *target);

/* A stage, with a struct disk, behind the one that gives keys to the builder; in order.  Says
 * how many keys the disk has room for when the first ones go there, unless that was told. */
bool disk_watch(void *disk, struct block *block);

/* Ends the program because the temporary file cannot be written or read (errno). */
_Noreturn void disk_fail(const struct target *target);

/* Ends the program because more keys came than the memory has room for without a file. */
_Noreturn void disk_fail_without(const struct target *target);

#endif
