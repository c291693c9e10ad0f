/* One cache line handed to and fro. */
#ifndef JW_PINGPONG_H
#define JW_PINGPONG_H

#include "core.h"

typedef struct {
    _Alignas(JW_APART) _Atomic uint64_t turn;
    uint64_t stamp; /* the second side's, written before it answers */
    char rest[JW_APART - 2 * sizeof(uint64_t)];
} jw_line;

enum { JW_PING_BATCHES = 64, JW_PING_ROUNDS = 16 };

/* The first side: times batches of round trips, tells the second side to end, gives half a round trip (median), or -1
 * when it was stopped or took longer than `limit_ticks`. The line must be all zero. */
double jw_ping_side(jw_line *line, const jw_clock *clock, uint64_t limit_ticks, const _Atomic int *stop);
void jw_pong_side(jw_line *line, const _Atomic int *stop);

/* The asking side: what the other side's clock says, `rounds` times at most and for some 200 ms at most; tells the other
 * side to end. 0, or -EIO without an answer. The line must be all zero. */
int jw_ask_side(jw_line *line, int source, int rounds, const _Atomic int *stop, jw_offset *out);
/* The answering side: stamps until it is told to end. */
void jw_stamp_side(jw_line *line, int source, const _Atomic int *stop);

#endif
