from ptcore._types cimport uint8_t

cdef class dtype:
    cdef readonly str name
    cdef readonly str kind          # NumPy's letter: b i u f c (bfloat16, float8: f)
    cdef readonly int itemsize
    cdef int code

cdef enum:
    N_DTYPES = 21                   # PT_NDTYPES of kernel.h, as a size that Cython knows

# Indexed by dtype code.
cdef list DTYPES
cdef int[N_DTYPES] ITEMSIZE
cdef int[N_DTYPES] CATEGORY               # 0 bool, 1 integral, 2 floating, 3 complex
cdef uint8_t[N_DTYPES][N_DTYPES] PROMOTE      # 255: no dtype, see `promote`
cdef uint8_t[N_DTYPES] REAL_OF            # complex64 -> float32; others themselves
cdef uint8_t[N_DTYPES] COMPLEX_OF         # 255: none, see `complex_of`

cdef dtype dtype_of(int code)
cdef int as_code(object value, const char *op, const char *arg) except -1
cdef int promote(int a, int b) except -1
cdef int complex_of(int code) except -1
cdef str word_of(int code)
cdef int warn_of_complex32() except -1
cdef int default_float() noexcept nogil
cdef int default_complex() noexcept nogil
