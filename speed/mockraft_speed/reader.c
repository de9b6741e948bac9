/* Reading: bytes to instances of the generated classes.

   Every function returns NULL (or false) without an exception for anything that is not plainly right: a cut field, a
   null where none is allowed, a length beyond the data, text that is not UTF-8. The pure reader then reads the same
   bytes and raises the error, so that there is one place that words errors. Lengths are compared with what is left
   before anything is allocated. */

#include "plan.h"
#include <string.h>

#define ZERO_SIZE_COUNT_MAX 0xffff /* as in mockraft.wire.primitives */

typedef struct {
    const unsigned char *at, *end;
} Cursor;

static PyObject *read_struct(Cursor *c, const Plan *plan);

static PyObject *no_tags; /* the empty tuple */

/* Ids, partitions and error codes are small: these numbers are made once. */
#define SMALL_MIN (-1)
#define SMALL_MAX 1023
static PyObject *small[SMALL_MAX - SMALL_MIN + 1];

bool prepare_reading(void)
{
    no_tags = PyTuple_New(0);
    for (long number = SMALL_MIN; number <= SMALL_MAX; number++)
        if ((small[number - SMALL_MIN] = PyLong_FromLong(number)) == NULL) return false;
    return no_tags != NULL;
}

static inline PyObject *new_int(int64_t number)
{
    return number >= SMALL_MIN && number <= SMALL_MAX ? Py_NewRef(small[number - SMALL_MIN])
                                                      : PyLong_FromLongLong(number);
}

static inline Py_ssize_t left(const Cursor *c) { return c->end - c->at; }

static inline uint16_t load16(const unsigned char *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return __builtin_bswap16(v);
}

static inline uint32_t load32(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}

static inline uint64_t load64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return __builtin_bswap64(v);
}

/* Kafka's ByteUtils.readUnsignedVarint: at most five bytes and 32 bits; 128 followed by 0 is a zero. */
static bool read_uvarint(Cursor *c, uint32_t *value)
{
    uint64_t sum = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        if (c->at == c->end) return false;
        unsigned char byte = *c->at++;
        sum |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 128) {
            *value = (uint32_t)sum;
            return sum <= UINT32_MAX;
        }
    }
    return false;
}

/* Read the length of a string, bytes or an array; -1 for null. `width` is that of the length before compact ones. */
static inline bool read_length(Cursor *c, const Field *f, int width, int64_t *length)
{
    if (f->is_compact) {
        uint32_t n;
        if (c->at < c->end && *c->at < 128)
            n = *c->at++;
        else if (!read_uvarint(c, &n))
            return false;
        *length = (int64_t)n - 1;
        return true;
    }
    if (left(c) < width) return false;
    *length = width == 2 ? (int16_t)load16(c->at) : (int32_t)load32(c->at);
    c->at += width;
    if (*length < 0) *length = -1;
    return true;
}

/* Read a value of fixed size; the caller has checked that its bytes are there. */
static inline PyObject *read_fixed(Cursor *c, Kind kind)
{
    const unsigned char *p = c->at;
    switch (kind) {
    case BOOL: c->at += 1; return Py_NewRef(*p ? Py_True : Py_False);
    case INT8: c->at += 1; return new_int((int8_t)*p);
    case INT16: c->at += 2; return new_int((int16_t)load16(p));
    case UINT16: c->at += 2; return new_int(load16(p));
    case INT32: c->at += 4; return new_int((int32_t)load32(p));
    case UINT32: c->at += 4; return new_int(load32(p));
    case INT64: c->at += 8; return new_int((int64_t)load64(p));
    case FLOAT64: {
        uint64_t bits = load64(p);
        double value;
        memcpy(&value, &bits, 8);
        c->at += 8;
        return PyFloat_FromDouble(value);
    }
    case UUID: c->at += 16; return PyBytes_FromStringAndSize((const char *)p, 16);
    default: return NULL;
    }
}

static inline bool is_ascii(const char *start, int64_t length)
{
    uint64_t word, high = 0;
    const char *last = start + length - 8; /* the last word overlaps the one before it */
    if (length < 8) {
        while (length--) high |= (unsigned char)*start++;
        return high < 0x80;
    }
    for (; start < last; start += 8) {
        memcpy(&word, start, 8);
        high |= word;
    }
    memcpy(&word, last, 8);
    return ((high | word) & 0x8080808080808080u) == 0;
}

