/* Writing: instances of the generated classes to bytes.

   Every function returns false for anything but the usual types and values: an array that is neither list nor tuple, a
   number out of range, unknown tagged fields, a value that the version has no field for. The pure writer then writes
   the same message or raises the error. No Python code runs while a message is written, so it cannot change meanwhile. */

#include "plan.h"
#include <string.h>

#define UVARINT_BYTES_MAX 5

typedef struct {
    unsigned char *start, *at, *end;
    unsigned char first[2048]; /* most messages need no more */
} Buffer;

static bool write_struct(Buffer *b, const Plan *plan, PyObject *object);

static bool grow(Buffer *b, Py_ssize_t more)
{
    Py_ssize_t used = b->at - b->start;
    Py_ssize_t size = 2 * (b->end - b->start) + more;
    unsigned char *moved = PyMem_Realloc(b->start == b->first ? NULL : b->start, size);
    if (moved == NULL) return false;
    if (b->start == b->first) memcpy(moved, b->first, used);
    b->start = moved;
    b->at = moved + used;
    b->end = moved + size;
    return true;
}

static inline bool reserve(Buffer *b, Py_ssize_t more) { return b->end - b->at >= more || grow(b, more); }

static inline void store16(Buffer *b, uint16_t v)
{
    v = __builtin_bswap16(v);
    memcpy(b->at, &v, 2);
    b->at += 2;
}

static inline void store32(Buffer *b, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(b->at, &v, 4);
    b->at += 4;
}

static inline void store64(Buffer *b, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(b->at, &v, 8);
    b->at += 8;
}

static inline void store_uvarint(Buffer *b, uint32_t v)
{
    while (v > 127) {
        *b->at++ = (unsigned char)(v | 0x80);
        v >>= 7;
    }
    *b->at++ = (unsigned char)v;
}

