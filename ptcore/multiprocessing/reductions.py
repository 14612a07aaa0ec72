"""How tensors and storages are pickled for another process.

Only ``multiprocessing``'s pickler does this; ``pickle`` itself copies a tensor's elements.
"""
import sys
from multiprocessing import context, resource_sharer
from multiprocessing.reduction import DupFd, ForkingPickler

import ptcore
from ptcore import Tensor
from ptcore._exchange import copying
from ptcore._exchange.copying import rebuild
from ptcore._memory.segments import Anonymous, Named, allocate
from ptcore._untyped_storage import UntypedStorage
from ptcore.multiprocessing.channels import transit
from ptcore.nn.parameter import Buffer, Parameter

FORKSERVER_FDS = 200    # descriptors handed to a fork server; further ones are fetched from this process


def reduce_tensor(tensor):
    """A tensor as a place in its storage, with gradient and attributes; a storage on the CPU is moved to shared memory.

    If the storage's address is known outside (NumPy, ``data_ptr``), a copy of the tensor is sent.

    Raises
    ------
    RuntimeError
        If the tensor has a history: autograd does not cross processes.
    NotImplementedError
        If it lies on a device other than CUDA's.
    """
    grad = tensor.grad if tensor.is_leaf else None
    for which, t in ("a tensor", tensor), ("a gradient (of create_graph=True)", grad):
        if t is not None and t.requires_grad and not t.is_leaf:
            raise RuntimeError(f"multiprocessing: {which} that requires grad can be sent only if it is a leaf, since "
                               "autograd does not cross processes; to send the values alone, call detach() first")
    attributes = getattr(tensor, "__dict__", None) or None
    if tensor.device.type == "meta" or tensor.numel() == 0:
        made, (*described, _) = copying.__reduce_ex__(tensor, 2)
        described = *described, None
    else:
        source = tensor if _shared(tensor) else _copy(tensor)
        made, described = rebuild, (type(tensor), tensor.dtype.name, tuple(tensor.shape), tuple(source.stride()),
                                    source.storage_offset(), source.untyped_storage(), tensor.requires_grad, None)
    if grad is None and attributes is None:
        return made, described
    # Gradient and attributes are pickled after the tensor, since they may refer to it.
    return made, described, (grad, attributes), None, None, complete


def complete(tensor, state):
    """Sets the gradient and the attributes of a tensor."""
    grad, attributes = state
    if grad is not None:
        tensor.grad = grad
    for name, value in (attributes or {}).items():
        setattr(tensor, name, value)


def _reducer_of_subclasses(pickler, obj):
    """Finds reducers of subclasses and late imports, since ``ForkingPickler``'s table needs the exact class.
    """
    streams = sys.modules.get("ptcore.cuda.streams")
    if streams is not None and isinstance(obj, streams.Event):
        return reduce_event(obj)
    kind = type(obj)
    if (issubclass(kind, Tensor) and kind not in pickler.dispatch_table
            and kind.__reduce_ex__ is copying.__reduce_ex__):
        return reduce_tensor(obj)
    return NotImplemented


def _shared(tensor):
    """Moves the tensor's storage to shared memory; False if it cannot be moved."""
    if tensor.device.type == "cuda":
        return True
    if tensor.device.type != "cpu":
        raise NotImplementedError(f"multiprocessing: tensors on {tensor.device} cannot be sent to other processes yet; "
                                  "send tensor.cpu()")
    storage = tensor.untyped_storage()
    if not storage.is_shared():
        if not storage.resizable():
            return False
        tensor.share_memory_()
    return True


def _copy(tensor):
    """A copy of the elements in shared memory, in the same order in memory."""
    strides = ptcore.empty_like(tensor.detach(), device="meta").stride()
    segment, offset = allocate(tensor.numel() * tensor.element_size())
    storage = segment.storage(offset, tensor.numel() * tensor.element_size())
    copy = rebuild(Tensor, tensor.dtype.name, tuple(tensor.shape), tuple(strides), 0, storage, False, None)
    with ptcore.no_grad():
        return copy.copy_(tensor.detach())


def reduce_storage(storage):
    """A storage as a place in a segment."""
    if storage.device.type == "cuda":
        from ptcore.multiprocessing import _devices
        return _devices.reduce_storage(storage)
    if storage.device.type != "cpu":
        raise NotImplementedError(f"multiprocessing: storages on {storage.device} cannot be sent to other processes")
    if not storage.is_shared() and not storage.resizable():
        storage = _copy(rebuild(Tensor, "uint8", (storage.nbytes(),), (1,), 0, storage, False, None)).untyped_storage()
    segment, offset = storage.share_memory_()._place
    return rebuild_storage, (segment, offset, storage.nbytes())


def rebuild_storage(segment, offset, nbytes):
    """The storage at a place in a segment; an existing one of this process if there is one."""
    return segment.storage(offset, nbytes)


def reduce_event(event):
    """An event of a CUDA device, made for use by several processes."""
    from ptcore.multiprocessing import _devices
    return _devices.reduce_event(event)


def reduce_anonymous(segment):
    """A segment by its descriptor. The descriptor is passed to a process that is being started, sent beside the
    message, or, for pipes of other packages, fetched from a server in this process."""
    starting = context.get_spawning_popen()
    if starting is not None:
        # The process is started later, when the pickled objects may be freed. A fork server accepts 256 descriptors.
        starting.__dict__.setdefault("segments", []).append(segment)
        many = starting.method == "forkserver" and len(starting._fds) >= FORKSERVER_FDS
        descriptor = resource_sharer.DupFd(segment.fd) if many else DupFd(segment.fd)
    elif transit.outgoing is None:
        descriptor = DupFd(segment.fd)
    else:
        descriptor = len(transit.outgoing)
        transit.outgoing.append(segment)
    return rebuild_anonymous, (descriptor, segment.nbytes, segment.key)


def rebuild_anonymous(descriptor, nbytes, key):
    """The segment behind a descriptor."""
    if not isinstance(descriptor, int):
        return Anonymous.received(descriptor.detach(), nbytes, key)
    fd = -1 if transit.arrived is None else transit.arrived.take(descriptor)
    if fd < 0:
        raise RuntimeError("multiprocessing: a tensor's memory comes beside the bytes of its message; receive it "
                           "by recv() or get(), not by recv_bytes()")
    return Anonymous.received(fd, nbytes, key)


def reduce_named(segment):
    """A segment by its name."""
    return rebuild_named, (segment.key, segment.count_message(), segment.nbytes)


def rebuild_named(key, guard, nbytes):
    """The segment with a name."""
    return Named.received(key, guard, nbytes)


def init_reductions():
    """Tells multiprocessing's pickler."""
    for kind in (Tensor, Parameter, Buffer):
        ForkingPickler.register(kind, reduce_tensor)
    ForkingPickler.reducer_override = _reducer_of_subclasses
    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(Anonymous, reduce_anonymous)
    ForkingPickler.register(Named, reduce_named)
