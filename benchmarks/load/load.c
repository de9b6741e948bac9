/* Load on a server of Kafka's protocol: prepared frames, one request in flight on each connection.

   load HOST PORT --frames FILE [options]

   The file has request frames, one after the other. Connection i of N sends the frames i, i + N, i + 2N, …, from the
   start again when they end, or each frame once with --once. Before a frame is sent it gets a new correlation id. Each
   answer must have that id, the size of --answer-bytes and no error code at --error-at; what differs is counted.

   One thread with epoll: the load shares the cores with the server, so it must be cheap. With --rate the requests are
   due at fixed times and a latency begins when its request was due, so that a server that stalls cannot hide it.
   SIGTERM ends a run early. Requests that stay unanswered for ten seconds more are an error. The result is one JSON object on stdout. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define HEAD 16 /* bytes of an answer that are looked at */
#define EVENTS 256
#define LAST_ANSWERS_S 10 /* that a server may take for what is in flight at the end */

struct frame {
    uint8_t *bytes;
    uint32_t size;
};

struct connection {
    int fd;
    bool in_flight;
    int32_t correlation_id;
    uint64_t sent;     /* number of requests so far */
    int64_t began;     /* when the request in flight was sent, or was due */
    uint32_t received; /* bytes of the answer so far */
    uint32_t size;     /* of the whole answer, known after four bytes */
    uint8_t head[HEAD];
};

static struct {
    int connections, error_at, pid;
    uint32_t answer_bytes;
    double seconds, warm_up_s, rate;
    bool once;
} options = {.connections = 1, .error_at = -1, .seconds = 1};

static struct frame *frames;
static uint64_t frame_count;
static struct connection *connections;
static uint64_t in_flight, errors, wrong;
static int64_t *latencies; /* nanoseconds */
static uint64_t answers, room;
static volatile sig_atomic_t is_stopped;

static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void stop(int number) {
    (void)number;
    is_stopped = 1;
}

static int64_t now_ns(clockid_t clock) {
    struct timespec now;
    if (clock_gettime(clock, &now)) fail("clock: %s", strerror(errno));
    return now.tv_sec * SECOND + now.tv_nsec;
}

static int64_t server_cpu_ns(void) {
    clockid_t clock;
    if (!options.pid) return 0;
    if (clock_getcpuclockid(options.pid, &clock)) fail("there is no process %d", options.pid);
    return now_ns(clock);
}

