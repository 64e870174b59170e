/* tasks.c - several threads that do tasks, and deliver them in order.
 *
 * A thread takes the next task, works on it, waits for its turn and delivers the result.  So
 * there are never more results than threads, and no more memory is in use than their hands. */
#include <errno.h>

#include "pile.h"

struct crew {
    const struct tasks *tasks;
    struct mutex lock; /* of all that follows */
    struct condition turned;
    uint64_t next;      /* task that no thread has taken */
    uint64_t delivered; /* how many tasks were delivered */
    int error, reason;  /* the first error of a task, and its errno */
};

struct member {
    struct crew *crew;
    void *hand;
    struct thread thread;
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
    mutex_take(&crew->lock);
    while (crew->next < tasks->ntasks && !crew->error) {
        uint64_t task = crew->next++;
        mutex_release(&crew->lock);
        int error = tasks->work(tasks->context, me->hand, task);
        mutex_take(&crew->lock);
        note(crew, error);
        while (crew->delivered != task && !crew->error)
            condition_wait(&crew->turned, &crew->lock);
        if (crew->error)
            break;
        if (tasks->deliver) {
            mutex_release(&crew->lock); /* the others wait for their turn, or work */
            error = tasks->deliver(tasks->context, me->hand, task);
            mutex_take(&crew->lock);
            note(crew, error);
        }
        crew->delivered++;
        condition_wake(&crew->turned);
    }
    condition_wake(&crew->turned);
    mutex_release(&crew->lock);
    return NULL;
}

/* Where no thread can be started the caller does all the work. */
int tasks_run(const struct tasks *tasks, void *const *hands, unsigned nhands)
{
    struct crew crew = { .tasks = tasks };
    struct member members[THREADS_MOST];
    unsigned nstarted = 1;
    mutex_begin(&crew.lock);
    condition_begin(&crew.turned);
    for (; nstarted < nhands && nstarted < THREADS_MOST && nstarted < tasks->ntasks;
         nstarted++) {
        struct member *member = &members[nstarted];
        *member = (struct member){ .crew = &crew, .hand = hands[nstarted] };
        if (!thread_start(&member->thread, work, member))
            break;
    }
    members[0] = (struct member){ .crew = &crew, .hand = hands[0] };
    work(&members[0]);
    while (--nstarted)
        thread_join(&members[nstarted].thread);
    condition_end(&crew.turned);
    mutex_end(&crew.lock);
    if (crew.error)
        errno = crew.reason;
    return crew.error;
}