static inline bool to_int64(PyObject *value, int64_t *number)
{
    if (!PyLong_Check(value)) return false;
#if PY_VERSION_HEX >= 0x030c0000
    if (PyUnstable_Long_IsCompact((PyLongObject *)value)) {
        *number = PyUnstable_Long_CompactValue((PyLongObject *)value);
        return true;
    }
#else
    if (Py_SIZE(value) == 0 || Py_SIZE(value) == 1) {
        *number = Py_SIZE(value) ? ((PyLongObject *)value)->ob_digit[0] : 0;
        return true;
    }
#endif
    int overflow;
    *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

static inline bool write_number(Buffer *b, PyObject *value, int64_t least, int64_t most, int width)
{
    int64_t number;
    if (!to_int64(value, &number) || number < least || number > most) return false;
    switch (width) {
    case 1: *b->at++ = (unsigned char)number; return true;
    case 2: store16(b, (uint16_t)number); return true;
    case 4: store32(b, (uint32_t)number); return true;
    default: store64(b, (uint64_t)number); return true;
    }
}

/* Write a value of fixed size; the caller has reserved its bytes. Inlined, which compilers alone do not: it saves a
   quarter of the time. */
__attribute__((always_inline)) static inline bool write_fixed(Buffer *b, Kind kind, PyObject *value)
{
    switch (kind) {
    case BOOL:
        if (!PyBool_Check(value)) return false;
        *b->at++ = value == Py_True;
        return true;
    case INT8: return write_number(b, value, INT8_MIN, INT8_MAX, 1);
    case INT16: return write_number(b, value, INT16_MIN, INT16_MAX, 2);
    case UINT16: return write_number(b, value, 0, UINT16_MAX, 2);
    case INT32: return write_number(b, value, INT32_MIN, INT32_MAX, 4);
    case UINT32: return write_number(b, value, 0, UINT32_MAX, 4);
    case INT64: return write_number(b, value, INT64_MIN, INT64_MAX, 8);
    case FLOAT64: {
        if (!PyFloat_CheckExact(value)) return false;
        double number = PyFloat_AS_DOUBLE(value);
        uint64_t bits;
        memcpy(&bits, &number, 8);
        store64(b, bits);
        return true;
    }
    case UUID:
        if (!PyBytes_CheckExact(value) || PyBytes_GET_SIZE(value) != 16) return false;
        memcpy(b->at, PyBytes_AS_STRING(value), 16);
        b->at += 16;
        return true;
    default: return false;
    }
}

/* Write the length of a string, bytes or an array; -1 for null. `width` is that of the length before compact ones. */
static inline bool write_length(Buffer *b, const Field *f, int width, Py_ssize_t length)
{
    if (length > INT32_MAX - 1 || !reserve(b, UVARINT_BYTES_MAX)) return false;
    if (f->is_compact)
        store_uvarint(b, (uint32_t)(length + 1));
    else if (width == 2)
        store16(b, (uint16_t)length);
    else
        store32(b, (uint32_t)length);
    return true;
}

static bool write_block(Buffer *b, const Field *f, PyObject *value, bool is_nullable)
{
    const char *start;
    Py_ssize_t length;
    int width = f->kind == STRING ? 2 : 4;
    if (value == Py_None) return is_nullable && write_length(b, f, width, -1);
    if (f->kind == BYTES) {
        if (!PyBytes_CheckExact(value)) return false;
        start = PyBytes_AS_STRING(value);
        length = PyBytes_GET_SIZE(value);
    } else {
        if (!PyUnicode_CheckExact(value)) return false;
        if (PyUnicode_IS_COMPACT_ASCII(value)) {
            start = (const char *)PyUnicode_DATA(value);
            length = PyUnicode_GET_LENGTH(value);
        } else if ((start = PyUnicode_AsUTF8AndSize(value, &length)) == NULL) {
            return false;
        }
        if (length > STRING_BYTES_MAX) return false;
    }
    if (!write_length(b, f, width, length) || !reserve(b, length)) return false;
    memcpy(b->at, start, length);
    b->at += length;
    return true;
}

static bool write_array(Buffer *b, const Field *f, PyObject *value)
{
    if (value == Py_None) return f->is_nullable && write_length(b, f, 4, -1);
    if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value)) return false;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
    PyObject **items = PySequence_Fast_ITEMS(value);
    if (!write_length(b, f, 4, count)) return false;
    if (f->kind < STRING && !reserve(b, count * f->size_min)) return false;
    for (Py_ssize_t i = 0; i < count; i++) {
        bool is_written;
        if (f->kind < STRING)
            is_written = write_fixed(b, f->kind, items[i]);
        else if (f->kind == STRUCT)
            is_written = write_struct(b, f->plan, items[i]);
        else
            is_written = write_block(b, f, items[i], false);
        if (!is_written) return false;
    }
    return true;
}

static inline bool write_field(Buffer *b, const Field *f, PyObject *value)
{
    if (value == NULL) return false; /* deleted, or never set */
    if (f->is_array) return write_array(b, f, value);
    if (f->kind < STRING) return reserve(b, 16) && write_fixed(b, f->kind, value);
    if (f->kind < STRUCT) return write_block(b, f, value, f->is_nullable);
    if (f->is_nullable) {
        if (!reserve(b, 1)) return false;
        *b->at++ = value == Py_None ? 0xff : 1;
        if (value == Py_None) return true;
    }
    return write_struct(b, f->plan, value);
}

static inline bool is_of(const Plan *plan, PyObject *object)
{
    return Py_TYPE(object) == plan->decoded || Py_TYPE(object) == plan->public;
}

static inline bool is_empty(PyObject *value)
{
    return value != NULL && (PyTuple_CheckExact(value) || PyList_CheckExact(value)) && Py_SIZE(value) == 0;
}

typedef enum { DEFAULT, OTHER, UNCLEAR } Difference;

static Difference differs(const Field *f, PyObject *value);

static Difference differ(PyObject *object, const Field *fields, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        Difference found = differs(&fields[i], *slot_of(object, fields[i].slot));
        if (found != DEFAULT) return found;
    }
    return DEFAULT;
}

