/* The sampler and the line between two threads, live. */
#include <errno.h>

#include "check.h"
#include "clock.h"

static const jw_clock ns_clock = {
    .source = JW_CLOCK_MONOTONIC, .rate_hz = 1000000000, .mult = UINT64_C(1) << JW_CLOCK_SHIFT};

static uint64_t sum(const uint64_t *counts, size_t n) {
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        total += counts[i];
    }
    return total;
}

static jw_workload *started(uint64_t most_gaps, const jw_spin_options *options) {
    const jw_workload_config config = {.clock = ns_clock, .most = most_gaps, .cpu = {-1}};
    int error;
    jw_workload *spin = jw_spin_new(&config, options, &error);
    CHECK(spin != NULL && jw_workload_start(spin, &error) == 0);
    return spin;
}

static void block(jw_workload *spin, uint64_t readings, uint64_t duration_ticks, jw_block_result *result) {
    const jw_block_request request = {.count = readings, .duration_ticks = duration_ticks};
    CHECK(jw_workload_block(spin, &request, result) == 0);
}

static void sampling(void) {
    const jw_spin_options options = {.small_ticks = 1000};
    jw_workload *spin = started(100000, &options);
    for (int round = 0; round < 3; round++) {
        jw_block_result result;
        block(spin, 0, 5000000, &result);
        /* Every reading is in the table, in the log, or ran backwards; and every one has a CPU. */
        CHECK(sum(jw_spin_table(spin), 1000) + result.spin.gaps + result.spin.negative == result.count);
        CHECK(sum(jw_spin_readings_by_cpu(spin), 65536) == result.count);
        for (uint64_t i = 0; i < result.spin.gaps; i++) {
            const jw_gap *gap = &jw_spin_gaps(spin)[i];
            CHECK(gap->end - gap->start >= 1000 && gap->start >= result.spin.start && gap->end <= result.spin.end);
        }
        block(spin, 6400, 0, &result);
        CHECK(result.count == 6400);
    }
    jw_workload_free(spin);
}

/* With a chase between them the readings are as many as are counted, and none is lost. */
static void chasing(void) {
    const jw_spin_options plain = {.small_ticks = 1000}, chase = {.small_ticks = 1000, .chase_bytes = 1 << 20};
    uint64_t readings[2];
    for (int i = 0; i < 2; i++) {
        jw_workload *spin = started(100000, i == 0 ? &plain : &chase);
        jw_block_result result;
        block(spin, 0, 5000000, &result);
        CHECK(sum(jw_spin_table(spin), 1000) + result.spin.gaps + result.spin.negative == result.count);
        readings[i] = result.count;
        jw_workload_free(spin);
    }
    CHECK(readings[0] > 0 && readings[1] > 0);
    const jw_spin_options tiny = {.small_ticks = 1000, .chase_bytes = 64};
    const jw_workload_config config = {.clock = ns_clock, .most = 1000, .cpu = {-1}};
    int error;
    CHECK(jw_spin_new(&config, &tiny, &error) == NULL && error == -EINVAL);
}

static void a_full_log_ends_a_block(void) {
    const jw_spin_options options = {.small_ticks = 1};
    jw_workload *spin = started(640, &options);
    jw_block_result result;
    block(spin, 0, UINT64_C(3600000000000), &result);
    CHECK(result.spin.gaps <= 640 && result.spin.gaps > 640 - 64);
    jw_workload_free(spin);
}

/* A block is over soon after its first long gap, and not before. */
static void a_long_gap_ends_a_block(void) {
    const jw_spin_options options = {.small_ticks = 1, .stop_ticks = 1, .tail_ticks = 2000000};
    jw_workload *spin = started(1 << 20, &options);
    jw_block_result result;
    block(spin, 0, UINT64_C(3600000000000), &result);
    CHECK(result.spin.gaps > 0 && result.spin.end - jw_spin_gaps(spin)[0].end >= 2000000);
    CHECK(result.spin.end - result.spin.start < UINT64_C(600000000000));
    jw_workload_free(spin);
    const jw_spin_options never = {.small_ticks = 1000, .stop_ticks = UINT64_C(3600000000000)};
    spin = started(100000, &never);
    block(spin, 0, 5000000, &result);
    CHECK(result.spin.end - result.spin.start >= 5000000);
    jw_workload_free(spin);
}

