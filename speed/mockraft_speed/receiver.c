/* `Receiver` is `PureReceiver` of `mockraft.server.epoll.receiver`, on Linux.

   It serves every socket that is ready: receives, has the bytes answered the short way, and sends. What does not go
   that way is left to the listener's `step`, and what is no plain reading to the transport's `ready`. The interpreter's
   lock is held all the time: no call waits, and to release it for each of them costs more than other threads gain in
   the millisecond that a turn may last. */

#include "repeats.h"

#ifdef __linux__

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { SENT_TOGETHER = 32, LONG_RESPONSE_BYTES = 1024 }; /* see `mockraft.server.repeats` */

typedef struct {
    PyObject *transport, *connection;
    Response response;
    int fd;
} Answer;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *transports, *listener, *faults, *now_us, *time;
    PyTypeObject *connection_type; /* TcpConnection: others see their bytes themselves */
    struct epoll_event *events;
    char *buffer;
    int epoll_fd, room, read_bytes, turn_us;
    PyObject *short_way; /* in a turn of it; NULL for none */
    bool is_looked_for;  /* the short way */
    bool is_held;        /* the listener may hold back effects */
    Answer answers[SENT_TOGETHER]; /* not sent yet; none outside of a call */
    int answer_count;
} Receiver;

enum { ACTIVE_AT, CONNECTION_ID, WRITING_PAUSED, EVENTS, PROTOCOL, RECEIVER_SLOTS };

static Slot slots[] = {
    {"TcpConnection", "active_at"},      {"TcpConnection", "connection_id"}, {"TcpConnection", "writing_paused"},
    {"EpollTransport", "events"}, {"EpollTransport", "protocol"},
};

static PyObject *is_performing_name, *depends_name, *node_name, *repeats_name, *answer_name, *step_name, *end_turn_name;
static PyObject *check_unread_name, *ready_name, *write_name, *received_end_name, *broke_name, *crash_name;

static bool is_done(PyObject *result)
{
    Py_XDECREF(result);
    return result != NULL;
}

/* Begin a turn of the short way, if there is one now; false with an exception set. */
static bool begin_short_way(Receiver *self)
{
    int is_busy = is_true(self->listener, is_performing_name);
    if (is_busy == 0) is_busy = is_true(self->faults, depends_name);
    self->is_looked_for = is_busy >= 0;
    if (is_busy) return is_busy > 0;
    PyObject *node = PyObject_GetAttr(self->listener, node_name);
    PyObject *repeats = node ? PyObject_GetAttr(node, repeats_name) : NULL;
    PyObject *answer = repeats ? PyObject_GetAttr(repeats, answer_name) : NULL;
    Py_XDECREF(node);
    Py_XDECREF(repeats);
    if (answer == NULL || !Py_IS_TYPE(answer, short_way_type) || !short_way_begin(answer)) {
        Py_XDECREF(answer);
        return !PyErr_Occurred();
    }
    self->short_way = answer;
    return true;
}

/* End the turn, before Python code runs that is none of the short way's; false with an exception set. */
static bool end_short_way(Receiver *self)
{
    PyObject *short_way = self->short_way;
    self->short_way = NULL;
    self->is_looked_for = false;
    bool is_ended = short_way == NULL || short_way_end(short_way);
    Py_XDECREF(short_way);
    return is_ended;
}

/* Report an error of the socket; false with an exception set. */
static bool broke(Receiver *self, PyObject *transport, int number)
{
    if (!end_short_way(self)) return false;
    PyObject *error = PyObject_CallFunction(PyExc_OSError, "is", number, strerror(number));
    PyObject *done = error ? PyObject_CallMethodOneArg(transport, broke_name, error) : NULL;
    Py_XDECREF(error);
    return is_done(done);
}

/* Send a response, and leave to the transport what the socket does not take; false with an exception set. */
static bool send_response(Receiver *self, PyObject *transport, PyObject *connection, int fd, Response *response)
{
    struct iovec parts[] = {{response->head, RESPONSE_HEAD},
                            {PyBytes_AS_STRING(response->tail), PyBytes_GET_SIZE(response->tail)}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    Py_ssize_t size = RESPONSE_HEAD + PyBytes_GET_SIZE(response->tail);
    ssize_t sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == size) return true;
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return broke(self, transport, errno);
    if (sent < 0) sent = 0;
    if (!end_short_way(self)) return false;
    PyObject *rest = response_from(response, sent);
    PyObject *done = rest ? PyObject_CallMethodOneArg(transport, write_name, rest) : NULL;
    Py_XDECREF(rest);
    if (done != NULL && *slot_of(connection, &slots[WRITING_PAUSED]) == Py_True)
        Py_SETREF(done, PyObject_CallMethodNoArgs(connection, check_unread_name));
    return is_done(done);
}

/* Have the transport end because of the exception that is set; false with one that is none of the protocol's. */
static bool crash(Receiver *self, PyObject *transport)
{
    PyObject *type, *error, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return false;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback != NULL) PyException_SetTraceback(error, traceback);
    bool is_crashed = end_short_way(self) && is_done(PyObject_CallMethodOneArg(transport, crash_name, error));
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    return is_crashed;
}

