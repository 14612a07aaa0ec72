"""Programs that run with ptcore and with PyTorch: what they return is compared as plain data.

A program takes a library and returns anything. An error counts by its builtin class; its words are not compared.
"""
import types
import warnings

__all__ = ["Failed", "attempt", "differences", "filled", "same", "values"]


class Failed(tuple):
    """The builtin classes of an error, without those that say nothing."""

    def matches(self, other):
        """Whether one except clause, of a class that says something, catches both."""
        return bool({*self} & {*other})


def attempt(f, *args, **kwargs):
    """The result of a call, or the classes of its error."""
    try:
        return f(*args, **kwargs)
    except Exception as error:
        return Failed([c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins" and
                       c not in (Exception, BaseException, object)])


def values(m, *shape, shift=0.0, dtype=None):
    """Numbers between -1 and 1 that depend on nothing else."""
    count = 1
    for size in shape:
        count *= size
    made = (m.arange(count, dtype=m.float64).reshape(shape) * 0.73 + shift).cos()
    return made.to(m.float32 if dtype is None else dtype)


def filled(m, net):
    """A module whose parameters depend on nothing but their sizes and their order."""
    with m.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(values(m, *p.shape, shift=i, dtype=p.dtype) * 0.5)
    return net


def _plain(m, x):
    if isinstance(x, m.Tensor):
        name, dtype = type(x).__name__, str(x.dtype).rpartition(".")[2]
        data = None if x.is_meta else x.detach().as_subclass(m.Tensor).tolist()
        return name, dtype, tuple(x.shape), x.requires_grad, data
    if isinstance(x, m.nn.Module):
        return type(x).__name__, [(name, type(child).__name__) for name, child in x.named_modules()]
    if isinstance(x, dict):
        return [(_plain(m, k), _plain(m, v)) for k, v in x.items()]
    if isinstance(x, Failed):
        return x
    if isinstance(x, (list, tuple, types.GeneratorType)):
        return [_plain(m, each) for each in x]
    if isinstance(x, m.dtype):
        return str(x).rpartition(".")[2]
    if isinstance(x, (bool, int, float, complex, str, type(None))):
        return x
    return type(x).__name__


def _differ(a, b, path):
    if isinstance(a, Failed) and isinstance(b, Failed):
        return [] if a.matches(b) else [f"{path}: {a} and {b}"]
    if isinstance(a, Failed) or isinstance(b, Failed):
        return [f"{path}: {a!r:.200} and {b!r:.200}"]
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return [f"{path}: {a!r:.200} and {b!r:.200}"]
        return [line for i, (x, y) in enumerate(zip(a, b)) for line in _differ(x, y, f"{path}.{i}")]
    if isinstance(a, float) and isinstance(b, float):
        close = a == b or (a != a and b != b) or abs(a - b) <= 2e-5 * max(1, abs(a), abs(b))
        return [] if close else [f"{path}: {a!r} and {b!r}"]
    return [] if type(a) is type(b) and a == b else [f"{path}: {a!r:.200} and {b!r:.200}"]


def differences(program, first, second):
    """Where the results of a program with two libraries differ, as lines."""
    found = []
    for m in (first, second):
        m.manual_seed(0)
        with warnings.catch_warnings(action="ignore"):
            found.append(_plain(m, attempt(program, m)))
    return _differ(*found, program.__name__)


def same(program, first, second):
    """Fails where the results of a program differ, or where it fails with both."""
    lines = differences(program, first, second)
    assert not lines, "\n".join(lines[:20])
    with warnings.catch_warnings(action="ignore"):
        second.manual_seed(0)
        assert not isinstance(attempt(program, second), Failed), f"{program.__name__} fails with both libraries"
