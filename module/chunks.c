/* chunks.c - SCANDUMP and LOADCHUNK of both families: a filter in pieces. */
#include "commands.h"
#include "keys.h"
#include "memory.h"
#include "replies.h"
#include "words.h"

/* What the families reply. */
static const struct texts {
    const char *dump_not_a_number, *not_a_number;
    const char *header, *chunk; /* NULL: what the form says */
    const char *create, *load_event;
} texts[] = {
    [FAMILY_BLOOM] = { "Second argument must be numeric", "ERR Second argument must be numeric",
                       NULL, NULL, NULL, "bf.loadchunk" },
    [FAMILY_CUCKOO] = { "Invalid position", "Invalid position", "Invalid header",
                        "Couldn't load chunk!", "Couldn't create filter!", "cf.loadchunk" },
};

/* ---- SCANDUMP ---------------------------------------------------------------------------- */

/* Replies with a piece; its end has no data, which RedisBloom gives in two ways. */
static void reply_piece(RedisModuleCtx *ctx, const struct dump *piece, enum family family)
{
    server.ReplyWithArray(ctx, 2);
    reply_number(ctx, piece->next);
    if (piece->nbytes || family == FAMILY_BLOOM)
        server.ReplyWithStringBuffer(ctx, piece->nbytes ? piece->bytes : "", piece->nbytes);
    else
        server.ReplyWithNull(ctx);
}

static void reply_dump(RedisModuleCtx *ctx, const struct opened *o, uint64_t position,
                       enum family family)
{
    struct dump piece = { 0 };
    int error = 0;
    if (family == FAMILY_BLOOM || o->form->items(o->filter)) /* an empty CF has no pieces */
        error = o->form->dump(o->filter, position, &piece);
    if (error == PERHAPS_ERR_MISMATCH)
        server.ReplyWithError(ctx,
                              "ERR the filter has changed since this dump began: begin again "
                              "at 0, or use DUMP");
    else if (error == PERHAPS_ERR_MEMORY)
        server.ReplyWithError(ctx, "ERR Insufficient memory");
    else if (error)
        server.ReplyWithError(ctx, family == FAMILY_CUCKOO ? texts[family].not_a_number
                                                           : "ERR invalid position");
    else
        reply_piece(ctx, &piece, family);
    memory_give(piece.memory);
}

static int scandump(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, enum family family)
{
    long long position;
    if (argc != 3)
        return server.WrongArity(ctx);
    const bool cuckoo = family == FAMILY_CUCKOO; /* tells of the position before the key */
    const bool bad = !word_number(argv[2], cuckoo ? 0 : INT64_MIN, INT64_MAX, &position);
    if (bad && cuckoo)
        return server.ReplyWithError(ctx, texts[family].dump_not_a_number);
    struct opened o = key_open(ctx, argv[1], MODE_READ, family);
    if (key_refused(ctx, &o, NOT_FOUND))
        ;
    else if (bad)
        server.ReplyWithError(ctx, texts[family].dump_not_a_number);
    else
        reply_dump(ctx, &o, (uint64_t)position, family);
    key_close(&o);
    return SERVER_OK;
}

int bf_scandump(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return scandump(ctx, argv, argc, FAMILY_BLOOM);
}

int cf_scandump(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return scandump(ctx, argv, argc, FAMILY_CUCKOO);
}

/* ---- LOADCHUNK --------------------------------------------------------------------------- */

/* Makes an incomplete filter of a header, in place of one that is not complete yet.  Returns
 * NULL or the text of an error. */
static const char *begin_incomplete(struct opened *o, const struct perhaps_key *data,
                                    enum family family)
{
    const char *why = NULL;
    for (struct form *const *form = forms; *form; form++) {
        if ((*form)->family != family || !(*form)->is_header(data->bytes, data->nbytes))
            continue;
        void *filter = (*form)->begin_load(data->bytes, data->nbytes, &why);
        if (!filter)
            return texts[family].create ? texts[family].create : why;
        key_set(o, *form, filter);
        return NULL;
    }
    return texts[family].header ? texts[family].header : "ERR received bad data";
}

/* Replicates that a filter begins anew with its header. */
static void replicate_header(RedisModuleCtx *ctx, const struct opened *o,
                             const RedisModuleString *command)
{
    struct dump header;
    size_t nbytes;
    if (!o->form->dump(o->filter, 0, &header)) {
        server.Replicate(ctx, server.StringPtrLen(command, &nbytes), "slb", o->name, 1LL,
                         header.bytes, header.nbytes);
        memory_give(header.memory);
    }
}

/* Pieces that make no filter are of no use, and are gone: on all servers alike, since otherwise
 * a replica would keep those that it has, and would not take others instead.  The key stays an
 * incomplete filter: were it gone, the next add would make another in its place, which denies
 * all that this one had. */
static const char *load_chunk(RedisModuleCtx *ctx, const struct opened *o,
                              RedisModuleString **argv, uint64_t position,
                              const struct perhaps_key *data, enum family family)
{
    const char *why = NULL;
    int error = o->form->load(o->filter, position, data->bytes, data->nbytes, &why);
    if (error == PERHAPS_ERR_DAMAGED) {
        replicate_header(ctx, o, argv[0]);
        key_changed(ctx, o, texts[family].load_event);
    }
    return !error ? NULL : texts[family].chunk ? texts[family].chunk : why;
}

/* The pieces are replicated as they come. */
static int loadchunk(RedisModuleCtx *ctx, RedisModuleString **argv, int argc,
                     enum family family)
{
    long long position;
    const char *error;
    if (argc != 4)
        return server.WrongArity(ctx);
    if (!word_number(argv[2], INT64_MIN, INT64_MAX, &position) ||
        (position == 0 && family == FAMILY_CUCKOO))
        return server.ReplyWithError(ctx, texts[family].not_a_number);
    struct opened o = key_open(ctx, argv[1], MODE_READ | MODE_WRITE, family);
    struct perhaps_key data = word_item(argv[3]);
    if (o.found == KEY_OTHER)
        error = WRONGTYPE;
    else if (o.found == KEY_MISSING && position != 1)
        error = NOT_FOUND;
    else if (position == 1 && o.found != KEY_FOUND)
        error = begin_incomplete(&o, &data, family);
    else if (position == 1 && family == FAMILY_CUCKOO)
        error = EXISTS;
    else if (position <= 1)
        error =
            texts[family].chunk ? texts[family].chunk : "ERR invalid offset - no link found";
    else
        error = load_chunk(ctx, &o, argv, (uint64_t)position, &data, family);
    if (error) {
        server.ReplyWithError(ctx, error);
    } else {
        server.ReplicateVerbatim(ctx);
        key_changed(ctx, &o, texts[family].load_event);
        server.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(&o);
    return SERVER_OK;
}

int bf_loadchunk(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return loadchunk(ctx, argv, argc, FAMILY_BLOOM);
}

int cf_loadchunk(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    return loadchunk(ctx, argv, argc, FAMILY_CUCKOO);
}
