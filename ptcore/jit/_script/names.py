"""The functions that scripted programs may call, each with a fixed name: a closed table.

Ops of rows are not in it: their rows name them.
"""
import builtins
import functools

import ptcore
from ptcore._ops.call.offer import Overridable
from ptcore._ops.history import ValueCheck
from ptcore._sizes.expressions import FUNCTIONS
from ptcore.fx import blocks
from ptcore.fx.experimental.sizes import check_guards, sym_dim, sym_size
from ptcore.fx.node import OpFunction
from ptcore.fx.operators import OPERATORS
from ptcore.jit._names import BESIDE_OPERATORS
from ptcore.jit._script import operations, schemas
from ptcore.jit._script.asynchronous import fork, wait

__all__ = ["UNSAFE", "function_named", "name_of"]

_BUILTINS = ("abs", "all", "any", "bin", "bool", "chr", "complex", "dict", "divmod", "float", "getattr", "hex", "int",
             "len", "max", "min", "oct", "ord", "print", "repr", "round", "str", "sum")
# Functions of the package that are no ops.
_TOP = ("are_deterministic_algorithms_enabled", "as_tensor", "bernoulli", "can_cast", "empty_like", "full_like",
        "get_default_device", "get_default_dtype", "get_num_threads", "initial_seed", "is_grad_enabled", "is_inference",
        "is_inference_mode_enabled", "is_signed", "is_tensor", "manual_seed", "no_grad", "enable_grad",
        "set_grad_enabled", "inference_mode", "ones_like", "promote_types", "rand_like", "randint_like", "randn_like",
        "result_type", "seed", "tensor", "zeros_like", "device", "Generator", "finfo", "iinfo")
# Functions and methods that reach out of a program: to files, to addresses, or to Python functions among their
# arguments.
UNSAFE = frozenset((
    "from_file", "numpy", "apply_", "map_", "map2_", "share_memory_", "untyped_storage", "storage", "data_ptr",
    "const_data_ptr", "register_hook", "register_post_accumulate_grad_hook", "module_load", "retain_grad", "set_",
    "pin_memory", "record_stream"))
_RESAMPLE = ("upsample", "upsample_bilinear", "upsample_nearest")


@functools.cache
def _table():
    """Two dicts: names to functions, and functions to names."""
    from ptcore._ops.creation import draws
    from ptcore._ops.index import bodies as index
    from ptcore._ops.index import decompositions as index_put
    from ptcore._ops.loss import bodies as loss
    from ptcore._ops.random import bodies as random
    from ptcore._ops.reduction import bodies as reduction
    from ptcore._ops.shaping import bodies as shaping
    from ptcore._ops.statistics import bodies as statistics
    from ptcore.autograd.profiler import record_function
    found = {f"operator.{n}": f for n, f in BESIDE_OPERATORS.items()}
    found |= {f"operator.{f.__name__}": f for o in OPERATORS.values() for f in (o.function, o.inplace) if f is not None}
    found |= {f"builtins.{n}": getattr(builtins, n) for n in _BUILTINS}
    found |= {f"math.{f.__name__}": f for f in schemas.math_schemas()}
    found |= {f"script.{n}": f for n, f in operations.NAMES.items()}
    found |= {f"block.{n}": getattr(blocks, n) for n in blocks.NAMES}
    for kind, cls in (("List", list), ("Dict", dict), ("str", str)):
        for overloads in schemas.schemas_of(kind).values():
            for s in overloads:
                if getattr(cls, s.name, None) is s.function:
                    found[f"{cls.__name__}.{s.name}"] = s.function
    found |= {f"error.{n}": e for n, e in vars(builtins).items() if isinstance(e, type) and issubclass(e, Exception)}
    found |= {f"ptcore.{n}": getattr(ptcore, n) for n in _TOP}
    found |= {f"functional.{n}": getattr(ptcore.nn.functional, n) for n in _RESAMPLE}
    found |= {f"init.{n}": f for n, f in vars(ptcore.nn.init).items() if n.endswith("_") and not n.startswith("_")}
    found |= {"script.fork": fork, "script.wait": wait, "ptcore.record_function": record_function}
    found |= {"size.size": sym_size, "size.dim": sym_dim, "size.check": check_guards}
    found |= {f"number.{n.strip('_')}": f for n, f in sorted(FUNCTIONS.items())}
    for module in (draws, index, index_put, loss, random, reduction, shaping, statistics):
        found |= {f"check.{n.removeprefix('check_')}": f for n, f in vars(module).items() if type(f) is ValueCheck}
    for head, space in _spaces().items():
        for n in dir(space):
            f = None if n.startswith("_") else getattr(space, n)
            if isinstance(f, Overridable) and n not in UNSAFE:
                found.setdefault(f"{head}.{n}", f)
    for n, cls in vars(ptcore.nn).items():          # modules whose forward Python runs
        if isinstance(cls, type) and issubclass(cls, ptcore.nn.Module) and cls.__module__.startswith("ptcore.nn."):
            found[f"library.{n}"] = cls.forward
    names = {}
    for name, f in found.items():
        names.setdefault(f, name)
    return found, names


def _spaces():
    return {"ptcore": ptcore, "functional": ptcore.nn.functional, "linalg": ptcore.linalg, "special": ptcore.special,
            "fft": ptcore.fft, "Tensor": ptcore.Tensor}


def function_named(name):
    """The function of a name, or None. Rows that were plain functions in earlier releases keep their old names."""
    found = _table()[0].get(name)
    if found is None:
        head, _, last = name.partition(".")
        row = getattr(_spaces().get(head), last, None)
        found = row if type(row) is OpFunction and last not in UNSAFE else None
    return found


def name_of(f):
    """The name of a function, or None."""
    try:
        return _table()[1].get(f)
    except TypeError:
        return None
