/* The recorder against a plain restatement of its geometry, and progressions against value by value. */
#include <string.h>

#include "check.h"
#include "recorder.h"

enum { HALF_MAGNITUDE = 10, COUNTS = 27648 };

static uint64_t random_state = 88172645463325252ULL;

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static jw_histogram make(uint64_t *counts) {
    jw_histogram h = {.counts = counts,
                      .counts_len = COUNTS,
                      .sub_bucket_half_count = 1 << HALF_MAGNITUDE,
                      .sub_bucket_mask = (1 << (HALF_MAGNITUDE + 1)) - 1,
                      .sub_bucket_half_count_magnitude = HALF_MAGNITUDE,
                      .highest = INT64_C(60000000000)};
    memset(counts, 0, COUNTS * sizeof *counts);
    jw_histogram_reset(&h);
    return h;
}

/* Find the counter: halve the value until it fits the lowest bucket. */
static size_t plain_index(int64_t value) {
    int64_t bucket = 0;
    while ((value >> bucket) >= 2 << HALF_MAGNITUDE) {
        bucket++;
    }
    return (size_t)((bucket << HALF_MAGNITUDE) + (value >> bucket));
}

static void values_land_where_they_should(void) {
    static uint64_t counts[COUNTS], wanted[COUNTS];
    jw_histogram h = make(counts);
    memset(wanted, 0, sizeof wanted);
    for (int i = 0; i < 200000; i++) {
        int64_t value = (int64_t)(next_random() >> (28 + next_random() % 36));
        jw_record_many(&h, &value, 1);
        wanted[plain_index(value > h.highest ? h.highest : value)]++;
    }
    CHECK(memcmp(counts, wanted, sizeof counts) == 0);
    CHECK(h.count == 200000);
}

static void beyond_the_range(void) {
    static uint64_t counts[COUNTS];
    jw_histogram h = make(counts);
    const int64_t values[] = {0, 60000000001, INT64_MAX, -1, INT64_MIN};
    jw_record_many(&h, values, 3);
    CHECK(h.overflow == 2 && h.max == INT64_MAX && h.min == 0 && h.count == 3);
    CHECK(counts[plain_index(h.highest)] == 2);
    jw_record_many(&h, values + 3, 2);
    CHECK(h.negative == 2 && h.count == 3);
}

static void progressions_equal_single_values(void) {
    static uint64_t counts[COUNTS], wanted[COUNTS];
    for (int round = 0; round < 300; round++) {
        jw_histogram all = make(counts), each = make(wanted);
        int64_t first = (int64_t)(next_random() % 200000000000), step = 1 + (int64_t)(next_random() % 300000000);
        int64_t times = (int64_t)(next_random() % 2000);
        jw_record_progression(&all, first, step, times);
        for (int64_t i = 0; i < times && first - i * step >= 0; i++) {
            jw_record_times(&each, first - i * step, 1);
        }
        CHECK(memcmp(counts, wanted, sizeof counts) == 0);
        CHECK(all.count == each.count && all.min == each.min && all.max == each.max);
        CHECK(all.total == each.total && all.overflow == each.overflow);
    }
}

static void a_day_long_gap(void) {
    static uint64_t counts[COUNTS];
    jw_histogram h = make(counts);
    const int64_t day = INT64_C(86400000000000);
    jw_record_progression(&h, day, 1000, day / 1000);
    CHECK(h.count == day / 1000 && h.max == day && h.total == INT64_MAX);
}

int main(void) {
    values_land_where_they_should();
    beyond_the_range();
    progressions_equal_single_values();
    a_day_long_gap();
    return 0;
}
