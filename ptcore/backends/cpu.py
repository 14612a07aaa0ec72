"""The CPU's instruction sets."""
__all__ = ["get_cpu_capability"]


def get_cpu_capability():
    """The level of instructions that kernels were chosen for: ``"DEFAULT"``, ``"AVX2"`` or ``"AVX512"``."""
    from ptcore._ops.levels import cpu_capability
    return {"v3": "AVX2", "v4": "AVX512"}.get(cpu_capability(), "DEFAULT")
