/* The noise lab, live: whatever a kind does, its bursts come in order and lie within the noise's life. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <sched.h>

#include "check.h"
#include "clock.h"
#include "threads.h"

enum { BURSTS = 20000, RUN_NS = 150000000 };

static const jw_clock ns_clock = {
    .source = JW_CLOCK_MONOTONIC, .rate_hz = 1000000000, .mult = UINT64_C(1) << JW_CLOCK_SHIFT};
static jw_burst bursts[BURSTS];
static int32_t allowed[1024];
static size_t allowed_len;

static void find_cpus(void) {
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET((size_t)cpu, &set)) {
            allowed[allowed_len++] = cpu;
        }
    }
}

static jw_noise_config config_of(int kind) {
    return (jw_noise_config){.clock = ns_clock,
                             .kind = kind,
                             .hot = allowed[allowed_len - 1],
                             .other = allowed[0],
                             .away = allowed[0],
                             .busy_ns = 200000,
                             .period_ns = 10000000,
                             .deadline_ns = jw_posix_ns(CLOCK_MONOTONIC) + UINT64_C(60000000000),
                             .most_bursts = BURSTS,
                             .seed = 1,
                             .cpus = allowed,
                             .cpus_len = allowed_len,
                             .name = "noise"};
}

static void sleep_ns(uint64_t ns) {
    const struct timespec nap = {.tv_sec = (time_t)(ns / JW_NS_PER_S), .tv_nsec = (long)(ns % JW_NS_PER_S)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
}

/* All bursts of a noise that has run since `begun` and ended; their number. */
static size_t check_log(jw_noise *noise, uint64_t begun, int32_t cpu) {
    CHECK(jw_noise_bursts(noise, bursts, BURSTS) == 0);
    jw_noise_stop(noise);
    const uint64_t now = jw_now(JW_CLOCK_MONOTONIC);
    const size_t n = jw_noise_bursts(noise, bursts, BURSTS);
    for (size_t i = 0; i < n; i++) {
        const jw_burst *one = &bursts[i];
        CHECK(one->start >= begun && one->end > one->start && one->end <= now);
        CHECK(i == 0 || one->start >= bursts[i - 1].start);
        CHECK(cpu < 0 || one->cpu == cpu);
        CHECK(one->what == JW_BURST_MAIN || one->what == JW_BURST_ARMING);
    }
    CHECK(jw_noise_unlogged(noise) == 0);
    CHECK(n == 0 || jw_noise_bursts(noise, bursts, 1) == n);
    jw_noise_free(noise);
    return n;
}

static jw_noise *start(const jw_noise_config *config) {
    int error = 1;
    jw_noise *noise = jw_noise_start(config, &error);
    CHECK((noise != NULL) == (error == 0));
    /* Effects that cannot be felt under a sanitizer or on a crowded host are refused; rights may be missing. */
    CHECK(noise != NULL || error == -ENOTSUP || error == -EACCES || error == -EPERM || error == -EROFS || error == -ENOSYS);
    return noise;
}

/* Run a noise of this config, aimed at `tid` (0: at no thread), until it has made `least` bursts: on a crowded host that may
 * take longer than RUN_NS, so it is run again for four times as long, twice at most. Return the bursts of the last run. */
static size_t run_noise(const jw_noise_config *config, int32_t tid, int32_t cpu, size_t least) {
    for (uint64_t ns = RUN_NS;; ns *= 4) {
        const uint64_t begun = jw_now(JW_CLOCK_MONOTONIC);
        jw_noise *noise = start(config);
        const int kind = config->kind;
        if (noise == NULL) {
            CHECK(kind != JW_NOISE_GREEDY && kind != JW_NOISE_MIGRATION);
            fprintf(stderr, "kind %d is refused here\n", kind);
            return least;
        }
        const bool measured = kind == JW_NOISE_TIMER || kind == JW_NOISE_WORKQUEUE || kind == JW_NOISE_SHOOTDOWN;
        CHECK((jw_noise_length_ticks(noise) > 0) == measured);
        if (tid != 0) {
            sleep_ns(30000000);
            jw_noise_aim(noise, &tid, 1);
        }
        sleep_ns(ns);
        const size_t n = check_log(noise, begun, cpu);
        if (n >= least || ns >= UINT64_C(16) * RUN_NS) {
            return n;
        }
    }
}

static void one_kind(int kind, int32_t cpu) {
    const jw_noise_config config = config_of(kind);
    /* No other thread of this process runs meanwhile, so there may be none to interrupt. */
    const size_t least = kind == JW_NOISE_SHOOTDOWN ? 0 : 1;
    CHECK(run_noise(&config, 0, cpu, least) >= least);
}

/* A burst is about as long as it was asked to be, and what the thread did not have is not counted as taken. */
static void lengths(void) {
    const jw_noise_config config = config_of(JW_NOISE_GREEDY);
    const size_t n = run_noise(&config, 0, config.hot, 2);
    uint64_t taken = 0;
    for (size_t i = 0; i < n; i++) {
        /* The kernel's time to bring the thread there and away comes on top. */
        CHECK(bursts[i].taken < bursts[i].end - bursts[i].start + 5000000);
        taken += bursts[i].taken;
    }
    CHECK(n >= 2 && taken > 0);
}

