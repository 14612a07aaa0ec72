/* A module in C11 over ptcore/api.h. */
#define PY_SSIZE_T_CLEAN
#include <ptcore/api.h>

static PyObject *total(PyObject *self, PyObject *t) {
    (void)self;
    if (!pt_is_tensor(t))
        return PyErr_Format(PyExc_TypeError, "total: expected a Tensor, got %s",
                            Py_TYPE(t)->tp_name);
    if (pt_dtype_of(t) != PT_FLOAT64 || pt_ndim(t) != 1)
        return PyErr_Format(PyExc_TypeError, "total: expected 1 dim of float64");
    const double *x = (const double *)pt_data_ptr(t);
    if (!x && PyErr_Occurred()) return NULL;
    double sum = 0;
    for (int64_t i = 0; i < pt_sizes(t)[0]; i++) sum += x[i * pt_strides(t)[0]];
    return PyFloat_FromDouble(sum);
}
static PyObject *ramp(PyObject *self, PyObject *n) {
    (void)self;
    const int64_t size = PyLong_AsLongLong(n);
    if (size == -1 && PyErr_Occurred()) return NULL;
    PyObject *t = pt_new_empty(1, &size, PT_INT32);
    if (!t) return NULL;
    int32_t *x = (int32_t *)pt_mutable_data_ptr(t);
    for (int64_t i = 0; i < size; i++) x[i] = (int32_t)i;
    return t;
}
static PyObject *softmax(PyObject *self, PyObject *t) {
    (void)self;
    PyObject *dim = PyLong_FromLong(-1), *names = Py_BuildValue("(s)", "dim"), *args[2] = {t, dim},
             *result = NULL;
    const int id = pt_op_id("softmax");
    if (id >= 0) result = pt_call_op(id, args, 1, names);
    Py_DECREF(dim);
    Py_DECREF(names);
    return result;
}
static PyObject *over(PyObject *self, PyObject *bytes) {
    (void)self;
    const int64_t size = PyBytes_GET_SIZE(bytes) / 8;
    return pt_wrap(PyBytes_AS_STRING(bytes), 1, &size, NULL, PT_FLOAT64, bytes, 1);
}
static PyObject *dtype(PyObject *self, PyObject *code) {
    (void)self;
    return pt_dtype_object((int)PyLong_AsLong(code));
}
static int ten(pt_call *call) {
    for (int64_t i = 0; i < call->out[0].numel; i++) ((double *)call->out[0].data)[i] = 10;
    return PT_OK;
}
static PyObject *enter(PyObject *self, PyObject *name) {
    (void)self;
    const int id = pt_op_id(PyUnicode_AsUTF8(name));
    if (id < 0 || pt_set_kernel(id, PT_CPU, ten) < 0) return NULL;
    Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"total", total, METH_O, NULL},
                                {"ramp", ramp, METH_O, NULL},
                                {"softmax", softmax, METH_O, NULL},
                                {"over", over, METH_O, NULL},
                                {"dtype", dtype, METH_O, NULL},
                                {"enter", enter, METH_O, NULL},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "plain", NULL, -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_plain(void) { return pt_import() < 0 ? NULL : PyModule_Create(&definition); }
