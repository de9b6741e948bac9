/* The JSON of frames that differ in the values of some fields only: texts, and a value between each two of them.

   The reference is `Template` in mockraft's spark_replay/decoding/shape_json.py, with the same result for any bytes. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    int64_t kind, offset, length; /* where the value is in a frame */
} Leaf;

/* As in `RENDERED` of shape_json.py. */
enum { SIGNED, UNSIGNED, BOOL, STRING, UUID, BYTES, KINDS };

static const char STANDARD[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char URL_SAFE[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static char *write_number(char *to, const unsigned char *data, const Leaf *leaf)
{
    uint64_t number = leaf->kind == SIGNED && data[0] > 127 ? UINT64_MAX : 0;
    for (int64_t i = 0; i < leaf->length; i++) number = number << 8 | data[i];
    if (leaf->kind == SIGNED && data[0] > 127) {
        *to++ = '-';
        number = -number;
    }
    char digits[20], *first = digits + sizeof digits;
    do *--first = (char)('0' + number % 10);
    while (number /= 10);
    size_t count = digits + sizeof digits - first;
    memcpy(to, first, count);
    return to + count;
}

static char *write_base64(char *to, const unsigned char *data, int64_t length, const char *alphabet)
{
    for (; length >= 3; length -= 3, data += 3) {
        uint32_t group = (uint32_t)data[0] << 16 | data[1] << 8 | data[2];
        for (int shift = 18; shift >= 0; shift -= 6) *to++ = alphabet[group >> shift & 63];
    }
    if (length) {
        uint32_t group = (uint32_t)data[0] << 16 | (length == 2 ? data[1] << 8 : 0);
        *to++ = alphabet[group >> 18];
        *to++ = alphabet[group >> 12 & 63];
        *to++ = length == 2 ? alphabet[group >> 6 & 63] : '=';
        *to++ = '=';
    }
    return to;
}

/* Return the end of a value's text, or NULL for a string that has to be escaped. */
static char *write_value(char *to, const unsigned char *data, const Leaf *leaf)
{
    if (leaf->kind <= UNSIGNED) return write_number(to, data, leaf);
    if (leaf->kind == BOOL) {
        const char *text = data[0] ? "true" : "false";
        size_t length = strlen(text);
        memcpy(to, text, length);
        return to + length;
    }
    *to++ = '"';
    if (leaf->kind == STRING) {
        for (int64_t i = 0; i < leaf->length; i++)
            if (data[i] < 0x20 || data[i] > 0x7e || data[i] == '"' || data[i] == '\\') return NULL;
        memcpy(to, data, leaf->length);
        to += leaf->length;
    } else if (leaf->kind == UUID) {
        to = write_base64(to, data, leaf->length, URL_SAFE) - 2; /* without the padding of 16 bytes */
    } else {
        to = write_base64(to, data, leaf->length, STANDARD);
    }
    *to++ = '"';
    return to;
}

/* Return the most bytes that a row takes; -1 with an exception for leaves outside of the frame, or of a wrong length. */
static Py_ssize_t row_bytes_max(const Leaf *leaves, Py_ssize_t count, Py_ssize_t size, PyObject *texts)
{
    Py_ssize_t most = 0;
    if (PyTuple_GET_SIZE(texts) != count + 1) goto wrong;
    for (Py_ssize_t i = 0; i <= count; i++) {
        if (!PyBytes_Check(PyTuple_GET_ITEM(texts, i))) goto wrong;
        most += PyBytes_GET_SIZE(PyTuple_GET_ITEM(texts, i));
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        const Leaf *leaf = &leaves[i];
        if (leaf->kind < 0 || leaf->kind >= KINDS || leaf->length < 0 || leaf->length > size || leaf->offset < 0 ||
            leaf->offset > size - leaf->length || (leaf->kind <= BOOL && (leaf->length < 1 || leaf->length > 8)) ||
            (leaf->kind == UUID && leaf->length != 16))
            goto wrong;
        most += 24 + (leaf->length + 2) / 3 * 4; /* a number has 20 characters, and what is longer has quotes */
    }
    return most;
wrong:
    PyErr_SetString(PyExc_ValueError, "values outside of the frame, or no texts between them");
    return -1;
}

/* Fill in the rows' text and offsets; a row that has to be escaped stays empty. */
static void write_rows(char *to, int32_t *offsets, char *is_right, const unsigned char *frames, Py_ssize_t rows,
                       Py_ssize_t size, const Leaf *leaves, Py_ssize_t count, PyObject *texts)
{
    char *const first = to;
    for (Py_ssize_t row = 0; row < rows; row++, frames += size) {
        char *const begin = to;
        offsets[row] = (int32_t)(begin - first);
        for (Py_ssize_t i = 0; to != NULL && i <= count; i++) {
            PyObject *text = PyTuple_GET_ITEM(texts, i);
            memcpy(to, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text));
            to += PyBytes_GET_SIZE(text);
            if (i < count) to = write_value(to, frames + leaves[i].offset, &leaves[i]);
        }
        is_right[row] = to != NULL;
        if (to == NULL) to = begin;
    }
    offsets[rows] = (int32_t)(to - first);
}

/* Return the rows' offsets, their JSON, and which are right: see _captures.pyi. */
PyObject *render(PyObject *module, PyObject *args)
{
    Py_buffer frames, packed;
    Py_ssize_t size;
    PyObject *texts, *offsets = NULL, *bytes = NULL, *is_right = NULL, *found = NULL;
    if (!PyArg_ParseTuple(args, "y*ny*O!", &frames, &size, &packed, &PyTuple_Type, &texts)) return NULL;
    const Leaf *leaves = packed.buf;
    Py_ssize_t count = packed.len / (Py_ssize_t)sizeof(Leaf), rows = size > 0 ? frames.len / size : 0;
    Py_ssize_t most = row_bytes_max(leaves, count, size, texts);
    if (most < 0) goto done;
    if (rows && most > INT32_MAX / rows) {
        PyErr_SetString(PyExc_OverflowError, "more than 2 GiB of JSON");
        goto done;
    }
    offsets = PyBytes_FromStringAndSize(NULL, (rows + 1) * sizeof(int32_t));
    is_right = PyBytes_FromStringAndSize(NULL, rows);
    bytes = PyBytes_FromStringAndSize(NULL, rows * most);
    if (offsets == NULL || is_right == NULL || bytes == NULL) goto done;
    int32_t *ends = (int32_t *)PyBytes_AS_STRING(offsets);
    write_rows(PyBytes_AS_STRING(bytes), ends, PyBytes_AS_STRING(is_right), frames.buf, rows, size, leaves, count, texts);
    if (_PyBytes_Resize(&bytes, ends[rows]) == 0) found = PyTuple_Pack(3, offsets, bytes, is_right);
done:
    Py_XDECREF(offsets);
    Py_XDECREF(bytes);
    Py_XDECREF(is_right);
    PyBuffer_Release(&frames);
    PyBuffer_Release(&packed);
    return found;
}