static PyObject *read_block(Cursor *c, const Field *f, bool is_nullable)
{
    int64_t length;
    if (!read_length(c, f, f->kind == STRING ? 2 : 4, &length)) return NULL;
    if (length < 0) return is_nullable ? Py_NewRef(Py_None) : NULL;
    if (length > left(c)) return NULL;
    const char *start = (const char *)c->at;
    c->at += length;
    if (f->kind == BYTES) return PyBytes_FromStringAndSize(start, length);
    if (length > STRING_BYTES_MAX) return NULL;
    if (!is_ascii(start, length)) return PyUnicode_DecodeUTF8(start, length, NULL);
    PyObject *text = PyUnicode_New(length, 127);
    if (text != NULL && length) memcpy(PyUnicode_1BYTE_DATA(text), start, length);
    return text;
}

static PyObject *read_array(Cursor *c, const Field *f)
{
    int64_t count;
    if (!read_length(c, f, 4, &count)) return NULL;
    if (count < 0) return f->is_nullable ? Py_NewRef(Py_None) : NULL;
    if (count > (f->size_min ? left(c) / f->size_min : ZERO_SIZE_COUNT_MAX)) return NULL;
    PyObject *list = PyList_New(count);
    if (list == NULL) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item;
        if (f->kind < STRING)
            item = read_fixed(c, f->kind); /* all there: their number was compared with what is left */
        else if (f->kind == STRUCT)
            item = read_struct(c, f->plan);
        else
            item = read_block(c, f, false);
        if (item == NULL) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SET_ITEM(list, i, item);
    }
    return list;
}

static inline PyObject *read_field(Cursor *c, const Field *f)
{
    if (f->is_array) return read_array(c, f);
    if (f->kind < STRING) return left(c) < f->size_min ? NULL : read_fixed(c, f->kind);
    if (f->kind < STRUCT) return read_block(c, f, f->is_nullable);
    if (f->is_nullable) {
        if (c->at == c->end) return NULL;
        if ((int8_t)*c->at++ < 0) return Py_NewRef(Py_None);
    }
    return read_struct(c, f->plan);
}

/* Released instances that are used again, by their number of slots; the first slot is the next one. */
#define SPARE_SLOTS_MAX 16
#ifdef __SANITIZE_ADDRESS__
#define SPARE_MAX 0 /* it shall see each use of what was released */
#else
#define SPARE_MAX 128
#endif
static struct {
    PyObject *first;
    int count;
} spares[SPARE_SLOTS_MAX + 1];

static inline PyObject **slots_of(PyObject *object) { return slot_of(object, sizeof(PyObject)); }

static inline Py_ssize_t count_slots(const PyTypeObject *type)
{
    return (type->tp_basicsize - (Py_ssize_t)sizeof(PyObject)) / (Py_ssize_t)sizeof(PyObject *);
}

/* Return an instance without values. The collector does not know it yet: see `finish`. */
static inline PyObject *new_instance(const Plan *plan)
{
    PyTypeObject *type = plan->decoded;
    Py_ssize_t count = count_slots(type);
    PyObject *object;
    if (count <= SPARE_SLOTS_MAX && spares[count].count) {
        object = spares[count].first;
        spares[count].first = *slots_of(object);
        spares[count].count--;
        PyObject_Init(object, type);
    } else {
        object = PyObject_GC_New(PyObject, type);
        if (object == NULL) return NULL;
    }
    memset(slots_of(object), 0, count * sizeof(PyObject *));
    *slot_of(object, plan->unknown_slot) = Py_NewRef(no_tags);
    return object;
}

static void release_slots(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self), *decoded = type;
    while (decoded->tp_dealloc != release_instance) decoded = decoded->tp_base; /* somebody has made a subclass */
    Py_ssize_t count = count_slots(decoded);
    PyObject **slots = slots_of(self);
    for (Py_ssize_t i = 0; i < count; i++) Py_XDECREF(slots[i]);
    /* The mark of a finalizer that has run stays in the memory, and would keep the next instance's from running. */
    bool is_plain = type == decoded && type->tp_finalize == NULL && !PyObject_GC_IsFinalized(self);
    if (is_plain && count <= SPARE_SLOTS_MAX && spares[count].count < SPARE_MAX) {
        *slots = spares[count].first;
        spares[count].first = self;
        spares[count].count++;
    } else {
        PyObject_GC_Del(self);
    }
    Py_DECREF(type);
}

/* CPython's own deallocator looks up for each instance what is known here; that takes as long as reading it. Deep
   nesting, which no message has, is left to the trashcan. */
