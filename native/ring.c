/* The ring: a producer publishes messages, an accumulator and a journaller read them. The loops only stamp: one time and one
 * CPU a message, into memory that is already there. All arithmetic waits until the block is over (analysis.c). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"
#include "pingpong.h"
#include "workload.h"

enum { LEAST_SLOTS = 16, MOST_SLOTS = 1 << 20, LEAST_UNRECORDED = 2 };

/* Usage is read this many messages before the block, so that the system call itself has died away. */
enum { START_AHEAD = 16, PING_LIMIT_MS = 5 };

/* Samples of unrecorded messages go here, behind a block's own. */
enum { WARM_ENTRIES = 1024 };

/* So many bytes of a new file are written at a time. */
enum { ZEROS_BYTES = 64 << 10 };

#ifndef MFD_NOEXEC_SEAL /* since Linux 6.3 (memfd_create(2)); older headers lack it */
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* A message's mark: the readers' task besides reading it. FIRST: it is a block's reference, and the block's own messages
 * follow it. */
enum { MARK_NONE = 0, MARK_PING = 1, MARK_START = 2, MARK_END = 3, MARK_CLOCK = 4, MARK_FIRST = 5, MARK_BITS = 3 };

enum { WORDS = JW_RECORD_BYTES / sizeof(uint64_t), HEADER_WORDS = 2, CONTENT_WORDS = WORDS - HEADER_WORDS };

/* A message is one line, so that one transfer brings all of it: its number, which a consumer polls, its time, and 48 bytes
 * of its record. A record's first 16 bytes are where these two go. */
typedef struct {
    _Alignas(JW_APART) _Atomic uint64_t number; /* (sequence + 1) and a mark in the low bits; 0: never used */
    uint64_t stamp;
    uint64_t content[CONTENT_WORDS];
    char apart[JW_APART - JW_RECORD_BYTES];
} jw_slot;

_Static_assert(JW_HUGE_PAGE / JW_RECORD_BYTES == JW_COPIES_OF_HUGE_PAGE, "copies begin where a huge page begins");
_Static_assert(sizeof(jw_slot) == JW_APART, "a slot keeps its line apart");

typedef struct {
    _Alignas(JW_APART) _Atomic uint64_t done; /* messages read */
    char rest[JW_APART - sizeof(uint64_t)];
} jw_progress;

typedef struct {
    jw_workload base;
    jw_ring_options options;
    jw_slot *slots;
    jw_progress progress[JW_MOST_THREADS];
    jw_line line;
    jw_line clock_line; /* one of its own: the other side may still be leaving this one when pings begin */
    void *kept; /* memory for the accumulator's copies of a block's messages; NULL: none in memory */
    size_t kept_bytes;
    uint64_t *copies; /* these copies, by entry: behind the copies that a huge page has from the block before */
    uint64_t before;  /* how many those are */
    int64_t given;    /* the huge pages that hold them */
    bool went_on;     /* there was a block before */
    uint64_t *kept_warm; /* the same for unrecorded messages: always ready */
    int kept_file; /* the file in which the copies go instead, by system calls; 0: there is none */
} jw_ring;

typedef struct {
    jw_ring *ring;
    uint64_t next;  /* sequence of the next message */
    uint64_t read;  /* what the slower consumer had read when last looked at */
    uint64_t blocked;
    uint64_t last; /* when the last message was published */
    uint64_t interval_ticks;
    /* schedule */
    uint64_t start;
    uint64_t nth;
} producer;

JW_INLINE uint64_t slowest_reader(const jw_ring *ring) {
    uint64_t least = atomic_load_explicit(&ring->progress[JW_ACCUMULATOR].done, memory_order_acquire);
    if (ring->options.journaller) {
        uint64_t other = atomic_load_explicit(&ring->progress[JW_JOURNALLER].done, memory_order_acquire);
        least = other < least ? other : least;
    }
    return least;
}

