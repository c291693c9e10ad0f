/* Noise that the kernel makes on a CPU because it was asked to: timer interrupts, work of kworkers, a device's interrupts. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/timerfd.h>

#include "noise.h"

/* ---- timer: many timers of one expiry, armed on the hot CPU by a thread that is asleep when they expire --------- */

enum { CLUSTERS = 10, TIMERS_A_CLUSTER = 8, TIMERS = CLUSTERS * TIMERS_A_CLUSTER };
enum { LEAD_NS = 300000, FELT_WITHIN_NS = 60000, CAME_EARLY_NS = 2000 };

typedef struct {
    int fds[TIMERS];
} timers;

static void arm(const timers *own, size_t cluster, uint64_t due_ns) {
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(due_ns / JW_NS_PER_S), .tv_nsec = (long)(due_ns % JW_NS_PER_S)}};
    for (size_t i = 0; i < TIMERS_A_CLUSTER; i++) {
        (void)timerfd_settime(own->fds[cluster * TIMERS_A_CLUSTER + i], TFD_TIMER_ABSTIME, &when, NULL);
    }
}

/* Ticks of a moment of CLOCK_MONOTONIC that is not far away. */
static uint64_t ticks_at(const jw_clock *clock, uint64_t ns) {
    unsigned cpu;
    const uint64_t now_ns = jw_posix_ns(CLOCK_MONOTONIC), now = jw_now_ordered(clock->source, &cpu);
    return ns >= now_ns ? now + jw_clock_ticks(clock, ns - now_ns) : now - jw_clock_ticks(clock, now_ns - ns);
}

static jw_moments one_cluster(jw_noise_thread *self) {
    const jw_clock *clock = &self->config->clock;
    const uint64_t due_ns = jw_posix_ns(CLOCK_MONOTONIC) + LEAD_NS;
    arm(self->state, 0, due_ns);
    return (jw_moments){.from = ticks_at(clock, due_ns - CAME_EARLY_NS),
                        .until = ticks_at(clock, due_ns + FELT_WITHIN_NS)};
}

static int make_timers(jw_noise_thread *self) {
    timers *own = malloc(sizeof *own);
    if (own == NULL) {
        return -ENOMEM;
    }
    self->state = own;
    memset(own->fds, -1, sizeof own->fds);
    for (size_t i = 0; i < TIMERS; i++) {
        own->fds[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (own->fds[i] < 0) {
            return -errno;
        }
    }
    /* If the kernel sends timers of this CPU elsewhere (nohz_full), nothing is seen here. */
    return jw_noise_measure(self, self->cpu, one_cluster);
}

static void free_timers(jw_noise_thread *self) {
    timers *own = self->state;
    for (size_t i = 0; own != NULL && i < TIMERS && own->fds[i] >= 0; i++) {
        (void)close(own->fds[i]);
    }
    free(own);
    self->state = NULL;
    /* Timers that were armed for later have not fired. */
    unsigned cpu;
    const uint64_t now = jw_now_ordered(self->config->clock.source, &cpu);
    while (self->logged > 0 && self->log[self->logged - 1].end > now) {
        self->logged--;
    }
}

/* Arms the clusters of one period; arming is a small burst of its own. */
static void arm_all(jw_noise_thread *self) {
    const jw_clock *clock = &self->config->clock;
    const uint64_t apart_ns = self->config->period_ns / (CLUSTERS + 4);
    uint64_t due_ns[CLUSTERS];
    unsigned cpu;
    const uint64_t start = jw_now_ordered(clock->source, &cpu);
    const uint64_t start_ns = jw_posix_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < CLUSTERS; i++) {
        due_ns[i] = start_ns + (i + 1) * apart_ns - jw_random(&self->random) % (apart_ns / 2);
        arm(self->state, i, due_ns[i]);
    }
    const uint64_t end = jw_now_ordered(clock->source, &cpu);
    jw_noise_log(self, start, end, end - start, (int)cpu, JW_BURST_ARMING);
    for (size_t i = 0; i < CLUSTERS; i++) {
        const uint64_t at = ticks_at(clock, due_ns[i]);
        jw_noise_log(self, at, at + self->length_ticks, self->length_ticks, self->cpu, JW_BURST_MAIN);
    }
}

