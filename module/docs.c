/* docs.c - what COMMAND INFO, COMMAND DOCS and COMMAND GETKEYS tell of our commands.
 *
 * Commands and arguments that RedisBloom has, too, are called as there, and have its version in
 * 'since'.  The others have the version of this library. */
#include "docs.h"

#include <string.h>

/* ---- Keys: what is done to them, and where they stand ------------------------------------ */

/* From a word on; 'last' is 0 for one key, or -1 for all words to the end. */
#define KEYS(position, last)                                                                   \
    .begin_search_type = SEARCH_INDEX, .bs.index.pos = (position),                             \
    .find_keys_type = KEYS_RANGE, .fk.range.lastkey = (last), .fk.range.keystep = 1

typedef const RedisModuleCommandKeySpec keys;
static keys asks[] = { { .flags = KEY_RO | KEY_ACCESS, KEYS(1, 0) }, { 0 } };
static keys adds[] = { { .flags = KEY_RW | KEY_INSERT, KEYS(1, 0) }, { 0 } };
static keys changes[] = { { .flags = KEY_RW | KEY_UPDATE, KEYS(1, 0) }, { 0 } };
static keys deletes[] = { { .flags = KEY_RW | KEY_DELETE, KEYS(1, 0) }, { 0 } };
static keys merges[] = {
    { .flags = KEY_RW | KEY_INSERT, KEYS(1, 0) },
    { .flags = KEY_RO | KEY_ACCESS, KEYS(2, -1) },
    { 0 },
};

/* ---- Arguments --------------------------------------------------------------------------- */

#define WORD(name_, type_)   .name = (name_), .type = (type_), .key_spec_index = -1
#define TOKEN(token_, name_) WORD(name_, ARG_PURE_TOKEN), .token = (token_)
#define OPTION(name_, type_) WORD(name_, type_), .flags = ARG_FLAG_OPTIONAL
#define KEY                  .name = "key", .type = ARG_KEY /* of keys[0] */
#define ITEM                 WORD("item", ARG_STRING)
#define ITEMS                WORD("item", ARG_STRING), .flags = ARG_FLAG_MULTIPLE
#define ITEMS_TOKEN          TOKEN("ITEMS", "items")
#define CAPACITY             OPTION("capacity", ARG_INTEGER), .token = "CAPACITY"
#define ERROR                OPTION("error", ARG_DOUBLE), .token = "ERROR"
#define EXPANSION            OPTION("expansion", ARG_INTEGER), .token = "EXPANSION"
#define NOCREATE             OPTION("nocreate", ARG_PURE_TOKEN), .token = "NOCREATE"
#define NONSCALING           OPTION("nonscaling", ARG_PURE_TOKEN), .token = "NONSCALING"
#define WINDOW               OPTION("window", ARG_STRING), .token = "WINDOW"
#define BUCKETSIZE           OPTION("bucketsize", ARG_INTEGER), .token = "BUCKETSIZE"
#define MAXITERATIONS        OPTION("maxiterations", ARG_INTEGER), .token = "MAXITERATIONS"
#define SCALES_TO            OPTION("validatescaleto", ARG_INTEGER), .token = "VALIDATESCALETO"
#define SEED                 OPTION("seed", ARG_STRING), .token = "SEED"
#define TIGHTENING           OPTION("tightening", ARG_DOUBLE), .token = "TIGHTENING"
#define ITERATOR             WORD("iterator", ARG_INTEGER)

