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

extern PyTypeObject *record_type, *ring_type, *short_way_type;

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

/* What writes repeated exchanges to a journal. During a turn its settings are as they were at the turn's begin, and
   counts and the last id wait for its end, or for the next call of Python code. */
typedef struct {
    PyObject *journal, *ring, *numbers;
    PyObject *counts; /* by API key */
    bool is_heard, is_kept;
    PyObject *api_key, *last_id; /* of what waits to be counted */
    long long uncounted;
} JournalWriter;

bool journal_begin(JournalWriter *self); /* false with an exception set, as the next two */
bool journal_end(JournalWriter *self);
bool journal_write(JournalWriter *self, Record *record, PyObject *api_key, Py_ssize_t size);

/* What a rule's `unchanged` returned last. Within a turn nothing but rules runs, so that it is asked once, and after
   `record`. */
typedef struct {
    PyObject *value, *contacts; /* contacts: NULL for no dictionary */
    unsigned turn, version;     /* the turn that it is of, and how many values there were */
} Unchanged;

enum { RULE_STATE = 2, RULE_RECORD, RULE_IGNORES_OFFSET, RULE_UNCHANGED, RULE_ITEMS }; /* items of a RepeatRule */
enum { APIS = 256 };

/* What asks the rules of APIs. */
typedef struct {
    PyObject *controller;
    unsigned turn;
    Unchanged unchanged[APIS];
} Rules;

/* Return whether the state is that of the remembered request, and then have the request recorded; -1 with an exception
   set. */
int rules_proceed(Rules *self, JournalWriter *journal, PyObject *rule, PyObject *repeat, uint8_t api_key,
                  long long offset, long long now_us);

bool rules_find_slots(PyObject *classes); /* false with an exception set */

long long monotonic_ns(void);
long long now_by(PyObject *now_us); /* Return the time in microseconds; -1 with an exception set. */

/* Begin a turn, in which nothing but short ways runs; end it, unless an exception is set. False with one set. */
bool short_way_begin(PyObject *short_way);
bool short_way_end(PyObject *short_way);

/* Return whether the turn goes on after an answer: listeners to the journal may have changed anything. */
bool short_way_lasts(PyObject *short_way);

enum { RESPONSE_HEAD = 8 };

/* A response: its length and correlation id, and the rest, which is the remembered one's; NULL for no response. */
typedef struct {
    PyObject *tail;
    char head[RESPONSE_HEAD];
} Response;

/* Return the response to a request that repeats; none for the long way, or with an exception set. `short_way` is a
   ShortWay, in a turn. */
Response short_way_answer(PyObject *short_way, PyObject *connection_id, const char *bytes, Py_ssize_t size,
                          long long now_us);

/* Return the bytes of a response from one on; NULL with an exception set. */
PyObject *response_from(const Response *response, Py_ssize_t begin);

/* Make a type and add it to a module; NULL with an exception set. */
PyTypeObject *add_type(PyObject *module, const char *name, PyType_Spec *spec);

bool prepare_clock(PyObject *module); /* add their types; false with an exception set */
bool prepare_ring(PyObject *module);
bool prepare_rules(void);
bool prepare_short_way(PyObject *module);
bool prepare_receiver(PyObject *module);

/* Call `make` with what the record has; a new reference. */
PyObject *record_made_by(Record *self, PyObject *make);

/* Add an entry, and drop the oldest beyond the limits; false with an exception set. */
bool ring_add(Ring *self, PyObject *entry, Py_ssize_t size);

#endif
