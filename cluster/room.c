/* room.c - reserves room for keys, for all handles of a process together. */
#include "room.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch.h"
#include "script.h"

/* How many keys more than it needs a process reserves, if it has reserved a moment before: with
 * a few keys a call the more, the faster they come, up to AHEAD_MOST; with batches AHEAD_TIMES
 * as many, or at first those that come in the same call.  At most one in FEW_SHARE and
 * MANY_SHARE of those for which there is room. */
enum {
    AHEAD_MOST = 256,
    AHEAD_TIMES = 4,
    FEW_SHARE = 64,
    MANY_SHARE = 4,
    SOON_MS = 1000,
    IDLE_MS = 2000
};

/* How long a reservation counts as alive: that for a few keys, and that for a batch, which may
 * be tried again for a long time.  If it lasts longer, its keys are counted twice at worst.  A
 * process itself uses what it holds for a little less than that. */
enum { FEW_ALIVE_MS = 1000, MANY_ALIVE_MS = 10000, MARGIN_MS = 100 };

/* How often a handle that waits for another one calls stopped(); how often one asks for room
 * whose connections break. */
enum { ASK_MS = 100, TRIES_MOST = 8 };

/* A layer, as the process has reserved room in it.  What the servers have in held.I.OWNER is
 * free + taken + used.  The lock of the reservation is for all members; 'doubted' and
 * those from 'sequence' on are changed only by the handle that has made it busy. */
struct room_layer {
    long long free;  /* reserved, and taken by no handle */
    long long taken; /* by handles, for keys that are under way */
    long long used;  /* added since the servers were told last */
    long long lost;  /* of that, what nobody knows of */
    long long room;  /* how much more there was when they told last */
    unsigned ahead;
    bool soon;           /* it was reserved twice within a moment */
    bool doubted;        /* nobody knows whether the last request was done */
    int64_t reserved_ms; /* when room was reserved last */
    int64_t ends_ms;     /* until then 'free' may be taken */
    uint64_t sequence;   /* of the request that was sent last */
    long long sent_used, sent_lost, sent_need, sent_ahead;
};

/* What a process has reserved of one filter. */
struct reservation {
    struct reservation *next;
    pid_t process;
    char *where;
    char id[ID_DIGITS + 1], owner[2 * 8 + 1];
    unsigned nhandles;
    unsigned nlayers;
    int64_t added_ms;
    bool busy; /* a handle is asking the servers */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* not busy any more, or less is taken */
    struct room_layer layer[PERHAPS_LAYERS_MAX];
};

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct reservation *all;

/* ---- The script ------------------------------------------------------------------------ */

/* It takes: layer, owner, sequence, used, need, ahead, share, limit, milliseconds alive, lost,
 * the most milliseconds that any reservation may be alive.
 * It returns: total, granted, others, abandoned, newer.
 *
 * Sent again, it finds by the sequence that it was done; or by there being nothing of the
 * owner: the reservation was given back, or was the first one, and then it is not made.  If
 * there is not enough room, if none is needed, and for a process that is new, it counts what
 * others hold; what has ended goes to 'abandoned', and so does what ends too far ahead, since
 * the clock was set back.  All is set by one command, which a server
 * that is full may refuse as a whole. */
