"""``torch._utils``: helpers of that module that programs use."""
__all__ = ["ExceptionWrapper", "KeyErrorMessage", "classproperty", "is_compiling"]


def _flatten_dense_tensors(tensors):
    """One vector of the elements of tensors of one dtype; `_unflatten_dense_tensors` reverses it."""
    from ptcore import cat
    tensors = list(tensors)
    return tensors[0].contiguous().view(-1) if len(tensors) == 1 else cat([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """Views of a vector, with the sizes of given tensors."""
    found, offset = [], 0
    for t in tensors:
        n = t.numel()
        found.append(flat.narrow(0, offset, n).view_as(t))
        offset += n
    return tuple(found)


def _take_tensors(tensors, size_limit):
    """Groups of tensors of one type, each of at most ``size_limit`` bytes or of one tensor."""
    groups = {}
    for t in tensors:
        size = t.numel() * t.element_size()
        group, total = groups.get(t.dtype, ([], 0))
        if group and total + size > size_limit:
            yield group
            group, total = [], 0
        groups[t.dtype] = [*group, t], total + size
    yield from (group for group, _ in groups.values() if group)


def _reorder_tensors_as(tensors, ordered_tensors):
    """Tensors in the order of other tensors with the same types."""
    by_type = {}
    for t in tensors:
        by_type.setdefault(t.dtype, []).append(t)
    iterators = {kind: iter(own) for kind, own in by_type.items()}
    return tuple(next(iterators[t.dtype]) for t in ordered_tensors)


def _load_from_bytes(b):
    """The storage in the bytes of a file, as pickles of PyTorch's storages hold them; no code of theirs runs."""
    from io import BytesIO

    from ptcore.serialization import load
    return load(BytesIO(b), weights_only=False)


def _rebuild_tensor(storage, storage_offset, size, stride):
    """The tensor of a PyTorch pickle, over a typed storage."""
    return _rebuild_tensor_v2(storage, storage_offset, size, stride, False, None)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    """The tensor of a PyTorch pickle, over a typed storage (any object with ``dtype`` and ``_untyped_storage``)."""
    from ptcore import empty
    untyped = getattr(storage, "_untyped_storage", None)
    if untyped is None:
        raise NotImplementedError("torch._utils._rebuild_tensor_v2: expected a typed storage, got "
                                  f"{type(storage).__name__}")
    made = empty(0, dtype=storage.dtype, device=untyped.device)
    made.set_(untyped, storage_offset, tuple(size), tuple(stride))
    for name in ("conj", "neg"):            # of a lazy view, whose storage holds the values before
        if (metadata or {}).get(name):
            made = getattr(made, name)()
    made.requires_grad = requires_grad
    for hook in (backward_hooks or {}).values():
        made.register_hook(hook)
    return made


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    """The tensor of a PyTorch pickle, over a storage of any dtype."""
    from ptcore.storage import TypedStorage
    untyped = getattr(storage, "_untyped_storage", storage)
    return _rebuild_tensor_v2(TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True), storage_offset, size,
                              stride, requires_grad, backward_hooks, metadata)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """The parameter of a pickle."""
    from ptcore.nn.parameter import Parameter
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    """The parameter of a pickle, with attributes."""
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_from_type_v2(func, new_type, args, state):
    """The tensor of a class of a PyTorch pickle."""
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    if hasattr(type(made), "__setstate__"):
        made.__setstate__(state)
        return made
    return _set_obj_state(made, state)


def _get_obj_state(obj):
    """What a pickle keeps of an object beside what it is made of."""
    return obj.__getstate__()


def _set_obj_state(obj, state):
    """Gives an object its attributes: a dict, or a pair of it and a dict of slots."""
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    if isinstance(state, tuple) and len(state) != 2:
        raise RuntimeError(f"Invalid serialized state: {state}")
    for part in parts:
        for name, value in (part or {}).items():
            setattr(obj, name, value)
    return obj


def _get_device_index(device, optional=False, allow_cpu=False):
    """The number of a device."""
    from ptcore._device import device as of
    if isinstance(device, int):
        return device
    if isinstance(device, (str, of)):
        device = of(device)
        if device.type == "cpu" and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        if device.index is not None or device.type == "cpu":
            return -1 if device.type == "cpu" else device.index
    if optional:
        from ptcore.cuda import current_device, is_available
        return current_device() if is_available() else -1
    raise ValueError(f"Expected a device with an index or an integer, but got: {device}")


def _get_all_device_indices():
    """The numbers of the devices of the accelerator."""
    from ptcore.cuda import device_count
    return list(range(device_count()))


def _get_available_device_type():
    """``"cuda"``, or None where there is no device."""
    from ptcore.cuda import is_available
    return "cuda" if is_available() else None


def _element_size(dtype):
    """The bytes of an element."""
    return dtype.itemsize


def is_compiling():
    """Whether the calling program is being captured."""
    from ptcore.compiler import is_compiling as asked
    return asked()


class KeyErrorMessage(str):
    """A message that KeyError shows with its line breaks."""

    def __repr__(self):
        return str(self)


class ExceptionWrapper:
    """An exception with its traceback as text, for raising in another process or thread."""

    def __init__(self, exc_info=None, where="in background"):
        import sys
        import traceback
        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self):
        """Raises an exception of the same class, whose message holds the first one's traceback."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        try:
            error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error


class classproperty:
    """A property of a class."""

    def __init__(self, func):
        self.func = func

    def __get__(self, instance, owner):
        return self.func(owner)
