/* The module `mockraft_speed._codec`: callables that take the place of a generated class's read, read_from and write.

   A `Codec` makes and keeps the plans of a class, by version. A `Path` is one of the three callables; it tries the plan
   and otherwise calls the pure function, its `__wrapped__`, with the same arguments. The GIL is held throughout: every
   step creates or reads Python objects, and a message of a megabyte takes about 10 ms. */

#include "plan.h"
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    PyObject *build; /* version -> row of the plan */
    long min_version, max_version;
    Plan **plans;
} Codec;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Codec *codec;
    PyObject *pure;
} Path;

static PyObject *codec_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *build;
    long min_version, max_version;
    static char *names[] = {"build", "min_version", "max_version", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oll", names, &build, &min_version, &max_version)) return NULL;
    if (min_version < 0 || max_version > INT16_MAX || min_version > max_version) {
        PyErr_Format(PyExc_ValueError, "no versions: %ld to %ld", min_version, max_version);
        return NULL;
    }
    Codec *self = (Codec *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->build = Py_NewRef(build);
    self->min_version = min_version;
    self->max_version = max_version;
    self->plans = PyMem_Calloc(max_version - min_version + 1, sizeof(Plan *));
    if (self->plans != NULL) return (PyObject *)self;
    Py_DECREF(self);
    return PyErr_NoMemory();
}

static int codec_traverse(Codec *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->build);
    int stop = 0;
    for (long i = 0; self->plans != NULL && i <= self->max_version - self->min_version && !stop; i++)
        stop = plan_traverse(self->plans[i], visit, arg);
    return stop;
}

static int codec_clear(Codec *self)
{
    for (long i = 0; self->plans != NULL && i <= self->max_version - self->min_version; i++) {
        plan_free(self->plans[i]);
        self->plans[i] = NULL;
    }
    Py_CLEAR(self->build);
    return 0;
}

static void codec_dealloc(Codec *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    codec_clear(self);
    PyMem_Free(self->plans);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Return the plan of a version; NULL without an exception if there is no such version, with one if it cannot be made. */
static inline const Plan *plan_of(Codec *codec, PyObject *version)
{
    if (!PyLong_CheckExact(version)) return NULL;
    int overflow;
    long number = PyLong_AsLongAndOverflow(version, &overflow);
    if (overflow || number < codec->min_version || number > codec->max_version) return NULL;
    Plan **plan = &codec->plans[number - codec->min_version];
    if (*plan == NULL && codec->build != NULL) {
        PyObject *row = PyObject_CallOneArg(codec->build, version);
        if (row == NULL) return NULL;
        Plan *made = plan_from_row(row);
        Py_DECREF(row);
        if (*plan == NULL)
            *plan = made;
        else
            plan_free(made); /* building runs Python code: another thread was first */
    }
    return *plan;
}

static PyObject *fall_back(Path *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    return PyErr_Occurred() ? NULL : PyObject_Vectorcall(self->pure, args, nargsf, names);
}

/* read(data, version) -> message */
static PyObject *call_read(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Path *self = (Path *)callable;
    if (names == NULL && PyVectorcall_NARGS(nargsf) == 2 && PyBytes_CheckExact(args[0])) {
        const Plan *plan = plan_of(self->codec, args[1]);
        Py_ssize_t size = PyBytes_GET_SIZE(args[0]), end = 0;
        PyObject *message = plan ? read_message(plan, PyBytes_AS_STRING(args[0]), size, &end) : NULL;
        if (message != NULL && end == size) return message;
        Py_XDECREF(message);
    }
    return fall_back(self, args, nargsf, names);
}

/* read_from(data, version, offset, spend=None) -> (message, end); only the pure reader counts what it spends */
static PyObject *call_read_from(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Path *self = (Path *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (names == NULL && (count == 3 || (count == 4 && args[3] == Py_None)) && PyBytes_CheckExact(args[0]) &&
        PyLong_CheckExact(args[2])) {
        const Plan *plan = plan_of(self->codec, args[1]);
        Py_ssize_t end = plan ? PyLong_AsSsize_t(args[2]) : -1;
        if (plan != NULL && end < 0) PyErr_Clear(); /* the pure reader knows negative offsets, and too large ones */
        PyObject *message =
            plan ? read_message(plan, PyBytes_AS_STRING(args[0]), PyBytes_GET_SIZE(args[0]), &end) : NULL;
        if (message != NULL) return Py_BuildValue("(Nn)", message, end);
    }
    return fall_back(self, args, nargsf, names);
}

/* message.write(version) -> bytes */
static PyObject *call_write(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Path *self = (Path *)callable;
    if (names == NULL && PyVectorcall_NARGS(nargsf) == 2) {
        const Plan *plan = plan_of(self->codec, args[1]);
        PyObject *bytes = plan ? write_message(plan, args[0]) : NULL;
        if (bytes != NULL) return bytes;
    }
    return fall_back(self, args, nargsf, names);
}

static PyObject *path_get(PyObject *self, PyObject *object, PyObject *type)
{
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

/* What only the pure function has is its: the name, the description, the signature. */
static PyObject *path_getattr(PyObject *self, PyObject *name)
{
    if (PyUnicode_CompareWithASCIIString(name, "__module__") != 0 &&
        PyUnicode_CompareWithASCIIString(name, "__doc__") != 0) {
        PyObject *found = PyObject_GenericGetAttr(self, name);
        if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
        PyErr_Clear();
    }
    return PyObject_GetAttr(((Path *)self)->pure, name);
}

/* Pickled and copied by its name, as a function is. */
static PyObject *path_reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyObject_GetAttrString(((Path *)self)->pure, "__qualname__");
}

static PyMethodDef path_methods[] = {
    {"__reduce__", path_reduce, METH_NOARGS, NULL},
    {NULL},
};

static int path_traverse(Path *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->codec);
    Py_VISIT(self->pure);
    return 0;
}

static int path_clear(Path *self)
{
    Py_CLEAR(self->codec);
    Py_CLEAR(self->pure);
    return 0;
}

static void path_dealloc(Path *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    path_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef path_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Path, pure), READONLY, "the pure function"},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Path, call), READONLY, NULL},
    {NULL},
};

