/* All that Python sees. Read twice: by the C compiler (through core.h) and by cffi, so: declarations only, no directives.
 *
 * Unless a function says otherwise:
 *   - A pointer that is passed in belongs to the caller and is used only during the call.
 *   - A function without an object (jw_workload, jw_noise) is pure, or reads a clock; any thread may call it.
 *   - An int that is a status is 0, or -errno.
 * The machine is little-endian and 64-bit; core.h refuses any other.
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

/* Return 1 where this clock can be read here, else 0. The caller finds out if the kernel trusts it. */
int jw_clock_usable(int source);
/* Fill `clock`. Return 0, or -EINVAL for a clock that cannot be read here and a rate outside 1 MHz .. 100 GHz. */
int jw_clock_init(jw_clock *clock, int source, uint64_t rate_hz);
/* Return the clock now, in ticks. It may be read before earlier loads have ended. Never fails. */
uint64_t jw_clock_read(int source);
/* Return the clock now, in ticks, read after all earlier loads; *cpu is the CPU where it was read. Never fails. */
uint64_t jw_clock_read_ordered(int source, unsigned *cpu);
/* Return `ticks` in ns, rounded down. */
uint64_t jw_clock_ns(const jw_clock *clock, uint64_t ticks);
/* Return `ns` in ticks, rounded to the nearest. */
uint64_t jw_clock_ticks(const jw_clock *clock, uint64_t ns);
/* Read this clock and a POSIX one at one moment, +- width_ticks / 2: the tightest of many tries. Return 0, -EINVAL for an
 * unknown POSIX clock, or -EIO where no try succeeded. */
int jw_clock_bracket(int source, int posix_clock, jw_bracket *out);
/* Return the median cost of one reading, in ticks; `ordered`: of the kind that names the CPU. Takes some ms. */
double jw_clock_cost_ticks(int source, int ordered);
/* Return the commonest step between two readings, in ticks; smaller differences are none. 0: no memory to find it. */
uint64_t jw_clock_step_ticks(int source);

/* ---- recorder.c: counts in the geometry of HdrHistogram, owned by the caller -------------------------------------- */

