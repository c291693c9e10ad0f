/* Noise of memory: page faults on the hot CPU, TLB shootdowns sent to it, and a hog of the bandwidth they share. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include "noise.h"

/* ---- faults: pages given back and touched again ----------------------------------------------------------------- */

/* In a guest a fresh page may be a fault of the hypervisor, too. */
enum { FAULT_PAGES = 2048, LONGEST_STEP_NS = 20000, LONGEST_LAST_NS = 200000, INTERRUPTS_BYTES = 4 << 20 };

typedef struct {
    int fd;
    char *text;
} interrupts;

typedef struct {
    unsigned char *memory;
    size_t bytes;
    size_t page;
    size_t at; /* where a stream goes on */
    interrupts seen;
} region;

static int map_region(jw_noise_thread *self, size_t bytes) {
    region *own = calloc(1, sizeof *own);
    if (own == NULL) {
        return -ENOMEM;
    }
    self->state = own;
    own->seen.fd = -1;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return -errno;
    }
    own->memory = memory;
    own->bytes = bytes;
    own->page = (size_t)sysconf(_SC_PAGESIZE);
    /* Small pages, each with a fault of its own; a kernel without huge pages refuses, which is as good. */
    (void)madvise(memory, bytes, MADV_NOHUGEPAGE);
    return 0;
}

static void free_region(jw_noise_thread *self) {
    region *own = self->state;
    if (own != NULL) {
        if (own->memory != NULL) {
            munmap(own->memory, own->bytes);
        }
        if (own->seen.fd >= 0) {
            (void)close(own->seen.fd);
        }
        free(own->seen.text);
        free(own);
        self->state = NULL;
    }
}

static int map_faults(jw_noise_thread *self) {
    return map_region(self, FAULT_PAGES * (size_t)sysconf(_SC_PAGESIZE));
}

/* The pages are given back at the next burst, not at the end of this one: the kernel's counters of this CPU have to
 * differ when it looks whether they need adding up (mm/vmstat.c, need_update). */
static void fault(jw_noise_thread *self) {
    region *own = self->state;
    const uint64_t length = jw_clock_ticks(&self->config->clock, self->config->busy_ns);
    /* One call, however many pages. */
    jw_steps steps = jw_steps_begin(self, LONGEST_LAST_NS, JW_BURST_MAIN);
    const uint64_t begun = steps.start;
    (void)madvise(own->memory, own->at, MADV_DONTNEED);
    (void)jw_steps_next(&steps);
    steps.longest_step = jw_clock_ticks(&self->config->clock, LONGEST_STEP_NS);
    size_t at = 0;
    do {
        *(volatile unsigned char *)(own->memory + at) = 1;
        at += own->page;
    } while (at < own->bytes && jw_steps_next(&steps) - begun < length && !jw_noise_stopped(self));
    own->at = at;
    jw_steps_end(&steps);
}

const jw_noise_act jw_act_fault = {.where = JW_ON_HOT, .prepare = map_faults, .act = fault, .teardown = free_region};

/* ---- shootdown: a page loses a right, and every CPU that runs this process has to forget what it knew of it ----- */

/* Number of times that `cpu` was asked to forget translations: line TLB of /proc/interrupts, in the column of that CPU.
 * < 0: there is no such line, as this is not x86. */
static int64_t flushes(const interrupts *own, int cpu) {
    char column[32], *text = own->text;
    size_t n = 0;
    for (ssize_t got = 1; got > 0 && n + 1 < INTERRUPTS_BYTES; n += (size_t)got) {
        got = pread(own->fd, text + n, INTERRUPTS_BYTES - 1 - n, (off_t)n);
        if (got < 0) {
            return -1;
        }
    }
    text[n] = '\0';
    (void)snprintf(column, sizeof column, "CPU%d", cpu);
    char *line = strstr(text, "TLB:"), *rest = NULL;
    char *word = strtok_r(text, " ", &rest);
    size_t nth = 1;
    /* The first line has the CPUs that are online. */
    for (; word != NULL && strcmp(word, column) != 0 && word[0] == 'C'; nth++) {
        word = strtok_r(NULL, " ", &rest);
    }
    if (word == NULL || word[0] != 'C' || line == NULL) {
        return -1;
    }
    char *at = line + strlen("TLB:");
    unsigned long long count = 0;
    for (; nth > 0; nth--) {
        char *end = at;
        count = strtoull(at, &end, 10);
        if (end == at) {
            return -1;
        }
        at = end;
    }
    return (int64_t)count;
}

