/* Placing threads, counting what the kernel did to them, and meeting. */
#include "threads.h"

#include "clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sched.h>

enum { STACK_BYTES = 256 * 1024, APART_STACK_BYTES = STACK_BYTES / 4, NAP_NS = 50000 };

/* rseq(2) has no header before glibc 2.35. The least size is that of its first version. */
enum { RSEQ_REGISTER = 0, RSEQ_UNREGISTER = 1, RSEQ_LEAST_BYTES = 32 };
#if defined(__x86_64__)
#define RSEQ_SIGNATURE 0x53053053U
#elif defined(__aarch64__)
#define RSEQ_SIGNATURE 0xd428bc00U
#endif

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
        /* Not by the number that the C library remembers for this thread: in jw_run_apart it is that of the waiting thread. */
        if (syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &parameter) != 0) {
            return -errno;
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

/* The sanitizer's clone takes a new process for one of fork(2), with memory of its own; the C library's has a second name. */
#if defined(__SANITIZE_THREAD__)
int __clone(int (*body)(void *), void *stack, int flags, void *argument, ...);
#define clone __clone
#endif

typedef struct {
    void (*body)(void *argument);
    void *argument;
    int owner; /* the process that asked */
} apart;

/* From glibc 2.35 on, sched_getcpu(3) reads the CPU's number where the kernel writes it for a registered thread: in the
 * thread's storage (rseq(2)). Register the calling thread there, or end its registration. */
static void cpu_number(long flags) {
#if defined(RSEQ_SIGNATURE) && defined(SYS_rseq)
    const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");
    const unsigned *size = dlsym(RTLD_DEFAULT, "__rseq_size");
    if (offset == NULL || size == NULL || *size == 0) {
        return; /* this C library asks the kernel anew each time */
    }
    char *storage;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(storage));
#else
    storage = __builtin_thread_pointer();
#endif
    const unsigned bytes = *size < RSEQ_LEAST_BYTES ? RSEQ_LEAST_BYTES : *size;
    (void)syscall(SYS_rseq, storage + *offset, bytes, flags, RSEQ_SIGNATURE);
#else
    (void)flags;
#endif
}

static int apart_body(void *argument) {
    const apart *self = argument;
    /* The owner may have ended before the kernel was asked to end this process with it. */
    if (jw_die_with_parent() != 0 || getppid() != self->owner) {
        return 1;
    }
    cpu_number(RSEQ_REGISTER);
    self->body(self->argument);
    return 0;
}

/* A process that is made like a thread (CLONE_VM), as posix_spawn(3) makes one for a moment: it runs in the same pages, huge
 * ones and locked ones too, so that it does what the thread would do. A process made by fork(2) would have other pages, and
 * faults. The waiting thread is its parent, so the kernel kills it when this thread ends before it (PR_SET_PDEATHSIG); and
 * the waiting thread sleeps in one system call, without touching the storage that it has lent. */
int jw_run_apart(void (*body)(void *argument), void *argument) {
    _Alignas(16) char stack[APART_STACK_BYTES];
    apart self = {.body = body, .argument = argument, .owner = getpid()};
    cpu_number(RSEQ_UNREGISTER);
    const int pid = clone(apart_body, stack + sizeof stack, CLONE_VM | CLONE_FILES, &self);
    if (pid < 0) {
        return -errno;
    }
    int status = 0;
    long ended;
    do {
        ended = syscall(SYS_wait4, pid, &status, __WALL, NULL);
    } while (ended < 0 && errno == EINTR);
    return ended == pid && status == 0 ? 0 : -ECHILD;
}

/* Expect `pending` threads to count down; nothing once the latch is closed. */
void jw_latch_arm(jw_latch *latch, int pending) {
    int was = atomic_load(&latch->pending);
    while (was >= 0 && !atomic_compare_exchange_weak(&latch->pending, &was, pending)) {
    }
}

static void wake_all(jw_latch *latch) {
    (void)syscall(SYS_futex, &latch->pending, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void jw_latch_count_down(jw_latch *latch) {
    int was = atomic_load(&latch->pending);
    while (was > 0 && !atomic_compare_exchange_weak(&latch->pending, &was, was - 1)) {
    }
    if (was == 1) {
        wake_all(latch);
    }
}

/* No thread will count down any more: wake every waiter, now and later. */
void jw_latch_close(jw_latch *latch) {
    atomic_store(&latch->pending, -1);
    wake_all(latch);
}

void jw_latch_wait(jw_latch *latch) {
    int pending;
    while ((pending = atomic_load(&latch->pending)) > 0) {
        /* Returns at once where the number has changed meanwhile (futex(2)). */
        (void)syscall(SYS_futex, &latch->pending, FUTEX_WAIT_PRIVATE, pending, NULL, NULL, 0);
    }
}
