"""Module, the base class of neural networks.

(a) ``_parameters``, ``_buffers`` and ``_modules`` are plain dicts and the only place of what they hold. ``__getattr__``
    finds it, so a class's own ``__getattr__`` is asked first; it is in C (see ``_attributes.h``).
(b) Assignment and registration keep a name in at most one of the three and in the instance's ``__dict__``.
(c) A call without hooks makes one test and calls ``forward`` (see ``module_hooks``).
"""

import sys

import ptcore
from ptcore import Tensor, _lazy
from ptcore.__future__ import get_overwrite_module_params_on_conversion, get_swap_module_params_on_conversion
from ptcore._overrides import typename
from ptcore._watching import when_profiled
from ptcore.nn.modules._attributes import getattr_of
from ptcore.nn.modules._state_dict import ModuleState, is_tensor_like
from ptcore.nn.modules._state_dict import _IncompatibleKeys as _IncompatibleKeys
from ptcore.nn.modules.module_hooks import (
    ModuleHooks,
    forget_tables,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    run_registration_hooks,
    take_hooks,
)
from ptcore.nn.parameter import Buffer, Parameter, is_lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

REGISTRIES = ("_parameters", "_buffers", "_modules")
_ABSENT = object()


def _indent(text, spaces):
    return text.replace("\n", "\n" + " " * spaces)


def parse_to(args, kwargs):
    """(device, dtype, non_blocking, memory_format) of the three forms of :meth:`Module.to`."""
    names = ("device", "dtype", "non_blocking", "copy", "memory_format", "tensor")
    for name in kwargs:
        if name not in names:
            raise TypeError(f"to() got an unexpected keyword argument '{name}'")
    given = dict(kwargs)
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        given["tensor"] = rest.pop(0)
        order = ["non_blocking", "copy"]
    elif rest and isinstance(rest[0], ptcore.dtype):
        order = ["dtype", "non_blocking", "copy"]
    else:
        order = ["device", "dtype", "non_blocking", "copy"]
    if len(rest) > len(order):
        raise TypeError(
            f"to() takes at most {len(order)} positional arguments, got {len(rest)}"
        )
    for name, value in zip(order, rest, strict=False):
        if name in given:
            raise TypeError(f"to() got multiple values for argument '{name}'")
        given[name] = value

    if "copy" in given:
        raise RuntimeError("to() of a module does not accept the argument copy")
    device, dtype = given.get("device"), given.get("dtype")
    if "tensor" in given:
        device, dtype = given["tensor"].device, given["tensor"].dtype
    if device is not None:
        device = ptcore.device(device)
    if dtype is not None and not isinstance(dtype, ptcore.dtype):
        raise TypeError(f"to(): dtype must be a ptcore.dtype, got {typename(dtype)}")
    return device, dtype, bool(given.get("non_blocking", False)), given.get("memory_format")


def _keeps_identity(tensor, applied):
    """True if `applied` is to become the data of `tensor` in place."""
    if get_overwrite_module_params_on_conversion():
        return False
    return applied is tensor or (isinstance(applied, Tensor) and not is_lazy(applied)
                                 and tensor.is_meta == applied.is_meta)


def swap_parameters(module, fn):
    """Lets a module's parameters, and their gradients, exchange what they hold with what a conversion makes of them."""
    from ptcore._swapping import exchange, owners_of

    def swap(tensor, place, *args):
        with ptcore.no_grad():
            made = fn(tensor)
        made = Parameter(made, *args) if args else made.requires_grad_(tensor.requires_grad)
        try:
            exchange(tensor, made, [*owners, made])
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {module._get_name()}.{place}") from error

    params = {name: param for name, param in module._parameters.items() if param is not None}
    grads = {name: param.grad for name, param in params.items() if param.grad is not None}
    owners = owners_of([*params.values(), *grads.values()])
    for name, param in params.items():
        grad = grads.get(name)
        param.grad = None               # a gradient that belongs to a tensor cannot be exchanged
        try:
            swap(param, name, param.requires_grad)
            if grad is not None:
                swap(grad, f"{name}.grad")
        finally:                        # of an exchange that is refused, too
            param.grad = grad


