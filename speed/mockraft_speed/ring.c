/* `Ring` is `mockraft.server.journal.ring.PureRing`, which also makes exchanges of records; and what writes records. */

#include "repeats.h"

PyTypeObject *record_type, *ring_type;

static PyObject *enabled_name, *listeners_name, *last_id_name, *counts_name, *add_exchange_name;

static void record_dealloc(Record *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->repeat);
    Py_XDECREF(self->number);
    Py_XDECREF(self->connection_id);
    Py_XDECREF(self->principal);
    Py_XDECREF(self->broker_id);
    Py_XDECREF(self->peer_address);
    Py_XDECREF(self->exchange);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *record_made_by(Record *self, PyObject *make)
{
    return PyObject_CallFunction(make, "Oy#LOOOOLLO", self->repeat, self->correlation_id, (Py_ssize_t)4, self->offset,
                                 self->connection_id, self->principal, self->broker_id, self->peer_address,
                                 self->received_us, self->took_us, self->number);
}

/* Return the exchange, always the same one; a new reference. */
static PyObject *record_exchange(Record *self, PyObject *make)
{
    if (self->exchange == NULL) {
        PyObject *made = record_made_by(self, make);
        if (made == NULL) return NULL;
        if (self->exchange == NULL)
            self->exchange = made;
        else
            Py_DECREF(made); /* making it runs Python code: another thread was first */
    }
    return Py_NewRef(self->exchange);
}

static PyObject *ring_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Py_ssize_t entries_max, bytes_max;
    if (!PyArg_ParseTuple(args, "nn", &entries_max, &bytes_max)) return NULL;
    Ring *self = (Ring *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->entries_max = entries_max;
    self->bytes_max = bytes_max;
    return (PyObject *)self;
}

static int ring_traverse(Ring *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->make);
    for (Py_ssize_t i = 0; i < self->count; i++) Py_VISIT(self->entries[(self->first + i) % self->room]);
    return 0;
}

static void ring_drop_oldest(Ring *self)
{
    PyObject *oldest = self->entries[self->first];
    self->bytes_held -= self->sizes[self->first];
    self->first = self->first + 1 == self->room ? 0 : self->first + 1;
    self->count--;
    Py_DECREF(oldest);
}

static void ring_empty(Ring *self)
{
    while (self->count) ring_drop_oldest(self);
}

static int ring_clear(Ring *self)
{
    ring_empty(self);
    Py_CLEAR(self->make);
    return 0;
}

static void ring_dealloc(Ring *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    ring_clear(self);
    PyMem_Free(self->entries);
    PyMem_Free(self->sizes);
    type->tp_free(self);
    Py_DECREF(type);
}

static bool ring_grow(Ring *self)
{
    Py_ssize_t room = self->room ? 2 * self->room : 64;
    PyObject **entries = PyMem_New(PyObject *, room);
    Py_ssize_t *sizes = PyMem_New(Py_ssize_t, room);
    if (entries == NULL || sizes == NULL) {
        PyMem_Free(entries);
        PyMem_Free(sizes);
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < self->count; i++) {
        Py_ssize_t at = (self->first + i) % self->room;
        entries[i] = self->entries[at];
        sizes[i] = self->sizes[at];
    }
    PyMem_Free(self->entries);
    PyMem_Free(self->sizes);
    self->entries = entries;
    self->sizes = sizes;
    self->room = room;
    self->first = 0;
    return true;
}

bool ring_add(Ring *self, PyObject *entry, Py_ssize_t size)
{
    if (self->count == self->room && !ring_grow(self)) return false;
    Py_ssize_t at = self->first + self->count;
    if (at >= self->room) at -= self->room;
    self->entries[at] = Py_NewRef(entry);
    self->sizes[at] = size;
    self->count++;
    self->bytes_held += size;
    while (self->count > self->entries_max || (self->bytes_held > self->bytes_max && self->count > 1)) {
        if (self->count == 0) break;
        ring_drop_oldest(self);
        self->dropped++;
    }
    return true;
}

bool journal_begin(JournalWriter *self)
{
    int is_heard = is_true(self->journal, listeners_name), is_kept = is_true(self->journal, enabled_name);
    self->is_heard = is_heard;
    self->is_kept = is_kept;
    Py_XSETREF(self->counts, PyObject_GetAttr(self->journal, counts_name));
    return is_heard >= 0 && is_kept >= 0 && self->counts != NULL;
}

static bool journal_count(JournalWriter *self)
{
    PyObject *before = PyDict_GetItemWithError(self->counts, self->api_key);
    if (PyErr_Occurred()) return false;
    PyObject *count = PyLong_FromLongLong((before ? PyLong_AsLongLong(before) : 0) + self->uncounted);
    bool is_counted = count != NULL && PyDict_SetItem(self->counts, self->api_key, count) == 0;
    Py_XDECREF(count);
    Py_CLEAR(self->api_key);
    self->uncounted = 0;
    return is_counted;
}