/* A full ring blocks the producer; it looks at the readers' lines only when its own arithmetic says the ring is full. */
JW_INLINE bool wait_for_room(producer *p) {
    const uint64_t slots = p->ring->options.slots;
    if (__builtin_expect(p->next - p->read < slots, 1)) {
        return true;
    }
    p->read = slowest_reader(p->ring);
    if (p->next - p->read < slots) {
        return true;
    }
    p->blocked++;
    while (p->next - p->read >= slots) {
        if (jw_stopped(&p->ring->base.stop)) {
            return false;
        }
        p->read = slowest_reader(p->ring);
    }
    return true;
}

JW_INLINE jw_slot *slot_of(const jw_ring *ring, uint64_t sequence) {
    return &ring->slots[sequence & (ring->options.slots - 1)];
}

JW_INLINE const uint64_t *record_of(const jw_ring *ring, uint64_t sequence) {
    const uint64_t *words = ring->options.records;
    return words + (sequence & (ring->options.record_count - 1)) * WORDS;
}

JW_INLINE bool publish(producer *p, int source, uint32_t entry, uint32_t mark) {
    jw_ring *ring = p->ring;
    if (!wait_for_room(p)) {
        return false;
    }
    jw_slot *slot = slot_of(ring, p->next);
    const uint64_t *record = record_of(ring, p->next);
    /* The message is ready, and its time begins: what copying it costs, and taking its line back, is in its transit. */
    const uint64_t ready = jw_now(source);
    jw_in_this_order();
    memcpy(slot->content, record + HEADER_WORDS, sizeof slot->content);
    slot->stamp = ready;
    jw_in_this_order();
    /* Before the store, which it delays by some ns: an interruption behind it would make hand-offs negative. */
    const uint64_t published = jw_now(source);
    atomic_store_explicit(&slot->number, (p->next + 1) << MARK_BITS | mark, memory_order_release);
    p->last = published;
    p->next++;
    /* After the publish, where it costs no latency: the reading that names the CPU. */
    unsigned cpu;
    (void)jw_now_ordered(source, &cpu);
    ring->base.samples[JW_READY].stamps[entry] = ready;
    ring->base.samples[JW_PRODUCER].stamps[entry] = published;
    ring->base.samples[JW_PRODUCER].cpus[entry] = (uint16_t)cpu;
    return true;
}

/* A consumer that polls a line shares it, and a store has to take the line back first. So the producer asks for the next
 * slot's line again and again while it waits: the store then often finds it here. */
JW_INLINE bool wait_until(const producer *p, int source, uint64_t base, uint64_t ticks) {
    const jw_slot *next = slot_of(p->ring, p->next);
    while (jw_now(source) - base < ticks) {
        jw_prefetch_for_writing(next);
        if (jw_stopped(&p->ring->base.stop)) {
            return false;
        }
    }
    return true;
}

/* Ticks from the schedule's start to its n-th message: each rounded on its own, so that no error adds up. */
JW_INLINE uint64_t due_ticks(const producer *p, uint64_t n) {
    return (uint64_t)((jw_u128)n * p->ring->base.config.interval_ns * p->ring->base.config.clock.rate_hz / JW_NS_PER_S);
}

JW_INLINE bool pace(producer *p, int source) {
    uint64_t base = p->last, ticks = p->interval_ticks;
    if (p->ring->options.pacing == JW_PACING_SCHEDULE) {
        base = p->start;
        ticks = due_ticks(p, ++p->nth);
    }
    __builtin_prefetch(record_of(p->ring, p->next));
    return wait_until(p, source, base, ticks);
}

/* The readers do the same work as for a recorded message; what they note is not used. */
JW_INLINE bool send_unrecorded(producer *p, int source, uint32_t mark) {
    uint32_t entry = (uint32_t)(p->ring->base.config.most + 1 + (p->next & (WARM_ENTRIES - 1)));
    return publish(p, source, entry, mark) && pace(p, source);
}

JW_INLINE void restart_schedule(producer *p, uint64_t at) {
    p->start = at;
    p->nth = 0;
}

