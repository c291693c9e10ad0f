/* Counting values into the array that the caller's histogram owns. */
#include "recorder.h"

void jw_histogram_reset(jw_histogram *h) {
    h->count = 0;
    h->min = INT64_MAX;
    h->max = 0;
    h->total = 0;
    h->overflow = 0;
    h->negative = 0;
}

void jw_record_many(jw_histogram *h, const int64_t *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        jw_record_difference(h, values[i]);
    }
}

/* Sums of made-up values may leave 64 bits (a suspended machine's gap): they stop at the top instead of wrapping. */
static void add_total(jw_histogram *h, jw_u128 sum) {
    jw_u128 total = (jw_u128)h->total + sum;
    h->total = total > (jw_u128)INT64_MAX ? INT64_MAX : (int64_t)total;
}

void jw_record_times(jw_histogram *h, int64_t value, int64_t times) {
    if (times <= 0) {
        return;
    }
    if (value < 0) {
        h->negative += times;
        return;
    }
    jw_count(h, value, times);
    add_total(h, (jw_u128)value * (jw_u128)times);
}

/* first, first - step, … (`times` values, as far as they are >= 0), bucket by bucket: an hour's gap at 10 us is 360 million
 * values but only a few thousand buckets. */
void jw_record_progression(jw_histogram *h, int64_t first, int64_t step, int64_t times) {
    if (step <= 0) {
        return;
    }
    int64_t value = first;
    while (times > 0 && value >= 0) {
        int64_t lowest = h->highest + 1;
        if (value < lowest) {
            int64_t width_bits = jw_bucket(h, value) + h->unit_magnitude;
            lowest = (value >> width_bits) << width_bits;
        }
        int64_t inside = (value - lowest) / step + 1;
        int64_t n = inside < times ? inside : times;
        int64_t last = value - (n - 1) * step;
        jw_count(h, value, n);
        h->min = last < h->min ? last : h->min;
        add_total(h, (jw_u128)(value + last) * (jw_u128)n / 2);
        value = last - step;
        times -= n;
    }
}
