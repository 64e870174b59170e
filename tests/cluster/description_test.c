/* description_test.c - proves that the description of a filter on servers (a Redis hash) is
 * read as it was written, in any locale, and that a wrong value in any of its fields is
 * refused.  A value that is read wrongly would let a client look for bits where no other client
 * sets them. */
#include "support.h"

#include <hiredis.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "description.h"

enum { ELEMENTS_MOST = 1024 }; /* far more than a description of 5 layers has */

/* Returns what a server would answer to HGETALL after these HSET commands: their arguments
 * behind the second, which is the key. */
static redisReply *answer_to(const struct resp *commands)
{
    redisReader *reader = redisReaderCreate();
    redisReply *all = calloc(1, sizeof *all);
    redisReply *command = NULL;
    all->type = REDIS_REPLY_ARRAY;
    all->element = calloc(ELEMENTS_MOST, sizeof *all->element);
    redisReaderFeed(reader, commands->bytes, commands->nbytes);
    while (redisReaderGetReply(reader, (void **)&command) == REDIS_OK && command) {
        size_t more = command->elements - 2;
        for (size_t i = 0; i < more && all->elements < ELEMENTS_MOST; i++) {
            all->element[all->elements++] = command->element[2 + i];
            command->element[2 + i] = NULL;
        }
        freeReplyObject(command);
    }
    redisReaderFree(reader);
    return all;
}

/* Appends a command that sets one field of the hash. */
static void put(struct resp *out, const char *what, unsigned layer, const char *value)
{
    char field[FIELD_NBYTES];
    description_field(field, what, layer);
    resp_texts(out, (const char *const[]){ "HSET", "key", field, value, NULL });
}

/* Returns a description that can be written, with numbers of any size.  The numbers need not
 * make a filter: reading checks only what each field can hold. */
static struct description random_description(struct rng *rng)
{
    struct description d = { .state = (enum state)(rng_next(rng) % STATES),
                             .created = rng_next(rng),
                             .capacity = 1 + rng_next(rng) % PERHAPS_CAPACITY_MAX,
                             .fpr = 1.0 / (double)(2 + rng_next(rng) % 1000000007),
                             .factor = (unsigned)rng_below(rng, 32769),
                             .preference = (unsigned)rng_below(rng, 3),
                             .hash = (enum perhaps_hash)(rng_next(rng) % 4),
                             .seed = rng_next(rng),
                             .check = rng_next(rng),
                             .counted = rng_next(rng) % 2 };
    for (unsigned i = 0; i < ID_DIGITS; i++)
        d.id[i] = "0123456789abcdef"[rng_next(rng) % 16];
    for (unsigned i = 0, layers = 1 + (unsigned)rng_below(rng, 5); i < layers; i++) {
        struct layer_description *layer = &d.layer[i];
        *layer = (struct layer_description){
            .layout = { .kind = "blocked",
                        .capacity = rng_next(rng),
                        .fpr = 1.0 / (double)(2 + rng_next(rng) % 1000000007),
                        .hash = d.hash,
                        .seed = d.seed,
                        .check = d.check },
            .partitions = rng_next(rng),
            .planned = true,
            .ready = rng_next(rng) % 2,
        };
        for (unsigned k = 0; k < PERHAPS_FIELDS_MAX; k++)
            layer->layout.field[k] = rng_next(rng) >> rng_next(rng) % 64;
    }
    return d;
}

/* Writes a description with all its layers, as the client does it step by step. */
static void write_all(const struct description *d, struct resp *out)
{
    resp_command(out, 2 + description_nargs(d), 0);
    resp_text(out, "HSET");
    resp_text(out, "key");
    description_write(d, out);
    for (unsigned i = 0; i < PERHAPS_LAYERS_MAX && d->layer[i].planned; i++) {
        char text[LAYER_NBYTES];
        description_layer(text, &d->layer[i]);
        if (i > 0)
            put(out, "layer", i, text);
        if (d->layer[i].ready)
            put(out, "ready", i, "1");
    }
}

