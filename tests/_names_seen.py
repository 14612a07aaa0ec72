"""A mode that notes the names of the functions it sees."""
from ptcore.overrides import TorchFunctionMode


class NamesSeen(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))
