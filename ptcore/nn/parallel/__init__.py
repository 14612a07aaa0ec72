"""PyTorch's modules over several devices. ptcore uses one device: ``DataParallel`` calls its module directly."""
from ptcore import Tensor, _lazy
from ptcore._device import device as _device
from ptcore.nn.modules.module import Module

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate",
           "scatter"]
__getattr__, __dir__ = _lazy.names(__name__)


def _devices(name, device_ids):
    """The devices to use, at most one, since ptcore copies no module to several devices."""
    from ptcore.cuda import device_count
    if device_ids is None:
        device_ids = list(range(device_count()))
    found = [_device("cuda", d) if isinstance(d, int) else _device(d) for d in device_ids]
    if len(found) > 1:
        raise NotImplementedError(f"{name}: expected at most one device, got {len(found)}; pass device_ids=[0]")
    return found


def _moved(value, device):
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(v, device) for v in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_moved(v, device) for v in value)
    if isinstance(value, dict):
        return type(value)((k, _moved(v, device)) for k, v in value.items())
    return value


class DataParallel(Module):
    """A module whose batches PyTorch splits over devices; here it is called directly, on at most one device.

    Parameters
    ----------
    module : Module
        It becomes the attribute ``module``, whose name the keys of the state dict begin with.
    device_ids : list of int or device, optional
        By default all CUDA devices. More than one raise NotImplementedError.
    output_device : int or device, optional
    dim : int, optional
        The dimension of batches.
    """

    _torch_later = (("dim", 0),)           # PyTorch keeps it where there are devices

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module, self.dim = module, dim
        devices = _devices("DataParallel", device_ids)
        self.device_ids = [d.index for d in devices]
        if devices:
            self.output_device = devices[0].index if output_device is None else output_device
            self.src_device_obj = devices[0]
            self.module.to(devices[0])

    def forward(self, *inputs, **kwargs):
        if self.device_ids:
            inputs, kwargs = _moved(inputs, self.src_device_obj), _moved(kwargs, self.src_device_obj)
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Calls a module as `DataParallel` does.

    Parameters
    ----------
    module : Module
    inputs : Tensor or tuple
    device_ids, output_device, dim
        As of `DataParallel`.
    module_kwargs : dict, optional
    """
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    kwargs = module_kwargs or {}
    devices = _devices("data_parallel", device_ids)
    if devices:
        inputs, kwargs = _moved(inputs, devices[0]), _moved(kwargs, devices[0])
    return module(*inputs, **kwargs)


def replicate(network, devices, detach=False):
    """Raises NotImplementedError: ptcore copies no module to several devices."""
    raise NotImplementedError("nn.parallel.replicate: ptcore copies no module to several devices")


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """The results of modules, each called with its own inputs.

    Parameters
    ----------
    modules : list of Module
    inputs : list of tuple or Tensor
    kwargs_tup : list of dict, optional
    devices : list of int or device, optional
    """
    for name, given in (("inputs", inputs), ("kwargs_tup", kwargs_tup or modules), ("devices", devices or modules)):
        if len(given) != len(modules):
            raise AssertionError(f"parallel_apply: {name} must be as many as the {len(modules)} modules, got "
                                 f"{len(given)}")
    kwargs_tup = kwargs_tup or [{}] * len(modules)
    return [module(*(x if isinstance(x, (tuple, list)) else (x,)), **kwargs)
            for module, x, kwargs in zip(modules, inputs, kwargs_tup)]


def scatter(inputs, target_gpus, dim=0):
    """Raises NotImplementedError: ptcore splits no batch over several devices."""
    raise NotImplementedError("nn.parallel.scatter: ptcore splits no batch over several devices")


def gather(outputs, target_device, dim=0):
    """Raises NotImplementedError: ptcore splits no batch over several devices."""
    raise NotImplementedError("nn.parallel.gather: ptcore splits no batch over several devices")


class DistributedDataParallel(Module):
    """A module trained by several processes. It cannot be made, since ptcore has no distributed training."""

    def __init__(self, module, *args, **kwargs):
        raise NotImplementedError("DistributedDataParallel: ptcore has no distributed training")
