/* All that Python sees. Read twice: by the C compiler (through core.h) and by cffi, so: declarations only, no directives.
 *
 * The life of a workload (ring, wakeup, ack, spin) is the same for each, and the functions differ in their names alone:
 *   new     Copy the config; its pointers must stay valid for the life of the object. Return an object that
 *           the caller frees, or NULL with *error = -EINVAL (a config that makes no sense) or -ENOMEM.
 *   start   Start the threads and wait until each is placed. Call it once. Return 0, or -errno of the first thread that
 *           was refused, with its number in *failed_thread; the threads have ended then.
 *   tid     Return a thread's number, for /proc and for the kernel's trace; valid from start to stop.
 *   block   Make one block; sleep meanwhile. One caller at a time. Return 0 with *result filled, or -ECANCELED once
 *           stopped; *result is then as it was.
 *   arrays  (stamps, cpus, due, woken, table, gaps, ...) Return memory of the object: of the last block, to be read
 *           between blocks, valid until free.
 *   lock_arrays  Lock what the threads touch, where locking all of the process is not allowed. Return 0 or -errno.
 *   stop    End the threads and wait for them; a block that is under way returns. Callable from any thread, also while
 *           another one is in block; a second call does nothing.
 *   free    Stop, and free the object; no other thread may use it any more. NULL is allowed.
 * Functions without an object are pure, or read a clock; they are callable from any thread.
 */

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

/* Return 1 where this clock can be read here, else 0. */
int jw_clock_usable(int source);
/* Fill `clock`. Return 0, or -EINVAL for a rate of 0 or one that does not fit `mult`. */
int jw_clock_init(jw_clock *clock, int source, uint64_t rate_hz);
/* Return the clock now, in ticks; `ordered`: not before what stands before it, with the CPU where it was read. */
uint64_t jw_clock_read(int source);
uint64_t jw_clock_read_ordered(int source, unsigned *cpu);
/* Convert between ticks and ns, rounding down. */
uint64_t jw_clock_ns(const jw_clock *clock, uint64_t ticks);
uint64_t jw_clock_ticks(const jw_clock *clock, uint64_t ns);
/* Read both clocks at one moment, known to `width_ticks`. Return 0 or -errno. */
int jw_clock_bracket(int source, int posix_clock, jw_bracket *out);
/* Return the median cost of one reading, in ticks; then the commonest step between two, 0 without memory for it. */
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

/* Count into `counts`, which the caller owns. Not for several threads at once. */
void jw_histogram_reset(jw_histogram *histogram);
void jw_record_many(jw_histogram *histogram, const int64_t *values, size_t n);
void jw_record_times(jw_histogram *histogram, int64_t value, int64_t times);
void jw_record_progression(jw_histogram *histogram, int64_t first, int64_t step, int64_t times);

/* ---- digest.c: what a block's stamps say, after the block --------------------------------------------------------- */

/* Stamp arrays hold n + 1 entries: entry 0 is the last unrecorded message, the reference for the first interval. */
typedef struct {
    int64_t start_ns; /* since the base that the caller gave */
    int64_t end_ns;
    int32_t cpu;
    uint32_t messages;
} jw_stall;

/* Read the arrays of a block, write to what the caller gives; sizes are in entries, results that count are at most
 * `room`. They may run beside each other on different arrays. */
void jw_digest_intervals(const jw_clock *clock, const uint64_t *stamps, size_t n, jw_histogram *into);
void jw_digest_transit(const jw_clock *clock, const uint64_t *publish, const uint64_t *receive, size_t n,
                       jw_histogram *into);
int64_t jw_digest_median_gap(const jw_clock *clock, const uint64_t *publish, size_t n);
void jw_digest_intended_spin(const jw_clock *clock, const uint64_t *publish, const uint64_t *receive, size_t n,
                             int64_t expected_ns, jw_histogram *into);
void jw_digest_intended_schedule(const jw_clock *clock, uint64_t start, const uint64_t *receive, size_t n,
                                 int64_t interval_ns, jw_histogram *into);
size_t jw_digest_consumer_stalls(const jw_clock *clock, uint64_t base, const uint64_t *publish,
                                 const uint64_t *receive, const uint16_t *cpus, size_t n, int64_t threshold_ns,
                                 jw_stall *out, size_t room);
size_t jw_digest_producer_stalls(const jw_clock *clock, uint64_t base, const uint64_t *publish, const uint16_t *cpus,
                                 size_t n, int64_t expected_ns, int scheduled, int64_t threshold_ns, jw_stall *out,
                                 size_t room);
