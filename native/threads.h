/* The work of every hot thread outside its loop: place itself, count its switches, meet the thread that waits for it. */
#ifndef JW_THREADS_H
#define JW_THREADS_H

#include <pthread.h>

#include "core.h"

/* Pin the calling thread (cpu >= 0), then make it SCHED_FIFO (priority > 0). 0 or -errno. */
int jw_place_thread(int cpu, int fifo_priority);
int jw_thread_id(void);

/* Name the calling thread for ps, perf and /proc (15 characters at most). Without this call it has Python's name. */
void jw_name_thread(const char *name);
void jw_thread_usage(jw_usage *out);
void jw_usage_since(const jw_usage *start, jw_usage *out);

/* A short sleep: it resets what RLIMIT_RTTIME counts of a SCHED_FIFO thread (sched_setscheduler(2)). */
void jw_nap(void);

int jw_thread_create(pthread_t *thread, void *(*body)(void *), void *argument);

/* Run `body` in a process of its own, which shares this one's memory and files. Return when the process has ended: 0, or
 * -ECHILD where it was killed, or -errno where it could not be made. It ends with this process, however that ends. Only for
 * threads of jw_thread_create: meanwhile `body` has a part of the calling thread's stack, and its thread-local storage. */
int jw_run_apart(void (*body)(void *), void *argument);

/* One thread sleeps until `pending` others have counted down. A closed latch stays open for ever: arming it again has no
 * effect, and no wait sleeps, so a stop that comes between a look and a wait cannot be missed. It has no lock that a thread
 * could take along when its process is killed. All zero: nothing is pending. */
typedef struct {
    _Atomic int pending; /* < 0: closed */
} jw_latch;

void jw_latch_arm(jw_latch *latch, int pending);
void jw_latch_count_down(jw_latch *latch);
void jw_latch_close(jw_latch *latch);
void jw_latch_wait(jw_latch *latch);

#endif
