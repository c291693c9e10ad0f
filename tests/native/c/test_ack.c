/* The receiver and its sender over the loopback device, live. */
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "check.h"
#include "clock.h"
#include "loopback.h"

static const jw_clock ns_clock = {
    .source = JW_CLOCK_MONOTONIC, .rate_hz = 1000000000, .mult = UINT64_C(1) << JW_CLOCK_SHIFT};

enum { INTERVAL_NS = 100000 };

static int block(jw_workload *workload, uint64_t duration_ticks, jw_block_result *result) {
    const jw_block_request request = {.duration_ticks = duration_ticks};
    return jw_workload_block(workload, &request, result);
}

static jw_workload *started(uint64_t most) {
    const jw_workload_config config = {
        .clock = ns_clock, .most = most, .interval_ns = INTERVAL_NS, .cpu = {-1, -1}};
    int error, failed;
    jw_workload *ack = jw_ack_new(&config, &error);
    CHECK(ack != NULL && error == 0 && jw_workload_start(ack, &failed) == 0);
    CHECK(jw_workload_tid(ack, JW_ACK_SENDER) > 0 && jw_workload_tid(ack, JW_ACK_RECEIVER) > 0);
    return ack;
}

static void answering(void) {
    jw_workload *ack = started(10000);
    for (int round = 0; round < 3; round++) {
        jw_block_result result;
        CHECK(block(ack, 10000000, &result) == 0);
        const uint64_t *sent = jw_workload_stamps(ack, JW_ACK_SENDER), *acks = jw_workload_stamps(ack, JW_ACK_RECEIVER);
        CHECK(result.count > 0 && result.ack.answered > 0 && result.ack.answered <= result.count);
        CHECK(sent[result.count] - sent[0] >= 10000000);
        for (uint64_t i = 1; i <= result.count; i++) {
            CHECK(sent[i] >= sent[i - 1]);
        }
        for (uint64_t i = 1; i <= result.ack.answered; i++) {
            CHECK(acks[i] >= acks[i - 1]);
            /* The i-th answer is to the i-th segment or a later one. */
            CHECK(acks[i] >= sent[i]);
        }
        CHECK(acks[result.ack.answered] >= sent[result.count]);
    }
    jw_workload_free(ack);
}

static void full_arrays_end_a_block(void) {
    jw_workload *ack = started(7);
    jw_block_result result;
    CHECK(block(ack, UINT64_C(3600000000000), &result) == 0 && result.count == 7 && result.ack.answered <= 7);
    CHECK(block(ack, 1, &result) == 0 && result.count == 1 && result.ack.answered <= 1);
    jw_workload_free(ack);
}

static void *stop_it(void *ack) {
    const struct timespec pause = {.tv_nsec = 5000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    jw_workload_stop(ack);
    return NULL;
}

static void stopped_in_a_block(void) {
    jw_workload *ack = started(10000000);
    pthread_t stopper;
    CHECK(pthread_create(&stopper, NULL, stop_it, ack) == 0);
    jw_block_result result;
    CHECK(block(ack, UINT64_C(3600000000000), &result) != 0);
    CHECK(pthread_join(stopper, NULL) == 0);
    CHECK(block(ack, 1, &result) != 0);
    jw_workload_free(ack);
}

static void what_cannot_be(void) {
    const uint64_t wrong[][2] = {{0, INTERVAL_NS}, {10, 0}, {10, UINT64_C(3600000000000)}, {UINT64_MAX, INTERVAL_NS}};
    int error, failed;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const jw_workload_config config = {
            .clock = ns_clock, .most = wrong[i][0], .interval_ns = wrong[i][1], .cpu = {-1, -1}};
        CHECK(jw_ack_new(&config, &error) == NULL && error != 0);
    }
    for (int who = 0; who <= JW_ACK_RECEIVER; who++) {
        jw_workload_config nowhere = {
            .clock = ns_clock, .most = 10, .interval_ns = INTERVAL_NS, .cpu = {-1, -1}};
        nowhere.cpu[who] = 60000;
        jw_workload *ack = jw_ack_new(&nowhere, &error);
        CHECK(ack != NULL && jw_workload_start(ack, &failed) != 0 && failed == who);
        jw_block_result result;
        CHECK(block(ack, 1, &result) != 0);
        jw_workload_free(ack);
    }
    jw_workload_free(NULL);
}

/* Both ends belong to this process, on 127.0.0.1, and to each other. */
static void a_connection_to_oneself(void) {
    int client, server;
    CHECK(jw_loopback_pair(&client, &server) == 0);
    struct sockaddr_in own, peer;
    memset(&own, 0, sizeof own);
    memset(&peer, 0, sizeof peer);
    socklen_t length = sizeof own;
    CHECK(getsockname(client, (struct sockaddr *)&own, &length) == 0);
    length = sizeof peer;
    CHECK(getpeername(server, (struct sockaddr *)&peer, &length) == 0);
    CHECK(own.sin_port == peer.sin_port && ntohl(own.sin_addr.s_addr) == INADDR_LOOPBACK);
    char byte = 'x';
    CHECK(send(client, &byte, 1, MSG_NOSIGNAL) == 1 && recv(server, &byte, 1, 0) == 1 && byte == 'x');
    jw_loopback_end(client, server);
    CHECK(recv(server, &byte, 1, 0) == 0);
    jw_loopback_close(client, server);
    jw_loopback_end(-1, -1);
    jw_loopback_close(-1, -1);
}

int main(void) {
    a_connection_to_oneself();
    answering();
    full_arrays_end_a_block();
    stopped_in_a_block();
    what_cannot_be();
    return 0;
}
