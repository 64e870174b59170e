/* forms.c - the tables of our own forms, and all forms. */
#include "own.h"

struct form own_bloom = {
    .type_name = "perhapsBF",
    .encoding = OWN_ENCODING,
    .family = FAMILY_BLOOM,
    .add = own_add,
    .contains = own_contains,
    .info = own_info,
    .layer = own_layer,
    .items = own_items,
    .is_complete = own_is_complete,
    .dump = own_dump,
    .is_header = own_is_bloom_header,
    .begin_load = own_begin_load,
    .load = own_load,
    .read = own_read,
    .save = own_save,
    .memory_nbytes = own_memory_nbytes,
    .digest = own_digest,
    .release = own_release,
    .copy = own_copy,
    .defrag = own_defrag,
};

struct form own_cuckoo = {
    .type_name = "perhapsCF",
    .encoding = OWN_ENCODING,
    .family = FAMILY_CUCKOO,
    .add = own_add,
    .contains = own_contains,
    .count = own_count,
    .remove = own_remove,
    .info = own_info,
    .items = own_items,
    .is_complete = own_is_complete,
    .dump = own_dump,
    .is_header = own_is_cuckoo_header,
    .begin_load = own_begin_load,
    .load = own_load,
    .read = own_read,
    .save = own_save,
    .memory_nbytes = own_memory_nbytes,
    .digest = own_digest,
    .release = own_release,
    .copy = own_copy,
    .defrag = own_defrag,
};

struct form *const forms[] = { &own_bloom, &own_cuckoo, &redis_bloom, &redis_cuckoo, NULL };