const jw_noise_act jw_act_timer = {
    .where = JW_ON_HOT, .prepare = make_timers, .act = arm_all, .teardown = free_timers};

/* ---- the one file of an act, and its end ------------------------------------------------------------------------- */

/* 0 or -errno; the file is kept for close_file in any case. */
static int open_file(jw_noise_thread *self, const char *path, int flags) {
    int *fd = malloc(sizeof *fd);
    if (fd == NULL) {
        return -ENOMEM;
    }
    self->state = fd;
    *fd = open(path, flags | O_CLOEXEC);
    return *fd < 0 ? -errno : 0;
}

static void close_file(jw_noise_thread *self) {
    int *fd = self->state;
    if (fd != NULL && *fd >= 0) {
        (void)close(*fd);
    }
    free(fd);
    self->state = NULL;
}

static int file_of(const jw_noise_thread *self) {
    return *(const int *)self->state;
}

/* ---- workqueue: the kernel folds its statistics on every CPU when it is asked to (vm.stat_refresh) -------------- */

static jw_moments refresh(jw_noise_thread *self) {
    const int source = self->config->clock.source;
    jw_moments at;
    unsigned cpu;
    at.from = jw_now_ordered(source, &cpu);
    const ssize_t written = pwrite(file_of(self), "1", 1, 0);
    at.until = jw_now_ordered(source, &cpu);
    (void)written; /* a distribution's build (_FORTIFY_SOURCE) refuses a call whose result has no name */
    return at;
}

/* Documentation/admin-guide/sysctl/vm.rst: stat_refresh; only root may write it. */
static int open_refresh(jw_noise_thread *self) {
    const int failed = open_file(self, "/proc/sys/vm/stat_refresh", O_WRONLY);
    return failed != 0 ? failed : jw_noise_measure(self, self->config->hot, refresh);
}

static void make_work(jw_noise_thread *self) {
    const jw_moments at = refresh(self);
    jw_noise_log(self, at.from, at.until, self->length_ticks, self->config->hot, JW_BURST_MAIN);
}

const jw_noise_act jw_act_work = {
    .where = JW_ON_OTHER, .prepare = open_refresh, .act = make_work, .teardown = close_file};

/* ---- terminal: what a program prints reaches its terminal in a work item that no CPU is bound to ----------------- */

/* drivers/tty/tty_buffer.c, tty_flip_buffer_push: each write queues flush_to_ldisc on an unbound workqueue. */
enum { PRINTED = 80, READ_AT_ONCE = 4096, LINE_EVERY_NS = 250000 };

typedef struct {
    int master;
    int slave;
} terminal;

static void close_terminal(jw_noise_thread *self) {
    terminal *own = self->state;
    if (own != NULL) {
        if (own->slave >= 0) {
            (void)close(own->slave);
        }
        if (own->master >= 0) {
            (void)close(own->master);
        }
        free(own);
        self->state = NULL;
    }
}

static int open_terminal(jw_noise_thread *self) {
    enum { FLAGS = O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, NAME = 64 };
    terminal *own = malloc(sizeof *own);
    if (own == NULL) {
        return -ENOMEM;
    }
    *own = (terminal){.master = -1, .slave = -1};
    self->state = own;
    char name[NAME];
    own->master = open("/dev/ptmx", FLAGS);
    if (own->master < 0 || grantpt(own->master) != 0 || unlockpt(own->master) != 0 ||
        ptsname_r(own->master, name, sizeof name) != 0) {
        return -errno;
    }
    own->slave = open(name, FLAGS);
    struct termios raw;
    if (own->slave < 0 || tcgetattr(own->slave, &raw) != 0) {
        return -errno;
    }
    cfmakeraw(&raw);
    return tcsetattr(own->slave, TCSANOW, &raw) != 0 ? -errno : 0;
}

/* An ordinary task that prints a line from time to time. The lines are read before it prints more: a terminal whose
 * buffer is full takes no line and queues no work. When and where the work item runs is the kernel's choice. */