bool journal_end(JournalWriter *self)
{
    if (self->uncounted == 0) return true;
    bool is_written = PyObject_SetAttr(self->journal, last_id_name, self->last_id) == 0;
    Py_CLEAR(self->last_id);
    return journal_count(self) && is_written;
}

/* Write the record, or the whole exchange where listeners wait for it. */
bool journal_write(JournalWriter *self, Record *record, PyObject *api_key, Py_ssize_t size)
{
    if (self->is_heard) {
        record->number = PyLong_FromLong(0); /* add_exchange gives the number */
        PyObject *exchange = record->number ? record_made_by(record, ((Ring *)self->ring)->make) : NULL;
        PyObject *done = exchange ? PyObject_CallMethodOneArg(self->journal, add_exchange_name, exchange) : NULL;
        Py_XDECREF(exchange);
        Py_XDECREF(done);
        return done != NULL;
    }
    if (self->api_key != api_key) {
        if (self->uncounted && !journal_count(self)) return false;
        self->api_key = Py_NewRef(api_key);
    }
    if ((record->number = PyIter_Next(self->numbers)) == NULL) return false;
    Py_XSETREF(self->last_id, Py_NewRef(record->number));
    self->uncounted++;
    return !self->is_kept || ring_add((Ring *)self->ring, (PyObject *)record, size);
}

static PyObject *ring_append(Ring *self, PyObject *args)
{
    PyObject *entry;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "On", &entry, &size) || !ring_add(self, entry, size)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *ring_forget(Ring *self, PyObject *Py_UNUSED(ignored))
{
    ring_empty(self);
    self->dropped = 0;
    Py_RETURN_NONE;
}

static PyObject *ring_entries(Ring *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *found = PyTuple_New(self->count);
    while (found != NULL && PyTuple_GET_SIZE(found) != self->count) { /* a collection ran, and other threads */
        Py_DECREF(found);
        found = PyTuple_New(self->count);
    }
    if (found == NULL) return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(found); i++)
        PyTuple_SET_ITEM(found, i, Py_NewRef(self->entries[(self->first + i) % self->room]));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(found); i++) { /* runs Python code, which may change the ring */
        PyObject *entry = PyTuple_GET_ITEM(found, i);
        if (Py_TYPE(entry) != record_type) continue;
        PyObject *exchange = record_exchange((Record *)entry, self->make);
        if (exchange == NULL) {
            Py_DECREF(found);
            return NULL;
        }
        PyTuple_SET_ITEM(found, i, exchange);
        Py_DECREF(entry);
    }
    return found;
}

static Py_ssize_t ring_length(Ring *self) { return self->count; }

static PyMethodDef ring_methods[] = {
    {"append", (PyCFunction)ring_append, METH_VARARGS, "append(entry, size): add an entry; drop the oldest beyond the limits"},
    {"clear", (PyCFunction)ring_forget, METH_NOARGS, "Remove all entries."},
    {"entries", (PyCFunction)ring_entries, METH_NOARGS, "Return the entries, oldest first."},
    {NULL},
};

static PyMemberDef ring_members[] = {
    {"entries_max", T_PYSSIZET, offsetof(Ring, entries_max), 0, NULL},
    {"bytes_max", T_PYSSIZET, offsetof(Ring, bytes_max), 0, NULL},
    {"bytes_held", T_PYSSIZET, offsetof(Ring, bytes_held), READONLY, NULL},
    {"dropped", T_PYSSIZET, offsetof(Ring, dropped), READONLY, NULL},
    {"make", T_OBJECT, offsetof(Ring, make), 0, "makes an Exchange of a record"},
    {NULL},
};

static PyType_Slot record_slots[] = {{Py_tp_dealloc, record_dealloc}, {0, NULL}};

static PyType_Slot ring_slots[] = {
    {Py_tp_doc, "Ring(entries_max, bytes_max): the entries of a journal"},
    {Py_tp_new, ring_new},
    {Py_tp_traverse, ring_traverse},
    {Py_tp_clear, ring_clear},
    {Py_tp_dealloc, ring_dealloc},
    {Py_tp_methods, ring_methods},
    {Py_tp_members, ring_members},
    {Py_sq_length, ring_length},
    {0, NULL},
};

static PyType_Spec record_spec = {"mockraft_speed._repeats.Record", sizeof(Record), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, record_slots};
static PyType_Spec ring_spec = {"mockraft_speed._repeats.Ring", sizeof(Ring), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, ring_slots};

bool prepare_ring(PyObject *module)
{
    record_type = (PyTypeObject *)PyType_FromSpec(&record_spec);
    ring_type = add_type(module, "Ring", &ring_spec);
    return (enabled_name = PyUnicode_InternFromString("enabled")) &&
           (listeners_name = PyUnicode_InternFromString("_listeners")) &&
           (last_id_name = PyUnicode_InternFromString("_last_id")) &&
           (counts_name = PyUnicode_InternFromString("exchanges_by_api")) &&
           (add_exchange_name = PyUnicode_InternFromString("add_exchange")) && record_type != NULL && ring_type != NULL;
}