/* Send the responses that wait for each other; false with an exception set. */
static bool send_answers(Receiver *self)
{
    bool is_sent = true;
    for (int i = 0; i < self->answer_count; i++) {
        Answer *answer = &self->answers[i];
        if (is_sent)
            is_sent = send_response(self, answer->transport, answer->connection, answer->fd, &answer->response) ||
                      crash(self, answer->transport);
        Py_DECREF(answer->transport);
        Py_DECREF(answer->connection);
        Py_DECREF(answer->response.tail);
    }
    self->answer_count = 0;
    return is_sent;
}

/* Leave received bytes to the listener, which may take long; false with an exception set. */
static bool step(Receiver *self, PyObject *connection, Py_ssize_t size, long long now_us)
{
    if (!send_answers(self) || !end_short_way(self)) return false;
    PyObject *data = PyBytes_FromStringAndSize(self->buffer, size);
    PyObject *now = data ? PyLong_FromLongLong(now_us) : NULL, *done = NULL;
    self->is_held = true;
    if (now != NULL) done = PyObject_CallMethodObjArgs(self->listener, step_name, connection, data, now, NULL);
    Py_XDECREF(now);
    Py_XDECREF(data);
    return is_done(done);
}

/* Have the listener carry out what it has held back; false with an exception set. */
static bool end_turn(Receiver *self)
{
    self->is_held = false;
    return end_short_way(self) && is_done(PyObject_CallMethodNoArgs(self->listener, end_turn_name));
}

/* Receive, and answer; false with an exception set. */
static bool receive(Receiver *self, PyObject *transport, PyObject *connection, int fd, PyObject *active_at)
{
    ssize_t size = recv(fd, self->buffer, self->read_bytes, MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR || broke(self, transport, errno);
    if (size == 0) return end_short_way(self) && is_done(PyObject_CallMethodNoArgs(transport, received_end_name));
    Py_XSETREF(*slot_of(connection, &slots[ACTIVE_AT]), Py_NewRef(active_at));
    long long now_us = now_by(self->now_us);
    if (now_us == -1 && PyErr_Occurred()) return false;
    if (!self->is_looked_for && !begin_short_way(self)) return false;
    Response response = {NULL};
    PyObject *connection_id = *slot_of(connection, &slots[CONNECTION_ID]);
    if (self->short_way != NULL)
        response = short_way_answer(self->short_way, connection_id, self->buffer, size, now_us);
    if (response.tail == NULL) return !PyErr_Occurred() && step(self, connection, size, now_us);
    self->answers[self->answer_count++] = (Answer){Py_NewRef(transport), Py_NewRef(connection), response, fd};
    return (short_way_lasts(self->short_way) || end_short_way(self)) &&
           ((self->answer_count < SENT_TOGETHER && PyBytes_GET_SIZE(response.tail) < LONG_RESPONSE_BYTES) ||
            send_answers(self));
}

/* Serve one socket; false with an exception set. */
static bool serve(Receiver *self, const struct epoll_event *event, PyObject *active_at)
{
    int fd = event->data.fd;
    PyObject *transport = fd < PyList_GET_SIZE(self->transports) ? PyList_GET_ITEM(self->transports, fd) : Py_None;
    if (transport == Py_None) return true;
    Py_INCREF(transport);
    PyObject *protocol = Py_XNewRef(*slot_of(transport, &slots[PROTOCOL]));
    /* It waits for nothing but bytes if it has none to send. */
    bool is_plain = event->events == EPOLLIN && protocol != NULL && Py_IS_TYPE(protocol, self->connection_type) &&
                    PyLong_AsLong(*slot_of(transport, &slots[EVENTS])) == EPOLLIN;
    bool is_served;
    if (is_plain) {
        is_served = receive(self, transport, protocol, fd, active_at);
    } else {
        PyObject *events = PyLong_FromUnsignedLong(event->events);
        is_served = events && send_answers(self) && end_short_way(self) &&
                    is_done(PyObject_CallMethodOneArg(transport, ready_name, events));
        Py_XDECREF(events);
    }
    if (!is_served) is_served = crash(self, transport);
    Py_XDECREF(protocol);
    Py_DECREF(transport);
    return is_served;
}

static bool make_room(Receiver *self)
{
    Py_ssize_t room = PyList_GET_SIZE(self->transports) + 1;
    if (room <= self->room) return true;
    struct epoll_event *events = PyMem_Resize(self->events, struct epoll_event, 2 * room);
    if (events == NULL) return PyErr_NoMemory() != NULL;
    self->events = events;
    self->room = 2 * room;
    return true;
}

/* receiver() */
static PyObject *receiver_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Receiver *self = (Receiver *)callable;
    long long until_ns = monotonic_ns() + 1000LL * self->turn_us;
    PyObject *active_at = PyObject_CallNoArgs(self->time);
    if (active_at == NULL) return NULL;
    bool is_served = true;
    do {
        if (!(is_served = make_room(self))) break;
        int found = epoll_wait(self->epoll_fd, self->events, self->room, 0);
        if (found <= 0) break;
        for (int i = 0; is_served && i < found; i++) is_served = serve(self, &self->events[i], active_at);
        if (is_served) is_served = send_answers(self);
        if (is_served && self->is_held) is_served = end_turn(self);
    } while (is_served && monotonic_ns() < until_ns);
    Py_DECREF(active_at);
    if (is_served && end_short_way(self)) Py_RETURN_NONE;
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    if (!send_answers(self) || !end_short_way(self)) PyErr_Clear();
    PyErr_Restore(type, error, traceback);
    return NULL;
}

