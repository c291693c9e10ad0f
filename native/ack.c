/* The receiver: a sender sends a segment at every interval over a TCP connection of this process to itself; the receiver
 * sleeps in recv(2), takes what there is, stamps the time and answers with an ACK of its own. The interval between two
 * stamps is what is measured. Stamped at the receiver, as in the study that this follows: so the times are the run's own
 * clock's, and tell the CPU. The kernel's stamps of TCP's ACKs (SOF_TIMESTAMPING_TX_ACK,
 * Documentation/networking/timestamping.rst) need no rights either, but they are CLOCK_REALTIME's, are made on the
 * sender's CPU, and cost both a read of the error queue a segment. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "clock.h"
#include "loopback.h"
#include "threads.h"

enum { LEAST_INTERVAL_NS = 1000, PORTION_BYTES = 64 * 1024, ANSWERS_A_LOOK = 512 };

/* What a segment asks of its receiver besides being answered. */
enum { MARK_NONE = 0, MARK_START = 1, MARK_END = 2 };

typedef struct {
    uint64_t sequence;
    uint64_t mark;
    char rest[JW_RECORD_BYTES - 2 * sizeof(uint64_t)];
} segment;

_Static_assert(sizeof(segment) == JW_RECORD_BYTES, "a segment is as long as a record of the ring");

typedef struct {
    uint64_t *stamps; /* most_segments + 1 */
    uint16_t *cpus;
    uint64_t count;
} notes;

struct jw_ack {
    jw_ack_config config;
    int client;
    int server;
    notes of[JW_ACK_THREADS];
    jw_meeting meeting;
    pthread_t threads[JW_ACK_THREADS];
    bool started[JW_ACK_THREADS];
    int tid[JW_ACK_THREADS];
    int failed[JW_ACK_THREADS];
    uint64_t duration_ticks; /* written before `asked` is raised */
    jw_ack_result result;
    char portion[PORTION_BYTES];                 /* the receiver's */
    _Alignas(JW_APART) uint64_t answers[ANSWERS_A_LOOK]; /* the sender's */
    _Alignas(JW_APART) _Atomic int stop;
    _Atomic int broken; /* -errno of a connection that failed */
    _Atomic uint32_t asked;
};

static size_t entries(const jw_ack *ack) {
    return ack->config.most_segments + 1;
}

/* NULL with *error = -EINVAL, -ENOMEM, or why there is no connection over the loopback device. */
jw_ack *jw_ack_new(const jw_ack_config *config, int *error) {
    *error = -EINVAL;
    if (config->most_segments == 0 || config->most_segments > UINT32_MAX || config->interval_ns < LEAST_INTERVAL_NS ||
        config->interval_ns > JW_LONGEST_INTERVAL_NS || !jw_clock_usable(config->clock.source) ||
        config->clock.mult == 0) {
        return NULL;
    }
    *error = -ENOMEM;
    jw_ack *ack = jw_map(sizeof *ack);
    if (ack == NULL) {
        return NULL;
    }
    ack->config = *config;
    ack->client = ack->server = -1;
    jw_meeting_init(&ack->meeting);
    bool complete = true;
    for (int i = 0; i < JW_ACK_THREADS; i++) {
        ack->of[i].stamps = jw_map(entries(ack) * sizeof(uint64_t));
        ack->of[i].cpus = jw_map(entries(ack) * sizeof(uint16_t));
        complete = complete && ack->of[i].stamps != NULL && ack->of[i].cpus != NULL;
    }
    if (complete) {
        *error = jw_loopback_pair(&ack->client, &ack->server);
    }
    if (*error != 0) {
        jw_ack_free(ack);
        return NULL;
    }
    return ack;
}

/* The connection is of no use any more: whoever sleeps in it, or waits for a block, wakes up. */
static void give_up(jw_ack *ack, int failed) {
    if (!jw_stopped(&ack->stop)) {
        int none = 0;
        atomic_compare_exchange_strong(&ack->broken, &none, failed);
    }
    jw_loopback_end(ack->client, ack->server);
    jw_meeting_release(&ack->meeting);
}