void jw_digest_totals(const jw_stall *a, size_t a_len, const jw_stall *b, size_t b_len, const int64_t *thresholds_ns,
                      size_t thresholds, int64_t *counts, int64_t *stolen_ns);
void jw_digest_residence(const uint16_t *cpus, size_t n, uint64_t *messages_by_cpu);

/* ---- pingpong.c: the cache line between two CPUs, and the core's true frequency ------------------------------------ */

typedef struct {
    int64_t offset_ticks; /* the second CPU's clock minus the first's */
    int64_t bound_ticks;  /* the truth lies within +- this */
} jw_offset;

/* Measure between two CPUs with two threads of their own. Return 0, or -errno where one could not be placed. */
int jw_clock_offset(int source, int first_cpu, int second_cpu, int rounds, jw_offset *out);
int jw_ping_pong(const jw_clock *clock, int first_cpu, int second_cpu, double *one_way_ns);
/* Return the clock rate of the core that this thread is on, in Hz, by a chain of additions; some 100 us. */
uint64_t jw_core_hz(const jw_clock *clock);

/* ---- ring.c, hot.c: producer -> accumulator, journaller ------------------------------------------------------------ */

enum { JW_PRODUCER = 0, JW_ACCUMULATOR = 1, JW_JOURNALLER = 2, JW_THREADS = 3 };
enum { JW_PACING_SPIN = 0, JW_PACING_SCHEDULE = 1 };
enum { JW_RECORD_BYTES = 64, JW_JOURNAL_BYTES = 32 };

typedef struct {
    jw_clock clock;
    uint64_t slots;        /* a power of two */
    uint64_t most_messages; /* a block's; sizes the stamp arrays */
    int32_t cpu[3];        /* -1: the scheduler is free */
    int32_t journaller;    /* 0 or 1 */
    int32_t fifo_priority; /* 0: SCHED_OTHER */
    int32_t pacing;
    uint64_t interval_ns;
    const void *records; /* record_count * 64 bytes, a power of two of them */
    uint64_t record_count;
    void *journal; /* journal_count * 32 bytes, a power of two of them; may be null without a journaller */
    uint64_t journal_count;
} jw_ring_config;

typedef struct {
    uint64_t messages;       /* 0: no limit but the arrays' size */
    uint64_t duration_ticks; /* 0: no limit */
    uint64_t unrecorded;     /* messages sent just before, at least 2 */
    int32_t ping_pong;       /* measure the line transfer first */
} jw_block_request;

typedef struct {
    int64_t voluntary_switches;
    int64_t involuntary_switches;
    int64_t minor_faults;
    int64_t major_faults;
    int64_t ran_ns;     /* on a CPU, by the thread's own clock */
    int64_t waited_ns;  /* in the queue of a CPU while it could have run; < 0: this kernel does not count it */
    int64_t timeslices; /* how often it came onto a CPU; < 0 likewise */
} jw_usage;

typedef struct {
    uint64_t count;          /* recorded messages; the arrays hold count + 1 entries */
    uint64_t first_sequence; /* of entry 0, the reference */
    uint64_t blocked;        /* recorded publishes that found the ring full */
    uint64_t core_hz;
    double ping_pong_ns; /* < 0: not measured */
    uint64_t payload_sum[3]; /* what each thread read of entries 1..count: xor of their eight words */
    jw_usage usage[3];
} jw_block_result;

typedef struct jw_ring jw_ring;

jw_ring *jw_ring_new(const jw_ring_config *config, int *error);
int jw_ring_start(jw_ring *ring, int *failed_thread);
int jw_ring_tid(const jw_ring *ring, int thread);
int jw_ring_block(jw_ring *ring, const jw_block_request *request, jw_block_result *result);
const uint64_t *jw_ring_stamps(const jw_ring *ring, int thread);
const uint16_t *jw_ring_cpus(const jw_ring *ring, int thread);
int jw_ring_lock_arrays(const jw_ring *ring);
void jw_ring_stop(jw_ring *ring);
void jw_ring_free(jw_ring *ring);
/* Return what reading the records of `n` messages from `first_sequence` on must give. */
uint64_t jw_payload_sum(const void *records, uint64_t record_count, uint64_t first_sequence, uint64_t n);

/* ---- wakeup.c: one thread sleeps until a time, again and again ------------------------------------------------------- */

typedef struct {
    jw_clock clock;
    uint64_t most_wakeups; /* a block's; sizes the arrays */
    uint64_t interval_ns;
    int32_t cpu;
    int32_t fifo_priority;
} jw_wakeup_config;

