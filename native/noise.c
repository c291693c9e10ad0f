/* The noise lab: threads that disturb a CPU on purpose, within bounds, and log what they did and when. Each burst is
 * logged by the thread that made it; logs are merged once all threads have ended. */
#include "noise.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 4096, MOST_TARGETS = 8, NAME_BYTES = 16, WATCH_ROUNDS = 5, WATCH_TRIES = 31, MOST_GAPS = 8192 };
#define LONGEST_PERIOD_NS (JW_NS_PER_S / 5)
#define MOST_BURSTS UINT64_C(100000)
/* One step of the watching loop takes some 20 ns, under a sanitizer 200: what takes longer is an interruption. */
#define WATCH_STEP_NS UINT64_C(400)
#define WATCH_A_TURN_NS UINT64_C(200000)
#define WATCH_PAUSE_NS UINT64_C(700000)
#define WATCH_LONGEST_NS (3 * JW_NS_PER_S)

struct jw_noise {
    jw_noise_config config;
    char name[NAME_BYTES];
    _Atomic int stop;
    _Atomic int32_t targets[MOST_TARGETS];
    jw_meeting meeting;
    bool joined;
    jw_burst *log;
    size_t n;
    jw_noise_thread each[];
};

static const jw_noise_act *const acts[JW_NOISES] = {
    [JW_NOISE_SPINNERS] = &jw_act_busy, [JW_NOISE_GREEDY] = &jw_act_busy,    [JW_NOISE_TIMER] = &jw_act_timer,
    [JW_NOISE_SOFTIRQ] = &jw_act_softirq, [JW_NOISE_WORKQUEUE] = &jw_act_work, [JW_NOISE_MIGRATION] = &jw_act_move,
    [JW_NOISE_FAULTS] = &jw_act_fault,  [JW_NOISE_SHOOTDOWN] = &jw_act_shootdown, [JW_NOISE_BANDWIDTH] = &jw_act_stream,
};