class Module(ModuleHooks, ModuleState):
    """Base class of neural network modules.

    Subclasses call ``super().__init__()``, assign parameters and submodules as
    attributes, which registers them, and define ``forward``.

    Attributes
    ----------
    training : bool
        True in training mode, False in evaluation mode.

    Examples
    --------
    >>> import ptcore
    >>> class Net(ptcore.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = ptcore.nn.Linear(4, 3)
    ...
    ...     def forward(self, x):
    ...         return self.hidden(x).relu()
    >>> Net()
    Net(
      (hidden): Linear(in_features=4, out_features=3, bias=True)
    )
    """

    dump_patches = False
    call_super_init = False
    # Attributes that PyTorch keeps and that properties give here: a state has them, the dict has not.
    _torch_computed = ()
    # Attributes that earlier versions of PyTorch did not keep, with what their absence means.
    _torch_later = ()

    def __init__(self, *args, **kwargs):
        if not self.call_super_init and (args or kwargs):
            name = type(self).__name__
            if kwargs:
                raise TypeError(
                    f"{name}.__init__() got an unexpected keyword argument "
                    f"'{next(iter(kwargs))}'"
                )
            raise TypeError(
                f"{name}.__init__() takes 1 positional argument but "
                f"{len(args) + 1} were given"
            )
        own = self.__dict__
        super().__setattr__("training", True)   # a class may have a property of this name
        for registry in REGISTRIES:
            own[registry] = {}
        own["_non_persistent_buffers_set"] = set()
        if "_hooks" in own:                 # those of an earlier call
            forget_tables(own)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    if TYPE_CHECKING:
        forward: Callable[..., Any]
    else:
        def forward(self, *input):
            """Compute the result of a call; every subclass defines it."""
            raise NotImplementedError(
                f'Module [{type(self).__name__}] is missing the required "forward" function'
            )

    def __call__(self, *args, **kwargs) -> "Any":
        try:
            if self._hooks is None:
                return self.forward(*args, **kwargs) if kwargs else self.forward(*args)
            return self._call_impl(*args, **kwargs)
        except Exception as error:
            note_path(error, self)
            raise

    if TYPE_CHECKING:
        def compile(self, *args: Any, **kwargs: Any) -> None: ...

    @property
    def _compiled_call_impl(self):
        """PyTorch's name of what :meth:`compile` has made: here the ``forward`` of the instance, or None."""
        forward = self.__dict__.get("forward")
        return forward if hasattr(forward, "_compiled") else None

    @_compiled_call_impl.setter
    def _compiled_call_impl(self, value):
        if value is not None:
            raise AttributeError("_compiled_call_impl can be set to None alone, use compile")
        if self._compiled_call_impl is not None:
            del self.__dict__["forward"]

    # Registration and attributes

    def _check_new_name(self, kind, name, registry):
        if registry not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in self.__dict__[registry] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name, param):
        """Add the parameter `param` (a :class:`Parameter` or None) as `name`.

        Raises
        ------
        KeyError
            If the name is taken, empty or contains a dot.
        TypeError
            If `param` is neither a Parameter nor None.
        ValueError
            If `param` is not a leaf.
        """
        self._check_new_name("parameter", name, "_parameters")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(ptcore.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model "
                    f"parameters must be created explicitly. To express '{name}' as a "
                    "function of another Tensor, compute the value in the forward() "
                    "method."
                )
            param = run_registration_hooks("parameter", self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        """Add the buffer `tensor` (a tensor or None) as `name`.

        Parameters
        ----------
        name : str
            Attribute name.
        tensor : Tensor or None
            State that is not a parameter.
        persistent : bool, default: True
            Whether the buffer is part of :meth:`state_dict`.
        """
        self._check_new_name("buffer", name, "_buffers")
        if tensor is not None and not is_tensor_like(tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(ptcore Tensor or None required)"
            )
        self._buffers[name] = run_registration_hooks("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name, module):
        """Add the child `module` (a :class:`Module` or None) as `name`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_new_name("module", name, "_modules")
        self._modules[name] = run_registration_hooks("module", self, name, module)

    def register_module(self, name, module):
        """Alias of :meth:`add_module`."""
        self.add_module(name, module)

    def _forget_name(self, name, keep):
        """Remove `name` from the instance's dict and from all registries except `keep`."""
        own = self.__dict__
        own.pop(name, None)
        for registry in REGISTRIES:
            if registry != keep:
                own[registry].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __setattr__(self, name, value):
        own = self.__dict__
        parameters = own.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget_name(name, keep="_parameters")
            self.register_parameter(name, value)
            return
        if parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as parameter '{name}' "
                                "(ptcore.nn.Parameter or None expected)")
            self.register_parameter(name, None)
            return
        modules = own.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget_name(name, keep="_modules")
            modules[name] = run_registration_hooks("module", self, name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as child module '{name}' "
                                "(ptcore.nn.Module or None expected)")
            modules[name] = run_registration_hooks("module", self, name, None)
        elif name in own.get("_buffers", ()) or isinstance(value, Buffer):
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _set_buffer(self, name, value):
        if value is not None and not is_tensor_like(value):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' "
                "(ptcore.nn.Buffer, ptcore.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        method = self.register_buffer
        if getattr(method, "__func__", None) is not Module.register_buffer:
            from inspect import signature
            if "persistent" not in signature(method).parameters:
                if not persistent:
                    raise RuntimeError(f"{type(self).__name__}: a non-persistent buffer cannot be registered, since "
                                       "register_buffer of this class has no argument persistent")
                method(name, value)
                return
        method(name, value, persistent)

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...

    def __delattr__(self, name):
        for registry in REGISTRIES:
            table = getattr(self, registry)
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self):
        keys = {*dir(type(self)), *self.__dict__}
        for registry in REGISTRIES:
            keys.update(self.__dict__.get(registry, ()))
        return sorted(k for k in keys if not k[:1].isdigit())

    def __getstate__(self):
        state = self.__dict__.copy()
        if hasattr(state.get("forward"), "_compiled"):
            del state["forward"]
        return state

    def __setstate__(self, state):
        own = self.__dict__
        state = dict(state)
        take_hooks(state, own)
        # Unlike the keys of a pickle, interned ones are found by identity.
        own.update((sys.intern(key) if type(key) is str else key, value) for key, value in state.items())
        own.setdefault("_non_persistent_buffers_set", set())
        for name in type(self)._torch_computed:
            own.pop(name, None)
        for cls in type(self).__mro__:
            for name, value in cls.__dict__.get("_torch_later", ()):
                if name not in own:
                    own[name] = value
        # In files of earlier versions, what a class's own ``__getstate__`` took from ``__dict__`` has entries twice.
        for registry in REGISTRIES:
            for name, value in own.get(registry, {}).items():
                if own.get(name, _ABSENT) is value:
                    del own[name]

    # Look-up by dotted name

    def get_submodule(self, target):
        """Return the submodule with the dotted name `target` ("" is self)."""
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Put `module` in the place of the submodule named `target`.

        With `strict` the submodule must exist already.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        parent_name, _, name = target.rpartition(".")
        parent = self.get_submodule(parent_name)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        if not isinstance(module, Module):
            raise ValueError(
                f"`module` is not an nn.Module, found {type(module).__name__}"
            )
        setattr(parent, name, module)

    def _get_member(self, target, registry, what):
        parent_name, _, name = target.rpartition(".")
        parent = self.get_submodule(parent_name)
        if not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if name not in getattr(parent, registry):
            raise AttributeError(f"`{name}` is not {what}")
        return getattr(parent, name)

    def get_parameter(self, target):
        """Return the parameter with the dotted name `target`."""
        return self._get_member(target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target):
        """Return the buffer with the dotted name `target`."""
        return self._get_member(target, "_buffers", "a buffer")

    # Iteration

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Iterate over (name, module) of this module and everything below it."""
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, below, remove_duplicate)

    def modules(self, remove_duplicate=True):
        """Iterate over this module and everything below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self):
        """Iterate over (name, module) of the direct children, each once."""
        memo = set()
        for name, module in self._modules.items():
            if module is not None and module not in memo:
                memo.add(module)
                yield name, module

    def children(self):
        """Iterate over the direct children, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self, get_members_fn, prefix="", recurse=True, remove_duplicate=True
    ):
        memo = set()
        modules = [(prefix, self)]
        if recurse:
            modules = self.named_modules(
                prefix=prefix, remove_duplicate=remove_duplicate
            )
        for module_prefix, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in memo:
                    continue
                if remove_duplicate:
                    memo.add(value)
                yield (f"{module_prefix}.{name}" if module_prefix else name), value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Iterate over (name, parameter).

        Parameters
        ----------
        prefix : str, default: ""
            Put before every name.
        recurse : bool, default: True
            Also those of all submodules.
        remove_duplicate : bool, default: True
            Yield a shared parameter once only.

        Examples
        --------
        >>> import ptcore
        >>> [name for name, _ in ptcore.nn.Linear(2, 1).named_parameters()]
        ['weight', 'bias']
        """
        return self._named_members(
            lambda module: module._parameters.items(),
            prefix=prefix, recurse=recurse, remove_duplicate=remove_duplicate,
        )

    def parameters(self, recurse=True):
        """Iterate over the parameters, each once."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Iterate over (name, buffer); arguments as :meth:`named_parameters`."""
        return self._named_members(
            lambda module: module._buffers.items(),
            prefix=prefix, recurse=recurse, remove_duplicate=remove_duplicate,
        )

    def buffers(self, recurse=True):
        """Iterate over the buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    # Modes and gradients

    def train(self, mode=True):
        """Set training mode (or evaluation mode if `mode` is False) everywhere."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Set evaluation mode in this module and everything below it."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Set ``requires_grad`` of all parameters."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Drop the gradients of all parameters, or fill them with zeros."""
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if param.grad.grad_fn is not None:
                    param.grad.detach_()
                else:
                    param.grad.requires_grad_(False)
                param.grad.zero_()

    def apply(self, fn):
        """Call ``fn(module)`` on every submodule, then on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # Conversion

    def _apply(self, fn, recurse=True):
        """Replace every parameter, gradient and buffer ``t`` by ``fn(t)``.

        A parameter keeps its identity where its data can be exchanged in place.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        if get_swap_module_params_on_conversion():
            swap_parameters(self, fn)
            params = {}
        else:
            params = self._parameters
        for name, param in params.items():
            if param is None:
                continue
            grad = param.grad
            with ptcore.no_grad():
                applied = fn(param)
                grad_applied = None if grad is None else fn(grad)
            if _keeps_identity(param, applied):
                if grad is not None:
                    param.grad = None  # the dtype and device of a gradient must match the data's
                param.data = applied
            else:
                param = Parameter(applied, param.requires_grad)
                self._parameters[name] = param
            if grad is not None:
                if _keeps_identity(grad, grad_applied):
                    grad.data = grad_applied
                    param.grad = grad
                else:
                    param.grad = grad_applied.requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                applied = fn(buffer)
                if is_lazy(buffer) and not is_lazy(applied):        # the buffer still waits for its shape
                    applied = type(buffer)(False, applied.device, applied.dtype, buffer.persistent)
                self._buffers[name] = applied
        return self

    def to(self, *args, **kwargs):
        """Move and cast the parameters and buffers in place.

        ``to(device=None, dtype=None, non_blocking=False)``,
        ``to(dtype, non_blocking=False)``, ``to(tensor, non_blocking=False)``, ``to(memory_format=channels_last)``.
        Only floating and complex tensors change their dtype, and only those of 4 or 5 dimensions their memory format.

        Raises
        ------
        TypeError
            If the dtype is neither floating nor complex.

        Examples
        --------
        >>> import ptcore
        >>> ptcore.nn.Linear(2, 1).to(ptcore.float64).weight.dtype
        ptcore.float64
        """
        device, dtype, non_blocking, memory_format = parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got "
                f"desired dtype={dtype}"
            )

        def convert(t):
            casts = t.is_floating_point() or t.is_complex()
            return t.to(
                device=device,
                dtype=dtype if casts else None,
                non_blocking=non_blocking,
                memory_format=memory_format if t.ndim in (4, 5) else ptcore.preserve_format,
            )

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True):
        """Move to `device` without copying the values."""
        return self._apply(lambda t: ptcore.empty_like(t, device=device), recurse=recurse)

    def _cast_floating(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self):
        """Cast floating parameters and buffers to float32."""
        return self._cast_floating(ptcore.float32)

    def double(self):
        """Cast floating parameters and buffers to float64."""
        return self._cast_floating(ptcore.float64)

    def half(self):
        """Cast floating parameters and buffers to float16."""
        return self._cast_floating(ptcore.float16)

    def bfloat16(self):
        """Cast floating parameters and buffers to bfloat16."""
        return self._cast_floating(ptcore.bfloat16)

    def type(self, dst_type):
        """Cast all parameters and buffers to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self):
        """Move to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None):
        """Move to a CUDA device."""
        return self._apply(lambda t: t.cuda(device))

    def share_memory(self):
        """Move parameters and buffers into shared memory."""
        return self._apply(lambda t: t.share_memory_())

    # Text

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """Text shown in the brackets of the representation."""
        return ""

    def __repr__(self):
        text = self.extra_repr()
        extra = text.split("\n") if text else []
        children = [
            f"({name}): {_indent(repr(module), 2)}"
            for name, module in self._modules.items()
        ]
        if not children and len(extra) == 1:
            return f"{self._get_name()}({extra[0]})"
        lines = extra + children
        body = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{self._get_name()}({body})"