static const char reserve_text[] =
    "if state ~= 'ready' then return { 3 } end\n"
    "if not has_counts() then return { 4 } end\n"
    "local layer, sequence = ARGV[4], ARGV[6]\n"
    "local owner = 'held.' .. layer .. '.' .. ARGV[5]\n"
    "local used, need, ahead = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])\n"
    "local share, limit, alive = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])\n"
    "local lost, alive_most = tonumber(ARGV[13]), tonumber(ARGV[14])\n"
    "local time = redis.call('TIME')\n"
    "local now = time[1] * 1000 + math.floor(time[2] / 1000)\n"
    "local function read(text)\n"
    "  return string.match(text or '', '^(%d+) (%d+) (%d+)$')\n"
    "end\n"
    "local function abandoned()\n"
    "  return tonumber(redis.call('HGET', counts, 'abandoned.' .. layer) or '0') or 0\n"
    "end\n"
    "local total = tonumber(redis.call('HGET', counts, 'keys.' .. layer) or '0')\n"
    "if not total or math.abs(total) > 2 ^ 52 then return { 4 } end\n"
    "local there = redis.call('HGET', counts, owner)\n"
    "local told, held = read(there)\n"
    "local granted = tonumber(held or '0')\n"
    "if not (again and (not there or told == sequence)) then\n"
    "  total = total + used - granted\n"
    "  local room = math.max(0, limit - total)\n"
    "  granted = math.min(need, room)\n"
    "  granted = granted + math.min(ahead, math.floor((room - granted) / share))\n"
    "  total = total + granted\n"
    "  local set = { 'HSET', counts, 'keys.' .. layer, string.format('%.0f', total) }\n"
    "  if granted > 0 then\n"
    "    table.insert(set, owner)\n"
    "    table.insert(set, string.format('%s %.0f %.0f', sequence, granted, now + alive))\n"
    "  end\n"
    "  if lost > 0 then\n"
    "    table.insert(set, 'abandoned.' .. layer)\n"
    "    table.insert(set, string.format('%.0f', abandoned() + lost))\n"
    "  end\n"
    "  local done = redis.pcall(unpack(set))\n"
    "  if type(done) == 'table' and done.err then return done end\n"
    "  if granted == 0 and there then redis.call('HDEL', counts, owner) end\n"
    "end\n"
    "local others = 0\n"
    "if granted < need or need == 0 or sequence == '1' then\n"
    "  local all = redis.call('HGETALL', counts)\n"
    "  for i = 1, #all, 2 do\n"
    "    local of = string.match(all[i], '^held%.(%d+)%.')\n"
    "    if of and all[i] ~= owner then\n"
    "      local _, n, ends = read(all[i + 1])\n"
    "      local left = n and ends - now or 0\n"
    "      if left > 0 and left <= alive_most then\n"
    "        if of == layer then others = others + n end\n"
    "      elseif redis.call('HDEL', counts, all[i]) == 1 and n then\n"
    "        redis.call('HINCRBY', counts, 'abandoned.' .. of, n)\n"
    "      end\n"
    "    end\n"
    "  end\n"
    "end\n"
    "local newer = redis.call('HEXISTS', about, 'ready.' .. (layer + 1))\n"
    "return { 0, total, granted, others, abandoned(), newer }\n";

enum { TOTAL, GRANTED, OTHERS, ABANDONED, NEWER };

/* Writes the script of the request that was noted in the layer. */
static void write_reserve(const perhaps_cluster *c, unsigned number, struct script *script)
{
    const struct room_layer *layer = &c->room->layer[number];
    bool many = layer->sent_need > FEW_KEYS;
    *script = (struct script){ .text = reserve_text, .again = layer->doubted };
    script->parting = c->parting && number + 1 == c->nlayers && !layer->doubted &&
                      !c->nodes.acknowledge; /* it closes the connection */
    script_put(script, "%u", number);
    script_put(script, "%s", c->room->owner);
    script_put(script, "%ju", (uintmax_t)layer->sequence);
    script_put(script, "%lld", layer->sent_used);
    script_put(script, "%lld", layer->sent_need);
    script_put(script, "%lld", layer->sent_ahead);
    script_put(script, "%d", many ? MANY_SHARE : FEW_SHARE);
    script_put(script, "%ju", (uintmax_t)c->layer[number].key_limit);
    script_put(script, "%d", many ? MANY_ALIVE_MS : FEW_ALIVE_MS);
    script_put(script, "%lld", layer->sent_lost);
    script_put(script, "%d", 2 * MANY_ALIVE_MS);
}

/* Takes over what the script has told. */
static void take_reserve(struct room_layer *layer, const struct script *script, int64_t sent_ms,
                         uint64_t limit)
{
    bool many = layer->sent_need > FEW_KEYS;
    layer->used -= layer->sent_used;
    layer->lost -= layer->sent_lost;
    layer->free = script->number[GRANTED] - layer->taken - layer->used;
    if (layer->free < 0) /* it had ended, and the room is gone */
        layer->free = 0;
    layer->room = (long long)limit - script->number[TOTAL];
    layer->ends_ms = sent_ms + (many ? MANY_ALIVE_MS : FEW_ALIVE_MS) - MARGIN_MS;
}

