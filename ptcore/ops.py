"""The op table: ``ptcore.ops["softplus"]`` is the row of an op; ``register`` adds one, ``register_kernel`` adds a
kernel for a device and ``register_backend`` a type of device. ``ops.mylib.foo`` is an op of ``ptcore.library``, and
``ops.aten.foo`` an op of the table by PyTorch's name.

The module is a mapping from names to rows (see ``_ops/table/schema.py`` for the columns), which are read from the row
files at the first use.
"""
import sys
from collections.abc import Mapping
from types import ModuleType

from ptcore import _ops
from ptcore._device import register_backend
from ptcore._ops.table.register import register, register_kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["load_library", "register", "register_backend", "register_kernel"]


def load_library(path):
    """Refused: such libraries are written for PyTorch's C++ interface. Extensions of ptcore are modules.

    Raises
    ------
    OSError
    """
    raise OSError(f"load_library: {path} is written for PyTorch's C++ interface, which ptcore has not; "
                  "ops.register_kernel takes kernels of its own")


def __getattr__(name: str) -> "Any":
    if name.startswith("_"):
        raise AttributeError(f"module 'ptcore.ops' has no attribute {name!r}")
    from ptcore._ops.namespaces import namespace
    return namespace(name)


class _Table(ModuleType):
    def __getitem__(self, name):
        return _ops.row(name)

    def __iter__(self):
        return iter([row.name for row in _ops.rows()])

    def __len__(self):
        return len(_ops.rows())

    __contains__ = Mapping.__contains__
    keys, items, values, get = Mapping.keys, Mapping.items, Mapping.values, Mapping.get


sys.modules[__name__].__class__ = _Table
