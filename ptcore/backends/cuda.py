"""Settings of products and attention on CUDA devices."""
import warnings

from ptcore import _precision

__all__ = [
    "allow_fp16_bf16_reduction_math_sdp",
    "cuFFTPlanCache",
    "cuFFTPlanCacheManager",
    "cudnn_sdp_enabled",
    "cufft_plan_cache",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed",
    "is_built",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_linalg_library",
    "sdp_kernel",
]


def is_built():
    """Whether this ptcore was built with the CUDA backend; there need be no device."""
    import importlib.util
    return importlib.util.find_spec("ptcore.cuda._backend") is not None


def _reduction(name, key):
    def get(self):
        return _precision.matmul[key]

    def set(self, value):
        parts = [value] if isinstance(value, bool) else value
        if not (isinstance(parts, (list, tuple)) and 1 <= len(parts) <= 2 and all(isinstance(x, bool) for x in parts)):
            raise TypeError(f"{name}: expected a bool, or one or two of them in a tuple, got {value!r}")
        if len(parts) == 2 and not parts[1]:
            if parts[0]:
                raise RuntimeError(f"{name}: allow_splitk=False is not supported when reduced precision reductions are "
                                   "enabled")
            raise NotImplementedError(f"{name}: sums that are cut into parts cannot be forbidden")
        _precision.allow(key, parts[0])

    return property(get, set)


class _Matmul:
    """What products of matrices on a CUDA device may do; ``backends.cuda.matmul``.

    Attributes
    ----------
    allow_tf32 : bool
        Whether products of float32 may round their operands to 10 bits, for the tensor cores. False by default;
        `set_float32_matmul_precision` sets it too.
    fp32_precision : {"none", "ieee", "tf32"}
        The same as a word.
    allow_fp16_reduced_precision_reduction, allow_bf16_reduced_precision_reduction : bool
        Whether partial sums of half and of bfloat16 products may be added in that dtype. True by default.
    allow_fp16_accumulation : bool
        Kept, and not made use of: products of half are added in float32.
    """

    __slots__ = ("_fp16_accumulation",)

    def __init__(self):
        self._fp16_accumulation = False

    @property
    def allow_tf32(self):
        return _precision.matmul["tf32"]

    @allow_tf32.setter
    def allow_tf32(self, value):
        _precision.set_float32("high" if _precision.check_bool("allow_tf32", value) else "highest")

    @property
    def fp32_precision(self):
        return _precision.words["fp32_precision"]

    @fp32_precision.setter
    def fp32_precision(self, value):
        if value not in ("none", "ieee", "tf32"):
            raise RuntimeError(f"fp32_precision: must be one of 'none', 'ieee' and 'tf32', got {value!r}")
        _precision.set_float32("high" if value == "tf32" else "highest")
        _precision.words["fp32_precision"] = value

    @property
    def allow_fp16_accumulation(self):
        return self._fp16_accumulation

    @allow_fp16_accumulation.setter
    def allow_fp16_accumulation(self, value):
        self._fp16_accumulation = _precision.check_bool("allow_fp16_accumulation", value)

    allow_fp16_reduced_precision_reduction = _reduction("allow_fp16_reduced_precision_reduction", "reduced_half")
    allow_bf16_reduced_precision_reduction = _reduction("allow_bf16_reduced_precision_reduction", "reduced_bfloat16")
    allow_fp16_reduced_precision_reduction_split_k = property(lambda self: True)
    allow_bf16_reduced_precision_reduction_split_k = property(lambda self: True)


matmul = _Matmul()


# -- linear algebra -------------------------------------------------------------------------------------------

def preferred_linalg_library(backend=None):
    """The library that decompositions and systems of equations are worked out by on CUDA devices, which is cuSOLVER.

    Parameters
    ----------
    backend : {"default", "cusolver"}, optional
        Which one to use from now on. Both are cuSOLVER; RuntimeError of "magma", which ptcore does not use.

    Returns
    -------
    str
        What was chosen last, "default" at first.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.backends.cuda.preferred_linalg_library()
    'default'
    """
    global _linalg_library
    if backend is not None:
        if not isinstance(backend, str):
            raise TypeError(f"preferred_linalg_library: backend must be a str, got {type(backend).__name__}")
        if backend == "magma":
            raise RuntimeError("preferred_linalg_library: ptcore does not use MAGMA; backend must be 'default' or "
                               "'cusolver'")
        if backend not in ("default", "cusolver"):
            raise RuntimeError(f"preferred_linalg_library: backend must be 'default' or 'cusolver', got {backend!r}")
        _linalg_library = backend
    return _linalg_library


_linalg_library = "default"


