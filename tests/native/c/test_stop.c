/* link: -Wl,--wrap=jw_latch_arm */
/* A stop that completes between a block's look at `stop` and its arming of the latch ends the block all the same: the
 * linker puts the stop exactly there. Before the latch could be closed, each of these blocks waited for ever. */
#include <errno.h>

#include "check.h"
#include "clock.h"
#include "threads.h"

static const jw_clock ns_clock = {
    .source = JW_CLOCK_MONOTONIC, .rate_hz = 1000000000, .mult = UINT64_C(1) << JW_CLOCK_SHIFT};

static void (*stop_now)(void);

void __real_jw_latch_arm(jw_latch *latch, int pending);
void __wrap_jw_latch_arm(jw_latch *latch, int pending);

void __wrap_jw_latch_arm(jw_latch *latch, int pending) {
    if (stop_now != NULL) {
        void (*stop)(void) = stop_now;
        stop_now = NULL;
        stop();
    }
    __real_jw_latch_arm(latch, pending);
}

static jw_ring *ring;
static jw_spin *spin;
static jw_wakeup *wakeup;
static jw_ack *ack;

static void stop_ring(void) {
    jw_ring_stop(ring);
}

static void stop_spin(void) {
    jw_spin_stop(spin);
}

static void stop_wakeup(void) {
    jw_wakeup_stop(wakeup);
}

static void stop_ack(void) {
    jw_ack_stop(ack);
}

static void of_a_ring(void) {
    static uint64_t records[16 * JW_RECORD_BYTES / sizeof(uint64_t)];
    const jw_ring_config config = {.clock = ns_clock,
                                   .slots = 16,
                                   .most_messages = 1000,
                                   .cpu = {-1, -1, -1},
                                   .pacing = JW_PACING_SPIN,
                                   .interval_ns = 1000,
                                   .records = records,
                                   .record_count = 16};
    int error, failed_thread;
    ring = jw_ring_new(&config, &error);
    CHECK(ring != NULL && jw_ring_start(ring, &failed_thread) == 0);
    const jw_block_request request = {.messages = 10, .unrecorded = 2};
    jw_block_result result;
    stop_now = stop_ring;
    CHECK(jw_ring_block(ring, &request, &result) == -ECANCELED && stop_now == NULL);
    jw_ring_free(ring);
}

static void of_a_spin(void) {
    const jw_spin_config config = {.clock = ns_clock, .cpu = -1, .small_ticks = 1000, .most_gaps = 1000};
    int error;
    spin = jw_spin_new(&config, &error);
    CHECK(spin != NULL && jw_spin_start(spin) == 0);
    jw_spin_result result;
    stop_now = stop_spin;
    CHECK(jw_spin_block(spin, 1000, 0, &result) == -ECANCELED && stop_now == NULL);
    jw_spin_free(spin);
}

static void of_a_wakeup(void) {
    const jw_wakeup_config config = {.clock = ns_clock, .most_wakeups = 10, .interval_ns = 200000, .cpu = -1};
    int error;
    wakeup = jw_wakeup_new(&config, &error);
    CHECK(wakeup != NULL && jw_wakeup_start(wakeup) == 0);
    jw_wakeup_result result;
    stop_now = stop_wakeup;
    CHECK(jw_wakeup_block(wakeup, 1000000, &result) == -ECANCELED && stop_now == NULL);
    jw_wakeup_free(wakeup);
}

static void of_an_ack(void) {
    const jw_ack_config config = {.clock = ns_clock, .most_segments = 100, .interval_ns = 100000, .cpu = {-1, -1}};
    int error, failed_thread;
    ack = jw_ack_new(&config, &error);
    CHECK(ack != NULL && jw_ack_start(ack, &failed_thread) == 0);
    jw_ack_result result;
    stop_now = stop_ack;
    CHECK(jw_ack_block(ack, 1000000, &result) == -ECANCELED && stop_now == NULL);
    jw_ack_free(ack);
}

int main(void) {
    of_a_ring();
    of_a_spin();
    of_a_wakeup();
    of_an_ack();
    return 0;
}
