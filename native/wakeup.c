/* The sleeper: one thread sleeps until a time that was set before, again and again; what it is late by is the time from
 * the timer's due moment to its first reading of the clock: timer, idle state, interrupt, scheduler. */
#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#include "clock.h"
#include "workload.h"

enum { LEAST_INTERVAL_NS = 1000, PAIR_TRIES = 8, PAIR_WIDTH_NS = 500, SLACK_NS = 1 };

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
 * others are left out: a time that is over before the sleep begins measures no wake-up. The time is absolute, so one that
 * a stop interrupts does not become longer. */
static int next(const jw_workload *wakeup, int source, beat *at) {
    const uint64_t interval_ns = wakeup->config.interval_ns;
    at->due_ns += interval_ns;
    const uint64_t now_ns = jw_posix_ns(CLOCK_MONOTONIC);
    if (now_ns >= at->due_ns) {
        const uint64_t lost = (now_ns - at->due_ns) / interval_ns + 1;
        at->due_ns += lost * interval_ns;
        at->missed += lost;
    }
    at->due = in_ticks(&wakeup->config.clock, source, at->due_ns);
    const struct timespec when = {.tv_sec = (time_t)(at->due_ns / JW_NS_PER_S),
                                  .tv_nsec = (long)(at->due_ns % JW_NS_PER_S)};
    int failed;
    while ((failed = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL)) == EINTR) {
    }
    at->woken = jw_now_ordered(source, &at->cpu);
    return -failed;
}

static void note(jw_workload *wakeup, uint64_t entry, const beat *at) {
    wakeup->samples[JW_DUE].stamps[entry] = at->due;
    wakeup->samples[JW_WOKEN].stamps[entry] = at->woken;
    wakeup->samples[JW_WOKEN].cpus[entry] = (uint16_t)at->cpu;
}

static int run_block(jw_workload *wakeup, int source, beat *at) {
    jw_block_result *result = &wakeup->result;
    jw_usage_begin(wakeup, 0);
    int failed = next(wakeup, source, at);
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

static const jw_kind wakeup_kind = {
    .bytes = sizeof(jw_workload), .parts = {{"sleeper", run_sleeper}}, .least_interval_ns = LEAST_INTERVAL_NS};

jw_workload *jw_wakeup_new(const jw_workload_config *config, int *error) {
    jw_workload *wakeup = jw_workload_make(&wakeup_kind, config, 1, error);
    if (wakeup == NULL) {
        return NULL;
    }
    jw_workload_sample(wakeup, JW_DUE, (size_t)config->most + 1);
    jw_workload_sample(wakeup, JW_WOKEN, (size_t)config->most + 1);
    return jw_workload_made(wakeup, 0, error);
}
