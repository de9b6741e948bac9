/* The module `mockraft_speed._repeats`: the short way of requests that repeat.

   `ShortWay` is `Repeats.answer` of `mockraft.server.repeats`, step by step, with the attributes read from their slots.
   Requests are remembered, and the state that a response depends on is returned, by the Python code alone. */

#include "repeats.h"

enum { CORRELATION_ID = 8, AFTER_CORRELATION_ID = 12, CLIENT_ID_SIZE = 13, BEFORE_OFFSET = 27, OFFSET_BYTES = 8 };
enum { RULE_STATE = 2, RULE_RECORD, RULE_IGNORES_OFFSET, RULE_ITEMS }; /* items of a RepeatRule */

static PyTypeObject *short_way_type;

/* What ShortWay reads of Python objects. */
enum {
    REMEMBERED_RULE, REMEMBERED_REPEATS,
    REPEAT_HEAD, REPEAT_TAIL, REPEAT_RESPONSE_HEAD, REPEAT_RESPONSE_TAIL, REPEAT_HEADER, REPEAT_SENDER, REPEAT_API,
    REPEAT_SUBJECT, REPEAT_STATE,
    CONNECTION_WAITING, CONNECTION_PARKED, CONNECTION_AUTHENTICATION, CONNECTION_READER, CONNECTION_BROKER_ID,
    CONNECTION_CLIENT_ID, CONNECTION_ID, CONNECTION_PRINCIPAL, CONNECTION_PEER_ADDRESS,
    READER_PARTIAL, READER_FAILURE, SHORT_WAY_SLOTS
};

static Slot slots[] = {
    {"Remembered", "rule"}, {"Remembered", "repeats"},
    {"Repeat", "head"}, {"Repeat", "tail"}, {"Repeat", "response_head"}, {"Repeat", "response_tail"},
    {"Repeat", "header"}, {"Repeat", "sender"}, {"Repeat", "api"}, {"Repeat", "subject"}, {"Repeat", "state"},
    {"Connection", "waiting"}, {"Connection", "parked"}, {"Connection", "authentication"}, {"Connection", "reader"},
    {"Connection", "broker_id"}, {"Connection", "client_id"}, {"Connection", "connection_id"},
    {"Connection", "principal"}, {"Connection", "peer_address"},
    {"FrameReader", "_partial"}, {"FrameReader", "failure"},
};

bool find_slots(Slot *slots, int count, PyObject *classes)
{
    for (int i = 0; i < count; i++) {
        PyObject *class = PyDict_GetItemString(classes, slots[i].class);
        PyObject *found = class == NULL ? NULL : PyObject_GetAttrString(class, slots[i].name);
        if (found == NULL || !Py_IS_TYPE(found, &PyMemberDescr_Type)) {
            Py_XDECREF(found);
            PyErr_Format(PyExc_TypeError, "%s.%s is no slot", slots[i].class, slots[i].name);
            return false;
        }
        slots[i].offset = ((PyMemberDescrObject *)found)->d_member->offset;
        Py_DECREF(found);
    }
    return true;
}

static inline PyObject **slot(PyObject *object, int number) { return slot_of(object, &slots[number]); }

static inline PyObject *get(PyObject *object, int number) { return *slot(object, number); }

static inline bool bytes_are(PyObject *bytes, const char *other, Py_ssize_t size)
{
    return PyBytes_GET_SIZE(bytes) == size && memcmp(PyBytes_AS_STRING(bytes), other, size) == 0;
}

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *controller, *connections, *apis, *remembered, *stubs, *responses, *journal, *ring;
    PyObject *numbers; /* of the journal */
} ShortWay;

static PyObject *is_armed_name, *enabled_name, *listeners_name, *last_id_name, *now_us_name, *counts_name;
static PyObject *add_exchange_name;
static Py_ssize_t entry_overhead;

int is_true(PyObject *object, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL) return -1;
    int found = PyObject_IsTrue(value);
    Py_DECREF(value);
    return found;
}