typedef struct {
    uint64_t *counts; /* the caller's, counts_len of them, valid as long as the histogram is used */
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

/* A histogram is for one thread at a time. None of these fails; a total beyond INT64_MAX stays there. */

/* Forget the sums; the caller clears `counts`. */
void jw_histogram_reset(jw_histogram *histogram);
/* Record each of `n` values. */
void jw_record_many(jw_histogram *histogram, const int64_t *values, size_t n);
/* Record one value `times` times; nothing for times <= 0. */
void jw_record_times(jw_histogram *histogram, int64_t value, int64_t times);
/* Record first, first - step, ...: `times` values, as far as they are >= 0; nothing for step <= 0. */
void jw_record_progression(jw_histogram *histogram, int64_t first, int64_t step, int64_t times);

/* ---- analysis.c: what a block's stamps say, after the block -------------------------------------------------------- */

typedef struct {
    int64_t start_ns; /* since the base that the caller gave */
    int64_t end_ns;
    int32_t cpu;
    uint32_t messages;
} jw_stall;

/* Stamp arrays hold n + 1 entries: entry 0 is the last unrecorded message, the reference for the first interval. These
 * functions read the arrays and write only to what the caller gives, so they may run beside each other on other outputs.
 * Those that return a number of stalls write at most `room` of them, in order of time. */

/* Record the n intervals between stamps. */
void jw_analyse_intervals(const jw_clock *clock, const uint64_t *stamps, size_t n, jw_histogram *into);
/* Record the n times from publish to receive. */
void jw_analyse_transit(const jw_clock *clock, const uint64_t *publish, const uint64_t *receive, size_t n,
                        jw_histogram *into);
/* Return the lower median of the n publish intervals in ns; -1 for n = 0 and without memory. */
int64_t jw_analyse_median_gap(const jw_clock *clock, const uint64_t *publish, size_t n);
/* Record the times from when each message was due, for a producer that waits `expected_ns` after each publish. */
void jw_analyse_intended_spin(const jw_clock *clock, const uint64_t *publish, const uint64_t *receive, size_t n,
                              int64_t expected_ns, jw_histogram *into);
/* The same, for message i due at start + i * interval. */
void jw_analyse_intended_schedule(const jw_clock *clock, uint64_t start, const uint64_t *receive, size_t n,
                                  int64_t interval_ns, jw_histogram *into);
/* Find the stalls of a consumer: transits of at least `threshold_ns`, joined where they touch. Return their number. */
size_t jw_analyse_consumer_stalls(const jw_clock *clock, uint64_t base, const uint64_t *publish,
                                  const uint64_t *receive, const uint16_t *cpus, size_t n, int64_t threshold_ns,
                                  jw_stall *out, size_t room);
/* Find the stalls of a producer: intervals `threshold_ns` longer than expected. Return their number. */
size_t jw_analyse_producer_stalls(const jw_clock *clock, uint64_t base, const uint64_t *publish, const uint16_t *cpus,
                                  size_t n, int64_t expected_ns, int scheduled, int64_t threshold_ns, jw_stall *out,
                                  size_t room);
/* Count the distinct stalls of two threads, each list in order of time, and sum their lengths, for each threshold. */
void jw_analyse_totals(const jw_stall *a, size_t a_len, const jw_stall *b, size_t b_len, const int64_t *thresholds_ns,
                       size_t thresholds, int64_t *counts, int64_t *stolen_ns);
/* Add the n messages to `messages_by_cpu`, which has 65,536 entries. */
void jw_analyse_residence(const uint16_t *cpus, size_t n, uint64_t *messages_by_cpu);

/* ---- pingpong.c: the cache line between two CPUs, and the core's true frequency ------------------------------------ */

typedef struct {
    int64_t offset_ticks; /* the second CPU's clock minus the first's */
    int64_t bound_ticks;  /* the truth lies within +- this */
} jw_offset;

/* Both start two threads, one on each CPU (-1: the scheduler is free), wait up to some 200 ms and end them. They return
 * 0, -errno where a thread could not be started or placed, -EIO where there was no answer in time, or -ETIMEDOUT where a
 * thread did not get its CPU within 1.5 s. Such a thread ends by itself when it gets it. */

/* Measure how far the clocks of two CPUs are apart, by `rounds` questions. */
int jw_clock_offset(int source, int first_cpu, int second_cpu, int rounds, jw_offset *out);
/* Measure the median one-way transfer of a cache line. */
int jw_ping_pong(const jw_clock *clock, int first_cpu, int second_cpu, double *one_way_ns);
/* Return the clock rate of the core that this thread is on, in Hz, by a chain of additions; 0 where this processor has
 * none that is known. Takes some 100 us. */
uint64_t jw_core_hz(const jw_clock *clock);

/* ---- workload.c: one life for all workloads ------------------------------------------------------------------------- */

enum { JW_MOST_THREADS = 3, JW_MOST_SAMPLES = 4 };

/* The parameters that all workloads have. */
typedef struct {
    jw_clock clock;
    int32_t cpu[3];        /* by thread; -1: the scheduler is free */
    int32_t apart[3];      /* by thread; not 0: it is in a process of its own, which shares all memory and files */
    int32_t fifo_priority; /* 0: SCHED_OTHER */
    uint64_t most;         /* a block's messages, wake-ups, segments or logged gaps; sizes the arrays */
    uint64_t interval_ns;  /* from one message, wake-up or segment to the next; spin has none */
} jw_workload_config;

typedef struct {
    uint64_t count;          /* 0: no limit but `most`; of readings for spin */
    uint64_t duration_ticks; /* 0: no limit */
    uint64_t unrecorded;     /* ring: messages sent just before, at least 2 */
    int32_t ping_pong;       /* ring: measure the line transfer first */
    int32_t offset_rounds;   /* ring: before that, compare the clocks of its first two threads; 0: do not */
} jw_block_request;

typedef struct {
    int64_t voluntary_switches;
    int64_t involuntary_switches;
    int64_t minor_faults;
    int64_t major_faults;
    int64_t ran_ns;     /* on a CPU, by the thread's own clock */
    int64_t waited_ns;  /* in the queue of a CPU while it could have run; < 0: this kernel does not count it */
    int64_t timeslices; /* how often it came onto a CPU; < 0 likewise */
    int64_t write_calls; /* system calls that write, to files of any kind; < 0 likewise */
} jw_usage;

typedef struct {
    uint64_t first_sequence; /* of entry 0, the reference */
    uint64_t blocked;        /* recorded publishes that found the ring full */
    double ping_pong_ns;     /* < 0: not measured */
    jw_offset offset;        /* the accumulator's clock minus the producer's; bound_ticks < 0: not measured */
    uint64_t payload_sum[3]; /* what each thread read of entries 1..count: xor of their eight words */
} jw_ring_result;

typedef struct {
    uint64_t start; /* ticks of the first reading and of the last */
    uint64_t end;
    uint64_t gaps; /* logged */
    uint64_t negative;
    uint64_t asleep_ticks; /* its own pauses, late wake-ups included; no gaps */
    uint64_t sleeps;
} jw_spin_result;

typedef struct {
    uint64_t missed;  /* periods that were over before the thread could sleep: no wake-ups */
    int64_t slack_ns; /* the timer slack that the thread has; < 0: unknown */
} jw_wakeup_result;

typedef struct {
    uint64_t answered; /* portions that were taken and answered, at most one a segment; the receiver's entries */
    uint64_t blocked;  /* segments that found no room at once */
} jw_ack_result;

typedef struct {
    uint64_t count; /* recorded messages, wake-ups or segments: arrays hold count + 1 entries; readings of spin */
    uint64_t core_hz;
    jw_usage usage[3]; /* by thread */
    union {
        jw_ring_result ring;
        jw_spin_result spin;
        jw_wakeup_result wakeup;
        jw_ack_result ack;
    };
} jw_block_result;

/* A workload belongs to the caller from its `new` to jw_workload_free. */
typedef struct jw_workload jw_workload;

/* Start the threads and wait until each is placed; call it once. From then on they do what they do in a block, without
 * recording it. Return 0, or -errno of the first thread that was refused, with its number in *failed_thread; all threads
 * have ended then. */
int jw_workload_start(jw_workload *workload, int *failed_thread);
/* Return a thread's number, for /proc and for the kernel's trace; -EINVAL for a thread that the workload does not have. The
 * number of a thread in a process of its own is that of the process.
 * The number is valid from start to stop. Callable from any thread in this time, also while a block is under way. */
int jw_workload_tid(const jw_workload *workload, int thread);
/* Make one block; sleep meanwhile. One caller at a time. Return 0 with *result filled; -ECANCELED once stopped, or never
 * started; -ECHILD once the process of a thread was killed; -errno of what the threads need where that failed (a connection,
 * a sleep). Then *result is as it was. */
int jw_workload_block(jw_workload *workload, const jw_block_request *request, jw_block_result *result);
/* Return the stamps (in ticks) or the CPUs of one series of samples; NULL for a series that the workload does not have.
 * Callable from any thread, also while a block is under way. The memory is the workload's, valid until free, and holds the
 * last block. Read it only between blocks: in the thread that made the block, or after a synchronization with it. */
const uint64_t *jw_workload_stamps(const jw_workload *workload, int series);
const uint16_t *jw_workload_cpus(const jw_workload *workload, int series);
/* Lock the workload's memory, where locking all of the process is not allowed. Return 0 or -errno; parts may be locked
 * then. Callable from any thread, also while a block is under way; the block's threads may have to wait for it. */
int jw_workload_lock(const jw_workload *workload);
/* End the threads and wait for them; a block that is under way returns. Callable from any thread, also while another one
 * is in block; a second call does nothing. */
void jw_workload_stop(jw_workload *workload);
/* Stop the workload and free it; no other thread may use it any more. NULL is allowed. */
void jw_workload_free(jw_workload *workload);

/* Each `new` copies config and options, and returns a workload that the caller frees; or NULL with *error = -EINVAL (a
 * config that makes no sense), -ENOMEM, or another -errno of what the workload needs. */

/* ---- ring.c: producer -> accumulator, journaller ------------------------------------------------------------------- */

/* Threads, and series of samples: one each. The producer's samples are the moments just before the store that publishes, a
 * reader's those at which it had read all of a message. */
enum { JW_PRODUCER = 0, JW_ACCUMULATOR = 1, JW_JOURNALLER = 2 };
/* One more series, without CPUs: the moments at which messages were ready, before they were copied into their slots. */
enum { JW_READY = 3 };
enum { JW_PACING_SPIN = 0, JW_PACING_SCHEDULE = 1 };
enum { JW_RECORD_BYTES = 64, JW_JOURNAL_BYTES = 32 };

/* The accumulator's copy of each message, made before it stamps the arrival. FRESH: the memory for the copies was never
 * touched, so every first write to a page is a fault; this memory is given back before each block. FILE: the copies go into
 * a file that is only in memory and has its pages already, each by one system call (pwrite). HUGE: as FRESH, but the kernel
 * is asked for huge pages, and a block goes on in the page in which the one before it has ended: a fault comes with every
 * JW_COPIES_OF_HUGE_PAGE-th message, however short the blocks are. */
enum { JW_KEEP_NONE = 0, JW_KEEP_READY = 1, JW_KEEP_FRESH = 2, JW_KEEP_FILE = 3, JW_KEEP_HUGE = 4 };
enum { JW_COPIES_OF_HUGE_PAGE = 32768 };

typedef struct {
    uint64_t slots;     /* a power of two */
    int32_t journaller; /* 0 or 1 */
    int32_t pacing;
    int32_t keep; /* copy each recorded message (JW_RECORD_BYTES) into memory or a file of its own */
    const void *records; /* record_count * 64 bytes, a power of two of them; valid until free. A message has the last 48 of
                            them, behind its number and its time */
    uint64_t record_count;
    void *journal; /* journal_count * 32 bytes, a power of two of them, valid until free; null without a journaller */
    uint64_t journal_count;
} jw_ring_options;

jw_workload *jw_ring_new(const jw_workload_config *config, const jw_ring_options *options, int *error);
/* Only for a workload of jw_ring_new, between blocks. Return the entry whose copy was the last block's first to begin a new
 * huge page; JW_COPIES_OF_HUGE_PAGE later comes the next one. */
uint64_t jw_ring_first_new_page(const jw_workload *ring);
/* Return how many huge pages the copies of the last block got, by the kernel's list of mappings (AnonHugePages of
 * /proc/self/smaps); -1 where it does not say. */
int64_t jw_ring_huge_pages(const jw_workload *ring);
/* Return what reading the content of `n` messages from `first_sequence` on must give. */
uint64_t jw_payload_sum(const void *records, uint64_t record_count, uint64_t first_sequence, uint64_t n);

/* ---- wakeup.c: one thread sleeps until a time, again and again ------------------------------------------------------- */

/* Series of samples: the times that were set (without CPUs), and the readings after waking up. */
enum { JW_DUE = 0, JW_WOKEN = 1 };

/* A lock that the thread takes after each wake-up, before its reading. Two helper threads of it, on the same CPU, begin with
 * the first block: one with a priority lower by two holds the lock now and then; one with a priority between both takes no
 * lock, and keeps the CPU for milliseconds. INHERIT: the holder gets the waiter's priority (PTHREAD_PRIO_INHERIT). Only with
 * a FIFO priority of at least JW_LOCK_LEAST_PRIORITY the helpers have such priorities. */
enum { JW_LOCK_NONE = 0, JW_LOCK_PLAIN = 1, JW_LOCK_INHERIT = 2, JW_LOCK_LEAST_PRIORITY = 3 };

jw_workload *jw_wakeup_new(const jw_workload_config *config, int lock, int *error);

/* ---- ack.c: a TCP receiver on the loopback device, and its sender ---------------------------------------------------- */

/* Threads, and series of samples: one each. */
enum { JW_ACK_SENDER = 0, JW_ACK_RECEIVER = 1 };

jw_workload *jw_ack_new(const jw_workload_config *config, int *error);

/* ---- spin.c: one thread reads the clock in a tight loop ------------------------------------------------------------- */

typedef struct {
    uint64_t start; /* ticks; the reading before the gap */
    uint64_t end;
    uint32_t cpu;   /* where the reading before the gap was made, as far as is known */
    uint32_t moved; /* the reading after it was made on another CPU */
} jw_gap;

enum { JW_CHASE_STEPS = 4 };

typedef struct {
    uint64_t small_ticks;  /* gaps below are counted in a table, the others logged one by one, `most` of them */
    uint64_t busy_ticks;   /* the thread samples so long, then pauses for the rest of the period; 0: always busy */
    uint64_t period_ticks;
    int32_t pause_busily; /* a pause keeps the CPU; else it sleeps */
    uint64_t chase_bytes; /* before each reading: JW_CHASE_STEPS loads from so much memory, in random order; 0: none */
    uint64_t stop_ticks;  /* a gap of at least this length ends its block soon; 0: none does */
    uint64_t tail_ticks;  /* so long after the first such gap */
} jw_spin_options;

jw_workload *jw_spin_new(const jw_workload_config *config, const jw_spin_options *options, int *error);
/* Return the last block's table of small gaps (small_ticks entries), its log of the others, and its readings by CPU
 * (65,536 entries). Only for a workload of jw_spin_new; the memory is as that of jw_workload_stamps. */
const uint64_t *jw_spin_table(const jw_workload *spin);
const jw_gap *jw_spin_gaps(const jw_workload *spin);
const uint64_t *jw_spin_readings_by_cpu(const jw_workload *spin);

/* Add the n gaps to `counts` by their length: those of at least bounds_ns[i] and below the next bound, which rise. */
void jw_analyse_buckets(const jw_clock *clock, const jw_gap *gaps, size_t n, const int64_t *bounds_ns, size_t buckets,
                        uint64_t *counts);
/* Record the gaps of a table and of a log. */
void jw_analyse_gaps(const jw_clock *clock, const uint64_t *table, uint64_t table_len, const jw_gap *gaps, size_t n,
                     jw_histogram *into);
/* Find the gaps of at least `threshold_ns`, joined where they touch. Return their number; at most `room` are written. */
size_t jw_analyse_gap_stalls(const jw_clock *clock, uint64_t base, const jw_gap *gaps, size_t n, int64_t threshold_ns,
                             jw_stall *out, size_t room);

/* ---- noise*.c: noises to order ----------------------------------------------------------------------------------- */

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
    JW_NOISE_UNBOUND = 9,
    JW_NOISE_TERMINAL = 10,
    JW_NOISE_DISK = 11,
    JW_NOISE_NETWORK = 12,
    JW_NOISE_HWRNG = 13,
    JW_NOISES = 14
};

