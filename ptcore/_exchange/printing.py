"""How a tensor prints: PyTorch's rules for precision, threshold, edge items and suffixes."""
import math

from ptcore._dtype import as_dtype, get_default_dtype
from ptcore._interpret import values_read
from ptcore._subclass import payload_of
from ptcore._tensor import Tensor


class _Options:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode = None


options = _Options()
_profiles = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80),
             "full": (4, math.inf, 3, 80)}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None,
                     profile=None, sci_mode=None):
    """Sets how tensors print.

    Parameters
    ----------
    precision : int
        Digits behind the point (4).
    threshold : int
        Tensors of more elements are summarised (1000).
    edgeitems : int
        Elements shown at each end of a summarised dim (3).
    linewidth : int
        Characters a line (80).
    profile : {"default", "short", "full"}
    sci_mode : bool or None
        Scientific notation: always, never, or where the values ask for it.

    Raises
    ------
    TypeError, ValueError
        If a number is not one or is negative, or the profile is unknown; nothing is set then.
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems,
             "linewidth": linewidth}
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        if not isinstance(value, (int, float)) or (name != "threshold" and value != value // 1):
            raise TypeError(f"set_printoptions: {name} must be a whole number, got {value!r}")
        if not value >= 0:
            raise ValueError(f"set_printoptions: {name} must not be negative, got {value!r}")
    if profile is not None:
        profile = profile.lower() if isinstance(profile, str) else profile
        if profile not in _profiles:
            raise ValueError(f"set_printoptions: profile must be one of {sorted(_profiles)}, got "
                             f"{profile!r}")
        (options.precision, options.threshold, options.edgeitems,
         options.linewidth) = _profiles[profile]
    for name, value in given.items():
        setattr(options, name, value if name == "threshold" else int(value))
    options.sci_mode = sci_mode


class _Formatter:
    """One width and notation for all the values shown.

    The notation follows from the finite values other than zero, and so does the width: a zero,
    an inf or a nan among them is padded but widens nothing, as in PyTorch.
    """

    def __init__(self, values, floating, zero=0):
        self.floating = floating
        self.int_mode, self.sci_mode, self.width = True, False, 1
        if floating:
            values = [v for v in values if math.isfinite(v) and v != zero]
            if values:
                self._choose(values)
        self.width = max([len(self.text(v)) for v in values], default=1)

    def _choose(self, values):
        sizes = [abs(v) for v in values]
        low, high = min(sizes), max(sizes)
        self.int_mode = all(v == math.ceil(v) for v in values)
        self.sci_mode = options.sci_mode
        if self.sci_mode is None:
            self.sci_mode = high > 1000.0 * low or high > 1e8 or low < 1e-4

    def text(self, v):
        if not self.floating:
            return str(v)
        if self.sci_mode:
            return f"{v:.{options.precision}e}"
        if self.int_mode:
            return f"{v:.0f}." if math.isfinite(v) else f"{v:.0f}"
        return f"{v:.{options.precision}f}"

    def __call__(self, v):
        return self.text(v).rjust(self.width)


class _ComplexFormatter:
    def __init__(self, values):
        self.real = _Formatter([v.real for v in values], True)
        self.imag = _Formatter([v.imag for v in values], True)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, v):
        real = self.real(v.real)
        imag = self.imag(v.imag).lstrip()
        return f"{real}{imag}j" if imag.startswith("-") else f"{real}+{imag}j"


def _summarised(t, edge):
    """Nested lists with None where elements are left out; only the shown parts are read."""
    if t.ndim == 0:
        return t.item()
    n = t.shape[0]
    if n > 2 * edge:
        head = [_summarised(t[i], edge) for i in range(edge)]
        return [*head, None, *[_summarised(t[i], edge) for i in range(n - edge, n)]]
    return [_summarised(t[i], edge) for i in range(n)]


def _flat(nested):
    if isinstance(nested, list):
        for item in nested:
            yield from _flat(item)
    elif nested is not None:
        yield nested


def _vector(values, formatter, indent):
    gap = " ..." if options.edgeitems else "..."
    items = [gap if v is None else formatter(v) for v in values]
    width = formatter.width + 2
    per_line = max(1, (options.linewidth - indent) // width)
    lines = [", ".join(items[i:i + per_line]) for i in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested_text(nested, formatter, ndim, indent):
    if ndim == 0:
        return formatter(nested)
    if ndim == 1:
        return _vector(nested, formatter, indent)
    parts = ["..." if v is None else _nested_text(v, formatter, ndim - 1, indent + 1)
             for v in nested]
    return "[" + ("," + "\n" * (ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def text_of(t, indent):
    if t.numel() == 0:
        return "[]"
    data = t.detach()
    if data.numel() > options.threshold:
        nested = _summarised(data, options.edgeitems)
    else:
        nested = data.tolist()
    values = list(_flat(nested))
    kind = t.dtype.kind
    if kind == "b":
        nested = _as_words(nested)
        values = ["True" if v else "False" for v in values]
        formatter = _Words(values)
    elif kind == "c":
        formatter = _ComplexFormatter(values)
    else:
        zero = 2.0 ** -127 if t.dtype.name == "float8_e8m0fnu" else 0       # 0 in the dtype, as in PyTorch
        formatter = _Formatter(values, kind == "f", zero)
    return _nested_text(nested, formatter, t.ndim, indent)


def _as_words(nested):
    if isinstance(nested, list):
        return [_as_words(v) for v in nested]
    return None if nested is None else str(nested)


class _Words:
    def __init__(self, words):
        self.width = max([len(w) for w in words], default=1)

    def __call__(self, word):
        return word.rjust(self.width)


def _tensor_text(self):
    prefix = f"{_prefix(self)}("
    indent = len(prefix)
    suffixes = []
    dtype = self.dtype
    plain = dtype in (get_default_dtype(), as_dtype("int64"), as_dtype("bool")) or (
        dtype is get_default_dtype().to_complex())
    if self.device.type != "cpu":
        suffixes.append(f"device='{self.device}'")
    if self.is_meta:
        suffixes.append(f"size={tuple(self.shape)}")
        body = "..."
        if dtype is not get_default_dtype():
            suffixes.append(f"dtype={dtype!r}")
    else:
        if self.numel() == 0:
            if self.ndim != 1:
                suffixes.append(f"size={tuple(self.shape)}")
            plain = dtype is get_default_dtype()
        elif not options.edgeitems:
            suffixes.append(f"size={tuple(self.shape)}")
        if not plain:
            suffixes.append(f"dtype={dtype!r}")
        body = text_of(self, indent)
    try:
        grad_fn = self.grad_fn
    except RuntimeError:                # a view that cannot follow a write to its base
        grad_fn = "Invalid"
    if grad_fn is not None:
        name = grad_fn if isinstance(grad_fn, str) else grad_fn.name()
        suffixes.append(f"grad_fn=<{name}>")
    elif self.requires_grad:
        suffixes.append("requires_grad=True")
    text = add_suffixes(prefix + body, suffixes, indent)
    outer = None if prefix == "tensor(" else getattr(type(self), "_printed_as", None)
    return f"{outer}({text})" if outer else text


def add_suffixes(text, suffixes, indent, force_newline=False):
    """A text with what stands behind the values, on a new line where it would be too long, and the last bracket."""
    last = len(text) - text.rfind("\n") + 1
    for s in suffixes:
        if force_newline or last + len(s) + 2 > options.linewidth:
            text += ",\n" + " " * indent + s
            last, force_newline = indent + len(s), False
        else:
            text += ", " + s
            last += len(s) + 2
    return text + ")"


def _prefix(t):
    """The class's name; a class with ``_printed_as`` prints as a tensor, what derives from it not."""
    if type(t) is Tensor or "_printed_as" in type(t).__dict__:
        return "tensor"
    return type(t).__name__


def __repr__(self):
    payload = payload_of(self)
    if payload is None:
        values_read("format", self)
    return _tensor_text(self) if payload is None else repr(payload)