static void print(jw_noise_thread *self) {
    const terminal *own = self->state;
    char text[READ_AT_ONCE] = {0};
    for (uint64_t some, left = jw_noise_task_ns(self); left > 0 && !jw_noise_stopped(self); left -= some) {
        some = left < LINE_EVERY_NS ? left : LINE_EVERY_NS;
        jw_noise_be_busy(self, some);
        int waiting = 0;
        if (ioctl(own->slave, FIONREAD, &waiting) == 0 && waiting > 0) {
            (void)!read(own->slave, text, sizeof text);
        }
        (void)!write(own->master, text, PRINTED);
    }
}

const jw_noise_act jw_act_terminal = {
    .where = JW_ON_EACH, .prepare = open_terminal, .act = print, .teardown = close_terminal};

/* ---- disk: reads past the page cache, so that the device that holds the file interrupts for each ------------------- */

/* The file is this process's own program: it can be read, it is there, and nothing is written. O_DIRECT wants memory and
 * offsets in whole sectors (open(2)); a page is enough for all. */
enum { SECTORS = 4096 };

typedef struct {
    int file;
    off_t at;
    void *memory;
} disk;

static void close_disk(jw_noise_thread *self) {
    disk *own = self->state;
    if (own != NULL) {
        if (own->file >= 0) {
            (void)close(own->file);
        }
        free(own->memory);
        free(own);
        self->state = NULL;
    }
}

static int open_disk(jw_noise_thread *self) {
    disk *own = calloc(1, sizeof *own);
    if (own == NULL) {
        return -ENOMEM;
    }
    self->state = own;
    own->file = open("/proc/self/exe", O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (own->file < 0) {
        return -errno;
    }
    if (posix_memalign(&own->memory, SECTORS, SECTORS) != 0) {
        own->memory = NULL;
        return -ENOMEM;
    }
    return pread(own->file, own->memory, SECTORS, 0) < 0 ? -errno : 0;
}

/* The interrupt comes while the read sleeps, on the CPU of its affinity: the log has when, and not for how long. */
static void read_disk(jw_noise_thread *self) {
    disk *own = self->state;
    const int source = self->config->clock.source;
    unsigned cpu;
    const uint64_t start = jw_now_ordered(source, &cpu);
    if (pread(own->file, own->memory, SECTORS, own->at) < SECTORS) {
        own->at = 0; /* the end of the file */
        return;
    }
    own->at += SECTORS;
    const uint64_t end = jw_now_ordered(source, &cpu);
    jw_noise_log(self, start, end, 0, self->config->hot, JW_BURST_MAIN);
}

const jw_noise_act jw_act_disk = {
    .where = JW_ON_OTHER, .prepare = open_disk, .act = read_disk, .teardown = close_disk};

/* ---- hwrng: reads of the hardware's random numbers, for each of which the device interrupts ----------------------- */

/* drivers/char/hw_random/virtio-rng.c, virtio_read: each request is one buffer of at most a cache line, and one interrupt
 * says that the device has filled it. A read waits for it, and a signal that kills the process ends the wait. */
enum { RANDOM_BYTES = 64 };

/* Documentation/admin-guide/hw_random.rst: a file that the host has only if it has such a device, and only for root. */
static int open_hwrng(jw_noise_thread *self) {
    const int failed = open_file(self, "/dev/hwrng", O_RDONLY);
    char numbers[RANDOM_BYTES];
    return failed != 0 ? failed : read(file_of(self), numbers, sizeof numbers) < 0 ? -errno : 0;
}

/* As with the disk, the interrupt comes while the read sleeps. A device that its host keeps slow is read less often. */
static void read_hwrng(jw_noise_thread *self) {
    const int source = self->config->clock.source;
    char numbers[RANDOM_BYTES];
    unsigned cpu;
    const uint64_t start = jw_now_ordered(source, &cpu);
    if (read(file_of(self), numbers, sizeof numbers) <= 0) {
        return;
    }
    const uint64_t end = jw_now_ordered(source, &cpu);
    jw_noise_log(self, start, end, 0, self->config->hot, JW_BURST_MAIN);
}

const jw_noise_act jw_act_hwrng = {
    .where = JW_ON_OTHER, .prepare = open_hwrng, .act = read_hwrng, .teardown = close_file};