/* Compare a field with its default as the pure writer does, which asks for the truth of what may be empty. */
static Difference differs(const Field *f, PyObject *value)
{
    if (value == NULL) return UNCLEAR;
    if (f->value == Py_None) return value == Py_None ? DEFAULT : OTHER;
    if (value == Py_None) return f->is_optional ? OTHER : UNCLEAR;
    if (f->is_array) {
        if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value)) return UNCLEAR;
        return Py_SIZE(value) ? OTHER : DEFAULT;
    }
    if (f->kind == STRUCT) {
        const Plan *plan = f->plan;
        if (!is_of(plan, value) || !is_empty(*slot_of(value, plan->unknown_slot))) return UNCLEAR;
        Difference found = differ(value, plan->plain, plan->plain_count);
        if (found == DEFAULT) found = differ(value, plan->tagged, plan->tagged_count);
        if (found == DEFAULT) found = differ(value, plan->absent, plan->absent_count);
        return found;
    }
    if (value == f->value) return DEFAULT;
    if (Py_TYPE(value) != Py_TYPE(f->value)) return UNCLEAR;
    int is_equal = PyObject_RichCompareBool(value, f->value, Py_EQ);
    return is_equal < 0 ? UNCLEAR : is_equal ? DEFAULT : OTHER;
}

/* Write a tagged field; its size, which comes first, is known afterwards. */
static bool write_tagged(Buffer *b, const Field *f, PyObject *value)
{
    if (!reserve(b, UVARINT_BYTES_MAX + 1)) return false;
    store_uvarint(b, f->tag);
    Py_ssize_t before = b->at++ - b->start;
    if (!write_field(b, f, value)) return false;
    Py_ssize_t size = b->at - b->start - before - 1;
    if (size < 128) {
        b->start[before] = (unsigned char)size;
        return true;
    }
    int longer = 1;
    for (Py_ssize_t rest = size >> 14; rest; rest >>= 7) longer++;
    if (size > INT32_MAX || !reserve(b, longer)) return false;
    memmove(b->start + before + 1 + longer, b->start + before + 1, size);
    b->at = b->start + before;
    store_uvarint(b, (uint32_t)size);
    b->at += size;
    return true;
}

static bool write_tags(Buffer *b, const Plan *plan, PyObject *object)
{
    if (plan->tagged_count > 127 || !reserve(b, 1)) return false; /* one byte for their number is enough for Kafka's */
    Py_ssize_t before = b->at++ - b->start;
    unsigned char count = 0;
    for (Py_ssize_t i = 0; i < plan->tagged_count; i++) {
        PyObject *value = *slot_of(object, plan->tagged[i].slot);
        Difference found = differs(&plan->tagged[i], value);
        if (found == UNCLEAR) return false;
        if (found == OTHER) {
            if (!write_tagged(b, &plan->tagged[i], value)) return false;
            count++;
        }
    }
    b->start[before] = count;
    return true;
}

static bool write_struct(Buffer *b, const Plan *plan, PyObject *object)
{
    if (!is_of(plan, object) || !is_empty(*slot_of(object, plan->unknown_slot))) return false;
    if (differ(object, plan->absent, plan->required_count) != DEFAULT) return false;
    const Field *end = plan->plain + plan->plain_count;
    for (const Field *f = plan->plain; f < end; f++)
        if (!write_field(b, f, *slot_of(object, f->slot))) return false;
    return !plan->is_flexible || write_tags(b, plan, object);
}

PyObject *write_message(const Plan *plan, PyObject *message)
{
    Buffer b;
    b.start = b.at = b.first;
    b.end = b.first + sizeof b.first;
    PyObject *bytes = NULL;
    if (write_struct(&b, plan, message)) bytes = PyBytes_FromStringAndSize((const char *)b.start, b.at - b.start);
    if (b.start != b.first) PyMem_Free(b.start);
    if (bytes == NULL) PyErr_Clear();
    return bytes;
}
