/* The measured loops. They only stamp: one time and one CPU a message, into memory that is already there. All arithmetic
 * waits until the block is over (digest.c). Each loop is compiled once per clock, so no branch asks which clock it is. */
#include <string.h>

#include "clock.h"
#include "ring.h"

/* Usage is read this many messages before the block, so that the system call itself has died away. */
enum { START_AHEAD = 16, PING_LIMIT_MS = 5, PREFETCH_LEAD_NS = 400 };

typedef struct {
    jw_ring *ring;
    uint64_t next;  /* sequence of the next message */
    uint64_t read;  /* what the slower consumer had read when last looked at */
    uint64_t blocked;
    uint64_t last; /* stamp of the last publish */
    uint64_t interval_ticks;
    uint64_t lead_ticks;
    /* schedule */
    uint64_t start;
    uint64_t nth;
} producer;

JW_INLINE uint64_t slowest_reader(const jw_ring *ring) {
    uint64_t least = atomic_load_explicit(&ring->progress[JW_ACCUMULATOR].done, memory_order_acquire);
    if (ring->config.journaller) {
        uint64_t other = atomic_load_explicit(&ring->progress[JW_JOURNALLER].done, memory_order_acquire);
        least = other < least ? other : least;
    }
    return least;
}

/* A full ring blocks the producer; it looks at the readers' lines only when its own arithmetic says the ring is full. */
JW_INLINE bool wait_for_room(producer *p) {
    const uint64_t slots = p->ring->config.slots;
    if (__builtin_expect(p->next - p->read < slots, 1)) {
        return true;
    }
    p->read = slowest_reader(p->ring);
    if (p->next - p->read < slots) {
        return true;
    }
    p->blocked++;
    while (p->next - p->read >= slots) {
        if (jw_stopped(&p->ring->stop)) {
            return false;
        }
        p->read = slowest_reader(p->ring);
    }
    return true;
}

JW_INLINE jw_slot *slot_of(const jw_ring *ring, uint64_t sequence) {
    return &ring->slots[sequence & (ring->config.slots - 1)];
}

JW_INLINE const uint64_t *record_of(const jw_ring *ring, uint64_t sequence) {
    const uint64_t *words = ring->config.records;
    return words + (sequence & (ring->config.record_count - 1)) * (JW_RECORD_BYTES / sizeof(uint64_t));
}

JW_INLINE bool publish(producer *p, int source, uint32_t entry, uint32_t mark) {
    jw_ring *ring = p->ring;
    if (!wait_for_room(p)) {
        return false;
    }
    jw_slot *slot = slot_of(ring, p->next);
    const uint64_t *record = record_of(ring, p->next);
    /* Line 1 first: line 0, which the consumers poll, is then written in one burst and travels once. */
    memcpy(slot->tail, record + 6, sizeof slot->tail);
    slot->entry = entry;
    slot->mark = mark;
    memcpy(slot->head, record, sizeof slot->head);
    uint64_t stamp = jw_now(source);
    slot->stamp = stamp;
    atomic_store_explicit(&slot->sequence, p->next + 1, memory_order_release);
    p->last = stamp;
    p->next++;
    /* After the publish, where it costs no latency: the reading that names the CPU. */
    unsigned cpu;
    (void)jw_now_ordered(source, &cpu);
    ring->notes[JW_PRODUCER].stamps[entry] = stamp;
    ring->notes[JW_PRODUCER].cpus[entry] = (uint16_t)cpu;
    return true;
}

JW_INLINE bool wait_until(const producer *p, int source, uint64_t base, uint64_t ticks) {
    while (jw_now(source) - base < ticks) {
        if (jw_stopped(&p->ring->stop)) {
            return false;
        }
    }
    return true;
}

/* Ticks from the schedule's start to its n-th message: each rounded on its own, so that no error adds up. */
JW_INLINE uint64_t due_ticks(const producer *p, uint64_t n) {
    return (uint64_t)((jw_u128)n * p->ring->config.interval_ns * p->ring->config.clock.rate_hz / JW_NS_PER_S);
}

