/* Making and ending a TCP connection over the loopback device: its traffic leaves this host at no point (ip(7), tcp(7)). */
#include "loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_STRANGERS = 16 };

/* For one call at most: a port that is bound to 127.0.0.1 is open to all of this host's users. */
static int listen_on_loopback(struct sockaddr_in *at) {
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof *at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0) {
        return -errno;
    }
    if (bind(listener, (const struct sockaddr *)&any, sizeof any) != 0 || listen(listener, MOST_STRANGERS) != 0 ||
        getsockname(listener, (struct sockaddr *)at, &length) != 0) {
        int failed = -errno;
        close(listener);
        return failed;
    }
    return listener;
}

static int connect_to(const struct sockaddr_in *at, struct sockaddr_in *own) {
    socklen_t length = sizeof *own;
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client < 0) {
        return -errno;
    }
    if (connect(client, (const struct sockaddr *)at, sizeof *at) != 0 ||
        getsockname(client, (struct sockaddr *)own, &length) != 0) {
        int failed = -errno;
        close(client);
        return failed;
    }
    return client;
}

/* The connection whose other end is `own`: any other program that found the port is turned away. */
static int accept_own(int listener, const struct sockaddr_in *own) {
    for (int tries = 0; tries < MOST_STRANGERS; tries++) {
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        memset(&peer, 0, sizeof peer);
        int server = accept4(listener, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC);
        if (server < 0) {
            if (errno == EINTR || errno == ECONNABORTED) {
                continue;
            }
            return -errno;
        }
        if (peer.sin_port == own->sin_port && peer.sin_addr.s_addr == own->sin_addr.s_addr) {
            return server;
        }
        close(server);
    }
    return -EBUSY;
}

static int no_delay(int end) {
    const int yes = 1;
    return setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0 ? -errno : 0;
}

int jw_loopback_pair(int *client, int *server) {
    struct sockaddr_in at, own;
    memset(&at, 0, sizeof at);
    memset(&own, 0, sizeof own);
    *client = *server = -1;
    int listener = listen_on_loopback(&at);
    if (listener < 0) {
        return listener;
    }
    /* The kernel completes it as soon as the listener's queue has room, before anybody accepts. */
    int failed = *client = connect_to(&at, &own);
    if (*client >= 0) {
        failed = *server = accept_own(listener, &own);
    }
    close(listener);
    if (failed >= 0) {
        failed = no_delay(*client);
    }
    if (failed == 0) {
        failed = no_delay(*server);
    }
    if (failed < 0) {
        jw_loopback_close(*client, *server);
        *client = *server = -1;
        return failed;
    }
    return 0;
}

void jw_loopback_end(int client, int server) {
    if (client >= 0) {
        (void)shutdown(client, SHUT_RDWR);
    }
    if (server >= 0) {
        (void)shutdown(server, SHUT_RDWR);
    }
}

void jw_loopback_close(int client, int server) {
    if (client >= 0) {
        close(client);
    }
    if (server >= 0) {
        close(server);
    }
}
