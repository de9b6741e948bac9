/* `ShortWay` is `Repeats.answer` of `mockraft.server.repeats`, step by step, with the attributes read from their slots.
   Requests are remembered, and the state that a response depends on is returned, by the Python code alone. */

#include "repeats.h"

enum { API_KEY = 5, CORRELATION_ID = 8, AFTER_CORRELATION_ID = 12, CLIENT_ID_SIZE = 13, BEFORE_OFFSET = 27, OFFSET_BYTES = 8 };

PyTypeObject *short_way_type;

/* What ShortWay reads of Python objects. */
enum {
    REMEMBERED_RULE, REMEMBERED_REPEATS,
    REPEAT_HEAD, REPEAT_TAIL, REPEAT_RESPONSE_HEAD, REPEAT_RESPONSE_TAIL, REPEAT_HEADER, REPEAT_SENDER, REPEAT_API,
    CONNECTION_WAITING, CONNECTION_PARKED, CONNECTION_AUTHENTICATION, CONNECTION_READER, CONNECTION_BROKER_ID,
    CONNECTION_CLIENT_ID, CONNECTION_ID, CONNECTION_PRINCIPAL, CONNECTION_PEER_ADDRESS,
    READER_PARTIAL, READER_FAILURE, SHORT_WAY_SLOTS
};

static Slot slots[] = {
    {"Remembered", "rule"}, {"Remembered", "repeats"},
    {"Repeat", "head"}, {"Repeat", "tail"}, {"Repeat", "response_head"}, {"Repeat", "response_tail"},
    {"Repeat", "header"}, {"Repeat", "sender"}, {"Repeat", "api"},
    {"Connection", "waiting"}, {"Connection", "parked"}, {"Connection", "authentication"}, {"Connection", "reader"},
    {"Connection", "broker_id"}, {"Connection", "client_id"}, {"Connection", "connection_id"},
    {"Connection", "principal"}, {"Connection", "peer_address"},
    {"FrameReader", "_partial"}, {"FrameReader", "failure"},
};

static inline PyObject **slot(PyObject *object, int number) { return slot_of(object, &slots[number]); }

static inline PyObject *get(PyObject *object, int number) { return *slot(object, number); }

static inline bool bytes_are(PyObject *bytes, const char *other, Py_ssize_t size)
{
    return PyBytes_GET_SIZE(bytes) == size && memcmp(PyBytes_AS_STRING(bytes), other, size) == 0;
}

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *connections, *apis, *remembered, *stubs, *responses;
    JournalWriter journal;
    Rules rules;
    /* During a turn: */
    bool is_armed;    /* the stubs */
    PyObject *now_us; /* of the responses */
} ShortWay;

static PyObject *is_armed_name, *now_us_name;
static Py_ssize_t entry_overhead;

/* Set how long the answer took; false with an exception set. */
static bool measure(ShortWay *self, Record *record)
{
    if (self->now_us == Py_None) return true;
    long long now_us = now_by(self->now_us);
    record->took_us = now_us - record->received_us;
    return now_us != -1 || !PyErr_Occurred();
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
    if (holds == 0) holds = self->is_armed;
    if (holds) return holds < 0 ? -1 : 0;
    PyObject *api = PyDict_GetItemWithError(self->apis, PyTuple_GET_ITEM(get(repeat, REPEAT_HEADER), 0));
    return PyErr_Occurred() ? -1 : api == get(repeat, REPEAT_API);
}

static Response response_to(PyObject *repeat, const char *data)
{
    Response response = {.tail = Py_NewRef(get(repeat, REPEAT_RESPONSE_TAIL))};
    memcpy(response.head, PyBytes_AS_STRING(get(repeat, REPEAT_RESPONSE_HEAD)), 4);
    memcpy(response.head + 4, data + CORRELATION_ID, 4);
    return response;
}

