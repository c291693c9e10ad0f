/* The sleeper, live: what it notes agrees with itself, whatever else runs on this machine. */
#include <pthread.h>

#include "check.h"
#include "clock.h"

static const jw_clock ns_clock = {
    .source = JW_CLOCK_MONOTONIC, .rate_hz = 1000000000, .mult = UINT64_C(1) << JW_CLOCK_SHIFT};

enum { INTERVAL_NS = 200000 };

static int block(jw_workload *workload, uint64_t duration_ticks, jw_block_result *result) {
    const jw_block_request request = {.duration_ticks = duration_ticks};
    return jw_workload_block(workload, &request, result);
}

static jw_workload *started_with(jw_clock clock, uint64_t most, int lock) {
    const jw_workload_config config = {.clock = clock, .most = most, .interval_ns = INTERVAL_NS, .cpu = {-1}};
    int error;
    jw_workload *wakeup = jw_wakeup_new(&config, lock, &error);
    CHECK(wakeup != NULL && error == 0 && jw_workload_start(wakeup, &error) == 0 && jw_workload_tid(wakeup, 0) > 0);
    return wakeup;
}

static jw_workload *started(jw_clock clock, uint64_t most) {
    return started_with(clock, most, JW_LOCK_NONE);
}

/* With a lock each reading comes after it was taken; the helpers end with the workload. Priorities need rights: that is
 * tested elsewhere. */
static void locking(int lock) {
    jw_workload *wakeup = started_with(ns_clock, 1000, lock);
    for (int round = 0; round < 2; round++) {
        jw_block_result result;
        CHECK(block(wakeup, 20000000, &result) == 0);
        const uint64_t *due = jw_workload_stamps(wakeup, JW_DUE), *woken = jw_workload_stamps(wakeup, JW_WOKEN);
        CHECK(result.count > 0 && woken[result.count] >= due[result.count]);
    }
    jw_workload_free(wakeup);
}

static void sleeping(void) {
    jw_workload *wakeup = started(ns_clock, 1000);
    for (int round = 0; round < 3; round++) {
        jw_block_result result;
        CHECK(block(wakeup, 5000000, &result) == 0);
        const uint64_t *due = jw_workload_stamps(wakeup, JW_DUE), *woken = jw_workload_stamps(wakeup, JW_WOKEN);
        CHECK(result.count > 0 && result.count <= 1000 && woken[result.count] - woken[0] >= 5000000);
        for (uint64_t i = 1; i <= result.count; i++) {
            /* Never early, by the kernel's own clock; and what is due lies a whole number of periods further on. */
            CHECK(woken[i] >= due[i] && due[i] > due[i - 1] && (due[i] - due[i - 1]) % INTERVAL_NS == 0);
        }
        CHECK((due[result.count] - due[0]) / INTERVAL_NS == result.count + result.wakeup.missed);
        CHECK(result.usage[0].voluntary_switches > 0);
        /* It slept, so it came onto its CPU again; where the kernel does not count that, both are below 0. */
        CHECK(result.usage[0].ran_ns > 0);
        CHECK(result.usage[0].timeslices > 0 || result.usage[0].waited_ns == -1);
        CHECK((result.usage[0].timeslices < 0) == (result.usage[0].waited_ns < 0));
        CHECK(result.wakeup.slack_ns == 1);
    }
    jw_workload_free(wakeup);
}