/* Write the record to the journal, or the whole exchange where listeners wait for it. */
static bool write_journal(ShortWay *self, Record *record, Py_ssize_t size)
{
    int is_heard = is_true(self->journal, listeners_name);
    if (is_heard < 0) return false;
    if (is_heard) {
        record->number = PyLong_FromLong(0); /* add_exchange gives the number */
        PyObject *exchange = record->number ? record_made_by(record, ((Ring *)self->ring)->make) : NULL;
        PyObject *done = exchange ? PyObject_CallMethodOneArg(self->journal, add_exchange_name, exchange) : NULL;
        Py_XDECREF(exchange);
        Py_XDECREF(done);
        return done != NULL;
    }
    PyObject *api_key = PyTuple_GET_ITEM(get(record->repeat, REPEAT_HEADER), 0);
    PyObject *counts = PyObject_GetAttr(self->journal, counts_name);
    if (counts == NULL) return false;
    PyObject *before = PyDict_GetItemWithError(counts, api_key);
    PyObject *count = PyErr_Occurred() ? NULL : PyLong_FromLongLong(before ? PyLong_AsLongLong(before) + 1 : 1);
    bool is_counted = count != NULL && PyDict_SetItem(counts, api_key, count) == 0;
    Py_XDECREF(count);
    Py_DECREF(counts);
    if (!is_counted || (record->number = PyIter_Next(self->numbers)) == NULL) return false;
    if (PyObject_SetAttr(self->journal, last_id_name, record->number) < 0) return false;
    int is_kept = is_true(self->journal, enabled_name);
    return is_kept > 0 ? ring_add((Ring *)self->ring, (PyObject *)record, size) : is_kept == 0;
}

/* Set how long the answer took; false with an exception set. */
static bool measure(ShortWay *self, Record *record)
{
    PyObject *now_us = PyObject_GetAttr(self->responses, now_us_name);
    PyObject *now = now_us && now_us != Py_None ? PyObject_CallNoArgs(now_us) : NULL;
    bool is_measured = now_us == Py_None;
    if (now != NULL) {
        record->took_us = PyLong_AsLongLong(now) - record->received_us;
        is_measured = !PyErr_Occurred();
    }
    Py_XDECREF(now_us);
    Py_XDECREF(now);
    return is_measured;
}

static Record *record_new(PyObject *repeat, PyObject *connection, const char *data, long long offset, long long now_us)
{
    Record *record = PyObject_New(Record, record_type);
    if (record == NULL) return NULL;
    record->repeat = Py_NewRef(repeat);
    record->number = record->exchange = NULL;
    record->connection_id = Py_NewRef(get(connection, CONNECTION_ID));
    record->principal = Py_NewRef(get(connection, CONNECTION_PRINCIPAL));
    record->broker_id = Py_NewRef(get(connection, CONNECTION_BROKER_ID));
    record->peer_address = Py_NewRef(get(connection, CONNECTION_PEER_ADDRESS));
    record->offset = offset;
    record->received_us = now_us;
    record->took_us = 0;
    memcpy(record->correlation_id, data + CORRELATION_ID, 4);
    return record;
}

/* Return whether the connection and the node let a request be answered at once; -1 with an exception set. */
static int may_answer(ShortWay *self, PyObject *connection, PyObject *repeat)
{
    PyObject *reader = get(connection, CONNECTION_READER);
    if (get(connection, CONNECTION_PARKED) != Py_None || get(connection, CONNECTION_AUTHENTICATION) != Py_None ||
        get(reader, READER_FAILURE) != Py_None)
        return 0;
    int holds = PyObject_IsTrue(get(connection, CONNECTION_WAITING));
    if (holds == 0) holds = PyObject_IsTrue(get(reader, READER_PARTIAL));
    if (holds == 0) holds = is_true(self->stubs, is_armed_name);
    if (holds) return holds < 0 ? -1 : 0;
    PyObject *api = PyDict_GetItemWithError(self->apis, PyTuple_GET_ITEM(get(repeat, REPEAT_HEADER), 0));
    return PyErr_Occurred() ? -1 : api == get(repeat, REPEAT_API);
}

/* Return whether the state is that of the remembered request, and have the rule record the request; -1 with an
   exception set. */
static int proceed(ShortWay *self, PyObject *rule, PyObject *repeat, long long offset, long long now_us)
{
    PyObject *subject = get(repeat, REPEAT_SUBJECT), *record = PyTuple_GET_ITEM(rule, RULE_RECORD);
    PyObject *number = PyLong_FromLongLong(offset);
    if (number == NULL) return -1;
    PyObject *arguments[] = {self->controller, subject, number, NULL};
    PyObject *state = PyObject_Vectorcall(PyTuple_GET_ITEM(rule, RULE_STATE), arguments, 3, NULL);
    int is_same = state == NULL ? -1 : PyObject_RichCompareBool(state, get(repeat, REPEAT_STATE), Py_EQ);
    Py_XDECREF(state);
    if (is_same > 0 && record != Py_None) {
        arguments[3] = PyLong_FromLongLong(now_us / 1000);
        PyObject *done = arguments[3] ? PyObject_Vectorcall(record, arguments, 4, NULL) : NULL;
        if (done == NULL) is_same = -1;
        Py_XDECREF(done);
        Py_XDECREF(arguments[3]);
    }
    Py_DECREF(number);
    return is_same;
}