static void expect_same_layer(const struct layer_description *a,
                              const struct layer_description *b)
{
    expect(a->planned == b->planned && a->ready == b->ready);
    expect(a->partitions == b->partitions);
    if (!a->planned)
        return;
    expect(strcmp(a->layout.kind, b->layout.kind) == 0);
    expect(a->layout.capacity == b->layout.capacity && a->layout.fpr == b->layout.fpr);
    expect(memcmp(a->layout.field, b->layout.field, sizeof a->layout.field) == 0);
    expect(a->layout.hash == b->layout.hash && a->layout.seed == b->layout.seed);
    expect(a->layout.check == b->layout.check);
}

/* Random descriptions come back in every field. */
TEST(test_what_is_written_is_read)
{
    struct rng rng = rng_for("description");
    for (unsigned round = 0; round < 500; round++) {
        struct description d = random_description(&rng), read;
        struct resp out = { 0 };
        write_all(&d, &out);
        redisReply *answer = answer_to(&out);
        expect(description_read(answer, &read) == NULL);
        expect(strcmp(read.id, d.id) == 0 && read.state == d.state);
        expect(read.created == d.created && read.capacity == d.capacity && read.fpr == d.fpr);
        expect(read.factor == d.factor && read.preference == d.preference);
        expect(read.hash == d.hash && read.seed == d.seed && read.check == d.check);
        for (unsigned i = 0; i < PERHAPS_LAYERS_MAX; i++)
            expect_same_layer(&read.layer[i], &d.layer[i]);
        freeReplyObject(answer);
        resp_release(&out);
    }
}

/* The locale of the program must change neither what is written nor what is read. */
TEST(test_with_a_decimal_comma)
{
    struct rng rng = rng_for("description");
    struct description d = random_description(&rng);
    struct resp plain = { 0 }, comma = { 0 };
    write_all(&d, &plain);
    use_decimal_comma();
    write_all(&d, &comma);
    test_what_is_written_is_read(NULL);
    setlocale(LC_ALL, "C");
    expect(plain.nbytes == comma.nbytes && !memcmp(plain.bytes, comma.bytes, comma.nbytes));
    resp_release(&plain);
    resp_release(&comma);
}

/* Each row puts its value in place of the right one; NULL: the field is missing. */
TEST(test_what_is_strange_is_refused)
{
    static const struct {
        const char *field, *value;
    } rows[] = {
        { "layout", "2" },
        { "layout", "" },
        { "id", "0123456789ab0" },
        { "id", "0123456789aB" },
        { "id", "" },
        { "id", NULL },
        { "state", "creatin" },
        { "state", NULL },
        { "capacity", "-1" },
        { "capacity", "12x" },
        { "capacity", " 1" },
        { "capacity", "\t1" },
        { "capacity", "18446744073709551616" }, /* 2^64 */
        { "capacity", NULL },
        { "fpr", "0" },
        { "fpr", "1" },
        { "fpr", "nan" },
        { "fpr", "-0.1" },
        { "fpr", NULL },
        { "factor", "32769" },
        { "preference", "9" },
        { "preference", "x" },
        { "hash", "md5" },
        { "hash", NULL },
        { "seed", "0x1" },
        { "check", "g" },
        { "counted", "2" },
        { "layer.0", NULL },
        { "layer.0", "" },
        { "layer.0",
          "kind=bloom capacity=1 fpr=0.1 partitions=1 fields=1,1,1,0,0,0,0,0,0,0,0,0" },
        { "layer.0",
          "kind=blocked capacity=1 fpr=0.1 partitions=1 fields=1,1,1,0,0,0,0,0,0,0,0" },
        { "layer.0",
          "kind=blocked capacity=1 fpr=0.1 partitions=1 fields=1,1,1,0,0,0,0,0,0,0,0,0," },
        { "layer.0",
          "kind=blocked capacity=1 fpr=0.1 partitions=1 fields=1,1,-1,0,0,0,0,0,0,0,0,0" },
        { "layer.0",
          "kind=blocked capacity=1 fpr=0.1 partitions=-1 fields=1,1,1,0,0,0,0,0,0,0,0,0" },
        { "layer.0",
          "kind=blocked capacity=1 fpr=1.1 partitions=1 fields=1,1,1,0,0,0,0,0,0,0,0,0" },
        { "layer.0", "capacity=1 kind=blocked fpr=0.1 partitions=1 fields=1" },
    };
    struct rng rng = rng_for("description");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct description d = random_description(&rng), read;
        struct resp out = { 0 };
        bool found = false;
        d.counted = true;
        scene("%s=%s", rows[i].field, rows[i].value ? rows[i].value : "(none)");
        write_all(&d, &out);
        redisReply *answer = answer_to(&out);
        for (size_t k = 0; k < answer->elements; k += 2) {
            redisReply *field = answer->element[k], *value = answer->element[k + 1];
            if (strcmp(field->str, rows[i].field) != 0)
                continue;
            found = true;
            if (!rows[i].value) {
                field->str[0] = '?';
                continue;
            }
            free(value->str);
            value->str = strdup(rows[i].value);
            value->len = strlen(rows[i].value);
        }
        expect(found);
        const char *problem = description_read(answer, &read);
        expect(problem && problem != description_unfinished);
        freeReplyObject(answer);
        resp_release(&out);
    }
}

