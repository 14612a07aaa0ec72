"""The fixtures of tests that drive kernels without the library."""
from _kernels import kernels, objects, one_blas_thread  # noqa: F401
