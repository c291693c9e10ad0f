/* Noise made of running: threads that want the CPU, and one that sends others to another CPU. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sched.h>

#include "noise.h"

/* A step of the busy loop takes far less than LONGEST_STEP_NS; most ticks do, too. */
enum { LONGEST_STEP_NS = 20000, MOST_CPUS = 4096, HOLD_NS = 300000, STAT_BYTES = 1024 };

void jw_noise_be_busy(jw_noise_thread *self, uint64_t ns) {
    const uint64_t length = jw_clock_ticks(&self->config->clock, ns);
    jw_steps steps = jw_steps_begin(self, LONGEST_STEP_NS, JW_BURST_MAIN);
    const uint64_t begun = steps.start;
    while (jw_steps_next(&steps) - begun < length && !jw_noise_stopped(self)) {
    }
    jw_steps_end(&steps);
}

static void be_busy(jw_noise_thread *self) {
    jw_noise_be_busy(self, self->config->busy_ns);
}

uint64_t jw_noise_task_ns(jw_noise_thread *self) {
    const uint64_t fifth = self->config->busy_ns / 5;
    return 2 * fifth + jw_random(&self->random) % (6 * fifth + 1);
}

static void be_a_task(jw_noise_thread *self) {
    jw_noise_be_busy(self, jw_noise_task_ns(self));
}

const jw_noise_act jw_act_busy = {.where = JW_ON_HOT, .act = be_busy};
const jw_noise_act jw_act_spinner = {.where = JW_ON_EACH, .act = be_busy};
const jw_noise_act jw_act_task = {.where = JW_ON_EACH, .act = be_a_task};

/* ---- migration -------------------------------------------------------------------------------------------------- */

typedef struct {
    cpu_set_t *before;
    cpu_set_t *one;
    size_t nth;
} mover;

/* The CPU a thread was last on: field 39 of its stat, counted behind the name, which may hold anything (proc(5)). */
static int last_cpu(int32_t tid) {
    enum { FIELDS_BEHIND_NAME = 37 };
    char path[64], text[STAT_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", tid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return -1;
    }
    const size_t n = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    for (int i = 0; i < FIELDS_BEHIND_NAME && at != NULL; i++) {
        at = strchr(at + 1, ' ');
    }
    return at == NULL ? -1 : (int)strtol(at, NULL, 10);
}

static int make_mover(jw_noise_thread *self) {
    mover *own = calloc(1, sizeof *own);
    if (own == NULL) {
        return -ENOMEM;
    }
    self->state = own;
    own->before = CPU_ALLOC(MOST_CPUS);
    own->one = CPU_ALLOC(MOST_CPUS);
    return own->before == NULL || own->one == NULL ? -ENOMEM : 0;
}

static void free_mover(jw_noise_thread *self) {
    mover *own = self->state;
    if (own != NULL) {
        CPU_FREE(own->before);
        CPU_FREE(own->one);
        free(own);
        self->state = NULL;
    }
}

/* The kernel answers once the thread has left its CPU. A caller on the CPU to which it is sent has to wait for it. */
static bool send(jw_noise_thread *self, int32_t tid, const cpu_set_t *to, int from) {
    const int source = self->config->clock.source;
    unsigned cpu;
    const uint64_t start = jw_now_ordered(source, &cpu);
    if (sched_setaffinity(tid, CPU_ALLOC_SIZE(MOST_CPUS), to) != 0) {
        return false;
    }
    const uint64_t end = jw_now_ordered(source, &cpu);
    const bool apart = self->cpu >= 0 && self->cpu != self->config->hot && self->cpu != self->config->away;
    jw_noise_log(self, start, end, apart ? end - start : 0, from, JW_BURST_MAIN);
    return true;
}

/* There and back. A thread that may run anywhere is only sent there: it gets its freedom back at once. */
static void move(jw_noise_thread *self) {
    mover *own = self->state;
    const size_t bytes = CPU_ALLOC_SIZE(MOST_CPUS);
    const int32_t tid = jw_noise_target(self, own->nth++);
    const int from = tid > 0 ? last_cpu(tid) : -1;
    const int to = from == self->config->away ? self->config->hot : self->config->away;
    CPU_ZERO_S(bytes, own->before);
    if (from < 0 || to < 0 || to >= MOST_CPUS || sched_getaffinity(tid, bytes, own->before) != 0) {
        return;
    }
    const bool bound = CPU_COUNT_S(bytes, own->before) == 1;
    CPU_ZERO_S(bytes, own->one);
    CPU_SET_S((size_t)to, bytes, own->one);
    if (!send(self, tid, own->one, from)) {
        return;
    }
    if (bound) {
        (void)jw_sleep_until_ns(jw_posix_ns(CLOCK_MONOTONIC) + HOLD_NS);
        (void)send(self, tid, own->before, to);
    } else {
        (void)sched_setaffinity(tid, bytes, own->before);
    }
}

const jw_noise_act jw_act_move = {.where = JW_ON_OTHER, .prepare = make_mover, .act = move, .teardown = free_mover};