typedef struct {
    uint64_t count;   /* recorded wake-ups; the arrays hold count + 1 entries, the first is the reference */
    uint64_t missed;  /* periods that were over before the thread could sleep: no wake-ups */
    int64_t slack_ns; /* the timer slack that the thread has; < 0: unknown */
    uint64_t core_hz;
    jw_usage usage;
} jw_wakeup_result;

typedef struct jw_wakeup jw_wakeup;

jw_wakeup *jw_wakeup_new(const jw_wakeup_config *config, int *error);
int jw_wakeup_start(jw_wakeup *wakeup);
int jw_wakeup_tid(const jw_wakeup *wakeup);
int jw_wakeup_block(jw_wakeup *wakeup, uint64_t duration_ticks, jw_wakeup_result *result);
const uint64_t *jw_wakeup_due(const jw_wakeup *wakeup);
const uint64_t *jw_wakeup_woken(const jw_wakeup *wakeup);
const uint16_t *jw_wakeup_cpus(const jw_wakeup *wakeup);
int jw_wakeup_lock_arrays(const jw_wakeup *wakeup);
void jw_wakeup_stop(jw_wakeup *wakeup);
void jw_wakeup_free(jw_wakeup *wakeup);

/* ---- ack.c, answer.c: a TCP receiver on the loopback device, and its sender -------------------------------------------- */

enum { JW_ACK_SENDER = 0, JW_ACK_RECEIVER = 1, JW_ACK_THREADS = 2 };

typedef struct {
    jw_clock clock;
    uint64_t most_segments; /* a block's; sizes the arrays */
    uint64_t interval_ns;   /* between segments, on schedule */
    int32_t cpu[2];
    int32_t fifo_priority;
} jw_ack_config;

typedef struct {
    uint64_t sent;     /* segments; the sender's arrays hold so many entries and the reference */
    uint64_t answered; /* portions that were taken and answered, at most one a segment; the receiver's arrays likewise */
    uint64_t blocked;  /* segments that found no room at once */
    uint64_t core_hz;
    jw_usage usage[2];
} jw_ack_result;

typedef struct jw_ack jw_ack;

jw_ack *jw_ack_new(const jw_ack_config *config, int *error);
int jw_ack_start(jw_ack *ack, int *failed_thread);
int jw_ack_tid(const jw_ack *ack, int thread);
int jw_ack_block(jw_ack *ack, uint64_t duration_ticks, jw_ack_result *result);
const uint64_t *jw_ack_stamps(const jw_ack *ack, int thread);
const uint16_t *jw_ack_cpus(const jw_ack *ack, int thread);
int jw_ack_lock_arrays(const jw_ack *ack);
void jw_ack_stop(jw_ack *ack);
void jw_ack_free(jw_ack *ack);

/* ---- spin.c: one thread reads the clock in a tight loop ------------------------------------------------------------- */

typedef struct {
    uint64_t start; /* ticks; the reading before the gap */
    uint64_t end;
    uint32_t cpu;   /* where the reading before the gap was made, as far as is known */
    uint32_t moved; /* the reading after it was made on another CPU */
} jw_gap;

typedef struct {
    jw_clock clock;
    uint64_t small_ticks; /* gaps below are counted in a table, the others logged one by one */
    uint64_t most_gaps;   /* the log's length; a block ends when it is full */
    int32_t cpu;
    int32_t fifo_priority;
    uint64_t busy_ticks;   /* the thread samples so long, then pauses for the rest of the period; 0: always busy */
    uint64_t period_ticks;
    int32_t pause_busily; /* a pause keeps the CPU; else it sleeps */
} jw_spin_config;

typedef struct {
    uint64_t start; /* ticks of the first reading and of the last */
    uint64_t end;
    uint64_t readings; /* gaps, small and logged */
    uint64_t gaps;     /* logged */
    uint64_t negative;
    uint64_t asleep_ticks; /* its own pauses, late wake-ups included; no gaps */
    uint64_t sleeps;
    uint64_t core_hz;
    jw_usage usage;
} jw_spin_result;

typedef struct jw_spin jw_spin;

