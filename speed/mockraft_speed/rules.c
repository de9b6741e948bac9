/* Rules of requests that repeat: `Repeats._compare` of `mockraft.server.repeats`, and what need not be asked again. */

#include "repeats.h"

enum { REPEAT_SUBJECT, REPEAT_STATE, REPEAT_PROCEEDED, RULES_SLOTS };

static Slot slots[] = {{"Repeat", "subject"}, {"Repeat", "state"}, {"Repeat", "proceeded"}};

static inline PyObject **slot(PyObject *object, int number) { return slot_of(object, &slots[number]); }

static inline PyObject *get(PyObject *object, int number) { return *slot(object, number); }

/* When the state of a repeat was the remembered one, and it was recorded: for an offset, and what was unchanged. */
typedef struct {
    PyObject_HEAD
    bool is_valid;
    unsigned version;
    long long offset;
} Proceeded;

static PyTypeObject *proceeded_type;

/* Call a rule. Other threads may run in its Python code: the journal is then as it is outside of a turn. */
static PyObject *call(JournalWriter *journal, PyObject *function, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *found = journal_end(journal) ? PyObject_Vectorcall(function, arguments, count, NULL) : NULL;
    if (found != NULL && !journal_begin(journal)) Py_CLEAR(found);
    return found;
}

/* Find out whether the rule's states are unchanged since the last time; false with an exception set. */
static bool ask(Rules *self, JournalWriter *journal, PyObject *rule, Unchanged *unchanged)
{
    PyObject *found = call(journal, PyTuple_GET_ITEM(rule, RULE_UNCHANGED), &self->controller, 1);
    if (found == NULL) return false;
    PyObject *value = PyTuple_GET_ITEM(found, 0), *contacts = PyTuple_GET_ITEM(found, 1);
    int is_equal = unchanged->value == NULL ? 0 : PyObject_RichCompareBool(value, unchanged->value, Py_EQ);
    if (is_equal == 0) unchanged->version++;
    Py_XSETREF(unchanged->value, Py_NewRef(value));
    Py_XSETREF(unchanged->contacts, contacts == Py_None ? NULL : Py_NewRef(contacts));
    unchanged->turn = self->turn;
    Py_DECREF(found);
    return is_equal >= 0;
}

/* Record a contact of a subject, which has one while its rule's states are unchanged; false with an exception set. */
static bool touch(PyObject *contacts, PyObject *subject, long long now_us)
{
    PyObject *now_ms = PyLong_FromLongLong(now_us / 1000);
    bool is_set = now_ms != NULL && PyDict_SetItem(contacts, subject, now_ms) == 0;
    Py_XDECREF(now_ms);
    return is_set;
}

/* Have the rule record the request; false with an exception set. */
static bool record(Rules *self, JournalWriter *journal, PyObject *rule, PyObject *subject, PyObject *offset,
                   long long now_us)
{
    PyObject *now_ms = PyLong_FromLongLong(now_us / 1000);
    PyObject *arguments[] = {self->controller, subject, offset, now_ms};
    PyObject *done = now_ms ? call(journal, PyTuple_GET_ITEM(rule, RULE_RECORD), arguments, 4) : NULL;
    Py_XDECREF(now_ms);
    Py_XDECREF(done);
    return done != NULL;
}

/* Return whether the state is that of the remembered request; -1 with an exception set. */
static int is_same(Rules *self, JournalWriter *journal, PyObject *rule, PyObject *repeat, PyObject *offset)
{
    PyObject *arguments[] = {self->controller, get(repeat, REPEAT_SUBJECT), offset};
    PyObject *state = call(journal, PyTuple_GET_ITEM(rule, RULE_STATE), arguments, 3);
    int is_equal = state == NULL ? -1 : PyObject_RichCompareBool(state, get(repeat, REPEAT_STATE), Py_EQ);
    Py_XDECREF(state);
    return is_equal;
}

/* Return what is kept of a repeat, which has nothing at first; NULL with an exception set. */
static Proceeded *proceeded_of(PyObject *repeat)
{
    PyObject **kept = slot(repeat, REPEAT_PROCEEDED);
    if (!Py_IS_TYPE(*kept, proceeded_type)) {
        Proceeded *made = PyObject_New(Proceeded, proceeded_type);
        if (made == NULL) return NULL;
        made->is_valid = false;
        Py_SETREF(*kept, (PyObject *)made);
    }
    return (Proceeded *)*kept;
}

int rules_proceed(Rules *self, JournalWriter *journal, PyObject *rule, PyObject *repeat, uint8_t api_key,
                  long long offset, long long now_us)
{
    PyObject *subject = get(repeat, REPEAT_SUBJECT);
    bool has_record = PyTuple_GET_ITEM(rule, RULE_RECORD) != Py_None;
    Unchanged *unchanged = &self->unchanged[api_key];
    if (PyTuple_GET_ITEM(rule, RULE_UNCHANGED) == Py_None)
        unchanged->version++;
    else if (unchanged->turn != self->turn && !ask(self, journal, rule, unchanged))
        return -1;
    Proceeded *before = proceeded_of(repeat);
    if (before == NULL) return -1;
    bool is_known = before->is_valid && before->offset == offset && before->version == unchanged->version;
    if (is_known && !has_record) return 1;
    if (is_known && unchanged->contacts != NULL) return touch(unchanged->contacts, subject, now_us) ? 1 : -1;
    PyObject *number = PyLong_FromLongLong(offset);
    int proceeds = number == NULL ? -1 : is_known ? 1 : is_same(self, journal, rule, repeat, number);
    before->version = unchanged->version;
    before->offset = offset;
    before->is_valid = proceeds > 0;
    if (proceeds > 0 && has_record) {
        if (unchanged->contacts != NULL) unchanged->turn = self->turn - 1; /* it may change what states depend on */
        if (!record(self, journal, rule, subject, number, now_us)) proceeds = -1;
    }
    Py_XDECREF(number);
    return proceeds;
}

static void proceeded_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot proceeded_slots[] = {{Py_tp_dealloc, proceeded_dealloc}, {0, NULL}};

static PyType_Spec proceeded_spec = {"mockraft_speed._repeats.Proceeded", sizeof(Proceeded), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, proceeded_slots};

bool rules_find_slots(PyObject *classes) { return find_slots(slots, RULES_SLOTS, classes); }

bool prepare_rules(void)
{
    proceeded_type = (PyTypeObject *)PyType_FromSpec(&proceeded_spec);
    return proceeded_type != NULL;
}
