/* link: -Wl,--wrap=memfd_create */
/* A live ring: every message once, whole, in order; blocks one after another; stop at any moment. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "clock.h"

/* A thread sanitizer's trace of a thread faults as it goes. */
#if defined(__SANITIZE_THREAD__)
#define OWN_FAULTS true
#else
#define OWN_FAULTS false
#endif

enum { RECORDS = 64, JOURNAL = 1024, MOST = 4000 };

static bool no_huge_page; /* this host gave none */
static uint64_t records[RECORDS * 8];
static unsigned char journal[JOURNAL * JW_JOURNAL_BYTES];

static jw_workload *make_keeping(int pacing, uint64_t interval_ns, uint64_t slots, int keep) {
    for (uint64_t i = 0; i < RECORDS * 8; i++) {
        records[i] = i * UINT64_C(0x9E3779B97F4A7C15);
    }
    jw_workload_config config = {.most = MOST, .cpu = {-1, -1, -1}, .interval_ns = interval_ns};
    const jw_ring_options options = {.slots = slots,
                                     .journaller = 1,
                                     .pacing = pacing,
                                     .keep = keep,
                                     .records = records,
                                     .record_count = RECORDS,
                                     .journal = journal,
                                     .journal_count = JOURNAL};
    CHECK(jw_clock_init(&config.clock, JW_CLOCK_MONOTONIC, 1000000000) == 0);
    int error;
    jw_workload *ring = jw_ring_new(&config, &options, &error);
    CHECK(ring != NULL && error == 0);
    CHECK(jw_workload_start(ring, &error) == 0);
    return ring;
}

static jw_workload *make(int pacing, uint64_t interval_ns, uint64_t slots) {
    return make_keeping(pacing, interval_ns, slots, JW_KEEP_NONE);
}

/* Memory that was never touched costs a fault a page, in every block anew, also once it was locked; memory that was
 * touched before costs none. A huge page costs one fault for all of these messages; a host that has none gives small pages.
 * A file costs a system call a message, and no faults. */
static void keeping(int keep) {
    jw_workload *ring = make_keeping(JW_PACING_SPIN, 2000, 512, keep);
    const jw_block_request request = {.count = MOST, .unrecorded = 50};
    const int64_t pages = (int64_t)MOST * JW_RECORD_BYTES / sysconf(_SC_PAGESIZE);
    for (int round = 0; round < 3; round++) {
        if (round == 2) {
            (void)jw_workload_lock(ring); /* a limit may forbid it */
        }
        jw_block_result result;
        CHECK(jw_workload_block(ring, &request, &result) == 0);
        const uint64_t sum = jw_payload_sum(records, RECORDS, result.ring.first_sequence + 1, result.count);
        CHECK(result.ring.payload_sum[JW_ACCUMULATOR] == sum);
        const int64_t faults = result.usage[JW_ACCUMULATOR].minor_faults;
        const int64_t calls = result.usage[JW_ACCUMULATOR].write_calls;
        CHECK(calls == -1 || (keep == JW_KEEP_FILE ? calls >= MOST : calls == 0));
        const bool none = keep == JW_KEEP_HUGE && jw_ring_huge_pages(ring) <= 0 && round == 0;
        CHECK(none || keep == JW_KEEP_FRESH ? faults >= pages - 1 : OWN_FAULTS || faults < pages / 2 || no_huge_page);
        no_huge_page = no_huge_page || none;
    }
    jw_workload_free(ring);
}

/* Blocks that are shorter than a huge page go on in it: only each new page has a fault. */
static void going_on(void) {
    jw_workload *ring = make_keeping(JW_PACING_SPIN, 1, 512, JW_KEEP_HUGE);
    const jw_block_request request = {.count = MOST, .unrecorded = 2};
    uint64_t copies = 0;
    for (int round = 0; round < 20; round++) {
        jw_block_result result;
        CHECK(jw_workload_block(ring, &request, &result) == 0 && result.count == MOST);
        const uint64_t begins = jw_ring_first_new_page(ring), now = result.count + 1;
        CHECK((copies + begins) % JW_COPIES_OF_HUGE_PAGE == 0 && begins < JW_COPIES_OF_HUGE_PAGE);
        const int64_t huge = jw_ring_huge_pages(ring);
        CHECK(no_huge_page || huge == (begins < now));
        CHECK(no_huge_page || begins >= now || result.usage[JW_ACCUMULATOR].minor_faults >= 1);
        copies += now;
    }
    jw_workload_free(ring);
}

/* A kernel of before Linux 6.3 knows no MFD_NOEXEC_SEAL; one with vm.memfd_noexec=2 makes no file without it. */
enum { AS_HERE, OLD, HARDENED, SEAL = 0x0008 };
static int kernel = AS_HERE;

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);

int __wrap_memfd_create(const char *name, unsigned flags) {
    const bool sealed = (flags & SEAL) != 0;
    if ((kernel == OLD && sealed) || (kernel == HARDENED && !sealed)) {
        errno = sealed ? EINVAL : EACCES;
        return -1;
    }
    return __real_memfd_create(name, kernel == AS_HERE ? flags : flags & ~(unsigned)SEAL);
}

static void on_any_kernel(void) {
    for (kernel = OLD; kernel <= HARDENED; kernel++) {
        jw_workload_free(make_keeping(JW_PACING_SPIN, 2000, 512, JW_KEEP_FILE));
    }
    kernel = AS_HERE;
}

