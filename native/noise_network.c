/* Noise by packets that never leave the host: received where they are sent, or sent elsewhere and received here. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "noise.h"

/* ---- softirq: one datagram to many sockets over loopback is handled where it is sent ---------------------------- */

/* To send one datagram takes some 9 µs, the first one of a burst, with cold caches, up to 60: what takes longer than
 * LONGEST_SEND_NS was interrupted. */
enum { RECEIVERS = 24, SMALLEST_BUFFER = 2048, LONGEST_SEND_NS = 20000, LONGEST_FIRST_NS = 200000 };

typedef struct {
    int sender;
    int receivers[RECEIVERS];
    int echo; /* a socket that sends to itself, to see where and when its datagram is received; -1: none */
    struct sockaddr_in to;
} loopback;

static void free_sockets(jw_noise_thread *self) {
    loopback *own = self->state;
    if (own != NULL) {
        if (own->sender >= 0) {
            (void)close(own->sender);
        }
        if (own->echo >= 0) {
            (void)close(own->echo);
        }
        for (size_t i = 0; i < RECEIVERS && own->receivers[i] >= 0; i++) {
            (void)close(own->receivers[i]);
        }
        free(own);
        self->state = NULL;
    }
}

/* No program reads: a datagram for a full receiver is dropped in the softirq, on purpose. All share one free port. */
static int make_sockets(jw_noise_thread *self) {
    loopback *own = malloc(sizeof *own);
    if (own == NULL) {
        return -ENOMEM;
    }
    memset(own, 0, sizeof *own);
    memset(own->receivers, -1, sizeof own->receivers);
    own->sender = own->echo = -1;
    self->state = own;
    const int yes = 1, small = SMALLEST_BUFFER;
    own->to = (struct sockaddr_in){.sin_family = AF_INET};
    own->to.sin_addr.s_addr = htonl(UINT32_C(0x7fffffff)); /* loopback's broadcast address, 127.255.255.255 */
    own->sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (own->sender < 0 || setsockopt(own->sender, SOL_SOCKET, SO_BROADCAST, &yes, sizeof yes) != 0) {
        return -errno;
    }
    for (size_t i = 0; i < RECEIVERS; i++) {
        const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        own->receivers[i] = fd;
        socklen_t length = sizeof own->to;
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) != 0 ||
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
            bind(fd, (const struct sockaddr *)&own->to, sizeof own->to) != 0 ||
            getsockname(fd, (struct sockaddr *)&own->to, &length) != 0) {
            return -errno;
        }
    }
    return 0;
}

static void send_one(const loopback *own) {
    const char payload[64] = {0};
    (void)sendto(own->sender, payload, sizeof payload, MSG_DONTWAIT, (const struct sockaddr *)&own->to,
                 sizeof own->to);
}

static void send_some(jw_noise_thread *self) {
    const loopback *own = self->state;
    const uint64_t length = jw_clock_ticks(&self->config->clock, self->config->busy_ns);
    jw_steps steps = jw_steps_begin(self, LONGEST_FIRST_NS, JW_BURST_MAIN);
    const uint64_t begun = steps.start;
    uint64_t now = begun;
    do {
        send_one(own);
        now = jw_steps_next(&steps);
        steps.longest_step = jw_clock_ticks(&self->config->clock, LONGEST_SEND_NS);
    } while (now - begun < length && !jw_noise_stopped(self));
    jw_steps_end(&steps);
}

const jw_noise_act jw_act_softirq = {
    .where = JW_ON_HOT, .prepare = make_sockets, .act = send_some, .teardown = free_sockets};

/* ---- network: packets of another CPU, which receive packet steering has the hot CPU receive ---------------------- */

/* Documentation/networking/scaling.rst, RPS: a receive queue has a mask of CPUs. The CPU that gets a packet puts it into the
 * backlog of a CPU of the mask and, if nothing is waiting there, calls that CPU (an IPI that runs rps_trigger_softirq); the
 * rest is its NET_RX. Loopback has such a queue, too. So that no file of the host's is written, the thread leaves the host's
 * network for a new one, which ends with its thread and its sockets. */
enum { PACKETS = 8, MASK_BYTES = 4096, BITS = 32, GROUP_BYTES = 9, ECHO_TRIES = 8, ECHO_WITHIN_US = 50000 };

/* The mount calls of Linux 5.2 have the same numbers on all of its machines but one, and older C libraries no names. */
#ifndef SYS_fsopen
enum { SYS_fsopen = 430, SYS_fsconfig = 431, SYS_fsmount = 432 };
#endif
enum { CLOSED_ON_EXEC = 1, CREATE_IT = 6, NO_SUID_DEV_EXEC = 2 | 4 | 8 };

