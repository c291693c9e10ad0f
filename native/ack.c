/* The receiver: a sender sends a segment at every interval over a TCP connection of this process to itself; the receiver
 * sleeps in recv(2), takes what there is, stamps the time and answers with an ACK of its own. The interval between two
 * stamps is what is measured. Stamped at the receiver, as in the study that this follows: so the times are the run's own
 * clock's, and tell the CPU. The kernel's stamps of TCP's ACKs (SOF_TIMESTAMPING_TX_ACK,
 * Documentation/networking/timestamping.rst) need no rights either, but they are CLOCK_REALTIME's, are made on the
 * sender's CPU, and cost both a read of the error queue a segment. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "loopback.h"
#include "workload.h"

enum { LEAST_INTERVAL_NS = 1000, PORTION_BYTES = 64 * 1024, ANSWERS_A_LOOK = 512 };

typedef struct {
    jw_workload base;
    int client;
    int server;
    char portion[PORTION_BYTES];                         /* the receiver's */
    _Alignas(JW_APART) uint64_t answers[ANSWERS_A_LOOK]; /* the sender's */
} jw_ack;

/* A segment's mark: the receiver's task besides the answer. */
enum { MARK_NONE = 0, MARK_START = 1, MARK_END = 2 };

typedef struct {
    uint64_t sequence;
    uint64_t mark;
    char rest[JW_RECORD_BYTES - 2 * sizeof(uint64_t)];
} segment;

_Static_assert(sizeof(segment) == JW_RECORD_BYTES, "a segment is as long as a record of the ring");

/* Wake the threads that sleep in the connection: they find it ended. */
static void wake(jw_workload *workload) {
    const jw_ack *ack = (const jw_ack *)workload;
    jw_loopback_end(ack->client, ack->server);
}

/* Take the answers that have come, so that the receiver's next one finds room. Never waits. */
static bool take_answers(jw_ack *ack) {
    ssize_t n = recv(ack->client, ack->answers, sizeof ack->answers, MSG_DONTWAIT);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))) {
        return true;
    }
    jw_give_up(&ack->base, n == 0 ? -ECONNRESET : -errno);
    return false;
}

/* Send one segment. Where the receiver has not read for long and there is no room, that is counted, and tried again. */
static bool say(jw_ack *ack, uint64_t sequence, uint64_t mark, bool *blocked) {
    segment message = {.sequence = sequence, .mark = mark};
    size_t done = 0;
    while (done < sizeof message) {
        const char *rest = (const char *)&message + done;
        ssize_t n = send(ack->client, rest, sizeof message - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0) {
            done += (size_t)n;
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
            *blocked = true;
            if (jw_given_up(&ack->base) || !take_answers(ack)) {
                return false;
            }
            jw_nap();
            continue;
        }
        jw_give_up(&ack->base, -errno);
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
    const uint64_t due = plan->start + jw_clock_ticks(&ack->base.config.clock, plan->n * ack->base.config.interval_ns);
    while (jw_now(source) < due) {
        if (jw_given_up(&ack->base)) {
            return false;
        }
        jw_relax();
    }
    return true;
}

/* Segments that are not recorded, until a block is asked for. */
JW_INLINE bool keep_sending(jw_ack *ack, int source, uint32_t answered, uint64_t *sequence) {
    schedule plan = {.start = jw_now(source)};
    bool blocked;
    while (!jw_block_asked(&ack->base, answered)) {
        if (jw_given_up(&ack->base) || !say(ack, (*sequence)++, MARK_NONE, &blocked)) {
            return false;
        }
        plan.n++;
        if (!wait_for(ack, source, &plan)) {
            return false;
        }
    }
    return !jw_given_up(&ack->base);
}

JW_INLINE bool send_block(jw_ack *ack, int source, uint64_t *sequence) {
    jw_samples *own = &ack->base.samples[JW_ACK_SENDER];
    const uint64_t duration = ack->base.request.duration_ticks, most = jw_block_most(&ack->base);
    uint64_t blocks = 0, sent = 0;
    jw_usage_begin(&ack->base, JW_ACK_SENDER);
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
        last = plan.n > 0 && (now - own->stamps[0] >= duration || plan.n == most);
        if (!say(ack, (*sequence)++, last ? MARK_END : plan.n == 0 ? MARK_START : MARK_NONE, &blocked)) {
            return false;
        }
        blocks += blocked;
        sent = plan.n;
    }
    jw_usage_end(&ack->base, JW_ACK_SENDER);
    ack->base.result.count = sent;
    ack->base.result.ack.blocked = blocks;
    return true;
}

