"""Chooses the ISA level and fills the tables of loops and kernels from it."""
import os

from ptcore._types cimport pt_kernel_entry, pt_view
from ptcore._ops.table.ids cimport register_kernels

cdef extern from "parallel.hpp":
    int pt_get_num_threads()
    void pt_set_num_threads(int)

cdef extern from "ptcore/elementwise.h" nogil:
    int pt_copy(const pt_view *dst, const pt_view *src)

cdef extern from "select.h":
    ctypedef int (*pt_enter_kernels)(const pt_kernel_entry *, int)
    int pt_select(const char *wanted, pt_enter_kernels enter) except -1
    const char *pt_chosen_level()
    int pt_built_levels()

cdef extern from *:
    """
    #if !defined(NDEBUG) || (defined(__GNUC__) && !defined(__OPTIMIZE__))
    #define PT_DEBUG 1
    #else
    #define PT_DEBUG 0
    #endif
    """
    const int PT_DEBUG


cdef int copy_views(const pt_view *dst, const pt_view *src) noexcept nogil:
    """pt_copy for other shared objects of the package."""
    return pt_copy(dst, src)


def cpu_capability():
    """The ISA level in use: "base", "v3" or "v4"."""
    return pt_chosen_level().decode()


def built_levels():
    """How many ISA levels this build has, the lowest first."""
    return pt_built_levels()


def is_debug():
    """Whether this build is to be debugged: with assertions, or not optimised."""
    return PT_DEBUG != 0


def get_num_threads():
    """How many threads large operations are split over.

    By default the least of the CPUs that affinity, cgroup quota and SLURM_CPUS_PER_TASK allow;
    PTCORE_NUM_THREADS or OMP_NUM_THREADS lower it.
    """
    return pt_get_num_threads()


def set_num_threads(int n):
    """Sets how many threads large operations are split over. Results do not depend on it.

    Raises
    ------
    RuntimeError
        If n is not positive.
    """
    if n < 1:
        raise RuntimeError(f"set_num_threads: n must be positive, got {n}")
    pt_set_num_threads(n)


cdef bytes _wanted = os.environ.get("PTCORE_CPU_CAPABILITY", "").encode()
pt_select(<const char *>_wanted if _wanted else NULL, <pt_enter_kernels>register_kernels)
