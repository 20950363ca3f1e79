/* Which latency does a load generator report when the true one is known?
 *
 * An HTTP/1.1 target in one epoll thread that answers every request a fixed time after it was read, and reports how
 * long it really held them. It can also stall: stop doing anything for a while, at regular intervals, and log when.
 *
 *   fixed_delay DELAY_US [STALL_EVERY_MS STALL_MS]      prints its port (127.0.0.1) on one line
 *   GET /holds    what was held since the last call, and every stall so far, as JSON
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FD = 8192, MAX_REQUEST = 1 << 16, MAX_HELD = 1 << 16, MAX_HOLD_US = 1 << 21, MAX_STALLS = 1024 };
static const int64_t NS_PER_S = 1000000000;

typedef struct { char *bytes; size_t filled; uint32_t opened; } Connection;
typedef struct { int fd; uint32_t opened; int64_t read_ns; } Held;

static Connection connections[MAX_FD];
static Held held[MAX_HELD];            /* a ring: the delay is constant, so first in is first out */
static uint32_t first_held, end_held;
static uint32_t hold_counts[MAX_HOLD_US];
static int64_t stalls[MAX_STALLS][2];
static int stall_count, due_timer, poller;
static int64_t delay_ns, stall_ns;
static const char REPLY[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"output\": 0.5}";

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static struct timespec as_timespec(int64_t ns) {
    return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

static void watch(int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}

static void send_all(int fd, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0) return; /* the client left: its own report says so */
        bytes += sent;
        size -= sent;
    }
}

static void count_hold(int64_t ns) {
    int64_t us = ns / 1000;
    hold_counts[us < MAX_HOLD_US ? us : MAX_HOLD_US - 1]++;
}

static void send_holds(int fd) {
    static char body[1 << 16], head[128];
    uint64_t total = 0, seen = 0;
    int64_t p50 = -1, p99 = -1, longest = -1;
    for (int us = 0; us < MAX_HOLD_US; us++) total += hold_counts[us];
    for (int us = 0; us < MAX_HOLD_US; us++) {
        if (!hold_counts[us]) continue;
        seen += hold_counts[us];
        if (p50 < 0 && seen * 2 >= total) p50 = us;
        if (p99 < 0 && seen * 100 >= total * 99) p99 = us;
        longest = us;
    }
    memset(hold_counts, 0, sizeof hold_counts);
    int size = snprintf(body, sizeof body, "{\"count\":%lu,\"p50_us\":%ld,\"p99_us\":%ld,\"max_us\":%ld,\"stalls_ns\":[",
                        total, p50, p99, longest);
    for (int i = 0; i < stall_count; i++)
        size += snprintf(body + size, sizeof body - size, "%s[%ld,%ld]", i ? "," : "", stalls[i][0], stalls[i][1]);
    size += snprintf(body + size, sizeof body - size, "]}");
    int head_size = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size);
    send_all(fd, head, head_size);
    send_all(fd, body, size);
}

static void arm_due(void) {
    struct itimerspec when = {.it_value = as_timespec(held[first_held % MAX_HELD].read_ns + delay_ns)};
    timerfd_settime(due_timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void take(int fd, const char *request, int64_t read_ns) {
    if (!strncmp(request, "GET /holds", 10)) {
        send_holds(fd);
    } else if (delay_ns == 0) {
        send_all(fd, REPLY, sizeof REPLY - 1);
        count_hold(0);
    } else {
        held[end_held++ % MAX_HELD] = (Held){.fd = fd, .opened = connections[fd].opened, .read_ns = read_ns};
        if (end_held - first_held == 1) arm_due();
    }
}

static void release_due(void) {
    while (first_held != end_held && held[first_held % MAX_HELD].read_ns + delay_ns <= now_ns()) {
        Held item = held[first_held++ % MAX_HELD];
        if (item.opened != connections[item.fd].opened) continue; /* the descriptor is another client's by now */
        send_all(item.fd, REPLY, sizeof REPLY - 1);
        count_hold(now_ns() - item.read_ns);
    }
    if (first_held != end_held) arm_due();
}

static size_t request_size(const Connection *connection) {
    char *end = memmem(connection->bytes, connection->filled, "\r\n\r\n", 4);
    if (!end) return 0;
    char *length = strcasestr(connection->bytes, "\r\ncontent-length:");
    size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    size_t size = end + 4 - connection->bytes + body;
    return size <= connection->filled ? size : 0;
}

static void drop(int fd) {
    connections[fd].opened++;
    close(fd);
}

static void read_requests(int fd) {
    Connection *connection = &connections[fd];
    ssize_t got = read(fd, connection->bytes + connection->filled, MAX_REQUEST - connection->filled);
    if (got <= 0) {
        drop(fd);
        return;
    }
    int64_t read_ns = now_ns();
    connection->filled += got;
    connection->bytes[connection->filled] = 0;
    for (size_t size; (size = request_size(connection)) > 0;) {
        take(fd, connection->bytes, read_ns);
        connection->filled -= size;
        memmove(connection->bytes, connection->bytes + size, connection->filled + 1);
    }
}

static void accept_one(int listener) {
    int fd = accept(listener, NULL, NULL), one = 1;
    if (fd < 0) return;
    if (fd >= MAX_FD) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (!connections[fd].bytes) connections[fd].bytes = malloc(MAX_REQUEST + 1);
    connections[fd].filled = 0;
    watch(fd);
}

static void stall(void) {
    int64_t start_ns = now_ns();
    struct timespec until = as_timespec(start_ns + stall_ns);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    if (stall_count < MAX_STALLS) {
        stalls[stall_count][0] = start_ns;
        stalls[stall_count++][1] = now_ns();
    }
}

static int listen_on_loopback(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096)) exit(1);
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static int stall_timer_every(int64_t every_ns) {
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec every = {.it_value = as_timespec(every_ns), .it_interval = as_timespec(every_ns)};
    if (every_ns) timerfd_settime(timer, 0, &every, NULL);
    return timer;
}

int main(int count, char **words) {
    delay_ns = atol(words[1]) * 1000;
    stall_ns = count > 3 ? atol(words[3]) * 1000000 : 0;
    poller = epoll_create1(0);
    due_timer = timerfd_create(CLOCK_MONOTONIC, 0);
    int stall_timer = stall_timer_every(count > 3 ? atol(words[2]) * 1000000 : 0);
    int listener = listen_on_loopback();
    watch(listener);
    watch(due_timer);
    watch(stall_timer);
    struct epoll_event events[256];
    uint64_t expirations;
    for (;;) {
        int ready = epoll_wait(poller, events, 256, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) accept_one(fd);
            else if (fd == due_timer && read(fd, &expirations, 8) == 8) release_due();
            else if (fd == stall_timer && read(fd, &expirations, 8) == 8) stall();
            else if (fd != due_timer && fd != stall_timer) read_requests(fd);
        }
    }
}
