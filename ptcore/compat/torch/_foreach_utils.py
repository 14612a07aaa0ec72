"""``torch.utils._foreach_utils``: lists of tensors by their device and dtype."""
__all__ = []


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """Groups the tensors of several lists by device and dtype of the first list's tensors.

    Returns
    -------
    dict
        (device, dtype) to (lists, places): which places of the lists the tensors stood at.
    """
    found = {}
    for k, first in enumerate(tensorlistlist[0]):
        lists, places = found.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for own, given in zip(lists, tensorlistlist):
            if len(given):
                own.append(given[k])
        places.append(k)
    return {key: (lists, places if with_indices else [0] * len(places)) for key, (lists, places) in found.items()}


def _get_foreach_kernels_supported_devices():
    """Types of devices on which lists of tensors are stepped together."""
    return ["cuda"]


_get_fused_kernels_supported_devices = _get_foreach_kernels_supported_devices


def _device_has_foreach_support(device):
    """Whether lists on a device are stepped together."""
    return device.type == "cpu" or device.type in _get_foreach_kernels_supported_devices()


def _has_foreach_support(tensors, device):
    """Whether these are."""
    return _device_has_foreach_support(device) and all(t is not None for t in tensors)
