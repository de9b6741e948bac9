/* `Receiver` is `TcpConnection.data_received` of `mockraft.server.tcp_connections`, and `Microseconds` a clock's `now_us`.

   What does not go the short way is left to the listener's `step`. */

#include "repeats.h"
#include <time.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    long long epoch_ns; /* at the zero of the monotonic clock */
} Microseconds;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *connection, *listener, *faults, *now_us, *time;
} Receiver;

enum { ACTIVE_AT, CONNECTION_ID, TRANSPORT, WRITING_PAUSED, RECEIVER_SLOTS };

static Slot slots[] = {
    {"TcpConnection", "active_at"},
    {"TcpConnection", "connection_id"},
    {"TcpConnection", "transport"},
    {"TcpConnection", "writing_paused"},
};

static PyObject *is_performing_name, *heeds_name, *node_name, *repeats_name, *answer_name, *write_name, *step_name;
static PyObject *check_unread_name;

static PyObject *microseconds_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long ns = now.tv_sec * 1000000000LL + now.tv_nsec;
    return PyLong_FromLongLong((((Microseconds *)callable)->epoch_ns + ns) / 1000);
}

static PyObject *microseconds_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    long long epoch_ns;
    if (!PyArg_ParseTuple(args, "L", &epoch_ns)) return NULL;
    Microseconds *self = (Microseconds *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->call = microseconds_call;
    self->epoch_ns = epoch_ns;
    return (PyObject *)self;
}

static void microseconds_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Return the response of the short way, None for the long one; NULL with an exception set. */
static PyObject *answered(Receiver *self, PyObject *data, PyObject *now_us)
{
    int is_busy = is_true(self->listener, is_performing_name);
    if (is_busy == 0) is_busy = is_true(self->faults, heeds_name);
    if (is_busy) return is_busy < 0 ? NULL : Py_NewRef(Py_None);
    PyObject *node = PyObject_GetAttr(self->listener, node_name);
    PyObject *repeats = node ? PyObject_GetAttr(node, repeats_name) : NULL;
    PyObject *answer = repeats ? PyObject_GetAttr(repeats, answer_name) : NULL;
    PyObject *arguments[] = {*slot_of(self->connection, &slots[CONNECTION_ID]), data, now_us};
    PyObject *response = answer ? PyObject_Vectorcall(answer, arguments, 3, NULL) : NULL;
    Py_XDECREF(node);
    Py_XDECREF(repeats);
    Py_XDECREF(answer);
    return response;
}

/* Write a response; steals its reference. */
static PyObject *sent(PyObject *connection, PyObject *response)
{
    PyObject *transport = Py_XNewRef(*slot_of(connection, &slots[TRANSPORT])), *done = NULL;
    if (transport != NULL)
        done = PyObject_CallMethodOneArg(transport, write_name, response);
    else
        PyErr_SetString(PyExc_AttributeError, "transport");
    Py_XDECREF(transport);
    Py_DECREF(response);
    if (done == NULL || *slot_of(connection, &slots[WRITING_PAUSED]) != Py_True) return done;
    Py_DECREF(done);
    return PyObject_CallMethodNoArgs(connection, check_unread_name);
}

/* data_received(data) */
static PyObject *receiver_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Receiver *self = (Receiver *)callable;
    if (names != NULL || PyVectorcall_NARGS(nargsf) != 1) {
        PyErr_SetString(PyExc_TypeError, "want (data)");
        return NULL;
    }
    PyObject *active_at = PyObject_CallNoArgs(self->time);
    if (active_at == NULL) return NULL;
    Py_XSETREF(*slot_of(self->connection, &slots[ACTIVE_AT]), active_at);
    PyObject *now_us = PyObject_CallNoArgs(self->now_us);
    PyObject *response = now_us ? answered(self, args[0], now_us) : NULL, *done = NULL;
    if (response == Py_None) {
        Py_DECREF(response);
        done = PyObject_CallMethodObjArgs(self->listener, step_name, self->connection, args[0], now_us, NULL);
    } else if (response != NULL) {
        done = sent(self->connection, response);
    }
    Py_XDECREF(now_us);
    return done;
}

static PyObject *receiver_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *connection, *listener, *faults, *now_us, *time, *classes;
    if (!PyArg_ParseTuple(args, "OOOOOO!", &connection, &listener, &faults, &now_us, &time, &PyDict_Type, &classes) ||
        !find_slots(slots, RECEIVER_SLOTS, classes))
        return NULL;
    Receiver *self = (Receiver *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->call = receiver_call;
    self->connection = Py_NewRef(connection);
    self->listener = Py_NewRef(listener);
    self->faults = Py_NewRef(faults);
    self->now_us = Py_NewRef(now_us);
    self->time = Py_NewRef(time);
    return (PyObject *)self;
}

static int receiver_traverse(Receiver *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->connection);
    Py_VISIT(self->listener);
    Py_VISIT(self->faults);
    Py_VISIT(self->now_us);
    Py_VISIT(self->time);
    return 0;
}

static int receiver_clear(Receiver *self)
{
    Py_CLEAR(self->connection);
    Py_CLEAR(self->listener);
    Py_CLEAR(self->faults);
    Py_CLEAR(self->now_us);
    Py_CLEAR(self->time);
    return 0;
}

static void receiver_dealloc(Receiver *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    receiver_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef microseconds_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Microseconds, call), READONLY, NULL},
    {NULL},
};

static PyMemberDef receiver_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Receiver, call), READONLY, NULL},
    {NULL},
};

static PyType_Slot microseconds_slots[] = {
    {Py_tp_doc, "Microseconds(epoch_ns): a callable that returns the time"},
    {Py_tp_new, microseconds_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, microseconds_dealloc},
    {Py_tp_members, microseconds_members},
    {0, NULL},
};

static PyType_Slot receiver_slots[] = {
    {Py_tp_doc, "Receiver(…): a connection's `data_received`"},
    {Py_tp_new, receiver_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, receiver_traverse},
    {Py_tp_clear, receiver_clear},
    {Py_tp_dealloc, receiver_dealloc},
    {Py_tp_members, receiver_members},
    {0, NULL},
};

static PyType_Spec microseconds_spec = {"mockraft_speed._repeats.Microseconds", sizeof(Microseconds), 0,
                                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, microseconds_slots};
static PyType_Spec receiver_spec = {"mockraft_speed._repeats.Receiver", sizeof(Receiver), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                                    receiver_slots};

static bool add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    bool is_added = type != NULL && PyModule_AddObjectRef(module, name, type) == 0;
    Py_XDECREF(type);
    return is_added;
}

bool prepare_receiver(PyObject *module)
{
    return (is_performing_name = PyUnicode_InternFromString("_is_performing")) &&
           (heeds_name = PyUnicode_InternFromString("heeds_requests")) &&
           (node_name = PyUnicode_InternFromString("node")) &&
           (repeats_name = PyUnicode_InternFromString("repeats")) &&
           (answer_name = PyUnicode_InternFromString("answer")) &&
           (write_name = PyUnicode_InternFromString("write")) && (step_name = PyUnicode_InternFromString("step")) &&
           (check_unread_name = PyUnicode_InternFromString("check_unread")) &&
           add_type(module, "Microseconds", &microseconds_spec) && add_type(module, "Receiver", &receiver_spec);
}
