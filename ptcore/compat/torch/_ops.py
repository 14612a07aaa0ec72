"""``torch._ops``: classes of ``torch.ops``. An overload of an op is the op's function."""
from ptcore import ops
from ptcore._ops.namespaces import Namespace as _OpNamespace
from ptcore._ops.namespaces import OpFunction as OpOverload
from ptcore._ops.namespaces import Packet as OpOverloadPacket

__all__ = ["OpOverload", "OpOverloadPacket", "_OpNamespace", "ops"]


class OperatorBase:
    """Base of PyTorch's ops; ptcore's functions are not derived from it."""


class HigherOrderOperator(OperatorBase):
    """Refused: an op that takes functions."""

    def __init__(self, name, **options):
        raise NotImplementedError(f"HigherOrderOperator({name!r}): ptcore's ops take no functions")