# -- plans of Fourier transforms ------------------------------------------------------------------------------

class cuFFTPlanCache:
    """The plans of cuFFT that one device keeps.

    A plan is made at the first transform of each shape, which takes milliseconds; those that were not used for longest
    are given up.

    Parameters
    ----------
    device_index : int

    Attributes
    ----------
    size : int
        How many there are.
    max_size : int
        How many there may be, 1023 unless set. ValueError if set to less than 0.
    """

    __slots__ = ("device_index",)

    def __init__(self, device_index):
        self.device_index = device_index

    def _tables(self):
        from ptcore.cuda.driver import loading
        loading.check_device(self.device_index)
        from ptcore.cuda.driver import library_tables
        return library_tables

    @property
    def size(self):
        return self._tables().plans(self.device_index)

    @property
    def max_size(self):
        return self._tables().plan_limit(self.device_index)

    @max_size.setter
    def max_size(self, value):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"cufft_plan_cache: max_size must be an int, got {type(value).__name__}")
        if not 0 <= value < 1 << 63:
            raise ValueError(f"cufft_plan_cache: max_size must be 0 or more, got {value}")
        self._tables().set_plan_limit(self.device_index, value)

    def clear(self):
        """Gives all plans up."""
        self._tables().forget_plans(self.device_index)


class cuFFTPlanCacheManager:
    """The plans of all devices; ``backends.cuda.cufft_plan_cache``.

    ``cufft_plan_cache[device]`` are those of a device; the attributes are of the current one.

    Attributes
    ----------
    size, max_size : int
        As of :class:`cuFFTPlanCache`.
    """

    __slots__ = ()

    def __getitem__(self, device):
        from ptcore.cuda.driver import loading
        return cuFFTPlanCache(loading.index_of(device, "cufft_plan_cache"))

    size = property(lambda self: self[None].size)
    max_size = property(lambda self: self[None].max_size, lambda self, value: setattr(self[None], "max_size", value))

    def clear(self):
        """Gives the plans of the current device up."""
        self[None].clear()


cufft_plan_cache = cuFFTPlanCacheManager()


# -- attention -----------------------------------------------------------------------------------------------

def flash_sdp_enabled():
    """Whether attention that keeps no matrix of scores is allowed."""
    return _precision.attention["flash"]


def enable_flash_sdp(enabled):
    """Allows attention that keeps no matrix of scores, or forbids it."""
    _precision.allow_attention(flash=_precision.check_bool("enable_flash_sdp", enabled))


def mem_efficient_sdp_enabled():
    """Whether attention of little memory is allowed."""
    return _precision.attention["mem_efficient"]


def enable_mem_efficient_sdp(enabled):
    """Allows attention of little memory, or forbids it."""
    _precision.allow_attention(mem_efficient=_precision.check_bool("enable_mem_efficient_sdp", enabled))


def math_sdp_enabled():
    """Whether attention made of products and a softmax is allowed."""
    return _precision.attention["math"]


def enable_math_sdp(enabled):
    """Allows attention made of products and a softmax, or forbids it."""
    _precision.allow_attention(math=_precision.check_bool("enable_math_sdp", enabled))


def cudnn_sdp_enabled():
    """Whether cuDNN's attention is allowed."""
    return _precision.attention["cudnn"]


def enable_cudnn_sdp(enabled):
    """Allows cuDNN's attention, or forbids it: `nn.attention.sdpa_kernel` says where it is used."""
    _precision.allow_attention(cudnn=_precision.check_bool("enable_cudnn_sdp", enabled))


_reduced_math = [False]


def fp16_bf16_reduction_math_sdp_allowed():
    """Whether attention of half types may be summed in them; it is summed in float32."""
    return _reduced_math[0]


def allow_fp16_bf16_reduction_math_sdp(enabled):
    """Allows attention of half types to be summed in them, which is not made use of."""
    _reduced_math[0] = _precision.check_bool("allow_fp16_bf16_reduction_math_sdp", enabled)


def is_flash_attention_available():
    """Whether there is a library FlashAttention for CUDA devices: always False."""
    return False


def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """Deprecated as in PyTorch: see `nn.attention.sdpa_kernel`."""
    from ptcore.nn.attention import SDPBackend, sdpa_kernel
    warnings.warn("backends.cuda.sdp_kernel is deprecated: use nn.attention.sdpa_kernel", FutureWarning, stacklevel=2)
    chosen = {SDPBackend.FLASH_ATTENTION: enable_flash, SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
              SDPBackend.MATH: enable_math, SDPBackend.CUDNN_ATTENTION: enable_cudnn}
    return sdpa_kernel([backend for backend, enabled in chosen.items() if enabled])