JW_INLINE bool lead_in(producer *p, int source) {
    jw_ring *ring = p->ring;
    const uint64_t asked = ring->base.request.unrecorded;
    const uint64_t unrecorded = asked < LEAST_UNRECORDED ? LEAST_UNRECORDED : asked;
    ring->base.result.ring.ping_pong_ns = -1.0;
    ring->base.result.ring.offset.bound_ticks = -1;
    if (ring->base.request.offset_rounds > 0) {
        atomic_store_explicit(&ring->clock_line.turn, 0, memory_order_relaxed);
        if (!send_unrecorded(p, source, MARK_CLOCK)) {
            return false;
        }
        /* Without an answer the bound stays below 0. */
        (void)jw_ask_side(&ring->clock_line, source, ring->base.request.offset_rounds, &ring->base.stop,
                          &ring->base.result.ring.offset);
        restart_schedule(p, jw_now(source));
    }
    if (ring->base.request.ping_pong) {
        /* The other side has left the line: it has ended its part of the block before. */
        atomic_store_explicit(&ring->line.turn, 0, memory_order_relaxed);
        if (!send_unrecorded(p, source, MARK_PING)) {
            return false;
        }
        uint64_t limit = jw_clock_ticks(&ring->base.config.clock, (uint64_t)PING_LIMIT_MS * (JW_NS_PER_S / 1000));
        ring->base.result.ring.ping_pong_ns =
            jw_ping_side(&ring->line, &ring->base.config.clock, limit, &ring->base.stop);
        restart_schedule(p, jw_now(source));
    }
    /* All but the last, which is the block's reference and goes into entry 0. */
    const uint64_t mark_at = unrecorded > START_AHEAD ? unrecorded - START_AHEAD : 0;
    for (uint64_t i = 0; i + 1 < unrecorded; i++) {
        if (i == mark_at) {
            jw_usage_begin(&ring->base, JW_PRODUCER);
        }
        if (!send_unrecorded(p, source, i == mark_at ? MARK_START : MARK_NONE)) {
            return false;
        }
    }
    return true;
}

JW_INLINE bool block(producer *p, int source) {
    jw_ring *ring = p->ring;
    const uint64_t messages = jw_block_most(&ring->base), duration = ring->base.request.duration_ticks;
    if (!lead_in(p, source)) {
        return false;
    }
    const uint64_t first = p->next;
    if (!publish(p, source, 0, MARK_FIRST)) {
        return false;
    }
    const uint64_t begun = p->last;
    restart_schedule(p, begun);
    p->blocked = 0;
    uint64_t sent = 0;
    while (sent < messages && p->last - begun < duration) {
        if (!pace(p, source) || !publish(p, source, (uint32_t)(sent + 1), MARK_NONE)) {
            return false;
        }
        sent++;
    }
    ring->base.result.count = sent;
    ring->base.result.ring.first_sequence = first;
    ring->base.result.ring.blocked = p->blocked;
    ring->base.result.ring.payload_sum[JW_PRODUCER] =
        jw_payload_sum(ring->options.records, ring->options.record_count, first + 1, sent);
    jw_usage_end(&ring->base, JW_PRODUCER);
    restart_schedule(p, jw_now(source));
    return send_unrecorded(p, source, MARK_END);
}

JW_INLINE void produce(jw_ring *ring, int source) {
    const jw_clock *clock = &ring->base.config.clock;
    producer p = {.ring = ring,
                  .interval_ticks = jw_clock_ticks(clock, ring->base.config.interval_ns),
                  .start = jw_now(source)};
    p.last = p.start;
    uint32_t answered = 0;
    for (;;) {
        if (jw_block_asked(&ring->base, answered)) {
            answered++;
            if (!block(&p, source)) {
                return;
            }
            jw_nap();
            jw_block_done(&ring->base);
            restart_schedule(&p, jw_now(source));
        }
        if (!send_unrecorded(&p, source, MARK_NONE)) {
            return;
        }
    }
}

JW_INLINE void put32(unsigned char *at, uint32_t value) {
    uint32_t big = __builtin_bswap32(value);
    memcpy(at, &big, sizeof big);
}

JW_INLINE void put64(unsigned char *at, uint64_t value) {
    uint64_t big = __builtin_bswap64(value);
    memcpy(at, &big, sizeof big);
}

