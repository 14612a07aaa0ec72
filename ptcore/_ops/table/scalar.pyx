"""C functions of numbers as kernels: a LowLevelCallable ``double (double, ...)`` is called for each element."""
cimport cython
from libc.stdint cimport int64_t

from ptcore._gil cimport PyThreadState, release_gil, restore_gil
from ptcore._types cimport *
from ptcore._tensor cimport *

ctypedef double (*of_one)(double) noexcept nogil
ctypedef double (*of_two)(double, double) noexcept nogil
ctypedef double (*of_three)(double, double, double) noexcept nogil
# The signatures that Cython exports for cpdef functions, with the argument __pyx_skip_dispatch.
ctypedef double (*of_one_skipped)(double, int) noexcept nogil
ctypedef double (*of_two_skipped)(double, double, int) noexcept nogil
ctypedef double (*of_three_skipped)(double, double, double, int) noexcept nogil


def kernel_of(str op, kernel):
    """A LowLevelCallable as a kernel: a Python callable if it is a function of numbers, else itself.

    Raises
    ------
    TypeError
        If it is a function of other types than ``double``.
    """
    signature = getattr(kernel, "signature", None)
    if not isinstance(kernel, tuple) or not isinstance(signature, str) or "pt_call" in signature:
        return kernel
    result, _, rest = signature.partition("(")
    types = [t.strip() for t in rest.rstrip(") ").split(",")]
    skipped = len(types) > 1 and types[-1].startswith("int")        # int __pyx_skip_dispatch
    if skipped:
        types.pop()
    if result.strip() != "double" or not 1 <= len(types) <= 3 or any([t.split()[:1] != ["double"] for t in types]):
        raise TypeError(f"register_kernel: a LowLevelCallable for {op!r} must be of one to three doubles, "
                        f"'double (double, ...)', or of a pt_call, got {signature!r}")
    return ScalarKernel(kernel, len(types), skipped)


cdef size_t address_in(object kernel) except 0:
    """The address in the first field of a LowLevelCallable, a capsule whose name is the signature."""
    cdef object capsule = tuple.__getitem__(kernel, 0)
    return <size_t>PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))


cdef extern from "Python.h":
    void *PyCapsule_GetPointer(object, const char *) except NULL
    const char *PyCapsule_GetName(object) except? NULL


cdef void call_each(size_t f, bint skipped, int64_t n, const double *x, const double *y, const double *z,
                    double *out) noexcept nogil:
    """Calls a function of one to three numbers for each element."""
    cdef int64_t i
    if y == NULL:
        for i in range(n):
            out[i] = (<of_one_skipped>f)(x[i], 0) if skipped else (<of_one>f)(x[i])
    elif z == NULL:
        for i in range(n):
            out[i] = (<of_two_skipped>f)(x[i], y[i], 0) if skipped else (<of_two>f)(x[i], y[i])
    else:
        for i in range(n):
            out[i] = (<of_three_skipped>f)(x[i], y[i], z[i], 0) if skipped else (<of_three>f)(x[i], y[i], z[i])


@cython.binding(False)                  # so that methods check their self
cdef class ScalarKernel:
    """A kernel that calls a C function for each element, in double precision and without the GIL."""
    cdef object kept
    cdef size_t address
    cdef int count
    cdef bint skipped

    def __cinit__(self, kernel, int count, bint skipped):
        self.address, self.count, self.skipped, self.kept = address_in(kernel), count, skipped, kernel

    def __call__(self, *args, out):
        given = [x for x in args if isinstance(x, Tensor)]
        if len(given) != self.count or not isinstance(out, Tensor):
            raise TypeError(f"the C function takes {self.count} numbers, and the op has {len(given)} tensors")
        for x in given:
            if (<Tensor>x).is_complex():
                raise TypeError(f"the C function takes real numbers, and a tensor has dtype {x.dtype.name}")
        given = [x.to("float64").expand(out.shape).contiguous() for x in given]
        whole = out
        if (<Tensor>out).dt != PT_FLOAT64 or not out.is_contiguous():
            whole = out.new_empty(out.shape, dtype="float64")
        self.run(given, <Tensor>whole)
        if whole is not out:
            out.copy_(whole)

    cdef int run(self, list given, Tensor out) except -1:
        cdef const double *x = <const double *>address(<Tensor>given[0])
        cdef const double *y = <const double *>address(<Tensor>given[1]) if self.count > 1 else NULL
        cdef const double *z = <const double *>address(<Tensor>given[2]) if self.count > 2 else NULL
        cdef double *to = <double *>address(out)
        cdef int64_t n = out.count
        cdef size_t f = self.address
        cdef bint skipped = self.skipped
        cdef PyThreadState *held = release_gil(True)
        call_each(f, skipped, n, x, y, z, to)
        restore_gil(held)
        return 0