typedef const RedisModuleCommandArg args;
static args only_key[] = { { KEY }, { 0 } };
static args one_item[] = { { KEY }, { ITEM }, { 0 } };
static args some_items[] = { { KEY }, { ITEMS }, { 0 } };
static args dump[] = { { KEY }, { ITERATOR }, { 0 } };
static args load[] = { { KEY }, { ITERATOR }, { WORD("data", ARG_STRING) }, { 0 } };
static args load_whole[] = { { KEY }, { WORD("dump", ARG_STRING) }, { 0 } };
static args shrink[] = { { KEY }, { ERROR }, { 0 } };
static args bloom[] = {
    { KEY },
    { WORD("error_rate", ARG_DOUBLE) },
    { WORD("capacity", ARG_INTEGER) },
    { EXPANSION },
    { NONSCALING },
    { WINDOW },
    { 0 },
};
static args bloom_items[] = {
    { KEY },       { CAPACITY }, { ERROR },      { EXPANSION },   { NOCREATE }, { NONSCALING },
    { SCALES_TO }, { SEED },     { TIGHTENING }, { ITEMS_TOKEN }, { ITEMS },    { 0 },
};
static args cuckoo[] = {
    { KEY },        { WORD("capacity", ARG_INTEGER) },
    { BUCKETSIZE }, { MAXITERATIONS },
    { EXPANSION },  { ERROR },
    { 0 },
};
static args cuckoo_items[] = {
    { KEY }, { CAPACITY }, { NOCREATE }, { ITEMS_TOKEN }, { ITEMS }, { 0 },
};
static args info_field[] = {
    { TOKEN("CAPACITY", "capacity") },
    { TOKEN("SIZE", "size") },
    { TOKEN("FILTERS", "filters") },
    { TOKEN("ITEMS", "items") },
    { TOKEN("EXPANSION", "expansion") },
    { TOKEN("ERROR", "error") },
    { TOKEN("ALL", "all") },
    { 0 },
};
static args info_all[] = {
    { KEY },
    { TOKEN("ALL", "all"), .flags = ARG_FLAG_OPTIONAL },
    { 0 },
};
static args info[] = {
    { KEY },
    { OPTION("single_value", ARG_ONEOF), .subargs = info_field },
    { 0 },
};
static args create[] = {
    { KEY },
    { WORD("family", ARG_STRING) },
    { WORD("secret", ARG_STRING) },
    { WORD("capacity", ARG_INTEGER) },
    { WORD("error_rate", ARG_DOUBLE) },
    { WORD("expansion", ARG_INTEGER) },
    { WORD("reserved", ARG_INTEGER) },
    { WORD("window", ARG_INTEGER) },
    { WORD("bucketsize", ARG_INTEGER) },
    { WORD("maxiterations", ARG_INTEGER) },
    { 0 },
};
static args advance[] = { { KEY }, { WORD("milliseconds", ARG_INTEGER) }, { 0 } };
static args hashes[] = {
    { WORD("name", ARG_STRING) },   { WORD("id", ARG_STRING) },
    { WORD("layer", ARG_INTEGER) }, { WORD("geometry", ARG_STRING) },
    { WORD("hashes", ARG_STRING) }, { 0 },
};
static args merge[] = {
    { .name = "destination", .type = ARG_KEY, .key_spec_index = 0 },
    { .name = "source", .type = ARG_KEY, .key_spec_index = 1, .flags = ARG_FLAG_MULTIPLE },
    { 0 },
};

/* ---- Commands ---------------------------------------------------------------------------- */

static const RedisModuleCommandInfoVersion version = {
    .version = 1,
    .sizeof_historyentry = sizeof(RedisModuleCommandHistoryEntry),
    .sizeof_keyspec = sizeof(RedisModuleCommandKeySpec),
    .sizeof_arg = sizeof(RedisModuleCommandArg),
};

#define OURS         "0.2.0"
#define CONSTANT     "O(1)"
#define PER_LAYER    "O(L), where L is the number of filters behind the key"
#define PER_ITEM     "O(N * L), where N is the number of items and L that of filters"
#define PER_HASH     "O(N), where N is the number of hashes"
#define FILTER_BYTES "O(N), where N is the size of the filter in bytes"
#define PIECE_BYTES  "O(N), where N is the size of the piece in bytes"

#define DOC(since_, arity_, keys_, args_, complexity_, summary_)                               \
    {                                                                                          \
        .version = &version, .since = (since_), .arity = (arity_), .key_specs = (keys_),       \
        .args = (args_), .complexity = (complexity_), .summary = (summary_)                    \
    }