/* 32 bytes, big-endian: marker, publisher ns, journaller ns, difference, sequence. */
JW_INLINE void write_journal(const jw_ring *ring, uint64_t sequence, uint64_t published, uint64_t received) {
    const jw_clock *clock = &ring->base.config.clock;
    unsigned char *record = ring->options.journal;
    record += (sequence & (ring->options.journal_count - 1)) * JW_JOURNAL_BYTES;
    put32(record, UINT32_C(0x55555555));
    put64(record + 4, jw_ns(clock, published));
    put64(record + 12, jw_ns(clock, received));
    put64(record + 20, (uint64_t)jw_ns_between(clock, published, received));
    put32(record + 28, (uint32_t)sequence);
}

/* Do what a marked message asks for: at the end of a block a reader sums up and reports. */
static void handle_mark(jw_ring *ring, int who, uint32_t mark, uint64_t *sum) {
    if (mark == MARK_PING && who == JW_ACCUMULATOR) {
        jw_pong_side(&ring->line, &ring->base.stop);
    } else if (mark == MARK_CLOCK && who == JW_ACCUMULATOR) {
        jw_stamp_side(&ring->clock_line, ring->base.config.clock.source, &ring->base.stop);
    } else if (mark == MARK_START) {
        jw_usage_begin(&ring->base, who);
    } else if (mark == MARK_END) {
        jw_usage_end(&ring->base, who);
        ring->base.result.ring.payload_sum[who] = *sum;
        if (who == JW_ACCUMULATOR) {
            ring->base.result.core_hz = jw_core_hz(&ring->base.config.clock);
        }
        jw_nap();
        jw_block_done(&ring->base);
    }
}

/* The place of the copy of an entry's message. */
JW_INLINE uint64_t *copy_of(const jw_ring *ring, uint64_t entry) {
    const uint64_t most = ring->base.config.most;
    return entry <= most ? ring->copies + entry * WORDS : ring->kept_warm + (entry - most - 1) * WORDS;
}

/* Have the kernel write the copy of an entry's message: one system call. Return 0 or -errno. */
JW_INLINE int write_copy(const jw_ring *ring, uint64_t entry, const uint64_t *words) {
    const ssize_t written = pwrite(ring->kept_file, words, JW_RECORD_BYTES, (off_t)(entry * JW_RECORD_BYTES));
    return written == JW_RECORD_BYTES ? 0 : written < 0 ? -errno : -EIO;
}

/* A message has arrived when all of it is read. With a `keep` other than JW_KEEP_NONE: when its copy is written, too, so that
 * what the copy costs is in the message's time. */
JW_INLINE void consume(jw_ring *ring, int source, int who, int keep) {
    const jw_samples own = ring->base.samples[who];
    const uint64_t warm = ring->base.config.most + 1;
    uint64_t sum = 0, first = 0;
    bool recorded = false;
    for (uint64_t sequence = 0;; sequence++) {
        jw_slot *slot = slot_of(ring, sequence);
        uint64_t words[WORDS];
        /* No pause instruction: it would make the first sight of the message later by up to its own length. */
        while ((words[0] = atomic_load_explicit(&slot->number, memory_order_acquire)) >> MARK_BITS != sequence + 1) {
            if (jw_stopped(&ring->base.stop)) {
                return;
            }
        }
        const uint32_t mark = words[0] & ((1U << MARK_BITS) - 1);
        words[1] = slot->stamp;
        memcpy(words + HEADER_WORDS, slot->content, sizeof slot->content);
        if (__builtin_expect(mark == MARK_FIRST || mark == MARK_END, 0)) {
            recorded = mark == MARK_FIRST;
            first = sequence;
            sum = recorded ? 0 : sum;
        }
        const uint64_t entry = recorded ? sequence - first : warm + (sequence & (WARM_ENTRIES - 1));
        if (keep == JW_KEEP_FILE) {
            const int failed = write_copy(ring, entry, words);
            if (__builtin_expect(failed != 0, 0)) {
                jw_give_up(&ring->base, failed);
                return;
            }
        } else if (keep != JW_KEEP_NONE) {
            memcpy(copy_of(ring, entry), words, sizeof words);
        }
        jw_have(words);
        unsigned cpu;
        const uint64_t received = jw_now_ordered(source, &cpu);
        uint64_t read = 0;
        for (size_t w = HEADER_WORDS; w < WORDS; w++) {
            read ^= words[w] + w;
        }
        /* Entry 0 is the reference: the block's own messages begin behind it. */
        sum = recorded && entry > 0 ? sum ^ read : sum;
        own.stamps[entry] = received;
        own.cpus[entry] = (uint16_t)cpu;
        if (who == JW_JOURNALLER) {
            write_journal(ring, sequence, words[1], received);
        }
        atomic_store_explicit(&ring->progress[who].done, sequence + 1, memory_order_release);
        if (__builtin_expect(mark != MARK_NONE, 0)) {
            handle_mark(ring, who, mark, &sum);
        }
    }
}

