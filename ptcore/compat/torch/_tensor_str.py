"""``torch._tensor_str``: how tensors are printed."""
from ptcore._exchange.printing import add_suffixes as _add_suffixes  # noqa: F401
from ptcore._exchange.printing import options as PRINT_OPTS
from ptcore._exchange.printing import set_printoptions
from ptcore._exchange.printing import text_of as _tensor_str  # noqa: F401

__all__ = ["PRINT_OPTS", "set_printoptions"]
