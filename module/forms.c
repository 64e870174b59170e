/* forms.c - the tables of our own forms, and all forms. */
#include "own.h"

/* What both of our forms do in the same way. */
#define OWN_MEMBERS                                                                            \
    .encoding = OWN_ENCODING, .add = own_add, .contains = own_contains, .info = own_info,      \
    .items = own_items, .is_complete = own_is_complete, .dump = own_dump,                      \
    .begin_load = own_begin_load, .load = own_load, .read = own_read, .save = own_save,        \
    .memory_nbytes = own_memory_nbytes, .digest = own_digest, .release = own_release,          \
    .copy = own_copy, .defrag = own_defrag

struct form own_bloom = {
    OWN_MEMBERS,        .type_name = "perhapsBF",         .family = FAMILY_BLOOM,
    .layer = own_layer, .is_header = own_is_bloom_header,
};

struct form own_cuckoo = {
    OWN_MEMBERS,        .type_name = "perhapsCF", .family = FAMILY_CUCKOO,
    .count = own_count, .remove = own_remove,     .is_header = own_is_cuckoo_header,
};

struct form *const forms[] = { &own_bloom,    &own_cuckoo,   &redis_bloom,
                               &redis_cuckoo, &valkey_bloom, NULL };
