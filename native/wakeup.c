/* The sleeper: one thread sleeps until a time that was set before, again and again; what it is late by is the time from
 * the timer's due moment to its first reading of the clock: timer, idle state, interrupt, scheduler, and the wait for a
 * lock where it takes one. */
#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>

#include "clock.h"
#include "random.h"
#include "workload.h"

enum { LEAST_INTERVAL_NS = 1000, PAIR_TRIES = 8, PAIR_WIDTH_NS = 500, SLACK_NS = 1 };

/* Times of the helpers, in ns: the holder works with the lock and pauses without it; the other works and sleeps. The pauses
 * are drawn, so that nothing keeps step with the sleeper's timer. Together they use less than half of the CPU. */
enum { HELPERS = 2, HOLD_NS = 100000, HOLD_PAUSE_NS = 200000, BUSY_NS = 3000000, BUSY_PAUSE_NS = 8000000 };

typedef struct {
    jw_workload base;
    int lock;
    pthread_mutex_t mutex; /* made unless lock is JW_LOCK_NONE */
    pthread_t helpers[HELPERS];
    int started; /* helpers; written by the sleeper, read once its thread has ended */
} jw_sleeper;

/* A moment of CLOCK_MONOTONIC, a period ahead at most, in the run's clock. Both clocks are read together just before the
 * sleep, and anew where something came between the readings: so neither a slewed clock nor an interruption
 * shifts what is due. */
static uint64_t in_ticks(const jw_clock *clock, int source, uint64_t moment_ns) {
    if (source == JW_CLOCK_MONOTONIC) {
        return moment_ns;
    }
    const uint64_t narrow = jw_clock_ticks(clock, PAIR_WIDTH_NS);
    uint64_t best = UINT64_MAX, ticks = 0, ns = 0;
    for (int tries = 0; tries < PAIR_TRIES && best > narrow; tries++) {
        const uint64_t before = jw_now(source);
        const uint64_t between = jw_posix_ns(CLOCK_MONOTONIC);
        const uint64_t after = jw_now(source);
        if (after >= before && after - before < best) {
            best = after - before;
            ticks = before + best / 2;
            ns = between;
        }
    }
    return moment_ns >= ns ? ticks + jw_clock_ticks(clock, moment_ns - ns) : ticks - jw_clock_ticks(clock, ns - moment_ns);
}

typedef struct {
    uint64_t due_ns; /* CLOCK_MONOTONIC */
    uint64_t due;    /* ticks */
    uint64_t woken;
    unsigned cpu;
    uint64_t missed; /* periods that were over before the thread could sleep */
} beat;

/* Sleep until the next period's end. Return 0, or -errno of a sleep that the kernel refused. Periods that were lost to
 * others are left out: a time that is over before the sleep begins measures no wake-up. */
static int next(jw_workload *wakeup, int source, beat *at) {
    jw_sleeper *self = (jw_sleeper *)wakeup;
    const uint64_t interval_ns = wakeup->config.interval_ns;
    at->due_ns += interval_ns;
    const uint64_t now_ns = jw_posix_ns(CLOCK_MONOTONIC);
    if (now_ns >= at->due_ns) {
        const uint64_t lost = (now_ns - at->due_ns) / interval_ns + 1;
        at->due_ns += lost * interval_ns;
        at->missed += lost;
    }
    at->due = in_ticks(&wakeup->config.clock, source, at->due_ns);
    const int failed = jw_sleep_until_ns(at->due_ns);
    if (self->lock != JW_LOCK_NONE) {
        pthread_mutex_lock(&self->mutex);
    }
    at->woken = jw_now_ordered(source, &at->cpu);
    if (self->lock != JW_LOCK_NONE) {
        pthread_mutex_unlock(&self->mutex);
    }
    return failed;
}

/* Take a lower priority than the sleeper, whose priority and CPUs a new thread of its has. */
static void below_the_sleeper(const char *name, int by) {
    struct sched_param parameter;
    jw_name_thread(name);
    if (sched_getparam(0, &parameter) == 0 && parameter.sched_priority > by) {
        (void)jw_place_thread(-1, parameter.sched_priority - by);
    }
}

/* Work for so much of the thread's own time on a CPU. */
static void work(uint64_t ns) {
    const uint64_t begun = jw_posix_ns(CLOCK_THREAD_CPUTIME_ID);
    while (jw_posix_ns(CLOCK_THREAD_CPUTIME_ID) - begun < ns) {
    }
}

/* Sleep for `least` to twice as many ns. */
static void pause_for(uint64_t least, uint64_t *state) {
    (void)jw_sleep_until_ns(jw_posix_ns(CLOCK_MONOTONIC) + least + jw_random(state) % (least + 1));
}

static void *hold(void *argument) {
    jw_sleeper *self = argument;
    uint64_t state = 1;
    below_the_sleeper("lock-holder", 2);
    while (!jw_stopped(&self->base.stop)) {
        pthread_mutex_lock(&self->mutex);
        work(HOLD_NS);
        pthread_mutex_unlock(&self->mutex);
        pause_for(HOLD_PAUSE_NS, &state);
    }
    return NULL;
}