jw_spin *jw_spin_new(const jw_spin_config *config, int *error);
int jw_spin_start(jw_spin *spin);
int jw_spin_tid(const jw_spin *spin);
int jw_spin_block(jw_spin *spin, uint64_t readings, uint64_t duration_ticks, jw_spin_result *result);
const uint64_t *jw_spin_table(const jw_spin *spin);
const jw_gap *jw_spin_gaps(const jw_spin *spin);
const uint64_t *jw_spin_readings_by_cpu(const jw_spin *spin);
int jw_spin_lock_arrays(const jw_spin *spin);
void jw_spin_stop(jw_spin *spin);
void jw_spin_free(jw_spin *spin);

void jw_digest_buckets(const jw_clock *clock, const jw_gap *gaps, size_t n, const int64_t *bounds_ns, size_t buckets,
                       uint64_t *counts);
void jw_digest_gaps(const jw_clock *clock, const uint64_t *table, uint64_t table_len, const jw_gap *gaps, size_t n,
                    jw_histogram *into);
size_t jw_digest_gap_stalls(const jw_clock *clock, uint64_t base, const jw_gap *gaps, size_t n, int64_t threshold_ns,
                            jw_stall *out, size_t room);

/* ---- noise*.c: thieves to order ---------------------------------------------------------------------------------- */

enum {
    JW_NOISE_SPINNERS = 0,
    JW_NOISE_GREEDY = 1,
    JW_NOISE_TIMER = 2,
    JW_NOISE_SOFTIRQ = 3,
    JW_NOISE_WORKQUEUE = 4,
    JW_NOISE_MIGRATION = 5,
    JW_NOISE_FAULTS = 6,
    JW_NOISE_SHOOTDOWN = 7,
    JW_NOISE_BANDWIDTH = 8,
    JW_NOISES = 9
};

/* What a burst was. */
enum { JW_BURST_MAIN = 0, JW_BURST_ARMING = 1 };

/* Something the noise did to `cpu` between two moments; `taken` is how much of that CPU's time it took: a thread's
 * own, by its own clock readings; an interrupt's, as it was measured beforehand. */
typedef struct {
    uint64_t start; /* ticks */
    uint64_t end;
    uint64_t taken; /* 0: not known */
    int32_t cpu;
    int32_t what;
} jw_burst;

typedef struct {
    jw_clock clock;
    int32_t kind;
    int32_t hot;          /* the CPU to disturb */
    int32_t other;        /* where a thread runs that must not take the time of `hot`; -1: the scheduler's choice */
    int32_t away;         /* where moved threads are sent */
    uint64_t busy_ns;     /* of each burst, where the kind has a length to choose */
    uint64_t period_ns;   /* from one burst to the next, on average: never in step with the tick */
    uint64_t deadline_ns; /* CLOCK_MONOTONIC: everything ends by itself */
    uint64_t most_bursts; /* logged, in all */
    uint64_t seed;
    const int32_t *cpus; /* of spinners; read by jw_noise_start only */
    uint64_t cpus_len;
    const char *name; /* of the threads; read by jw_noise_start only */
} jw_noise_config;

typedef struct jw_noise jw_noise;

/* Start making noise. Return an object that the caller frees, or NULL with *error = -EINVAL, -ENOMEM, -ENOTSUP (the host
 * cannot make it), -EACCES, -EPERM or -EROFS. The config is copied; what it points to is read only here. */
jw_noise *jw_noise_start(const jw_noise_config *config, int *error);
/* Aim at these threads from now on; callable from any thread. */
void jw_noise_aim(jw_noise *noise, const int32_t *tids, size_t n);
uint64_t jw_noise_length_ticks(const jw_noise *noise);
void jw_noise_stop(jw_noise *noise);
/* After stop: copy at most `room` bursts, in the order of their starts. Return how many there are; 0 before stop. */
size_t jw_noise_bursts(const jw_noise *noise, jw_burst *out, size_t room);
uint64_t jw_noise_unlogged(const jw_noise *noise);
void jw_noise_free(jw_noise *noise);

/* ---- bench.c: what the project's own benchmarks time ----------------------------------------------------------------- */

/* Return the cost of one operation in ns, for `make bench`. */
double jw_bench_clock_ns(const jw_clock *clock, int ordered, uint64_t readings);
double jw_bench_record_ns(const jw_clock *clock, jw_histogram *into, const int64_t *values, size_t n, uint64_t rounds);
double jw_bench_spin_loop_ns(const jw_clock *clock, uint64_t readings);

/* ---- process.c: the child as a whole ---------------------------------------------------------------------------------- */

/* Ask the kernel to kill this process when its parent dies. Return 0 or -errno. */
int jw_die_with_parent(void);
/* Lock the memory of this process, also what it will map (`future`). Return 0 or -errno. */
int jw_lock_memory(int future);
