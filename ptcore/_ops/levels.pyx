"""Chooses the ISA level and fills the tables of loops and kernels for it."""
import operator
import os

from ptcore._types cimport pt_call, pt_kernel_entry, pt_param, pt_view
from ptcore._ops.table.ids cimport register_kernels

cdef extern from "parallel.hpp":
    int pt_get_num_threads()
    void pt_set_num_threads(int)
    int pt_set_flush_denormal(int)

cdef extern from "loops.h" nogil:
    int pt_copy(const pt_view *dst, const pt_view *src)

cdef extern from "select.h":
    ctypedef int (*pt_enter_kernels)(const pt_kernel_entry *, int)
    int pt_select(const char *wanted, pt_enter_kernels enter) except -1
    const pt_kernel_entry *const *pt_level_kernels(const char *name)
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
    """The number of ISA levels in this build."""
    return pt_built_levels()


def level_kernels(str level):
    """{name: address} of the kernels that are compiled at an ISA level, for tests. The CPU may not have the level.

    Raises
    ------
    ValueError
        If this build has no such level.
    """
    cdef const pt_kernel_entry *const *tables = pt_level_kernels(level.encode())
    cdef const pt_kernel_entry *entry
    if tables is NULL:
        raise ValueError(f"level_kernels: this build has no level {level!r}")
    found = {}
    while tables[0] is not NULL:
        entry = tables[0]
        while entry.name is not NULL:
            found[entry.name.decode()] = <size_t>entry.kernel
            entry += 1
        tables += 1
    return found


def layouts():
    """Bytes of the structures that a kernel gets: pt_view, pt_param and pt_call."""
    return sizeof(pt_view), sizeof(pt_param), sizeof(pt_call)


def is_debug():
    """Whether this is a debug build: with assertions, or not optimised."""
    return PT_DEBUG != 0


def get_num_threads():
    """How many threads large operations are split over.

    By default the least of the CPUs that affinity, cgroup quota and SLURM_CPUS_PER_TASK allow;
    PTCORE_NUM_THREADS or OMP_NUM_THREADS lower it.
    """
    return pt_get_num_threads()


def set_num_threads(n):
    """Sets how many threads large operations are split over. Results do not depend on it.

    Raises
    ------
    RuntimeError
        If n is not positive.
    TypeError
        If n is no int.
    """
    # a parameter of C's type int would cut 1.5
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"set_num_threads: n must be int, got {type(n).__name__}")
    n = operator.index(n)
    if n < 1:
        raise RuntimeError(f"set_num_threads: n must be positive, got {n}")
    pt_set_num_threads(n)


def set_flush_denormal(bint mode):
    """Whether the processor could be told to treat denormal numbers as zero in this thread, or to keep them."""
    return pt_set_flush_denormal(mode) != 0


def _warn_of_settings():
    """Warns of variables of the environment that are set and have no effect."""
    import warnings
    wanted = os.environ.get("PTCORE_CPU_CAPABILITY", "")
    if wanted and wanted != cpu_capability():
        warnings.warn(f"PTCORE_CPU_CAPABILITY={wanted!r} is none of the levels of this build that this processor has: "
                      f"{cpu_capability()!r} is used", RuntimeWarning, stacklevel=3)
    threads = os.environ.get("PTCORE_NUM_THREADS", "")
    if threads and not (threads.strip().isdecimal() and int(threads) > 0):
        warnings.warn(f"PTCORE_NUM_THREADS={threads!r} is no positive number: it is ignored", RuntimeWarning,
                      stacklevel=3)


cdef bytes _wanted = os.environ.get("PTCORE_CPU_CAPABILITY", "").encode()
pt_select(<const char *>_wanted if _wanted else NULL, <pt_enter_kernels>register_kernels)
if "PTCORE_CPU_CAPABILITY" in os.environ or "PTCORE_NUM_THREADS" in os.environ:
    _warn_of_settings()
