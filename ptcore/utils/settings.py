"""Settings of PyTorch that programs set: determinism, warnings, types; precision concerns CUDA.

Also queries about types, storages and the modules of devices.
"""
from ptcore import _precision
from ptcore._device import device as as_device
from ptcore._device import set_default_device
from ptcore._dtype import set_default_dtype
from ptcore._ops import checked
from ptcore._ops.creation.creation import fill_unset
from ptcore._ops.levels import set_flush_denormal as _set_flush_denormal
from ptcore._overrides import typename as typename  # pickles may name it here


def use_deterministic_algorithms(mode, *, warn_only=False) -> None:
    """Requests equal results in every run.

    Results of ptcore are equal by themselves, except sums of floats at indexed places on a CUDA device (``index_add``,
    ``scatter_add``, ``index_put`` with accumulation, the gradients of indexing, ``embedding`` and ``grid_sample``,
    weighted histograms), whose order is the hardware's. The setting makes cuDNN's results equal too. It fills memory
    without content (``ptcore.utils.deterministic``). ``max_unpool`` raises or warns, as in PyTorch.

    >>> import ptcore
    >>> ptcore.use_deterministic_algorithms(True)
    >>> ptcore.are_deterministic_algorithms_enabled()
    True
    >>> ptcore.use_deterministic_algorithms(False)
    """
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(f"use_deterministic_algorithms: {name} must be bool, got {type(value).__name__}")
    _precision.determinism["warn_only"] = warn_only
    _precision.allow("deterministic", mode)
    fill_unset(mode and _precision.determinism["fill"])


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic algorithms are requested."""
    return _precision.matmul["deterministic"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether they are requested with warnings only."""
    return _precision.determinism["warn_only"]


def set_float32_matmul_precision(precision) -> None:
    """Allows products of float32 on CUDA devices a lower precision inside; the CPU makes no use of it.

    Parameters
    ----------
    precision : {"highest", "high", "medium"}
        "high" and "medium" allow TF32, as ``backends.cuda.matmul.allow_tf32`` does.
    """
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError("set_float32_matmul_precision: precision must be one of 'highest', 'high' and 'medium', got "
                           f"{precision!r}")
    _precision.set_float32(precision)


def get_float32_matmul_precision() -> str:
    """The allowed precision, "highest" by default."""
    return _precision.words["float32"]


def set_default_tensor_type(t) -> None:
    """Sets the default dtype and device by a tensor type or its name: ``"ptcore.cuda.DoubleTensor"``.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.set_default_tensor_type(ptcore.FloatTensor)
    """
    if isinstance(t, str):
        import ptcore
        module, _, name = t.rpartition(".")
        kind = {"torch": ptcore, "ptcore": ptcore, "torch.cuda": ptcore.cuda, "ptcore.cuda": ptcore.cuda}.get(module)
        found = getattr(kind, name, None)
        if not hasattr(found, "device_type"):
            raise TypeError(f"set_default_tensor_type: t must be a type such as 'ptcore.FloatTensor', got {t!r}")
        t = found
    if not hasattr(t, "device_type"):
        raise TypeError(f"set_default_tensor_type: t must be a tensor type or its name, got {type(t).__name__}")
    set_default_dtype(t.dtype)
    set_default_device(t.device_type)


def set_flush_denormal(mode) -> bool:
    """Lets operations that this thread calls treat denormal numbers as zero, or keep them.

    Products of matrices keep to the settings of the BLAS library's own threads.

    Parameters
    ----------
    mode : bool

    Returns
    -------
    bool
        False if the processor has no such mode. x86-64 and AArch64 have it.

    Examples
    --------
    >>> import ptcore
    >>> done = ptcore.set_flush_denormal(True)
    >>> flushed = ptcore.tensor([1e-310], dtype=ptcore.float64) * 1
    >>> _ = ptcore.set_flush_denormal(False)
    >>> flushed.item() == 0 or not done
    True
    """
    if type(mode) is not bool:
        raise RuntimeError(f"set_flush_denormal: mode must be bool, got {type(mode).__name__}")
    return _set_flush_denormal(mode)


def get_num_interop_threads() -> int:
    """Returns 1: operations do not run beside each other.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.get_num_interop_threads()
    1
    """
    return 1


def set_num_interop_threads(n) -> None:
    """Takes a positive number and does nothing: operations do not run beside each other.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.set_num_interop_threads(1)
    """
    if checked.integer("set_num_interop_threads", "n", n) < 1:
        raise RuntimeError(f"set_num_interop_threads: n must be positive, got {n}")


_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode) -> None:
    """`use_deterministic_algorithms` by one word.

    Parameters
    ----------
    debug_mode : {"default", "warn", "error"} or int
        Or 0, 1 and 2.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.set_deterministic_debug_mode("warn")
    >>> ptcore.get_deterministic_debug_mode()
    1
    >>> ptcore.set_deterministic_debug_mode(0)
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError("set_deterministic_debug_mode: debug_mode must be str or int, got "
                        f"{type(debug_mode).__name__}")
    mode = _MODES.index(debug_mode) if debug_mode in _MODES else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError("set_deterministic_debug_mode: debug_mode must be one of 'default', 'warn' and 'error', or "
                           f"0, 1 and 2, got {debug_mode!r}")
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: off, on with warnings only, or on."""
    return 0 if not _precision.matmul["deterministic"] else 1 if _precision.determinism["warn_only"] else 2


_warnings = {"always": False}


def set_warn_always(b, /) -> None:
    """Has no effect: ptcore's warnings go to :mod:`warnings`, whose filters decide.

    >>> import ptcore
    >>> ptcore.is_warn_always_enabled()
    False
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"set_warn_always: b must be bool, got {type(b).__name__}")
    _warnings["always"] = b


def is_warn_always_enabled() -> bool:
    """The last value of :func:`set_warn_always`."""
    return _warnings["always"]


def is_storage(obj, /) -> bool:
    """Whether an object is the memory behind tensors.

    >>> import ptcore
    >>> ptcore.is_storage(ptcore.ones(2).untyped_storage())
    True
    """
    from ptcore._untyped_storage import is_storage
    return is_storage(obj)


def get_device_module(device=None):
    """The module of a device type; without a device, that of the accelerator, or of the CPU if there is none.

    Parameters
    ----------
    device : device or str, optional

    Examples
    --------
    >>> import ptcore
    >>> ptcore.get_device_module("cpu") is ptcore.cpu
    True
    """
    from ptcore import accelerator, cpu, cuda
    if device is None:
        found = accelerator.current_accelerator()
        kind = "cpu" if found is None else found.type
    elif isinstance(device, (str, as_device)):
        kind = as_device(device).type
    else:
        raise RuntimeError(f"get_device_module: device must be a device, str or None, got {type(device).__name__}")
    if kind not in ("cpu", "cuda"):
        raise RuntimeError(f"get_device_module: device {kind!r} has no module")
    return cpu if kind == "cpu" else cuda
