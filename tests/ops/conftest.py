"""The fixtures of tests that drive kernels without the library."""
from _kernels import kernels, one_blas_thread  # noqa: F401