JW_INLINE bool pace(producer *p, int source) {
    uint64_t base = p->last, ticks = p->interval_ticks;
    if (p->ring->config.pacing == JW_PACING_SCHEDULE) {
        base = p->start;
        ticks = due_ticks(p, ++p->nth);
    }
    __builtin_prefetch(record_of(p->ring, p->next));
    if (ticks > p->lead_ticks && !wait_until(p, source, base, ticks - p->lead_ticks)) {
        return false;
    }
    /* Stores leave in order: if line 1 were still with a consumer, its transfer would delay line 0 and count as latency.
     * Fetched for writing shortly before, when the consumers have long begun to poll line 0 beside it. */
    jw_prefetch_for_writing(slot_of(p->ring, p->next)->tail);
    return wait_until(p, source, base, ticks);
}

/* The readers do the same work as for a recorded message; nobody looks at what they note. */
JW_INLINE bool send_unrecorded(producer *p, int source, uint32_t mark) {
    uint32_t entry = (uint32_t)(p->ring->config.most_messages + 1 + (p->next & (JW_WARM_ENTRIES - 1)));
    return publish(p, source, entry, mark) && pace(p, source);
}

JW_INLINE void restart_schedule(producer *p, uint64_t at) {
    p->start = at;
    p->nth = 0;
}

JW_INLINE bool lead_in(producer *p, int source) {
    jw_ring *ring = p->ring;
    const uint64_t unrecorded = ring->request.unrecorded;
    if (ring->request.ping_pong) {
        if (!send_unrecorded(p, source, JW_MARK_PING)) {
            return false;
        }
        uint64_t limit = jw_clock_ticks(&ring->config.clock, (uint64_t)PING_LIMIT_MS * (JW_NS_PER_S / 1000));
        ring->ping_pong_ns = jw_ping_side(&ring->line, &ring->config.clock, limit, &ring->stop);
        restart_schedule(p, jw_now(source));
    }
    /* All but the last, which is the block's reference and goes into entry 0. */
    const uint64_t mark_at = unrecorded > START_AHEAD ? unrecorded - START_AHEAD : 0;
    for (uint64_t i = 0; i + 1 < unrecorded; i++) {
        if (i == mark_at) {
            jw_thread_usage(&ring->at_start[JW_PRODUCER]);
        }
        if (!send_unrecorded(p, source, i == mark_at ? JW_MARK_START : JW_MARK_NONE)) {
            return false;
        }
    }
    return true;
}

JW_INLINE bool block(producer *p, int source) {
    jw_ring *ring = p->ring;
    const uint64_t messages = ring->request.messages;
    const uint64_t duration = ring->request.duration_ticks > 0 ? ring->request.duration_ticks : UINT64_MAX;
    if (!lead_in(p, source)) {
        return false;
    }
    const uint64_t first = p->next;
    if (!publish(p, source, 0, JW_MARK_NONE)) {
        return false;
    }
    const uint64_t begun = p->last;
    restart_schedule(p, begun);
    p->blocked = 0;
    uint64_t sent = 0;
    while (sent < messages && p->last - begun < duration) {
        if (!pace(p, source) || !publish(p, source, (uint32_t)(sent + 1), JW_MARK_NONE)) {
            return false;
        }
        sent++;
    }
    ring->result.count = sent;
    ring->result.first_sequence = first;
    ring->result.blocked = p->blocked;
    ring->result.payload_sum[JW_PRODUCER] =
        jw_payload_sum(ring->config.records, ring->config.record_count, first + 1, sent);
    jw_usage_since(&ring->at_start[JW_PRODUCER], &ring->result.usage[JW_PRODUCER]);
    restart_schedule(p, jw_now(source));
    return send_unrecorded(p, source, JW_MARK_END);
}