void release_instance(PyObject *self)
{
    static int nested; /* in all threads */
    if (Py_TYPE(self)->tp_finalize != NULL && PyObject_CallFinalizerFromDealloc(self) < 0) return;
    PyObject_GC_UnTrack(self);
    if (++nested < 32) {
        release_slots(self);
    } else {
        Py_TRASHCAN_BEGIN(self, release_instance)
        release_slots(self);
        Py_TRASHCAN_END
    }
    nested--;
}

/* Show a complete instance to the collector, unless its fields are numbers, strings and bytes only: as long as they have
   their types, it is part of no cycle. */
static inline PyObject *finish(const Plan *plan, PyObject *object, bool is_complete)
{
    if (!is_complete)
        Py_CLEAR(object);
    else if (!plan->is_leaf)
        PyObject_GC_Track(object);
    return object;
}

/* Set the fields that have no value yet to their defaults. */
static bool set_defaults(PyObject *object, const Field *fields, Py_ssize_t count);

static PyObject *default_of(const Field *f)
{
    if (!PyTuple_CheckExact(f->value)) return Py_NewRef(f->value);
    if (f->is_array) return PyList_New(0);
    PyObject *object = new_instance(f->plan);
    if (object == NULL) return NULL;
    const Plan *plan = f->plan;
    return finish(plan, object,
                  set_defaults(object, plan->plain, plan->plain_count) &&
                      set_defaults(object, plan->tagged, plan->tagged_count) &&
                      set_defaults(object, plan->absent, plan->absent_count));
}

static bool set_defaults(PyObject *object, const Field *fields, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject **slot = slot_of(object, fields[i].slot);
        if (*slot == NULL && (*slot = default_of(&fields[i])) == NULL) return false;
    }
    return true;
}

static bool keep_unknown(PyObject *object, const Plan *plan, uint32_t tag, const Cursor *c, uint32_t size)
{
    PyObject **slot = slot_of(object, plan->unknown_slot);
    if (PyTuple_CheckExact(*slot)) {
        PyObject *list = PyList_New(0);
        if (list == NULL) return false;
        Py_SETREF(*slot, list);
    }
    PyObject *pair = Py_BuildValue("(Iy#)", tag, (const char *)c->at, (Py_ssize_t)size);
    bool is_kept = pair != NULL && PyList_Append(*slot, pair) == 0;
    Py_XDECREF(pair);
    return is_kept;
}

static bool read_tagged(Cursor *c, const Plan *plan, PyObject *object)
{
    uint32_t tag, size;
    if (!read_uvarint(c, &tag) || !read_uvarint(c, &size) || size > left(c)) return false;
    const unsigned char *end = c->at + size;
    for (Py_ssize_t i = 0; i < plan->tagged_count; i++) {
        if (plan->tagged[i].tag == tag) {
            PyObject *value = read_field(c, &plan->tagged[i]);
            if (value == NULL) return false;
            Py_XSETREF(*slot_of(object, plan->tagged[i].slot), value);
            return c->at == end;
        }
    }
    for (Py_ssize_t i = 0; i < plan->misplaced_count; i++)
        if (plan->misplaced[i] == tag) return false;
    if (!keep_unknown(object, plan, tag, c, size)) return false;
    c->at = end;
    return true;
}

static bool read_fields(Cursor *c, const Plan *plan, PyObject *object)
{
    const Field *end = plan->plain + plan->plain_count;
    for (const Field *f = plan->plain; f < end; f++) {
        PyObject *value = read_field(c, f);
        if (value == NULL) return false;
        *slot_of(object, f->slot) = value;
    }
    if (plan->is_flexible) {
        uint32_t count;
        if (!read_uvarint(c, &count) || count > left(c) / 2) return false;
        while (count--)
            if (!read_tagged(c, plan, object)) return false;
        if (!set_defaults(object, plan->tagged, plan->tagged_count)) return false;
    }
    return set_defaults(object, plan->absent, plan->absent_count);
}

static PyObject *read_struct(Cursor *c, const Plan *plan)
{
    PyObject *object = new_instance(plan);
    if (object == NULL) return NULL;
    return finish(plan, object, read_fields(c, plan, object));
}

PyObject *read_message(const Plan *plan, const char *data, Py_ssize_t size, Py_ssize_t *offset)
{
    if (*offset < 0 || *offset > size) return NULL;
    Cursor c = {(const unsigned char *)data + *offset, (const unsigned char *)data + size};
    /* Nothing that is created here can be garbage yet: collections meanwhile would only cost time. */
    int was_enabled = PyGC_Disable();
    PyObject *message = read_struct(&c, plan);
    if (was_enabled) PyGC_Enable();
    *offset = (const char *)c.at - data;
    if (message == NULL) PyErr_Clear();
    return message;
}
