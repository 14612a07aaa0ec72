"""A call as plain data (arrays, names of dtypes, numbers), so that both libraries get the same; where calls come from.

For torch's own samples see torch.testing._internal (needs expecttest), for those of the rows tests/ops/_cases.py.
"""
import itertools
import sys
import warnings
from pathlib import Path

import numpy as np

TESTS = Path(__file__).resolve().parents[2] / "tests"
SIZE = 512


class Data:
    """What becomes a tensor."""

    def __init__(self, array, grad=False):
        self.array, self.grad = array, grad and array.dtype.kind in "fc"

    def realized(self, xp, leaves, grad):
        made = xp.from_numpy(self.array.copy(order="K") if self.array.ndim else np.array(self.array))
        if grad and self.grad:
            leaves.append(made.requires_grad_())
        return made


class Named:
    """An attribute of the library: a dtype, a memory format."""

    def __init__(self, name):
        self.name = name


class Unfit(Exception):
    """No call can be made of a sample; the text says why."""


def plain(value, torch, grad=None):
    """The data of torch's or ptcore's value; ``grad`` says for all tensors whether they need a gradient."""
    kind = type(value)
    module = kind.__module__.partition(".")[0]
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            raise Unfit(f"a tensor of layout {value.layout}")
        if value.dtype in (torch.bfloat16, torch.complex32) or value.is_quantized:
            raise Unfit(f"a tensor of {value.dtype}")
        array = value.detach().resolve_conj().resolve_neg().numpy()
        return Data(array, value.requires_grad if grad is None else grad)
    if kind.__name__ in ("Tensor", "Parameter") and module == "ptcore":
        return Data(value.detach().numpy(), value.requires_grad if grad is None else grad)
    if kind.__name__ in ("dtype", "memory_format", "layout") and module in ("torch", "ptcore"):
        return Named(str(value).rpartition(".")[2])
    if isinstance(value, torch.device):
        return str(value)
    if kind.__name__ == "Size":
        return tuple(value)
    if isinstance(value, (list, tuple)):
        return kind([plain(v, torch, grad) for v in value]) if kind in (list, tuple) else tuple(
            plain(v, torch, grad) for v in value)
    if isinstance(value, dict):
        return {k: plain(v, torch, grad) for k, v in value.items()}
    return value


