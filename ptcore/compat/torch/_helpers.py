"""Private functions of ``torch.optim``, ``torch.autograd`` and ``torch.utils`` that programs use."""
import collections
import contextlib
import functools
import warnings
from collections.abc import Iterable
from typing import Any

from ptcore import Tensor, get_default_dtype, is_complex, set_grad_enabled, view_as_real
from ptcore import float32 as _float32
from ptcore import float64 as _float64
from ptcore.autograd.function import Function
from ptcore.utils.data._utils import collate as _collate

__all__ = []

_Any = Any                              # annotations use it for values of any type
_shape_t = int | list[int] | tuple[int, ...]

# -- optimisers ---------------------------------------------------------------------------------------------

ParamsT = Iterable
_params_doc = _foreach_doc = _fused_doc = _capturable_doc = _differentiable_doc = _maximize_doc = ""


def _use_grad_for_differentiable(func):
    """Wraps a step so that it is recorded only if the option ``differentiable`` is set."""
    @functools.wraps(func)
    def step(self, *args, **kwargs):
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return func(self, *args, **kwargs)
    return step


def _get_value(x):
    """A tensor of one element as a number."""
    return x.item() if isinstance(x, Tensor) else x


_to_scalar = _get_value


def _stack_if_compiling(x):
    """Returns its argument; only PyTorch's compiler needs another form."""
    return x


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """(fused, foreach) as a program's default: both False, since neither is faster here than a loop."""
    return False, False


def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    """A decorator that leaves functions unchanged."""
    return lambda func: func


def _view_as_real(params, *state_and_grads):
    """Replaces complex tensors in the lists by real views."""
    for i, p in enumerate(params):
        if is_complex(p):
            for tensors in (params, *state_and_grads):
                tensors[i] = view_as_real(tensors[i])


def _get_scalar_dtype(is_fused=None):
    """The dtype of step counters."""
    return _float64 if not is_fused and get_default_dtype() == _float64 else _float32


def _device_dtype_check_for_fused(p, cuda_unsupported=False):
    """Raises for a parameter that fused steps do not support."""
    if not p.dtype.is_floating_point:
        raise RuntimeError(f"`fused=True` requires all the params to be floating point Tensors, got {p.dtype}")


def _get_capturable_supported_devices(supports_xla=True):
    """Types of devices whose steps can be captured, by PyTorch's names."""
    return ["cuda"]


@contextlib.contextmanager
def _enable_get_lr_call(o):
    """A context in which a scheduler's ``get_lr`` may be called."""
    yield o


EPOCH_DEPRECATION_WARNING = ("The epoch parameter in `scheduler.step()` was not necessary and is being deprecated "
                             "where possible. Please use `scheduler.step()` to step the scheduler.")

# -- data ---------------------------------------------------------------------------------------------------

default_collate_err_msg_format = ("default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
                                  "found {}")


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    """Arrays as one tensor."""
    return _collate.collate_numpy(batch, collate_fn_map)


collate_numpy_scalar_fn = collate_numpy_array_fn


class _DatasetKind:
    """The kinds of data sets, by number."""

    Map, Iterable = 0, 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        """The fetcher for a kind of data set."""
        from ptcore.compat.torch import _fetch
        made = _fetch._MapDatasetFetcher if kind == _DatasetKind.Map else _fetch._IterableDatasetFetcher
        return made(dataset, auto_collation, collate_fn, drop_last)


# -- autograd and checkpoints -------------------------------------------------------------------------------

class InplaceFunction(Function):
    """A function that may write into its input; it says so by ``ctx.mark_dirty``, as every function does."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


def detach_variable(inputs):
    """Tensors without their history, and with gradients of their own."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs):
    """Warns where no tensor of the inputs has a gradient."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def is_namedtuple(obj):
    """Whether a value is a tuple with names."""
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def arg_tree_leaves(*args, **kwargs):
    """The leaves of the arguments of a call."""
    from ptcore.utils._pytree import tree_leaves
    return [*tree_leaves(args), *tree_leaves(kwargs)]


# -- others -------------------------------------------------------------------------------------------------

counters = collections.defaultdict(collections.Counter)         # counts of PyTorch's compiler, which stay empty
MP_STATUS_CHECK_INTERVAL = 5.0


class SourceChangeWarning(Warning):
    """PyTorch's warning that the source of a saved module has changed; ptcore saves no source."""


def _str(self, *, tensor_contents=None):
    """A tensor as text."""
    return repr(self)


def replace_all_batch_norm_modules_(root):
    """Removes the running statistics of all batch norms in a module, which then normalise by the batch alone."""
    from ptcore.nn.modules.batchnorm import _BatchNorm
    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