/* Return the response to a request that repeats; none without an exception for the long way. */
static Response answer(ShortWay *self, PyObject *connection, PyObject *rule, PyObject *repeat, const char *data,
                       Py_ssize_t size, long long offset, long long now_us)
{
    int may = may_answer(self, connection, repeat);
    if (may > 0) may = rules_proceed(&self->rules, &self->journal, rule, repeat, (uint8_t)data[API_KEY], offset, now_us);
    if (may <= 0) return (Response){NULL};
    long broker_id = PyLong_AsLong(get(connection, CONNECTION_BROKER_ID));
    if (broker_id == -1 && PyErr_Occurred()) return (Response){NULL};
    if (broker_id < 0) {
        PyObject *sender = get(repeat, REPEAT_SENDER);
        Py_SETREF(*slot(connection, CONNECTION_CLIENT_ID), Py_NewRef(PyTuple_GET_ITEM(sender, 0)));
        Py_SETREF(*slot(connection, CONNECTION_BROKER_ID), Py_NewRef(PyTuple_GET_ITEM(sender, 1)));
    }
    Response response = response_to(repeat, data);
    Record *record = record_new(repeat, connection, data, offset, now_us);
    bool is_written = record != NULL && measure(self, record) &&
                      journal_write(&self->journal, record, PyTuple_GET_ITEM(get(repeat, REPEAT_HEADER), 0),
                                    size - 4 + RESPONSE_HEAD + PyBytes_GET_SIZE(response.tail) + entry_overhead);
    Py_XDECREF(record);
    if (!is_written) Py_CLEAR(response.tail);
    return response;
}

bool short_way_begin(PyObject *short_way)
{
    ShortWay *self = (ShortWay *)short_way;
    int is_armed = is_true(self->stubs, is_armed_name);
    if (is_armed < 0) return false;
    self->is_armed = is_armed;
    self->rules.turn++;
    Py_XSETREF(self->now_us, PyObject_GetAttr(self->responses, now_us_name));
    return self->now_us != NULL && journal_begin(&self->journal);
}

bool short_way_lasts(PyObject *short_way) { return !((ShortWay *)short_way)->journal.is_heard; }

bool short_way_end(PyObject *short_way) { return journal_end(&((ShortWay *)short_way)->journal); }

Response short_way_answer(PyObject *short_way, PyObject *connection_id, const char *bytes, Py_ssize_t size,
                          long long now_us)
{
    ShortWay *self = (ShortWay *)short_way;
    const Response none = {NULL};
    if (size <= CLIENT_ID_SIZE) return none;
    PyObject *key = PyBytes_FromStringAndSize(bytes + API_KEY, 1);
    PyObject *remembered = key ? PyDict_GetItemWithError(self->remembered, key) : NULL;
    Py_XDECREF(key);
    if (remembered == NULL) return none;
    PyObject *rule = get(remembered, REMEMBERED_RULE);
    long long offset = 0;
    Py_ssize_t end = size;
    const char *tail = bytes + size;
    if (PyTuple_GET_ITEM(rule, RULE_IGNORES_OFFSET) == Py_True) {
        end = BEFORE_OFFSET + (uint8_t)bytes[CLIENT_ID_SIZE];
        if (size < end + OFFSET_BYTES) return none;
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
        return none;
    PyObject *connection = PyDict_GetItemWithError(self->connections, connection_id);
    if (connection == NULL) return none;
    Py_INCREF(rule); /* the state is compared by Python code, which may forget the request, or end the connection */
    Py_INCREF(repeat);
    Py_INCREF(connection);
    Response response = answer(self, connection, rule, repeat, bytes, size, offset, now_us);
    Py_DECREF(rule);
    Py_DECREF(repeat);
    Py_DECREF(connection);
    return response;
}

PyObject *response_from(const Response *response, Py_ssize_t begin)
{
    Py_ssize_t in_head = begin < RESPONSE_HEAD ? begin : RESPONSE_HEAD, in_tail = begin - in_head;
    Py_ssize_t head_size = RESPONSE_HEAD - in_head, tail_size = PyBytes_GET_SIZE(response->tail) - in_tail;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, head_size + tail_size);
    if (bytes == NULL) return NULL;
    memcpy(PyBytes_AS_STRING(bytes), response->head + in_head, head_size);
    memcpy(PyBytes_AS_STRING(bytes) + head_size, PyBytes_AS_STRING(response->tail) + in_tail, tail_size);
    return bytes;
}

