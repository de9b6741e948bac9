/* The module `mockraft_speed._repeats`: the short way of requests that repeat, and what is around it. */

#include "repeats.h"

bool find_slots(Slot *slots, int count, PyObject *classes)
{
    for (int i = 0; i < count; i++) {
        PyObject *class = PyDict_GetItemString(classes, slots[i].class);
        PyObject *found = class == NULL ? NULL : PyObject_GetAttrString(class, slots[i].name);
        if (found == NULL || !Py_IS_TYPE(found, &PyMemberDescr_Type)) {
            Py_XDECREF(found);
            PyErr_Format(PyExc_TypeError, "%s.%s is no slot", slots[i].class, slots[i].name);
            return false;
        }
        slots[i].offset = ((PyMemberDescrObject *)found)->d_member->offset;
        Py_DECREF(found);
    }
    return true;
}

int is_true(PyObject *object, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL) return -1;
    int found = PyObject_IsTrue(value);
    Py_DECREF(value);
    return found;
}

PyTypeObject *add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type != NULL && PyModule_AddObjectRef(module, name, type) < 0) Py_CLEAR(type);
    return (PyTypeObject *)type;
}

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "mockraft_speed._repeats", NULL, -1, NULL};

PyMODINIT_FUNC PyInit__repeats(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    if (!prepare_clock(module) || !prepare_ring(module) || !prepare_rules() || !prepare_short_way(module) ||
        !prepare_receiver(module)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
