/* The noise lab: threads that disturb a CPU on purpose, within bounds, and log what they did and when. Each burst is
 * logged by the thread that made it; logs are merged once all threads have ended. */
#include "noise.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 4096, MOST_TARGETS = 8, NAME_BYTES = 16 };
#define LONGEST_PERIOD_NS (JW_NS_PER_S / 5)
#define MOST_BURSTS UINT64_C(100000)

struct jw_noise {
    jw_noise_config config;
    char name[NAME_BYTES];
    _Atomic int stop;
    _Atomic int32_t targets[MOST_TARGETS];
    jw_latch latch;
    bool joined;
    jw_burst *log;
    size_t n;
    jw_noise_thread each[];
};

static const jw_noise_act *const acts[JW_NOISES] = {
    [JW_NOISE_SPINNERS] = &jw_act_spinner,
    [JW_NOISE_GREEDY] = &jw_act_busy,
    [JW_NOISE_TIMER] = &jw_act_timer,
    [JW_NOISE_SOFTIRQ] = &jw_act_softirq,
    [JW_NOISE_WORKQUEUE] = &jw_act_work,
    [JW_NOISE_MIGRATION] = &jw_act_move,
    [JW_NOISE_FAULTS] = &jw_act_fault,
    [JW_NOISE_SHOOTDOWN] = &jw_act_shootdown,
    [JW_NOISE_BANDWIDTH] = &jw_act_stream,
    [JW_NOISE_UNBOUND] = &jw_act_task,
    [JW_NOISE_TERMINAL] = &jw_act_terminal,
    [JW_NOISE_DISK] = &jw_act_disk,
    [JW_NOISE_NETWORK] = &jw_act_network,
    [JW_NOISE_HWRNG] = &jw_act_hwrng,
};

const char *jw_noise_name(const jw_noise_thread *self) {
    return self->all->name;
}

bool jw_noise_stopped(const jw_noise_thread *self) {
    return jw_stopped(&self->all->stop);
}

bool jw_noise_over(const jw_noise_thread *self) {
    return jw_stopped(&self->all->stop) || jw_posix_ns(CLOCK_MONOTONIC) >= self->config->deadline_ns;
}

/* The nth thread that the noise is aimed at, in turn; 0 while there is none. */
int32_t jw_noise_target(const jw_noise_thread *self, size_t nth) {
    int32_t n = 0;
    while (n < MOST_TARGETS && atomic_load(&self->all->targets[n]) > 0) {
        n++;
    }
    return n == 0 ? 0 : atomic_load(&self->all->targets[nth % (size_t)n]);
}

void jw_noise_log(jw_noise_thread *self, uint64_t start, uint64_t end, uint64_t taken, int cpu, int what) {
    if (self->logged == self->room) {
        self->unlogged++;
        return;
    }
    self->log[self->logged++] = (jw_burst){.start = start, .end = end, .taken = taken, .cpu = cpu, .what = what};
}

jw_steps jw_steps_begin(jw_noise_thread *self, uint64_t longest_step_ns, int what) {
    const jw_clock *clock = &self->config->clock;
    jw_steps steps = {.self = self, .longest_step = jw_clock_ticks(clock, longest_step_ns), .what = what};
    steps.start = steps.last = jw_now_ordered(clock->source, &steps.cpu);
    return steps;
}

uint64_t jw_steps_next(jw_steps *steps) {
    unsigned cpu;
    const uint64_t now = jw_now_ordered(steps->self->config->clock.source, &cpu);
    if (now > steps->last && now - steps->last > steps->longest_step) {
        jw_steps_end(steps);
        steps->start = now;
        steps->cpu = cpu;
    }
    steps->last = now;
    return now;
}

void jw_steps_end(jw_steps *steps) {
    if (steps->last > steps->start) {
        jw_noise_log(steps->self, steps->start, steps->last, steps->last - steps->start, (int)steps->cpu, steps->what);
    }
}

/* ---- the threads ------------------------------------------------------------------------------------------------ */

static void *noise_body(void *argument) {
    jw_noise_thread *self = argument;
    const jw_noise_act *does = self->does;
    jw_name_thread(self->all->name);
    self->failed = jw_place_thread(self->cpu, 0);
    if (self->failed == 0 && does->prepare != NULL) {
        self->failed = does->prepare(self);
    }
    const bool ready = self->failed == 0;
    jw_latch_count_down(&self->all->latch);
    const uint64_t period = self->config->period_ns;
    uint64_t due = jw_posix_ns(CLOCK_MONOTONIC);
    (void)jw_sleep_until_ns(due += period / 4);
    while (ready && !jw_noise_over(self)) {
        does->act(self);
        due += period - period / 4 + jw_random(&self->random) % (period / 2);
        const uint64_t now = jw_posix_ns(CLOCK_MONOTONIC);
        /* Missed periods are not made up for: noise must not become a storm after a pause. */
        due = due < now ? now + period / 4 : due;
        (void)jw_sleep_until_ns(due < self->config->deadline_ns ? due : self->config->deadline_ns);
    }
    if (does->teardown != NULL) {
        does->teardown(self);
    }
    return NULL;
}

/* True: this kind has a thread for each entry of `cpus`, instead of one. */
static bool has_many(const jw_noise_config *config) {
    return acts[config->kind]->where == JW_ON_EACH;
}

