/* All that Python sees. Read twice: by the C compiler (through core.h) and by cffi, so: declarations only, no directives. */

/* ---- clock.c: ticks, what a reading costs, what a tick is worth ------------------------------------------------- */

enum { JW_CLOCK_MONOTONIC = 0, JW_CLOCK_TSC = 1, JW_CLOCK_CNTVCT = 2 };

/* ns = ticks * mult >> 48, in 128 bits. */
typedef struct {
    int32_t source;
    uint64_t rate_hz;
    uint64_t mult;
} jw_clock;

typedef struct {
    uint64_t ticks;
    uint64_t ns;
    uint64_t width_ticks;
} jw_bracket;

int jw_clock_usable(int source);
int jw_clock_init(jw_clock *clock, int source, uint64_t rate_hz);
uint64_t jw_clock_read(int source);
uint64_t jw_clock_read_ordered(int source, unsigned *cpu);
uint64_t jw_clock_ns(const jw_clock *clock, uint64_t ticks);
uint64_t jw_clock_ticks(const jw_clock *clock, uint64_t ns);
int jw_clock_bracket(int source, int posix_clock, jw_bracket *out);
double jw_clock_cost_ticks(int source, int ordered);
uint64_t jw_clock_step_ticks(int source);

/* ---- recorder.c: counts in the geometry of HdrHistogram, owned by the caller -------------------------------------- */

typedef struct {
    uint64_t *counts;
    int64_t counts_len;
    int64_t sub_bucket_half_count;
    int64_t sub_bucket_mask;
    int32_t unit_magnitude;
    int32_t sub_bucket_half_count_magnitude;
    int64_t highest; /* values above are counted at the top and in `overflow` */
    int64_t count;
    int64_t min; /* INT64_MAX while empty */
    int64_t max; /* the true maximum, also beyond `highest` */
    int64_t total;
    int64_t overflow;
    int64_t negative; /* not recorded, only counted */
} jw_histogram;

void jw_histogram_reset(jw_histogram *histogram);
void jw_record_many(jw_histogram *histogram, const int64_t *values, size_t n);
void jw_record_times(jw_histogram *histogram, int64_t value, int64_t times);
void jw_record_progression(jw_histogram *histogram, int64_t first, int64_t step, int64_t times);
