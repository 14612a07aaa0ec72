"""Results and operands that are written to before the backward: the writes, and what becomes of the gradients.

A write may be refused, or the backward raises since a rule needs what was written over, or the gradients are those of
the same call whose results, or operands, were copied before the write. ``library`` is ptcore, or torch in tests of
parity.
"""
import numpy as np

REASONS = ("modified by an inplace operation", "multiple views", "single memory location",
           "view overlap in memory", "in no_grad mode", "of a leaf Variable that requires grad")


def _without_history(library, y):
    with library.no_grad():
        y.add_(1)


def _last(y):
    return y.narrow(0, y.shape[0] - 1, 1) if y.ndim and y.shape[0] else y[...]


def _through_an_older_view(library, y):
    v = y[...]
    y.mul_(2)
    v.add_(1)


WRITES = {"add": lambda library, y: y.add_(1), "mul": lambda library, y: y.mul_(2),
          "zero": lambda library, y: y.zero_(), "no_grad": _without_history,
          "of a view": lambda library, y: _last(y).mul_(2), "of an older view": _through_an_older_view}


class Refused(Exception):
    """A call, a write or a backward that raised ``error``, as ``where`` says."""

    def __init__(self, where, error):
        super().__init__(f"{where}: {type(error).__name__}: {error}")
        self.where, self.error = where, error

    def is_of_autograd(self):
        """Whether it is one of autograd's reasons, none of the call's."""
        return isinstance(self.error, RuntimeError) and any(text in str(self.error) for text in REASONS)


# Of operands. Integers and masks are set alone: other positions may be none.
WRITES_TO_OPERANDS = {name: WRITES[name] for name in ("add", "zero", "no_grad", "of a view")}


def leaves_of(values, library, all_copied=False):
    """(the values with copies of new leaves in the place of floating tensors, these leaves). ``all_copied``: other
    tensors are copied as well."""
    leaves, copies = [], {}

    def of(x):
        if isinstance(x, library.Tensor):
            if not (x.is_floating_point() or x.is_complex()) or not x.requires_grad:
                return x if not all_copied else copies.setdefault(id(x), x.clone())
            if id(x) not in copies:         # a tensor that is given twice is one leaf
                leaves.append(x.detach().clone().requires_grad_())
                copies[id(x)] = leaves[-1].clone()
            return copies[id(x)]
        if type(x) in (list, tuple) or hasattr(x, "_fields"):
            parts = [of(v) for v in x]
            return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
        return {k: of(v) for k, v in x.items()} if isinstance(x, dict) else x
    return of(values), leaves


def tensors_of(x, library):
    """The tensors of a result that have a history."""
    if isinstance(x, library.Tensor):
        return [x] if x.requires_grad else []
    if isinstance(x, dict):
        x = x.values()
    return [y for v in x for y in tensors_of(v, library)] if isinstance(x, (list, tuple, type({}.values()))) else []


def operands_of(x, library):
    """The tensors among values, each once."""
    found = {}

    def of(x):
        if isinstance(x, library.Tensor):
            found[id(x)] = x
        elif isinstance(x, (list, tuple, dict)):
            for v in x.values() if isinstance(x, dict) else x:
                of(v)
    of(x)
    return list(found.values())


def copies_of(x, library):
    """The values with a copy of each tensor."""
    if isinstance(x, library.Tensor):
        return x.clone()
    if isinstance(x, (list, tuple)):
        parts = [copies_of(v, library) for v in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return {k: copies_of(v, library) for k, v in x.items()} if isinstance(x, dict) else x


def overlaps(y):
    """Whether elements share memory: a write to one is a write to others, which a copy does not show."""
    places = np.zeros((), int)
    for n, step in zip(y.shape, y.stride()):
        places = places[..., None] + step * np.arange(n)
    return len(np.unique(places)) < places.size


def gradients(library, call, values, number, write, copied=False, parameters=(), operand=False):
    """The gradients by the leaves of ``call(values)``, whose result of a number is written to before the backward;
    ``operand``: whose operand of that number is.

    Returns
    -------
    list of ndarray or None
        None where there are no so many results or operands, or where there is nothing to write of an operand that is
        no real or complex tensor. Raises `Refused`.
    """
    values, leaves = leaves_of(values, library, operand)
    leaves += parameters
    for p in parameters:
        p.grad = None
    operands = operands_of(values, library)
    if operand and (number >= len(operands) or (not is_continuous(operands[number]) and write is not WRITES["zero"])):
        return None
    library.manual_seed(3)
    try:
        outputs = tensors_of(call(copies_of(values, library) if operand and copied else values), library)
    except Exception as error:
        raise Refused("call", error) from error
    if (operand and not outputs) or (not operand and number >= len(outputs)):
        return None
    if copied and not operand:
        outputs = [y.clone() for y in outputs]
    try:
        write(library, operands[number] if operand else outputs[number])
    except Exception as error:
        raise Refused("write", error) from error
    try:
        total = 0.0
        for k, y in enumerate(outputs):
            y = library.view_as_real(y.resolve_conj()) if y.is_complex() else y
            weights = np.random.default_rng(k).uniform(0.5, 1.5, tuple(y.shape))
            total = total + (y.double() * library.tensor(weights)).sum()
        total.backward()
    except Exception as error:
        raise Refused("backward", error) from error
    return [np.zeros(tuple(x.shape)) if x.grad is None else plain(library, x.grad) for x in leaves]


def is_continuous(x):
    return x.is_floating_point() or x.is_complex()


def plain(library, g):
    g = g.detach().resolve_conj()
    return g.to(library.complex128 if g.is_complex() else library.float64).numpy()


def outcome(*args, **kwargs):
    """The gradients, None, or `Refused`."""
    try:
        return gradients(*args, **kwargs)
    except Refused as refused:
        return refused


def shows_operands(call, values, library):
    """Whether a result of a call shows the memory of one of its operands."""
    values = leaves_of(values, library, True)[0]
    memory = {x.untyped_storage().data_ptr() for x in operands_of(values, library)} - {0}
    return any(y.untyped_storage().data_ptr() in memory for y in operands_of(call(values), library))


def wrong(library, call, values, number, write, tolerance=1e-9, parameters=(), operand=False):
    """(what became of a program, what is wrong with it or None). The gradients must be those with copies, unless
    elements of the result share memory, or a result is a view of the operand."""
    got = outcome(library, call, values, number, write, parameters=parameters, operand=operand)
    if got is None:
        return got, None
    want = outcome(library, call, values, number, write, copied=True, parameters=parameters, operand=operand)
    if isinstance(want, Refused):       # the call, or its derivative, whatever is written
        return got, None if isinstance(got, Refused) else f"runs, and not with a copy: {want}"
    if isinstance(got, Refused):
        return got, None if got.is_of_autograd() else str(got)
    for a, b in zip(got, want):
        if not np.allclose(a, b, tolerance, tolerance, equal_nan=True) and not (
                shows_operands(call, values, library) if operand else overlaps(
                tensors_of(call(leaves_of(values, library)[0]), library)[number])):
            return got, f"gradient {a.ravel()[:4]}, with a copy {b.ravel()[:4]}"
    return got, None


