/* kinds.h - every kind there is, for the registry alone. */
#ifndef KINDS_H
#define KINDS_H

#include "../filter/filter.h"

extern const struct filter_kind kind_blocked;
extern const struct filter_kind kind_bloom;
extern const struct filter_kind kind_chain;
extern const struct filter_kind kind_counting;
extern const struct filter_kind kind_cuckoo;
extern const struct filter_kind kind_elastic;
extern const struct filter_kind kind_window;

#endif
