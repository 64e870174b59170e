/* tasks.c - several threads that do tasks, and deliver them in order.
 *
 * A thread takes the next task, works on it, waits for its turn and delivers the result.  So
 * there are never more results than threads, and no more memory is in use than their hands. */
#include <errno.h>

#include "pile.h"

struct crew {
    const struct tasks *tasks;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t turned;
    uint64_t next;      /* task that no thread has taken */
    uint64_t delivered; /* how many tasks were delivered */
    int error, reason;  /* the first error of a task, and its errno */
};

struct member {
    struct crew *crew;
    void *hand;
    pthread_t thread;
};

static void note(struct crew *crew, int error)
{
    if (error && !crew->error) {
        crew->error = error;
        crew->reason = errno;
    }
}

/* Does one task after the other.  Holds the lock, but not while it works. */
static void *work(void *argument)
{
    struct member *me = argument;
    struct crew *crew = me->crew;
    const struct tasks *tasks = crew->tasks;
    pthread_mutex_lock(&crew->lock);
    while (crew->next < tasks->ntasks && !crew->error) {
        uint64_t task = crew->next++;
        pthread_mutex_unlock(&crew->lock);
        int error = tasks->work(tasks->context, me->hand, task);
        pthread_mutex_lock(&crew->lock);
        note(crew, error);
        while (crew->delivered != task && !crew->error)
            pthread_cond_wait(&crew->turned, &crew->lock);
        if (crew->error)
            break;
        if (tasks->deliver) {
            pthread_mutex_unlock(&crew->lock); /* the others wait for their turn, or work */
            error = tasks->deliver(tasks->context, me->hand, task);
            pthread_mutex_lock(&crew->lock);
            note(crew, error);
        }
        crew->delivered++;
        pthread_cond_broadcast(&crew->turned);
    }
    pthread_cond_broadcast(&crew->turned);
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* Starts a thread.  Its stack takes less of a limit of addresses (ulimit -v) than the 8 MiB
 * that are usual, and is larger than musl's.  Returns false if it cannot. */
static bool start(struct member *member)
{
    const size_t stack_nbytes = (size_t)1 << 20;
    pthread_attr_t how;
    size_t usual_nbytes;
    if (pthread_attr_init(&how))
        return false;
    if (!pthread_attr_getstacksize(&how, &usual_nbytes) && usual_nbytes > stack_nbytes)
        (void)pthread_attr_setstacksize(&how, stack_nbytes);
    bool started = !pthread_create(&member->thread, &how, work, member);
    pthread_attr_destroy(&how);
    return started;
}

/* Where no thread can be started the caller does all the work. */
int tasks_run(const struct tasks *tasks, void *const *hands, unsigned nhands)
{
    struct crew crew = { .tasks = tasks };
    struct member members[THREADS_MOST];
    unsigned nstarted = 1;
    pthread_mutex_init(&crew.lock, NULL);
    pthread_cond_init(&crew.turned, NULL);
    for (; nstarted < nhands && nstarted < THREADS_MOST && nstarted < tasks->ntasks;
         nstarted++) {
        struct member *member = &members[nstarted];
        *member = (struct member){ .crew = &crew, .hand = hands[nstarted] };
        if (!start(member))
            break;
    }
    members[0] = (struct member){ .crew = &crew, .hand = hands[0] };
    work(&members[0]);
    while (--nstarted)
        pthread_join(members[nstarted].thread, NULL);
    pthread_cond_destroy(&crew.turned);
    pthread_mutex_destroy(&crew.lock);
    if (crew.error)
        errno = crew.reason;
    return crew.error;
}
