/* A TCP connection of this process to itself, over 127.0.0.1. */
#ifndef JW_LOOPBACK_H
#define JW_LOOPBACK_H

#include "core.h"

/* Two ends of one connection that nothing waits to fill up (TCP_NODELAY). 0, or -errno and no end is open. */
int jw_loopback_pair(int *client, int *server);

/* Wake the threads that wait at either end: the connection has ended. Ends that are not open (-1) are left alone. */
void jw_loopback_end(int client, int server);
void jw_loopback_close(int client, int server);

#endif