static bool given_up(const jw_ack *ack) {
    return jw_stopped(&ack->stop) || atomic_load_explicit(&ack->broken, memory_order_relaxed) != 0;
}

/* Take the answers that have come, so that the receiver's next one finds room. Never waits. */
static bool take_answers(jw_ack *ack) {
    ssize_t n = recv(ack->client, ack->answers, sizeof ack->answers, MSG_DONTWAIT);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))) {
        return true;
    }
    give_up(ack, n == 0 ? -ECONNRESET : -errno);
    return false;
}

/* Send one segment. Where the receiver has not read for long and there is no room, that is counted, and tried again. */
static bool say(jw_ack *ack, uint64_t sequence, uint64_t mark, bool *blocked) {
    segment message = {.sequence = sequence, .mark = mark};
    size_t done = 0;
    while (done < sizeof message) {
        ssize_t n = send(ack->client, (const char *)&message + done, sizeof message - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0) {
            done += (size_t)n;
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
            *blocked = true;
            if (given_up(ack) || !take_answers(ack)) {
                return false;
            }
            jw_nap();
            continue;
        }
        give_up(ack, -errno);
        return false;
    }
    return take_answers(ack);
}

/* Segments are due at start + n * interval; late ones go at once and none is left out. */
typedef struct {
    uint64_t start;
    uint64_t n;
} schedule;

JW_INLINE bool wait_for(const jw_ack *ack, int source, const schedule *plan) {
    const uint64_t due = plan->start + jw_clock_ticks(&ack->config.clock, plan->n * ack->config.interval_ns);
    while (jw_now(source) < due) {
        if (given_up(ack)) {
            return false;
        }
        jw_relax();
    }
    return true;
}

/* Segments that nobody records, until a block is asked for. */
JW_INLINE bool keep_sending(jw_ack *ack, int source, uint32_t answered, uint64_t *sequence) {
    schedule plan = {.start = jw_now(source)};
    bool blocked;
    while (atomic_load_explicit(&ack->asked, memory_order_acquire) == answered) {
        if (given_up(ack) || !say(ack, (*sequence)++, MARK_NONE, &blocked)) {
            return false;
        }
        plan.n++;
        if (!wait_for(ack, source, &plan)) {
            return false;
        }
    }
    return !given_up(ack);
}

JW_INLINE bool send_block(jw_ack *ack, int source, uint64_t *sequence) {
    notes *own = &ack->of[JW_ACK_SENDER];
    const uint64_t duration = ack->duration_ticks;
    jw_usage at_start;
    uint64_t blocks = 0;
    jw_thread_usage(&at_start);
    schedule plan = {.start = jw_now(source)};
    for (bool last = false; !last; plan.n++) {
        unsigned cpu;
        bool blocked = false;
        if (!wait_for(ack, source, &plan)) {
            return false;
        }
        const uint64_t now = jw_now_ordered(source, &cpu);
        own->stamps[plan.n] = now;
        own->cpus[plan.n] = (uint16_t)cpu;
        last = plan.n > 0 && (now - own->stamps[0] >= duration || plan.n == ack->config.most_segments);
        if (!say(ack, (*sequence)++, last ? MARK_END : plan.n == 0 ? MARK_START : MARK_NONE, &blocked)) {
            return false;
        }
        blocks += blocked;
        own->count = plan.n;
    }
    jw_usage_since(&at_start, &ack->result.usage[JW_ACK_SENDER]);
    ack->result.sent = own->count;
    ack->result.blocked = blocks;
    return true;
}

JW_INLINE void sender(jw_ack *ack, int source) {
    uint64_t sequence = 0;
    for (uint32_t answered = 0; keep_sending(ack, source, answered, &sequence); answered++) {
        if (!send_block(ack, source, &sequence)) {
            return;
        }
        jw_nap();
        jw_meeting_report(&ack->meeting);
    }
}

/* What the receiver keeps from portion to portion. */
typedef struct {
    size_t held; /* bytes of a segment whose rest has not come */
    uint64_t expected;
    bool recording;
    jw_usage at_start;
} reading;