/* By another clock than the kernel's timers the same moments come out, but for what the two may differ by. */
static void by_the_counter(void) {
    const int source = jw_clock_usable(JW_CLOCK_TSC) ? JW_CLOCK_TSC : JW_CLOCK_CNTVCT;
    if (!jw_clock_usable(source)) {
        return;
    }
    jw_bracket first, last;
    CHECK(jw_clock_bracket(source, CLOCK_MONOTONIC, &first) == 0);
    const struct timespec pause = {.tv_nsec = 20000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    CHECK(jw_clock_bracket(source, CLOCK_MONOTONIC, &last) == 0);
    jw_clock clock;
    const uint64_t rate = (last.ticks - first.ticks) * JW_NS_PER_S / (last.ns - first.ns);
    CHECK(jw_clock_init(&clock, source, rate) == 0);
    jw_workload *wakeup = started(clock, 1000);
    jw_block_result result;
    CHECK(block(wakeup, jw_clock_ticks(&clock, 20000000), &result) == 0);
    const uint64_t *due = jw_workload_stamps(wakeup, JW_DUE), *woken = jw_workload_stamps(wakeup, JW_WOKEN);
    for (uint64_t i = 1; i <= result.count; i++) {
        CHECK(jw_ns_between(&clock, due[i], woken[i]) > -1000);
    }
    jw_workload_free(wakeup);
}

static void full_arrays_end_a_block(void) {
    jw_workload *wakeup = started(ns_clock, 7);
    jw_block_result result;
    CHECK(block(wakeup, UINT64_C(3600000000000), &result) == 0 && result.count == 7);
    /* However short a block is, it has a wake-up. */
    CHECK(block(wakeup, 1, &result) == 0 && result.count == 1);
    jw_workload_free(wakeup);
}

static void *stop_it(void *wakeup) {
    const struct timespec pause = {.tv_nsec = 5000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    jw_workload_stop(wakeup);
    return NULL;
}

static void stopped_in_a_block(void) {
    jw_workload *wakeup = started(ns_clock, 1000000);
    pthread_t stopper;
    CHECK(pthread_create(&stopper, NULL, stop_it, wakeup) == 0);
    jw_block_result result;
    CHECK(block(wakeup, UINT64_C(3600000000000), &result) != 0);
    CHECK(pthread_join(stopper, NULL) == 0);
    CHECK(block(wakeup, 1, &result) != 0);
    jw_workload_free(wakeup);
}

static void what_cannot_be(void) {
    const uint64_t wrong[][2] = {{0, INTERVAL_NS}, {10, 0}, {10, UINT64_C(3600000000000)}, {UINT64_MAX, INTERVAL_NS}};
    int error;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const jw_workload_config config = {
            .clock = ns_clock, .most = wrong[i][0], .interval_ns = wrong[i][1], .cpu = {-1}};
        CHECK(jw_wakeup_new(&config, JW_LOCK_NONE, &error) == NULL && error != 0);
    }
    const jw_workload_config nowhere = {
        .clock = ns_clock, .most = 10, .interval_ns = INTERVAL_NS, .cpu = {60000}};
    jw_workload *wakeup = jw_wakeup_new(&nowhere, JW_LOCK_NONE, &error);
    CHECK(wakeup != NULL && jw_workload_start(wakeup, &error) != 0);
    jw_block_result result;
    CHECK(block(wakeup, 1, &result) != 0);
    jw_workload_free(wakeup);
    jw_workload_free(NULL);
}

static void numbers_outside(void) {
    jw_workload *wakeup = started(ns_clock, 7);
    const int threads[] = {-1, 1, JW_MOST_THREADS, INT_MIN, INT_MAX};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        CHECK(jw_workload_tid(wakeup, threads[i]) == -EINVAL);
    }
    const int series[] = {-1, JW_WOKEN + 1, JW_MOST_SAMPLES, INT_MIN, INT_MAX};
    for (size_t i = 0; i < sizeof series / sizeof series[0]; i++) {
        CHECK(jw_workload_stamps(wakeup, series[i]) == NULL && jw_workload_cpus(wakeup, series[i]) == NULL);
    }
    jw_workload_free(wakeup);
}

int main(void) {
    numbers_outside();
    sleeping();
    locking(JW_LOCK_PLAIN);
    locking(JW_LOCK_INHERIT);
    by_the_counter();
    full_arrays_end_a_block();
    stopped_in_a_block();
    what_cannot_be();
    return 0;
}
