/* Measure the time that a noise takes of a CPU that it only disturbs. A thread there watches the clock while the noise
 * is made a few times. */
#include <errno.h>
#include <stdlib.h>

#include "noise.h"

enum { WATCH_ROUNDS = 8, WATCH_TRIES = 31, MOST_GAPS = 8192 };
/* One step of the watching loop takes some 20 ns, under a sanitizer 200: what takes longer is an interruption. */
#define WATCH_STEP_NS UINT64_C(400)
#define WATCH_A_TURN_NS UINT64_C(1000000)
#define WATCH_PAUSE_NS UINT64_C(700000)
#define WATCH_LONGEST_NS (3 * JW_NS_PER_S)

typedef struct {
    const jw_noise_thread *owner;
    pthread_t thread;
    int cpu;
    int failed;
    jw_latch latch;
    _Atomic int stop;
    size_t n;
    jw_burst gaps[MOST_GAPS];
} watcher;

static void *watch_body(void *argument) {
    watcher *self = argument;
    const jw_clock *clock = &self->owner->config->clock;
    const uint64_t least = jw_clock_ticks(clock, WATCH_STEP_NS), longest = jw_clock_ticks(clock, WATCH_LONGEST_NS);
    jw_name_thread(jw_noise_name(self->owner));
    self->failed = jw_place_thread(self->cpu, 0);
    const bool placed = self->failed == 0;
    jw_latch_count_down(&self->latch);
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

/* Return the sum of the gaps that began between two moments; an older gap has another cause. Return 0 if one of them is
 * so long that it was another task's turn: then nothing can be said. */
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
    qsort(took, felt, sizeof took[0], jw_by_value);
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
    jw_latch_arm(&seen->latch, 1);
    int failed = jw_thread_create(&seen->thread, watch_body, seen);
    if (failed == 0) {
        jw_moments at[WATCH_TRIES];
        jw_latch_wait(&seen->latch);
        for (size_t i = 0; i < WATCH_TRIES; i++) {
            (void)jw_sleep_until_ns(jw_posix_ns(CLOCK_MONOTONIC) + WATCH_PAUSE_NS);
            at[i] = trigger(self);
        }
        (void)jw_sleep_until_ns(jw_posix_ns(CLOCK_MONOTONIC) + WATCH_PAUSE_NS);
        atomic_store(&seen->stop, 1);
        pthread_join(seen->thread, NULL);
        failed = seen->failed != 0 ? seen->failed : keep_typical(self, seen, at);
    }
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
