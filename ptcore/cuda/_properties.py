"""What the driver says of a device."""
from dataclasses import dataclass, field

from ptcore.cuda.driver.loading import index_of, runtime


@dataclass(frozen=True)
class DeviceProperties:
    """A device's name, memory in bytes, and limits, under PyTorch's names."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    clock_rate: int
    memory_clock_rate: int
    memory_bus_width: int
    is_integrated: int
    is_multi_gpu_board: int
    pci_bus_id: int
    pci_device_id: int
    pci_domain_id: int
    uuid: bytes = field(repr=False)


# CUdevice_attribute
_ATTRIBUTES = {"major": 75, "minor": 76, "multi_processor_count": 16, "warp_size": 10, "max_threads_per_block": 1,
               "max_threads_per_multi_processor": 39, "regs_per_multiprocessor": 82, "shared_memory_per_block": 8,
               "shared_memory_per_block_optin": 97, "shared_memory_per_multiprocessor": 81, "L2_cache_size": 38,
               "clock_rate": 13, "memory_clock_rate": 36, "memory_bus_width": 37, "is_integrated": 18,
               "is_multi_gpu_board": 84, "pci_bus_id": 33, "pci_device_id": 34, "pci_domain_id": 50}


def get_device_properties(device=None):
    """Name, memory, capability and limits of a device (the current one if None)."""
    run = runtime()
    index = index_of(device, "get_device_properties")
    return DeviceProperties(name=run.device_name(index), total_memory=run.memory_info(index)[1], uuid=run.uuid(index),
                            **{name: run.attribute(index, code) for name, code in _ATTRIBUTES.items()})