/* The sum that reading the content of `n` messages from `first_sequence` on must give. */
uint64_t jw_payload_sum(const void *records, uint64_t record_count, uint64_t first_sequence, uint64_t n) {
    const uint64_t *words = records;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t *record = words + ((first_sequence + i) & (record_count - 1)) * WORDS;
        for (size_t w = HEADER_WORDS; w < WORDS; w++) {
            sum ^= record[w] + w;
        }
    }
    return sum;
}

static void run_producer(jw_workload *workload) {
    JW_PER_CLOCK(workload->config.clock.source, source, produce((jw_ring *)workload, source))
}

static void run_accumulator(jw_workload *workload) {
    jw_ring *ring = (jw_ring *)workload;
    if (ring->options.keep == JW_KEEP_FILE) {
        JW_PER_CLOCK(workload->config.clock.source, source, consume(ring, source, JW_ACCUMULATOR, JW_KEEP_FILE))
    } else if (ring->options.keep != JW_KEEP_NONE) {
        JW_PER_CLOCK(workload->config.clock.source, source, consume(ring, source, JW_ACCUMULATOR, JW_KEEP_READY))
    } else {
        JW_PER_CLOCK(workload->config.clock.source, source, consume(ring, source, JW_ACCUMULATOR, JW_KEEP_NONE))
    }
}

static void run_journaller(jw_workload *workload) {
    JW_PER_CLOCK(workload->config.clock.source, source, consume((jw_ring *)workload, source, JW_JOURNALLER, JW_KEEP_NONE))
}

/* Go on in the huge page in which the block before has ended: its part of the page is touched here, by another thread. */
static void go_on(jw_ring *ring) {
    const uint64_t more = ring->went_on ? ring->base.result.count + 1 : 0;
    ring->before = (ring->before + more) % JW_COPIES_OF_HUGE_PAGE;
    ring->went_on = true;
    jw_ask_huge(ring->kept, ring->kept_bytes);
    memset(ring->kept, 0, ring->before * JW_RECORD_BYTES);
    ring->copies = (uint64_t *)ring->kept + ring->before * WORDS;
    ring->given = jw_huge_pages(ring->kept, ring->kept_bytes);
}

/* Between blocks only unrecorded messages are kept, elsewhere: no thread uses what is given back. */
static int give_back(jw_workload *workload) {
    jw_ring *ring = (jw_ring *)workload;
    const int keep = ring->options.keep;
    const int failed = keep == JW_KEEP_FRESH || keep == JW_KEEP_HUGE ? jw_give_back(ring->kept, ring->kept_bytes) : 0;
    if (keep == JW_KEEP_HUGE && failed == 0) {
        go_on(ring);
    }
    return failed;
}

static void close_file(jw_workload *workload) {
    const jw_ring *ring = (const jw_ring *)workload;
    if (ring->kept_file > 0) {
        (void)close(ring->kept_file);
    }
}

/* Make an empty file that is only in memory. Return its descriptor, or -1 with errno. A kernel with vm.memfd_noexec=2 makes
 * none that could be executed; one before Linux 6.3 does not know the flag. */