static PyObject *response_to(PyObject *repeat, const char *data)
{
    PyObject *tail = get(repeat, REPEAT_RESPONSE_TAIL);
    PyObject *response = PyBytes_FromStringAndSize(NULL, 8 + PyBytes_GET_SIZE(tail));
    if (response == NULL) return NULL;
    char *bytes = PyBytes_AS_STRING(response);
    memcpy(bytes, PyBytes_AS_STRING(get(repeat, REPEAT_RESPONSE_HEAD)), 4);
    memcpy(bytes + 4, data + CORRELATION_ID, 4);
    memcpy(bytes + 8, PyBytes_AS_STRING(tail), PyBytes_GET_SIZE(tail));
    return response;
}

/* Return the response to a request that repeats; NULL without an exception for the long way. */
static PyObject *answer(ShortWay *self, PyObject *connection, PyObject *rule, PyObject *repeat, PyObject *data,
                        long long offset, long long now_us)
{
    int may = may_answer(self, connection, repeat);
    if (may > 0) may = proceed(self, rule, repeat, offset, now_us);
    if (may <= 0) return NULL;
    long broker_id = PyLong_AsLong(get(connection, CONNECTION_BROKER_ID));
    if (broker_id == -1 && PyErr_Occurred()) return NULL;
    if (broker_id < 0) {
        PyObject *sender = get(repeat, REPEAT_SENDER);
        Py_SETREF(*slot(connection, CONNECTION_CLIENT_ID), Py_NewRef(PyTuple_GET_ITEM(sender, 0)));
        Py_SETREF(*slot(connection, CONNECTION_BROKER_ID), Py_NewRef(PyTuple_GET_ITEM(sender, 1)));
    }
    PyObject *response = response_to(repeat, PyBytes_AS_STRING(data));
    Record *record = response ? record_new(repeat, connection, PyBytes_AS_STRING(data), offset, now_us) : NULL;
    bool is_written = record != NULL && measure(self, record) &&
                      write_journal(self, record, PyBytes_GET_SIZE(data) - 4 + PyBytes_GET_SIZE(response) + entry_overhead);
    Py_XDECREF(record);
    if (!is_written) Py_CLEAR(response);
    return response;
}

/* short_way(connection_id, data, now_us) -> bytes | None */
static PyObject *short_way_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    ShortWay *self = (ShortWay *)callable;
    if (names != NULL || PyVectorcall_NARGS(nargsf) != 3) {
        PyErr_SetString(PyExc_TypeError, "want (connection_id, data, now_us)");
        return NULL;
    }
    PyObject *data = args[1];
    Py_ssize_t size = PyBytes_CheckExact(data) ? PyBytes_GET_SIZE(data) : 0, end = size;
    if (size <= CLIENT_ID_SIZE) Py_RETURN_NONE;
    const char *bytes = PyBytes_AS_STRING(data);
    PyObject *key = PyBytes_FromStringAndSize(bytes + 5, 1);
    PyObject *remembered = key ? PyDict_GetItemWithError(self->remembered, key) : NULL;
    Py_XDECREF(key);
    if (remembered == NULL) goto long_way;
    PyObject *rule = get(remembered, REMEMBERED_RULE);
    long long offset = 0;
    const char *tail = bytes + size;
    if (PyTuple_GET_ITEM(rule, RULE_IGNORES_OFFSET) == Py_True) {
        end = BEFORE_OFFSET + (uint8_t)bytes[CLIENT_ID_SIZE];
        if (size < end + OFFSET_BYTES) Py_RETURN_NONE;
        uint64_t number;
        memcpy(&number, bytes + end, OFFSET_BYTES);
        offset = (long long)__builtin_bswap64(number);
        tail = bytes + end + OFFSET_BYTES;
    }
    key = PyBytes_FromStringAndSize(bytes + AFTER_CORRELATION_ID, end - AFTER_CORRELATION_ID);
    PyObject *repeat = key ? PyDict_GetItemWithError(get(remembered, REMEMBERED_REPEATS), key) : NULL;
    Py_XDECREF(key);
    if (repeat == NULL || !bytes_are(get(repeat, REPEAT_HEAD), bytes, 8) ||
        !bytes_are(get(repeat, REPEAT_TAIL), tail, bytes + size - tail))
        goto long_way;
    PyObject *connection = PyDict_GetItemWithError(self->connections, args[0]);
    if (connection == NULL) goto long_way;
    long long now_us = PyLong_AsLongLong(args[2]);
    if (now_us == -1 && PyErr_Occurred()) return NULL;
    Py_INCREF(rule); /* the state is compared by Python code, which may forget the request, or end the connection */
    Py_INCREF(repeat);
    Py_INCREF(connection);
    PyObject *response = answer(self, connection, rule, repeat, data, offset, now_us);
    Py_DECREF(rule);
    Py_DECREF(repeat);
    Py_DECREF(connection);
    if (response != NULL) return response;
