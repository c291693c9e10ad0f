/* handoffs memory|paced|futex N: hand N messages from one thread to another, and print a figure on standard error.

   memory: on two CPUs, 100,000 messages a second through a word that the other thread polls; the median transit in ns.
   paced: two threads on one CPU, 100,000 messages a second, each of which wakes the other thread by a futex; the
   median transit in ns.
   futex: two threads on one CPU wake each other without a pause; the CPU time of a hand-off in ns. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 4096, APART_NS = 10000 };

static uint32_t count;
static _Alignas(64) _Atomic uint32_t word;
static uint64_t stamps[SLOTS];
static uint32_t *transits;
static int first_cpu, last_cpu;

static uint64_t now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

static void *consume(void *unused)
{
	pin(last_cpu);
	for (uint32_t seen = 0; seen < count;) {
		uint32_t published = atomic_load_explicit(&word, memory_order_acquire);
		uint64_t at = now(CLOCK_MONOTONIC);
		for (; seen < published; seen++) {
			uint64_t took = at - stamps[seen % SLOTS];
			transits[seen] = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
		}
	}
	return unused;
}

static void publish(void)
{
	pin(first_cpu);
	uint64_t due = now(CLOCK_MONOTONIC) + 1000000;
	for (uint32_t i = 0; i < count; i++, due += APART_NS) {
		while (now(CLOCK_MONOTONIC) < due) {
		}
		stamps[i % SLOTS] = now(CLOCK_MONOTONIC);
		atomic_store_explicit(&word, i + 1, memory_order_release);
	}
}

static void play(uint32_t me)
{
	for (;;) {
		uint32_t turn = atomic_load(&word);
		if (turn >= count) {
			syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
			return;
		}
		if (turn % 2 == me) {
			atomic_fetch_add(&word, 1);
			syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		} else {
			syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, turn, NULL, NULL, 0);
		}
	}
}

static _Alignas(64) _Atomic uint32_t ack;

static void hand(_Atomic uint32_t *to, uint32_t value)
{
	atomic_store(to, value);
	syscall(SYS_futex, to, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void await(_Atomic uint32_t *from, uint32_t value)
{
	for (uint32_t seen; (seen = atomic_load(from)) != value;)
		syscall(SYS_futex, from, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void *answer(void *unused)
{
	pin(last_cpu);
	for (uint32_t i = 1; i <= count; i++) {
		await(&word, i);
		transits[i - 1] = (uint32_t)(now(CLOCK_MONOTONIC) - stamps[i % SLOTS]);
		hand(&ack, i);
	}
	return unused;
}

static void ask(void)
{
	pin(last_cpu);
	uint64_t due = now(CLOCK_MONOTONIC) + 1000000;
	for (uint32_t i = 1; i <= count; i++, due += APART_NS) {
		while (now(CLOCK_MONOTONIC) < due) {
		}
		stamps[i % SLOTS] = now(CLOCK_MONOTONIC);
		hand(&word, i);
		await(&ack, i);
	}
}

static void *second(void *unused)
{
	pin(last_cpu);
	play(1);
	return unused;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

int main(int words, char **word_list)
{
	if (words != 3)
		return 2;
	int memory = strcmp(word_list[1], "memory") == 0;
	int paced = strcmp(word_list[1], "paced") == 0;
	count = (uint32_t)strtoul(word_list[2], NULL, 10);
	cpu_set_t set;
	sched_getaffinity(0, sizeof set, &set);
	first_cpu = last_cpu = -1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set)) {
			first_cpu = first_cpu < 0 ? cpu : first_cpu;
			last_cpu = cpu;
		}
	transits = calloc(count + 1u, sizeof *transits);
	if (transits == NULL)
		return 1;
	memset(transits, 1, count * sizeof *transits);
	uint64_t began = now(CLOCK_PROCESS_CPUTIME_ID);
	pthread_t other;
	if (pthread_create(&other, NULL, memory ? consume : paced ? answer : second, NULL))
		return 1;
	if (memory) {
		publish();
	} else if (paced) {
		ask();
	} else {
		pin(last_cpu);
		play(0);
	}
	pthread_join(other, NULL);
	if (memory || paced) {
		qsort(transits, count, sizeof *transits, by_value);
		fprintf(stderr, "HANDOFFS %u\n", transits[count / 2]);
	} else {
		fprintf(stderr, "HANDOFFS %.1f\n", (double)(now(CLOCK_PROCESS_CPUTIME_ID) - began) / count);
	}
	return 0;
}