/* Returns whether the numbers can be true: the total has all the others in it.  A request that
 * is sent again may tell what an earlier one was given. */
static bool is_sound_layer(const struct room_layer *layer, const struct script *script)
{
    const long long *n = script->number;
    const long long most = layer->sent_need + layer->sent_ahead;
    return n[TOTAL] <= COUNT_MOST && n[GRANTED] >= 0 &&
           (layer->doubted || n[GRANTED] <= most) && n[OTHERS] >= 0 && n[ABANDONED] >= 0 &&
           n[GRANTED] <= n[TOTAL] && n[OTHERS] <= n[TOTAL] - n[GRANTED] &&
           n[ABANDONED] <= n[TOTAL] - n[GRANTED] - n[OTHERS];
}

/* Sends the request that is noted in the layer.  The caller has made the reservation busy, so
 * nobody else changes what was sent. */
static int send_reserve(perhaps_cluster *c, unsigned number, struct script *script)
{
    struct reservation *room = c->room;
    struct room_layer *layer = &room->layer[number];
    const int64_t sent_ms = now_ms();
    pthread_mutex_lock(&room->lock);
    write_reserve(c, number, script);
    pthread_mutex_unlock(&room->lock);
    int error = script_run(c, script);
    if (!error && !script->parting && !is_sound_layer(layer, script)) {
        c->about.counts_lost = true;
        error = handle_check_counts(c);
    }
    pthread_mutex_lock(&room->lock);
    if (!error)
        take_reserve(layer, script, sent_ms, c->layer[number].key_limit);
    layer->doubted = error != 0;
    pthread_mutex_unlock(&room->lock);
    return error;
}

/* ---- Handles of one process ------------------------------------------------------------ */

/* Waits until no other handle asks the servers, and makes the reservation busy. */
static int begin_asking(perhaps_cluster *c)
{
    struct reservation *room = c->room;
    int error = 0;
    pthread_mutex_lock(&room->lock);
    while (room->busy && !error) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += ASK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&room->changed, &room->lock, &until) == ETIMEDOUT)
            error = round_check_stopped(&c->nodes);
    }
    room->busy |= !error;
    pthread_mutex_unlock(&room->lock);
    return error;
}

static void end_asking(perhaps_cluster *c)
{
    struct reservation *room = c->room;
    pthread_mutex_lock(&room->lock);
    room->busy = false;
    pthread_cond_broadcast(&room->changed);
    pthread_mutex_unlock(&room->lock);
}

/* Sends a new request: to hold what is taken and n keys more, and 'ahead'. */
static int send_new(perhaps_cluster *c, unsigned number, long long n, unsigned ahead,
                    struct script *script)
{
    struct room_layer *layer = &c->room->layer[number];
    pthread_mutex_lock(&c->room->lock);
    layer->sequence++;
    layer->sent_used = layer->used;
    layer->sent_lost = layer->lost;
    layer->sent_need = layer->taken + n;
    layer->sent_ahead = ahead;
    pthread_mutex_unlock(&c->room->lock);
    return send_reserve(c, number, script);
}

/* Reserves room, also after a request of which nobody knows whether it was done.  One that was
 * sent twice may tell of less than was asked for although there is room: then it asks again. */
static int reserve_keys(perhaps_cluster *c, unsigned number, long long n, unsigned ahead,
                        struct script *script)
{
    const struct room_layer *layer = &c->room->layer[number];
    int error = layer->doubted ? send_reserve(c, number, script) : 0;
    for (unsigned tries = 0; !error && tries < TRIES_MOST; tries++) {
        error = send_new(c, number, n, ahead, script);
        if (error || script->parting || script->number[GRANTED] >= layer->sent_need ||
            script->number[TOTAL] >= (long long)c->layer[number].key_limit)
            return error;
    }
    return error ? error
                 : nodes_fail(&c->nodes, PERHAPS_ERR_PROTOCOL,
                              "a server gives no room for keys, and says that there is some");
}

