/* script.c - sends a script with EVAL, and takes the numbers that it returns.
 *
 * The text goes along each time: it is short beside the keys of a batch, and a server that has
 * restarted, or taken another's place, needs no special treatment. */
#include "script.h"

#include <stdarg.h>
#include <stdio.h>

/* What a script returns first. */
enum { DONE, NO_FILTER, OTHER_FILTER, OTHER_STATE, NO_COUNTS };

/* In front of every script.  Redis before 5 writes after TIME only if effects are replicated,
 * which is the only way since. */
static const char prologue[] =
    "local again, about, counts, id = ARGV[1] == '1', KEYS[1], KEYS[2], ARGV[2]\n"
    "if redis.replicate_commands then redis.replicate_commands() end\n"
    "local there = redis.call('HGET', about, 'id')\n"
    "if not there then return { 1 } end\n"
    "if there ~= id then return { 2 } end\n"
    "local state = redis.call('HGET', about, 'state')\n"
    "local function has_counts()\n"
    "  local of = redis.pcall('HGET', counts, 'of')\n"
    "  return type(of) ~= 'table' and (ARGV[3] == '0' or of == id)\n"
    "end\n";

/* The context of one exchange. */
struct running {
    perhaps_cluster *c;
    struct script *script;
};

void script_put(struct script *script, const char *format, ...)
{
    char *at = script->texts + script->nbytes;
    const size_t room = sizeof script->texts - script->nbytes;
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(at, room, format, arguments);
    va_end(arguments);
    script->argument[script->nargs++] = at;
    script->nbytes += (size_t)n < room ? (size_t)n + 1 : room;
}

static void write_script(const struct request *request, struct resp *out)
{
    const struct running *running = request->context;
    const perhaps_cluster *c = running->c;
    const struct script *script = running->script;
    char counts[sizeof c->counts];
    const size_t nbytes = sizeof prologue + strlen(script->text);
    const char *id = script->id ? script->id : c->about.id;
    handle_name_counts(c, id, counts);
    resp_command(out, 8 + script->nargs, nbytes + sizeof script->texts + 512);
    resp_text(out, "EVAL");
    char *at = resp_room(out, nbytes - 1);
    if (at) {
        memcpy(at, prologue, sizeof prologue - 1);
        memcpy(at + sizeof prologue - 1, script->text, strlen(script->text));
    }
    resp_text(out, "2");
    resp_text(out, c->key);
    resp_text(out, counts);
    resp_text(out, script->again || request->again ? "1" : "0");
    resp_text(out, id);
    resp_text(out, c->about.counted ? "1" : "0");
    for (unsigned i = 0; i < script->nargs; i++)
        resp_text(out, script->argument[i]);
}

/* Notes that nobody knows how many keys there are. */
static int fail_counts(perhaps_cluster *c)
{
    c->about.counts_lost = true;
    return handle_check_counts(c);
}

static int take_numbers(const struct request *request, const struct reply *reply)
{
    const struct running *running = request->context;
    struct nodes *nodes = &running->c->nodes;
    bool sound = reply->type == REDIS_REPLY_ARRAY && reply->count >= 1 &&
                 reply->count <= SCRIPT_NUMBERS + 1;
    switch (sound ? reply->numbers[0] : -1) {
    case DONE:
        for (size_t i = 1; i < reply->count; i++)
            running->script->number[i - 1] = reply->numbers[i];
        return 0;
    case NO_FILTER:
        return nodes_fail(nodes, PERHAPS_ERR_MISSING, "was deleted since it was opened");
    case OTHER_FILTER:
        return nodes_fail(nodes, PERHAPS_ERR_CHANGED,
                          "was deleted and made anew since it was opened");
    case OTHER_STATE:
        return nodes_fail(nodes, PERHAPS_ERR_UNFINISHED,
                          "somebody is deleting it: 'perhaps delete' it if nobody is any more");
    case NO_COUNTS:
        return fail_counts(running->c);
    default:
        return nodes_fail(nodes, PERHAPS_ERR_PROTOCOL, "a server answered strangely to EVAL");
    }
}

/* Servers up to 7.0 and later ones say in different words that the user may run scripts, and
 * not a command of this one. */
static int take_refusal(const struct request *request, const struct reply *reply)
{
    const struct running *running = request->context;
    if (!strstr(reply->text, "user executing the script can't run") &&
        !strstr(reply->text, "ACL failure in script"))
        return 1;
    return nodes_fail(&running->c->nodes, PERHAPS_ERR_REFUSED,
                      "%s: the user may run EVAL, but not each command of the script: see "
                      "doc/CLUSTER.md, Rights",
                      request->link->name);
}

int script_run(perhaps_cluster *c, struct script *script)
{
    struct running running = { c, script };
    struct exchange exchange = { .count = 1,
                                 .write = write_script,
                                 .take = take_numbers,
                                 .take_error = take_refusal,
                                 .context = &running,
                                 .parting = script->parting,
                                 .acknowledged = !script->parting };
    memset(script->number, 0, sizeof script->number);
    return exchange_run(&c->nodes, &exchange);
}
