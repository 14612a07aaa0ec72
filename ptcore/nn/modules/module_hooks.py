"""Hooks of modules: their tables, registration and the call that runs them.

A module without hooks has ``_hooks = None`` (a class attribute), the only test in a call. The tables are made at the
first registration, or at the first use of one of their PyTorch names (``_forward_hooks`` and so on). They stand in the
module's dict, as in PyTorch, so that a copy of the dict shares them and an entry of the dict can be replaced;
``_hooks`` is True beside them. Hooks for all modules live in ``global_state.table``. The first of them sets that class
attribute to an empty table, so that every call takes the path with hooks; so does a class with its own ``_call_impl``.
"""

from collections import OrderedDict

from ptcore import Tensor
from ptcore._errors import warn
from ptcore.utils.hooks import BackwardHook, RemovableHandle

TABLES = (
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_backward_pre_hooks",
    "_backward_hooks",
    "_state_dict_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class HookTables:
    """Hook tables of all modules; each maps a handle's id to a callable. Earlier versions pickled those of a module."""

    def __init__(self):
        for name in TABLES:
            setattr(self, name, OrderedDict())
        self._is_full_backward_hook = None


class WrappedHook:
    """What PyTorch's files have in the place of a hook that runs before a state is loaded."""

    hook, with_module, module = None, False, None

    def unwrapped(self):
        """The hook as it stands in the tables here."""
        return _LoadPreHook(self.hook, self.module) if self.with_module else self.hook


def make_tables(own):
    """Puts the tables of hooks that are not there into a module's dict."""
    for name in TABLES:
        if name not in own:
            own[name] = OrderedDict()
    own.setdefault("_is_full_backward_hook", None)
    own["_hooks"] = True


def forget_tables(own):
    """Takes the tables of hooks out of a module's dict."""
    for name in (*TABLES, "_is_full_backward_hook", "_hooks"):
        own.pop(name, None)


def take_hooks(state, own):
    """Leaves out the tables of hooks of a module's state, and of its dict, if all that the state has are empty."""
    items = list(state.items())
    state.clear()
    for name, value in items:
        if name == "_hooks":
            state.update(vars(value) if type(value) is HookTables else {})
            value = True
        state[name] = value
    tables = {name: state[name] for name in TABLES if name in state}
    if state.get("_is_full_backward_hook") is None and not any(tables.values()):
        forget_tables(state)
        if tables and "_hooks" in own:
            forget_tables(own)
        return
    for table in tables.values():
        for key, hook in table.items():
            if type(hook) is WrappedHook:
                table[key] = hook.unwrapped()
    # A handle that is made later has none of their numbers.
    RemovableHandle.next_id = max([RemovableHandle.next_id, *(
        key + 1 for table in tables.values() for key in table if type(key) is int)])
    make_tables(state)


class _GlobalState:
    """Hooks that apply to every module of the process."""

    def __init__(self):
        self.table = None
        self.registration = {
            "parameter": OrderedDict(),
            "buffer": OrderedDict(),
            "module": OrderedDict(),
        }

    def tables(self):
        if self.table is None:
            self.table = HookTables()
            ModuleHooks._hooks = _NO_TABLES
        return self.table


global_state = _GlobalState()
_NO_TABLES = HookTables()


def tables_of(module):
    """What has the tables of a module's own hooks."""
    return module if module._hooks is True else _NO_TABLES


def has_hooks(module):
    """Whether a call of a module runs anything beside its forward."""
    if type(module)._call_impl is not ModuleHooks._call_impl:
        return True
    tables = (tables_of(module), global_state.table or _NO_TABLES)
    return any(getattr(t, name) for t in tables for name in TABLES if "state_dict" not in name)


def _add(tables, name, hook, *, prepend=False, flags=()):
    """Put `hook` into the table `name`; `flags` are (table name, wanted)."""
    hooks = getattr(tables, name)
    handle = RemovableHandle(
        hooks, extra_dict=[getattr(tables, flag) for flag, _ in flags]
    )
    hooks[handle.id] = hook
    for flag, wanted in flags:
        if wanted:
            getattr(tables, flag)[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _add_backward(tables, hook, full, prepend=False):
    if tables._is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks on a "
            "single Module. Please use only one of them."
        )
    tables._is_full_backward_hook = full
    return _add(tables, "_backward_hooks", hook, prepend=prepend)


def register_module_forward_pre_hook(hook):
    """Register ``hook(module, args)`` before the forward of every module."""
    return _add(global_state.tables(), "_forward_pre_hooks", hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Register ``hook(module, args, output)`` after every module's forward."""
    flags = (
        ("_forward_hooks_with_kwargs", with_kwargs),
        ("_forward_hooks_always_called", always_call),
    )
    return _add(global_state.tables(), "_forward_hooks", hook, flags=flags)


def register_module_backward_hook(hook):
    """Register a hook on the last node of every module's forward (deprecated).

    See `Module.register_backward_hook`.
    """
    return _add_backward(global_state.tables(), hook, full=False)


def register_module_full_backward_pre_hook(hook):
    """Register ``hook(module, grad_output)`` for every module."""
    return _add(global_state.tables(), "_backward_pre_hooks", hook)


def register_module_full_backward_hook(hook):
    """Register ``hook(module, grad_input, grad_output)`` for every module."""
    return _add_backward(global_state.tables(), hook, full=True)


def _register_registration(kind, hook):
    table = global_state.registration[kind]
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


def register_module_parameter_registration_hook(hook):
    """Register ``hook(module, name, param)``, run when a parameter is added."""
    return _register_registration("parameter", hook)


def register_module_buffer_registration_hook(hook):
    """Register ``hook(module, name, buffer)``, run when a buffer is added."""
    return _register_registration("buffer", hook)


def register_module_module_registration_hook(hook):
    """Register ``hook(module, name, submodule)``, run when a module is added."""
    return _register_registration("module", hook)


def run_registration_hooks(kind, module, name, value):
    """Pass `value` through the registration hooks of `kind`."""
    for hook in global_state.registration[kind].values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


class _LoadPreHook:
    """State-dict pre-hook that gets its module as an argument; can be pickled."""

    def __init__(self, hook, module):
        import weakref

        if module is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self.hook = hook
        self.module = weakref.ref(module)

    def __call__(self, *args):
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args)

    def __getstate__(self):
        return self.hook, self.module()

    def __setstate__(self, state):
        self.__init__(*state)

    def __deepcopy__(self, memo):
        module = self.module()
        return type(self)(self.hook, memo.get(id(module), module))


def _table_property(name):
    def get(self):
        own = self.__dict__
        if "_hooks" not in own:
            make_tables(own)
        if name not in own:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return own[name]

    def set_(self, value):
        own = self.__dict__
        if "_hooks" not in own:
            make_tables(own)
        own[name] = value

    return property(get, set_)


class ModuleHooks:
    """The part of :class:`~ptcore.nn.Module` that deals with hooks."""

    _hooks = None

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls._call_impl is not ModuleHooks._call_impl:
            cls._hooks = _NO_TABLES

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Register a hook that runs before ``forward``.

        Parameters
        ----------
        hook : callable
            ``hook(module, args) -> None or modified args``, or with
            `with_kwargs` ``hook(module, args, kwargs) -> None or (args, kwargs)``.
        prepend : bool, default: False
            Run before the hooks that are registered already.
        with_kwargs : bool, default: False
            Whether the hook is also given the keyword arguments.

        Returns
        -------
        RemovableHandle
        """
        return _add(
            self,
            "_forward_pre_hooks",
            hook,
            prepend=prepend,
            flags=(("_forward_pre_hooks_with_kwargs", with_kwargs),),
        )

    def register_forward_hook(
        self, hook, *, prepend=False, with_kwargs=False, always_call=False
    ):
        """Register a hook that runs after ``forward``.

        Parameters
        ----------
        hook : callable
            ``hook(module, args, output) -> None or modified output``, or with
            `with_kwargs` ``hook(module, args, kwargs, output)``.
        prepend : bool, default: False
            Run before the hooks that are registered already.
        with_kwargs : bool, default: False
            Whether the hook is also given the keyword arguments.
        always_call : bool, default: False
            Run the hook even if ``forward`` raised.

        Returns
        -------
        RemovableHandle
        """
        return _add(
            self,
            "_forward_hooks",
            hook,
            prepend=prepend,
            flags=(
                ("_forward_hooks_with_kwargs", with_kwargs),
                ("_forward_hooks_always_called", always_call),
            ),
        )

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Register ``hook(module, grad_output) -> None or modified grad_output``."""
        return _add(self, "_backward_pre_hooks", hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Register a hook on the gradients of the module's inputs.

        Parameters
        ----------
        hook : callable
            ``hook(module, grad_input, grad_output) -> None or grad_input``; both
            are tuples with None where an argument or output is no tensor.
        prepend : bool, default: False
            Run before the hooks that are registered already.

        Returns
        -------
        RemovableHandle
        """
        return _add_backward(self, hook, full=True, prepend=prepend)

    def register_backward_hook(self, hook):
        """Register a hook on the last node of ``forward`` (deprecated).

        Use :meth:`register_full_backward_hook`: this one sees the gradients of
        one node of the graph only.
        """
        return _add_backward(self, hook, full=False)

    def register_state_dict_pre_hook(self, hook):
        """Register ``hook(module, prefix, keep_vars)``, run before saving."""
        return _add(self, "_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook):
        """Register ``hook(module, state_dict, prefix, local_metadata) -> None``.

        The hook changes the dictionary in place.
        """
        hook._from_public_api = True
        return _add(self, "_state_dict_hooks", hook)

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that "
                "was previously registered via register_state_dict_post_hook"
            )
        return _add(self, "_state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Register a hook that runs before the module loads its entries.

        It is called as ``hook(module, state_dict, prefix, local_metadata,
        strict, missing_keys, unexpected_keys, error_msgs)``.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        if with_module:
            hook = _LoadPreHook(hook, self)
        return _add(self, "_load_state_dict_pre_hooks", hook)

    def register_load_state_dict_post_hook(self, hook):
        """Register ``hook(module, incompatible_keys) -> None``.

        Its argument has the lists ``missing_keys`` and ``unexpected_keys``, which
        the hook may change in place.
        """
        return _add(self, "_load_state_dict_post_hooks", hook)

    def _call_impl(self, *args, **kwargs):
        """What a call does. Methods of subclasses that override it are asked."""
        if self._hooks is not True and global_state.table is None:
            return self.forward(*args, **kwargs)
        call = _HookedCall(self, args, kwargs)
        try:
            return call.run()
        except Exception:
            call.run_always_called()
            raise


for _name in (*TABLES, "_is_full_backward_hook"):
    setattr(ModuleHooks, _name, _table_property(_name))


class _HookedCall:
    """State of one hooked call: arguments, result and which hooks have run."""

    def __init__(self, module, args, kwargs):
        self.module, self.args, self.kwargs = module, args, kwargs
        self.result = None
        self.ran = set()
        # The process-wide hooks run before the module's own.
        self.tables = (global_state.table or _NO_TABLES, tables_of(module))

    def _hooks(self, name):
        return [(t, *kv) for t in self.tables for kv in tuple(getattr(t, name).items())]

    def _backward_hooks(self, full):
        return [
            hook
            for t in self.tables
            if t._is_full_backward_hook is full
            for hook in t._backward_hooks.values()
        ]

    def run(self):
        module = self.module
        full_hooks = self._backward_hooks(True)
        plain_hooks = self._backward_hooks(False)
        pre_hooks = [hook for _, _, hook in self._hooks("_backward_pre_hooks")]
        self._run_forward_pre_hooks()

        backward = None
        if full_hooks or pre_hooks:
            backward = BackwardHook(module, full_hooks, pre_hooks)
            self.args = backward.setup_input_hook(self.args)
        self.result = module.forward(*self.args, **self.kwargs)

        for tables, key, hook in self._hooks("_forward_hooks"):
            self.ran.add((id(tables), key))
            self._run_forward_hook(tables, key, hook)
        if backward is not None:
            self._warn_unless_tensors()
            self.result = backward.setup_output_hook(self.result)
        if plain_hooks:
            self._hook_last_node(plain_hooks)
        return self.result

    def _run_forward_pre_hooks(self):
        for tables, key, hook in self._hooks("_forward_pre_hooks"):
            if key in tables._forward_pre_hooks_with_kwargs:
                changed = hook(self.module, self.args, self.kwargs)
                if changed is None:
                    continue
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple "
                        f"of (new_args, new_kwargs), but got {changed}."
                    )
                self.args, self.kwargs = changed
            else:
                changed = hook(self.module, self.args)
                if changed is not None:
                    self.args = changed if isinstance(changed, tuple) else (changed,)

    def _run_forward_hook(self, tables, key, hook):
        if key in tables._forward_hooks_with_kwargs:
            changed = hook(self.module, self.args, self.kwargs, self.result)
        else:
            changed = hook(self.module, self.args, self.result)
        if changed is not None:
            self.result = changed

    def run_always_called(self):
        """After an exception: the ``always_call`` hooks that have not run yet."""
        for tables, key, hook in self._hooks("_forward_hooks"):
            if (
                key not in tables._forward_hooks_always_called
                or (id(tables), key) in self.ran
            ):
                continue
            try:
                self._run_forward_hook(tables, key, hook)
            except Exception as error:
                import warnings

                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an "
                    "exception that was silenced as another error was raised in "
                    f"forward: {error}",
                    stacklevel=3,
                )

    def _warn_unless_tensors(self):
        if not isinstance(self.result, (Tensor, tuple)):
            import warnings

            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor "
                f"or a tuple of Tensors but received {type(self.result)}",
                stacklevel=5,
            )

    def _hook_last_node(self, hooks):
        var = self.result
        while not isinstance(var, Tensor):
            if isinstance(var, dict):
                var = next(v for v in var.values() if isinstance(v, Tensor))
            else:
                var = var[0]
        if var.grad_fn is not None:
            _warn_of_one_node(self.args, self.result, var.grad_fn)
            from functools import partial

            for hook in hooks:
                var.grad_fn.register_hook(partial(hook, self.module))


def _warn_of_one_node(inputs, result, node):
    """Warns of what a hook on one node of the graph does not see of a module's gradients."""
    results = (result,) if isinstance(result, Tensor) else result
    nodes = {r.grad_fn for r in results if r.grad_fn is not None} if _are_tensors(results) else set()
    outside = {t.grad_fn for t in inputs if t.grad_fn is not None} if _are_tensors(inputs) else set()
    before = {n for n, _ in node.next_functions}
    if not _are_tensors(results):
        text = ("Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors "
                "is deprecated and will be removed in future versions. This hook will be missing some of the "
                "grad_output.")
    elif not _are_tensors(inputs):
        text = ("Using non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of "
                "Tensors is deprecated and will be removed in future versions. This hook will be missing some of the "
                "grad_input.")
    elif not nodes or (nodes != {node} and len(nodes) == 1):
        text = ("Using a non-full backward hook when outputs are nested in python data structure is deprecated and "
                "will be removed in future versions. This hook will be missing some grad_output.")
    elif len(nodes) > 1:
        text = ("Using a non-full backward hook when outputs are generated by different autograd Nodes is deprecated "
                "and will be removed in future versions. This hook will be missing some grad_output.")
    elif outside == before:
        return
    else:
        text = ("Using a non-full backward hook when the forward contains multiple autograd Nodes is deprecated and "
                "will be removed in future versions. This hook will be missing some grad_input.")
    warn(f"{text} Please use register_full_backward_hook to get the documented behavior.", FutureWarning)


def _are_tensors(values):
    return isinstance(values, tuple) and all(isinstance(v, Tensor) for v in values)
