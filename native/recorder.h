/* Recording one value, inline: the index formula is HdrHistogram's, so the counts are its own. */
#ifndef JW_RECORDER_H
#define JW_RECORDER_H

#include "core.h"

JW_INLINE int64_t jw_bucket(const jw_histogram *h, int64_t value) {
    return 64 - __builtin_clzll((unsigned long long)(value | h->sub_bucket_mask)) - h->unit_magnitude -
           (h->sub_bucket_half_count_magnitude + 1);
}

JW_INLINE int64_t jw_counts_index(const jw_histogram *h, int64_t value, int64_t bucket) {
    int64_t sub_bucket = value >> (bucket + h->unit_magnitude);
    return ((bucket + 1) << h->sub_bucket_half_count_magnitude) + (sub_bucket - h->sub_bucket_half_count);
}

/* All but the sum. `value` >= 0, `times` > 0. */
JW_INLINE void jw_count(jw_histogram *h, int64_t value, int64_t times) {
    int64_t inside = value;
    if (__builtin_expect(value > h->highest, 0)) {
        h->overflow += times;
        inside = h->highest;
    }
    h->counts[jw_counts_index(h, inside, jw_bucket(h, inside))] += (uint64_t)times;
    h->count += times;
    h->min = value < h->min ? value : h->min;
    h->max = value > h->max ? value : h->max;
}

JW_INLINE void jw_record(jw_histogram *h, int64_t value) {
    jw_count(h, value, 1);
    if (__builtin_expect(__builtin_add_overflow(h->total, value, &h->total), 0)) {
        h->total = INT64_MAX;
    }
}

/* A difference as it comes: negative ones are counted and never wrapped into huge positive ones. */
JW_INLINE void jw_record_difference(jw_histogram *h, int64_t value) {
    if (__builtin_expect(value < 0, 0)) {
        h->negative++;
    } else {
        jw_record(h, value);
    }
}

#endif
