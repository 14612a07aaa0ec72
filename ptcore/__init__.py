"""ptcore: tensors, autograd and neural networks for the SciPy stack.

A program written for PyTorch runs with ``import ptcore as torch``.
"""
try:
    from ptcore import _core
except ImportError as e:
    import os
    if os.path.exists(os.path.join(__path__[0], "meson.build")):
        raise ImportError(f"this is ptcore's source folder, {__path__[0]}, of which nothing is compiled; the installed "
                          "ptcore is imported from any other folder, or with `python -P`; to install it: "
                          "`pip install .`, or to work on it `pip install --no-build-isolation -e .`") from e
    raise

_core.install(_core.__file__)

from ptcore import _device, _lazy, _untyped_storage  # noqa: E402
from ptcore import _dtype as _d  # noqa: E402
from ptcore._device import device, get_default_device, set_default_device  # noqa: E402
from ptcore._dtype import can_cast, dtype, finfo, get_default_dtype, iinfo, promote_types, set_default_dtype  # noqa: E402
from ptcore._exchange import values as _values  # noqa: E402  (methods of Tensor)
from ptcore._exchange.convert import as_tensor, from_numpy, frombuffer, tensor  # noqa: E402
from ptcore._memory_format import (  # noqa: E402
    channels_last,
    channels_last_3d,
    contiguous_format,
    memory_format,
    preserve_format,
)
from ptcore._ops import levels as _levels  # noqa: E402
from ptcore._ops.call.offer import overridable as _overridable  # noqa: E402
from ptcore._ops.call.operands import result_type  # noqa: E402
from ptcore._ops.index import indexing as _indexing  # noqa: E402
from ptcore._random import (  # noqa: E402
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from ptcore._shape import Size  # noqa: E402
from ptcore._state import (  # noqa: E402
    _disabled_torch_function_impl,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from ptcore._tensor import Tensor, strided  # noqa: E402

__version__ = "0.1.0.dev0"
_builtin_bool = bool

globals().update({d.name: d for d in _d.ALL})
half, float, double, bfloat16 = float16, float32, float64, bfloat16
short, int, long = int16, int32, int64
chalf, cfloat, cdouble = complex32, complex64, complex128
bool = _d.as_dtype("bool")

_lazy.attach(Tensor)
_lazy.attach(_untyped_storage.UntypedStorage, "ptcore.UntypedStorage")

from ptcore._names import methods as _tensor_ops  # noqa: E402
from ptcore._names.root import *  # noqa: E402, F403
from ptcore._ops.creation.creation import (  # noqa: E402
    arange,
    empty,
    empty_like,
    empty_strided,
    eye,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from ptcore._ops.creation.draws import (  # noqa: E402
    bernoulli,
    normal,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
)
from ptcore._ops.levels import get_num_threads, set_num_threads  # noqa: E402
from ptcore._ops.methods import detach  # noqa: E402
from ptcore.autograd import tensor_methods as _tensor_methods  # noqa: E402


def _check_cuda(index):
    from ptcore.cuda.driver.loading import check_device
    return check_device(index)


_device.set_check("cuda", _check_cuda)


def _allocate_shared(nbytes):
    from ptcore._memory.segments import allocate
    return allocate(nbytes)


_untyped_storage.set_shared_memory(_allocate_shared)

newaxis = None
inf = _d.INF
nan = _d.NAN
pi = 3.141592653589793
e = 2.718281828459045

__getattr__, __dir__ = _lazy.names(__name__, _lazy.METHODS)


def get_include():
    """The folder of the C headers that kernels outside the package are written against."""
    return __file__.rpartition("__init__")[0] + "_ops/include"


def show_config():
    """How this ptcore was built and runs, as a text for reports and benchmarks.

    Examples
    --------
    >>> import ptcore
    >>> print(ptcore.show_config())     # doctest: +ELLIPSIS
    ptcore ...
    build: ...
    CPU level: ...
    threads: ...
    autograd: ...
    CUDA backend: ...
    """
    from ptcore._ops.levels import cpu_capability, is_debug
    from ptcore.autograd import engine
    form = "plain Python" if engine.__file__.endswith(".py") else "compiled"
    import importlib.util
    built = "built" if importlib.util.find_spec("ptcore.cuda._backend") else "not built"
    return (f"ptcore {__version__}\nbuild: {'debug' if is_debug() else 'release'}\nCPU level: {cpu_capability()}\n"
            f"threads: {get_num_threads()}\nautograd: {form}\nCUDA backend: {built}")


def is_tensor(obj):
    """Whether ``obj`` is a Tensor."""
    return isinstance(obj, Tensor)


@_overridable
def is_floating_point(input):
    """Whether a tensor's dtype is a real floating-point one."""
    return input.is_floating_point()


@_overridable
def is_complex(input):
    """Whether a tensor's dtype is complex."""
    return input.is_complex()


@_overridable
def is_nonzero(input):
    """Whether a tensor of one element is not zero."""
    if not isinstance(input, Tensor):
        raise TypeError(f"is_nonzero: input must be a Tensor, got {type(input).__name__}")
    if input.numel() != 1:
        raise RuntimeError(f"is_nonzero: input must have one element, got shape {list(input.shape)}")
    return _builtin_bool(input)


def broadcast_shapes(*shapes):
    """The shape that tensors of the given shapes (or sizes) broadcast to.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.broadcast_shapes((2, 1), (3,))
    ptcore.Size([2, 3])
    """
    from ptcore._ops.checked import integer, integers
    from ptcore._ops.table.shapes import broadcast_shapes as of
    from ptcore._shape import is_symbolic_number as kept
    shapes = [[n if kept(n) else integer("broadcast_shapes", "shapes", n) for n in s] if isinstance(s, (tuple, list))
              else integers("broadcast_shapes", "shapes", s) for s in shapes]
    for n in [n for shape in shapes for n in shape]:
        if not kept(n) and n < 0:
            raise ValueError("broadcast_shapes: Trying to create tensor with negative dimension: sizes must be "
                             f"non-negative, got {n}")
    return Size(of("broadcast_shapes", *shapes or [()]))


@_overridable
def numel(input):
    """The number of elements."""
    return input.numel()
