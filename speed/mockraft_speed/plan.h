/* Plans: what a struct of one message version looks like on the wire and in memory.

   A plan is made once for each version that occurs, from the rows that `plans.py` computes. It holds the offset of
   each field in an instance of the generated class, so that reading and writing touch the slots directly. */

#ifndef MOCKRAFT_SPEED_PLAN_H
#define MOCKRAFT_SPEED_PLAN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "mockraft-speed is for little-endian machines"
#endif

#define STRING_BYTES_MAX 0x7fff /* as in Kafka's generated classes */

/* The order is that of KINDS in plans.py. Fixed sizes come first. */
typedef enum { BOOL, INT8, INT16, UINT16, INT32, UINT32, INT64, FLOAT64, UUID, STRING, BYTES, STRUCT, KINDS } Kind;

typedef struct Plan Plan;

typedef struct {
    Kind kind; /* of the field, or of each element of an array */
    bool is_array, is_compact;
    bool is_nullable;     /* in this version */
    bool is_optional;     /* nullable in any version: then null differs from an empty default */
    uint32_t tag;         /* of a tagged field */
    Py_ssize_t slot;      /* offset of the field in an instance */
    Py_ssize_t size_min;  /* bytes that the field, or one element of an array, takes at least */
    PyObject *value;      /* the default; the empty tuple for a new list or a struct of defaults */
    Plan *plan;           /* of a struct, else NULL */
} Field;

struct Plan {
    PyTypeObject *public;  /* the class that users see */
    PyTypeObject *decoded; /* its subclass without a constructor, which readers create */
    Py_ssize_t unknown_slot;
    bool is_flexible;
    bool is_leaf; /* has fields of fixed size, strings and bytes only */
    Py_ssize_t plain_count, tagged_count, absent_count, misplaced_count, required_count;
    Field *plain;        /* in the order of the wire */
    Field *tagged;       /* by tag */
    Field *absent;       /* not in this version; the first `required_count` must have their default to be written */
    uint32_t *misplaced; /* tags that other versions know */
};

Plan *plan_from_row(PyObject *row); /* NULL with an exception set */
void plan_free(Plan *plan);
int plan_traverse(const Plan *plan, visitproc visit, void *arg);

static inline PyObject **slot_of(PyObject *object, Py_ssize_t offset) { return (PyObject **)((char *)object + offset); }

bool prepare_reading(void); /* once, before the first message */

void release_instance(PyObject *self); /* the deallocator of instances that have slots and nothing else */

/* Return a new message, or NULL without an exception if the pure reader has to decide; `offset` becomes its end. */
PyObject *read_message(const Plan *plan, const char *data, Py_ssize_t size, Py_ssize_t *offset);

/* Return the bytes, or NULL without an exception if the pure writer has to decide. */
PyObject *write_message(const Plan *plan, PyObject *message);

#endif
