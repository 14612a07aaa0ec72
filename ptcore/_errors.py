"""Exception classes. Each derives from PyTorch's type first and, if NumPy or the array API standard would raise another
type, from that one as well. Also warnings that point to the user's line."""
import os
import sys
import warnings

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
user_place = is_package = None          # set by _node.pyx, which walks the frames


def place_text(place):
    """``file.py:12 in f: y = x.exp()`` for (file, line, function); the text is left out if the file cannot be read."""
    import linecache
    file, line, function = place
    linecache.checkcache(file)
    text = linecache.getline(file, line).strip()
    return f"{file}:{line} in {function}" + (f": {text}" if text else "")


def here():
    """The end of a message: the user's line in the form of a traceback, if it is known."""
    import traceback
    place = user_place()
    return "" if place is None else "\n" + "".join(traceback.format_list([traceback.FrameSummary(*place)])).rstrip()


def at_users_line(check):
    """Decorator of a function that checks arguments: its errors end with the user's line."""
    def checked(*args):
        try:
            return check(*args)
        except (RuntimeError, TypeError, ValueError) as error:
            line = here()
            if not str(error).endswith(line):           # an inner check has added the line already
                error.args = (f"{error}{line}",)
            raise
    checked.__name__, checked.__qualname__, checked.__doc__ = check.__name__, check.__qualname__, check.__doc__
    return checked


def warn(message, category=UserWarning):
    """Warns at the innermost line outside this package; ``stacklevel`` would miss the frames of compiled functions."""
    level, frame = 2, sys._getframe(1)
    while frame is not None and is_package(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


class NoBufferError(ValueError, TypeError):
    """An object without the buffer protocol: ValueError as in PyTorch, TypeError as in Python."""


def no_buffer(op):
    """Raises NoBufferError for an op."""
    raise NoBufferError(f"{op}: object does not implement Python buffer protocol.")


class ShapeError(RuntimeError, ValueError):
    """Shapes that do not fit together: RuntimeError as in PyTorch, ValueError as in NumPy."""


class SeveralElementsError(ShapeError, TypeError):
    """A tensor of several elements where a number is wanted: TypeError as in PyTorch."""


class AssertedError(AssertionError, ShapeError):
    """Arguments that do not fit together where PyTorch's function only asserts that they do."""


class DTypeError(RuntimeError, TypeError):
    """A dtype that the op does not support: RuntimeError as in PyTorch, TypeError as in NumPy."""


class SchemaError(RuntimeError, TypeError):
    """An argument that is not of the type that the schema of a custom op names."""


class UnsupportedDTypeError(DTypeError, NotImplementedError):
    """A dtype that an op has no kernel for: PyTorch raises NotImplementedError."""


class OutOfRangeError(IndexError, RuntimeError):
    """A position outside its dim: IndexError as in NumPy, RuntimeError from some PyTorch ops."""


class IndexTypeError(IndexError, TypeError):
    """An object of a type that cannot index: IndexError as in NumPy, TypeError as in PyTorch."""


class AbsentKeyError(KeyError, ValueError):
    """A dictionary without an entry that it must have: KeyError as in PyTorch, ValueError as for other arguments."""

    __str__ = ValueError.__str__


class NoEntryError(KeyError, AttributeError):
    """A key that a dictionary of attributes has not: KeyError as in Python, AttributeError as in PyTorch."""


class AbsentPartError(RuntimeError, AttributeError):
    """An attribute that tensors of this dtype lack: RuntimeError as in PyTorch, and ``hasattr`` is False."""


class DivisionByZeroError(RuntimeError, ZeroDivisionError):
    """Integer division by zero: RuntimeError as in PyTorch."""


class ChoiceError(RuntimeError, ValueError):
    """A word outside the allowed ones."""


class NoWordError(ChoiceError, TypeError):
    """An object that is no word, where one of several words is expected: TypeError as in PyTorch."""


class ConversionError(RuntimeError, ValueError, OverflowError):
    """A number that a dtype cannot hold: RuntimeError or ValueError as in PyTorch, OverflowError as in NumPy."""


class MemoryInUseError(RuntimeError, BufferError):
    """An attempt to move memory that other libraries or processes use."""


class DeviceError(RuntimeError):
    """Operands on different devices, or a device that does not exist."""


class LinAlgError(RuntimeError, ValueError):
    """A decomposition that failed. (NumPy's LinAlgError is a ValueError.)"""


class AcceleratorError(RuntimeError):
    """A call of a device's driver that failed; ``error_code`` is the driver's number."""

    error_code = 0


class OutOfMemoryError(RuntimeError, MemoryError):
    """An allocation that failed."""