static int empty_file_in_memory(void) {
    const int file = memfd_create("kept", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    return file < 0 && errno == EINVAL ? memfd_create("kept", MFD_CLOEXEC) : file;
}

/* Make a file of `bytes` that is only in memory, and write all its pages. Return its descriptor, or -errno. */
static int file_in_memory(size_t bytes) {
    static const char zeros[ZEROS_BYTES];
    const int file = empty_file_in_memory();
    if (file < 0) {
        return -errno;
    }
    for (size_t at = 0; at < bytes;) {
        const size_t rest = bytes - at;
        const ssize_t written = pwrite(file, zeros, rest < sizeof zeros ? rest : sizeof zeros, (off_t)at);
        if (written <= 0) {
            const int failed = written < 0 ? -errno : -EIO;
            (void)close(file);
            return failed;
        }
        at += (size_t)written;
    }
    return file;
}

static const jw_kind ring_kind = {.bytes = sizeof(jw_ring),
                                  .prepare = give_back,
                                  .close = close_file,
                                  .parts = {[JW_PRODUCER] = {"producer", run_producer},
                                            [JW_ACCUMULATOR] = {"accumulator", run_accumulator},
                                            [JW_JOURNALLER] = {"journaller", run_journaller}}};

static bool power_of_two(uint64_t n) {
    return n > 0 && (n & (n - 1)) == 0;
}

static bool sensible(const jw_ring_options *o) {
    return power_of_two(o->slots) && o->slots >= LEAST_SLOTS && o->slots <= MOST_SLOTS && o->records != NULL &&
           power_of_two(o->record_count) &&
           (!o->journaller || (o->journal != NULL && power_of_two(o->journal_count))) &&
           (o->pacing == JW_PACING_SPIN || o->pacing == JW_PACING_SCHEDULE) && o->keep >= JW_KEEP_NONE &&
           o->keep <= JW_KEEP_HUGE;
}

jw_workload *jw_ring_new(const jw_workload_config *config, const jw_ring_options *options, int *error) {
    const int threads = options->journaller ? 3 : 2;
    *error = -EINVAL;
    jw_ring *made = sensible(options) ? jw_workload_make(&ring_kind, config, threads, error) : NULL;
    if (made == NULL) {
        return NULL;
    }
    made->options = *options;
    made->slots = jw_workload_map(&made->base, options->slots * sizeof(jw_slot));
    const size_t entries = (size_t)config->most + 1 + WARM_ENTRIES;
    int failed = 0;
    if (options->keep == JW_KEEP_FILE) {
        const int file = file_in_memory(entries * JW_RECORD_BYTES);
        failed = file < 0 ? file : 0;
        made->kept_file = file < 0 ? 0 : file;
    } else if (options->keep != JW_KEEP_NONE) {
        const size_t bytes = ((size_t)config->most + 1) * JW_RECORD_BYTES;
        made->kept_bytes = options->keep == JW_KEEP_HUGE ? jw_whole_huge_pages(bytes + JW_HUGE_PAGE) : bytes;
        made->kept = made->copies = jw_workload_map(&made->base, made->kept_bytes);
        made->kept_warm = jw_workload_map(&made->base, (size_t)WARM_ENTRIES * JW_RECORD_BYTES);
    }
    for (int thread = 0; thread < threads; thread++) {
        jw_workload_sample(&made->base, thread, entries);
    }
    jw_workload_sample(&made->base, JW_READY, entries);
    return jw_workload_made(&made->base, failed, error);
}

uint64_t jw_ring_first_new_page(const jw_workload *workload) {
    const jw_ring *ring = (const jw_ring *)workload;
    return (JW_COPIES_OF_HUGE_PAGE - ring->before) % JW_COPIES_OF_HUGE_PAGE;
}

int64_t jw_ring_huge_pages(const jw_workload *workload) {
    const jw_ring *ring = (const jw_ring *)workload;
    const int64_t now = ring->kept == NULL ? 0 : jw_huge_pages(ring->kept, ring->kept_bytes);
    return now < 0 || ring->given < 0 ? -1 : now - ring->given;
}
