"""Optimizer, the base class of optimisers.

(a) ``param_groups`` is a list of dictionaries. ``group["params"]`` is a list of leaf tensors, each in one group only;
all other entries are options. (b) ``state`` maps a parameter (by identity) to its dictionary. Nothing else is kept
between steps, so changes of either by hand take effect. (c) ``state_dict`` numbers the parameters through all groups in
order and holds no reference to them.
"""

from collections import OrderedDict, defaultdict
from copy import deepcopy
from functools import wraps
from itertools import chain
from types import MappingProxyType

import ptcore
from ptcore import Tensor
from ptcore._errors import AbsentKeyError, ShapeError
from ptcore._ops.optimizers import optimizers
from ptcore._overrides import refuse_tensors_of_others
from ptcore._watching import when_profiled
from ptcore.utils.hooks import RemovableHandle

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

_HOOK_TABLES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)
_global_step_pre_hooks = OrderedDict()
_global_step_post_hooks = OrderedDict()


class _RequiredParameter:
    """The default of an option that every group must set."""

    def __repr__(self):
        return "<required parameter>"


required = _RequiredParameter()


def _add_hook(table, hook, prepend=False):
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook):
    """Register ``hook(optimizer, args, kwargs)`` before every optimiser's step."""
    return _add_hook(_global_step_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Register ``hook(optimizer, args, kwargs)`` after every optimiser's step."""
    return _add_hook(_global_step_post_hooks, hook)


def _with_hooks(step):
    """Wrap a class's `step` so that it runs the step hooks."""

    @wraps(step)
    def wrapper(self, *args, **kwargs):
        if not (
            self._optimizer_step_pre_hooks
            or self._optimizer_step_post_hooks
            or _global_step_pre_hooks
            or _global_step_post_hooks
        ):
            return step(self, *args, **kwargs) if args or kwargs else step(self)     # the latter is faster
        if type(self).step is not wrapper:  # called by a subclass's step, which runs the hooks
            return step(self, *args, **kwargs)
        if _profiled is None:
            return _step_with_hooks(step, self, args, kwargs)
        with _profiled(f"Optimizer.step#{type(self).__name__}.step"):
            return _step_with_hooks(step, self, args, kwargs)

    return wrapper


def _step_with_hooks(step, self, args, kwargs):
    args = (self, *args)
    for hook in chain(_global_step_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
        changed = hook(self, args, kwargs)
        if changed is None:
            continue
        if not (isinstance(changed, tuple) and len(changed) == 2):
            raise RuntimeError(
                f"{step.__qualname__}: a step pre-hook must return None or a "
                f"tuple of (new_args, new_kwargs), but got {changed}."
            )
        args, kwargs = changed
    result = step(*args, **kwargs)
    for hook in chain(self._optimizer_step_post_hooks.values(), _global_step_post_hooks.values()):
        hook(self, args, kwargs)
    return result


_profiled = None            # makes the range of a step, while a profile is on


def _one_element(name, value):
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ShapeError(f"Invalid {name}: a Tensor must be 1-element, got shape {list(value.shape)}")


def check_nonnegative(**values):
    """Raise for an option that is no number (TypeError), negative, NaN or of several elements (ValueError)."""
    for name, value in values.items():
        _one_element(name, value)
        if not isinstance(value, (int, float, Tensor)) and not hasattr(value, "__float__"):
            raise TypeError(f"Invalid {name}: expected a number, got {value!r}")
        if not value >= 0:
            raise ValueError(f"Invalid {name}: {value}")


def check_betas(betas):
    """Raise unless betas are two numbers, or two tensors of one element, in [0, 1)."""
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise TypeError(f"Invalid betas: expected two numbers, got {betas!r}")
    if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
        raise ValueError(f"Invalid betas: they must be either both floats or both Tensors, got {betas!r}")
    for i, beta in enumerate(betas):
        _one_element(f"beta parameter at index {i}", beta)
        if not isinstance(beta, (int, float, Tensor)):
            raise TypeError(f"Invalid beta parameter at index {i}: expected a number, got {beta!r}")
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def counter_dtype(fused=False):
    """The dtype of counters: float32, or float64 where that is the default dtype and the step is not `fused`."""
    return ptcore.float64 if ptcore.get_default_dtype() is ptcore.float64 and not fused else ptcore.float32


def check_implementation(name, foreach, fused, differentiable):
    """Check the flags that choose among PyTorch's implementations.

    ptcore has one implementation, as fast as a fused one; a recorded step runs as ops.
    """
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if fused and differentiable:
        raise RuntimeError(f"{name}: `fused` does not support `differentiable`")


class Optimizer:
    """Base class of all optimisers.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        Parameters to optimise; dictionaries define groups with their own options.
    defaults : dict
        Options of groups that do not give their own.

    Notes
    -----
    A subclass defines :meth:`step`, reads the options from each group and keeps the state of a parameter `p` in
    ``self.state[p]``.
    """

    # Names of tensors of the parameter's shape in its state. "step", a number that must exist, is the only other entry.
    _buffers = ()
    # Numbers that are loaded unchanged; other state is cast to the dtype of its parameter.
    _counters = ("step",)
    # For an object that never called __init__, such as a wrapper that passes everything to another optimiser.
    _optimizer_step_pre_hooks = _optimizer_step_post_hooks = MappingProxyType({})

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])

    def __init__(self, params, defaults):
        self.defaults = defaults
        for name in _HOOK_TABLES:
            setattr(self, name, OrderedDict())
        if isinstance(params, Tensor) or not hasattr(params, "__iter__"):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of "
                f"Tensors or dicts, but got {type(params).__name__}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __getstate__(self):
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in _HOOK_TABLES:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join(lines) + "\n)"

    def register_step_pre_hook(self, hook):
        """Register ``hook(optimizer, args, kwargs)``, run before :meth:`step`.

        It may return a new ``(args, kwargs)``; `args` begins with the optimiser.
        """
        return _add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Register ``hook(optimizer, args, kwargs)``, run after :meth:`step`."""
        return _add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Register ``hook(optimizer)``, run before :meth:`state_dict`."""
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Register ``hook(optimizer, state_dict) -> None or state_dict``."""
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Register ``hook(optimizer, state_dict) -> None or state_dict``."""
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Register ``hook(optimizer)``, run after :meth:`load_state_dict`."""
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def state_dict(self):
        """Return the state as plain data.

        Returns
        -------
        dict
            ``state``: number of a parameter to its state; ``param_groups``: the
            groups with numbers in place of parameters.

        Examples
        --------
        >>> import ptcore
        >>> w = ptcore.nn.Parameter(ptcore.zeros(2))
        >>> ptcore.optim.SGD([w], lr=0.5).state_dict()["param_groups"][0]["params"]
        [0]
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        number, first = {}, 0
        for group in self.param_groups:
            # As in PyTorch, positions that a repeated parameter takes are counted, and it has the last of its group.
            number |= {id(p): i for i, p in enumerate(group["params"], first) if id(p) not in number}
            first += len(group["params"])
        result = {
            "state": {
                number[id(k)] if isinstance(k, Tensor) else k: v
                for k, v in self.state.items()
            },
            "param_groups": [
                {
                    **{k: v for k, v in group.items() if k != "params"},
                    "params": [number[id(p)] for p in group["params"]],
                }
                for group in self.param_groups
            ],
        }
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    def load_state_dict(self, state_dict):
        """Restore the options and the state in `state_dict`.

        Parameters
        ----------
        state_dict : dict
            As returned by :meth:`state_dict` of an optimiser with groups of the
            same sizes. Floating state is cast to its parameter's dtype and device.

        Raises
        ------
        ValueError
            If the number of groups or of their parameters differs, or the state of a
            parameter lacks a tensor or holds one of another shape than the parameter.
        """
        if not isinstance(state_dict, dict):
            raise TypeError(f"load_state_dict: state_dict must be a dict, got {type(state_dict).__name__}")
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed

        groups = self.param_groups
        for key, kind in (("param_groups", list), ("state", dict)):
            if not isinstance(state_dict.get(key), kind):
                raise ValueError(
                    f"load_state_dict: state_dict[{key!r}] must be a {kind.__name__}, got "
                    + (type(state_dict[key]).__name__ if key in state_dict else "none")
                )
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups: "
                f"expected {len(groups)}, got {len(saved_groups)}"
            )
        for i, (group, saved) in enumerate(zip(groups, saved_groups, strict=True)):
            if not isinstance(saved, dict) or not isinstance(saved.get("params"), list):
                raise ValueError(f"load_state_dict: param_groups[{i}] must be a dict with a list 'params'")
            if len(group["params"]) != len(saved["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match "
                    f"the size of optimizer's group: group {i} has "
                    f"{len(group['params'])} parameters, got {len(saved['params'])}"
                )
        param_of = dict(
            zip(
                chain.from_iterable(g["params"] for g in saved_groups),
                chain.from_iterable(g["params"] for g in groups),
                strict=True,
            )
        )
        names = dict(
            zip(param_of, chain.from_iterable(g.get("param_names", ()) for g in groups), strict=False)
        )
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in param_of:
                self._check_state(f"parameter {names.get(key, key)!r}", param_of[key], value)
                state[param_of[key]] = _as_state(param_of[key], value, self._counters)
            else:
                state[key] = value
        for group, saved in zip(groups, saved_groups, strict=True):
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _check_state(self, who, param, state):
        """Refuse a saved state that a step of `param` could not use."""
        if self._buffers and not isinstance(state, dict):
            raise ValueError(
                f"load_state_dict: the state of {who} must be a dict, got {type(state).__name__}"
            )
        for name in self._buffers:
            value = state.get(name)
            if value is None:
                if name == "step" and state:
                    raise ValueError(
                        f"load_state_dict: the state of {who} must hold {name!r}, got "
                        f"{sorted(map(str, state))}"
                    )
                continue
            expected = () if name == "step" else param.shape
            if not isinstance(value, Tensor):
                if name == "step" and hasattr(value, "__float__"):
                    continue
                raise ValueError(
                    f"load_state_dict: {name!r} of {who} must be a Tensor, got {type(value).__name__}"
                )
            if value.shape != expected:
                raise ValueError(
                    f"load_state_dict: {name!r} of {who} must have shape {list(expected)}, got "
                    f"{list(value.shape)}"
                )

    def zero_grad(self, set_to_none=True):
        """Drop the gradients of all parameters, or fill them with zeros."""
        if set_to_none:
            for group in self.param_groups:
                optimizers.drop_grads(group["params"])
            return
        grads = []
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.grad_fn is not None:
                    p.grad.detach_()
                else:
                    p.grad.requires_grad_(False)
                grads.append(p.grad)
        optimizers.zero_(grads)

    def step(self, closure=None):
        """Update the parameters; every optimiser defines it.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients anew and returns the loss.

        Returns
        -------
        object
            The closure's result, or None.
        """
        raise NotImplementedError

    @staticmethod
    def _run_closure(closure):
        if closure is None:
            return None
        with ptcore.enable_grad():
            return closure()

    @staticmethod
    def _with_grad(group):
        """Lists of the parameters that have a gradient, and of the gradients."""
        return optimizers.with_grad(group["params"])

    def add_param_group(self, param_group):
        """Add a group of parameters with its own options.

        Parameters
        ----------
        param_group : dict
            ``params`` and options.

        Raises
        ------
        TypeError
            If it is no dictionary, or holds something that is no tensor.
        ValueError
            If a parameter is no leaf, stands in another group already, or a
            required option is missing.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        if "params" not in param_group:
            raise AbsentKeyError(f"param_group must have a key 'params', got {sorted(map(str, param_group))}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but "
                "the ordering of tensors in sets will change between runs. Please use "
                "a list instead."
            )
        params = [params] if isinstance(params, Tensor) else list(params)
        named = [isinstance(p, tuple) for p in params]
        if any(named):
            if not all(named):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param "
                    "names are missing"
                )
            param_group["param_names"] = [p[0] for p in params]
            params = [p[1] for p in params]
        param_group["params"] = params
        for p in params:
            if not isinstance(p, Tensor):
                refuse_tensors_of_others(type(self).__name__, [p])
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    f"{type(p).__name__}"
                )
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization "
                    f"parameter {name}"
                )
            param_group.setdefault(name, default)
        if len({id(p) for p in params}) != len(params):
            import warnings

            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in "
                "future, this will cause an error",
                stacklevel=3,
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if not known.isdisjoint(map(id, params)):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in param_group) != (
            "param_names" in self.param_groups[0]
        ):
            raise ValueError(
                "all optimizer param groups should be with/without names: expected "
                f"{'names' if 'param_names' in self.param_groups[0] else 'no names'}"
            )
        self.param_groups.append(param_group)


def _as_state(param, value, counters, key=None):
    """`value` of a saved state, with tensors except counters made to match `param`."""
    if isinstance(value, Tensor):
        if key in counters:
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {k: _as_state(param, v, counters, k) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return type(value)(_as_state(param, v, counters) for v in value)
    return value


@when_profiled
def _record_steps(begins):
    """Lets steps and ``zero_grad`` be recorded as ranges of a profile; an empty hook selects the path of hooks."""
    global _profiled
    from ptcore.autograd.profiler import record_function
    from ptcore.autograd.ranges import exchange
    exchange(begins, Optimizer, "zero_grad", lambda self: f"Optimizer.zero_grad#{type(self).__name__}.zero_grad")
    if begins:
        _profiled = record_function
        _global_step_pre_hooks["profile"] = lambda optimizer, args, kwargs: None
    else:
        _profiled = None
        _global_step_pre_hooks.pop("profile", None)
