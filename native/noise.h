/* Inside the noise lab: a kind is one or two acts, an act runs on threads of its own, each with its own log. */
#ifndef JW_NOISE_H
#define JW_NOISE_H

#include <pthread.h>

#include "clock.h"
#include "core.h"
#include "memory.h"
#include "random.h"
#include "threads.h"

typedef struct jw_noise_thread jw_noise_thread;

typedef enum { JW_ON_HOT, JW_ON_OTHER, JW_ON_EACH } jw_noise_where;

typedef struct {
    jw_noise_where where;
    /* On the thread's own CPU, before the noise is said to run; 0 or -errno. May be NULL. */
    int (*prepare)(jw_noise_thread *self);
    /* One burst; called once a period. */
    void (*act)(jw_noise_thread *self);
    /* Also after a failed `prepare`, on the same thread. May be NULL. */
    void (*teardown)(jw_noise_thread *self);
} jw_noise_act;

struct jw_noise_thread {
    jw_noise *all;
    const jw_noise_config *config;
    const jw_noise_act *does;
    pthread_t thread;
    int cpu; /* -1: the scheduler's choice */
    int failed;
    uint64_t random;
    uint64_t length_ticks; /* of one burst, as `prepare` measured it; 0: the log has each burst's own */
    void *state;           /* what the act keeps between bursts */
    jw_burst *log;
    size_t logged;
    size_t room;
    uint64_t unlogged;
};

/* acts, each in the file of what it uses */
extern const jw_noise_act jw_act_busy;      /* noise_cpu.c */
extern const jw_noise_act jw_act_spinner;
extern const jw_noise_act jw_act_task;
extern const jw_noise_act jw_act_move;
extern const jw_noise_act jw_act_timer;     /* noise_kernel.c */
extern const jw_noise_act jw_act_work;
extern const jw_noise_act jw_act_terminal;
extern const jw_noise_act jw_act_disk;
extern const jw_noise_act jw_act_hwrng;
extern const jw_noise_act jw_act_softirq;   /* noise_network.c */
extern const jw_noise_act jw_act_network;
extern const jw_noise_act jw_act_fault;     /* noise_memory.c */
extern const jw_noise_act jw_act_shootdown;
extern const jw_noise_act jw_act_stream;

const char *jw_noise_name(const jw_noise_thread *self);
bool jw_noise_stopped(const jw_noise_thread *self);
bool jw_noise_over(const jw_noise_thread *self);
int32_t jw_noise_target(const jw_noise_thread *self, size_t nth);
void jw_noise_log(jw_noise_thread *self, uint64_t start, uint64_t end, uint64_t taken, int cpu, int what);
void jw_noise_be_busy(jw_noise_thread *self, uint64_t ns); /* noise_cpu.c */
uint64_t jw_noise_task_ns(jw_noise_thread *self); /* an ordinary task has no fixed length: 2/5 to 8/5 of busy_ns */

/* A burst in steps, from one clock reading to the next. A step that takes longer than `longest_step` was not the thread's
 * own time: it ends the burst, and the next one begins behind it. */
typedef struct {
    jw_noise_thread *self;
    uint64_t start;
    uint64_t last;
    uint64_t longest_step;
    unsigned cpu;
    int what;
} jw_steps;

jw_steps jw_steps_begin(jw_noise_thread *self, uint64_t longest_step_ns, int what);
uint64_t jw_steps_next(jw_steps *steps); /* the time, in ticks */
void jw_steps_end(jw_steps *steps);

/* Measure the time that one trigger takes of a CPU. A thread there watches the clock while `trigger` is called a few
 * times. Each call returns the two moments between which its effect must begin. The typical time becomes the thread's
 * `length_ticks`. Return 0 or -errno; -ENOTSUP: no effect was seen. */
typedef struct {
    uint64_t from;
    uint64_t until;
} jw_moments;
int jw_noise_measure(jw_noise_thread *self, int cpu, jw_moments (*trigger)(jw_noise_thread *self));

#endif
