/* verify.c - the verb verify: looks whether a filter is whole. */
#include <perhaps_file.h>
#include <perhaps_live.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../filter/remote.h"
#include "../filter/target.h"
#include "facts.h"

/* All records of a journal were compared with their checksums when it was opened. */
static void print_sound(const struct target *target, const struct perhaps_verdict *verdict)
{
    struct perhaps_journal journal;
    const struct text pages = counted(verdict->pages, "page");
    if (perhaps_journal_of(target->filter, &journal))
        printf("%s: ok, %s\n", target->path, pages.s);
    else
        printf("%s: ok, %s, and %s in its journal\n", target->path, pages.s,
               counted(journal.records, "record").s);
}

/* Tells of a file whose damage keeps it from being opened. */
static _Noreturn void tell_unopened(const struct settings *settings, const char *name)
{
    const char *problem = why(PERHAPS_ERR_DAMAGED);
    if (settings->json)
        print_facts(settings, json_pack("{s:o, s:b, s:s}", "filter", json_path(name), "ok", 0,
                                        "problem", problem));
    complain("%s: %s", name, problem);
    leave(STATUS_NO);
}

/* Checks every page.  The exit status tells a damaged file from one that cannot be checked. */
static void verify_file(const struct settings *settings)
{
    const struct target *target = target_open_damaged(settings, settings->filter);
    const char *name = target->path;
    if (!target->filter)
        tell_unopened(settings, name);
    struct perhaps_verdict verdict = { 0 };
    int error = perhaps_verify(target->filter, &verdict);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        fail("%s: has no checksums while it is added to in place: check it later, or, if a "
             "crash ended that, have them written with 'perhaps add %s < /dev/null'",
             name, name);
    if (error && error != PERHAPS_ERR_DAMAGED)
        fail("%s: %s", name, why(error));
    if (settings->json)
        print_facts(settings,
                    json_pack("{s:o, s:b, s:I, s:I, s:I, s:o*}", "filter", json_path(name),
                              "ok", !error, "pages", (json_int_t)verdict.pages, "damaged",
                              (json_int_t)verdict.damaged, "first_damaged",
                              (json_int_t)verdict.first_damaged, "journal",
                              fact_journal(settings, target->filter)));
    if (error)
        complain("%s: damaged: %s of %s pages, the first at byte %ju: restore it from a copy "
                 "or build it anew",
                 name, grouped(verdict.damaged).s, grouped(verdict.pages).s,
                 (uintmax_t)verdict.first_damaged);
    else if (!settings->quiet && !settings->json)
        print_sound(target, &verdict);
    leave(error ? STATUS_NO : STATUS_YES);
}

/* Checks all partitions, even of a filter that cannot be opened since some of it is lost. */
static void verify_servers(const struct settings *settings)
{
    const struct target *target = target_on_servers(settings, settings->filter, "verifying");
    const char *name = target->path;
    struct perhaps_cluster_verdict verdict;
    int error = client.verify(remote_handle(target->remote), &verdict);
    const char *problem = client.problem(remote_handle(target->remote));
    if (error != PERHAPS_ERR_LOST)
        remote_settle(target->remote, error, "");
    if (settings->json)
        print_facts(settings,
                    json_pack("{s:o, s:b, s:I, s:I, s:b, s:I, s:f}", "filter", json_path(name),
                              "ok", !error, "partitions", (json_int_t)verdict.partitions,
                              "lost", (json_int_t)verdict.lost, "miscounted",
                              verdict.miscounted, "keys", (json_int_t)verdict.keys,
                              "keys_estimated", (double)verdict.keys_estimated));
    if (verdict.lost)
        complain("%s: %s of %s partitions are lost: %s", name, grouped(verdict.lost).s,
                 grouped(verdict.partitions).s, problem);
    else if (error)
        complain("%s: %s", name, problem);
    else if (!settings->quiet && !settings->json)
        printf("%s: ok, %s; about %s, by a sample of %s\n", name,
               counted(verdict.partitions, "partition").s,
               counted((uint64_t)verdict.keys_estimated, "key").s,
               scaled((double)verdict.sampled_nbytes, "B").s);
    leave(error ? STATUS_NO : STATUS_YES);
}

void verb_verify(const struct settings *settings)
{
    if (is_remote(settings->filter))
        verify_servers(settings);
    else
        verify_file(settings);
}
