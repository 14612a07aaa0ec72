"""The C interface (ptcore/api.h): a table of the functions of the Cython interface, in a capsule."""
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int64_t, uint32_t

from ptcore cimport cython_ops, cython_tensor
from ptcore._dtype cimport dtype_of
from ptcore._tensor cimport Tensor
from ptcore._types cimport PT_NDTYPES, PT_STORAGE_READONLY, pt_kernel
from ptcore._ops.table import ids as _ids

cdef extern from "Python.h":
    object PyObject_Vectorcall(object, PyObject *const *, size_t, PyObject *)

cdef extern from "ptcore/api.h":
    const int PT_ABI
    const char *PT_API_CAPSULE
    ctypedef struct pt_api:
        uint32_t abi, bytes
        PyTypeObject *tensor_type
        int (*ndim)(PyObject *)
        int64_t (*numel)(PyObject *)
        const int64_t *(*sizes)(PyObject *)
        const int64_t *(*strides)(PyObject *)
        int (*dtype)(PyObject *)
        int64_t (*itemsize)(PyObject *)
        int (*device)(PyObject *)
        int (*is_contiguous)(PyObject *)
        int (*requires_grad)(PyObject *)
        void *(*data_ptr)(PyObject *)
        void *(*mutable_data_ptr)(PyObject *)
        PyObject *(*new_empty)(int, const int64_t *, int)
        PyObject *(*wrap)(void *, int, const int64_t *, const int64_t *, int, PyObject *, int)
        int (*op_id)(const char *)
        PyObject *(*call)(int, PyObject *const *, Py_ssize_t, PyObject *)
        int (*set_kernel)(int, int, pt_kernel, const char *)
        PyObject *(*dtype_object)(int)
        void *(*raw_data_ptr)(PyObject *)


cdef int op_id(const char *name) except -1:
    return _ids.op_id(name.decode())


cdef object call(int op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames):
    if not 0 <= op < _ids.n_ops():
        raise ValueError(f"call: there is no op of id {op}")
    return PyObject_Vectorcall(_ids.function_of(op), args, <size_t>nargs, kwnames)


cdef int set_kernel(int op, int device, pt_kernel kernel, const char *signature) except -1:
    return cython_ops.enter_kernel(op, device, PyCapsule_New(<void *>kernel, signature, NULL))


cdef object dtype_object(int dtype):
    if not 0 <= dtype < PT_NDTYPES:
        raise ValueError(f"dtype_object: dtype must be a code in [0, {PT_NDTYPES - 1}], got {dtype}")
    return dtype_of(dtype)


cdef void *raw_data_ptr(cython_tensor.Tensor t) except? NULL:
    if (<Tensor><object>t).storage.flags & PT_STORAGE_READONLY:
        raise RuntimeError("data_ptr: the tensor's memory is read-only: read it by way of const elements")
    return cython_tensor.data_ptr(t)


cdef pt_api functions
functions.abi, functions.bytes = PT_ABI, sizeof(pt_api)
functions.tensor_type = <PyTypeObject *>Tensor
functions.ndim = <int (*)(PyObject *) noexcept>cython_tensor.ndim
functions.numel = <int64_t (*)(PyObject *) noexcept>cython_tensor.numel
functions.sizes = <const int64_t *(*)(PyObject *) noexcept>cython_tensor.sizes
functions.strides = <const int64_t *(*)(PyObject *) noexcept>cython_tensor.strides
functions.dtype = <int (*)(PyObject *) noexcept>cython_tensor.dtype
functions.itemsize = <int64_t (*)(PyObject *) noexcept>cython_tensor.itemsize
functions.device = <int (*)(PyObject *) noexcept>cython_tensor.device
functions.is_contiguous = <int (*)(PyObject *) noexcept>cython_tensor.is_contiguous
functions.requires_grad = <int (*)(PyObject *) noexcept>cython_tensor.requires_grad
functions.data_ptr = <void *(*)(PyObject *) noexcept>cython_tensor.data_ptr
functions.mutable_data_ptr = <void *(*)(PyObject *) noexcept>cython_tensor.mutable_data_ptr
functions.new_empty = <PyObject *(*)(int, const int64_t *, int) noexcept>cython_tensor.new_empty
functions.wrap = <PyObject *(*)(void *, int, const int64_t *, const int64_t *, int, PyObject *,
                                int) noexcept>cython_tensor.wrap
functions.op_id = <int (*)(const char *) noexcept>op_id
functions.call = <PyObject *(*)(int, PyObject *const *, Py_ssize_t, PyObject *) noexcept>call
functions.set_kernel = <int (*)(int, int, pt_kernel, const char *) noexcept>set_kernel
functions.dtype_object = <PyObject *(*)(int) noexcept>dtype_object

functions.raw_data_ptr = <void *(*)(PyObject *) noexcept>raw_data_ptr

table = PyCapsule_New(&functions, PT_API_CAPSULE, NULL)
