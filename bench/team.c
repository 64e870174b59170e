/* team.c - threads that do the same at the same time.
 *
 * Between jobs they sleep; to the start of what is timed they come spinning, since to be woken
 * up takes longer than some pieces do. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bench.h"

struct member {
    struct team *team;
    size_t number;
    pthread_t thread;
    double start, end;
};

struct team {
    size_t nthreads;
    pthread_barrier_t begin, finish;
    atomic_size_t ready; /* grows by nthreads with each job */
    size_t jobs;
    team_job *prepare, *timed; /* NULL: go home */
    void *context;
    struct member members[];
};

/* More threads than processors would spin in vain: let the others run. */
static void wait_for_all(struct team *team, size_t all)
{
    enum { PATIENCE = 1 << 14 };
    atomic_fetch_add(&team->ready, 1);
    for (unsigned turns = 0; atomic_load(&team->ready) < all; turns++)
        if (turns >= PATIENCE)
            sched_yield();
}

/* What each does in a job. */
static void take_part(struct member *member)
{
    struct team *team = member->team;
    team->prepare(team->context, member->number);
    wait_for_all(team, team->jobs * team->nthreads);
    member->start = seconds_now();
    team->timed(team->context, member->number);
    member->end = seconds_now();
    pthread_barrier_wait(&team->finish);
}

static void *member_main(void *argument)
{
    struct member *member = argument;
    for (;;) {
        pthread_barrier_wait(&member->team->begin);
        if (!member->team->timed)
            return NULL;
        take_part(member);
    }
}

double team_run(struct team *team, team_job *prepare, team_job *timed, void *context)
{
    team->jobs++;
    team->prepare = prepare;
    team->timed = timed;
    team->context = context;
    pthread_barrier_wait(&team->begin);
    take_part(&team->members[0]);
    double start = team->members[0].start, end = team->members[0].end;
    for (size_t i = 1; i < team->nthreads; i++) {
        start = team->members[i].start < start ? team->members[i].start : start;
        end = team->members[i].end > end ? team->members[i].end : end;
    }
    return end - start;
}

static struct team *team_alone(size_t nthreads)
{
    struct team *team = calloc(1, sizeof *team + nthreads * sizeof *team->members);
    if (!team)
        return NULL;
    team->nthreads = nthreads;
    pthread_barrier_init(&team->begin, NULL, (unsigned)nthreads);
    pthread_barrier_init(&team->finish, NULL, (unsigned)nthreads);
    team->members[0].team = team;
    return team;
}

/* The threads that there are wait for one that there is not: the barriers stay as they are and
 * the team is never used. */
struct team *team_open(size_t nthreads)
{
    struct team *team = team_alone(nthreads);
    for (size_t i = 1; team && i < nthreads; i++) {
        team->members[i].team = team;
        team->members[i].number = i;
        if (pthread_create(&team->members[i].thread, NULL, member_main, &team->members[i]))
            return NULL;
    }
    return team;
}

void team_close(struct team *team)
{
    if (!team)
        return;
    team->timed = NULL;
    pthread_barrier_wait(&team->begin);
    for (size_t i = 1; i < team->nthreads; i++)
        pthread_join(team->members[i].thread, NULL);
    pthread_barrier_destroy(&team->begin);
    pthread_barrier_destroy(&team->finish);
    free(team);
}
