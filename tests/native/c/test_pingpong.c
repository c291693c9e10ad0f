/* link: -Wl,--wrap=jw_place_thread */
/* A thread that does not get its CPU ends a ping-pong in an error. Before the joins had a limit, it ended never. */
#include <errno.h>
#include <unistd.h>

#include "check.h"
#include "clock.h"
#include "threads.h"

static const jw_clock ns_clock = {
    .source = JW_CLOCK_MONOTONIC, .rate_hz = 1000000000, .mult = UINT64_C(1) << JW_CLOCK_SHIFT};

enum { TAKEN = 4000, ABSENT = 4001 };

static _Atomic int released, came;

int __real_jw_place_thread(int cpu, int fifo_priority);
int __wrap_jw_place_thread(int cpu, int fifo_priority);

/* CPU `TAKEN` is given to no thread until the test releases it; of a CPU `ABSENT` there is none. */
int __wrap_jw_place_thread(int cpu, int fifo_priority) {
    if (cpu == ABSENT) {
        return -EINVAL;
    }
    while (cpu == TAKEN && !jw_stopped(&released)) {
        usleep(1000);
    }
    atomic_fetch_add(&came, cpu == TAKEN);
    return __real_jw_place_thread(-1, fifo_priority);
}

static uint64_t ms_since(uint64_t begun) {
    return (jw_posix_ns(CLOCK_MONOTONIC) - begun) / 1000000;
}

int main(void) {
    double ns = -7;
    jw_offset offset = {.bound_ticks = -7};
    CHECK_ANSWERED(jw_ping_pong(&ns_clock, 0, 1, &ns));
    CHECK(ns > 0);
    CHECK_ANSWERED(jw_clock_offset(ns_clock.source, 0, 1, 50, &offset));
    CHECK(offset.bound_ticks >= 0);

    CHECK(jw_ping_pong(&ns_clock, 0, ABSENT, &ns) == -EINVAL);
    CHECK(jw_ping_pong(&ns_clock, ABSENT, 0, &ns) == -EINVAL);

    ns = -7;
    uint64_t begun = jw_posix_ns(CLOCK_MONOTONIC);
    CHECK(jw_ping_pong(&ns_clock, 0, TAKEN, &ns) == -ETIMEDOUT);
    CHECK(jw_ping_pong(&ns_clock, TAKEN, 0, &ns) == -ETIMEDOUT);
    CHECK(jw_ping_pong(&ns_clock, TAKEN, TAKEN, &ns) == -ETIMEDOUT);
    CHECK(ns == -7 && ms_since(begun) >= 4000);
    offset.bound_ticks = -7;
    CHECK(jw_clock_offset(ns_clock.source, 0, TAKEN, 50, &offset) == -ETIMEDOUT && offset.bound_ticks == -7);

    /* The five come late, find that they were stopped, and free what they share. The next pair is measured. */
    atomic_store(&released, 1);
    for (begun = jw_posix_ns(CLOCK_MONOTONIC); atomic_load(&came) < 5 && ms_since(begun) < 10000;) {
        usleep(1000);
    }
    CHECK(atomic_load(&came) == 5);
    usleep(100000);
    CHECK_ANSWERED(jw_ping_pong(&ns_clock, 0, TAKEN, &ns));
    CHECK(ns > 0);
    return 0;
}