/* The kinds of bursts. */
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
    const int32_t *cpus; /* one for each thread of spinners and unbound, -1: the scheduler's choice; read by
                          * jw_noise_start only */
    uint64_t cpus_len;
    const char *name; /* of the threads; read by jw_noise_start only */
} jw_noise_config;

typedef struct jw_noise jw_noise;

/* Start making noise; the noise goes on until stop, free or the deadline. Return an object that the caller frees, or NULL
 * with *error = -EINVAL (a config that makes no sense, or a CPU that the threads may not use), -ENOMEM, -ENOTSUP (the
 * host cannot make it), -EACCES, -EPERM or -EROFS. The config is copied; what it points to is read only here. */
jw_noise *jw_noise_start(const jw_noise_config *config, int *error);
/* Aim at these threads from now on: at most 8 of them. Callable from any thread. */
void jw_noise_aim(jw_noise *noise, const int32_t *tids, size_t n);
/* Return the length of a burst where it was measured once, before the noise began; 0: the log has each burst's own. */
uint64_t jw_noise_length_ticks(const jw_noise *noise);
/* End the threads and wait for them, two periods at most. One caller at a time; a second call does nothing. */
void jw_noise_stop(jw_noise *noise);
/* After stop: copy at most `room` bursts, in the order of their starts. Return how many there are; 0 before stop. */
size_t jw_noise_bursts(const jw_noise *noise, jw_burst *out, size_t room);
/* After stop: return the number of bursts that found the log full; 0 before stop. */
uint64_t jw_noise_unlogged(const jw_noise *noise);
/* Stop the noise and free it; no other thread may use it any more. NULL is allowed. */
void jw_noise_free(jw_noise *noise);

/* ---- bench.c: what the project's own benchmarks time ----------------------------------------------------------------- */

/* Return the cost of one clock reading in ns; `ordered`: of the kind that names the CPU. */
double jw_bench_clock_ns(const jw_clock *clock, int ordered, uint64_t readings);
/* Return the cost of recording one of `n` values in ns, over `rounds` of them all. */
double jw_bench_record_ns(const jw_clock *clock, jw_histogram *into, const int64_t *values, size_t n, uint64_t rounds);
/* Return the cost of one turn of the sampler's loop in ns. One caller at a time in a thread: it has thread-local memory. */
double jw_bench_spin_loop_ns(const jw_clock *clock, uint64_t readings);

/* ---- memory.c, threads.c: the child as a whole ------------------------------------------------------------------------ */

/* Ask the kernel to kill this process (PR_SET_PDEATHSIG, prctl(2)) when the thread that forked it ends. Return 0 or
 * -errno. */
int jw_die_with_parent(void);
/* Lock the memory of this process, also what it will map (`future`). Return 0, or -errno and nothing is locked. */
int jw_lock_memory(int future);
