/* bloom.h - what every kind with a bit array and union by OR shares. */
#ifndef BLOOM_H
#define BLOOM_H

#include "../filter/filter.h"

/* ORs the other body into f's and estimates how many keys of 'marks' bits each the union
 * holds, from its load. */
void bloom_unite(perhaps_filter *f, const perhaps_filter *other, double marks);

#endif
