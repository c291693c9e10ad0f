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

static jw_workload *workload;

static void stop_it(void) {
    jw_workload_stop(workload);
}

static void ends_its_block(jw_workload *made) {
    int failed_thread;
    workload = made;
    CHECK(made != NULL && jw_workload_start(made, &failed_thread) == 0);
    const jw_block_request request = {.count = 10, .duration_ticks = 1000000, .unrecorded = 2};
    jw_block_result result;
    stop_now = stop_it;
    CHECK(jw_workload_block(made, &request, &result) == -ECANCELED && stop_now == NULL);
    jw_workload_free(made);
}

int main(void) {
    static uint64_t records[16 * JW_RECORD_BYTES / sizeof(uint64_t)];
    const jw_workload_config config = {.clock = ns_clock, .cpu = {-1, -1, -1}, .most = 1000, .interval_ns = 100000};
    const jw_ring_options ring = {.slots = 16, .pacing = JW_PACING_SPIN, .records = records, .record_count = 16};
    const jw_spin_options spin = {.small_ticks = 1000};
    int error;
    ends_its_block(jw_ring_new(&config, &ring, &error));
    ends_its_block(jw_spin_new(&config, &spin, &error));
    ends_its_block(jw_wakeup_new(&config, JW_LOCK_NONE, &error));
    ends_its_block(jw_ack_new(&config, &error));
    return 0;
}