/* Half of the time paused: a thread's own pause is no gap, however long, and every reading is accounted for. */
static void pausing_in_between(int busily) {
    const jw_spin_options options = {
        .pause_busily = busily, .small_ticks = 1000, .busy_ticks = 500000, .period_ticks = 1000000};
    jw_workload *spin = started(100000, &options);
    for (int round = 0; round < 3; round++) {
        jw_block_result result;
        block(spin, 0, 50000000, &result);
        CHECK(result.spin.sleeps > 0 && result.spin.end - result.spin.start >= 50000000);
        CHECK(result.spin.asleep_ticks > 0 && result.spin.asleep_ticks < result.spin.end - result.spin.start);
        CHECK(sum(jw_spin_table(spin), 1000) + result.spin.gaps + result.spin.negative == result.count);
        CHECK(sum(jw_spin_readings_by_cpu(spin), 65536) == result.count);
        /* The log has all time that was neither slept nor counted in the table. A sleep in it would exceed that. */
        uint64_t logged = 0, small = 0;
        for (uint64_t i = 0; i < result.spin.gaps; i++) {
            logged += jw_spin_gaps(spin)[i].end - jw_spin_gaps(spin)[i].start;
        }
        for (uint64_t ticks = 0; ticks < 1000; ticks++) {
            small += ticks * jw_spin_table(spin)[ticks];
        }
        CHECK(result.spin.asleep_ticks + logged + small == result.spin.end - result.spin.start);
        CHECK(busily || result.usage[0].voluntary_switches > 0);
    }
    /* Readings or time end a block. A sleep does not. */
    jw_block_result result;
    block(spin, 6400, 0, &result);
    CHECK(result.count == 6400);
    block(spin, 0, 10000, &result);
    CHECK(result.spin.sleeps == 0);
    jw_workload_free(spin);
}

/* A pause of up to a second, and no thread waits for it. */
static void stopped_in_a_busy_pause(void) {
    const jw_spin_options options = {
        .pause_busily = 1, .small_ticks = 1000, .busy_ticks = 1000, .period_ticks = 1000000000};
    jw_workload_free(started(1000, &options));
}

static void a_duty_that_cannot_be(void) {
    const jw_workload_config config = {.clock = ns_clock, .most = 1000, .cpu = {-1}};
    jw_spin_options options = {.small_ticks = 1000};
    const uint64_t wrong[][2] = {{1000, 0}, {1000, 1000}, {1000, 999}, {1000, UINT64_C(2000000000)}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        options.busy_ticks = wrong[i][0];
        options.period_ticks = wrong[i][1];
        int error = 0;
        CHECK(jw_spin_new(&config, &options, &error) == NULL && error != 0);
    }
}

static void lines(void) {
    double one_way_ns;
    jw_offset offset;
    CHECK_ANSWERED(jw_ping_pong(&ns_clock, -1, -1, &one_way_ns));
    CHECK(one_way_ns > 0);
    CHECK_ANSWERED(jw_clock_offset(JW_CLOCK_MONOTONIC, -1, -1, 100, &offset));
    CHECK(offset.bound_ticks > 0);
    CHECK(jw_ping_pong(&ns_clock, 60000, -1, &one_way_ns) != 0);
    CHECK(jw_ping_pong(&ns_clock, -1, 60000, &one_way_ns) != 0);
}

int main(void) {
    chasing();
    sampling();
    a_full_log_ends_a_block();
    a_long_gap_ends_a_block();
    pausing_in_between(0);
    pausing_in_between(1);
    stopped_in_a_busy_pause();
    a_duty_that_cannot_be();
    lines();
    return 0;
}