void jw_sleep_until_ns(uint64_t due_ns) {
    const struct timespec due = {.tv_sec = (time_t)(due_ns / JW_NS_PER_S), .tv_nsec = (long)(due_ns % JW_NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR) {
    }
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

uint64_t jw_noise_take_edge(jw_noise_thread *self) {
    const uint64_t edge = self->edge_ticks;
    self->edge_ticks = 0;
    return edge;
}

/* xorshift64 (Marsaglia, "Xorshift RNGs"): good enough not to keep step with anything. */
uint64_t jw_noise_random(jw_noise_thread *self) {
    uint64_t x = self->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return self->random = x;
}

jw_steps jw_steps_begin(jw_noise_thread *self, uint64_t longest_step_ns, uint64_t parting_ns, int what) {
    const jw_clock *clock = &self->config->clock;
    jw_steps steps = {.self = self,
                      .longest_step = jw_clock_ticks(clock, longest_step_ns),
                      .parting = jw_clock_ticks(clock, parting_ns),
                      .what = what,
                      .taken = jw_noise_take_edge(self),
                      .cpu_ns = jw_posix_ns(CLOCK_THREAD_CPUTIME_ID)};
    steps.start = steps.last = jw_now_ordered(clock->source, &steps.cpu);
    return steps;
}

/* What the thread had of the CPU and could not see: on the way off it and back, where its burst was parted. */
static uint64_t unseen(const jw_steps *steps) {
    const jw_clock *clock = &steps->self->config->clock;
    const uint64_t had = jw_clock_ticks(clock, jw_posix_ns(CLOCK_THREAD_CPUTIME_ID) - steps->cpu_ns);
    return had > steps->passed ? had - steps->passed : 0;
}

uint64_t jw_steps_next(jw_steps *steps) {
    unsigned cpu;
    const uint64_t now = jw_now_ordered(steps->self->config->clock.source, &cpu);
    const uint64_t step = now > steps->last ? now - steps->last : 0;
    if (step > steps->parting) {
        jw_steps_end(steps);
        *steps = (jw_steps){.self = steps->self,
                            .start = now,
                            .cpu_ns = jw_posix_ns(CLOCK_THREAD_CPUTIME_ID),
                            .taken = unseen(steps),
                            .longest_step = steps->longest_step,
                            .parting = steps->parting,
                            .cpu = cpu,
                            .what = steps->what};
    } else if (step <= steps->longest_step) {
        steps->taken += step;
    }
    steps->passed += step > steps->parting ? 0 : step;
    steps->last = now;
    return now;
}

void jw_steps_end(jw_steps *steps) {
    if (steps->last > steps->start) {
        jw_noise_log(steps->self, steps->start, steps->last, steps->taken, (int)steps->cpu, steps->what);
    }
}

/* ---- what a trigger takes of another thread --------------------------------------------------------------------- */

typedef struct {
    const jw_noise_thread *owner;
    pthread_t thread;
    int cpu;
    int failed;
    jw_meeting meeting;
    _Atomic int stop;
    size_t n;
    jw_burst gaps[MOST_GAPS];
} watcher;

static void *watch_body(void *argument) {
    watcher *self = argument;
    const jw_clock *clock = &self->owner->config->clock;
    const uint64_t least = jw_clock_ticks(clock, WATCH_STEP_NS), longest = jw_clock_ticks(clock, WATCH_LONGEST_NS);
    jw_name_thread(self->owner->all->name);
    self->failed = jw_place_thread(self->cpu, 0);
    const bool placed = self->failed == 0;
    jw_meeting_report(&self->meeting);
    unsigned cpu;
    const uint64_t begun = jw_now_ordered(clock->source, &cpu);
    uint64_t last = begun;
    while (placed && !jw_stopped(&self->stop) && last - begun < longest && self->n < MOST_GAPS) {
        const uint64_t now = jw_now_ordered(clock->source, &cpu);
        if (now > last && now - last >= least) {
            self->gaps[self->n++] = (jw_burst){.start = last, .end = now};
        }
        last = now > last ? now : last;
    }
    return NULL;
}

static int by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* What began between two moments: a gap that is older is somebody else's doing, and a long one another task's turn; then
 * nothing can be said. */
static int64_t gaps_between(const watcher *seen, jw_moments at) {
    const uint64_t a_turn = jw_clock_ticks(&seen->owner->config->clock, WATCH_A_TURN_NS);
    uint64_t total = 0;
    for (size_t i = 0; i < seen->n; i++) {
        const uint64_t length = seen->gaps[i].end - seen->gaps[i].start;
        if (seen->gaps[i].start >= at.from && seen->gaps[i].start < at.until) {
            if (length > a_turn) {
                return 0;
            }
            total += length;
        }
    }
    return (int64_t)total;
}

/* Of those that were felt the lower quartile, since other tasks and interrupts only add to it. Hardly any: -ENOTSUP. */
static int keep_typical(jw_noise_thread *self, const watcher *seen, const jw_moments *at) {
    int64_t took[WATCH_TRIES];
    size_t felt = 0;
    for (size_t i = 0; i < WATCH_TRIES; i++) {
        took[felt] = gaps_between(seen, at[i]);
        felt += took[felt] > 0 ? 1 : 0;
    }
    if (felt < WATCH_TRIES / 8) {
        return -ENOTSUP;
    }
    qsort(took, felt, sizeof took[0], by_value);
    self->length_ticks = (uint64_t)took[felt / 4];
    return 0;
}

static int measure_once(jw_noise_thread *self, int cpu, jw_moments (*trigger)(jw_noise_thread *self)) {
    watcher *seen = calloc(1, sizeof *seen);
    if (seen == NULL) {
        return -ENOMEM;
    }
    seen->owner = self;
    seen->cpu = cpu;
    jw_meeting_init(&seen->meeting);
    jw_meeting_expect(&seen->meeting, 1);
    int failed = jw_thread_create(&seen->thread, watch_body, seen);
    if (failed == 0) {
        jw_moments at[WATCH_TRIES];
        jw_meeting_wait(&seen->meeting);
        for (size_t i = 0; i < WATCH_TRIES; i++) {
            jw_sleep_until_ns(jw_posix_ns(CLOCK_MONOTONIC) + WATCH_PAUSE_NS);
            at[i] = trigger(self);
        }
        jw_sleep_until_ns(jw_posix_ns(CLOCK_MONOTONIC) + WATCH_PAUSE_NS);
        atomic_store(&seen->stop, 1);
        pthread_join(seen->thread, NULL);
        failed = seen->failed != 0 ? seen->failed : keep_typical(self, seen, at);
    }
    jw_meeting_destroy(&seen->meeting);
    free(seen);
    return failed;
}

/* Some rounds: on a crowded host, and in a guest whose CPUs the hypervisor runs in turn, one may feel nothing. */
int jw_noise_measure(jw_noise_thread *self, int cpu, jw_moments (*trigger)(jw_noise_thread *self)) {
    int failed = -ENOTSUP;
    for (int round = 0; round < WATCH_ROUNDS && failed == -ENOTSUP; round++) {
        failed = measure_once(self, cpu, trigger);
    }
    return failed;
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
    jw_meeting_report(&self->all->meeting);
    const uint64_t period = self->config->period_ns;
    uint64_t due = jw_posix_ns(CLOCK_MONOTONIC), rested_ns = jw_posix_ns(CLOCK_THREAD_CPUTIME_ID);
    jw_sleep_until_ns(due += period / 4);
    while (ready && !jw_noise_over(self)) {
        /* The kernel's part of a burst, which the thread itself cannot see: off the CPU the last time, onto it now. */
        self->edge_ticks = jw_clock_ticks(&self->config->clock, jw_posix_ns(CLOCK_THREAD_CPUTIME_ID) - rested_ns);
        does->act(self);
        rested_ns = jw_posix_ns(CLOCK_THREAD_CPUTIME_ID);
        due += period - period / 4 + jw_noise_random(self) % (period / 2);
        const uint64_t now = jw_posix_ns(CLOCK_MONOTONIC);
        /* What was missed is not made up for: noise must not become a storm after a pause. */
        due = due < now ? now + period / 4 : due;
        jw_sleep_until_ns(due < self->config->deadline_ns ? due : self->config->deadline_ns);
    }
    if (does->put_away != NULL) {
        does->put_away(self);
    }
    return NULL;
}

static bool sound(const jw_noise_config *config) {
    const bool each = config->kind == JW_NOISE_SPINNERS;
    return config->kind >= 0 && config->kind < JW_NOISES && config->period_ns >= 1000 &&
           config->period_ns <= LONGEST_PERIOD_NS && config->busy_ns < config->period_ns &&
           config->most_bursts > 0 && config->most_bursts <= MOST_BURSTS && config->name != NULL &&
           config->clock.mult != 0 && jw_clock_usable(config->clock.source) &&
           (!each || (config->cpus != NULL && config->cpus_len > 0 && config->cpus_len <= MOST_THREADS &&
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
        if (config->kind == JW_NOISE_SPINNERS) {
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
    jw_meeting_wait(&noise->meeting);
    for (size_t i = 0; i < noise->n; i++) {
        failed = noise->each[i].failed != 0 ? noise->each[i].failed : failed;
    }
    return failed;
}

/* Runs once it returns. NULL with *error = -errno: -EINVAL also for a CPU that the threads may not use, -EACCES and
 * -EPERM for missing rights, -ENOTSUP where nothing of this noise reaches the CPU. */
jw_noise *jw_noise_start(const jw_noise_config *config, int *error) {
    *error = -EINVAL;
    if (!sound(config)) {
        return NULL;
    }
    const size_t n = config->kind == JW_NOISE_SPINNERS ? (size_t)config->cpus_len : 1;
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
    jw_meeting_init(&noise->meeting);
    jw_meeting_expect(&noise->meeting, (int)n);
    *error = start_threads(noise);
    noise->config.cpus = NULL;
    noise->config.name = NULL;
    if (*error != 0) {
        jw_noise_free(noise);
        return NULL;
    }
    return noise;
}

/* Whom to move (tids of this user's threads); none before. */
void jw_noise_aim(jw_noise *noise, const int32_t *tids, size_t n) {
    for (size_t i = 0; i < MOST_TARGETS; i++) {
        atomic_store(&noise->targets[i], i < n ? tids[i] : 0);
    }
}

/* How long a burst is where it was measured once, before the noise began; 0: each burst's log has its own. */
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
        jw_meeting_destroy(&noise->meeting);
        jw_unmap(noise->log, (size_t)noise->config.most_bursts * sizeof *noise->log);
        free(noise);
    }
}
