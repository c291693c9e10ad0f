/* What every hot thread does outside its loop: place itself, count its switches, meet the thread that waits for it. */
#ifndef JW_THREADS_H
#define JW_THREADS_H

#include <pthread.h>

#include "core.h"

/* Pin the calling thread (cpu >= 0), then make it SCHED_FIFO (priority > 0). 0 or -errno. */
int jw_place_thread(int cpu, int fifo_priority);
int jw_thread_id(void);

/* What ps, perf and /proc call the calling thread (15 characters at most); otherwise all would be called after Python. */
void jw_name_thread(const char *name);
void jw_thread_usage(jw_usage *out);
void jw_usage_since(const jw_usage *start, jw_usage *out);

/* A short sleep: it resets what RLIMIT_RTTIME counts of a SCHED_FIFO thread (sched_setscheduler(2)). */
void jw_nap(void);

/* Memory that is resident before it is used; NULL when there is none. `bytes` are rounded up to pages. */
void *jw_map(size_t bytes);
void jw_unmap(void *memory, size_t bytes);

int jw_thread_create(pthread_t *thread, void *(*body)(void *), void *argument);

/* Where one thread sleeps until `pending` others have reported. */
typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int pending;
} jw_meeting;

void jw_meeting_init(jw_meeting *meeting);
void jw_meeting_destroy(jw_meeting *meeting);
void jw_meeting_expect(jw_meeting *meeting, int pending);
void jw_meeting_report(jw_meeting *meeting);
void jw_meeting_release(jw_meeting *meeting);
void jw_meeting_wait(jw_meeting *meeting);

#endif
