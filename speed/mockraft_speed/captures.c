/* The loops of captured traffic that cannot be vectorised: from header to header, each giving the place of the next.

   They are those of mockraft's spark_replay/walks.py, which is the reference; the results are the same for any bytes.
   Positions are native 64-bit integers in a bytes object. Nothing is read outside of [at, end). */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "mockraft-speed is for little-endian machines"
#endif

typedef struct {
    int64_t *items;
    Py_ssize_t count, room;
    int64_t first[256];
} Positions;

static void begin(Positions *found)
{
    found->items = found->first;
    found->count = 0;
    found->room = sizeof(found->first) / sizeof(int64_t);
}

static int grow(Positions *found)
{
    Py_ssize_t room = found->room * 4;
    int64_t *items = PyMem_Malloc(room * sizeof(int64_t));
    if (items == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    memcpy(items, found->items, found->count * sizeof(int64_t));
    if (found->items != found->first) PyMem_Free(found->items);
    found->items = items;
    found->room = room;
    return 1;
}

static inline int add(Positions *found, int64_t at)
{
    if (found->count == found->room && !grow(found)) return 0;
    found->items[found->count++] = at;
    return 1;
}

static PyObject *end(Positions *found, int is_whole)
{
    PyObject *bytes =
        is_whole ? PyBytes_FromStringAndSize((char *)found->items, found->count * sizeof(int64_t)) : NULL;
    if (found->items != found->first) PyMem_Free(found->items);
    return bytes;
}

static inline uint32_t word(const unsigned char *data, int is_big)
{
    uint32_t value;
    memcpy(&value, data, 4);
    return is_big ? __builtin_bswap32(value) : value;
}

static inline int16_t number(const unsigned char *data)
{
    return (int16_t)(data[0] << 8 | data[1]);
}

static int are_inside(Py_buffer *view, long long at, long long stop)
{
    if (0 <= at && at <= stop && stop <= view->len) return 1;
    PyErr_SetString(PyExc_ValueError, "positions outside of the buffer");
    return 0;
}

static PyObject *records(PyObject *module, PyObject *args)
{
    Py_buffer view;
    long long size;
    int is_big;
    if (!PyArg_ParseTuple(args, "y*Lp", &view, &size, &is_big)) return NULL;
    Positions found;
    begin(&found);
    int is_whole = are_inside(&view, 0, size);
    const unsigned char *data = view.buf;
    for (int64_t at = 0; is_whole && at + 16 <= size; at += 16 + (int64_t)word(data + at + 8, is_big))
        is_whole = add(&found, at);
    PyBuffer_Release(&view);
    return end(&found, is_whole);
}

enum { INCOMPLETE, BAD, SASL };

static PyObject *frames(PyObject *args, int is_response)
{
    Py_buffer view;
    long long at, stop, most;
    if (!PyArg_ParseTuple(args, "y*LLL", &view, &at, &stop, &most)) return NULL;
    Positions found;
    begin(&found);
    int state = INCOMPLETE, is_whole = are_inside(&view, at, stop) && add(&found, at);
    const unsigned char *data = view.buf;
    const int head = is_response ? 4 : 12, least = is_response ? 4 : 8;
    while (is_whole && at + head <= stop) {
        const int32_t length = (int32_t)word(data + at, 1);
        int key = 0, version = 1;
        if (!is_response) {
            key = number(data + at + 4);
            version = number(data + at + 6);
        }
        if (length < least || length > most || key < 0 || key > 0xFF || version < 0 || version > 0x3F) {
            state = BAD;
            break;
        }
        at += 4 + (int64_t)length;
        if (at > stop) break;
        is_whole = add(&found, at);
        if (key == 17 && version == 0) {
            state = SASL;
            break;
        }
    }
    if (is_whole && state == INCOMPLETE && !is_response && at + 4 <= stop) {
        const int32_t length = (int32_t)word(data + at, 1);
        if (length < least || length > most) state = BAD;
    }
    PyBuffer_Release(&view);
    PyObject *bounds = end(&found, is_whole);
    return bounds == NULL ? NULL : Py_BuildValue("(iN)", state, bounds);
}

static PyObject *requests(PyObject *module, PyObject *args)
{
    return frames(args, 0);
}

static PyObject *responses(PyObject *module, PyObject *args)
{
    return frames(args, 1);
}

/* Slices far apart: the first bytes of one are fetched while those before it are copied. */
#define AHEAD 8

static PyObject *gather(PyObject *module, PyObject *args)
{
    Py_buffer view, starts, sizes;
    PyObject *offsets = NULL, *bytes = NULL, *both = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*", &view, &starts, &sizes)) return NULL;
    const int64_t *at = starts.buf, *size = sizes.buf;
    const Py_ssize_t count = starts.len / sizeof(int64_t);
    int64_t total = 0;
    if (sizes.len != starts.len) {
        PyErr_SetString(PyExc_ValueError, "as many sizes as starts are needed");
        goto done;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (at[i] < 0 || size[i] < 0 || at[i] > view.len - size[i] || (total += size[i]) > INT32_MAX) {
            PyErr_SetString(PyExc_ValueError, "slices outside of the buffer, or of 2 GiB");
            goto done;
        }
    }
    offsets = PyBytes_FromStringAndSize(NULL, (count + 1) * sizeof(int32_t));
    bytes = PyBytes_FromStringAndSize(NULL, total);
    if (offsets != NULL && bytes != NULL) {
        int32_t *offset = (int32_t *)PyBytes_AS_STRING(offsets);
        const char *from = view.buf;
        char *to = PyBytes_AS_STRING(bytes), *const first = to;
        for (Py_ssize_t i = 0; i < count; i++) {
            if (i + AHEAD < count) __builtin_prefetch(from + at[i + AHEAD]);
            *offset++ = (int32_t)(to - first);
            memcpy(to, from + at[i], size[i]);
            to += size[i];
        }
        *offset = (int32_t)total;
        both = PyTuple_Pack(2, offsets, bytes);
    }
done:
    Py_XDECREF(offsets);
    Py_XDECREF(bytes);
    PyBuffer_Release(&view);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&sizes);
    return both;
}

PyObject *render(PyObject *module, PyObject *args); /* bodies.c */

static PyMethodDef functions[] = {
    {"gather", gather, METH_VARARGS, "gather(buffer, starts, sizes): the slices' offsets and bytes, as Arrow has them"},
    {"records", records, METH_VARARGS, "records(buffer, size, is_big_endian): the starts of a pcap file's records"},
    {"render", render, METH_VARARGS, "render(frames, size, leaves, texts): the rows' offsets, JSON, and which are right"},
    {"requests", requests, METH_VARARGS, "requests(buffer, at, end, frame_bytes_max): why it stops, and the bounds"},
    {"responses", responses, METH_VARARGS, "responses(buffer, at, end, frame_bytes_max): why it stops, and the bounds"},
    {NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "mockraft_speed._captures", NULL, -1, functions};

PyMODINIT_FUNC PyInit__captures(void)
{
    return PyModule_Create(&definition);
}