long_way:
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static PyObject *short_way_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *controller, *connections, *apis, *remembered, *stubs, *responses, *journal, *ring, *numbers, *classes;
    if (!PyArg_ParseTuple(args, "OO!O!O!OOOO!OnO!", &controller, &PyDict_Type, &connections, &PyDict_Type, &apis,
                          &PyDict_Type, &remembered, &stubs, &responses, &journal, ring_type, &ring, &numbers,
                          &entry_overhead, &PyDict_Type, &classes) ||
        !find_slots(slots, SHORT_WAY_SLOTS, classes))
        return NULL;
    if (!PyIter_Check(numbers)) {
        PyErr_SetString(PyExc_TypeError, "numbers is no iterator");
        return NULL;
    }
    ShortWay *self = (ShortWay *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->call = short_way_call;
    self->controller = Py_NewRef(controller);
    self->connections = Py_NewRef(connections);
    self->apis = Py_NewRef(apis);
    self->remembered = Py_NewRef(remembered);
    self->stubs = Py_NewRef(stubs);
    self->responses = Py_NewRef(responses);
    self->journal = Py_NewRef(journal);
    self->ring = Py_NewRef(ring);
    self->numbers = Py_NewRef(numbers);
    return (PyObject *)self;
}

static int short_way_traverse(ShortWay *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->controller);
    Py_VISIT(self->connections);
    Py_VISIT(self->apis);
    Py_VISIT(self->remembered);
    Py_VISIT(self->stubs);
    Py_VISIT(self->responses);
    Py_VISIT(self->journal);
    Py_VISIT(self->ring);
    Py_VISIT(self->numbers);
    return 0;
}

static int short_way_clear(ShortWay *self)
{
    Py_CLEAR(self->controller);
    Py_CLEAR(self->connections);
    Py_CLEAR(self->apis);
    Py_CLEAR(self->remembered);
    Py_CLEAR(self->stubs);
    Py_CLEAR(self->responses);
    Py_CLEAR(self->journal);
    Py_CLEAR(self->ring);
    Py_CLEAR(self->numbers);
    return 0;
}

static void short_way_dealloc(ShortWay *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    short_way_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef short_way_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ShortWay, call), READONLY, NULL},
    {NULL},
};

static PyType_Slot short_way_slots[] = {
    {Py_tp_doc, "ShortWay(…): a callable that answers requests that repeat"},
    {Py_tp_new, short_way_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, short_way_traverse},
    {Py_tp_clear, short_way_clear},
    {Py_tp_dealloc, short_way_dealloc},
    {Py_tp_members, short_way_members},
    {0, NULL},
};

static PyType_Spec short_way_spec = {"mockraft_speed._repeats.ShortWay", sizeof(ShortWay), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                                     short_way_slots};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "mockraft_speed._repeats", NULL, -1, NULL};

static bool prepare_names(void)
{
    return (is_armed_name = PyUnicode_InternFromString("is_armed")) &&
           (enabled_name = PyUnicode_InternFromString("enabled")) &&
           (listeners_name = PyUnicode_InternFromString("_listeners")) &&
           (last_id_name = PyUnicode_InternFromString("_last_id")) &&
           (now_us_name = PyUnicode_InternFromString("now_us")) &&
           (counts_name = PyUnicode_InternFromString("exchanges_by_api")) &&
           (add_exchange_name = PyUnicode_InternFromString("add_exchange"));
}

PyMODINIT_FUNC PyInit__repeats(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    short_way_type = (PyTypeObject *)PyType_FromSpec(&short_way_spec);
    if (!prepare_names() || !prepare_ring() || !prepare_receiver(module) || short_way_type == NULL ||
        PyModule_AddObjectRef(module, "Ring", (PyObject *)ring_type) < 0 ||
        PyModule_AddObjectRef(module, "ShortWay", (PyObject *)short_way_type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
