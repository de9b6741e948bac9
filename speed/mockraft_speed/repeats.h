/* The journal's ring of entries, and repeated exchanges in a short form.

   A `Record` is a repeated exchange as the remembered request and the few values that differ. The ring makes it an
   `Exchange` when somebody reads it. Records have no cyclic references, so the collector never sees them. */

#ifndef MOCKRAFT_SPEED_REPEATS_H
#define MOCKRAFT_SPEED_REPEATS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "mockraft-speed is for little-endian machines"
#endif

typedef struct {
    PyObject_HEAD
    PyObject *repeat, *number, *connection_id, *principal, *broker_id, *peer_address;
    PyObject *exchange; /* once it is made, else NULL */
    long long offset, received_us, took_us;
    uint8_t correlation_id[4];
} Record;

typedef struct {
    PyObject_HEAD
    PyObject **entries; /* `count` of `room`, from `first` on, around the end */
    Py_ssize_t *sizes;
    Py_ssize_t first, count, room;
    Py_ssize_t entries_max, bytes_max, bytes_held, dropped;
    PyObject *make; /* record -> Exchange */
} Ring;

extern PyTypeObject *record_type, *ring_type;

/* An attribute of Python objects, by the offset of its slot. */
typedef struct {
    const char *class, *name;
    Py_ssize_t offset;
} Slot;

static inline PyObject **slot_of(PyObject *object, const Slot *slot)
{
    return (PyObject **)((char *)object + slot->offset);
}

/* Find the slots in `classes` (a dictionary by name); false with an exception set. */
bool find_slots(Slot *slots, int count, PyObject *classes);

/* Return whether an attribute is true; -1 with an exception set. */
int is_true(PyObject *object, PyObject *name);

bool prepare_receiver(PyObject *module); /* add its types; false with an exception set */
bool prepare_ring(void); /* once, before the first ring; false with an exception set */

/* Call `make` with what the record has; a new reference. */
PyObject *record_made_by(Record *self, PyObject *make);

/* Add an entry, and drop the oldest beyond the limits; false with an exception set. */
bool ring_add(Ring *self, PyObject *entry, Py_ssize_t size);

#endif