/* A thread of another's is sent away and comes back; its own choice of CPUs is given back as it was. */
static _Atomic int stop_target;
static _Atomic int32_t target;

static void *target_body(void *argument) {
    (void)argument;
    CHECK(jw_place_thread(allowed[allowed_len - 1], 0) == 0);
    atomic_store(&target, jw_thread_id());
    while (!jw_stopped(&stop_target)) {
        (void)jw_now(JW_CLOCK_MONOTONIC);
    }
    return NULL;
}

static void moving(void) {
    pthread_t thread;
    const jw_noise_config config = config_of(JW_NOISE_MIGRATION);
    CHECK(jw_thread_create(&thread, target_body, NULL) == 0);
    while (atomic_load(&target) == 0) {
        sleep_ns(1000000);
    }
    const int32_t tid = atomic_load(&target);
    CHECK(run_noise(&config, tid, -1, 2) >= 2);
    cpu_set_t set;
    CHECK(sched_getaffinity(tid, sizeof set, &set) == 0);
    CHECK(CPU_COUNT(&set) == 1 && CPU_ISSET((size_t)config.hot, &set));
    atomic_store(&stop_target, 1);
    pthread_join(thread, NULL);
}

static void ends_at_its_deadline(void) {
    jw_noise_config config = config_of(JW_NOISE_GREEDY);
    config.deadline_ns = jw_posix_ns(CLOCK_MONOTONIC) + 20000000;
    jw_noise *noise = start(&config);
    CHECK(noise != NULL);
    sleep_ns(RUN_NS);
    jw_noise_stop(noise);
    const size_t n = jw_noise_bursts(noise, bursts, BURSTS);
    /* The thread may be held up between its look at the clock and its burst: one burst's length may come late, in
     * pieces, and no more. Without the deadline twelve more would follow. */
    uint64_t late = 0;
    for (size_t i = 0; i < n; i++) {
        late += bursts[i].start > config.deadline_ns ? bursts[i].taken : 0;
    }
    CHECK(late <= 2 * config.busy_ns);
    jw_noise_free(noise);
}

static void a_full_log_is_counted(void) {
    jw_noise_config config = config_of(JW_NOISE_GREEDY);
    config.most_bursts = 1;
    config.period_ns = 2000000;
    jw_noise *noise = start(&config);
    CHECK(noise != NULL);
    sleep_ns(RUN_NS);
    jw_noise_stop(noise);
    CHECK(jw_noise_bursts(noise, bursts, BURSTS) == 1 && jw_noise_unlogged(noise) > 0);
    jw_noise_free(noise);
}

static void what_cannot_be(void) {
    int error = 0;
    jw_noise_config config = config_of(JW_NOISE_GREEDY);
    config.hot = 60000;
    CHECK(jw_noise_start(&config, &error) == NULL && error != 0);
    config = config_of(JW_NOISES);
    CHECK(jw_noise_start(&config, &error) == NULL && error == -EINVAL);
    config = config_of(JW_NOISE_GREEDY);
    config.period_ns = UINT64_C(3000000000);
    CHECK(jw_noise_start(&config, &error) == NULL && error == -EINVAL);
    config = config_of(JW_NOISE_GREEDY);
    config.busy_ns = config.period_ns;
    CHECK(jw_noise_start(&config, &error) == NULL && error == -EINVAL);
    config = config_of(JW_NOISE_GREEDY);
    config.most_bursts = 100001;
    CHECK(jw_noise_start(&config, &error) == NULL && error == -EINVAL);
    /* No mask has room for the one, and no host of these tests has the other: the kernel refuses its mask. */
    config = config_of(JW_NOISE_NETWORK);
    config.hot = 60000;
    CHECK(jw_noise_start(&config, &error) == NULL && error != 0);
    config.hot = 8191;
    CHECK(jw_noise_start(&config, &error) == NULL && error != 0);
    const int32_t missing[] = {allowed[0], 60000};
    config = config_of(JW_NOISE_SPINNERS);
    config.cpus = missing;
    config.cpus_len = 2;
    CHECK(jw_noise_start(&config, &error) == NULL && error != 0);
}

int main(void) {
    find_cpus();
    const int32_t hot = allowed[allowed_len - 1];
    one_kind(JW_NOISE_SPINNERS, -1);
    one_kind(JW_NOISE_UNBOUND, -1);
    one_kind(JW_NOISE_GREEDY, hot);
    one_kind(JW_NOISE_TIMER, hot);
    one_kind(JW_NOISE_SOFTIRQ, hot);
    one_kind(JW_NOISE_FAULTS, hot);
    lengths();
    ends_at_its_deadline();
    a_full_log_is_counted();
    what_cannot_be();
    if (allowed_len == 1) {
        fprintf(stderr, "one CPU: the kinds that need two are not tested\n");
        return 0;
    }
    one_kind(JW_NOISE_WORKQUEUE, hot);
    one_kind(JW_NOISE_SHOOTDOWN, hot);
    one_kind(JW_NOISE_BANDWIDTH, allowed[0]);
    one_kind(JW_NOISE_TERMINAL, -1);
    one_kind(JW_NOISE_NETWORK, hot);
    moving();
    return 0;
}