static bool sound(const jw_noise_config *config) {
    return config->kind >= 0 && config->kind < JW_NOISES && config->period_ns >= 1000 &&
           config->period_ns <= LONGEST_PERIOD_NS && config->busy_ns < config->period_ns &&
           config->most_bursts > 0 && config->most_bursts <= MOST_BURSTS && config->name != NULL &&
           config->clock.mult != 0 && jw_clock_usable(config->clock.source) &&
           (!has_many(config) || (config->cpus != NULL && config->cpus_len > 0 && config->cpus_len <= MOST_THREADS &&
                      config->cpus_len <= config->most_bursts));
}

static void join_first(jw_noise *noise, size_t n) {
    atomic_store(&noise->stop, 1);
    for (size_t i = 0; i < n && !noise->joined; i++) {
        pthread_join(noise->each[i].thread, NULL);
    }
    noise->joined = true;
}

static int start_threads(jw_noise *noise) {
    const jw_noise_config *config = &noise->config;
    const jw_noise_act *does = acts[config->kind];
    const size_t room = (size_t)config->most_bursts / noise->n;
    int failed = 0;
    size_t started = 0;
    for (; started < noise->n && failed == 0; started++) {
        jw_noise_thread *one = &noise->each[started];
        one->all = noise;
        one->config = config;
        one->does = does;
        one->cpu = does->where == JW_ON_HOT ? config->hot : config->other;
        if (has_many(config)) {
            one->cpu = config->cpus[started];
        }
        one->log = noise->log + started * room;
        one->room = room;
        one->random = (config->seed + started) * UINT64_C(0x9e3779b97f4a7c15) | 1;
        failed = jw_thread_create(&one->thread, noise_body, one);
    }
    if (failed != 0) {
        join_first(noise, started - 1);
        return failed;
    }
    jw_latch_wait(&noise->latch);
    for (size_t i = 0; i < noise->n; i++) {
        failed = noise->each[i].failed != 0 ? noise->each[i].failed : failed;
    }
    return failed;
}

/* Runs once it returns. NULL with *error = -errno: -EINVAL also for a CPU that the threads may not use, -EACCES and
 * -EPERM for missing rights, -ENOTSUP where nothing of this noise reaches the CPU, -ENOSYS where the kernel lacks what
 * it needs. */
jw_noise *jw_noise_start(const jw_noise_config *config, int *error) {
    *error = -EINVAL;
    if (!sound(config)) {
        return NULL;
    }
    const size_t n = has_many(config) ? (size_t)config->cpus_len : 1;
    *error = -ENOMEM;
    jw_noise *noise = calloc(1, sizeof *noise + n * sizeof noise->each[0]);
    jw_burst *log = jw_map((size_t)config->most_bursts * sizeof *log);
    if (noise == NULL || log == NULL) {
        jw_unmap(log, (size_t)config->most_bursts * sizeof *log);
        free(noise);
        return NULL;
    }
    noise->config = *config;
    noise->log = log;
    noise->n = n;
    strncpy(noise->name, config->name, NAME_BYTES - 1);
    jw_latch_arm(&noise->latch, (int)n);
    *error = start_threads(noise);
    noise->config.cpus = NULL;
    noise->config.name = NULL;
    if (*error != 0) {
        jw_noise_free(noise);
        return NULL;
    }
    return noise;
}

/* The tids are those of this user's threads, which the noise moves. Before this call it moves none. */
void jw_noise_aim(jw_noise *noise, const int32_t *tids, size_t n) {
    for (size_t i = 0; i < MOST_TARGETS; i++) {
        atomic_store(&noise->targets[i], i < n ? tids[i] : 0);
    }
}

/* The length of a burst that was measured once, before the noise began; 0: the log has each burst's own. */
uint64_t jw_noise_length_ticks(const jw_noise *noise) {
    return noise->each[0].length_ticks;
}

/* Returns once all threads have ended; at most two periods. */
void jw_noise_stop(jw_noise *noise) {
    join_first(noise, noise->n);
}

static int by_start(const void *a, const void *b) {
    const jw_burst *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* The bursts of all threads by their beginning; how many there are. Only of a noise that was stopped: 0 before. */
size_t jw_noise_bursts(const jw_noise *noise, jw_burst *out, size_t room) {
    size_t n = 0;
    for (size_t i = 0; i < noise->n && noise->joined; i++) {
        const jw_noise_thread *one = &noise->each[i];
        for (size_t k = 0; k < one->logged; k++, n++) {
            if (n < room) {
                out[n] = one->log[k];
            }
        }
    }
    qsort(out, n < room ? n : room, sizeof *out, by_start);
    return n;
}

/* Bursts that found the log full. */
uint64_t jw_noise_unlogged(const jw_noise *noise) {
    uint64_t n = 0;
    for (size_t i = 0; i < noise->n && noise->joined; i++) {
        n += noise->each[i].unlogged;
    }
    return n;
}

void jw_noise_free(jw_noise *noise) {
    if (noise != NULL) {
        join_first(noise, noise->n);
        jw_unmap(noise->log, (size_t)noise->config.most_bursts * sizeof *noise->log);
        free(noise);
    }
}
