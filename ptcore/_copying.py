"""The name under which pickles of tensors find the function that rebuilds them, wherever it stands."""
from ptcore._exchange.copying import rebuild

__all__ = ["rebuild"]
