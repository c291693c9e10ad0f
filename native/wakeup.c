/* The sleeper: one thread sleeps until a time that was set before, again and again; what it is late by is the time from
 * the timer's due moment to its first reading of the clock: timer, idle state, interrupt, scheduler. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "clock.h"
#include "threads.h"

enum { LEAST_INTERVAL_NS = 1000, PAIR_TRIES = 8, PAIR_WIDTH_NS = 500, SLACK_NS = 1 };

struct jw_wakeup {
    jw_wakeup_config config;
    uint64_t *due; /* most_wakeups + 1 entries each */
    uint64_t *woken;
    uint16_t *cpus;
    jw_latch latch;
    pthread_t thread;
    atomic_bool started; /* stopped from another thread while a block is asked for */
    int tid;
    int failed;
    uint64_t duration_ticks;
    jw_wakeup_result result;
    _Alignas(JW_APART) _Atomic int stop;
    _Atomic int broken;
    _Atomic uint32_t asked;
};

static size_t entries(const jw_wakeup *wakeup) {
    return wakeup->config.most_wakeups + 1;
}

/* NULL with *error = -EINVAL or -ENOMEM. */
jw_wakeup *jw_wakeup_new(const jw_wakeup_config *config, int *error) {
    *error = -EINVAL;
    if (config->most_wakeups == 0 || config->most_wakeups > UINT32_MAX || config->interval_ns < LEAST_INTERVAL_NS ||
        config->interval_ns > JW_LONGEST_INTERVAL_NS || !jw_clock_usable(config->clock.source) ||
        config->clock.mult == 0) {
        return NULL;
    }
    *error = -ENOMEM;
    jw_wakeup *wakeup = jw_map(sizeof *wakeup);
    if (wakeup == NULL) {
        return NULL;
    }
    wakeup->config = *config;
    jw_latch_init(&wakeup->latch);
    wakeup->due = jw_map(entries(wakeup) * sizeof *wakeup->due);
    wakeup->woken = jw_map(entries(wakeup) * sizeof *wakeup->woken);
    wakeup->cpus = jw_map(entries(wakeup) * sizeof *wakeup->cpus);
    if (wakeup->due == NULL || wakeup->woken == NULL || wakeup->cpus == NULL) {
        jw_wakeup_free(wakeup);
        return NULL;
    }
    *error = 0;
    return wakeup;
}

/* A moment of CLOCK_MONOTONIC, a period ahead at most, in the run's clock. Both clocks are read together just before the
 * sleep, and anew where somebody came between the readings: so neither a slewed clock nor a theft shifts what is due. */
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

/* Sleep until the next period's end; false when the kernel refuses to. Periods that were lost to others are left out: a
 * time that is over before the sleep begins measures no wake-up. The time is absolute, so one that a stop interrupts does
 * not become longer. */
static bool next(const jw_wakeup *wakeup, int source, beat *at) {
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
    return failed == 0;
}

static void note(jw_wakeup *wakeup, uint64_t entry, const beat *at) {
    wakeup->due[entry] = at->due;
    wakeup->woken[entry] = at->woken;
    wakeup->cpus[entry] = (uint16_t)at->cpu;
}

static bool run_block(jw_wakeup *wakeup, int source, beat *at) {
    jw_wakeup_result *result = &wakeup->result;
    jw_usage at_start;
    jw_thread_usage(&at_start);
    bool slept = next(wakeup, source, at);
    note(wakeup, 0, at);
    at->missed = 0;
    uint64_t count = 0;
    do {
        slept = slept && next(wakeup, source, at);
        note(wakeup, ++count, at);
    } while (slept && at->woken - wakeup->woken[0] < wakeup->duration_ticks && count < wakeup->config.most_wakeups &&
             !jw_stopped(&wakeup->stop));
    jw_usage_since(&at_start, &result->usage);
    result->count = count;
    result->missed = at->missed;
    result->slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    result->core_hz = jw_core_hz(&wakeup->config.clock);
    return slept;
}

JW_INLINE void sleeper(jw_wakeup *wakeup, int source) {
    beat at = {.due_ns = jw_posix_ns(CLOCK_MONOTONIC)};
    bool slept = true;
    for (uint32_t answered = 0; slept; answered++) {
        while (slept && !jw_stopped(&wakeup->stop) &&
               atomic_load_explicit(&wakeup->asked, memory_order_acquire) == answered) {
            slept = next(wakeup, source, &at);
        }
        if (jw_stopped(&wakeup->stop)) {
            return;
        }
        slept = slept && run_block(wakeup, source, &at);
        if (slept) {
            jw_latch_count_down(&wakeup->latch);
        }
    }
    /* The kernel refused a sleep: the thread ends, and no block can be made any more. */
    atomic_store(&wakeup->broken, 1);
    jw_latch_close(&wakeup->latch);
}