def realized(value, xp, leaves, grad):
    """The value of a library; tensors that need a gradient are added to ``leaves``."""
    if isinstance(value, Data):
        return value.realized(xp, leaves, grad)
    if isinstance(value, Named):
        return getattr(xp, value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(realized(v, xp, leaves, grad) for v in value)
    return value


def found(xp, path):
    """The attribute of a library by its dotted path; None if it has none."""
    for name in path.split("."):
        xp = getattr(xp, name, None)
    return xp


class Call:
    """``path(*args, **kwargs)``; the path ``Tensor.name`` is a method, or an attribute where nothing can be called."""

    def __init__(self, path, args, kwargs=None):
        self.path, self.args, self.kwargs = path, list(args), kwargs or {}

    def data(self):
        """The tensors' data, in order, those of lists as well."""
        def walk(value):
            if isinstance(value, Data):
                yield value
            elif isinstance(value, (list, tuple)):
                yield from itertools.chain.from_iterable(map(walk, value))
        return list(walk([*self.args, *self.kwargs.values()]))

    def prepared(self, xp, grad=False):
        """(text of the call, names in it, leaves): what ``looped`` takes, and the tensors that need a gradient."""
        names, leaves = {}, []

        def word(value):
            if value is None or isinstance(value, (bool, str)) or (isinstance(value, int) and abs(value) < 1 << 30):
                return repr(value)
            names[f"a{len(names)}"] = realized(value, xp, leaves, grad)
            return f"a{len(names) - 1}"

        words = [word(v) for v in self.args]
        words += [f"{k}={word(v)}" for k, v in self.kwargs.items()]
        home, _, name = self.path.rpartition(".")
        if home != "Tensor":
            names["f"] = found(xp, self.path)
            return f"f({', '.join(words)})", names, leaves
        text = f"{words[0]}.{name}"
        if name == "__getitem__":
            return f"{words[0]}[{', '.join(words[1:])}]", names, leaves
        return text if not callable(found(xp, self.path)) else f"{text}({', '.join(words[1:])})", names, leaves

    def run(self, xp, grad=False):
        """(result, leaves)."""
        text, names, leaves = self.prepared(xp, grad)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(text, names), leaves

    def enlarged(self, rng):
        """The same with tensors of SIZE x SIZE from the range of each one's values; numbers and 0-d tensors stay."""
        def large(value):
            if isinstance(value, Data) and value.array.ndim:
                return Data(spread(rng, value.array), value.grad)
            if isinstance(value, (list, tuple)):
                return type(value)(map(large, value))
            return value
        return Call(self.path, map(large, self.args), {k: large(v) for k, v in self.kwargs.items()})


def spread(rng, array, low=None, high=None):
    """SIZE x SIZE values between the least and the greatest of an array, of its dtype."""
    low, high = (array.min() if low is None else low), (array.max() if high is None else high)
    if array.dtype.kind == "b":
        return rng.random((SIZE, SIZE)) < 0.5
    if array.dtype.kind in "iu":
        return rng.integers(low, high, (SIZE, SIZE), array.dtype, endpoint=True)
    if array.dtype.kind == "c":
        return (rng.standard_normal((SIZE, SIZE)) + 1j * rng.standard_normal((SIZE, SIZE))).astype(array.dtype)
    return rng.uniform(low, high, (SIZE, SIZE)).astype(array.dtype)


# -- torch's op database ---------------------------------------------------------------------------

def database():
    """{name: [OpInfo, ...]} by the names and aliases of torch's op database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    table, aliases = {}, {}
    for info in op_db:
        table.setdefault(info.name, []).append(info)
        for alias in info.aliases:
            aliases.setdefault(alias.name, []).append(info)
    return {**aliases, **table}


def samples(info, path, torch):
    """Calls by the samples of an OpInfo: first those whose tensors all have the same shape of several elements, then
    others with elements; float32 where the op takes it."""
    dtype = next((d for d in (torch.float32, torch.int64, torch.bool, torch.complex64) if d in info.dtypes), None)
    if dtype is None:
        raise Unfit(f"a sample of {sorted(map(str, info.dtypes))}")
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=info.supports_autograd
                                                         and dtype in (torch.float32, torch.complex64)), 24))
    calls, reason = [], Unfit("no sample")
    for sample in drawn:
        try:
            calls.append(Call(path, plain([sample.input, *sample.args], torch), plain(sample.kwargs, torch)))
        except Unfit as e:
            reason = e
    if not calls:
        raise reason

    def order(call):
        sizes = [d.array.size for d in call.data()]
        elements = [min(s, 2) for s in sizes]
        uneven = len({d.array.shape for d in call.data()}) > 1 and hasattr(info, "lhs_make_tensor_kwargs")
        return (bool(sizes) and min(elements) == 0, bool(sizes) and elements[0] < 2, uneven)
    return sorted(calls, key=order)


def row_cases(row, path, torch):
    """Calls by the cases of the row's own tests."""
    for folder in (TESTS, TESTS / "ops"):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    import _cases
    dtype = next((d for d in ("float32", "int64", "bool", "complex64") if d in row.types), "float32")
    calls = []
    for case in _cases.cases(row):
        args, kwargs = _cases.Sample(row, case, dtype, np.random.default_rng(5)).arguments()
        given = [(a, v) for a, v in zip([a for a in _cases.run_args(row) if not a.keyword_only], args)]
        while given and not given[-1][0].is_tensor and given[-1][1] is given[-1][0].default:
            given.pop()
        calls.append(Call(path, plain([v for _, v in given], torch, True), plain(kwargs, torch, True)))
    return calls
