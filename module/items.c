/* items.c - items on their way into filters, and questions. */
#include "items.h"

#include <string.h>

#include "internal.h"
#include "memory.h"
#include "replies.h"
#include "words.h"

/* ---- Add --------------------------------------------------------------------------------- */

bool add_begin(RedisModuleCtx *ctx, struct adding *a, RedisModuleString **words, size_t n)
{
    const size_t nbytes = n * (sizeof *a->items + sizeof *a->changing + 3 * sizeof(bool));
    a->memory = nbytes > sizeof a->room ? memory_take(nbytes) : NULL;
    if (nbytes > sizeof a->room && !a->memory) {
        server.ReplyWithError(ctx, NO_MEMORY);
        return false;
    }
    a->items = a->memory ? a->memory : (void *)a->room;
    a->changing = (RedisModuleString **)(void *)(a->items + n);
    a->was_present = (bool *)(a->changing + n);
    a->is_change = a->was_present + n;
    a->is_refused = a->is_change + n;
    memset(a->is_refused, false, n);
    a->words = words;
    a->n = n;
    a->done = a->changed = 0;
    a->error = 0;
    for (size_t i = 0; i < n; i++)
        a->items[i] = word_item(words[i]);
    return true;
}

void add_end(struct adding *a)
{
    memory_give(a->memory);
}

/* Adds up to 'n' items from number 'at' on, and sets *done to how many were added before the
 * error that it returns. */
static int add_from(const struct opened *o, struct adding *a, size_t at, size_t n,
                    bool is_window, bool unless_present, size_t *done)
{
    if (is_window)
        return own_add_to_window(o->filter, a->items + at, n, a->was_present + at,
                                 a->is_change + at, done);
    int error =
        o->form->add(o->filter, a->items + at, n, unless_present, a->was_present + at, done);
    for (size_t i = at; i < at + *done; i++)
        a->is_change[i] = !a->was_present[i];
    return error;
}

/* Behind a refused item, which may be one of many, it begins anew with one item. */
void add_run(RedisModuleCtx *ctx, struct opened *o, struct adding *a, const struct manner *m)
{
    bool is_window = window_to_present(ctx, o), goes_on = true;
    size_t most = a->n;
    while (a->done < a->n && goes_on) {
        const size_t left = a->n - a->done, n = most < left ? most : left;
        size_t done;
        int error = add_from(o, a, a->done, n, is_window, m->unless_present, &done);
        most = error ? 1 : 2 * n;
        a->done += done;
        if (error) {
            a->error = error;
            a->is_refused[a->done] = true;
            a->is_change[a->done++] = false;
            tally.refusals++;
            goes_on = m->goes_on;
        }
    }
    for (size_t i = 0; i < a->done; i++)
        if (a->is_change[i])
            a->changing[a->changed++] = a->words[i];
    tally.adds += a->changed;
}

int add_single(RedisModuleCtx *ctx, const struct opened *o, const RedisModuleString *word,
               const struct manner *m, bool *was_present)
{
    const struct perhaps_key item = word_item(word);
    size_t done;
    int error = o->form->add(o->filter, &item, 1, m->unless_present, was_present, &done);
    tally.refusals += error != 0;
    if (error || *was_present)
        return error;
    tally.adds++;
    server.ReplicateVerbatim(ctx);
    key_changed(ctx, o, m->event);
    return 0;
}

/* The name of the command is as the user gave it, who may have renamed it everywhere. */
void add_replicate(RedisModuleCtx *ctx, const struct opened *o, const struct adding *a,
                   RedisModuleString **argv, bool insert, bool created, const struct manner *m)
{
    size_t nbytes;
    if (!a->changed)
        return;
    if (insert)
        server.Replicate(ctx, server.StringPtrLen(argv[0], &nbytes), "sccv", o->name,
                         "NOCREATE", "ITEMS", a->changing, a->changed);
    else if (a->changed == a->n && !created)
        server.ReplicateVerbatim(ctx);
    else
        server.Replicate(ctx, server.StringPtrLen(argv[0], &nbytes), "sv", o->name, a->changing,
                         a->changed);
    key_changed(ctx, o, m->event);
}

/* ---- Questions --------------------------------------------------------------------------- */

enum { ASK_STEP = 256 };

/* Replies whether each of these items is there; 'answers' has room for as many. */
static void reply_answers(RedisModuleCtx *ctx, const bool *answers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        reply_bool(ctx, answers[i]);
        tally.positives += answers[i];
    }
}

int ask(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, enum family family, bool many)
{
    struct perhaps_key items[ASK_STEP];
    bool answers[ASK_STEP];
    if (many ? argc < 3 : argc != 3)
        return server.WrongArity(ctx);
    struct opened o = key_open(ctx, argv[1], MODE_READ, family);
    size_t n = (size_t)argc - 2;
    if (o.found == KEY_INCOMPLETE) {
        server.ReplyWithError(ctx, INCOMPLETE);
        key_close(&o);
        return SERVER_OK;
    }
    uint64_t now_ms = o.found == KEY_FOUND ? window_present(&o) : 0;
    if (many)
        server.ReplyWithArray(ctx, (long)n);
    for (size_t at = 0; at < n; at += ASK_STEP) {
        size_t some = n - at < ASK_STEP ? n - at : ASK_STEP;
        if (o.found == KEY_FOUND) {
            for (size_t i = 0; i < some; i++)
                items[i] = word_item(argv[2 + at + i]);
            o.form->contains(o.filter, items, some, now_ms, answers);
        } else {
            memset(answers, false, some);
        }
        reply_answers(ctx, answers, some);
    }
    tally.questions += n;
    key_close(&o);
    return SERVER_OK;
}
