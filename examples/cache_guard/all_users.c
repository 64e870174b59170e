/* all_users.c - all users of the database through the guard (guard.h). */
#include "guard.h"
#include "scratch.h"

enum { BATCH = 1000 };

/* Users on their way from the database to the guard. */
struct batch {
    struct guard *guard;
    void (*deal_with)(struct batch *batch, const char *const *emails, size_t count);
    struct emails emails;
    uint64_t nusers, ndenied;
};

static void deal_with(struct batch *batch)
{
    const char *emails[BATCH];
    size_t count = batch->emails.count;
    for (size_t i = 0; i < count; i++)
        emails[i] = emails_at(&batch->emails, i);
    batch->deal_with(batch, emails, count);
    batch->nusers += count;
    emails_clear(&batch->emails);
}

static void meet(void *context, const char *email)
{
    struct batch *batch = context;
    emails_add(&batch->emails, email);
    if (batch->emails.count == BATCH)
        deal_with(batch);
}

static void deal_with_all(struct batch *batch, struct database *database)
{
    database_each(database, meet, batch);
    deal_with(batch);
    emails_free(&batch->emails);
}

static void add(struct batch *batch, const char *const *emails, size_t count)
{
    guard_add_many(batch->guard, emails, count);
}

static void check(struct batch *batch, const char *const *emails, size_t count)
{
    bool perhaps[BATCH];
    guard_perhaps_many(batch->guard, emails, count, perhaps);
    for (size_t i = 0; i < count; i++)
        batch->ndenied += !perhaps[i];
}

void guard_add_all(struct guard *guard, struct database *database)
{
    struct batch batch = { .guard = guard, .deal_with = add };
    deal_with_all(&batch, database);
}

uint64_t guard_count_denied(struct guard *guard, struct database *database, uint64_t *nusers)
{
    struct batch batch = { .guard = guard, .deal_with = check };
    const char *problem;
    uint64_t nunanswered = guard_unanswered(guard, &problem);
    deal_with_all(&batch, database);
    if (guard_unanswered(guard, &problem) > nunanswered) /* "perhaps" then says nothing */
        fail("guard: could not be checked: %s", problem);
    *nusers = batch.nusers;
    return batch.ndenied;
}
