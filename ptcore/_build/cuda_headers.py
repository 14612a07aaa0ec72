"""Prints the folder of CUDA's headers that belongs to cuda.bindings of this environment; nothing where either is absent.

From the place of cuda.bindings itself: a search by name can find the headers of an outer environment.
"""
import importlib.util
from pathlib import Path

try:
    spec = importlib.util.find_spec("cuda.bindings.cydriver")
except ModuleNotFoundError:
    spec = None
if spec is not None:
    include = Path(spec.origin).resolve().parents[2] / "nvidia" / "cu13" / "include"
    if all((include / name).exists() for name in ("cuda.h", "nvrtc.h", "cudaProfiler.h", "crt")):
        print(include)
