/* kinds.h - all kinds, for the registry (core/kinds.c) and for kinds with a default base. */
#ifndef KINDS_H
#define KINDS_H

#include "../filter/filter.h"

extern const struct filter_kind kind_against;
extern const struct filter_kind kind_bitmap;
extern const struct filter_kind kind_blocked;
extern const struct filter_kind kind_bloom;
extern const struct filter_kind kind_chain;
extern const struct filter_kind kind_counting;
extern const struct filter_kind kind_cuckoo;
extern const struct filter_kind kind_elastic;
extern const struct filter_kind kind_ribbon;
extern const struct filter_kind kind_strided;
extern const struct filter_kind kind_window;

#endif
