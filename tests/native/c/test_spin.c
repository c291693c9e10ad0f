/* The sampler and the line between two threads, live. */
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

static void sampling(void) {
    const jw_spin_config config = {.clock = ns_clock, .small_ticks = 1000, .most_gaps = 100000, .cpu = -1};
    int error;
    jw_spin *spin = jw_spin_new(&config, &error);
    CHECK(spin != NULL && jw_spin_start(spin) == 0);
    for (int round = 0; round < 3; round++) {
        jw_spin_result result;
        CHECK(jw_spin_block(spin, 0, 5000000, &result) == 0);
        /* Every reading is in the table, in the log, or ran backwards; and every one has a CPU. */
        CHECK(sum(jw_spin_table(spin), 1000) + result.gaps + result.negative == result.readings);
        CHECK(sum(jw_spin_readings_by_cpu(spin), 65536) == result.readings);
        for (uint64_t i = 0; i < result.gaps; i++) {
            const jw_gap *gap = &jw_spin_gaps(spin)[i];
            CHECK(gap->end - gap->start >= 1000 && gap->start >= result.start && gap->end <= result.end);
        }
        CHECK(jw_spin_block(spin, 6400, 0, &result) == 0);
        CHECK(result.readings == 6400);
    }
    jw_spin_free(spin);
}

static void a_full_log_ends_a_block(void) {
    const jw_spin_config config = {.clock = ns_clock, .small_ticks = 1, .most_gaps = 640, .cpu = -1};
    int error;
    jw_spin *spin = jw_spin_new(&config, &error);
    jw_spin_result result;
    CHECK(spin != NULL && jw_spin_start(spin) == 0);
    CHECK(jw_spin_block(spin, 0, UINT64_C(3600000000000), &result) == 0);
    CHECK(result.gaps <= 640 && result.gaps > 640 - 64);
    jw_spin_free(spin);
}

/* Half of the time paused: a thread's own pause is no gap, however long, and every reading is accounted for. */
static void pausing_in_between(int busily) {
    const jw_spin_config config = {.clock = ns_clock,
                                   .pause_busily = busily,
                                   .small_ticks = 1000,
                                   .most_gaps = 100000,
                                   .cpu = -1,
                                   .busy_ticks = 500000,
                                   .period_ticks = 1000000};
    int error;
    jw_spin *spin = jw_spin_new(&config, &error);
    CHECK(spin != NULL && jw_spin_start(spin) == 0);
    for (int round = 0; round < 3; round++) {
        jw_spin_result result;
        CHECK(jw_spin_block(spin, 0, 50000000, &result) == 0);
        CHECK(result.sleeps > 0 && result.end - result.start >= 50000000);
        CHECK(result.asleep_ticks > 0 && result.asleep_ticks < result.end - result.start);
        CHECK(sum(jw_spin_table(spin), 1000) + result.gaps + result.negative == result.readings);
        CHECK(sum(jw_spin_readings_by_cpu(spin), 65536) == result.readings);
        /* What was neither slept nor counted in the table lies in the log; one that held a sleep would exceed it. */
        uint64_t logged = 0, small = 0;
        for (uint64_t i = 0; i < result.gaps; i++) {
            logged += jw_spin_gaps(spin)[i].end - jw_spin_gaps(spin)[i].start;
        }
        for (uint64_t ticks = 0; ticks < 1000; ticks++) {
            small += ticks * jw_spin_table(spin)[ticks];
        }
        CHECK(result.asleep_ticks + logged + small == result.end - result.start);
        CHECK(busily || result.usage.voluntary_switches > 0);
    }
    /* Whether readings or time end a block, a sleep does not. */
    jw_spin_result result;
    CHECK(jw_spin_block(spin, 6400, 0, &result) == 0 && result.readings == 6400);
    CHECK(jw_spin_block(spin, 0, 10000, &result) == 0 && result.sleeps == 0);
    jw_spin_free(spin);
}

/* A pause of up to a second, and nobody waits for it. */
static void stopped_in_a_busy_pause(void) {
    const jw_spin_config config = {.clock = ns_clock,
                                   .pause_busily = 1,
                                   .small_ticks = 1000,
                                   .most_gaps = 1000,
                                   .cpu = -1,
                                   .busy_ticks = 1000,
                                   .period_ticks = 1000000000};
    int error;
    jw_spin *spin = jw_spin_new(&config, &error);
    CHECK(spin != NULL && jw_spin_start(spin) == 0);
    jw_spin_free(spin);
}

static void a_duty_that_cannot_be(void) {
    jw_spin_config config = {.clock = ns_clock, .small_ticks = 1000, .most_gaps = 1000, .cpu = -1};
    const uint64_t wrong[][2] = {{1000, 0}, {1000, 1000}, {1000, 999}, {1000, UINT64_C(2000000000)}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        config.busy_ticks = wrong[i][0];
        config.period_ticks = wrong[i][1];
        int error = 0;
        CHECK(jw_spin_new(&config, &error) == NULL && error != 0);
    }
}

static void lines(void) {
    double one_way_ns;
    jw_offset offset;
    CHECK(jw_ping_pong(&ns_clock, -1, -1, &one_way_ns) == 0 && one_way_ns > 0);
    CHECK(jw_clock_offset(JW_CLOCK_MONOTONIC, -1, -1, 100, &offset) == 0 && offset.bound_ticks > 0);
    CHECK(jw_ping_pong(&ns_clock, 60000, -1, &one_way_ns) != 0);
    CHECK(jw_ping_pong(&ns_clock, -1, 60000, &one_way_ns) != 0);
}

int main(void) {
    sampling();
    a_full_log_ends_a_block();
    pausing_in_between(0);
    pausing_in_between(1);
    stopped_in_a_busy_pause();
    a_duty_that_cannot_be();
    lines();
    return 0;
}