static uint32_t big_endian(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void read_frames(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail("%s: %s", path, strerror(errno));
    uint8_t prefix[4];
    uint64_t space = 0;
    while (fread(prefix, 1, 4, file) == 4) {
        if (frame_count == space) frames = realloc(frames, (space = space ? 2 * space : 256) * sizeof *frames);
        uint32_t size = big_endian(prefix);
        if (size < 8 || size > 1 << 20) fail("%s: a frame of %u bytes (8 to 1 MiB are expected)", path, size);
        uint8_t *bytes = malloc(size + 4);
        memcpy(bytes, prefix, 4);
        if (fread(bytes + 4, 1, size, file) != size) fail("%s ends inside a frame", path);
        frames[frame_count++] = (struct frame){bytes, size + 4};
    }
    if (!frame_count) fail("%s has no frames", path);
    fclose(file);
}

static void connect_all(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail("%s is not an IPv4 address", host);
    connections = calloc(options.connections, sizeof *connections);
    for (int i = 0; i < options.connections; i++) {
        int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
            fail("connection %d to %s:%d: %s", i + 1, host, port, strerror(errno));
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        connections[i] = (struct connection){.fd = fd, .correlation_id = i};
    }
}

/* Send the next frame of a connection; false if each was sent already. */
static bool send_next(struct connection *connection, int64_t began) {
    uint64_t number = (connection - connections) + connection->sent * options.connections;
    if (options.once && number >= frame_count) return false;
    struct frame *frame = &frames[number % frame_count];
    uint32_t id = htonl(connection->correlation_id = (connection->correlation_id + options.connections) & 0x7fffffff);
    memcpy(frame->bytes + 8, &id, 4);
    connection->sent++;
    connection->began = began;
    connection->in_flight = true;
    in_flight++;
    for (uint32_t done = 0; done < frame->size;) {
        ssize_t sent = send(connection->fd, frame->bytes + done, frame->size - done, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) fail("send: %s", strerror(errno));
        if (sent > 0) done += sent;
    }
    return true;
}

/* Receive what is there; true if it ends the answer. */
static bool receive(struct connection *connection) {
    static uint8_t buffer[1 << 20];
    ssize_t size = recv(connection->fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (size <= 0) fail("the server closed a connection after %lu answers", answers);
    if (!connection->in_flight) fail("an answer without a request");
    if (connection->received < HEAD) {
        uint32_t wanted = HEAD - connection->received;
        memcpy(connection->head + connection->received, buffer, size < wanted ? size : wanted);
    }
    connection->received += size;
    if (connection->received < 4) return false;
    connection->size = 4 + big_endian(connection->head);
    if (connection->received > connection->size) fail("more bytes than an answer has: %u", connection->received);
    return connection->received == connection->size;
}

static void count_answer(struct connection *connection, int64_t now) {
    int at = options.error_at;
    if ((int32_t)big_endian(connection->head + 4) != connection->correlation_id ||
        (options.answer_bytes && connection->size != options.answer_bytes))
        wrong++;
    if (at >= 0 && (connection->size < at + 2u || connection->head[at] || connection->head[at + 1])) errors++;
    if (answers == room) latencies = realloc(latencies, (room = room ? 2 * room : 1 << 20) * sizeof *latencies);
    latencies[answers++] = now - connection->began;
    connection->received = 0;
    connection->in_flight = false;
    in_flight--;
}

/* When the next request of a connection is due: the connections are spread evenly over one period. */
static int64_t due(struct connection *connection, int64_t began) {
    uint64_t number = (connection - connections) + connection->sent * options.connections;
    return began + (int64_t)(number * (SECOND / options.rate));
}

struct totals {
    int64_t began, ended, own_cpu, server_cpu;
    uint64_t skipped; /* answers of the warm-up */
};

static struct totals drive(void) {
    int poll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct epoll_event events[EVENTS], event = {.events = EPOLLIN};
    for (int i = 0; i < options.connections; i++) {
        event.data.ptr = &connections[i];
        epoll_ctl(poll, EPOLL_CTL_ADD, connections[i].fd, &event);
    }
    event.data.ptr = NULL;
    epoll_ctl(poll, EPOLL_CTL_ADD, timer, &event);
    int64_t began = now_ns(CLOCK_MONOTONIC), warm = began + options.warm_up_s * SECOND;
    int64_t end = warm + options.seconds * SECOND, now = began, armed = 0, over_since = 0;
    struct totals totals = {0};
    int next = 0; /* with a rate: the connection whose turn it is */
    for (int i = 0; i < options.connections && !options.rate; i++) send_next(&connections[i], now_ns(CLOCK_MONOTONIC));
    for (;;) {
        if (now >= warm && !totals.began) {
            errors = wrong = 0;
            totals = (struct totals){now, 0, now_ns(CLOCK_PROCESS_CPUTIME_ID), server_cpu_ns(), answers};
        }
        bool is_over = now >= end || is_stopped;
        if (is_over && !over_since) over_since = now;
        if (over_since && now - over_since > LAST_ANSWERS_S * SECOND) fail("%lu requests were not answered", in_flight);
        while (options.rate && !is_over && due(&connections[next], began) <= now && !connections[next].in_flight) {
            send_next(&connections[next], due(&connections[next], began));
            next = (next + 1) % options.connections;
        }
        if (!in_flight && (is_over || !options.rate)) break;
        if (options.rate && !is_over && !connections[next].in_flight) {
            int64_t at = due(&connections[next], began);
            struct itimerspec when = {.it_value = {at / SECOND, at % SECOND}};
            if (at != armed) timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
            armed = at;
        }
        int found = epoll_wait(poll, events, EVENTS, 1000);
        now = now_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < found; i++) {
            struct connection *connection = events[i].data.ptr;
            uint64_t expirations;
            if (!connection) {
                if (read(timer, &expirations, sizeof expirations) > 0) armed = 0;
            } else if (receive(connection)) {
                now = now_ns(CLOCK_MONOTONIC);
                count_answer(connection, now);
                if (!options.rate && now < end && !is_stopped) send_next(connection, now);
            }
        }
    }
    totals.ended = now;
    totals.own_cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - totals.own_cpu;
    totals.server_cpu = server_cpu_ns() - totals.server_cpu;
    return totals;
}

static int compare(const void *one, const void *other) {
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

static void report(struct totals totals) {
    uint64_t counted = answers - totals.skipped;
    if (!totals.began || !counted) fail("the frames or the time ended before anything was measured");
    int64_t *measured = latencies + totals.skipped;
    qsort(measured, counted, sizeof *measured, compare);
    printf("{\"answers\": %lu, \"errors\": %lu, \"wrong\": %lu, \"seconds\": %.6f, \"cpu_s\": %.6f, "
           "\"load_cpu_s\": %.6f, \"p50_ms\": %.6f, \"p99_ms\": %.6f, \"max_ms\": %.6f}\n",
           counted, errors, wrong, (totals.ended - totals.began) / 1e9, totals.server_cpu / 1e9, totals.own_cpu / 1e9,
           measured[counted / 2] / 1e6, measured[counted * 99 / 100] / 1e6, measured[counted - 1] / 1e6);
}

int main(int argc, char **argv) {
    const char *path = NULL;
    static const struct option names[] = {
        {"frames", required_argument, 0, 'f'},       {"connections", required_argument, 0, 'c'},
        {"seconds", required_argument, 0, 's'},      {"warm-up", required_argument, 0, 'w'},
        {"rate", required_argument, 0, 'r'},         {"once", no_argument, 0, 'o'},
        {"error-at", required_argument, 0, 'e'},     {"answer-bytes", required_argument, 0, 'a'},
        {"pid", required_argument, 0, 'p'},          {0},
    };
    for (int each; (each = getopt_long(argc, argv, "", names, NULL)) != -1;) switch (each) {
        case 'f': path = optarg; break;
        case 'c': options.connections = atoi(optarg); break;
        case 's': options.seconds = atof(optarg); break;
        case 'w': options.warm_up_s = atof(optarg); break;
        case 'r': options.rate = atof(optarg); break;
        case 'o': options.once = true; break;
        case 'e': options.error_at = atoi(optarg); break;
        case 'a': options.answer_bytes = atoi(optarg); break;
        case 'p': options.pid = atoi(optarg); break;
        default: return 2;
        }
    if (optind + 2 != argc || !path || options.connections < 1 || options.error_at > HEAD - 2 || (options.once && options.rate))
        fail("usage: load HOST PORT --frames FILE [--connections N] [--seconds S] [--warm-up S] [--rate PER_S | --once]"
             " [--error-at BYTE] [--answer-bytes N] [--pid SERVER]");
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    read_frames(path);
    connect_all(argv[optind], atoi(argv[optind + 1]));
    report(drive());
    return 0;
}