JW_INLINE void sender(jw_ack *ack, int source) {
    uint64_t sequence = 0;
    for (uint32_t answered = 0; keep_sending(ack, source, answered, &sequence); answered++) {
        if (!send_block(ack, source, &sequence)) {
            return;
        }
        jw_nap();
        jw_block_done(&ack->base);
    }
}

/* The state that the receiver keeps from portion to portion. */
typedef struct {
    size_t held; /* bytes of a segment whose rest has not come */
    uint64_t expected;
    bool recording;
    uint64_t answered; /* portions of this block */
} reading;

static bool answer(jw_ack *ack, uint64_t taken) {
    ssize_t n;
    while ((n = send(ack->server, &taken, sizeof taken, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
    }
    if (n == (ssize_t)sizeof taken) {
        return true;
    }
    /* A part of eight bytes is sent only by a connection that ends. */
    jw_give_up(&ack->base, n < 0 ? -errno : -ECONNRESET);
    return false;
}

static void end_block(jw_ack *ack, reading *so_far) {
    so_far->recording = false;
    jw_usage_end(&ack->base, JW_ACK_RECEIVER);
    ack->base.result.ack.answered = so_far->answered;
    ack->base.result.core_hz = jw_core_hz(&ack->base.config.clock);
    jw_block_done(&ack->base);
}

/* Note an answered portion: the stamp of the one that brings a block's first segment is the reference, and the one that
 * brings its last segment is the last. */
static bool look_through(jw_ack *ack, reading *so_far, size_t bytes, uint64_t stamp, unsigned cpu) {
    jw_samples *own = &ack->base.samples[JW_ACK_RECEIVER];
    const size_t whole = bytes / sizeof(segment);
    bool begins = false, ends = false;
    for (size_t i = 0; i < whole; i++) {
        segment message;
        memcpy(&message, ack->portion + i * sizeof message, sizeof message);
        if (message.sequence != so_far->expected) {
            jw_give_up(&ack->base, -EPROTO);
            return false;
        }
        so_far->expected++;
        begins = begins || message.mark == MARK_START;
        ends = ends || message.mark == MARK_END;
    }
    if (begins) {
        /* The sender has passed on all that was written before the block was asked for. */
        (void)atomic_load_explicit(&ack->base.asked, memory_order_acquire);
        so_far->recording = true;
        so_far->answered = 0;
        jw_usage_begin(&ack->base, JW_ACK_RECEIVER);
    } else if (so_far->recording && so_far->answered < ack->base.config.most) {
        so_far->answered++;
    }
    if (so_far->recording) {
        own->stamps[so_far->answered] = stamp;
        own->cpus[so_far->answered] = (uint16_t)cpu;
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
            jw_give_up(&ack->base, n == 0 ? -ECONNRESET : -errno);
            return;
        }
        unsigned cpu;
        const uint64_t stamp = jw_now_ordered(source, &cpu);
        if (!answer(ack, so_far.expected) || !look_through(ack, &so_far, so_far.held + (size_t)n, stamp, cpu)) {
            return;
        }
    }
}

static void close_connection(jw_workload *workload) {
    const jw_ack *ack = (const jw_ack *)workload;
    jw_loopback_close(ack->client, ack->server);
}

static void run_sender(jw_workload *workload) {
    JW_PER_CLOCK(workload->config.clock.source, source, sender((jw_ack *)workload, source))
}

static void run_receiver(jw_workload *workload) {
    JW_PER_CLOCK(workload->config.clock.source, source, receiver((jw_ack *)workload, source))
}

static const jw_kind ack_kind = {
    .bytes = sizeof(jw_ack),
    .parts = {[JW_ACK_SENDER] = {"sender", run_sender}, [JW_ACK_RECEIVER] = {"receiver", run_receiver}},
    .least_interval_ns = LEAST_INTERVAL_NS,
    .wake = wake,
    .close = close_connection};

jw_workload *jw_ack_new(const jw_workload_config *config, int *error) {
    jw_ack *ack = jw_workload_make(&ack_kind, config, 2, error);
    if (ack == NULL) {
        return NULL;
    }
    ack->client = ack->server = -1;
    jw_workload_sample(&ack->base, JW_ACK_SENDER, (size_t)config->most + 1);
    jw_workload_sample(&ack->base, JW_ACK_RECEIVER, (size_t)config->most + 1);
    return jw_workload_made(&ack->base, jw_loopback_pair(&ack->client, &ack->server), error);
}