/* Returns how many keys more than these n the process shall reserve now, if 'more' come behind
 * them in the same call. */
static unsigned reserve_ahead(struct room_layer *layer, size_t n, size_t more)
{
    const unsigned most = AHEAD_TIMES * (unsigned)n;
    int64_t now = now_ms();
    layer->soon = layer->reserved_ms && now - layer->reserved_ms < SOON_MS;
    layer->reserved_ms = now;
    layer->ahead = layer->soon ? 2 * layer->ahead + 1 : 0;
    if (layer->ahead > AHEAD_MOST)
        layer->ahead = AHEAD_MOST;
    if (n > FEW_KEYS && !layer->soon)
        return more < most ? (unsigned)more : most;
    return n > FEW_KEYS ? most : layer->ahead;
}

/* Takes from what is free.  Returns how many. */
static size_t take_free(struct room_layer *layer, size_t n)
{
    long long most = now_ms() < layer->ends_ms ? layer->free : 0;
    size_t taken = most < (long long)n ? (size_t)most : n;
    layer->free -= (long long)taken;
    layer->taken += (long long)taken;
    return taken;
}

/* Fills in what the servers have told. */
static void tell_layer(const perhaps_cluster *c, unsigned number, const struct script *script,
                       struct room_told *told)
{
    const struct room_layer *layer = &c->room->layer[number];
    told->asked = true;
    told->total = script->number[TOTAL];
    told->others = script->number[OTHERS];
    told->held = told->others + script->number[GRANTED];
    told->siblings = layer->taken;
    told->abandoned = script->number[ABANDONED];
    told->newer = script->number[NEWER] != 0;
}

int room_take(perhaps_cluster *c, unsigned number, size_t n, struct room_told *told)
{
    struct reservation *room = c->room;
    struct room_layer *layer = &room->layer[number];
    struct script script;
    *told = (struct room_told){ 0 };
    int error = begin_asking(c);
    if (error)
        return error;
    pthread_mutex_lock(&room->lock);
    const bool enough = now_ms() < layer->ends_ms && layer->free >= (long long)n;
    const unsigned ahead = enough ? 0 : reserve_ahead(layer, n, c->more);
    pthread_mutex_unlock(&room->lock);
    if (!enough)
        error = reserve_keys(c, number, (long long)n, ahead, &script);
    pthread_mutex_lock(&room->lock);
    if (!error && !enough)
        tell_layer(c, number, &script, told);
    if (!error)
        told->taken = take_free(layer, n);
    pthread_mutex_unlock(&room->lock);
    end_asking(c);
    return error;
}

void room_use(perhaps_cluster *c, unsigned number, size_t taken, size_t used, size_t doubted)
{
    struct reservation *room = c->room;
    struct room_layer *layer = &room->layer[number];
    pthread_mutex_lock(&room->lock);
    layer->taken -= (long long)taken;
    layer->used += (long long)used;
    layer->lost += (long long)doubted;
    layer->free += (long long)taken - (long long)used;
    room->added_ms = now_ms();
    pthread_cond_broadcast(&room->changed);
    pthread_mutex_unlock(&room->lock);
}

/* Returns how much may stay free. */
static long long free_most(const struct room_layer *layer)
{
    long long share = layer->room / FEW_SHARE;
    return share < 0 ? 0 : share < AHEAD_MOST ? share : AHEAD_MOST;
}

int room_settle(perhaps_cluster *c, unsigned number, bool all_of_it)
{
    struct reservation *room = c->room;
    struct room_layer *layer = &room->layer[number];
    struct script script;
    pthread_mutex_lock(&room->lock);
    long long most = all_of_it ? 0 : free_most(layer);
    const bool goes_on = !all_of_it && layer->soon && layer->room > BATCH_KEYS;
    const bool needed =
        layer->doubted || layer->free > most || layer->used > (all_of_it ? 0 : AHEAD_MOST);
    if (layer->free < most)
        most = layer->free;
    pthread_mutex_unlock(&room->lock);
    if (!needed || goes_on)
        return 0;
    int error = begin_asking(c);
    if (error)
        return error;
    error = reserve_keys(c, number, 0, (unsigned)most, &script);
    end_asking(c);
    return error;
}