/* sysfs as this thread's own network has it; -errno. It is attached nowhere, and gone when it is closed. */
static int own_sysfs(void) {
    const int made = (int)syscall(SYS_fsopen, "sysfs", CLOSED_ON_EXEC);
    if (made < 0) {
        return -errno;
    }
    int mounted = -1;
    if (syscall(SYS_fsconfig, made, CREATE_IT, NULL, NULL, 0) == 0) {
        mounted = (int)syscall(SYS_fsmount, made, CLOSED_ON_EXEC, NO_SUID_DEV_EXEC);
    }
    const int failed = errno;
    (void)close(made);
    return mounted < 0 ? -failed : mounted;
}

/* A mask is written as words of 32 bits in hexadecimal, the highest first. */
static size_t mask_of(int cpu, char out[MASK_BYTES]) {
    size_t n = (size_t)snprintf(out, MASK_BYTES, "%x", UINT32_C(1) << (cpu % BITS));
    for (int group = cpu / BITS; group > 0; group--, n += GROUP_BYTES) {
        memcpy(out + n, ",00000000", GROUP_BYTES);
    }
    return n;
}

/* -ENOSYS where the kernel has no steering, -ENOTSUP where it steers nothing to this CPU: since boot isolated, or none. */
static int steer_to(int cpu) {
    char mask[MASK_BYTES];
    if (cpu < 0 || cpu / BITS >= MASK_BYTES / GROUP_BYTES - 1) {
        return -EINVAL;
    }
    const size_t bytes = mask_of(cpu, mask);
    const int sysfs = own_sysfs();
    if (sysfs < 0) {
        return sysfs;
    }
    const int file = openat(sysfs, "class/net/lo/queues/rx-0/rps_cpus", O_WRONLY | O_CLOEXEC);
    int failed = 0;
    if (file < 0) {
        failed = errno == ENOENT ? -ENOSYS : -errno;
    } else if (write(file, mask, bytes) != (ssize_t)bytes) {
        failed = errno == EPERM || errno == EACCES ? -errno : -ENOTSUP;
    }
    if (file >= 0) {
        (void)close(file);
    }
    (void)close(sysfs);
    return failed;
}

/* The loopback device of a new network is down. */
static int set_up(void) {
    struct ifreq device = {.ifr_name = "lo"};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    int failed = ioctl(fd, SIOCGIFFLAGS, &device) != 0 ? -errno : 0;
    if (failed == 0) {
        device.ifr_flags = (short)(device.ifr_flags | IFF_UP);
        failed = ioctl(fd, SIOCSIFFLAGS, &device) != 0 ? -errno : 0;
    }
    (void)close(fd);
    return failed;
}

static int make_echo(loopback *own) {
    const struct timeval patience = {.tv_usec = ECHO_WITHIN_US};
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t length = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    own->echo = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (own->echo < 0 || setsockopt(own->echo, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
        bind(own->echo, (const struct sockaddr *)&at, sizeof at) != 0 ||
        getsockname(own->echo, (struct sockaddr *)&at, &length) != 0 ||
        connect(own->echo, (const struct sockaddr *)&at, sizeof at) != 0) {
        return -errno;
    }
    return 0;
}

/* Sends a datagram and waits until it has come; the CPU that received it, -1 where it is late or lost. */
static int echo(const loopback *own) {
    char payload[64] = {0};
    while (recv(own->echo, payload, sizeof payload, MSG_DONTWAIT) > 0) {
        /* It came late. */
    }
    int cpu = -1;
    socklen_t length = sizeof cpu;
    if (send(own->echo, payload, sizeof payload, MSG_DONTWAIT) < 0 || recv(own->echo, payload, sizeof payload, 0) < 0 ||
        getsockopt(own->echo, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &length) != 0) {
        return -1;
    }
    return cpu;
}

static int make_network(jw_noise_thread *self) {
    if (unshare(CLONE_NEWNET) != 0) {
        return errno == EINVAL ? -ENOSYS : -errno;
    }
    int failed = set_up();
    failed = failed != 0 ? failed : steer_to(self->config->hot);
    failed = failed != 0 ? failed : make_sockets(self);
    failed = failed != 0 ? failed : make_echo(self->state);
    for (int n = 0; n < ECHO_TRIES && failed == 0; n++) {
        if (echo(self->state) == self->config->hot) {
            return 0;
        }
    }
    return failed != 0 ? failed : -ENOTSUP;
}

/* The echo is behind the other packets: when it has come, they have been received. The hot CPU took them while this thread
 * slept or sent more: the log has when, and not for how long. */
static void send_to_hot(jw_noise_thread *self) {
    const loopback *own = self->state;
    const int source = self->config->clock.source;
    unsigned cpu;
    const uint64_t start = jw_now_ordered(source, &cpu);
    for (int n = 0; n < PACKETS; n++) {
        send_one(own);
    }
    const int received_on = echo(own);
    const uint64_t end = jw_now_ordered(source, &cpu);
    if (received_on >= 0) {
        jw_noise_log(self, start, end, 0, received_on, JW_BURST_MAIN);
    }
}

const jw_noise_act jw_act_network = {
    .where = JW_ON_OTHER, .prepare = make_network, .act = send_to_hot, .teardown = free_sockets};