JW_INLINE void produce(jw_ring *ring, int source, int who) {
    (void)who;
    const jw_clock *clock = &ring->config.clock;
    producer p = {.ring = ring,
                  .interval_ticks = jw_clock_ticks(clock, ring->config.interval_ns),
                  .lead_ticks = jw_clock_ticks(clock, PREFETCH_LEAD_NS),
                  .start = jw_now(source)};
    p.last = p.start;
    uint32_t answered = 0;
    for (;;) {
        if (atomic_load_explicit(&ring->asked, memory_order_acquire) != answered) {
            answered++;
            if (!block(&p, source)) {
                return;
            }
            jw_nap();
            jw_latch_count_down(&ring->latch);
            restart_schedule(&p, jw_now(source));
        }
        if (!send_unrecorded(&p, source, JW_MARK_NONE)) {
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
    const jw_clock *clock = &ring->config.clock;
    unsigned char *record = ring->config.journal;
    record += (sequence & (ring->config.journal_count - 1)) * JW_JOURNAL_BYTES;
    put32(record, UINT32_C(0x55555555));
    put64(record + 4, jw_ns(clock, published));
    put64(record + 12, jw_ns(clock, received));
    put64(record + 20, (uint64_t)jw_ns_between(clock, published, received));
    put32(record + 28, (uint32_t)sequence);
}

/* What a marked message asks for: at the end of a block a reader sums up and reports. */
static void obey(jw_ring *ring, int who, uint32_t mark, uint64_t *sum) {
    if (mark == JW_MARK_PING && who == JW_ACCUMULATOR) {
        jw_pong_side(&ring->line, &ring->stop);
    } else if (mark == JW_MARK_START) {
        jw_thread_usage(&ring->at_start[who]);
    } else if (mark == JW_MARK_END) {
        jw_usage_since(&ring->at_start[who], &ring->result.usage[who]);
        ring->result.payload_sum[who] = *sum;
        if (who == JW_ACCUMULATOR) {
            ring->result.core_hz = jw_core_hz(&ring->config.clock);
        }
        jw_nap();
        jw_latch_count_down(&ring->latch);
    }
}

JW_INLINE void consume(jw_ring *ring, int source, int who) {
    const jw_notes notes = ring->notes[who];
    uint64_t sum = 0;
    for (uint64_t sequence = 0;; sequence++) {
        jw_slot *slot = slot_of(ring, sequence);
        /* No pause instruction: it would make the first sight of the message later by up to its own length. */
        while (atomic_load_explicit(&slot->sequence, memory_order_acquire) != sequence + 1) {
            if (jw_stopped(&ring->stop)) {
                return;
            }
        }
        unsigned cpu;
        uint64_t received = jw_now_ordered(source, &cpu);
        uint64_t read = 0;
        for (size_t w = 0; w < 6; w++) {
            read ^= slot->head[w] + w;
        }
        read ^= (slot->tail[0] + 6) ^ (slot->tail[1] + 7);
        const uint32_t entry = slot->entry, mark = slot->mark;
        /* Entry 0 is the reference: the block's own messages begin behind it. */
        sum = entry == 0 ? 0 : entry <= ring->config.most_messages ? sum ^ read : sum;
        notes.stamps[entry] = received;
        notes.cpus[entry] = (uint16_t)cpu;
        if (who == JW_JOURNALLER) {
            write_journal(ring, sequence, slot->stamp, received);
        }
        atomic_store_explicit(&ring->progress[who].done, sequence + 1, memory_order_release);
        if (__builtin_expect(mark != JW_MARK_NONE, 0)) {
            obey(ring, who, mark, &sum);
        }
    }
}

static bool arrive(jw_ring *ring, int who) {
    ring->tid[who] = jw_thread_id();
    ring->failed[who] = jw_place_thread(ring->config.cpu[who], ring->config.fifo_priority);
    bool placed = ring->failed[who] == 0;
    jw_latch_count_down(&ring->latch);
    return placed;
}

/* Run `loop` compiled for the clock in use. */
#define PER_CLOCK(loop, ring, who)                                                                                      \
    switch ((ring)->config.clock.source) {                                                                             \
    case JW_CLOCK_TSC:                                                                                                 \
        loop(ring, JW_CLOCK_TSC, who);                                                                               \
        break;                                                                                                         \
    case JW_CLOCK_CNTVCT:                                                                                              \
        loop(ring, JW_CLOCK_CNTVCT, who);                                                                            \
        break;                                                                                                         \
    default:                                                                                                           \
        loop(ring, JW_CLOCK_MONOTONIC, who);                                                                         \
    }

void *jw_producer_body(void *argument) {
    jw_ring *ring = argument;
    jw_name_thread("producer");
    if (arrive(ring, JW_PRODUCER)) {
        PER_CLOCK(produce, ring, JW_PRODUCER)
    }
    return NULL;
}

void *jw_accumulator_body(void *argument) {
    jw_ring *ring = argument;
    jw_name_thread("accumulator");
    if (arrive(ring, JW_ACCUMULATOR)) {
        PER_CLOCK(consume, ring, JW_ACCUMULATOR)
    }
    return NULL;
}

void *jw_journaller_body(void *argument) {
    jw_ring *ring = argument;
    jw_name_thread("journaller");
    if (arrive(ring, JW_JOURNALLER)) {
        PER_CLOCK(consume, ring, JW_JOURNALLER)
    }
    return NULL;
}