static bool answer(jw_ack *ack, uint64_t taken) {
    ssize_t n;
    while ((n = send(ack->server, &taken, sizeof taken, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
    }
    if (n == (ssize_t)sizeof taken) {
        return true;
    }
    /* A part of eight bytes is sent only by a connection that ends. */
    give_up(ack, n < 0 ? -errno : -ECONNRESET);
    return false;
}

static void end_block(jw_ack *ack, reading *so_far) {
    so_far->recording = false;
    jw_usage_since(&so_far->at_start, &ack->result.usage[JW_ACK_RECEIVER]);
    ack->result.answered = ack->of[JW_ACK_RECEIVER].count;
    ack->result.core_hz = jw_core_hz(&ack->config.clock);
    jw_meeting_report(&ack->meeting);
}

/* Note an answered portion: the stamp of the one that brings a block's first segment is the reference, and the one that
 * brings its last segment is the last. */
static bool look_through(jw_ack *ack, reading *so_far, size_t bytes, uint64_t stamp, unsigned cpu) {
    notes *own = &ack->of[JW_ACK_RECEIVER];
    const size_t whole = bytes / sizeof(segment);
    bool begins = false, ends = false;
    for (size_t i = 0; i < whole; i++) {
        segment message;
        memcpy(&message, ack->portion + i * sizeof message, sizeof message);
        if (message.sequence != so_far->expected) {
            give_up(ack, -EPROTO);
            return false;
        }
        so_far->expected++;
        begins = begins || message.mark == MARK_START;
        ends = ends || message.mark == MARK_END;
    }
    if (begins) {
        /* What was written before the block was asked for came by way of the sender. */
        (void)atomic_load_explicit(&ack->asked, memory_order_acquire);
        so_far->recording = true;
        own->count = 0;
        jw_thread_usage(&so_far->at_start);
    } else if (so_far->recording && own->count < ack->config.most_segments) {
        own->count++;
    }
    if (so_far->recording) {
        own->stamps[own->count] = stamp;
        own->cpus[own->count] = (uint16_t)cpu;
    }
    so_far->held = bytes - whole * sizeof(segment);
    memmove(ack->portion, ack->portion + whole * sizeof(segment), so_far->held);
    if (ends && so_far->recording) {
        end_block(ack, so_far);
    }
    return true;
}

JW_INLINE void receiver(jw_ack *ack, int source) {
    reading so_far = {.held = 0};
    for (;;) {
        ssize_t n = recv(ack->server, ack->portion + so_far.held, sizeof ack->portion - so_far.held, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            give_up(ack, n == 0 ? -ECONNRESET : -errno);
            return;
        }
        unsigned cpu;
        const uint64_t stamp = jw_now_ordered(source, &cpu);
        if (!answer(ack, so_far.expected) || !look_through(ack, &so_far, so_far.held + (size_t)n, stamp, cpu)) {
            return;
        }
    }
}

static bool arrive(jw_ack *ack, int who, const char *name) {
    jw_name_thread(name);
    ack->tid[who] = jw_thread_id();
    ack->failed[who] = jw_place_thread(ack->config.cpu[who], ack->config.fifo_priority);
    bool placed = ack->failed[who] == 0;
    jw_meeting_report(&ack->meeting);
    return placed;
}

/* Each loop compiled once per clock. */
#define PER_CLOCK(loop)                                                                                                \
    switch (ack->config.clock.source) {                                                                                \
    case JW_CLOCK_TSC:                                                                                                 \
        loop(ack, JW_CLOCK_TSC);                                                                                       \
        break;                                                                                                         \
    case JW_CLOCK_CNTVCT:                                                                                              \
        loop(ack, JW_CLOCK_CNTVCT);                                                                                    \
        break;                                                                                                         \
    default:                                                                                                           \
        loop(ack, JW_CLOCK_MONOTONIC);                                                                                 \
    }

static void *sender_body(void *argument) {
    jw_ack *ack = argument;
    if (arrive(ack, JW_ACK_SENDER, "sender")) {
        PER_CLOCK(sender)
    }
    return NULL;
}

static void *receiver_body(void *argument) {
    jw_ack *ack = argument;
    if (arrive(ack, JW_ACK_RECEIVER, "receiver")) {
        PER_CLOCK(receiver)
    }
    return NULL;
}

/* Start sending and answering, unrecorded. 0, or -errno with the thread that could not be placed. */
int jw_ack_start(jw_ack *ack, int *failed_thread) {
    void *(*const bodies[JW_ACK_THREADS])(void *) = {sender_body, receiver_body};
    int failed = 0;
    *failed_thread = 0;
    jw_meeting_expect(&ack->meeting, JW_ACK_THREADS);
    for (int i = 0; i < JW_ACK_THREADS && failed == 0; i++) {
        failed = jw_thread_create(&ack->threads[i], bodies[i], ack);
        ack->started[i] = failed == 0;
        *failed_thread = i;
    }
    if (failed == 0) {
        jw_meeting_wait(&ack->meeting);
        for (int i = JW_ACK_THREADS - 1; i >= 0; i--) {
            if (ack->failed[i] != 0) {
                failed = ack->failed[i];
                *failed_thread = i;
            }
        }
    }
    if (failed != 0) {
        jw_ack_stop(ack);
    }
    return failed;
}

int jw_ack_tid(const jw_ack *ack, int thread) {
    return ack->tid[thread];
}

/* One block: ends by time, or when the arrays are full. Sleeps meanwhile. -ECANCELED when stopped from another thread,
 * -errno of the connection when that failed. */
int jw_ack_block(jw_ack *ack, uint64_t duration_ticks, jw_ack_result *result) {
    if (!ack->started[JW_ACK_SENDER] || jw_stopped(&ack->stop)) {
        return -ECANCELED;
    }
    ack->duration_ticks = duration_ticks;
    memset(&ack->result, 0, sizeof ack->result);
    jw_meeting_expect(&ack->meeting, JW_ACK_THREADS);
    atomic_fetch_add_explicit(&ack->asked, 1, memory_order_release);
    /* Who gave up after this look releases the meeting; who did before must not be waited for. */
    if (!given_up(ack)) {
        jw_meeting_wait(&ack->meeting);
    }
    if (jw_stopped(&ack->stop)) {
        return -ECANCELED;
    }
    int broken = atomic_load(&ack->broken);
    if (broken != 0) {
        return broken;
    }
    *result = ack->result;
    return 0;
}

const uint64_t *jw_ack_stamps(const jw_ack *ack, int thread) {
    return ack->of[thread].stamps;
}

const uint16_t *jw_ack_cpus(const jw_ack *ack, int thread) {
    return ack->of[thread].cpus;
}

int jw_ack_lock_arrays(const jw_ack *ack) {
    int failed = mlock(ack, sizeof *ack);
    for (int i = 0; i < JW_ACK_THREADS; i++) {
        failed |= mlock(ack->of[i].stamps, entries(ack) * sizeof(uint64_t));
        failed |= mlock(ack->of[i].cpus, entries(ack) * sizeof(uint16_t));
    }
    return failed != 0 ? -errno : 0;
}

/* Whoever sleeps in the connection finds it ended, whoever waits for a time looks at `stop`: this always returns. */
void jw_ack_stop(jw_ack *ack) {
    atomic_store(&ack->stop, 1);
    jw_loopback_end(ack->client, ack->server);
    for (int i = 0; i < JW_ACK_THREADS; i++) {
        if (ack->started[i]) {
            pthread_join(ack->threads[i], NULL);
            ack->started[i] = false;
        }
    }
    jw_meeting_release(&ack->meeting);
}

void jw_ack_free(jw_ack *ack) {
    if (ack == NULL) {
        return;
    }
    jw_ack_stop(ack);
    jw_loopback_close(ack->client, ack->server);
    jw_meeting_destroy(&ack->meeting);
    for (int i = 0; i < JW_ACK_THREADS; i++) {
        jw_unmap(ack->of[i].stamps, entries(ack) * sizeof(uint64_t));
        jw_unmap(ack->of[i].cpus, entries(ack) * sizeof(uint16_t));
    }
    jw_unmap(ack, sizeof *ack);
}