static void *keep_busy(void *argument) {
    const jw_sleeper *self = argument;
    uint64_t state = 2;
    below_the_sleeper("between", 1);
    while (!jw_stopped(&self->base.stop)) {
        pause_for(BUSY_PAUSE_NS, &state);
        work(BUSY_NS);
    }
    return NULL;
}

/* Start the helpers in the sleeper's own thread: they have its CPUs and its control group then. Return 0 or -errno. */
static int start_helpers(jw_sleeper *self) {
    static void *(*const bodies[HELPERS])(void *) = {hold, keep_busy};
    while (self->lock != JW_LOCK_NONE && self->started < HELPERS) {
        const int failed = jw_thread_create(&self->helpers[self->started], bodies[self->started], self);
        if (failed != 0) {
            return failed;
        }
        self->started++;
    }
    return 0;
}

static void note(jw_workload *wakeup, uint64_t entry, const beat *at) {
    wakeup->samples[JW_DUE].stamps[entry] = at->due;
    wakeup->samples[JW_WOKEN].stamps[entry] = at->woken;
    wakeup->samples[JW_WOKEN].cpus[entry] = (uint16_t)at->cpu;
}

static int run_block(jw_workload *wakeup, int source, beat *at) {
    jw_block_result *result = &wakeup->result;
    int failed = start_helpers((jw_sleeper *)wakeup);
    jw_usage_begin(wakeup, 0);
    failed = failed != 0 ? failed : next(wakeup, source, at);
    note(wakeup, 0, at);
    const uint64_t begun = at->woken;
    at->missed = 0;
    uint64_t count = 0;
    do {
        failed = failed != 0 ? failed : next(wakeup, source, at);
        note(wakeup, ++count, at);
    } while (failed == 0 && at->woken - begun < wakeup->request.duration_ticks && count < jw_block_most(wakeup) &&
             !jw_stopped(&wakeup->stop));
    jw_usage_end(wakeup, 0);
    result->count = count;
    result->core_hz = jw_core_hz(&wakeup->config.clock);
    result->wakeup.missed = at->missed;
    result->wakeup.slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    return failed;
}

JW_INLINE void sleeper(jw_workload *wakeup, int source) {
    beat at = {.due_ns = jw_posix_ns(CLOCK_MONOTONIC)};
    for (uint32_t answered = 0;; answered++) {
        int failed = 0;
        while (failed == 0 && !jw_stopped(&wakeup->stop) && !jw_block_asked(wakeup, answered)) {
            failed = next(wakeup, source, &at);
        }
        if (jw_stopped(&wakeup->stop)) {
            return;
        }
        failed = failed != 0 ? failed : run_block(wakeup, source, &at);
        if (failed != 0) {
            jw_give_up(wakeup, failed);
            return;
        }
        jw_block_done(wakeup);
    }
}

static void run_sleeper(jw_workload *workload) {
    /* Of a thread that is not real-time the kernel may put timers off by 50 us, to wake up once for several of them
     * (PR_SET_TIMERSLACK, prctl(2)). The result has the slack that the thread got. */
    (void)prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0);
    JW_PER_CLOCK(workload->config.clock.source, source, sleeper(workload, source))
}

static void end_helpers(jw_workload *workload) {
    jw_sleeper *self = (jw_sleeper *)workload;
    for (int i = 0; i < self->started; i++) {
        pthread_join(self->helpers[i], NULL);
    }
    if (self->lock != JW_LOCK_NONE) {
        pthread_mutex_destroy(&self->mutex);
    }
}

/* Return 0, or -errno where the kernel lends no priorities. */
static int make_lock(jw_sleeper *self, int lock) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    const int protocol = lock == JW_LOCK_INHERIT ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE;
    int failed = pthread_mutexattr_setprotocol(&attributes, protocol);
    failed = failed != 0 ? failed : pthread_mutex_init(&self->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    self->lock = failed == 0 ? lock : JW_LOCK_NONE;
    return -failed;
}

static const jw_kind wakeup_kind = {.bytes = sizeof(jw_sleeper),
                                    .parts = {{"sleeper", run_sleeper}},
                                    .least_interval_ns = LEAST_INTERVAL_NS,
                                    .close = end_helpers};

jw_workload *jw_wakeup_new(const jw_workload_config *config, int lock, int *error) {
    const bool known = lock >= JW_LOCK_NONE && lock <= JW_LOCK_INHERIT;
    *error = -EINVAL;
    jw_sleeper *made = known ? jw_workload_make(&wakeup_kind, config, 1, error) : NULL;
    if (made == NULL) {
        return NULL;
    }
    jw_workload_sample(&made->base, JW_DUE, (size_t)config->most + 1);
    jw_workload_sample(&made->base, JW_WOKEN, (size_t)config->most + 1);
    return jw_workload_made(&made->base, lock == JW_LOCK_NONE ? 0 : make_lock(made, lock), error);
}
