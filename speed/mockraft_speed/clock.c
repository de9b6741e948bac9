/* `Microseconds` is a clock's `now_us`. */

#include "repeats.h"
#include <time.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    long long epoch_ns; /* at the zero of the monotonic clock */
} Microseconds;

static PyTypeObject *microseconds_type;

long long monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static PyObject *microseconds_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    return PyLong_FromLongLong((((Microseconds *)callable)->epoch_ns + monotonic_ns()) / 1000);
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

long long now_by(PyObject *now_us)
{
    if (Py_IS_TYPE(now_us, microseconds_type)) return (((Microseconds *)now_us)->epoch_ns + monotonic_ns()) / 1000;
    PyObject *now = PyObject_CallNoArgs(now_us);
    long long us = now ? PyLong_AsLongLong(now) : -1;
    Py_XDECREF(now);
    return us;
}

static PyMemberDef microseconds_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Microseconds, call), READONLY, NULL},
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

static PyType_Spec microseconds_spec = {"mockraft_speed._repeats.Microseconds", sizeof(Microseconds), 0,
                                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, microseconds_slots};

bool prepare_clock(PyObject *module)
{
    microseconds_type = add_type(module, "Microseconds", &microseconds_spec);
    return microseconds_type != NULL;
}
