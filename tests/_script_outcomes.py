"""What a function and what ``jit.script`` makes of it do with the same arguments."""
import copy

from ptcore import Tensor, jit


def plain(x):
    """A value to compare: tensors as lists with their dtype."""
    if isinstance(x, Tensor):
        return "tensor", x.dtype, x.tolist()
    if isinstance(x, (list, tuple)):
        return type(x).__name__ if not hasattr(x, "_fields") else "named", [plain(i) for i in x]
    if isinstance(x, dict):
        return [(plain(k), plain(v)) for k, v in x.items()]
    return type(x), x


def outcome(f, args):
    args = copy.deepcopy(args)
    try:
        result = f(*args)
    except Exception as error:
        cls = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        return "raised", cls, str(error), plain(list(args))
    return plain(result), plain(list(args))


def same(f, *calls):
    """The function and what script makes of it do the same."""
    scripted = jit.script(f)
    scripted.graph.lint()
    for args in calls:
        got, want = outcome(scripted, args), outcome(f, args)
        if got[0] == "raised":
            assert want[0] == "raised", (args, got, want)
            text = slice(3 if want[1] is AssertionError else 2, None)       # pytest writes more into assertions
            assert issubclass(got[1], want[1]) and got[text] == want[text], (args, got, want)
        else:
            assert got == want, (args, got, want)