/* Returns the answer of a hash with only these two fields. */
static redisReply *answer_with(const char *first, const char *its_value, const char *second,
                               const char *value)
{
    struct resp out = { 0 };
    resp_texts(&out,
               (const char *const[]){ "HSET", "key", first, its_value, second, value, NULL });
    redisReply *answer = answer_to(&out);
    resp_release(&out);
    return answer;
}

/* A negative count, which a failover can leave, is read as 0; fields of other names and of
 * layers that cannot exist are ignored; counts that are no number, or that HINCRBY may soon
 * fail to change, are lost. */
TEST(test_counts)
{
    static const struct {
        const char *field, *value;
        bool lost;
        long long count; /* of layer 1 */
    } rows[] = {
        { "keys.1", "4611686018427387903", false, COUNT_MOST },
        { "keys.1", "4611686018427387904", true, 0 },
        { "keys.1", "-4611686018427387904", true, 0 },
        { "keys.1", "18446744073709551616", true, 0 },
        { "keys.1", "0", false, 0 },
        { "keys.1", "-3", false, -3 },
        { "keys.1", "--3", true, 0 },
        { "keys.64", "5", false, 0 },
        { "other", "x", false, 0 },
        { "keys.1", "x", true, 0 },
        { "keys.1", "", true, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct description d = { 0 };
        redisReply *answer = answer_with("keys.0", "17", rows[i].field, rows[i].value);
        scene("%s=%s", rows[i].field, rows[i].value);
        counts_read(answer, &d);
        expect(d.counts_lost == rows[i].lost && d.layer[0].count == 17);
        expect(d.layer[1].count == rows[i].count);
        expect(layer_keys(&d.layer[1]) == (rows[i].count > 0 ? (uint64_t)rows[i].count : 0));
        freeReplyObject(answer);
    }
}

/* Counts that somebody has removed have no marker when they come back.  Those of filters of
 * earlier versions never have one; and neither may be something else than a hash. */
TEST(test_marker_of_counts)
{
    struct description d = { .id = "0123456789ab", .counted = true };
    redisReply *marked = answer_with("keys.0", "17", counts_marker, d.id);
    redisReply *other = answer_with("keys.0", "17", counts_marker, "0123456789ac");
    redisReply *bare = answer_with("keys.0", "17", "keys.1", "3");
    redisReply empty = { .type = REDIS_REPLY_ARRAY }, error = { .type = REDIS_REPLY_ERROR };
    const struct {
        const redisReply *reply;
        bool lost, lost_of_earlier;
    } rows[] = { { marked, false, false },
                 { other, true, false },
                 { bare, true, false },
                 { &empty, true, false },
                 { &error, true, true } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int counted = 0; counted <= 1; counted++) {
            d.counted = counted;
            counts_read(rows[i].reply, &d);
            scene("row %zu, counted %d", i, counted);
            expect(d.counts_lost == (counted ? rows[i].lost : rows[i].lost_of_earlier));
        }
    freeReplyObject(marked);
    freeReplyObject(other);
    freeReplyObject(bare);
}

/* A hash with few fields is an unfinished filter, and no damage: one client was making the
 * filter when another client deleted it. */
TEST(test_unfinished)
{
    struct description read;
    redisReply *answer = answer_with("state", "ready", "ready.0", "1");
    expect(description_read(answer, &read) == description_unfinished);
    freeReplyObject(answer);
}