int room_look(perhaps_cluster *c, unsigned number, struct room_told *told)
{
    struct script script;
    *told = (struct room_told){ 0 };
    int error = begin_asking(c);
    if (error)
        return error;
    error = reserve_keys(c, number, 0, 0, &script);
    pthread_mutex_lock(&c->room->lock);
    if (!error)
        tell_layer(c, number, &script, told);
    pthread_mutex_unlock(&c->room->lock);
    end_asking(c);
    return error;
}

void room_give_back(perhaps_cluster *c)
{
    struct aside aside;
    if (!c->room)
        return;
    handle_begin_aside(c, &aside);
    int error = 0;
    for (unsigned i = 0; i < c->nlayers && !error; i++)
        error = room_settle(c, i, true);
    handle_end_aside(c, &aside);
}

void room_give_back_idle(perhaps_cluster *c)
{
    if (!c->room)
        return;
    pthread_mutex_lock(&c->room->lock);
    const int64_t added_ms = c->room->added_ms;
    pthread_mutex_unlock(&c->room->lock);
    if (added_ms && now_ms() - added_ms > IDLE_MS)
        room_give_back(c);
}

unsigned room_layers(perhaps_cluster *c, unsigned nlayers)
{
    struct reservation *room = c->room;
    pthread_mutex_lock(&room->lock);
    if (nlayers > room->nlayers)
        room->nlayers = nlayers;
    nlayers = room->nlayers;
    pthread_mutex_unlock(&room->lock);
    return nlayers;
}

/* ---- Joining --------------------------------------------------------------------------- */

static void release_room(struct reservation *room)
{
    pthread_cond_destroy(&room->changed);
    pthread_mutex_destroy(&room->lock);
    free(room->where);
    free(room);
}

/* Where the filter is: the same ID may be on other servers, to which somebody has copied it. */
static char *where(const perhaps_cluster *c)
{
    char *text;
    return asprintf(&text, "%s %u", c->shown, c->address.database) < 0 ? NULL : text;
}

static struct reservation *new_reservation(const perhaps_cluster *c)
{
    struct reservation *room = calloc(1, sizeof *room);
    pthread_condattr_t attributes;
    uint8_t random[8];
    if (!room)
        return NULL;
    pthread_mutex_init(&room->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&room->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    room->process = getpid();
    room->where = where(c);
    memcpy(room->id, c->about.id, sizeof room->id);
    if (!room->where || getentropy(random, sizeof random) != 0) {
        release_room(room);
        return NULL;
    }
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(room->owner + 2 * i, 3, "%02x", random[i]);
    return room;
}

/* Finds the reservation of this process for the filter that is open.  all_lock is held. */
static struct reservation *find_room(const perhaps_cluster *c)
{
    char *here = where(c);
    struct reservation *room = here ? all : NULL;
    while (room && (room->process != getpid() || strcmp(room->id, c->about.id) != 0 ||
                    strcmp(room->where, here) != 0))
        room = room->next;
    free(here);
    return room;
}

int room_join(perhaps_cluster *c)
{
    if (c->room)
        return 0;
    pthread_mutex_lock(&all_lock);
    struct reservation *room = find_room(c);
    if (!room && (room = new_reservation(c))) {
        room->next = all;
        all = room;
    }
    if (room)
        room->nhandles++;
    pthread_mutex_unlock(&all_lock);
    c->room = room;
    return room ? 0 : PERHAPS_ERR_MEMORY;
}

/* A handle that joins while the last one gives back begins a reservation of its own. */
void room_leave(perhaps_cluster *c)
{
    struct reservation *room = c->room, **at = &all;
    if (!room)
        return;
    pthread_mutex_lock(&all_lock);
    const bool last = --room->nhandles == 0;
    while (last && *at != room)
        at = &(*at)->next;
    if (last)
        *at = room->next;
    pthread_mutex_unlock(&all_lock);
    if (last) {
        room_give_back(c);
        release_room(room);
    }
    c->room = NULL;
}