/* Return a positive number of a class; -1 with an exception set. */
static int number_of(PyObject *classes, const char *class, const char *name)
{
    PyObject *found = PyDict_GetItemString(classes, class);
    PyObject *number = found ? PyObject_GetAttrString(found, name) : NULL;
    long value = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    if (value > 0 && value <= INT_MAX) return (int)value;
    PyErr_Format(PyExc_TypeError, "%s.%s is no positive int", class, name);
    return -1;
}

static PyObject *receiver_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    int epoll_fd;
    PyObject *transports, *listener, *faults, *now_us, *time, *classes;
    if (!PyArg_ParseTuple(args, "iO!OOOOO!", &epoll_fd, &PyList_Type, &transports, &listener, &faults, &now_us, &time,
                          &PyDict_Type, &classes) ||
        !find_slots(slots, RECEIVER_SLOTS, classes))
        return NULL;
    Receiver *self = (Receiver *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->call = receiver_call;
    self->epoll_fd = epoll_fd;
    self->transports = Py_NewRef(transports);
    self->listener = Py_NewRef(listener);
    self->faults = Py_NewRef(faults);
    self->now_us = Py_NewRef(now_us);
    self->time = Py_NewRef(time);
    self->connection_type = (PyTypeObject *)Py_NewRef(PyDict_GetItemString(classes, "TcpConnection"));
    self->read_bytes = number_of(classes, "EpollTransport", "READ_BYTES");
    self->turn_us = self->read_bytes < 0 ? -1 : number_of(classes, "PureReceiver", "TURN_US");
    if (self->turn_us < 0 || (self->buffer = PyMem_Malloc(self->read_bytes)) == NULL) {
        Py_DECREF(self);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static int receiver_traverse(Receiver *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->transports);
    Py_VISIT(self->listener);
    Py_VISIT(self->faults);
    Py_VISIT(self->now_us);
    Py_VISIT(self->time);
    Py_VISIT(self->connection_type);
    Py_VISIT(self->short_way);
    return 0;
}

static int receiver_clear(Receiver *self)
{
    Py_CLEAR(self->transports);
    Py_CLEAR(self->listener);
    Py_CLEAR(self->faults);
    Py_CLEAR(self->now_us);
    Py_CLEAR(self->time);
    Py_CLEAR(self->connection_type);
    Py_CLEAR(self->short_way);
    return 0;
}

static void receiver_dealloc(Receiver *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    receiver_clear(self);
    PyMem_Free(self->events);
    PyMem_Free(self->buffer);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef receiver_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Receiver, call), READONLY, NULL},
    {NULL},
};

static PyType_Slot receiver_slots[] = {
    {Py_tp_doc, "Receiver(…): a callable that serves the sockets that are ready"},
    {Py_tp_new, receiver_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, receiver_traverse},
    {Py_tp_clear, receiver_clear},
    {Py_tp_dealloc, receiver_dealloc},
    {Py_tp_members, receiver_members},
    {0, NULL},
};

static PyType_Spec receiver_spec = {"mockraft_speed._repeats.Receiver", sizeof(Receiver), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                                    receiver_slots};

static bool prepare_names(void)
{
    return (is_performing_name = PyUnicode_InternFromString("_is_performing")) &&
           (depends_name = PyUnicode_InternFromString("depends_on_requests")) &&
           (node_name = PyUnicode_InternFromString("node")) &&
           (repeats_name = PyUnicode_InternFromString("repeats")) &&
           (answer_name = PyUnicode_InternFromString("answer")) &&
           (step_name = PyUnicode_InternFromString("step_in_turn")) &&
           (end_turn_name = PyUnicode_InternFromString("end_turn")) &&
           (check_unread_name = PyUnicode_InternFromString("check_unread")) &&
           (ready_name = PyUnicode_InternFromString("ready")) &&
           (write_name = PyUnicode_InternFromString("write")) &&
           (received_end_name = PyUnicode_InternFromString("received_end")) &&
           (broke_name = PyUnicode_InternFromString("broke")) &&
           (crash_name = PyUnicode_InternFromString("crash"));
}

bool prepare_receiver(PyObject *module)
{
    PyTypeObject *receiver_type = add_type(module, "Receiver", &receiver_spec);
    Py_XDECREF(receiver_type);
    return receiver_type != NULL && prepare_names();
}

#else

bool prepare_receiver(PyObject *module) { return true; }

#endif