static PyType_Slot codec_slots[] = {
    {Py_tp_doc, "Codec(build, min_version, max_version): the plans of a class"},
    {Py_tp_new, codec_new},
    {Py_tp_traverse, codec_traverse},
    {Py_tp_clear, codec_clear},
    {Py_tp_dealloc, codec_dealloc},
    {0, NULL},
};

static PyType_Slot function_slots[] = {
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getattro, path_getattr},
    {Py_tp_members, path_members},
    {Py_tp_methods, path_methods},
    {Py_tp_traverse, path_traverse},
    {Py_tp_clear, path_clear},
    {Py_tp_dealloc, path_dealloc},
    {0, NULL},
};

static PyType_Slot method_slots[] = {
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getattro, path_getattr},
    {Py_tp_descr_get, path_get},
    {Py_tp_members, path_members},
    {Py_tp_methods, path_methods},
    {Py_tp_traverse, path_traverse},
    {Py_tp_clear, path_clear},
    {Py_tp_dealloc, path_dealloc},
    {0, NULL},
};

#define PATH_FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL)
#define NOT_MADE_IN_PYTHON Py_TPFLAGS_DISALLOW_INSTANTIATION

static PyType_Spec codec_spec = {"mockraft_speed._codec.Codec", sizeof(Codec), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, codec_slots};
static PyType_Spec function_spec = {"mockraft_speed._codec.ReadFunction", sizeof(Path), 0,
                                    PATH_FLAGS | NOT_MADE_IN_PYTHON, function_slots};
static PyType_Spec method_spec = {"mockraft_speed._codec.WriteMethod", sizeof(Path), 0,
                                  PATH_FLAGS | NOT_MADE_IN_PYTHON | Py_TPFLAGS_METHOD_DESCRIPTOR, method_slots};

static PyTypeObject *codec_type, *function_type, *method_type;

static PyObject *path_new(PyTypeObject *type, vectorcallfunc call, PyObject *codec, PyObject *pure)
{
    Path *self = (Path *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->call = call;
    self->codec = (Codec *)Py_NewRef(codec);
    self->pure = Py_NewRef(pure);
    return (PyObject *)self;
}

static PyObject *paths(PyObject *module, PyObject *args)
{
    PyObject *codec, *read, *read_from, *write;
    if (!PyArg_ParseTuple(args, "O!OOO", codec_type, &codec, &read, &read_from, &write)) return NULL;
    return Py_BuildValue("(NNN)", path_new(function_type, call_read, codec, read),
                         path_new(function_type, call_read_from, codec, read_from),
                         path_new(method_type, call_write, codec, write));
}

static PyMethodDef functions[] = {
    {"paths", paths, METH_VARARGS,
     "paths(codec, read, read_from, write): callables that take the place of these pure functions"},
    {NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "mockraft_speed._codec", NULL, -1, functions};

PyMODINIT_FUNC PyInit__codec(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    codec_type = (PyTypeObject *)PyType_FromSpec(&codec_spec);
    function_type = (PyTypeObject *)PyType_FromSpec(&function_spec);
    method_type = (PyTypeObject *)PyType_FromSpec(&method_spec);
    if (!prepare_reading() || codec_type == NULL || function_type == NULL || method_type == NULL ||
        PyModule_AddObjectRef(module, "Codec", (PyObject *)codec_type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