static const struct {
    const char *command;
    RedisModuleCommandInfo info;
} docs[] = {
    { "bf.reserve", DOC("1.0.0", -4, adds, bloom, CONSTANT, "Makes an empty Bloom filter") },
    { "bf.add", DOC("1.0.0", 3, adds, one_item, PER_LAYER,
                    "Adds an item to a Bloom filter, which is made if it is missing") },
    { "bf.madd", DOC("1.0.0", -3, adds, some_items, PER_ITEM,
                     "Adds items to a Bloom filter, which is made if it is missing") },
    { "bf.insert",
      DOC("1.0.0", -4, adds, bloom_items, PER_ITEM,
          "Adds items to a Bloom filter, which is made as told if it is missing") },
    { "bf.exists",
      DOC("1.0.0", 3, asks, one_item, PER_LAYER,
          "Tells whether an item is perhaps in a Bloom filter, or certainly not") },
    { "bf.mexists", DOC("1.0.0", -3, asks, some_items, PER_ITEM,
                        "Tells of each item whether it is perhaps in a Bloom filter") },
    { "bf.info", DOC("1.0.0", -2, asks, info, CONSTANT,
                     "Tells the size of a Bloom filter and how full it is") },
    { "bf.card", DOC("2.4.4", 2, asks, only_key, CONSTANT,
                     "Tells how many items were added to a Bloom filter") },
    { "bf.debug", DOC("1.0.0", 2, asks, only_key, PER_LAYER,
                      "Describes the filters that a Bloom filter consists of") },
    { "bf.scandump", DOC("1.0.0", 3, asks, dump, PIECE_BYTES,
                         "Gives a piece of a Bloom filter, and where the next one begins") },
    { "bf.loadchunk",
      DOC("1.0.0", 4, adds, load, PIECE_BYTES, "Takes a piece that BF.SCANDUMP gave") },
    { "bf.load", DOC(OURS, 3, adds, load_whole, FILTER_BYTES,
                     "Makes the Bloom filter that an AOF of valkey-bloom describes") },
    { "bf.shrink", DOC(OURS, -2, changes, shrink, FILTER_BYTES,
                       "Gives back the memory that a Bloom filter does not need") },
    { "bf.merge", DOC(OURS, -3, merges, merge, FILTER_BYTES,
                      "Adds to a Bloom filter what is in others that are copies of one") },

    { "cf.reserve", DOC("1.0.0", -3, adds, cuckoo, CONSTANT, "Makes an empty cuckoo filter") },
    { "cf.add",
      DOC("1.0.0", 3, adds, one_item, PER_LAYER,
          "Adds a copy of an item to a cuckoo filter, which is made if it is missing") },
    { "cf.addnx", DOC("1.0.0", 3, adds, one_item, PER_LAYER,
                      "Adds an item to a cuckoo filter unless it is perhaps there already") },
    { "cf.insert", DOC("1.0.0", -4, adds, cuckoo_items, PER_ITEM,
                       "Adds copies of items to a cuckoo filter") },
    { "cf.insertnx", DOC("1.0.0", -4, adds, cuckoo_items, PER_ITEM,
                         "Adds those items to a cuckoo filter that are certainly not there") },
    { "cf.exists",
      DOC("1.0.0", 3, asks, one_item, PER_LAYER,
          "Tells whether an item is perhaps in a cuckoo filter, or certainly not") },
    { "cf.mexists", DOC("1.0.0", -3, asks, some_items, PER_ITEM,
                        "Tells of each item whether it is perhaps in a cuckoo filter") },
    { "cf.count", DOC("1.0.0", 3, asks, one_item, PER_LAYER,
                      "Tells how many copies of an item are perhaps in a cuckoo filter") },
    { "cf.del", DOC("1.0.0", 3, deletes, one_item, PER_LAYER,
                    "Takes out a copy of an item that was added to a cuckoo filter") },
    { "cf.compact",
      DOC("1.0.0", 2, changes, only_key, FILTER_BYTES,
          "Moves items of a cuckoo filter from its newer filters to older ones") },
    { "cf.info", DOC("1.0.0", -2, asks, info_all, CONSTANT,
                     "Tells the size of a cuckoo filter and how full it is") },
    { "cf.debug",
      DOC("1.0.0", 2, asks, only_key, CONSTANT, "Describes a cuckoo filter in one line") },
    { "cf.scandump", DOC("1.0.0", 3, asks, dump, PIECE_BYTES,
                         "Gives a piece of a cuckoo filter, and where the next one begins") },
    { "cf.loadchunk",
      DOC("1.0.0", 4, adds, load, PIECE_BYTES, "Takes a piece that CF.SCANDUMP gave") },

    { "perhaps.create",
      DOC(OURS, 11, adds, create, CONSTANT, "Makes a filter again that a master has made") },
    { "perhaps.advance",
      DOC(OURS, 3, changes, advance, CONSTANT,
          "Moves a window on, or back, to a time in milliseconds since 1970") },
    { "perhaps.test", DOC(OURS, 6, NULL, hashes, PER_HASH,
                          "Tells of many keys whether they are in a filter of partitions") },
    { "perhaps.set",
      DOC(OURS, 6, NULL, hashes, PER_HASH, "Adds many keys to a filter of partitions") },
};

const RedisModuleCommandInfo *docs_of(const char *command)
{
    for (size_t i = 0; i < sizeof docs / sizeof *docs; i++)
        if (strcmp(command, docs[i].command) == 0)
            return &docs[i].info;
    return NULL;
}
