/* windows_threads.c - Windows: threads, random bytes, and limits. */
#define _CRT_RAND_S 1
#include "system.h"

#ifdef SYSTEM_WINDOWS

#include <errno.h>
#include <perhaps_build.h>
#include <stdlib.h>
#include <string.h>

#define WIN32_LEAN_AND_MEAN 1
#include <windows.h>

/* ---- Threads ----------------------------------------------------------------------------- */

void mutex_begin(struct mutex *mutex)
{
    InitializeSRWLock((SRWLOCK *)mutex);
}

void mutex_end(struct mutex *mutex)
{
    (void)mutex;
}

void mutex_take(struct mutex *mutex)
{
    AcquireSRWLockExclusive((SRWLOCK *)mutex);
}

void mutex_release(struct mutex *mutex)
{
    ReleaseSRWLockExclusive((SRWLOCK *)mutex);
}

void condition_begin(struct condition *condition)
{
    InitializeConditionVariable((CONDITION_VARIABLE *)condition);
}

void condition_end(struct condition *condition)
{
    (void)condition;
}

void condition_wait(struct condition *condition, struct mutex *mutex)
{
    SleepConditionVariableSRW((CONDITION_VARIABLE *)condition, (SRWLOCK *)mutex, INFINITE, 0);
}

void condition_wake(struct condition *condition)
{
    WakeAllConditionVariable((CONDITION_VARIABLE *)condition);
}

void rwlock_begin(struct rwlock *lock)
{
    InitializeSRWLock((SRWLOCK *)lock);
}

void rwlock_end(struct rwlock *lock)
{
    (void)lock;
}

void rwlock_take(struct rwlock *lock)
{
    AcquireSRWLockExclusive((SRWLOCK *)lock);
}

void rwlock_release(struct rwlock *lock)
{
    ReleaseSRWLockExclusive((SRWLOCK *)lock);
}

void rwlock_share(struct rwlock *lock)
{
    AcquireSRWLockShared((SRWLOCK *)lock);
}

void rwlock_unshare(struct rwlock *lock)
{
    ReleaseSRWLockShared((SRWLOCK *)lock);
}

static DWORD WINAPI run(void *context)
{
    const struct thread *thread = context;
    thread->work(thread->argument);
    return 0;
}

bool thread_start(struct thread *thread, void *(*work)(void *argument), void *argument)
{
    thread->work = work;
    thread->argument = argument;
    thread->own = CreateThread(NULL, 1 << 20, run, thread, 0, NULL);
    return thread->own;
}

void thread_join(struct thread *thread)
{
    WaitForSingleObject(thread->own, INFINITE);
    CloseHandle(thread->own);
}

void thread_yield(void)
{
    SwitchToThread();
}

void thread_pause(void)
{
    Sleep(1);
}

uintptr_t thread_self(void)
{
    return GetCurrentThreadId();
}

long process_self(void)
{
    return (long)GetCurrentProcessId();
}

/* ---- Random bytes, and limits ------------------------------------------------------------ */

int random_bytes(void *bytes, size_t nbytes)
{
    for (size_t at = 0; at < nbytes; at += sizeof(unsigned)) {
        unsigned word;
        if (rand_s(&word)) {
            errno = EIO;
            return PERHAPS_ERR_IO;
        }
        memcpy((uint8_t *)bytes + at, &word,
               nbytes - at < sizeof word ? nbytes - at : sizeof word);
    }
    return 0;
}

static MEMORYSTATUSEX memory_now(void)
{
    MEMORYSTATUSEX now = { .dwLength = sizeof now };
    GlobalMemoryStatusEx(&now);
    return now;
}

uint64_t ram_nbytes(void)
{
    return memory_now().ullTotalPhys;
}

uint64_t perhaps_host_memory_nbytes(void)
{
    const MEMORYSTATUSEX now = memory_now();
    return now.ullAvailPhys < now.ullAvailVirtual ? now.ullAvailPhys : now.ullAvailVirtual;
}

unsigned perhaps_host_threads(void)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwNumberOfProcessors ? (unsigned)info.dwNumberOfProcessors : 1;
}

const char *environment(const char *name)
{
    return getenv(name);
}

#endif
