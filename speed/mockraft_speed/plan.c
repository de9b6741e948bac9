/* Making plans from rows (see plans.py for their columns). */

#include "plan.h"
#include <structmember.h>

static Py_ssize_t find_slot(PyTypeObject *type, PyObject *name)
{
    PyObject *descriptor = PyObject_GetAttr((PyObject *)type, name);
    if (descriptor == NULL) return -1;
    Py_ssize_t offset = -1;
    if (Py_TYPE(descriptor) == &PyMemberDescr_Type)
        offset = ((PyMemberDescrObject *)descriptor)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%s.%U is not a slot", type->tp_name, name);
    Py_DECREF(descriptor);
    return offset;
}

static bool fill_field(Field *field, PyTypeObject *type, PyObject *row)
{
    PyObject *name, *plan_row;
    int kind, is_array, is_compact, is_nullable, is_optional;
    unsigned int tag;
    if (!PyArg_ParseTuple(row, "UippppInOO", &name, &kind, &is_array, &is_compact, &is_nullable, &is_optional, &tag,
                          &field->size_min, &field->value, &plan_row)) {
        field->value = NULL;
        return false;
    }
    Py_INCREF(field->value);
    if (kind < 0 || kind >= KINDS || (kind == STRUCT) != (plan_row != Py_None)) {
        PyErr_Format(PyExc_ValueError, "field %U has no kind %d", name, kind);
        return false;
    }
    field->kind = kind;
    field->is_array = is_array;
    field->is_compact = is_compact;
    field->is_nullable = is_nullable;
    field->is_optional = is_optional;
    field->tag = tag;
    field->slot = find_slot(type, name);
    if (field->slot < 0) return false;
    if (plan_row != Py_None) {
        field->plan = plan_from_row(plan_row);
        if (field->plan == NULL) return false;
    }
    return true;
}

static Field *fields_from_rows(PyTypeObject *type, PyObject *rows, Py_ssize_t *count)
{
    Py_ssize_t total = PyTuple_GET_SIZE(rows);
    Field *fields = PyMem_Calloc(total ? total : 1, sizeof(Field));
    if (fields == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (; *count < total; ++*count) {
        if (!fill_field(&fields[*count], type, PyTuple_GET_ITEM(rows, *count))) {
            ++*count; /* what was filled in is released with the plan */
            break;
        }
    }
    return fields;
}

static bool are_leaves(const Field *fields, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (fields[i].is_array || fields[i].kind == STRUCT) return false;
    return true;
}

static uint32_t *tags_from_row(PyObject *row, Py_ssize_t *count)
{
    Py_ssize_t total = PyTuple_GET_SIZE(row);
    uint32_t *tags = PyMem_Calloc(total ? total : 1, sizeof(uint32_t));
    if (tags == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (; *count < total; ++*count)
        tags[*count] = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GET_ITEM(row, *count));
    return tags;
}

Plan *plan_from_row(PyObject *row)
{
    PyTypeObject *public, *decoded;
    PyObject *plain, *tagged, *absent, *misplaced;
    int is_flexible;
    Py_ssize_t required_count;
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "the row of a plan is a tuple");
        return NULL;
    }
    if (!PyArg_ParseTuple(row, "O!O!pO!O!O!nO!", &PyType_Type, &public, &PyType_Type, &decoded, &is_flexible,
                          &PyTuple_Type, &plain, &PyTuple_Type, &tagged, &PyTuple_Type, &absent, &required_count,
                          &PyTuple_Type, &misplaced))
        return NULL;
    Plan *plan = PyMem_Calloc(1, sizeof(Plan));
    if (plan == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    plan->public = (PyTypeObject *)Py_NewRef(public);
    plan->decoded = (PyTypeObject *)Py_NewRef(decoded);
    plan->is_flexible = is_flexible;
    plan->required_count = required_count;
    if (!PyType_IsSubtype(decoded, public) || decoded->tp_basicsize != public->tp_basicsize)
        PyErr_Format(PyExc_TypeError, "%s is not %s without a constructor", decoded->tp_name, public->tp_name);
    else if (required_count < 0 || required_count > PyTuple_GET_SIZE(absent))
        PyErr_SetString(PyExc_ValueError, "more fields are required than absent");
    PyObject *unknown = PyErr_Occurred() ? NULL : PyUnicode_FromString("unknown_tagged_fields");
    if (unknown != NULL) {
        plan->unknown_slot = find_slot(public, unknown);
        Py_DECREF(unknown);
    }
    if (!PyErr_Occurred()) plan->plain = fields_from_rows(public, plain, &plan->plain_count);
    if (!PyErr_Occurred()) plan->tagged = fields_from_rows(public, tagged, &plan->tagged_count);
    if (!PyErr_Occurred()) plan->absent = fields_from_rows(public, absent, &plan->absent_count);
    if (!PyErr_Occurred()) plan->misplaced = tags_from_row(misplaced, &plan->misplaced_count);
    if (PyErr_Occurred()) {
        plan_free(plan);
        return NULL;
    }
    if (decoded->tp_dictoffset == 0 && decoded->tp_weaklistoffset == 0) decoded->tp_dealloc = release_instance;
    plan->is_leaf = are_leaves(plan->plain, plan->plain_count) && are_leaves(plan->tagged, plan->tagged_count) &&
                    are_leaves(plan->absent, plan->absent_count);
    return plan;
}

static int traverse_fields(const Field *fields, Py_ssize_t count, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_VISIT(fields[i].value);
        int stop = plan_traverse(fields[i].plan, visit, arg);
        if (stop) return stop;
    }
    return 0;
}

int plan_traverse(const Plan *plan, visitproc visit, void *arg)
{
    if (plan == NULL) return 0;
    Py_VISIT(plan->public);
    Py_VISIT(plan->decoded);
    int stop = traverse_fields(plan->plain, plan->plain_count, visit, arg);
    if (!stop) stop = traverse_fields(plan->tagged, plan->tagged_count, visit, arg);
    return stop ? stop : traverse_fields(plan->absent, plan->absent_count, visit, arg);
}

static void free_fields(Field *fields, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_XDECREF(fields[i].value);
        plan_free(fields[i].plan);
    }
    PyMem_Free(fields);
}

void plan_free(Plan *plan)
{
    if (plan == NULL) return;
    free_fields(plan->plain, plan->plain_count);
    free_fields(plan->tagged, plan->tagged_count);
    free_fields(plan->absent, plan->absent_count);
    PyMem_Free(plan->misplaced);
    Py_DECREF(plan->public);
    Py_DECREF(plan->decoded);
    PyMem_Free(plan);
}
