/* A peer that answers each request at once with its correlation id and zeros: the load's own ceiling.

   echo ANSWER_BYTES   prints its port, then serves until its stdin ends. One thread with epoll. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 256

int main(int count, char **words) {
    uint32_t size = count == 2 ? atoi(words[1]) : 0, length = htonl(size - 4);
    if (size < 8) return fprintf(stderr, "usage: echo ANSWER_BYTES (at least 8)\n"), 2;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    uint8_t *answer = calloc(1, size), request[1 << 16];
    memcpy(answer, &length, 4);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t address_size = sizeof address;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) return perror("listen"), 1;
    getsockname(listener, (struct sockaddr *)&address, &address_size);
    struct epoll_event events[EVENTS], event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    event.data.fd = 0;
    epoll_ctl(poll, EPOLL_CTL_ADD, 0, &event);
    printf("127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        int found = epoll_wait(poll, events, EVENTS, -1);
        for (int i = 0; i < found; i++) {
            int fd = events[i].data.fd;
            if (fd == 0) return 0;
            if (fd == listener) {
                event.data.fd = accept(listener, NULL, NULL);
                setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event);
                continue;
            }
            /* The load has one small request in flight: it arrives whole. */
            ssize_t received = recv(fd, request, sizeof request, 0);
            if (received < 12) {
                close(fd);
                continue;
            }
            memcpy(answer + 4, request + 8, 4);
            if (send(fd, answer, size, MSG_NOSIGNAL) != (ssize_t)size) return perror("send"), 1;
        }
    }
}