static void *sleeper_body(void *argument) {
    jw_wakeup *wakeup = argument;
    jw_name_thread("sleeper");
    wakeup->tid = jw_thread_id();
    /* Of a thread that is not real-time the kernel may put timers off by 50 us, to wake up once for several of them
     * (PR_SET_TIMERSLACK, prctl(2)). What was obtained is in the result. */
    (void)prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0);
    wakeup->failed = jw_place_thread(wakeup->config.cpu, wakeup->config.fifo_priority);
    bool placed = wakeup->failed == 0;
    jw_latch_count_down(&wakeup->latch);
    if (placed) {
        sleeper(wakeup, wakeup->config.clock.source);
    }
    return NULL;
}

/* Start sleeping, unrecorded. 0, or -errno when the thread could not be placed. */
int jw_wakeup_start(jw_wakeup *wakeup) {
    jw_latch_arm(&wakeup->latch, 1);
    int failed = jw_thread_create(&wakeup->thread, sleeper_body, wakeup);
    if (failed != 0) {
        return failed;
    }
    wakeup->started = true;
    jw_latch_wait(&wakeup->latch);
    failed = wakeup->failed;
    if (failed != 0) {
        jw_wakeup_stop(wakeup);
    }
    return failed;
}

int jw_wakeup_tid(const jw_wakeup *wakeup) {
    return wakeup->tid;
}

/* One block: ends by time, or when the arrays are full, with one wake-up at least. Sleeps meanwhile. */
int jw_wakeup_block(jw_wakeup *wakeup, uint64_t duration_ticks, jw_wakeup_result *result) {
    if (jw_stopped(&wakeup->stop) || !wakeup->started || atomic_load(&wakeup->broken)) {
        return -ECANCELED;
    }
    wakeup->duration_ticks = duration_ticks;
    memset(&wakeup->result, 0, sizeof wakeup->result);
    jw_latch_arm(&wakeup->latch, 1);
    atomic_fetch_add_explicit(&wakeup->asked, 1, memory_order_release);
    jw_latch_wait(&wakeup->latch);
    if (jw_stopped(&wakeup->stop) || atomic_load(&wakeup->broken)) {
        return -ECANCELED;
    }
    *result = wakeup->result;
    return 0;
}

const uint64_t *jw_wakeup_due(const jw_wakeup *wakeup) {
    return wakeup->due;
}

const uint64_t *jw_wakeup_woken(const jw_wakeup *wakeup) {
    return wakeup->woken;
}

const uint16_t *jw_wakeup_cpus(const jw_wakeup *wakeup) {
    return wakeup->cpus;
}

int jw_wakeup_lock_arrays(const jw_wakeup *wakeup) {
    int failed = mlock(wakeup, sizeof *wakeup);
    failed |= mlock(wakeup->due, entries(wakeup) * sizeof *wakeup->due);
    failed |= mlock(wakeup->woken, entries(wakeup) * sizeof *wakeup->woken);
    failed |= mlock(wakeup->cpus, entries(wakeup) * sizeof *wakeup->cpus);
    return failed != 0 ? -errno : 0;
}

/* Returns after one interval at most: the thread looks at `stop` whenever it wakes up. */
void jw_wakeup_stop(jw_wakeup *wakeup) {
    atomic_store(&wakeup->stop, 1);
    if (wakeup->started) {
        pthread_join(wakeup->thread, NULL);
        wakeup->started = false;
    }
    jw_latch_close(&wakeup->latch);
}

void jw_wakeup_free(jw_wakeup *wakeup) {
    if (wakeup == NULL) {
        return;
    }
    jw_wakeup_stop(wakeup);
    jw_latch_destroy(&wakeup->latch);
    jw_unmap(wakeup->due, entries(wakeup) * sizeof *wakeup->due);
    jw_unmap(wakeup->woken, entries(wakeup) * sizeof *wakeup->woken);
    jw_unmap(wakeup->cpus, entries(wakeup) * sizeof *wakeup->cpus);
    jw_unmap(wakeup, sizeof *wakeup);
}
