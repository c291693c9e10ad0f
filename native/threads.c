/* Placing threads, counting what the kernel did to them, and meeting. */
#include "threads.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <sched.h>

enum { STACK_BYTES = 256 * 1024, NAP_NS = 50000 };

int jw_place_thread(int cpu, int fifo_priority) {
    if (cpu >= 0) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpu + 1);
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpu + 1);
        if (set == NULL) {
            return -ENOMEM;
        }
        CPU_ZERO_S(bytes, set);
        CPU_SET_S((size_t)cpu, bytes, set);
        int failed = sched_setaffinity(0, bytes, set) != 0 ? -errno : 0;
        CPU_FREE(set);
        if (failed != 0) {
            return failed;
        }
    }
    if (fifo_priority > 0) {
        struct sched_param parameter = {.sched_priority = fifo_priority};
        int failed = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameter);
        if (failed != 0) {
            return -failed;
        }
    }
    return 0;
}

int jw_thread_id(void) {
    return (int)syscall(SYS_gettid);
}

void jw_name_thread(const char *name) {
    (void)pthread_setname_np(pthread_self(), name);
}

/* Read a file of /proc, with a zero behind it. Return false where this kernel has no such file. */
static bool read_text(const char *path, char *text, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    ssize_t bytes = read(file, text, size - 1);
    close(file);
    text[bytes > 0 ? bytes : 0] = 0;
    return bytes > 0;
}

/* The second and third figure of Documentation/scheduler/sched-stats.rst. The thread reads them itself, because time in
 * the queue is added when it comes onto its CPU: from outside, a wait that goes on is missed or counted too early. */
static void time_in_the_queue(jw_usage *out) {
    char text[96];
    out->waited_ns = -1;
    out->timeslices = -1;
    if (!read_text("/proc/thread-self/schedstat", text, sizeof text)) {
        return;
    }
    char *end = text;
    uint64_t figures[3];
    for (int i = 0; i < 3; i++) {
        const char *from = end;
        figures[i] = strtoull(from, &end, 10);
        if (end == from) {
            return;
        }
    }
    /* A thread that reads this has had a timeslice: "0 0 0" is a kernel that was told not to count. */
    if (figures[2] > 0) {
        out->waited_ns = (int64_t)figures[1];
        out->timeslices = (int64_t)figures[2];
    }
}

/* The line `syscw` of /proc/PID/io (proc(5)): a kernel without CONFIG_TASK_IO_ACCOUNTING has no such file. */
static int64_t write_calls(void) {
    static const char line[] = "syscw: ";
    char text[256];
    const char *found = read_text("/proc/thread-self/io", text, sizeof text) ? strstr(text, line) : NULL;
    return found == NULL ? -1 : (int64_t)strtoull(found + sizeof line - 1, NULL, 10);
}

static int64_t grown(int64_t start, int64_t now) {
    return start < 0 || now < 0 ? -1 : now - start;
}

void jw_thread_usage(jw_usage *out) {
    struct rusage usage;
    memset(&usage, 0, sizeof usage);
    getrusage(RUSAGE_THREAD, &usage);
    out->voluntary_switches = usage.ru_nvcsw;
    out->involuntary_switches = usage.ru_nivcsw;
    out->minor_faults = usage.ru_minflt;
    out->major_faults = usage.ru_majflt;
    struct timespec ran = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
    out->ran_ns = (int64_t)ran.tv_sec * (int64_t)JW_NS_PER_S + ran.tv_nsec;
    out->write_calls = write_calls();
    time_in_the_queue(out);
}

void jw_usage_since(const jw_usage *start, jw_usage *out) {
    jw_usage now;
    jw_thread_usage(&now);
    out->voluntary_switches = now.voluntary_switches - start->voluntary_switches;
    out->involuntary_switches = now.involuntary_switches - start->involuntary_switches;
    out->minor_faults = now.minor_faults - start->minor_faults;
    out->major_faults = now.major_faults - start->major_faults;
    out->ran_ns = now.ran_ns - start->ran_ns;
    out->waited_ns = grown(start->waited_ns, now.waited_ns);
    out->timeslices = grown(start->timeslices, now.timeslices);
    out->write_calls = grown(start->write_calls, now.write_calls);
}

void jw_nap(void) {
    struct timespec nap = {.tv_sec = 0, .tv_nsec = NAP_NS};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
}

int jw_die_with_parent(void) {
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 ? -errno : 0;
}

/* Signals stay with the main thread; small stacks, because mlockall would lock all of the default 8 MiB. */
int jw_thread_create(pthread_t *thread, void *(*body)(void *), void *argument) {
    pthread_attr_t attributes;
    sigset_t all, before;
    int failed = pthread_attr_init(&attributes);
    if (failed != 0) {
        return -failed;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (failed == 0) {
        failed = pthread_create(thread, &attributes, body, argument);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return -failed;
}

void jw_latch_init(jw_latch *latch) {
    pthread_mutex_init(&latch->mutex, NULL);
    pthread_cond_init(&latch->changed, NULL);
    latch->pending = 0;
    latch->closed = false;
}

void jw_latch_destroy(jw_latch *latch) {
    pthread_cond_destroy(&latch->changed);
    pthread_mutex_destroy(&latch->mutex);
}

/* Expect `pending` threads to count down; nothing once the latch is closed. */
void jw_latch_arm(jw_latch *latch, int pending) {
    pthread_mutex_lock(&latch->mutex);
    latch->pending = pending;
    pthread_mutex_unlock(&latch->mutex);
}

void jw_latch_count_down(jw_latch *latch) {
    pthread_mutex_lock(&latch->mutex);
    if (--latch->pending == 0) {
        pthread_cond_broadcast(&latch->changed);
    }
    pthread_mutex_unlock(&latch->mutex);
}

/* No thread will count down any more: wake every waiter, now and later. */
void jw_latch_close(jw_latch *latch) {
    pthread_mutex_lock(&latch->mutex);
    latch->closed = true;
    pthread_cond_broadcast(&latch->changed);
    pthread_mutex_unlock(&latch->mutex);
}

void jw_latch_wait(jw_latch *latch) {
    pthread_mutex_lock(&latch->mutex);
    while (latch->pending > 0 && !latch->closed) {
        pthread_cond_wait(&latch->changed, &latch->mutex);
    }
    pthread_mutex_unlock(&latch->mutex);
}