/* short_way(connection_id, data, now_us) -> bytes | None */
static PyObject *short_way_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    if (names != NULL || PyVectorcall_NARGS(nargsf) != 3 || !PyBytes_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "want (connection_id, data, now_us)");
        return NULL;
    }
    long long now_us = PyLong_AsLongLong(args[2]);
    if (now_us == -1 && PyErr_Occurred()) return NULL;
    PyObject *data = args[1];
    Response response = {NULL};
    if (short_way_begin(callable))
        response = short_way_answer(callable, args[0], PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), now_us);
    if (PyErr_Occurred() || !short_way_end(callable)) Py_CLEAR(response.tail);
    if (response.tail == NULL) return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    PyObject *whole = response_from(&response, 0);
    Py_DECREF(response.tail);
    return whole;
}

static PyObject *short_way_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *controller, *connections, *apis, *remembered, *stubs, *responses, *journal, *ring, *numbers, *classes;
    if (!PyArg_ParseTuple(args, "OO!O!O!OOOO!OnO!", &controller, &PyDict_Type, &connections, &PyDict_Type, &apis,
                          &PyDict_Type, &remembered, &stubs, &responses, &journal, ring_type, &ring, &numbers,
                          &entry_overhead, &PyDict_Type, &classes) ||
        !find_slots(slots, SHORT_WAY_SLOTS, classes) || !rules_find_slots(classes))
        return NULL;
    if (!PyIter_Check(numbers)) {
        PyErr_SetString(PyExc_TypeError, "numbers is no iterator");
        return NULL;
    }
    ShortWay *self = (ShortWay *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->call = short_way_call;
    self->rules.controller = Py_NewRef(controller);
    self->connections = Py_NewRef(connections);
    self->apis = Py_NewRef(apis);
    self->remembered = Py_NewRef(remembered);
    self->stubs = Py_NewRef(stubs);
    self->responses = Py_NewRef(responses);
    self->journal = (JournalWriter){Py_NewRef(journal), Py_NewRef(ring), Py_NewRef(numbers)};
    return (PyObject *)self;
}

static int short_way_traverse(ShortWay *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->rules.controller);
    Py_VISIT(self->connections);
    Py_VISIT(self->apis);
    Py_VISIT(self->remembered);
    Py_VISIT(self->stubs);
    Py_VISIT(self->responses);
    Py_VISIT(self->now_us);
    for (int i = 0; i < APIS; i++) Py_VISIT(self->rules.unchanged[i].value);
    for (int i = 0; i < APIS; i++) Py_VISIT(self->rules.unchanged[i].contacts);
    Py_VISIT(self->journal.journal);
    Py_VISIT(self->journal.ring);
    Py_VISIT(self->journal.numbers);
    Py_VISIT(self->journal.counts);
    return 0;
}

static int short_way_clear(ShortWay *self)
{
    Py_CLEAR(self->rules.controller);
    Py_CLEAR(self->connections);
    Py_CLEAR(self->apis);
    Py_CLEAR(self->remembered);
    Py_CLEAR(self->stubs);
    Py_CLEAR(self->responses);
    Py_CLEAR(self->now_us);
    for (int i = 0; i < APIS; i++) Py_CLEAR(self->rules.unchanged[i].value);
    for (int i = 0; i < APIS; i++) Py_CLEAR(self->rules.unchanged[i].contacts);
    Py_CLEAR(self->journal.journal);
    Py_CLEAR(self->journal.ring);
    Py_CLEAR(self->journal.numbers);
    Py_CLEAR(self->journal.counts);
    Py_CLEAR(self->journal.api_key);
    Py_CLEAR(self->journal.last_id);
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

bool prepare_short_way(PyObject *module)
{
    short_way_type = add_type(module, "ShortWay", &short_way_spec);
    return short_way_type != NULL && (is_armed_name = PyUnicode_InternFromString("is_armed")) &&
           (now_us_name = PyUnicode_InternFromString("now_us"));
}
