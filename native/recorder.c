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

void jw_record_times(jw_histogram *h, int64_t value, int64_t times) {
    if (times <= 0) {
        return;
    }
    if (value < 0) {
        h->negative += times;
    } else {
        jw_record(h, value, times);
    }
}

/* first, first - step, … (`times` values, all >= 0), bucket by bucket: an hour's gap at 10 us is 360 million values but
 * only a few thousand buckets. */
void jw_record_progression(jw_histogram *h, int64_t first, int64_t step, int64_t times) {
    if (step <= 0) {
        return;
    }
    int64_t value = first;
    while (times > 0 && value >= 0) {
        int64_t inside_bucket;
        if (value > h->highest) {
            inside_bucket = (value - h->highest - 1) / step + 1;
        } else {
            int64_t width_bits = jw_bucket(h, value) + h->unit_magnitude;
            int64_t lowest = (value >> width_bits) << width_bits;
            inside_bucket = (value - lowest) / step + 1;
        }
        int64_t n = inside_bucket < times ? inside_bucket : times;
        int64_t last = value - (n - 1) * step;
        int64_t sum_before = h->total;
        jw_record(h, value, n);
        /* jw_record added value * n; the progression's sum is what was really recorded. */
        h->total = sum_before + (n % 2 == 0 ? (n / 2) * (value + last) : n * ((value + last) / 2));
        h->min = last < h->min ? last : h->min;
        value = last - step;
        times -= n;
    }
}