Module.__getattr__ = getattr_of(Module)
_lazy.attach(Module, "ptcore.nn.Module")             # compile


def note_path(error, module):
    """Adds a note to an error: the path below `module` at which it arose. Each enclosing module extends the path."""
    inner, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code is Module.__call__.__code__:
            seen = step.tb_frame.f_locals
            inner = seen["self"]
            if type(seen) is dict:  # before 3.13 the frame keeps this copy, and the error in it would keep the frame
                seen.pop("error", None)
        step = step.tb_next
    path = next((name for name, m in module.named_modules() if m is inner), None)
    if path is None:  # the module is no part of this model
        return
    notes = getattr(error, "__notes__", [])
    if notes and notes[-1].startswith("in module "):
        del notes[-1]
    place = f"{path!r} ({type(inner).__name__}) of " if path else ""
    error.add_note(f"in module {place}{type(module).__name__}")


@when_profiled
def _record_calls(begins):
    """Lets calls of modules be recorded as events of a profile; instances of a class are numbered as they appear."""
    from ptcore.autograd import recording
    from ptcore.autograd.ranges import exchange
    if not recording.modules:
        return
    seen = {}

    def label(self):
        numbers = seen.setdefault(type(self), {})
        return f"nn.Module: {type(self).__name__}_{numbers.setdefault(id(self), len(numbers))}"
    exchange(begins, Module, "__call__", label, recording.MODULE)