/* The last write before the limit of a file's size is a short one. */
static void too_large_a_file(void) {
    struct rlimit before;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0 && signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    const struct rlimit small = {.rlim_cur = 100, .rlim_max = before.rlim_max};
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    jw_workload_config config = {.most = MOST, .cpu = {-1, -1, -1}, .interval_ns = 2000};
    jw_ring_options options = {.slots = 512, .keep = JW_KEEP_FILE, .records = records, .record_count = RECORDS};
    CHECK(jw_clock_init(&config.clock, JW_CLOCK_MONOTONIC, 1000000000) == 0);
    int error;
    CHECK(jw_ring_new(&config, &options, &error) == NULL && error == -EFBIG);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
}

static uint32_t big32(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void blocks(int pacing) {
    jw_workload *ring = make(pacing, 2000, 128);
    const jw_block_request request = {.count = 1000, .unrecorded = 50};
    for (int round = 0; round < 3; round++) {
        jw_block_result result;
        CHECK(jw_workload_block(ring, &request, &result) == 0);
        CHECK(result.count == 1000);
        uint64_t sum = jw_payload_sum(records, RECORDS, result.ring.first_sequence + 1, result.count);
        CHECK(result.ring.payload_sum[JW_ACCUMULATOR] == sum && result.ring.payload_sum[JW_JOURNALLER] == sum);
        for (int who = 0; who <= JW_JOURNALLER; who++) {
            const uint64_t *stamps = jw_workload_stamps(ring, who);
            for (uint64_t i = 1; i <= result.count; i++) {
                CHECK(stamps[i] >= stamps[i - 1]);
                CHECK(who == JW_PRODUCER || stamps[i] >= jw_workload_stamps(ring, JW_PRODUCER)[i]);
            }
        }
    }
    jw_workload_free(ring);
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK(big32(journal + i * JW_JOURNAL_BYTES) == 0x55555555);
        CHECK((big32(journal + i * JW_JOURNAL_BYTES + 28) & (JOURNAL - 1)) == i);
    }
}

static void by_time(void) {
    jw_workload *ring = make(JW_PACING_SPIN, 20000, 64);
    const jw_block_request request = {.duration_ticks = 20000000, .unrecorded = 2};
    jw_block_result result;
    CHECK(jw_workload_block(ring, &request, &result) == 0);
    CHECK(result.count > 0 && result.count <= 1001);
    jw_workload_free(ring);
}

/* The producer and the accumulator compare their clocks, also where the line transfer is measured right after; the block
 * behind it is whole. Both read one clock here, so it differs by no more than the bound. */
static void clocks(void) {
    jw_workload *ring = make(JW_PACING_SPIN, 2000, 64);
    for (int round = 0; round < 3; round++) {
        const jw_block_request request = {.count = 100, .offset_rounds = 200, .ping_pong = round > 0};
        jw_block_result result;
        CHECK(jw_workload_block(ring, &request, &result) == 0);
        const jw_offset found = result.ring.offset;
        CHECK(found.bound_ticks >= 0);
        CHECK(found.offset_ticks <= found.bound_ticks && -found.offset_ticks <= found.bound_ticks);
        CHECK(result.count == 100);
        uint64_t sum = jw_payload_sum(records, RECORDS, result.ring.first_sequence + 1, result.count);
        CHECK(result.ring.payload_sum[JW_ACCUMULATOR] == sum && result.ring.payload_sum[JW_JOURNALLER] == sum);
        const jw_block_request plain = {.count = 10};
        CHECK(jw_workload_block(ring, &plain, &result) == 0);
        CHECK(result.ring.offset.bound_ticks < 0);
    }
    jw_workload_free(ring);
}

static void *stop_it(void *ring) {
    jw_workload_stop(ring);
    return NULL;
}

/* A block that would last for hours ends as soon as somebody stops the ring. */
static void stopped_in_a_block(void) {
    jw_workload *ring = make(JW_PACING_SPIN, 1000000000, 64);
    const jw_block_request request = {.count = MOST, .unrecorded = 100};
    jw_block_result result;
    pthread_t stopper;
    CHECK(pthread_create(&stopper, NULL, stop_it, ring) == 0);
    CHECK(jw_workload_block(ring, &request, &result) != 0);
    pthread_join(stopper, NULL);
    jw_workload_free(ring);
}

static void nonsense_is_refused(void) {
    jw_workload_config config = {.most = 1};
    jw_ring_options options = {.slots = 100, .records = records, .record_count = RECORDS};
    int error = 0;
    CHECK(jw_clock_init(&config.clock, JW_CLOCK_MONOTONIC, 1000000000) == 0);
    CHECK(jw_ring_new(&config, &options, &error) == NULL && error != 0);
    options.slots = 64;
    config.most = 0;
    CHECK(jw_ring_new(&config, &options, &error) == NULL && error != 0);
    config.most = 1;
    config.cpu[0] = 60000;
    jw_workload *ring = jw_ring_new(&config, &options, &error);
    CHECK(ring != NULL);
    CHECK(jw_workload_start(ring, &error) != 0 && error == JW_PRODUCER);
    jw_workload_free(ring);
}

int main(void) {
    keeping(JW_KEEP_READY);
    keeping(JW_KEEP_FRESH);
    keeping(JW_KEEP_FILE);
    keeping(JW_KEEP_HUGE);
    going_on();
    on_any_kernel();
    too_large_a_file();
    blocks(JW_PACING_SPIN);
    blocks(JW_PACING_SCHEDULE);
    by_time();
    clocks();
    stopped_in_a_block();
    nonsense_is_refused();
    return 0;
}
