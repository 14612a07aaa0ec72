"""What a function and what ``jit.script`` makes of it do with the same arguments, at once and out of a file."""
import copy
import enum
import io

from ptcore import Tensor, jit


def plain(x):
    """A value to compare: tensors as lists with their dtype."""
    if isinstance(x, Tensor):
        return "tensor", x.dtype, x.tolist()
    if isinstance(x, (list, tuple)):
        return type(x).__name__ if not hasattr(x, "_fields") else "named", [plain(i) for i in x]
    if isinstance(x, dict):
        return [(plain(k), plain(v)) for k, v in x.items()]
    if isinstance(x, enum.Enum):
        return type(x).__name__, x.name
    return type(x), x


def again(scripted):
    """What comes out of a file of a scripted program; None if it calls functions of Python as they are."""
    file = io.BytesIO()
    try:
        jit.save(scripted, file)
    except TypeError as error:
        if "called as they are" not in str(error):
            raise
        return None
    return jit.load(io.BytesIO(file.getvalue()))


def is_of_a_program(x):
    """Whether there is an object of a class of the program's own, which a file has another class for."""
    if isinstance(x, dict):
        return any(map(is_of_a_program, x.values()))
    if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
        return any(map(is_of_a_program, x))
    return type(x).__module__ not in ("builtins", "ptcore") and not type(x).__module__.startswith("ptcore.")


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
    loaded = again(scripted)
    for args in calls:
        want = outcome(f, args)
        compare(outcome(scripted, args), want, args)
        if loaded is not None and not is_of_a_program(args):
            compare(outcome(loaded, args), want, args)


def compare(got, want, args):
    if got[0] == "raised":
        assert want[0] == "raised", (args, got, want)
        text = slice(3 if want[1] is AssertionError else 2, None)       # pytest writes more into assertions
        assert issubclass(got[1], want[1]) and got[text] == want[text], (args, got, want)
    else:
        assert got == want, (args, got, want)
