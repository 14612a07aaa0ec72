"""The compiled half of the backend, imported and not started."""
import importlib.util
import sys


def compiled():
    """The module ``runtime``, imported but not started: for what needs no device."""
    if importlib.util.find_spec("ptcore.cuda._backend") is None:
        raise RuntimeError("this ptcore was built without the CUDA backend")
    from ptcore.cuda import _backend
    if "ptcore.cuda.driver.runtime" not in sys.modules:
        _backend.install(_backend.__file__)
    try:
        from ptcore.cuda.driver import runtime
    except ModuleNotFoundError as e:
        raise RuntimeError(f"the package of {e.name!r} is missing: pip install 'ptcore[cuda13]'") from None
    return runtime
