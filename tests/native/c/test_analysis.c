/* The analysis on hand-made stamps; ticks are ns here. */
#include <string.h>

#include "check.h"
#include "clock.h"

enum { COUNTS = 27648 };

static uint64_t counts[COUNTS];

static jw_histogram make(void) {
    jw_histogram h = {.counts = counts,
                      .counts_len = COUNTS,
                      .sub_bucket_half_count = 1024,
                      .sub_bucket_mask = 2047,
                      .sub_bucket_half_count_magnitude = 10,
                      .highest = INT64_C(60000000000)};
    memset(counts, 0, sizeof counts);
    jw_histogram_reset(&h);
    return h;
}

static const jw_clock ns_clock = {.rate_hz = 1000000000, .mult = UINT64_C(1) << JW_CLOCK_SHIFT};

/* Every 10 us; the consumer is away from 1,020,000 to 1,055,000, the producer from 1,070,000 to 1,105,000. */
static const uint64_t publish[] = {1000000, 1010000, 1020000, 1030000, 1040000, 1050000, 1060000, 1070000, 1105000};
static const uint64_t receive[] = {1000100, 1010100, 1055000, 1055050, 1055100, 1055150, 1060100, 1070100, 1105100};
static const uint16_t cpus[] = {3, 3, 5, 5, 5, 5, 5, 5, 5};
enum { N = 8 };

static void a_consumers_stall_is_one(void) {
    jw_stall found[2];
    size_t n = jw_analyse_consumer_stalls(&ns_clock, publish[0], publish, receive, cpus, N, 1000, found, 2);
    CHECK(n == 1);
    CHECK(found[0].start_ns == 20000 && found[0].end_ns == 55150 && found[0].messages == 4 && found[0].cpu == 3);
    CHECK(jw_analyse_consumer_stalls(&ns_clock, publish[0], publish, receive, cpus, N, 1000, NULL, 0) == 1);
    CHECK(jw_analyse_consumer_stalls(&ns_clock, publish[0], publish, receive, cpus, N, 40000, found, 2) == 0);
}

static void a_producers_gap(void) {
    jw_stall found[2];
    CHECK(jw_analyse_median_gap(&ns_clock, publish, N) == 10000);
    size_t n = jw_analyse_producer_stalls(&ns_clock, publish[0], publish, cpus, N, 10000, 0, 1000, found, 2);
    CHECK(n == 1 && found[0].start_ns == 80000 && found[0].end_ns == 105000 && found[0].messages == 1);
    n = jw_analyse_producer_stalls(&ns_clock, publish[0], publish, cpus, N, 10000, 1, 1000, found, 2);
    CHECK(n == 1 && found[0].messages == 3);
}

static void intended_times(void) {
    jw_histogram h = make();
    jw_analyse_intended_spin(&ns_clock, publish, receive, N, 10000, &h);
    /* Eight messages; the last was held back 25 us, and two more would have followed at 15 and 5 us. */
    CHECK(h.count == N + 2 && h.max == 35000 && h.negative == 0);
    CHECK(h.total == 100 + 35000 + 25050 + 15100 + 5150 + 100 + 100 + 25100 + 15100 + 5100);
    h = make();
    jw_analyse_intended_schedule(&ns_clock, publish[0], receive, N, 10000, &h);
    CHECK(h.count == N && h.max == 35000);
}

static void one_theft_seen_twice_is_one(void) {
    const jw_stall one[] = {{0, 2000, 0, 1}, {5000, 6000, 0, 1}}, other[] = {{1500, 4000, 1, 1}, {6000, 9000, 1, 1}};
    const int64_t thresholds[] = {1000, 4000, 10000};
    int64_t count[3], stolen[3];
    jw_analyse_totals(one, 2, other, 2, thresholds, 3, count, stolen);
    CHECK(count[0] == 2 && stolen[0] == 8000 && count[1] == 2 && stolen[1] == 8000 && count[2] == 0);
    jw_analyse_totals(NULL, 0, NULL, 0, thresholds, 3, count, stolen);
    CHECK(count[0] == 0 && stolen[2] == 0);
}

static void clocks_apart(void) {
    const uint64_t early[] = {1000000, 1009900};
    jw_histogram h = make();
    jw_analyse_transit(&ns_clock, publish, early, 1, &h);
    CHECK(h.negative == 1 && h.count == 0);
    jw_analyse_intended_spin(&ns_clock, publish, early, 1, 10000, &h);
    CHECK(h.negative == 2 && h.count == 0);
}

int main(void) {
    a_consumers_stall_is_one();
    a_producers_gap();
    intended_times();
    one_theft_seen_twice_is_one();
    clocks_apart();
    return 0;
}
