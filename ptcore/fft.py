"""Discrete Fourier transforms under the names of ``torch.fft``: by SciPy's pocketfft, on CUDA devices by cuFFT."""
from ptcore import _lazy
from ptcore._names.fft import *
from ptcore._names.fft import __all__ as _own

__all__ = ["fftfreq", "rfftfreq", *_own]
__getattr__, __dir__ = _lazy.names("ptcore.fft")
