"""Wrong calls of classes and methods beside torch's: modules as they are made and as they are called, schedules, and
methods of Tensor. {name: Case}, from the tables of valid calls."""
import inspect

import _module_table
import torch
from _call_table import Call, T, given, of, parameters, ramp

import ptcore as pt


class Case:
    """A valid call: ``make(lib)`` gives its arguments, ``call(lib, *args, **kwargs)`` what is compared."""

    def __init__(self, make, call, values=True):
        self.make, self.call, self.values = make, call, values


# -- modules -------------------------------------------------------------------------------------

RANDOM = ("Dropout", "AlphaDropout", "FeatureAlphaDropout", "RReLU", "Fractional", "Lazy", "Transformer")
# Inputs of three spatial dims are small: a stride of 100 makes millions of elements of them.
SMALL = {(2, 4, 6, 6, 6): (1, 4, 2, 2, 2), (2, 4, 4, 4, 4): (1, 4, 2, 2, 2)}
PLACES = pt.zeros(1, 4, 2, 2, 2, dtype=pt.int64)
SETTINGS = {
    **{name: {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
       for name in ("RNN", "GRU")},
    "LSTM": {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False,
             "proj_size": 0},
    "Identity": {}, "NLLLoss2d": {}, "Transformer": {"dropout": 0.0, "norm_first": False, "batch_first": False},
}
# What an argument that is None by default is when it is given.
GIVEN = {"MaxPool": {"stride": 1}, "AvgPool": {"stride": 1, "divisor_override": 2}, "LPPool": {"stride": 1},
         "EmbeddingBag": {"padding_idx": 1}, "Embedding": {"padding_idx": 1, "max_norm": 1.0},
         "CrossEntropyLoss": {"weight": T(5)}, "NLLLoss": {"weight": T(5)}, "MultiMarginLoss": {"weight": T(5)},
         "BCELoss": {"weight": T(5)}, "BCEWithLogitsLoss": {"weight": T(5), "pos_weight": T(5)},
         "MultiLabelSoftMarginLoss": {"weight": T(5)}, "MultiheadAttention": {"kdim": 4, "vdim": 4}}
FACTORY = ("Linear", "Conv2d", "BatchNorm1d", "LSTM", "Embedding", "PReLU")      # dtype and device go one way in all


def settings(name, args):
    """The arguments of a constructor: those of the table, the others by name with their defaults."""
    if name in SETTINGS:
        rest = dict(SETTINGS[name])
        return rest.pop("args", args), rest
    parameters = inspect.signature(getattr(torch.nn, name)).parameters.values()
    more = {}
    for prefix in [prefix for prefix in GIVEN if name.startswith(prefix)]:
        more = GIVEN[prefix]
    named = list(parameters)[len(args):]
    rest = {p.name: more.get(p.name, p.default) for p in named
            if p.default is not p.empty and not p.name.startswith("_") and (
                p.name not in ("device", "dtype", "process_group", "options") or name in FACTORY)}
    if name.startswith("Transformer"):
        rest.update(dropout=0.0, activation="relu")
        rest = {key: x for key, x in rest.items() if not key.startswith("custom")}
    return args, rest


def carried(x, lib):
    """An input of the table of modules in a library."""
    if isinstance(x, pt.Tensor) and tuple(x.shape) in SMALL:
        x = PLACES                      # of what max_unpool3d puts back
    if isinstance(x, pt.Tensor):
        return lib.tensor(x.tolist(), dtype=getattr(lib, x.dtype.name))
    return ramp(lib, SMALL.get(x, x)) if isinstance(x, tuple) else x


def settled(module, lib):
    """The module with weights that are the same in both libraries."""
    if not hasattr(module, "has_uninitialized_params"):
        with lib.no_grad():
            for x in [*module.parameters(), *module.buffers()]:
                if x.is_floating_point() and not x.is_meta:
                    x.copy_(ramp(lib, tuple(x.shape), "float64").abs() + 0.1)
    return module


def modules():
    for name, (args, inputs) in _module_table.MODULES.items():
        args, rest = settings(name, args)
        if name == "FractionalMaxPool3d":
            inputs = [(2, 4, 5, 5, 5)]
        values = not name.startswith(RANDOM)

        def made(lib, *args, name=name, **kwargs):
            return settled(getattr(lib.nn, name)(*args, **kwargs), lib)

        def constructed(lib, *args, made=made, inputs=inputs, **kwargs):
            return made(lib, *args, **kwargs)(*[carried(x, lib) for x in inputs])

        def called(lib, *inputs, made=made, args=args, **kwargs):
            return made(lib, *[of(x, lib) for x in args])(*inputs, **kwargs)

        yield f"nn.{name}", Case(given(*args, **rest), constructed, values)
        yield f"nn.{name}()", Case(lambda lib, inputs=inputs: ([carried(x, lib) for x in inputs], {}), called, values)


# -- schedules -----------------------------------------------------------------------------------

OPTIMIZER = Call(lambda lib: lib.optim.SGD(parameters(lib, (2,)), lr=0.5, momentum=0.9))
HALF = Call(lambda lib: lambda epoch: 0.5 ** epoch)


def half_after_one(lib):
    optimizer = lib.optim.SGD(parameters(lib, (2,)), lr=0.5)
    schedule = lib.optim.lr_scheduler
    return [optimizer, [schedule.ConstantLR(optimizer, 0.5, 2), schedule.ExponentialLR(optimizer, 0.9)], [1]], {
        "last_epoch": -1}


def chained(lib):
    optimizer = lib.optim.SGD(parameters(lib, (2,)), lr=0.5)
    schedule = lib.optim.lr_scheduler
    return [[schedule.ConstantLR(optimizer, 0.5, 2), schedule.ExponentialLR(optimizer, 0.9)]], {"optimizer": optimizer}


SCHEDULES = {
    "ChainedScheduler": chained, "SequentialLR": half_after_one,
    "ConstantLR": given(OPTIMIZER, factor=0.5, total_iters=2, last_epoch=-1),
    "CosineAnnealingLR": given(OPTIMIZER, 3, eta_min=0.0, last_epoch=-1),
    "CosineAnnealingWarmRestarts": given(OPTIMIZER, 2, T_mult=1, eta_min=0.0, last_epoch=-1),
    "CyclicLR": given(OPTIMIZER, 0.1, 0.5, step_size_up=2, step_size_down=None, mode="triangular", gamma=1.0,
                      scale_fn=None, scale_mode="cycle", cycle_momentum=True, base_momentum=0.8, max_momentum=0.9,
                      last_epoch=-1),
    "ExponentialLR": given(OPTIMIZER, 0.9, last_epoch=-1), "LRScheduler": given(OPTIMIZER, last_epoch=-1),
    "LambdaLR": given(OPTIMIZER, HALF, last_epoch=-1), "MultiplicativeLR": given(OPTIMIZER, HALF, last_epoch=-1),
    "LinearLR": given(OPTIMIZER, start_factor=0.3, end_factor=1.0, total_iters=3, last_epoch=-1),
    "MultiStepLR": given(OPTIMIZER, [1, 3], gamma=0.1, last_epoch=-1),
    "OneCycleLR": given(OPTIMIZER, 0.5, total_steps=6, epochs=None, steps_per_epoch=None, pct_start=0.3,
                        anneal_strategy="cos", cycle_momentum=True, base_momentum=0.85, max_momentum=0.95,
                        div_factor=25.0, final_div_factor=1e4, three_phase=False, last_epoch=-1),
    "PolynomialLR": given(OPTIMIZER, total_iters=3, power=1.0, last_epoch=-1),
    "ReduceLROnPlateau": given(OPTIMIZER, mode="min", factor=0.1, patience=1, threshold=1e-4, threshold_mode="rel",
                               cooldown=0, min_lr=0, eps=1e-8),
    "StepLR": given(OPTIMIZER, 2, gamma=0.1, last_epoch=-1),
}


def rates(schedule, *steps):
    """The learning rates after some steps."""
    found = []
    optimizer = schedule.optimizer
    for step in steps:
        optimizer.step()
        schedule.step(*step)
        found.append([(group["lr"], group.get("momentum")) for group in optimizer.param_groups])
    return found


def schedules():
    for name, make in SCHEDULES.items():
        plateau = name == "ReduceLROnPlateau"

        def steps(lib, *args, name=name, plateau=plateau, **kwargs):
            schedule = getattr(lib.optim.lr_scheduler, name)(*args, **kwargs)
            return rates(schedule, *[(1.0,) if plateau else ()] * 4)

        yield f"optim.lr_scheduler.{name}", Case(make, steps)

        def step(lib, *step, name=name, make=make, **kwargs):
            args, more = make(lib)
            schedule = getattr(lib.optim.lr_scheduler, name)(*args, **more)
            schedule.optimizer.step()
            schedule.step(*step, **kwargs)
            return [group["lr"] for group in schedule.optimizer.param_groups]

        if name not in ("ChainedScheduler", "SequentialLR", "LRScheduler"):     # they take no epoch
            yield f"optim.lr_scheduler.{name}.step", Case(given(1.0, epoch=2) if plateau else given(epoch=2), step)


# -- methods of Tensor ---------------------------------------------------------------------------

X, LEAF, ONE = T(2, 3), T(2, 3, grad=True), T(1)
METHODS = {
    "to": [given(X, "cpu", dtype=None, non_blocking=False, copy=True, memory_format=None),
           given(X, Call(lambda lib: lib.float64), False, True), given(X, T(2, dtype="int64"), False, True)],
    "type": [given(X, dtype=Call(lambda lib: lib.float64), non_blocking=False)], "type_as": [given(X, T(2))],
    "float": [given(X, memory_format=Call(lambda lib: lib.preserve_format))], "cpu": [given(X)],
    **{f"new_{name}": [given(X, (2, 2), dtype=None, device=None, requires_grad=False)] for name in (
        "empty", "ones", "zeros")},
    "new_full": [given(X, (2, 2), 1.5, dtype=None, requires_grad=False)],
    "new_tensor": [given(X, [1, 2], dtype=None, device=None, requires_grad=False)],
    "new_empty_strided": [given(X, (2, 2), (2, 1), dtype=None)], "new": [given(X, 2, 3)],
    "register_hook": [given(LEAF, Call(lambda lib: lambda g: g * 2))],
    "register_post_accumulate_grad_hook": [given(LEAF, Call(lambda lib: lambda x: None))],
    "backward": [given(T(2, grad=True), T(2), retain_graph=False, create_graph=False, inputs=None)],
    "requires_grad_": [given(X, True)], "retain_grad": [given(LEAF)],
    "set_": [given(X, T(4)), given(X, Call(lambda lib: ramp(lib, (6,)).untyped_storage()), 1, (2, 2), (2, 1))],
    "resize_": [given(X, 2, 2), given(X, (3, 2), memory_format=Call(lambda lib: lib.contiguous_format))],
    "resize_as_": [given(X, T(3, 2))], "numpy": [given(X, force=True)], "tolist": [given(X)], "item": [given(ONE)],
    "expand": [given(T(1, 3), 2, 3), given(T(1, 3), (2, -1))], "expand_as": [given(T(1, 3), X)],
    "view": [given(X, 3, 2), given(X, (-1, 2)), given(X, Call(lambda lib: lib.int32))],
    "view_as": [given(X, T(3, 2))], "reshape": [given(X, 3, 2), given(X, (-1, 2))], "reshape_as": [given(X, T(3, 2))],
    "permute": [given(X, 1, 0), given(X, (1, 0))], "repeat": [given(X, 2, 1), given(X, (2, 1))],
    "share_memory_": [given(X)], "is_shared": [given(X)], "stride": [given(X, 0), given(X)], "size": [given(X, 0)],
    "__getitem__": [given(X, 0), given(X, (0, slice(1, 3))), given(X, [0, 1]), given(X, T(2, dtype="int64")),
                    given(X, MASK := T(2, 3, dtype="bool")), given(X, (Ellipsis, None, 1))],
    "__setitem__": [given(X, 0, 1.5), given(X, (0, slice(1, 3)), T(2)), given(X, MASK, 2.0),
                    given(X, T(2, dtype="int64"), T(2, 3))],
    "__contains__": [given(X, 1.0)], "__len__": [given(X)], "__bool__": [given(ONE)], "__int__": [given(ONE)],
    "__float__": [given(ONE)], "__complex__": [given(ONE)], "__index__": [given(T(1, dtype="int64"))],
    "__format__": [given(T(), ".2f")], "element_size": [given(X)], "numel": [given(X)],
    "dim": [given(X)], "ndimension": [given(X)], "storage_offset": [given(X)], "nelement": [given(X)],
    "is_contiguous": [given(X, memory_format=Call(lambda lib: lib.contiguous_format))],
    "contiguous": [given(X, memory_format=Call(lambda lib: lib.contiguous_format))],
    "as_strided": [given(X, (2, 2), (2, 1), 1)], "as_strided_": [given(X, (2, 2), (2, 1), 1)],
    "detach": [given(LEAF)], "detach_": [given(X)], "copy_": [given(X, T(2, 3), non_blocking=False)],
    "fill_": [given(X, 1.0)], "zero_": [given(X)], "unflatten": [given(X, 1, (3, 1))], "get_device": [given(X)],
    "is_same_size": [given(X, T(2, 3))], "is_floating_point": [given(X)], "is_complex": [given(X)],
    "apply_": [given(X, Call(lambda lib: lambda x: x + 1))],
    "map_": [given(X, X, Call(lambda lib: lambda x, y: x * y))],
    "where": [given(X, MASK, T(2, 3))], "nonzero": [given(X, as_tuple=True)], "masked_select": [given(X, MASK)],
    "squeeze_": [given(T(1, 3), 0)], "unsqueeze_": [given(X, 0)], "transpose_": [given(X, 0, 1)], "t_": [given(X)],
    "split": [given(T(4, 3), 2, dim=0), given(T(4, 3), [1, 3], dim=0)], "norm": [given(X, 2.0, 1, keepdim=False)],
    "unique": [given(X, sorted=True, return_inverse=True, return_counts=False, dim=None)],
    "unique_consecutive": [given(X, return_inverse=True, return_counts=False, dim=None)],
    "stft": [given(T(16), 8, hop_length=4, win_length=8, window=T(8), center=True, pad_mode="reflect",
                   normalized=False, onesided=True, return_complex=True)],
    "random_": [given(X, 0, 5)], "uniform_": [given(X, 0.0, 1.0)], "normal_": [given(X, 0.0, 1.0)],
    "bernoulli_": [given(X, 0.5)], "exponential_": [given(X, 1.0)], "geometric_": [given(X, 0.5)],
    "cauchy_": [given(X, 0.0, 1.0)], "log_normal_": [given(X, 0.0, 1.0)], "index_put_": [
        given(X, (T(2, dtype="int64"),), T(2, 3), accumulate=False)],
    "__deepcopy__": [given(X, Call(lambda lib: {}))], "__array__": [given(X)], "dim_order": [given(X)],
    "untyped_storage": [given(X)], "is_set_to": [given(X, X)], "sum_to_size": [given(X, 1, 3)],
    "is_nonzero": [given(ONE)], "module_load": [given(X, T(2, 3), assign=False)],
}
IN_PLACE = ("__setitem__", "backward", "retain_grad")
UNKNX = ("new_empty", "new", "resize_", "resize_as_", "random_", "uniform_", "normal_", "bernoulli_", "exponential_",
           "geometric_", "cauchy_", "log_normal_", "set_", "untyped_storage", "new_empty_strided")


def methods():
    for name, made in METHODS.items():
        def call(lib, *args, name=name, **kwargs):
            got = getattr(lib.Tensor, name)(*args, **kwargs)
            if name in ("register_hook", "register_post_accumulate_grad_hook"):
                (args[0] * 2).sum().backward()
            if name in ("untyped_storage", "is_shared", "data_ptr"):
                return None
            return [got if isinstance(got, lib.Tensor) else None, args[0], args[0].grad] if name in IN_PLACE else (
                args[0].grad if name.startswith("register") else got)

        for k, make in enumerate(made):
            yield f"Tensor.{name}" + (f" {k}" if k else ""), Case(make, call, name not in UNKNX)


CASES = {**dict(modules()), **dict(schedules()), **dict(methods())}
