"""Saving and loading the state of modules.

``state_dict`` walks the modules and collects detached tensors under dotted
names; ``load_state_dict`` copies them back and reports every key that is
missing, unexpected or of another shape in one error.
"""

from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import ptcore
from ptcore.__future__ import get_swap_module_params_on_conversion
from ptcore._overrides import is_tensor_like
from ptcore.nn.parameter import Parameter, is_lazy

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
_OWNERS = "owners of what is exchanged"
_PLAIN = (ptcore.Tensor, Parameter)


class _IncompatibleKeys(
    namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])
):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _warn(message, category=UserWarning):
    import warnings

    warnings.warn(message, category, stacklevel=3)


class ModuleState:
    """The part of :class:`~ptcore.nn.Module` that saves and loads state."""

    _version = 1

    def get_extra_state(self):
        """Return extra state to save with the module; override together with
        :meth:`set_extra_state`."""
        raise RuntimeError(
            "Module.get_extra_state() should never be called: it is to be overridden"
        )

    def set_extra_state(self, state):
        """Restore the result of :meth:`get_extra_state`."""
        raise RuntimeError(
            "Module.set_extra_state() should never be called: it is to be overridden"
        )

    def _has_extra_state(self, method):
        return getattr(type(self), method) is not getattr(ModuleState, method)

    def _persistent_buffers(self):
        skip = self._non_persistent_buffers_set
        return [(k, v) for k, v in self._buffers.items() if k not in skip]

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Put this module's own entries, not its children's, into `destination`."""
        for name, value in [*self._parameters.items(), *self._persistent_buffers()]:
            if value is not None:
                destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()
        if self._has_extra_state("get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """Return a dictionary of all parameters and persistent buffers.

        Parameters
        ----------
        destination : dict, optional
            Dictionary to fill; a new ``OrderedDict`` by default.
        prefix : str, default: ""
            Put before every name.
        keep_vars : bool, default: False
            Keep the parameters themselves instead of detached tensors that
            share their memory.

        Returns
        -------
        dict
            Names to tensors. Its attribute ``_metadata`` holds the version of
            every module.

        Examples
        --------
        >>> import ptcore
        >>> list(ptcore.nn.Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        if args:
            _warn(
                "Positional args are being deprecated, use kwargs instead.",
                FutureWarning,
            )
            destination = args[0] if destination is None else destination
            if len(args) > 1 and prefix == "":
                prefix = args[1]
            if len(args) > 2 and keep_vars is False:
                keep_vars = args[2]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata

        hooks = self if self._hooks is True else None
        if hooks is not None:
            for hook in hooks._state_dict_pre_hooks.values():
                hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination,
                    prefix=prefix + name + ".",
                    keep_vars=keep_vars,
                )
        if hooks is not None:
            for hook in hooks._state_dict_hooks.values():
                changed = hook(self, destination, prefix, local_metadata)
                if changed is None:
                    continue
                if getattr(hook, "_from_public_api", False):
                    raise RuntimeError("state_dict post-hook must return None")
                destination = changed
        return destination

    def _load_from_state_dict(
        self,
        state_dict,
        prefix,
        local_metadata,
        strict,
        missing_keys,
        unexpected_keys,
        error_msgs,
    ):
        """Load this module's own entries; append to the three lists in place."""
        if self._hooks is True:
            for hook in self._load_state_dict_pre_hooks.values():
                hook(
                    state_dict,
                    prefix,
                    local_metadata,
                    strict,
                    missing_keys,
                    unexpected_keys,
                    error_msgs,
                )
        own = [*self._parameters.items(), *self._persistent_buffers()]
        local_state = {k: v for k, v in own if v is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, param in local_state.items():
            key = prefix + name
            if key in state_dict:
                error = self._load_one(name, key, param, state_dict[key], assign, local_metadata.get(_OWNERS))
                if error is not None:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)

        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if self._has_extra_state("set_extra_state"):
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)

        if strict:
            for key in state_dict:
                if not key.startswith(prefix) or key == extra_key:
                    continue
                name, dot, _ = key[len(prefix) :].partition(".")
                if name not in (self._modules if dot else local_state):
                    unexpected_keys.append(key)

    def _load_one(self, name, key, param, value, assign, owners=None):
        """Load `value` into `param`; return an error message or None."""
        if not is_tensor_like(value):
            return (
                f'While copying the parameter named "{key}", expected a Tensor or '
                f"Tensor-like object from checkpoint but received {type(value)}"
            )
        if is_lazy(param):
            if is_lazy(value):
                return None
        elif param.ndim == 0 and tuple(value.shape) == (1,):
            value = value[0]
        if not is_lazy(param) and value.shape != param.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} "
                f"from checkpoint, the shape in current model is {param.shape}."
            )
        if param.is_meta and not value.is_meta and not assign:
            _warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a "
                "meta parameter in the current model, which is a no-op. (Did you mean "
                "to pass `assign=True` to assign items in the state dictionary to "
                "their corresponding key in the module instead of copying them in "
                "place?)"
            )
        swaps = get_swap_module_params_on_conversion()
        try:
            with ptcore.no_grad():
                if swaps:
                    loaded = param.module_load(value, assign=assign)
                    self._swap_with(param, loaded, value, owners if type(value) in _PLAIN else None)
                    return None
                if not assign:
                    param.copy_(value)
                    return None
                if isinstance(param, Parameter):
                    if isinstance(value, Parameter):
                        value.requires_grad_(param.requires_grad)
                    else:
                        value = Parameter(value, requires_grad=param.requires_grad)
                setattr(self, name, value)
        except Exception as error:
            return (
                f'While {"swapping" if swaps else "copying"} the parameter named "{key}", whose dimensions in the '
                f"model are {param.size()} and whose dimensions in the checkpoint are "
                f"{value.size()}, an exception occurred : {error.args}."
            )
        return None

    @staticmethod
    def _swap_with(param, loaded, value, owners):
        """Let `param` exchange what it holds with what ``module_load`` returned."""
        from ptcore._swapping import exchange, swap_tensors
        if loaded is value or loaded is param:
            raise RuntimeError("module_load returned one of self or other, please .detach() the result if returning "
                               "one of the inputs in module_load")
        if isinstance(param, Parameter):
            if isinstance(loaded, Parameter):
                loaded.requires_grad_(param.requires_grad)
            else:
                loaded = Parameter(loaded, requires_grad=param.requires_grad)
        if owners is None:
            swap_tensors(param, loaded)
        else:                           # nothing but this call has `loaded`
            exchange(param, loaded, [*owners, loaded])

    def _owners_of_state(self):
        """What refers to the parameters and buffers, found in one walk over all objects.

        None where the program's own code runs between the exchanges: it may make more of them.
        """
        tensors = []
        for module in self.modules():
            if module._hooks is True and (module._load_state_dict_pre_hooks or module._load_state_dict_post_hooks):
                return None
            load = type(module)._load_from_state_dict
            if module._has_extra_state("set_extra_state") or not load.__module__.startswith("ptcore."):
                return None
            tensors += [t for t in (*module._parameters.values(), *module._buffers.values()) if t is not None]
        if not all(type(t) in _PLAIN for t in tensors):
            return None
        from ptcore._swapping import owners_of
        return owners_of(tensors)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy parameters and buffers from `state_dict`.

        Parameters
        ----------
        state_dict : Mapping
            Names to tensors, as returned by :meth:`state_dict`.
        strict : bool, default: True
            Whether missing and unexpected keys are errors.
        assign : bool, default: False
            Make the tensors of `state_dict` the module's own instead of copying
            into the present ones (keeps their dtype and device).

        Returns
        -------
        NamedTuple
            ``missing_keys`` and ``unexpected_keys``, two lists of str.

        Raises
        ------
        TypeError
            If `state_dict` is not a mapping.
        RuntimeError
            Lists every missing, unexpected and mismatching key. Entries that do
            match have been loaded by then, as in PyTorch.

        Examples
        --------
        >>> import ptcore
        >>> a, b = ptcore.nn.Linear(2, 1), ptcore.nn.Linear(2, 1)
        >>> a.load_state_dict(b.state_dict())
        <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"Expected state_dict to be dict-like, got {type(state_dict)}."
            )
        missing_keys, unexpected_keys, error_msgs = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        # A copy, since hooks and overrides of _load_from_state_dict may change it.
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata

        owners = self._owners_of_state() if get_swap_module_params_on_conversion() else None

        def load(module, local_state, prefix):
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if owners is not None:
                local_metadata = {**local_metadata, _OWNERS: owners}
            if assign:
                local_metadata = {**local_metadata, "assign_to_params_buffers": True}
            module._load_from_state_dict(
                local_state,
                prefix,
                local_metadata,
                True,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
            for name, child in module._modules.items():
                if child is not None:
                    below = prefix + name + "."
                    entries = {
                        k: v for k, v in local_state.items() if k.startswith(below)
                    }
                    load(child, entries, below)
            if module._hooks is True:
                keys = _IncompatibleKeys(missing_keys, unexpected_keys)
                for hook in module._load_state_dict_post_hooks.values():
                    if hook(module, keys) is not None:
                        raise AssertionError(
                            "Hooks registered with "
                            "``register_load_state_dict_post_hook`` are not expected "
                            "to return new values, if incompatible_keys need to be "
                            "modified, it should be done inplace."
                        )

        load(self, state_dict, "")
        if strict:
            for title, keys in (
                ("Unexpected", unexpected_keys),
                ("Missing", missing_keys),
            ):
                if keys:
                    names = ", ".join(f'"{k}"' for k in keys)
                    error_msgs.insert(0, f"{title} key(s) in state_dict: {names}. ")
        if error_msgs:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(
                    type(self).__name__, "\n\t".join(error_msgs)
                )
            )
        return _IncompatibleKeys(missing_keys, unexpected_keys)
