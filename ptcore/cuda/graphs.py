"""Graphs of CUDA, which are absent: the names may stand in annotations, and raise when they are called."""

__all__ = ["CUDAGraph", "graph"]


class CUDAGraph:
    """Absent: kernels are launched one by one.

    Raises
    ------
    NotImplementedError
    """

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("CUDAGraph: absent; graphs of CUDA are not captured")


class graph:
    """Absent: see :class:`CUDAGraph`.

    Raises
    ------
    NotImplementedError
    """

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("cuda.graph: absent; graphs of CUDA are not captured")