/* Takes the page's right to be written away, or gives it back: either way the kernel waits until the other CPUs have
 * flushed (x86: by an IPI). Not each call interrupts the CPU: it may run another process, and in a guest the flush of a
 * CPU that the hypervisor does not run is left to it (arch/x86/kernel/kvm.c). Then both moments are 0. */
static jw_moments change_right(const jw_noise_thread *self, int right) {
    const region *own = self->state;
    const int source = self->config->clock.source;
    const int64_t before = flushes(&own->seen, self->config->hot);
    jw_moments at;
    unsigned cpu;
    at.from = jw_now_ordered(source, &cpu);
    (void)mprotect(own->memory, own->page, right);
    at.until = jw_now_ordered(source, &cpu);
    return flushes(&own->seen, self->config->hot) > before ? at : (jw_moments){0, 0};
}

/* A page that was written to, so that there is something to forget. */
static jw_moments take_right_away(jw_noise_thread *self) {
    const region *own = self->state;
    *(volatile unsigned char *)own->memory = 1;
    return change_right(self, PROT_READ);
}

static jw_moments take_and_give_back(jw_noise_thread *self) {
    const jw_moments at = take_right_away(self);
    (void)change_right(self, PROT_READ | PROT_WRITE);
    return at;
}

static int map_page(jw_noise_thread *self) {
    int failed = map_region(self, (size_t)sysconf(_SC_PAGESIZE));
    if (failed != 0) {
        return failed;
    }
    region *own = self->state;
    own->seen.fd = open("/proc/interrupts", O_RDONLY | O_CLOEXEC);
    own->seen.text = malloc(INTERRUPTS_BYTES);
    if (own->seen.fd < 0 || own->seen.text == NULL || flushes(&own->seen, self->config->hot) < 0) {
        return -ENOTSUP;
    }
    return jw_noise_measure(self, self->config->hot, take_and_give_back);
}

static void log_call(jw_noise_thread *self, jw_moments at) {
    if (at.until > 0) {
        jw_noise_log(self, at.from, at.until, self->length_ticks, self->config->hot, JW_BURST_MAIN);
    }
}

static void shoot(jw_noise_thread *self) {
    log_call(self, take_right_away(self));
    log_call(self, change_right(self, PROT_READ | PROT_WRITE));
}

const jw_noise_act jw_act_shootdown = {
    .where = JW_ON_OTHER, .prepare = map_page, .act = shoot, .teardown = free_region};

/* ---- bandwidth: streams through more memory than the caches hold ------------------------------------------------ */

enum { STREAM_BYTES = 64 << 20, CHUNK_BYTES = 16 << 10, STREAM_STEP_NS = 50000 };

static int map_stream(jw_noise_thread *self) {
    const int failed = map_region(self, STREAM_BYTES);
    if (failed == 0) {
        const region *own = self->state;
        memset(own->memory, 1, own->bytes);
    }
    return failed;
}

static void stream(jw_noise_thread *self) {
    region *own = self->state;
    const uint64_t length = jw_clock_ticks(&self->config->clock, self->config->busy_ns);
    jw_steps steps = jw_steps_begin(self, STREAM_STEP_NS, JW_BURST_MAIN);
    const uint64_t begun = steps.start;
    size_t at = own->at;
    do {
        memset(own->memory + at, (int)(at >> 14 & 0xff), CHUNK_BYTES);
        at = at + CHUNK_BYTES < own->bytes ? at + CHUNK_BYTES : 0;
    } while (jw_steps_next(&steps) - begun < length && !jw_noise_stopped(self));
    own->at = at;
    jw_steps_end(&steps);
}

const jw_noise_act jw_act_stream = {
    .where = JW_ON_OTHER, .prepare = map_stream, .act = stream, .teardown = free_region};
